package admin

import (
	"context"
	"encoding/json"
	"time"

	"github.com/authmount/auth"
)

type (
	accountView struct {
		userView

		HasPassword       bool          `json:"has_password"`
		Factors           []factorView  `json:"factors"`
		RecoveryCodesLeft int           `json:"recovery_codes_left"`
		Pending           []pendingView `json:"pending_changes"`
		Locks             []lockView    `json:"locks"`
		Notes             string        `json:"notes"`
		Waiting           *waitingView  `json:"waiting"`
	}
	factorView struct {
		ID         string     `json:"id"`
		Kind       string     `json:"kind"`
		Label      *string    `json:"label"`
		Required   bool       `json:"second_factor"` // sign-ins by other methods ask for a second factor
		CreatedAt  time.Time  `json:"created_at"`
		LastUsedAt *time.Time `json:"last_used_at"`
	}
	pendingView struct {
		Field     string    `json:"field"`
		Value     string    `json:"value"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	lockView struct {
		Limit string    `json:"limit"`
		Until time.Time `json:"until"`
	}
)

func (a Account) reply(m *Admin) reply {
	v := accountView{userView: m.view(a.User), HasPassword: a.HasPassword, Factors: viewFactors(a.Factors), RecoveryCodesLeft: a.RecoveryCodesLeft, Pending: []pendingView{}, Locks: []lockView{}, Notes: a.Notes, Waiting: viewWaiting(a.Waiting)}
	for _, p := range a.Pending {
		v.Pending = append(v.Pending, pendingView(p))
	}
	for _, l := range a.Locks {
		v.Locks = append(v.Locks, lockView(l))
	}
	return reply{revision: &a.Revision, body: v}
}

func viewFactors(list []auth.Factor) []factorView {
	out := []factorView{}
	for _, f := range list {
		v := factorView{ID: f.ID, Kind: f.Kind, Label: optional(f.Label), Required: f.Required, CreatedAt: f.CreatedAt}
		if !f.LastUsedAt.IsZero() {
			v.LastUsedAt = &f.LastUsedAt
		}
		out = append(out, v)
	}
	return out
}

// updateUserBody is a merge patch of an account.
type updateUserBody struct {
	UserID        string          `path:"id"`
	Revision      *int64          `header:"If-Match"`
	FullName      json.RawMessage `json:"full_name"`
	UserMetadata  json.RawMessage `json:"user_metadata"`
	AppMetadata   json.RawMessage `json:"app_metadata"`
	Notes         json.RawMessage `json:"notes"`
	Email         json.RawMessage `json:"email"`
	EmailVerified json.RawMessage `json:"email_verified"`
	Phone         json.RawMessage `json:"phone"`
	PhoneVerified json.RawMessage `json:"phone_verified"`
}

func (m *Admin) updateUser(ctx context.Context, who Actor, p updateUserBody) (auth.User, error) {
	f := &fields{m: m}
	u := UpdateUserParams{
		UserID: p.UserID, Revision: p.Revision,
		FullName: f.text("full_name", p.FullName), Notes: f.text("notes", p.Notes), Email: f.text("email", p.Email), Phone: f.text("phone", p.Phone),
		EmailVerified: f.flag("email_verified", p.EmailVerified), PhoneVerified: f.flag("phone_verified", p.PhoneVerified),
		UserMetadata: f.object("user_metadata", p.UserMetadata), AppMetadata: f.object("app_metadata", p.AppMetadata),
	}
	if f.err != nil {
		return auth.User{}, f.err
	}
	return m.UpdateUser(ctx, who, u)
}

// fields reads members of a merge patch. An absent member and null differ.
type fields struct {
	m   *Admin
	err error
}

func (f *fields) read(name string, raw json.RawMessage, into any, wants string) bool {
	if raw == nil {
		return false
	}
	if err := json.Unmarshal(raw, into); err != nil {
		f.fault(name, wants)
	}
	return true
}

func (f *fields) fault(name, problem string) {
	if f.err == nil {
		f.err = f.m.kit.Invalid(name, problem)
	}
}

// text reads a string; null means the empty string.
func (f *fields) text(name string, raw json.RawMessage) *string {
	s := new(string)
	if !f.read(name, raw, s, "must be a string, or null") {
		return nil
	}
	return s
}

func (f *fields) flag(name string, raw json.RawMessage) *bool {
	var b *bool
	if f.read(name, raw, &b, "has to be true or false") && b == nil {
		f.fault(name, "has to be true or false")
	}
	return b
}

func (f *fields) object(name string, raw json.RawMessage) (o map[string]any) {
	if f.read(name, raw, &o, "has to be an object") && o == nil {
		f.fault(name, "has to be an object")
	}
	return o
}
