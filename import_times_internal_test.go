package auth

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/authmount/auth/store"
)

// Each time of somebody who is imported is one that a store can keep, and none but that of
// a ban is to come.
func TestImportedTimesAreJudgedOneByOne(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	members := map[string]func(*ImportUserParams) *time.Time{
		"banned_until":      func(p *ImportUserParams) *time.Time { return &p.BannedUntil },
		"created_at":        func(p *ImportUserParams) *time.Time { return &p.CreatedAt },
		"last_sign_in_at":   func(p *ImportUserParams) *time.Time { return &p.LastSignInAt },
		"email_verified_at": func(p *ImportUserParams) *time.Time { return &p.EmailVerifiedAt },
		"phone_verified_at": func(p *ImportUserParams) *time.Time { return &p.PhoneVerifiedAt },
		"identities":        func(p *ImportUserParams) *time.Time { return &p.Identities[0].CreatedAt },
		"identities ":       func(p *ImportUserParams) *time.Time { return &p.Identities[0].LastSignInAt },
	}
	for name, member := range members {
		field := map[bool]string{true: "identities", false: name}[name == "identities "]
		for at, fine := range map[time.Time]bool{
			{}: true, now: true, now.Add(clockSkew): true, now.Add(clockSkew + time.Microsecond): name == "banned_until",
			time.Date(1, 1, 1, 0, 0, 0, 1e9-1, time.UTC): true, time.Date(0, 12, 31, 23, 59, 59, 0, time.UTC): false,
			time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC): name == "banned_until", time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC): false,
		} {
			p := ImportUserParams{Identities: []Identity{{}}}
			*member(&p) = at
			var u User
			var e *Error
			err := importTimes(&p, &u, now)
			if (err == nil) != fine || err != nil && (!errors.As(err, &e) || e.Code != CodeValidationFailed || e.Fields[field] == "") {
				t.Errorf("%s at %s: %v", name, at, err)
			}
			if got := *member(&p); err == nil && !got.Equal(at.Truncate(time.Microsecond)) {
				t.Errorf("%s at %s is taken for %s", name, at, got)
			}
		}
	}
	given := []Identity{{CreatedAt: now.Add(1)}}
	var u User
	if err := importTimes(&ImportUserParams{Identities: given}, &u, now); err != nil || !given[0].CreatedAt.Equal(now.Add(1)) {
		t.Errorf("the caller's own are changed: %v, %v", given, err)
	}
	if !u.CreatedAt.Equal(now) || !u.LastSignInAt.IsZero() || !u.BannedUntil.IsZero() {
		t.Errorf("nothing said: %+v", u)
	}
	// Who was anonymised is told by their ban; somebody else's of that very instant is
	// another one.
	if err := importTimes(&ImportUserParams{BannedUntil: store.AnonymizedUntil()}, &u, now); err != nil || !u.BannedUntil.Equal(time.Date(9998, 12, 30, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("%v, %v", u.BannedUntil, err)
	}
}

// A second factor that is imported is whole, and sealed for its user alone.
func TestImportedFactorIsWhole(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	keys := testKeys(t)
	a := &Auth{keys: keys, cfg: config{now: time.Now}, factors: struct{ store.FactorStore }{}}
	f, err := a.importTOTP("ada", "jbsw y3dp ehpk 3pxp====", now)
	if err != nil {
		t.Fatal(err)
	}
	sealed := f.Secret
	if want := (Factor{ID: f.ID, UserID: "ada", Kind: store.FactorTOTP, Secret: sealed, CreatedAt: now}); f.ID == "" || !isID(f.ID) || !reflect.DeepEqual(f, want) {
		t.Errorf("%+v, want %+v", f, want)
	}
	if plain, _, err := keys.Open(sealed, []byte("ada")); err != nil || string(plain) != "Hello!\xde\xad\xbe\xef" {
		t.Errorf("%q, %v", plain, err)
	}
	if _, _, err := keys.Open(sealed, []byte("eve")); err == nil {
		t.Error("it opens for another user")
	}
	for _, wrong := range []string{"jbswy3dpehpk3px\n", "jbswy3dpehpk3px1", "\rjbswy3dpehpk3pxp"} {
		var e *Error
		if _, err := a.importTOTP("ada", wrong, now); !errors.As(err, &e) || e.Fields["totp_secret"] == "" || e.Unwrap() != nil {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if _, err := (&Auth{keys: keys}).importTOTP("ada", "jbswy3dpehpk3pxp", now); err == nil {
		t.Error("a store without second factors takes one")
	}
}
