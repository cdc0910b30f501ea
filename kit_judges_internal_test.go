package auth

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/journal"
	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// drawing is a store that answers draws as it is told.
type drawing struct {
	Store
	take func(draws []store.Draw) (store.Decision, error)
}

func (s *drawing) Take(_ context.Context, draws []store.Draw, _ time.Time) (store.Decision, error) {
	return s.take(draws)
}

// What waits for its proof is what the account does not have yet.
func TestPendingChangesAreOfWhatIsToCome(t *testing.T) {
	at := time.Unix(1767323045, 0)
	link := func(email string) []byte {
		b, err := json.Marshal(linkData{Email: email})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	got := pendingChanges(User{Email: "ada@example.com"}, Held{Pending: []store.HeldToken{
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

// An account is locked by what has nothing left, not by what is almost used up; a limit
// of one try is a limit, and none is none.
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
	list, err := a.locks(t.Context(), u, Held{})
	if err != nil || !slices.Equal(list, []host.Lock{{Limit: "factor", Until: now.Add(time.Minute)}}) {
		t.Errorf("%+v, %v", list, err)
	}
}

// A server that cannot be reached, or says that it is broken, is not taken for one that
// answers.
func TestBrokenServersAreNotReached(t *testing.T) {
	status := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	for code, good := range map[int]bool{200: true, 404: true, 499: true, 500: false, 503: false} {
		status = code
		if err := reach(t.Context(), srv.Client(), srv.URL); (err == nil) != good {
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

// While limits cannot be asked, those are told who have proved their address, and
// nobody can have a stranger written to.
func TestOnlyTheProvedAreToldWithoutLimits(t *testing.T) {
	store := &drawing{take: func([]store.Draw) (store.Decision, error) { return store.Decision{}, errors.New("down") }}
	a := &Auth{
		keys: testKeys(t), store: store, counter: &journal.Counter{}, recorder: &journal.Recorder{},
		cfg: config{now: time.Now, log: slog.New(slog.DiscardHandler), limits: RateLimits{}.withDefaults()},
	}
	for _, proved := range []bool{true, false} {
		o := outbox.Outgoing{Kind: KindPasswordChanged, To: "ada@example.com", Proved: proved}
		if got := a.roomFor(t.Context(), o, User{ID: "ada"}); got != proved {
			t.Errorf("proved %t: sent %t", proved, got)
		}
	}
}
