package auth

import (
	"encoding/json"
	"testing"
	"time"
)

// Whatever people call themselves, the User object is what encoding/json would
// write.
func TestUserIsEncodedAsByTheLibrary(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 789_000, time.FixedZone("", 3600))
	for _, s := range []string{"", "Ada", `a"b\c`, "</script>&", "a\tb\x00\x1f\x7f", "Åsa 🦊 \u2028\u2029", "bad \xff utf-8", "\ufffd"} {
		for _, u := range []User{
			{ID: s, Email: s, Phone: s, FullName: s, CreatedAt: at, UpdatedAt: at},
			{ID: "1", EmailVerified: true, MFAEnabled: true, UserMetadata: map[string]any{s: s, "b": 1.5, "a": nil}, AppMetadata: map[string]any{"x": []any{s}},
				Roles: []string{s, "editor"}, Identities: []Identity{{ID: s, CreatedAt: at}}, LastSignInAt: at, BannedUntil: at.UTC()},
		} {
			want, err := json.Marshal(struct {
				ID            string         `json:"id"`
				Email         any            `json:"email"`
				EmailVerified bool           `json:"email_verified"`
				Phone         any            `json:"phone"`
				PhoneVerified bool           `json:"phone_verified"`
				FullName      any            `json:"full_name"`
				UserMetadata  map[string]any `json:"user_metadata"`
				AppMetadata   map[string]any `json:"app_metadata"`
				Roles         []string       `json:"roles"`
				MFAEnabled    bool           `json:"mfa_enabled"`
				Identities    []Identity     `json:"identities"`
				CreatedAt     time.Time      `json:"created_at"`
				UpdatedAt     time.Time      `json:"updated_at"`
				LastSignInAt  any            `json:"last_sign_in_at"`
				BannedUntil   any            `json:"banned_until"`
			}{
				u.ID, nullable(u.Email), u.EmailVerified, nullable(u.Phone), u.PhoneVerified, nullable(u.FullName), orEmptyMap(u.UserMetadata), orEmptyMap(u.AppMetadata),
				orEmpty(u.Roles), u.MFAEnabled, orEmpty(u.Identities), wireTime(u.CreatedAt), wireTime(u.UpdatedAt), nullableTime(u.LastSignInAt), nullableTime(u.BannedUntil),
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, marshal := range []func(any) ([]byte, error){func(v any) ([]byte, error) { return appendEncoded(nil, v) }, json.Marshal} {
				if got, err := marshal(u); err != nil || string(got) != string(want) {
					t.Errorf("%v\n%s\nis not\n%s", err, got, want)
				}
			}
		}
	}
}

func TestUserThatCannotBeEncoded(t *testing.T) {
	for _, u := range []User{{UserMetadata: map[string]any{"f": func() {}}}, {CreatedAt: time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)}} {
		if b, err := appendEncoded(nil, u); err == nil {
			t.Errorf("%s", b)
		}
	}
}
