package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)

const (
	userID    = "01a1fb4c-2b13-7a71-806e-d67843451400"
	sessionID = "01a1fb4c-2b13-7a71-806e-d67843451401"
	endedID   = "01a1fb4c-2b13-7a71-806e-d67843451402"
)

// system is a change at an instant by the system.
func system(at time.Time) store.Change {
	return store.Change{Now: at, By: store.Authority{System: "test"}}
}

func hash(b byte) []byte {
	h := make([]byte, 32)
	h[0] = b
	return h
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%v, want %v", err, want)
	}
}

// withUser returns a store with one user.
func withUser(t testing.TB, u store.User) *memstore.Store {
	t.Helper()
	s := memstore.New()
	u.ID = userID
	_, err := s.CreateUser(t.Context(), store.CreateUser{Change: system(now), NewUser: store.NewUser{User: u, PasswordHash: "hash"}})
	ok(t, err)
	return s
}

func newSession(id string) store.Session {
	return store.Session{ID: id, UserID: userID, AAL: store.LevelAAL1, CreatedAt: now, RotatedAt: now, IdleUntil: now.Add(time.Hour)}
}

func event(on store.Outcome, n int, at time.Time) store.OutcomeEvent {
	return store.OutcomeEvent{On: on, Event: store.Event{ID: fmt.Sprintf("%036d", n), Type: store.EventUserUpdated, At: at}}
}

// The newest events are kept, in any order of arrival.
func TestEventsAreBounded(t *testing.T) {
	ctx, s := t.Context(), withUser(t, store.User{})
	record := func(e store.OutcomeEvent) {
		c := system(now)
		c.Events = []store.OutcomeEvent{e}
		_, err := s.UpdateUser(ctx, store.UpdateUser{Change: c, UserID: userID})
		ok(t, err)
	}
	for i := range 10_000 {
		record(event(store.OutcomeDone, i, now.Add(time.Duration(i)*time.Microsecond)))
	}
	record(event(store.OutcomeDone, 10_001, now.Add(-time.Second))) // older than all the others
	all, err := s.Events(ctx, store.EventQuery{Limit: 20_000})
	ok(t, err)
	if len(all) != 10_000 || !all[len(all)-1].At.Equal(now) {
		t.Errorf("%d events, the oldest of %v", len(all), all[len(all)-1].At)
	}
	record(event(store.OutcomeDone, 10_002, now.Add(time.Hour)))
	all, err = s.Events(ctx, store.EventQuery{Limit: 20_000})
	ok(t, err)
	if len(all) != 10_000 || !all[len(all)-1].At.Equal(now.Add(time.Microsecond)) || !all[0].At.Equal(now.Add(time.Hour)) {
		t.Errorf("%d events, from %v to %v", len(all), all[0].At, all[len(all)-1].At)
	}
}

// Sweep counts the expired entries of this store's own capabilities.
func TestSweepOfCapabilities(t *testing.T) {
	ctx, s := t.Context(), withUser(t, store.User{})
	c := system(now)
	c.Idempotency = &store.Idempotency{Actor: "a", Route: "r", Key: "k", ExpiresAt: now.Add(time.Minute)}
	c.Events = []store.OutcomeEvent{event(store.OutcomeDone, 1, now)}
	message := func(n byte, m store.SealedMessage) store.SealedMessage {
		m.ID = string(n)
		m.CreatedAt, m.NextAt, m.ExpiresAt = now, now, now.Add(48*time.Hour)
		return m
	}
	expiring := message('1', store.SealedMessage{})
	expiring.ExpiresAt = now.Add(time.Minute)
	c.Messages = []store.SealedMessage{
		expiring, message('2', store.SealedMessage{Token: store.TokenRef{Purpose: store.PurposeReset, Hash: hash(1)}}), message('3', store.SealedMessage{}),
	}
	ok(t, s.PutToken(ctx, store.PutToken{Change: c, Token: store.Token{Purpose: store.PurposeReset, Hash: hash(1), ExpiresAt: now.Add(time.Hour)}}))
	sweep := func(at time.Time, want int) {
		t.Helper()
		n, err := s.Sweep(ctx, at, 100)
		ok(t, err)
		if n != want {
			t.Errorf("after %v: swept %d, want %d", at.Sub(now), n, want)
		}
	}
	sweep(now, 0)
	sweep(now.Add(time.Minute), 2)         // the message that expired and the idempotency record
	sweep(now.Add(time.Hour), 2)           // the token and the message that waited for it
	sweep(now.Add(90*24*time.Hour), 4)     // the last message, and the entries of all three
	sweep(now.Add(1000*24*time.Hour+1), 0) // nothing is left
}

// A cancelled context stops every method before its effect.
func TestCancelled(t *testing.T) {
	s := withUser(t, store.User{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range map[string]error{
		"delete": s.DeleteUser(ctx, store.DeleteUser{Change: system(now), UserID: userID}),
		"put":    s.PutToken(ctx, store.PutToken{Change: system(now), Token: store.Token{Purpose: store.PurposeReset, Hash: hash(1), ExpiresAt: now.Add(1)}}),
		"finish": s.FinishMessage(ctx, store.FinishMessage{ID: "1"}),
		"ping":   s.Ping(ctx),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := s.User(t.Context(), store.ByID(userID))
	ok(t, err)
	_, err = s.PeekToken(t.Context(), store.PurposeReset, hash(1), now)
	is(t, err, store.ErrNotFound)
}

// Times come back in UTC and to the microsecond, from any form.
func TestTimesAreUTC(t *testing.T) {
	ctx, at := t.Context(), now.Add(7).In(time.FixedZone("east", 3600))
	want := store.User{
		ID: userID, Email: "a@example.com", EmailVerifiedAt: now, CreatedAt: now, UpdatedAt: now, LastSignInAt: now, BannedUntil: now,
		Roles: []string{}, Revision: 1, CredentialRevision: 1, Identities: []store.Identity{{ID: "1", Provider: "p", CreatedAt: now, Origin: store.Origin{Sequence: 3}}},
		Sequence: 3, PasswordSequence: 1, EmailSequence: 1, EmailVerifiedSequence: 1,
	}
	s := withUser(t, store.User{Email: want.Email, EmailVerifiedAt: at, CreatedAt: at, UpdatedAt: at})
	first := newSession(sessionID)
	first.CreatedAt, first.ExpiresAt = at, at.Add(24*time.Hour)
	_, err := s.CreateSession(ctx, store.CreateSession{Change: system(at), NewSession: store.NewSession{Session: first}})
	ok(t, err)
	got, err := s.UpdateUser(ctx, store.UpdateUser{Change: system(at), UserID: userID, Patch: store.UserPatch{
		BannedUntil: &at, Link: &store.Identity{ID: "1", Provider: "p", CreatedAt: at}, Roles: &[]string{},
	}})
	ok(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	sess, _, err := s.AdvanceSession(ctx, store.Advance{Change: system(at), SessionID: sessionID, IdleUntil: at.Add(time.Hour)})
	ok(t, err)
	if sess.CreatedAt != now || sess.RotatedAt != now || sess.IdleUntil != now.Add(time.Hour) || sess.ExpiresAt != now.Add(24*time.Hour) {
		t.Errorf("%+v", sess)
	}
}

func BenchmarkAdvanceSession(b *testing.B) {
	ctx, s := b.Context(), withUser(b, store.User{})
	_, err := s.CreateSession(ctx, store.CreateSession{Change: system(now), NewSession: store.NewSession{Session: newSession(sessionID)}})
	ok(b, err)
	b.ReportAllocs()
	counter := uint32(0)
	for b.Loop() {
		a := store.Advance{Change: store.Change{Now: now, By: store.Authority{Proof: true}}, SessionID: sessionID, Counter: counter, IdleUntil: now.Add(time.Hour)}
		if _, _, err := s.AdvanceSession(ctx, a); err != nil {
			b.Fatal(err)
		}
		counter++
	}
}
