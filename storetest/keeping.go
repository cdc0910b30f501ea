package storetest

import (
	"reflect"
	"slices"
	"time"

	"github.com/authmount/auth/internal/difference"
	"github.com/authmount/auth/store"
)

// signInKeeping adds a session and keeps n. It returns the ended sessions as the store
// reports them.
func (b *bench) signInKeeping(s store.Session, n int, ifUsers ...store.UserAt) (ended []string, err error) {
	c := store.CreateSession{Change: by(s.CreatedAt), NewSession: store.NewSession{Session: s, KeepSessions: n}}
	c.IfUsers = ifUsers
	c.Ended = func(ids []string) {
		if ended != nil || len(ids) == 0 {
			b.wrong("Ended was called with", ids, "some ids, once; it had "+difference.Show(ended))
		}
		ended = ids
	}
	_, err = b.CreateSession(b.ctx(), c)
	return ended, err
}

// live returns the ids of a user's live sessions, sorted.
func (b *bench) live(userID string, at time.Time) []string {
	b.Helper()
	list, err := b.Sessions(b.ctx(), userID, at)
	b.ok(err)
	ids := []string{}
	for _, s := range list {
		ids = append(ids, s.ID)
	}
	slices.Sort(ids)
	return ids
}

// carriers returns the parameter types that contain a session to create.
func carriers() []string {
	var names []string
	carries := func(t reflect.Type) bool {
		for _, f := range reflect.VisibleFields(t) {
			if f.Type == reflect.TypeFor[store.Session]() || f.Type == reflect.TypeFor[*store.Session]() || f.Type == reflect.TypeFor[*store.NewUser]() {
				return true
			}
		}
		return false
	}
	for _, face := range faces() {
		for i := range face.NumMethod() {
			m := face.Method(i)
			for p := range m.Type.NumIn() {
				if t := m.Type.In(p); t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]() && carries(t) {
					names = append(names, m.Name)
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

// keepSessions checks NewSession.KeepSessions.
func keepSessions() checks {
	return checks{
		"the least active sessions end when there are too many": func(b *bench) {
			u, eve := b.user("ada@example.com"), b.user("eve@example.com")
			theirs, over, ended := b.session(eve.ID), b.newSession(u.ID), b.session(u.ID)
			over.IdleUntil = now.Add(us)
			_, err := b.signIn(over)
			b.ok(err)
			_, err = b.revoke(u.ID, store.SessionFilter{ID: ended.ID})
			b.ok(err)
			var s []store.Session
			for i := range 5 {
				s = append(s, b.newSession(u.ID))
				s[i].LastActiveAt = now.Add(time.Duration(i) * us)
				_, err := b.signIn(s[i])
				b.ok(err)
			}
			_, err = b.advance(s[0].ID, 0, now.Add(minute)) // the oldest is the most recently active
			b.ok(err)
			sixth := b.newSession(u.ID)
			sixth.CreatedAt, sixth.LastActiveAt = now.Add(minute), now.Add(-minute) // the least recently active itself
			got, err := b.signInKeeping(sixth, 6)
			b.ok(err)
			equal(b, "ended", got, nil)
			seventh := b.newSession(u.ID)
			seventh.CreatedAt, seventh.LastActiveAt = now.Add(minute), now.Add(-2*minute)
			got, err = b.signInKeeping(seventh, 3)
			b.ok(err)
			want := []string{s[1].ID, s[2].ID, s[3].ID, sixth.ID}
			slices.Sort(want)
			listed(b, "ended", got, want)
			left := []string{s[0].ID, s[4].ID, seventh.ID}
			slices.Sort(left)
			listed(b, "sessions that are left", b.live(u.ID, now.Add(minute)), left)
			_, _, err = b.Session(b.ctx(), s[3].ID, now.Add(minute))
			b.is(err, store.ErrSessionEnded)
			_, err = b.advance(s[3].ID, 0, now.Add(minute))
			b.is(err, store.ErrSessionEnded)
			_, _, err = b.Session(b.ctx(), theirs.ID, now.Add(minute))
			b.ok(err)
			last := b.newSession(u.ID)
			last.CreatedAt = now.Add(minute)
			got, err = b.signInKeeping(last, 1)
			b.ok(err)
			listed(b, "ended", got, left)
			listed(b, "sessions that are left", b.live(u.ID, now.Add(minute)), []string{last.ID})
		},
		"without a number all sessions stay": func(b *bench) {
			u := b.user("ada@example.com")
			for range 120 {
				got, err := b.signInKeeping(b.newSession(u.ID), 0)
				b.ok(err)
				need(b, "ended", got, nil)
			}
			equal(b, "number of sessions left", len(b.live(u.ID, now)), 120)
		},
		"a refused sign-in ends no session": func(b *bench) {
			u := b.user("ada@example.com")
			old := b.session(u.ID)
			got, err := b.signInKeeping(b.newSession(u.ID), 1, store.UserAt{ID: u.ID, PasswordHash: ptr("other")})
			b.is(err, store.ErrStale)
			again := b.newSession(u.ID)
			again.ID = old.ID
			more, err := b.signInKeeping(again, 1)
			b.refuses(err, "an id given twice")
			equal(b, "ended", got, nil)
			equal(b, "ended", more, nil)
			listed(b, "sessions that are left", b.live(u.ID, now), []string{old.ID})
		},
		"parallel sign-ins never leave more sessions than are kept": func(b *bench) {
			// Each call waits for another, and must see the session that the other created.
			for range 10 {
				u := b.user("")
				b.race(func(int) error {
					_, err := b.signInKeeping(b.newSession(u.ID), 3)
					return err
				})
				need(b, "number of sessions left", len(b.live(u.ID, now)), 3)
			}
		},
		"no other call leaves a user more than one session more": func(b *bench) {
			// A new user has one session. Every other method that creates one must take a
			// store.NewSession, which limits the number of sessions.
			want := []string{"CreateSession", "CreateUser", "RedeemCode", "RedeemToken"}
			listed(b, "methods that take a session: give the new one a store.NewSession, and check it:", carriers(), want)
		},
	}
}
