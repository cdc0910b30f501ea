package service_test

import (
	"encoding/json"
	"net/netip"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// An absent value is null or empty, never omitted. Values that only the store needs stay there.
func TestWireForms(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 789_012_345, time.FixedZone("", 3600))

	bareUser := auth.User{ID: "1", CreatedAt: at, UpdatedAt: at.Truncate(time.Second)}
	bareJSON := `{"id":"1","email":null,"email_verified":false,"email_verified_at":null,"phone":null,"phone_verified":false,"phone_verified_at":null,` +
		`"full_name":null,"user_metadata":{},"app_metadata":{},"roles":[],"mfa_enabled":false,"identities":[],` +
		`"created_at":"2026-02-03T03:05:06.789012Z","updated_at":"2026-02-03T03:05:06Z","last_sign_in_at":null,"banned_until":null}`

	fullUser := auth.User{
		ID: "1", Email: "Ada@example.com", EmailVerifiedAt: at, Phone: "+4930123456", PhoneVerifiedAt: at, FullName: "Åsa </script>",
		UserMetadata: map[string]any{"b": 1.5, "a": nil}, AppMetadata: map[string]any{"x": []any{"y"}}, Roles: []string{"editor", "<b>"}, MFAEnabled: true,
		Identities: []auth.Identity{{ID: "2", Provider: "p", Subject: "s", CreatedAt: at}, {ID: "3", Provider: "q", Subject: "s", Email: "a@b.test", CreatedAt: at, LastSignInAt: at}},
		CreatedAt:  at, UpdatedAt: at, LastSignInAt: at, BannedUntil: at, Revision: 7, Claims: map[string]any{"org": "1"},
	}
	fullJSON := `{"id":"1","email":"Ada@example.com","email_verified":true,"email_verified_at":"2026-02-03T03:05:06.789012Z","phone":"+4930123456","phone_verified":true,"phone_verified_at":"2026-02-03T03:05:06.789012Z",` +
		`"full_name":"Åsa \u003c/script\u003e","user_metadata":{"a":null,"b":1.5},"app_metadata":{"x":["y"]},"roles":["editor","\u003cb\u003e"],"mfa_enabled":true,` +
		`"identities":[{"id":"2","provider":"p","subject":"s","email":null,"created_at":"2026-02-03T03:05:06.789012Z","last_sign_in_at":null},` +
		`{"id":"3","provider":"q","subject":"s","email":"a@b.test","created_at":"2026-02-03T03:05:06.789012Z","last_sign_in_at":"2026-02-03T03:05:06.789012Z"}],` +
		`"created_at":"2026-02-03T03:05:06.789012Z","updated_at":"2026-02-03T03:05:06.789012Z","last_sign_in_at":"2026-02-03T03:05:06.789012Z","banned_until":"2026-02-03T03:05:06.789012Z"}`
	left := 0
	for name, c := range map[string]struct {
		v    any
		want string
	}{
		"bare user":    {auth.ViewOf(bareUser), bareJSON},
		"full user":    {auth.ViewOf(fullUser), fullJSON},
		"identity":     {auth.ViewOf(auth.User{Identities: []auth.Identity{{ID: "2", CreatedAt: at}}}).Identities[0], `{"id":"2","provider":"","subject":"","email":null,"created_at":"2026-02-03T03:05:06.789012Z","last_sign_in_at":null}`},
		"tokens":       {auth.Tokens{AccessToken: "a", RefreshToken: "r", ExpiresAt: at, ExpiresIn: 900, SessionID: "s", User: fullUser}, `{"access_token":"a","token_type":"bearer","expires_in":900,"expires_at":1770087906,"refresh_token":"r","user":` + fullJSON + `}`},
		"bare session": {auth.SessionInfo{ID: "1", CreatedAt: at, LastActiveAt: at, ExpiresAt: at}, `{"id":"1","created_at":"2026-02-03T03:05:06.789012Z","last_active_at":"2026-02-03T03:05:06.789012Z","expires_at":"2026-02-03T03:05:06.789012Z","ip":null,"user_agent":null,"device":null,"aal":"","amr":[],"current":false,"impersonated_by":null}`},
		"full session": {auth.SessionInfo{
			ID: "1", CreatedAt: at, LastActiveAt: at, ExpiresAt: at, IP: netip.MustParseAddr("192.0.2.1"), UserAgent: "Mozilla", Device: "Firefox on Linux",
			AAL: store.LevelAAL1, AMR: []auth.AMR{{Method: "password", Timestamp: 1770087906}}, Current: true,
		}, `{"id":"1","created_at":"2026-02-03T03:05:06.789012Z","last_active_at":"2026-02-03T03:05:06.789012Z","expires_at":"2026-02-03T03:05:06.789012Z","ip":"192.0.2.1","user_agent":"Mozilla","device":"Firefox on Linux","aal":"aal1","amr":[{"method":"password","timestamp":1770087906}],"current":true,"impersonated_by":null}`},
		"cookie mode":   {auth.Tokens{ExpiresAt: at, ExpiresIn: 900, User: bareUser}, `{"access_token":null,"token_type":"bearer","expires_in":900,"expires_at":1770087906,"refresh_token":null,"user":` + bareJSON + `}`},
		"recovery code": {auth.Tokens{ExpiresAt: at, User: bareUser, RecoveryCodesLeft: &left}, `{"access_token":null,"token_type":"bearer","expires_in":0,"expires_at":1770087906,"refresh_token":null,"user":` + bareJSON + `,"recovery_codes_left":0}`},
	} {
		if got, err := json.Marshal(c.v); err != nil || string(got) != c.want {
			t.Errorf("%s: %v\n%s\nis not\n%s", name, err, got, c.want)
		}
	}
	for _, v := range []any{
		auth.ViewOf(auth.User{UserMetadata: map[string]any{"f": func() {}}}), auth.ViewOf(auth.User{CreatedAt: time.Date(12026, 1, 1, 0, 0, 0, 0, time.UTC)}),
		auth.Tokens{User: auth.User{AppMetadata: map[string]any{"f": func() {}}}},
	} {
		if b, err := json.Marshal(v); err == nil {
			t.Errorf("%s", b)
		}
	}
}

// The information about a session uses Go types, for every stored IP address and with or
// without factors.
func TestSessionInfo(t *testing.T) {
	w := harness.NewWorld(t)
	ada := w.LoginAs(t, "ada@example.com")
	for ip, want := range map[string]netip.Addr{"": {}, "unknown": {}, "192.0.2.1": netip.MustParseAddr("192.0.2.1"), "2001:db8::1": netip.MustParseAddr("2001:db8::1")} {
		now := w.Clock.Now()
		s := auth.Session{ID: uuid.NewString(), UserID: ada.User.ID, AAL: store.LevelAAL1, CreatedAt: now, LastActiveAt: now, RotatedAt: now, IdleUntil: now.Add(time.Hour), IP: ip}
		if _, err := w.Store.CreateSession(t.Context(), store.CreateSession{Change: store.Change{Now: now, By: auth.Authority{System: "test"}}, NewSession: store.NewSession{Session: s}}); err != nil {
			t.Fatal(err)
		}
		list, err := w.Sessions(t.Context(), auth.SessionsParams{UserID: ada.User.ID, Current: s.ID})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(list, func(i auth.SessionInfo) bool { return i.ID == s.ID })
		if i < 0 || list[i].IP != want || !list[i].Current || list[i].UserAgent != "" || !list[i].ExpiresAt.Equal(now.Truncate(time.Hour).Add(2*time.Hour)) {
			t.Errorf("%q: %+v", ip, list)
		}
	}
	first := w.LoginAs(t, "bob@example.com")
	list, err := w.Sessions(t.Context(), auth.SessionsParams{UserID: first.User.ID})
	if err != nil || len(list) != 1 || list[0].Current || len(list[0].AMR) != 1 || !list[0].AMR[0].Time().Equal(w.Clock.Now()) {
		t.Errorf("%+v, %v", list, err)
	}
}

// A stored user survives JSON unchanged.
func TestStoredUserRoundTrip(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 789_012_000, time.UTC)
	want := auth.User{
		ID: "1", Email: "Ada@example.com", EmailVerifiedAt: at, Phone: "+4930123456", FullName: "Ada", UserMetadata: map[string]any{"a": "b"},
		AppMetadata: map[string]any{}, Roles: []string{"editor"}, MFAEnabled: true, CreatedAt: at, Revision: 7, CredentialRevision: 3,
		Identities: []auth.Identity{{ID: "2", Provider: "p", Subject: "s", Email: "x@example.com", CreatedAt: at}},
	}
	b, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got auth.User
	if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v\nis not\n%+v", err, got, want)
	}
}
