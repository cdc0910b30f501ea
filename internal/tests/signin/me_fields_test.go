package signin_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
)

// PATCH /me says of every field of GET /me, and of a password, that it cannot change it, or
// changes it, or ignores it as read-only. A new field of User needs an entry here.
func TestOwnFieldsOfOtherEndpoints(t *testing.T) {
	other := map[string]any{ // another value, for fields that other endpoints change
		"password": "another-password-7", "new_password": "another-password-7",
		"roles": []string{auth.RoleOwner}, "app_metadata": map[string]any{"plan": "gold"}, "banned_until": "2030-01-01T00:00:00Z",
		"mfa_enabled": true, "email_verified": false, "phone_verified": true,
		"identities": []map[string]any{{"provider": "google", "subject": "1"}},
	}
	changes := []string{"full_name", "user_metadata", "email", "phone"}
	readOnly := []string{"id", "created_at", "updated_at", "last_sign_in_at", "email_verified_at", "phone_verified_at"}
	fields := append(slices.Collect(maps.Keys(other)), slices.Concat(changes, readOnly)...)
	for i, view := 0, reflect.TypeFor[auth.UserView](); i < view.NumField(); i++ {
		if name := view.Field(i).Tag.Get("json"); !slices.Contains(fields, name) {
			t.Errorf("%s: does PATCH /me change it?", name)
		}
	}

	w := harness.NewWorld(t)
	s := w.Member(harness.AdaMail)
	me := func() map[string]any {
		return harness.DecodeAs[map[string]any](w.Do("GET", "/me", nil, harness.Bearer(s.AccessToken)).Want(200))
	}
	before := me()
	for name, value := range other {
		a := w.Do("PATCH", "/me", map[string]any{"full_name": "Mallory", name: value}, harness.Bearer(s.AccessToken)).Want(422, auth.CodeValidationFailed)
		problem := harness.DecodeAs[struct {
			Details struct{ Fields map[string]string }
		}](a).Details.Fields
		if text := problem[name]; len(problem) != 1 || !strings.Contains(text, "is changed by ") {
			t.Errorf("%s: %v", name, problem)
		}
		_, text, _ := strings.Cut(problem[name], "is changed by ")
		if strings.Contains(text, "/admin/") {
			continue
		}
		for _, endpoint := range strings.Split(text, " and POST ") {
			endpoint = strings.Replace("POST "+strings.TrimPrefix(endpoint, "POST "), "POST and DELETE", "DELETE", 1)
			if !slices.Contains(harness.Routes(w.Auth), endpoint) {
				t.Errorf("%s: there is no %s", name, endpoint)
			}
		}
	}
	if after := me(); !reflect.DeepEqual(after, before) {
		t.Errorf("%v became %v", before, after)
	}

	// An application sends the whole object back, an hour later, with one change; unknown
	// fields are ignored.
	w.Clock.Advance(time.Hour)
	s = w.PostRefresh(s.RefreshToken).Session()
	whole := me()
	whole["full_name"], whole["favourite_colour"], whole["password"] = "Ada King", "green", nil
	a := w.Do("PATCH", "/me", whole, harness.Bearer(s.AccessToken)).Want(200)
	if got := harness.DecodeAs[map[string]any](a); got["full_name"] != "Ada King" || got["email"] != harness.AdaMail {
		t.Errorf("%v", got)
	}
}

// The whole object of an account with every field set can be sent back.
func TestOwnWholeObject(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	_ = idp
	u := w.Imported(auth.ImportUserParams{
		Email: harness.AdaMail, EmailVerified: true, Phone: harness.PhoneNumber, PhoneVerified: true, PasswordHash: harness.BcryptHash,
		AppMetadata: map[string]any{"big": json.Number("9007199254740993"), "deep": map[string]any{"a": []any{1, nil, "x"}}}, UserMetadata: map[string]any{"theme": "dark"},
		Identities: []auth.Identity{{Provider: "google", Subject: "s-1", Email: harness.AdaMail}},
	})
	s := w.PostLogin(u.Email, harness.GoodPassword).Session()
	w.Clock.Advance(time.Hour)
	s = w.PostRefresh(s.RefreshToken).Session()
	whole := w.Do("GET", "/me", nil, harness.Bearer(s.AccessToken)).Want(200)
	w.Do("PATCH", "/me", string(whole.Body), harness.Bearer(s.AccessToken)).Want(200)
	rounded := harness.DecodeAs[map[string]any](whole) // as JavaScript reads and writes it
	w.Do("PATCH", "/me", rounded, harness.Bearer(s.AccessToken)).Want(200)
}
