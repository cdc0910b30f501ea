package auth

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/authmount/auth/store"
)

// parted is a store of one account that an export is read from, part by part; any of its
// calls may fail.
type parted struct {
	Store
	store.EventStore
	fails string
	asked []string
}

func (s *parted) ask(what string) error {
	if s.asked = append(s.asked, what); s.fails == what {
		return errors.New("away")
	}
	return nil
}

func (s *parted) Credentials(context.Context, store.UserKey) (store.Credentials, error) {
	return store.Credentials{User: User{ID: "ada"}, PasswordHash: "hash"}, s.ask("credentials")
}

func (s *parted) Held(_ context.Context, userID string, now time.Time) (Held, error) {
	return Held{Devices: []store.HeldDevice{{Device: "of " + userID, FirstSeenAt: now}}}, s.ask("held")
}

func (s *parted) Events(_ context.Context, q store.EventQuery) ([]Event, error) {
	return []Event{{ID: "e", UserID: q.UserID}}[:min(1, q.Limit)], s.ask("events")
}

// partedAtOnce is one that reads an account with what it holds.
type partedAtOnce struct{ *parted }

func (s *partedAtOnce) Account(_ context.Context, _ store.UserKey, now time.Time) (store.Credentials, Held, error) {
	return store.Credentials{User: User{ID: "at once"}}, Held{Devices: []store.HeldDevice{{FirstSeenAt: now}}}, s.ask("account")
}

// partedFactors are its second factors.
type partedFactors struct {
	store.FactorStore
	*parted
}

func (s partedFactors) Factors(_ context.Context, userID string) (store.Factors, error) {
	at := time.Unix(7, 0)
	return store.Factors{RecoveryLeft: 3, List: []Factor{
		{ID: "f", UserID: userID, Kind: store.FactorTOTP, Enabled: true, Secret: []byte("secret"), LastStep: 7, CreatedAt: at}, {ID: "g", UserID: userID, Secret: []byte("other"), LastStep: 8},
	}}, s.ask("factors")
}

// An account comes with what the store holds besides, at once or one after the other,
// and not without any of it that cannot be read.
func TestAccountsComeWithWhatIsHeld(t *testing.T) {
	now := time.Unix(1767323045, 0).UTC()
	cfg := config{now: func() time.Time { return now }}
	for name, c := range map[string]struct {
		fails  string
		atOnce bool
		asked  []string
	}{
		"one after the other":    {"", false, []string{"credentials", "held"}},
		"without credentials":    {"credentials", false, []string{"credentials"}},
		"without what is held":   {"held", false, []string{"credentials", "held"}},
		"at once":                {"", true, []string{"account"}},
		"at once, but it is not": {"account", true, []string{"account"}},
	} {
		s := &parted{fails: c.fails}
		a := &Auth{store: s, cfg: cfg}
		who, device := "ada", "of ada"
		if c.atOnce {
			a.store, who, device = &partedAtOnce{s}, "at once", ""
		}
		got, held, err := a.account(t.Context(), store.ByID("ada"))
		switch {
		case !slices.Equal(s.asked, c.asked) || (err != nil) != (c.fails != ""):
			t.Errorf("%s: asked for %v, %v", name, s.asked, err)
		case err == nil && (got.User.ID != who || !reflect.DeepEqual(held, Held{Devices: []store.HeldDevice{{Device: device, FirstSeenAt: now}}})):
			t.Errorf("%s: %+v, %+v", name, got, held)
		}
	}
	bare := &Auth{store: struct{ Store }{}, cfg: cfg}
	if h, err := bare.held(t.Context(), "ada"); err != nil || !reflect.DeepEqual(h, Held{}) {
		t.Errorf("a store that cannot tell: %+v, %v", h, err)
	}
}

// An export has each part that there is, of second factors nothing that one could use,
// and is none where a part cannot be read.
func TestExportsHaveEveryPart(t *testing.T) {
	now := time.Unix(1767323045, 0).UTC()
	for _, fails := range []string{"", "factors", "held", "events"} {
		s := &parted{fails: fails}
		a := &Auth{store: s, factors: partedFactors{parted: s}, cfg: config{now: func() time.Time { return now }}}
		e := &Export{User: User{ID: "ada"}}
		if err := a.exportMore(t.Context(), e); (err != nil) != (fails != "") {
			t.Errorf("without %q: %v", fails, err)
		}
		if e.events = nil; fails != "" {
			continue
		}
		want := &Export{
			User: User{ID: "ada"}, CodesLeft: 3, Held: Held{Devices: []store.HeldDevice{{Device: "of ada", FirstSeenAt: now}}}, first: []Event{{ID: "e", UserID: "ada"}},
			Factors: []Factor{{ID: "f", UserID: "ada", Kind: store.FactorTOTP, Enabled: true, CreatedAt: time.Unix(7, 0)}, {ID: "g", UserID: "ada"}},
		}
		if !reflect.DeepEqual(e, want) {
			t.Errorf("%+v\nwant %+v", e, want)
		}
	}
	bare := &Export{User: User{ID: "ada"}}
	if err := (&Auth{store: struct{ Store }{}, cfg: config{now: time.Now}}).exportMore(t.Context(), bare); err != nil || !reflect.DeepEqual(bare, &Export{User: User{ID: "ada"}}) {
		t.Errorf("of a store that keeps little: %+v, %v", bare, err)
	}
}
