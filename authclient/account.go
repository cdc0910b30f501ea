package authclient

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/authmount/auth"
)

// User reads the signed-in user from the server. The server's answer reflects an ended
// session at once.
func (c *Client) User(ctx context.Context) (*User, error) {
	u := &User{}
	if err := c.as(ctx, call{method: http.MethodGet, path: "/me", repeat: repeatAlways}, u); err != nil {
		return nil, err
	}
	c.note(*u)
	return u, nil
}

// UserOf reads the user of an access token, independently of this client's session.
// Errors: auth.CodeBadToken, CodeSessionEnded, CodeUserBanned.
func (c *Client) UserOf(ctx context.Context, accessToken string) (*User, error) {
	u := &User{}
	err := c.wire.do(ctx, call{method: http.MethodGet, path: "/me", bearer: accessToken, repeat: repeatAlways}, u)
	return orNil(u, err)
}

// note stores the user that the server returned in the session.
func (c *Client) note(u User) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == nil || c.session.User.ID != u.ID {
		return
	}
	c.session.User = cloneUser(u)
	if err := c.store.Save(context.Background(), c.session); err != nil {
		c.wire.log.Warn("authclient: the session cannot be stored", "error", err)
	}
	c.changed()
}

// UpdateUserParams are the parameters of UpdateUser; unset fields remain unchanged. A
// new email address or phone number takes effect when it is confirmed: ConfirmEmail,
// ConfirmPhone.
type UpdateUserParams struct {
	FullName     *string        `json:"full_name,omitempty"`
	Email        string         `json:"email,omitempty"`
	Phone        string         `json:"phone,omitempty"`
	UserMetadata map[string]any `json:"user_metadata,omitempty"` // merged; nil deletes a member (RFC 7396)
}

// UpdateUser edits the account. Errors: auth.CodeValidationFailed, CodeReauthNeeded and
// CodeEmailNotVerified for an email address or phone number.
func (c *Client) UpdateUser(ctx context.Context, p UpdateUserParams) (*User, error) {
	u := &User{}
	if err := c.as(ctx, call{method: http.MethodPatch, path: "/me", body: p}, u); err != nil {
		return nil, err
	}
	c.note(*u)
	return u, nil
}

// ConfirmPhone confirms a phone number within the session, with the code that was sent
// to it, and returns a new session.
func (c *Client) ConfirmPhone(ctx context.Context, phone, code string) (*Session, error) {
	token, err := c.Token(ctx)
	if err != nil {
		return nil, err
	}
	return c.signIn(ctx, call{path: "/otp/verify", bearer: token, body: map[string]string{"phone": phone, "otp": code}})
}

// SendEmailConfirmation sends a confirmation to the account's email address. It sends
// nothing if the address is confirmed.
func (c *Client) SendEmailConfirmation(ctx context.Context) error {
	return c.as(ctx, call{method: http.MethodPost, path: "/verify-email"}, nil)
}

// ConfirmEmailParams are the Token of a mailed link, or Email and Code. RequestID, of
// SignUpResult, or with Token the account's Password, shows outside of a session that the
// same person signed up.
type ConfirmEmailParams struct {
	Token     string
	Email     string
	Code      string
	RequestID string
	Password  string
}

// ConfirmEmail confirms an email address. If a user is signed in, it uses that session;
// otherwise see EmailConfirmation.TakenOver. It returns no session. Errors:
// auth.CodeInvalidToken, CodeInvalidCode, CodeMissingToken (the link of an account with
// credentials, outside of a session and without RequestID and Password),
// CodeInvalidCredentials.
func (c *Client) ConfirmEmail(ctx context.Context, p ConfirmEmailParams) (*EmailConfirmation, error) {
	k := call{method: http.MethodPost, path: "/verify-email", body: filled{"token": p.Token, "email": p.Email, "code": p.Code, "request_id": p.RequestID, "password": p.Password}.set()}
	if err := c.load(ctx); err != nil {
		return nil, err
	}
	v := &EmailConfirmation{}
	if s, _ := c.current(); s == nil {
		err := c.wire.do(ctx, k, v)
		if err == nil {
			c.confirmed()
		}
		return orNil(v, err)
	}
	return orNil(v, c.as(ctx, k, v))
}

// EmailConfirmation is the result of ConfirmEmail.
type EmailConfirmation struct {
	TakenOver bool `json:"taken_over"` // credentials that another person had added to the account were deleted
	ResetSent bool `json:"reset_sent"` // a mail to choose a password was sent
}

// ResetPasswordForEmail sends a link to choose a new password. It succeeds whether the
// account exists or not.
func (c *Client) ResetPasswordForEmail(ctx context.Context, email, redirectTo string) error {
	err := c.wire.do(ctx, call{method: http.MethodPost, path: "/forgot-password", body: filled{"email": email, "redirect_to": redirectTo}.set()}, nil)
	return err
}

// ResetPassword sets a new password with the token of a mailed link. It ends all
// sessions and returns none: sign in afterwards. Errors: auth.CodeInvalidToken;
// CodeWeakPassword, after which the token remains valid.
func (c *Client) ResetPassword(ctx context.Context, token, newPassword string) error {
	err := c.wire.do(ctx, call{method: http.MethodPost, path: "/reset-password", body: map[string]string{"token": token, "new_password": newPassword}}, nil)
	return err
}

// ChangePassword changes the password. current is empty if the account has none. Other
// sessions end. Errors: auth.CodeInvalidCredentials, CodeWeakPassword,
// CodeSamePassword.
func (c *Client) ChangePassword(ctx context.Context, current, next string) error {
	return c.as(ctx, call{method: http.MethodPost, path: "/me/password", body: filled{"current_password": current, "new_password": next}.set()}, nil)
}

// Confirm authenticates the user again, by password, a code of the authenticator app or a
// passkey, for calls that require a recent authentication (auth.CodeReauthNeeded). The session that
// it returns, and keeps, has a new access token.
func (c *Client) Confirm(ctx context.Context, p ConfirmParams) (*Session, error) {
	token, err := c.Token(ctx)
	if err != nil {
		return nil, err
	}
	return c.signIn(ctx, call{path: "/me/confirm", bearer: token, body: p})
}

// ConfirmParams are Password, TOTPCode or Passkey.
type ConfirmParams struct {
	Password string          `json:"password,omitempty"`
	TOTPCode string          `json:"totp_code,omitempty"`
	Passkey  json.RawMessage `json:"passkey,omitempty"` // an AuthenticationResponseJSON of WebAuthn Level 3, see BeginPasskeyFactor
}

// UnlinkIdentity removes a provider from the account. Errors:
// auth.CodeLastSignInMethod.
func (c *Client) UnlinkIdentity(ctx context.Context, provider string) error {
	return c.as(ctx, call{method: http.MethodDelete, path: "/me/identities/" + segment(provider)}, nil)
}

// SessionInfo is one of the account's sessions.
type SessionInfo struct {
	ID             string     `json:"id"`
	CreatedAt      time.Time  `json:"created_at"`
	LastActiveAt   time.Time  `json:"last_active_at"`
	ExpiresAt      time.Time  `json:"expires_at"`
	IP             *string    `json:"ip"`
	UserAgent      *string    `json:"user_agent"`
	Device         *string    `json:"device"` // such as "Firefox on Linux"
	AAL            string     `json:"aal"`
	AMR            []auth.AMR `json:"amr"`
	Current        bool       `json:"current"`
	ImpersonatedBy *string    `json:"impersonated_by"`
}

type sessionsWire struct {
	Sessions []SessionInfo `json:"sessions"`
}

// Sessions lists the account's live sessions.
func (c *Client) Sessions(ctx context.Context) ([]SessionInfo, error) {
	var w sessionsWire
	err := c.as(ctx, call{method: http.MethodGet, path: "/sessions", repeat: repeatAlways}, &w)
	return w.Sessions, err
}

// EndSession ends one of the account's sessions. Errors: auth.CodeSessionNotFound.
func (c *Client) EndSession(ctx context.Context, id string) error {
	return c.as(ctx, call{method: http.MethodDelete, path: "/sessions/" + segment(id)}, nil)
}

// EndOtherSessions ends all sessions but this one.
func (c *Client) EndOtherSessions(ctx context.Context) error {
	return c.as(ctx, call{method: http.MethodDelete, path: "/sessions", repeat: repeatAlways}, nil)
}

// Export returns all data held about the account, as JSON. It requires a recent
// authentication.
func (c *Client) Export(ctx context.Context) (json.RawMessage, error) {
	var doc json.RawMessage
	err := c.as(ctx, call{method: http.MethodGet, path: "/me/export", repeat: repeatAlways}, &doc)
	return doc, err
}

// DeleteAccount deletes the account, if the server allows that, and signs out. It
// requires a recent authentication. Errors: auth.CodeReauthNeeded, CodeLastOwner,
// CodeMethodDisabled.
func (c *Client) DeleteAccount(ctx context.Context) error {
	if err := c.as(ctx, call{method: http.MethodDelete, path: "/me"}, nil); err != nil {
		return err
	}
	_, err := c.adopt(ctx, nil, c.void())
	return err
}

// SecureAccount uses the link of a notice about a new device: it ends the session on
// that device and sends a password reset. Errors: auth.CodeInvalidToken.
func (c *Client) SecureAccount(ctx context.Context, token string) error {
	err := c.wire.do(ctx, call{method: http.MethodPost, path: "/secure-account", body: map[string]string{"token": token}}, nil)
	return err
}

// Settings are the settings that a sign-in page needs.
type Settings struct {
	Enabled                   bool            `json:"enabled"`
	SignupEnabled             bool            `json:"signup_enabled"`
	EmailConfirmationRequired bool            `json:"email_confirmation_required"`
	Methods                   SettingsMethods `json:"methods"`
	Providers                 []string        `json:"providers"`
	MFARequired               bool            `json:"mfa_required"`
	Password                  struct {
		MinLength int `json:"min_length"`
	} `json:"password"`
}

// SettingsMethods lists the enabled sign-in methods.
type SettingsMethods struct {
	Password  bool `json:"password"`
	MagicLink bool `json:"magic_link"`
	PhoneOTP  bool `json:"phone_otp"`
	OAuth     bool `json:"oauth"`
	Passkey   bool `json:"passkey"`
	TOTP      bool `json:"totp"`
}

// Settings reads the project's settings.
func (c *Client) Settings(ctx context.Context) (*Settings, error) {
	s := &Settings{}
	err := c.wire.do(ctx, call{method: http.MethodGet, path: "/settings", repeat: repeatAlways}, s)
	return orNil(s, err)
}

// Healthy returns nil if the server and its store answer.
func (c *Client) Healthy(ctx context.Context) error {
	err := c.wire.do(ctx, call{method: http.MethodGet, path: "/healthz"}, nil)
	return err
}
