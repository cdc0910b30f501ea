package signin_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// failingStore returns every call with an error while it is down.
type failingStore struct {
	auth.Store
	down bool
}

func (f *failingStore) Credentials(ctx context.Context, k store.UserKey) (store.Credentials, error) {
	if f.down {
		return store.Credentials{}, harness.ErrDown
	}
	return f.Store.Credentials(ctx, k)
}

func (f *failingStore) AdvanceSession(ctx context.Context, a store.Advance) (auth.Session, auth.User, error) {
	if f.down {
		return auth.Session{}, auth.User{}, harness.ErrDown
	}
	return f.Store.AdvanceSession(ctx, a)
}

func (f *failingStore) Ping(ctx context.Context) error {
	if f.down {
		return harness.ErrDown
	}
	return f.Store.Ping(ctx)
}

// A refresh token that was replaced long ago is a copy. It may end its session, as its use
// does, but neither other sessions nor the trust in the user's devices.
func TestOldRefreshTokenEndsItsSessionOnly(t *testing.T) {
	for _, scope := range []string{"local", "others", "global"} {
		for age := range 4 {
			w := harness.NewWorld(t)
			s, other := w.Member("ada@example.com"), w.PostLogin("ada@example.com", harness.GoodPassword).Session()
			tokens := []string{s.RefreshToken}
			for range age {
				w.Clock.Advance(time.Minute)
				s = w.Do("POST", "/refresh", map[string]any{"refresh_token": s.RefreshToken}).Session()
				tokens = append(tokens, s.RefreshToken)
			}
			w.Do("POST", "/logout?scope="+scope, map[string]any{"refresh_token": tokens[0]}).Want(204)
			mine, others := w.Alive(s.AccessToken), w.Alive(other.AccessToken)
			switch old := age > 1; { // the last but one is repeated by clients that never had the answer
			case (old || scope == "local") && (mine || !others),
				!old && scope == "others" && (!mine || others),
				!old && scope == "global" && (mine || others):
				t.Errorf("%s, replaced %d times: its session lives: %v, the other: %v", scope, age, mine, others)
			}
		}
	}
}

// party is one of two users of a session, with a place and program of its own.
type party struct {
	w     *harness.World
	ctx   context.Context
	token string
}

func newParty(w *harness.World, token, ip, agent string) *party {
	return &party{w, auth.ContextWithClient(w.T.Context(), auth.Client{IP: netip.MustParseAddr(ip), UserAgent: agent}), token}
}

// refreshes exchanges the party's token and stores the new one.
func (p *party) refreshes() error {
	tokens, err := p.w.Refresh(p.ctx, auth.RefreshParams{RefreshToken: p.token})
	if err == nil {
		p.token = tokens.RefreshToken
	}
	return err
}

// A laptop that fell asleep before the answer arrived stays signed in.
func TestLateRefresh(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp("ada@example.com")
	one, other := newParty(w, s.RefreshToken, "192.0.2.1", "Laptop"), newParty(w, s.RefreshToken, "198.51.100.9", "Phone")
	if err := one.refreshes(); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(31 * time.Second)
	w.Fired()
	if err := other.refreshes(); err != nil {
		t.Fatal(err)
	}
	if one.token != other.token {
		t.Error("another token than the current one")
	}
	w.Mu.Lock()
	i := slices.IndexFunc(w.Events, func(e auth.Event) bool { return e.Type == auth.EventReplayed })
	if i < 0 {
		t.Fatal("nobody is told")
	}
	e := w.Events[i]
	w.Mu.Unlock()
	if e.UserID != s.User.ID || e.SessionID == "" || e.Client.IP.String() != "198.51.100.9" || e.Client.UserAgent != "Phone" ||
		e.Other == nil || e.Other.IP.String() != "192.0.2.1" || e.Other.UserAgent != "Laptop" {
		t.Errorf("event %+v, other %+v", e, e.Other)
	}
	w.WantEvents(auth.EventReplayed, auth.EventRefreshed)
	if kept, ok := store.Capability[store.Journal](w.Store); ok {
		list, err := kept.Events(t.Context(), store.EventQuery{UserID: s.User.ID})
		if err != nil || !slices.ContainsFunc(list, func(k auth.Event) bool {
			return k.ID == e.ID && k.Other != nil && *k.Other == *e.Other
		}) {
			t.Errorf("not kept: %+v, %v", list, err)
		}
	}
	// Once more within a day it is reuse, however much happened in between.
	for range 2 {
		if err := one.refreshes(); err != nil {
			t.Fatal(err)
		}
	}
	w.Clock.Advance(23 * time.Hour)
	parent := one.token
	if err := one.refreshes(); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(31 * time.Second)
	w.PostRefresh(parent).Want(400, auth.CodeRefreshTokenReused)
	w.PostRefresh(one.token).Want(400, auth.CodeSessionEnded)
}

// Two parties who share a session are detected at the next round, however slowly they
// alternate and in any order.
func TestTwoWhoShareASessionAreFound(t *testing.T) {
	for _, pause := range []time.Duration{31 * time.Second, time.Hour, 23 * time.Hour, 25 * time.Hour, 7 * 24 * time.Hour} {
		for _, lead := range []int{1, 2} { // the refreshes of one party before the other's
			t.Run(pause.String(), func(t *testing.T) {
				w := harness.NewWorld(t)
				s := w.PostSignUp("ada@example.com")
				parties := []*party{newParty(w, s.RefreshToken, "192.0.2.1", "owner"), newParty(w, s.RefreshToken, "198.51.100.9", "thief")}
				w.Fired()
				round := func() error {
					for i, p := range parties {
						for range []int{lead, 1}[i] {
							if err := p.refreshes(); err != nil {
								return err
							}
						}
						w.Clock.Advance(pause)
					}
					return nil
				}
				first := round()
				if lead == 1 && first != nil {
					t.Fatalf("first round: %v", first)
				}
				for range 2 {
					if first == nil {
						first = round()
					}
				}
				if first == nil {
					t.Error("not found")
				}
				if n := countOf(w.Fired(), auth.EventReused); n != 1 {
					t.Errorf("%d times reused", n)
				}
				for _, p := range parties {
					if p.refreshes() == nil {
						t.Error("still signed in")
					}
				}
			})
		}
	}
}

func countOf(list []auth.EventType, want auth.EventType) (n int) {
	for _, e := range list {
		if e == want {
			n++
		}
	}
	return n
}

// Without a grace period, no late refresh is accepted.
func TestNoGraceNothingLate(t *testing.T) {
	w := harness.NewWorld(t, auth.WithSessions(auth.SessionOptions{RefreshGrace: -1}))
	s := w.PostSignUp("ada@example.com")
	w.PostRefresh(s.RefreshToken).Want(200)
	w.Clock.Advance(time.Hour)
	w.PostRefresh(s.RefreshToken).Want(400, auth.CodeRefreshTokenReused)
}

// Parallel refreshes of a browser that wakes up get one answer and cause one event.
func TestTwoLateRefreshesAtOnce(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp("ada@example.com")
	w.PostRefresh(s.RefreshToken).Want(200) // the answer is lost
	w.Clock.Advance(time.Hour)
	w.Fired()
	first := w.PostRefresh(s.RefreshToken).Want(200).Session()
	w.Clock.Advance(29 * time.Second)
	second := w.PostRefresh(s.RefreshToken).Want(200).Session()
	if first.RefreshToken != second.RefreshToken {
		t.Error("another token than the current one")
	}
	w.WantEvents(auth.EventReplayed, auth.EventRefreshed, auth.EventRefreshed)
	w.PostRefresh(first.RefreshToken).Want(200)
	w.Clock.Advance(30 * time.Second)
	w.PostRefresh(first.RefreshToken).Want(400, auth.CodeRefreshTokenReused)
}

// client is a party with a device of its own.
func client(w *harness.World, token, ip, device string) *party {
	return &party{w, auth.ContextWithClient(w.T.Context(), auth.Client{IP: netip.MustParseAddr(ip), UserAgent: "Firefox", Device: device}), token}
}

// phoneOf signs ada up on a device and returns the two holders of its refresh token: the
// owner, and a thief with another device, network or neither.
func phoneOf(w *harness.World, thiefIP, thiefDevice string) (owner, thief *party, s harness.Session) {
	s = w.PostSignUp("ada@example.com")
	owner = client(w, s.RefreshToken, "192.0.2.1", "phone")
	if err := owner.refreshes(); err != nil { // names the device
		w.T.Fatal(err)
	}
	return owner, client(w, owner.token, thiefIP, thiefDevice), s
}

// A thief who presents each refresh token right after its owner, within the grace period,
// is found in the second round on another device, and in the fourth on another network.
func TestCopiedRefreshTokenIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		ip, device string
		first      bool // the thief refreshes before the owner
		late, ends int  // the rounds in which the event comes and the session ends
	}{
		"another device":             {"192.0.2.1", "other", false, 1, 2},
		"no device":                  {"192.0.2.1", "", false, 1, 2},
		"another device, first":      {"192.0.2.1", "other", true, 1, 2},
		"another network":            {"198.51.100.9", "phone", false, 3, 4},
		"another network, first":     {"198.51.100.9", "phone", true, 3, 4},
		"another device and network": {"198.51.100.9", "other", false, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t)
			owner, thief, s := phoneOf(w, c.ip, c.device)
			order := []*party{owner, thief}
			if c.first {
				order = []*party{thief, owner}
			}
			w.Fired()
			for round := 1; round <= c.ends; round++ {
				w.Clock.Advance(15 * time.Minute)
				if err := order[0].refreshes(); err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				w.Clock.Advance(5 * time.Second)
				err := order[1].refreshes()
				fired := w.Fired()
				if late := countOf(fired, auth.EventReplayed) == 1; late != (round == c.late) {
					t.Errorf("round %d: events %v", round, fired)
				}
				if ended := errors.Is(err, auth.CodeRefreshTokenReused); ended != (round == c.ends) {
					t.Errorf("round %d: %v", round, err)
				}
			}
			if owner.refreshes() == nil || thief.refreshes() == nil || len(w.Sent(s.User.Email)) > 1 {
				t.Error("the session lives, or a message was sent")
			}
		})
	}
}

// Tabs refresh together, and a phone changes networks in the middle of a refresh every day:
// the session lives on without an event.
func TestEarlyRepetitionsOfTheOwner(t *testing.T) {
	w := harness.NewWorld(t)
	owner, away, _ := phoneOf(w, "198.51.100.9", "phone")
	w.Fired()
	for range 10 {
		for range 3 {
			w.Clock.Advance(15 * time.Minute)
			var tabs sync.WaitGroup
			var next [6]string
			for i := range next {
				tabs.Go(func() {
					tab := *owner
					if err := tab.refreshes(); err != nil {
						t.Error(err)
					}
					next[i] = tab.token
				})
			}
			tabs.Wait()
			for _, token := range next {
				if token != next[0] {
					t.Error("tabs got different tokens")
				}
			}
			owner.token = next[0]
		}
		w.Clock.Advance(8 * time.Hour)
		away.token = owner.token
		if owner.refreshes() != nil || away.refreshes() != nil || owner.token != away.token {
			t.Error("the phone lost its session on the way")
		}
	}
	if fired := w.Fired(); countOf(fired, auth.EventReplayed)+countOf(fired, auth.EventReused) > 0 {
		t.Errorf("events %v", fired)
	}
}

// The list of sessions, which a thief can read, does not show when the owner refreshes.
func TestSessionListHidesRefreshes(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp("ada@example.com")
	w.Clock.Advance(time.Hour)
	list := func() string {
		return string(w.Do("GET", "/sessions", nil, harness.Bearer(s.AccessToken)).Want(200).Body)
	}
	s = w.PostRefresh(s.RefreshToken).Session()
	before := list()
	for range 3 {
		w.Clock.Advance(9 * time.Minute)
		s = w.PostRefresh(s.RefreshToken).Session()
		if got := list(); got != before {
			t.Errorf("a refresh shows:\n%s\n%s", before, got)
		}
	}
}
