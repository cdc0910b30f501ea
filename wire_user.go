package auth

import (
	"encoding/json"
	"time"
)

// The JSON forms of users and sessions. They differ from the stored forms: absent
// strings and times are null, lists and objects are never null, and times have
// microseconds, in UTC.

// UserView is the User object in JSON. Every endpoint writes this form, and clients may
// read it.
type UserView struct {
	ID              string         `json:"id"`
	Email           *string        `json:"email"`
	EmailVerified   bool           `json:"email_verified"`
	EmailVerifiedAt *time.Time     `json:"email_verified_at"`
	Phone           *string        `json:"phone"`
	PhoneVerified   bool           `json:"phone_verified"`
	PhoneVerifiedAt *time.Time     `json:"phone_verified_at"`
	FullName        *string        `json:"full_name"`
	UserMetadata    map[string]any `json:"user_metadata"`
	AppMetadata     map[string]any `json:"app_metadata"`
	Roles           []string       `json:"roles"`
	MFAEnabled      bool           `json:"mfa_enabled"`
	Identities      []IdentityView `json:"identities"`
	CreatedAt       time.Time      `json:"created_at"`
	UpdatedAt       time.Time      `json:"updated_at"`
	LastSignInAt    *time.Time     `json:"last_sign_in_at"`
	BannedUntil     *time.Time     `json:"banned_until"`
}

// IdentityView is one entry of UserView.Identities.
type IdentityView struct {
	ID           string     `json:"id"`
	Provider     string     `json:"provider"`
	Subject      string     `json:"subject"`
	Email        *string    `json:"email"`
	CreatedAt    time.Time  `json:"created_at"`
	LastSignInAt *time.Time `json:"last_sign_in_at"`
}

// SessionView is the Session object in JSON, the result of every completed sign-in. In
// cookie mode the tokens are null.
type SessionView struct {
	AccessToken       *string  `json:"access_token"`
	TokenType         string   `json:"token_type"` // "bearer"
	ExpiresIn         int      `json:"expires_in"` // seconds
	ExpiresAt         int64    `json:"expires_at"` // Unix seconds
	RefreshToken      *string  `json:"refresh_token"`
	User              UserView `json:"user"`
	RecoveryCodesLeft *int     `json:"recovery_codes_left,omitempty"`
	RecoveryCodes     []string `json:"recovery_codes,omitempty"` // Tokens.RecoveryCodes
}

// ViewOf returns the JSON form of a user. Metadata and roles are shared with u.
func ViewOf(u User) UserView {
	identities := make([]IdentityView, 0, len(u.Identities))
	for _, i := range u.Identities {
		identities = append(identities, viewIdentity(i))
	}
	return UserView{
		ID: u.ID, Email: optional(u.Email), EmailVerified: u.EmailVerified(), EmailVerifiedAt: optionalTime(u.EmailVerifiedAt),
		Phone: optional(u.Phone), PhoneVerified: u.PhoneVerified(), PhoneVerifiedAt: optionalTime(u.PhoneVerifiedAt),
		FullName: optional(u.FullName), UserMetadata: orEmptyMap(u.UserMetadata), AppMetadata: orEmptyMap(u.AppMetadata), Roles: nonNil(u.Roles),
		MFAEnabled: u.MFAEnabled, Identities: identities, CreatedAt: wireTime(u.CreatedAt), UpdatedAt: wireTime(u.UpdatedAt),
		LastSignInAt: optionalTime(u.LastSignInAt), BannedUntil: optionalTime(u.BannedUntil),
	}
}

// viewIdentity returns the JSON form of an identity.
func viewIdentity(i Identity) IdentityView {
	return IdentityView{
		ID: i.ID, Provider: i.Provider, Subject: i.Subject, Email: optional(i.Email),
		CreatedAt: wireTime(i.CreatedAt), LastSignInAt: optionalTime(i.LastSignInAt),
	}
}

// View returns the JSON form of the tokens.
func (t Tokens) View() SessionView {
	return SessionView{
		AccessToken: optional(t.AccessToken), TokenType: "bearer", ExpiresIn: t.ExpiresIn, ExpiresAt: t.ExpiresAt.Unix(),
		RefreshToken: optional(t.RefreshToken), User: ViewOf(t.User), RecoveryCodesLeft: t.RecoveryCodesLeft, RecoveryCodes: t.RecoveryCodes,
	}
}

// MarshalJSON writes the Session object.
func (t Tokens) MarshalJSON() ([]byte, error) { return json.Marshal(t.View()) }

type sessionInfoView struct {
	ID           string    `json:"id"`
	CreatedAt    time.Time `json:"created_at"`
	LastActiveAt time.Time `json:"last_active_at"`
	ExpiresAt    time.Time `json:"expires_at"`
	IP           *string   `json:"ip"`
	UserAgent    *string   `json:"user_agent"`
	Device       *string   `json:"device"`
	AAL          string    `json:"aal"`
	AMR          []AMR     `json:"amr"`
	Current      bool      `json:"current"`

	ImpersonatedBy *string `json:"impersonated_by"`
}

// MarshalJSON writes the entry of GET /sessions.
func (s SessionInfo) MarshalJSON() ([]byte, error) { return json.Marshal(s.view()) }

func (s SessionInfo) view() sessionInfoView {
	return sessionInfoView{
		ID: s.ID, CreatedAt: wireTime(s.CreatedAt), LastActiveAt: wireTime(s.LastActiveAt), ExpiresAt: wireTime(s.ExpiresAt),
		IP: optional(ipString(s.IP)), UserAgent: optional(s.UserAgent), Device: optional(s.Device),
		AAL: s.AAL, AMR: nonNil(s.AMR), Current: s.Current, ImpersonatedBy: optional(s.ImpersonatedBy),
	}
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = wireTime(t)
	return &t
}

func wireTime(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func orEmptyMap(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}
