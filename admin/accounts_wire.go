package admin

import (
	"encoding/json"
	"net/http"
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
	}
	factorView struct {
		ID         string     `json:"id"`
		Kind       string     `json:"kind"`
		Label      *string    `json:"label"`
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

// writeAccount writes an account whole, with its revision as ETag.
func (m *Admin) writeAccount(w http.ResponseWriter, a Account, err error) error {
	if err != nil {
		return err
	}
	v := accountView{userView: m.view(a.User), HasPassword: a.HasPassword, Factors: viewFactors(a.Factors), RecoveryCodesLeft: a.RecoveryCodesLeft, Pending: []pendingView{}, Locks: []lockView{}, Notes: a.Notes}
	for _, p := range a.Pending {
		v.Pending = append(v.Pending, pendingView(p))
	}
	for _, l := range a.Locks {
		v.Locks = append(v.Locks, lockView(l))
	}
	setRevision(w, a.Revision)
	return m.kit.WriteJSON(w, http.StatusOK, v)
}

func viewFactors(list []auth.Factor) []factorView {
	out := []factorView{}
	for _, f := range list {
		v := factorView{ID: f.ID, Kind: f.Kind, Label: optional(f.Label), CreatedAt: f.CreatedAt}
		if !f.LastUsedAt.IsZero() {
			v.LastUsedAt = &f.LastUsedAt
		}
		out = append(out, v)
	}
	return out
}

func (m *Admin) handleUser(who Actor, w http.ResponseWriter, r *http.Request) error {
	a, err := m.User(r.Context(), who, r.PathValue("id"))
	return m.writeAccount(w, a, err)
}

func (m *Admin) handleCreateUser(who Actor, w http.ResponseWriter, r *http.Request) error {
	var p struct {
		ID            string         `json:"id"`
		Email         string         `json:"email"`
		EmailVerified bool           `json:"email_verified"`
		Phone         string         `json:"phone"`
		PhoneVerified bool           `json:"phone_verified"`
		FullName      string         `json:"full_name"`
		Password      string         `json:"password"`
		PasswordHash  string         `json:"password_hash"`
		Roles         []string       `json:"roles"`
		UserMetadata  map[string]any `json:"user_metadata"`
		AppMetadata   map[string]any `json:"app_metadata"`
		Notes         string         `json:"notes"`
		Send          string         `json:"send"`
	}
	if err := m.kit.Decode(r, &p); err != nil {
		return err
	}
	if p.Send != "" && p.Send != "verify" && p.Send != "invite" {
		return m.kit.Invalid("send", "has to be verify or invite")
	}
	u, err := m.CreateUser(r.Context(), who, CreateUserParams{
		ID: p.ID, Email: p.Email, EmailVerified: p.EmailVerified, Phone: p.Phone, PhoneVerified: p.PhoneVerified, FullName: p.FullName,
		Password: p.Password, PasswordHash: p.PasswordHash, Roles: p.Roles, UserMetadata: p.UserMetadata, AppMetadata: p.AppMetadata, Notes: p.Notes,
		SendVerification: p.Send == "verify", SendInvitation: p.Send == "invite",
	})
	if err != nil {
		return err
	}
	setRevision(w, u.Revision)
	return m.kit.WriteJSON(w, http.StatusCreated, m.view(u))
}

func (m *Admin) handleUpdateUser(who Actor, w http.ResponseWriter, r *http.Request) error {
	var p struct {
		FullName      json.RawMessage `json:"full_name"`
		UserMetadata  json.RawMessage `json:"user_metadata"`
		AppMetadata   json.RawMessage `json:"app_metadata"`
		Notes         json.RawMessage `json:"notes"`
		Email         json.RawMessage `json:"email"`
		EmailVerified json.RawMessage `json:"email_verified"`
		Phone         json.RawMessage `json:"phone"`
		PhoneVerified json.RawMessage `json:"phone_verified"`
	}
	rev, err := m.ifMatch(r)
	if err == nil {
		err = m.kit.Decode(r, &p)
	}
	if err != nil {
		return err
	}
	f := &fields{m: m}
	u := UpdateUserParams{
		UserID: r.PathValue("id"), Revision: rev,
		FullName: f.text("full_name", p.FullName), Notes: f.text("notes", p.Notes), Email: f.text("email", p.Email), Phone: f.text("phone", p.Phone),
		EmailVerified: f.flag("email_verified", p.EmailVerified), PhoneVerified: f.flag("phone_verified", p.PhoneVerified),
		UserMetadata: f.object("user_metadata", p.UserMetadata), AppMetadata: f.object("app_metadata", p.AppMetadata),
	}
	if f.err != nil {
		return f.err
	}
	updated, err := m.UpdateUser(r.Context(), who, u)
	return m.writeUser(w, updated, err)
}

// fields reads members of a merge patch, of which an absent one and null are not the
// same.
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

// text is a text; null empties it.
func (f *fields) text(name string, raw json.RawMessage) *string {
	s := new(string)
	if !f.read(name, raw, s, "has to be a text, or null") {
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
