package auth_test

import (
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// party is somebody who refreshes, from a place and a program of their own.
type party struct {
	w     *world
	ctx   context.Context
	token string
}

func (w *world) party(token, ip, agent string) *party {
	return &party{w, auth.ContextWithClient(w.t.Context(), auth.Client{IP: netip.MustParseAddr(ip), UserAgent: agent}), token}
}

// refreshes trades the party's token, and keeps the new one.
func (p *party) refreshes() error {
	tokens, err := p.w.Refresh(p.ctx, auth.RefreshParams{RefreshToken: p.token})
	if err == nil {
		p.token = tokens.RefreshToken
	}
	return err
}

// A laptop that fell asleep before the answer came goes on.
func TestLateRefresh(t *testing.T) {
	w := newWorld(t)
	s := w.signUp("ada@example.com")
	one, other := w.party(s.RefreshToken, "192.0.2.1", "Laptop"), w.party(s.RefreshToken, "198.51.100.9", "Phone")
	if err := one.refreshes(); err != nil {
		t.Fatal(err)
	}
	w.Clock.Advance(31 * time.Second)
	w.fired()
	if err := other.refreshes(); err != nil {
		t.Fatal(err)
	}
	if one.token != other.token {
		t.Error("another token than the current one")
	}
	w.mu.Lock()
	i := slices.IndexFunc(w.events, func(e auth.Event) bool { return e.Type == auth.EventReplayed })
	if i < 0 {
		t.Fatal("nobody is told")
	}
	e := w.events[i]
	w.mu.Unlock()
	if e.UserID != s.User.ID || e.SessionID == "" || e.Client.IP.String() != "198.51.100.9" || e.Client.UserAgent != "Phone" ||
		e.Other == nil || e.Other.IP.String() != "192.0.2.1" || e.Other.UserAgent != "Laptop" {
		t.Errorf("event %+v, other %+v", e, e.Other)
	}
	w.wantEvents(auth.EventReplayed, auth.EventRefreshed)
	if kept, ok := store.Capability[store.EventStore](w.Store); ok {
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
	w.refresh(parent).want(400, auth.CodeRefreshTokenReused)
	w.refresh(one.token).want(400, auth.CodeSessionEnded)
}

// Two parties who share a session are found at the next round, however slowly
// they alternate and whoever comes first.
func TestTwoWhoShareASessionAreFound(t *testing.T) {
	for _, pause := range []time.Duration{31 * time.Second, time.Hour, 23 * time.Hour, 25 * time.Hour, 7 * 24 * time.Hour} {
		for _, lead := range []int{1, 2} { // how often the one refreshes before the other comes
			t.Run(pause.String(), func(t *testing.T) {
				w := newWorld(t)
				s := w.signUp("ada@example.com")
				parties := []*party{w.party(s.RefreshToken, "192.0.2.1", "owner"), w.party(s.RefreshToken, "198.51.100.9", "thief")}
				w.fired()
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
				if n := countOf(w.fired(), auth.EventReused); n != 1 {
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

// Without grace nothing comes late.
func TestNoGraceNothingLate(t *testing.T) {
	w := newWorld(t, auth.WithSessions(auth.SessionOptions{RefreshGrace: -1}))
	s := w.signUp("ada@example.com")
	w.refresh(s.RefreshToken).want(200)
	w.Clock.Advance(time.Hour)
	w.refresh(s.RefreshToken).want(400, auth.CodeRefreshTokenReused)
}

// What a browser sends at once when it wakes up has one answer, and somebody is
// told once.
func TestTwoLateRefreshesAtOnce(t *testing.T) {
	w := newWorld(t)
	s := w.signUp("ada@example.com")
	w.refresh(s.RefreshToken).want(200) // the answer is lost
	w.Clock.Advance(time.Hour)
	w.fired()
	first := w.refresh(s.RefreshToken).want(200).session()
	w.Clock.Advance(29 * time.Second)
	second := w.refresh(s.RefreshToken).want(200).session()
	if first.RefreshToken != second.RefreshToken {
		t.Error("another token than the current one")
	}
	w.wantEvents(auth.EventReplayed, auth.EventRefreshed, auth.EventRefreshed)
	w.refresh(first.RefreshToken).want(200)
	w.Clock.Advance(30 * time.Second)
	w.refresh(first.RefreshToken).want(400, auth.CodeRefreshTokenReused)
}
