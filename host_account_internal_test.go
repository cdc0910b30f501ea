package auth

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/journal"
	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// drawing is a store that decides draws with a function.
type drawing struct {
	Store
	take func(draws []store.Draw) (store.Decision, error)
}

func (s *drawing) Take(_ context.Context, draws []store.Draw, _ time.Time) (store.Decision, error) {
	return s.take(draws)
}

// Pending changes are values that the account does not have yet.
func TestPendingChangesAreOfWhatIsToCome(t *testing.T) {
	at := time.Unix(1767323045, 0)
	link := func(email string) []byte {
		b, err := json.Marshal(linkData{Email: email})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	got := pendingChanges(User{Email: "ada@example.com"}, UserRecords{Pending: []store.TokenRecord{
		{Purpose: store.PurposeVerifyEmail, Data: link("Ada@Example.com"), ExpiresAt: at},
		{Purpose: store.PurposeVerifyEmail, Data: link(""), ExpiresAt: at},
		{Purpose: store.PurposeVerifyEmail, Data: []byte("no link"), ExpiresAt: at},
		{Purpose: store.PurposeReset, Data: link("bob@example.com"), ExpiresAt: at},
		{Purpose: store.PurposeVerifyEmail, Data: link("countess@example.com"), ExpiresAt: at},
		{Purpose: store.PurposePhoneChange, Subject: "user session +4930123456", ExpiresAt: at.Add(1)},
	}})
	want := []host.Pending{{Field: "email", Value: "countess@example.com", ExpiresAt: at}, {Field: "phone", Value: "+4930123456", ExpiresAt: at.Add(1)}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}

// An account is locked by exhausted limits, not by nearly exhausted ones. A burst of one
// is a limit; a disabled limit is not.
func TestLocksAreOfUsedUpLimits(t *testing.T) {
	one := Rate{Burst: 1, Per: time.Hour}
	store := &drawing{take: func(draws []store.Draw) (store.Decision, error) {
		d := store.Decision{Remaining: make([]int, len(draws)), RetryAfter: time.Minute}
		for i := range d.Remaining {
			d.Remaining[i] = min(i, 1)
		}
		return d, nil
	}}
	now := time.Unix(1767323045, 0).UTC()
	a := &Auth{keys: testKeys(t), store: store, cfg: config{now: func() time.Time { return now }, limits: RateLimits{FactorPerUser: one, SignInsPerAccount: one}}}
	u := User{ID: "ada"}
	var limits []string
	for _, d := range a.lockDraws(u, nil) {
		if limits = append(limits, d.limit); d.Rate != one {
			t.Errorf("%+v", d)
		}
	}
	if !slices.Equal(limits, []string{"factor", "password"}) {
		t.Errorf("limits %v", limits)
	}
	list, err := a.locks(t.Context(), u, UserRecords{})
	if err != nil || !slices.Equal(list, []host.Lock{{Limit: "factor", Until: now.Add(time.Minute)}}) {
		t.Errorf("%+v, %v", list, err)
	}
}

// A server that cannot be reached or reports an error is not reachable.
func TestBrokenServersAreNotReached(t *testing.T) {
	status := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	for code, healthy := range map[int]bool{200: true, 404: true, 499: true, 500: false, 503: false} {
		status = code
		if err := reach(t.Context(), srv.Client(), srv.URL); (err == nil) != healthy {
			t.Errorf("%d: %v", code, err)
		}
	}
	srv.Close()
	for _, url := range []string{srv.URL, "http://[::1"} {
		if reach(t.Context(), srv.Client(), url) == nil {
			t.Errorf("%s is reached", url)
		}
	}
}

// While the limiter fails, messages are sent only to verified recipients, so that an
// attacker cannot send messages to strangers.
func TestOnlyTheProvedAreToldWithoutLimits(t *testing.T) {
	store := &drawing{take: func([]store.Draw) (store.Decision, error) { return store.Decision{}, errors.New("down") }}
	a := &Auth{
		keys: testKeys(t), store: store, counter: &journal.Counter{}, recorder: &journal.Recorder{},
		cfg: config{now: time.Now, log: slog.New(slog.DiscardHandler), limits: RateLimits{}.withDefaults()},
	}
	for _, verified := range []bool{true, false} {
		o := outbox.Outgoing{Kind: KindPasswordChanged, To: "ada@example.com", Proved: verified}
		if got := a.takeNotice(t.Context(), o, User{ID: "ada"}); got != verified {
			t.Errorf("proved %t: sent %t", verified, got)
		}
	}
}

// The times of an imported user are ones that a store accepts. Only the end of a ban may
// be in the future.
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
	// A ban until this instant marks anonymised users, so that an imported ban is moved to
	// another one.
	if err := importTimes(&ImportUserParams{BannedUntil: store.AnonymizedUntil()}, &u, now); err != nil || !u.BannedUntil.Equal(time.Date(9998, 12, 30, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("%v, %v", u.BannedUntil, err)
	}
}

// An imported second factor is complete and encrypted for its user.
func TestImportedFactorIsWhole(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	keys := testKeys(t)
	a := &Auth{keys: keys, cfg: config{now: time.Now}, factors: struct{ store.FactorStore }{}}
	f, err := a.importTOTP("ada", "jbsw y3dp ehpk 3pxp====", now)
	if err != nil {
		t.Fatal(err)
	}
	sealed := f.Secret
	if want := (Factor{ID: f.ID, UserID: "ada", Kind: store.FactorTOTP, Required: true, Secret: sealed, CreatedAt: now}); f.ID == "" || !isID(f.ID) || !reflect.DeepEqual(f, want) {
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
