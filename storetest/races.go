package storetest

import (
	"errors"
	"fmt"
	"sync"

	"github.com/authmount/auth/internal/difference"
	"github.com/authmount/auth/store"
)

// races checks, at every method, that no change happens under an authority that ended
// before.
func races(has *bench) checks {
	return merge(atEveryMethod(has, neverAfterRevocation), checks{
		"no change lands after its session was revoked": func(b *bench) {
			u, actor := b.user(""), b.user("")
			for round := range 100 {
				b.revokedMeanwhile(actor, func(c store.Change) error {
					_, err := b.UpdateUser(b.ctx(), store.UpdateUser{Change: c, UserID: u.ID, Patch: store.UserPatch{FullName: ptr(fmt.Sprint(round))}})
					return err
				}, func() []string {
					got, err := b.User(b.ctx(), store.ByID(u.ID))
					return []string{fmt.Sprintf("%+v %v", plain(got), err)}
				})
			}
		},
		"no change lands after its user was banned": func(b *bench) {
			u := b.user("")
			for range 30 {
				actor := b.user("")
				s := b.session(actor.ID)
				b.meanwhile(func() error {
					_, err := b.update(actor.ID, store.UserPatch{BannedUntil: ptr(now.Add(minute))})
					return err
				}, func() error {
					c := store.UpdateUser{Change: by(now), UserID: u.ID, Patch: store.UserPatch{FullName: ptr(actor.ID)}}
					c.By = store.Authority{Session: &store.SessionRef{ID: s.ID, UserID: actor.ID}}
					_, err := b.UpdateUser(b.ctx(), c)
					return err
				}, func() []string {
					got, err := b.User(b.ctx(), store.ByID(u.ID))
					return []string{fmt.Sprintf("%+v %v", plain(got), err)}
				}, store.ErrBanned)
			}
		},
		"no change lands after the user it rests on has changed": func(b *bench) {
			u := b.user("")
			for range 30 {
				actor := b.user("")
				b.meanwhile(func() error {
					_, err := b.update(actor.ID, store.UserPatch{Roles: &[]string{}})
					return err
				}, func() error {
					c := store.UpdateUser{Change: by(now), UserID: u.ID, Patch: store.UserPatch{FullName: ptr(actor.ID)}}
					c.IfUsers = []store.UserAt{{ID: actor.ID, CredentialRevision: &actor.CredentialRevision}}
					_, err := b.UpdateUser(b.ctx(), c)
					return err
				}, func() []string {
					got, err := b.User(b.ctx(), store.ByID(u.ID))
					return []string{fmt.Sprintf("%+v %v", plain(got), err)}
				}, store.ErrStale)
			}
		},
		"users who change each other do not block each other": func(b *bench) {
			both := []store.User{b.user(""), b.user("")}
			sessions := []store.Session{b.session(both[0].ID), b.session(both[1].ID)}
			won, _ := b.race(func(i int) error {
				me, other := i%2, 1-i%2
				c := store.UpdateUser{Change: by(now), UserID: both[other].ID, Patch: store.UserPatch{FullName: ptr("x")}}
				c.By = store.Authority{Session: &store.SessionRef{ID: sessions[me].ID, UserID: both[me].ID}}
				c.IfUsers = []store.UserAt{{ID: both[me].ID, CredentialRevision: &both[me].CredentialRevision}, {ID: both[other].ID}}
				_, err := b.UpdateUser(b.ctx(), c)
				return err
			})
			equal(b, "successful parallel calls", won, parallel)
		},
	})
}

// neverAfterRevocation makes a call in the name of a session that is revoked concurrently.
func neverAfterRevocation(b *bench, prepare func(*world) attempt) {
	for range 8 {
		w := newWorld(b)
		a := prepare(w)
		b.revokedMeanwhile(b.user(""), func(c store.Change) error { return a.call(b.ctx(), c) }, w.state)
	}
}

// revokedMeanwhile makes a change in the name of a new session of actor that is revoked
// concurrently. look reads the values that the change affects.
func (b *bench) revokedMeanwhile(actor store.User, change func(store.Change) error, look func() []string) {
	b.Helper()
	s := b.session(actor.ID)
	b.meanwhile(func() error {
		_, err := b.revoke(actor.ID, store.SessionFilter{ID: s.ID})
		return err
	}, func() error {
		c := by(now)
		c.By = store.Authority{Session: &store.SessionRef{ID: s.ID, UserID: actor.ID}}
		return change(c)
	}, look, store.ErrSessionEnded)
}

// meanwhile runs end and change concurrently. The effect of change must be visible when end
// has returned, or never.
func (b *bench) meanwhile(end, change func() error, look func() []string, refused error) {
	b.Helper()
	var (
		wg         sync.WaitGroup
		start      = make(chan struct{})
		before     = look()
		atEnd      []string
		ended, did error
	)
	wg.Go(func() {
		<-start
		ended = end()
		atEnd = look()
	})
	wg.Go(func() {
		<-start
		did = change()
	})
	close(start)
	wg.Wait()
	b.ok(ended)
	if did != nil && !errors.Is(did, refused) {
		b.wrong("error", did, difference.Show(refused)+", or none")
		b.FailNow()
	}
	after := look()
	if !b.unchanged("it was over", atEnd, after) {
		b.FailNow()
	}
	need(b.of("error %v", did), "it changed something", len(differences(before, after)) > 0, did == nil)
}
