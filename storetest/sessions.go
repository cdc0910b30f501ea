package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/authmount/auth/internal/difference"
	"github.com/authmount/auth/store"
)

func sessions() checks {
	return checks{
		"a session comes back as it went in": func(b *bench) {
			u := b.user("ada@example.com")
			s := b.newSession(u.ID)
			s.AAL, s.ExpiresAt, s.Counter = store.LevelAAL2, now.Add(24*time.Hour), 7
			s.RotatedAt, s.LastActiveAt = now.Add(us), now.Add(2*us)
			s.AMR = append(s.AMR, store.AMR{Method: "totp", Timestamp: now.Unix() + 1})
			signedIn, err := b.signIn(s)
			b.ok(err)
			equal(b, "User.LastSignInAt", signedIn.LastSignInAt, now)
			equal(b, "User.Revision", signedIn.Revision, u.Revision)
			got, user, err := b.Session(b.ctx(), s.ID, now)
			b.ok(err)
			b.sameSession(got, s)
			b.sameUser(user, signedIn)
			list, err := b.Sessions(b.ctx(), u.ID, now)
			b.ok(err)
			moved, err := b.advance(s.ID, 7, now)
			b.ok(err)
			s.AMR[0].Method, got.AMR[0].Method, list[0].AMR[0].Method, moved.AMR[0].Method = "spoilt", "spoilt", "spoilt", "spoilt"
			again, _, err := b.Session(b.ctx(), s.ID, now)
			b.ok(err)
			equal(b, "Session.AMR[0].Method, after callers wrote into theirs,", again.AMR[0].Method, "password")
		},
		"a session's life leaves its user alone": func(b *bench) {
			want := store.Credentials{User: b.whole(), PasswordHash: "hash"}
			s := b.newSession(want.User.ID)
			s.CreatedAt = now.Add(us)
			got, err := b.signIn(s)
			b.ok(err)
			want.User.LastSignInAt = s.CreatedAt
			b.sameUser(got, want.User)
			b.stands(want)
			for range 2 { // the second call is within Grace
				_, got, err = b.AdvanceSession(b.ctx(), store.Advance{Change: by(now.Add(minute)), SessionID: s.ID, Grace: us, IdleUntil: now.Add(time.Hour)})
				b.ok(err)
				b.sameUser(got, want.User)
				b.stands(want)
			}
			_, err = b.RevokeSessions(b.ctx(), store.RevokeSessions{Change: by(now.Add(minute)), UserID: s.UserID, Filter: store.SessionFilter{}})
			b.ok(err)
			b.stands(want)
		},
		"users who come with sessions are copies": func(b *bench) {
			want := store.Credentials{User: b.whole(), PasswordHash: "hash"}
			s := b.newSession(want.User.ID)
			want.User.LastSignInAt = s.CreatedAt
			created, err := b.signIn(s)
			b.ok(err)
			_, read, err := b.Session(b.ctx(), s.ID, now)
			b.ok(err)
			_, advanced, err := b.AdvanceSession(b.ctx(), store.Advance{Change: by(now), SessionID: s.ID, IdleUntil: now.Add(time.Hour)})
			b.ok(err)
			for _, u := range []store.User{created, read, advanced} {
				u.Roles[0], u.Identities[0].Subject, u.UserMetadata["a"] = "spoilt", "spoilt", "spoilt"
			}
			b.stands(want)
		},
		"a session holds its revision": func(b *bench) {
			u := b.user("ada@example.com")
			old := u.Revision
			u, err := b.update(u.ID, store.UserPatch{FullName: ptr("x")})
			b.ok(err)
			s := b.newSession(u.ID)
			_, err = b.signIn(s, store.UserAt{ID: u.ID, Revision: &old})
			b.is(err, store.ErrStale)
			_, _, err = b.Session(b.ctx(), s.ID, now)
			b.is(err, store.ErrNotFound)
			_, err = b.signIn(s, store.UserAt{ID: u.ID, Revision: &u.Revision})
			b.ok(err)
		},
		"no session outlives the patch that ends them all": func(b *bench) {
			// In either order: a session that was created on the old state is ended, or is
			// never created.
			for range 20 {
				nu := b.newUser("")
				nu.PasswordHash = "old"
				u, err := b.create(nu)
				b.ok(err)
				b.race(func(i int) error {
					if i == parallel/2 {
						_, err := b.update(u.ID, store.UserPatch{PasswordHash: ptr("new"), Revoke: &store.SessionFilter{}, DropTokens: []store.Purpose{store.PurposeMFA}})
						return err
					}
					if i%2 == 0 {
						_, err := b.signIn(b.newSession(u.ID), store.UserAt{ID: u.ID, Revision: &u.Revision})
						return err
					}
					_, err := b.signIn(b.newSession(u.ID), store.UserAt{ID: u.ID, PasswordHash: ptr("old")})
					return err
				}, store.ErrStale)
				list, err := b.Sessions(b.ctx(), u.ID, now)
				b.ok(err)
				need(b, "number of sessions", len(list), 0)
			}
		},
		"no session outlives the redemption that ends them all": func(b *bench) {
			for round := range 20 {
				nu := b.newUser("")
				nu.PasswordHash = "old"
				u, err := b.create(nu)
				b.ok(err)
				t := newToken(u.ID, "")
				t.Purpose = store.PurposeReset
				r := store.Redemption{Change: proof(now), Purpose: t.Purpose, Hash: t.Hash}
				r.Patch = &store.UserPatch{PasswordHash: ptr("new"), Revoke: &store.SessionFilter{}}
				if round%2 == 0 {
					t.UserID = u.ID
				} else {
					r.UserID = u.ID
				}
				b.token(t)
				b.race(func(i int) error {
					if i == parallel/2 {
						_, _, err := b.RedeemToken(b.ctx(), r)
						return err
					}
					at := store.UserAt{ID: u.ID, Revision: &u.Revision}
					if i%2 == 0 {
						at = store.UserAt{ID: u.ID, PasswordHash: ptr("old")}
					}
					_, err := b.signIn(b.newSession(u.ID), at)
					return err
				}, store.ErrStale)
				list, err := b.Sessions(b.ctx(), u.ID, now)
				b.ok(err)
				need(b, "number of sessions", len(list), 0)
			}
		},
		"nothing of a user outlives a deletion": func(b *bench) {
			for range 10 {
				u := b.user("")
				s := b.session(u.ID)
				mine := func(i int) store.Token {
					t := newToken(fmt.Sprint(u.ID, i), fmt.Sprint(u.ID, i%3))
					t.UserID = u.ID
					return t
				}
				b.race(func(i int) error {
					switch {
					case i == parallel/2:
						return b.delete(u.ID)
					case i%4 == 0:
						_, err := b.signIn(b.newSession(u.ID))
						return err
					case i%4 == 1:
						return b.put(mine(i))
					case i%4 == 2:
						_, err := b.revoke(u.ID, store.SessionFilter{ID: s.ID})
						return err
					}
					_, err := b.advance(s.ID, 0, now)
					return err
				}, store.ErrNotFound, store.ErrSessionEnded)
				list, err := b.Sessions(b.ctx(), u.ID, now)
				b.ok(err)
				need(b, "number of sessions", len(list), 0)
				for i := range parallel {
					_, err := b.PeekToken(b.ctx(), store.PurposeMagicLink, mine(i).Hash, now)
					b.is(err, store.ErrNotFound)
				}
			}
		},
		"a session id is given once": func(b *bench) {
			s, eve := b.session(b.user("ada@example.com").ID), b.user("eve@example.com")
			again := b.newSession(eve.ID)
			again.ID = s.ID
			_, err := b.signIn(again)
			b.refuses(err, "given twice")
			nu := b.newUser("bob@example.com")
			again.UserID, nu.Session = nu.User.ID, &again
			_, err = b.create(nu)
			b.refuses(err, "given twice, at sign-up")
			_, err = b.User(b.ctx(), store.ByID(nu.User.ID))
			b.is(err, store.ErrNotFound)
			b.stands(store.Credentials{User: eve})
			got, _, err := b.Session(b.ctx(), s.ID, now)
			b.ok(err)
			b.sameSession(got, s)
		},
		"an unknown session is not found": func(b *bench) {
			_, _, err := b.Session(b.ctx(), b.id(), now)
			b.is(err, store.ErrNotFound)
			_, err = b.advance(b.id(), 0, now)
			b.is(err, store.ErrNotFound)
		},
		"a banned user gets no session": func(b *bench) {
			u := b.user("ada@example.com")
			_, err := b.update(u.ID, store.UserPatch{BannedUntil: ptr(now.Add(us))})
			b.ok(err)
			s := b.newSession(u.ID)
			_, err = b.signIn(s)
			b.is(err, store.ErrBanned)
			s.CreatedAt = now.Add(us) // the ban expires at that instant
			_, err = b.signIn(s)
			b.ok(err)
		},
		"a ban stops sessions, also ended ones": func(b *bench) {
			u := b.user("ada@example.com")
			live, ended := b.session(u.ID), b.session(u.ID)
			_, err := b.update(u.ID, store.UserPatch{BannedUntil: ptr(now.Add(minute)), Revoke: &store.SessionFilter{ID: ended.ID}})
			b.ok(err)
			for _, s := range []store.Session{live, ended} {
				got, whose, err := b.Session(b.ctx(), s.ID, now)
				b.is(err, store.ErrBanned)
				equal(b, "Session.ID", got.ID, s.ID)
				equal(b, "Session.UserID", got.UserID, u.ID)
				equal(b, "User.ID", whose.ID, u.ID)
				_, err = b.advance(s.ID, 0, now)
				b.is(err, store.ErrBanned)
			}
			list, err := b.Sessions(b.ctx(), u.ID, now)
			b.ok(err)
			need(b, "number of sessions", len(list), 1)
			equal(b, "Session.ID", list[0].ID, live.ID)
			_, err = b.advance(live.ID, 0, now.Add(minute))
			b.ok(err) // the refused call did not advance the counter
			_, _, err = b.Session(b.ctx(), ended.ID, now.Add(minute))
			b.is(err, store.ErrSessionEnded)
		},
		"a session holds its condition": func(b *bench) {
			nu := b.newUser("ada@example.com")
			nu.PasswordHash = "one"
			u, err := b.create(nu)
			b.ok(err)
			s := b.newSession(u.ID)
			_, err = b.signIn(s, store.UserAt{ID: u.ID, PasswordHash: ptr("two")})
			b.is(err, store.ErrStale)
			_, err = b.signIn(s, store.UserAt{ID: u.ID, PasswordHash: ptr("")})
			b.is(err, store.ErrStale)
			other := b.user("")
			_, err = b.signIn(b.newSession(other.ID), store.UserAt{ID: other.ID, PasswordHash: ptr("two")})
			b.is(err, store.ErrStale)
			_, _, err = b.Session(b.ctx(), s.ID, now)
			b.is(err, store.ErrNotFound)
			_, err = b.signIn(s, store.UserAt{ID: u.ID, PasswordHash: ptr("one")})
			b.ok(err)
		},
		"a login never outlives a password change": func(b *bench) {
			nu := b.newUser("ada@example.com")
			nu.PasswordHash = "one"
			u, err := b.create(nu)
			b.ok(err)
			b.race(func(i int) error {
				if i == parallel/2 {
					_, err := b.update(u.ID, store.UserPatch{PasswordHash: ptr("two"), Revoke: &store.SessionFilter{}})
					return err
				}
				_, err := b.signIn(b.newSession(u.ID), store.UserAt{ID: u.ID, PasswordHash: ptr("one")})
				return err
			}, store.ErrStale)
			list, err := b.Sessions(b.ctx(), u.ID, now)
			b.ok(err)
			equal(b, "number of sessions", len(list), 0)
		},
		"expiry is exact": func(b *bench) {
			u := b.user("ada@example.com")
			for name, edit := range map[string]func(*store.Session){
				"idle":     func(s *store.Session) { s.IdleUntil = now.Add(minute) },
				"absolute": func(s *store.Session) { s.ExpiresAt = now.Add(minute) },
				"idle before absolute": func(s *store.Session) {
					s.IdleUntil, s.ExpiresAt = now.Add(minute), now.Add(2*minute)
				},
			} {
				s := b.newSession(u.ID)
				edit(&s)
				_, err := b.signIn(s)
				b.ok(err)
				_, _, err = b.Session(b.ctx(), s.ID, now.Add(minute-us))
				b.of("%s", name).fails(err, nil)
				_, _, err = b.Session(b.ctx(), s.ID, now.Add(minute))
				b.is(err, store.ErrSessionEnded)
				_, err = b.advance(s.ID, 0, now.Add(minute))
				b.is(err, store.ErrSessionEnded)
			}
			list, err := b.Sessions(b.ctx(), u.ID, now.Add(minute))
			b.ok(err)
			equal(b, "number of sessions", len(list), 0)
		},
		"sessions are listed, newest first": func(b *bench) {
			u := b.user("ada@example.com")
			b.session(b.user("eve@example.com").ID)
			var want []string
			for i := range 3 {
				s := b.newSession(u.ID)
				s.CreatedAt = now.Add(time.Duration(i) * us)
				_, err := b.signIn(s)
				b.ok(err)
				want = append([]string{s.ID}, want...)
			}
			ended := b.session(u.ID)
			_, err := b.revoke(u.ID, store.SessionFilter{ID: ended.ID})
			b.ok(err)
			list, err := b.Sessions(b.ctx(), u.ID, now)
			b.ok(err)
			got := []string{}
			for _, s := range list {
				got = append(got, s.ID)
			}
			equal(b, "sessions", got, want)
		},
		"revoking ends what matches and names it": func(b *bench) {
			u, other := b.user("ada@example.com"), b.user("eve@example.com")
			one, two, three, four, foreign := b.session(u.ID), b.session(u.ID), b.session(u.ID), b.session(u.ID), b.session(other.ID)
			revoke := func(f store.SessionFilter, want ...string) {
				b.Helper()
				got, err := b.revoke(u.ID, f)
				b.ok(err)
				slices.Sort(want)
				listed(b.of("%s", difference.Show(f)), "ended", got, want)
			}
			over := b.newSession(u.ID)
			over.IdleUntil = now
			_, err := b.signIn(over)
			b.ok(err)
			revoke(store.SessionFilter{ID: foreign.ID})
			revoke(store.SessionFilter{ID: over.ID})
			revoke(store.SessionFilter{ID: one.ID}, one.ID)
			revoke(store.SessionFilter{ID: one.ID})
			revoke(store.SessionFilter{ID: two.ID, Except: two.ID})
			later, from := make([]string, 3), make([]int64, 4) // created one after the other, by slow clocks
			for i := range later {
				later[i] = b.signInOn(u.ID, "", two.CreatedAt.Add(-time.Duration(i+1)*us)).ID
				kept, _, err := b.Session(b.ctx(), later[i], now)
				b.ok(err)
				from[i], from[i+1] = kept.Sequence, kept.Sequence+1
			}
			revoke(store.SessionFilter{FromSequence: from[3]})
			revoke(store.SessionFilter{FromSequence: from[1], Except: later[1]}, later[2])
			revoke(store.SessionFilter{FromSequence: from[1], ID: later[0]})
			revoke(store.SessionFilter{FromSequence: from[0]}, later[0], later[1])
			revoke(store.SessionFilter{Except: two.ID}, three.ID, four.ID)
			_, _, err = b.Session(b.ctx(), three.ID, now)
			b.is(err, store.ErrSessionEnded)
			kept, _, err := b.Session(b.ctx(), two.ID, now)
			b.ok(err)
			b.sameSession(kept, two)
			revoke(store.SessionFilter{}, two.ID)
			_, _, err = b.Session(b.ctx(), foreign.ID, now)
			b.ok(err)
		},
		"revoking removes the tokens that it names": func(b *bench) {
			u, other := b.user("ada@example.com"), b.user("eve@example.com")
			put := func(secret, userID string, p store.Purpose) []byte {
				t := newToken(secret, "")
				t.UserID, t.Purpose = userID, p
				b.token(t)
				return t.Hash
			}
			kept, gone, foreign := put("kept", u.ID, store.PurposeReset), put("gone", u.ID, store.PurposeExchange), put("foreign", other.ID, store.PurposeExchange)
			_, err := b.RevokeSessions(b.ctx(), store.RevokeSessions{Change: by(now), UserID: u.ID, DropTokens: []store.Purpose{store.PurposeExchange, store.PurposeMFA}})
			b.ok(err) // even if no session ended
			_, err = b.PeekToken(b.ctx(), store.PurposeExchange, gone, now)
			b.is(err, store.ErrNotFound)
			_, err = b.PeekToken(b.ctx(), store.PurposeReset, kept, now)
			b.ok(err)
			_, err = b.PeekToken(b.ctx(), store.PurposeExchange, foreign, now)
			b.ok(err)
		},
		"a caller who has gone changes nothing": func(b *bench) {
			u := b.user("ada@example.com")
			s, never := b.session(u.ID), b.newSession(u.ID)
			_, err := b.CreateSession(cancelled(), store.CreateSession{Change: by(now), NewSession: store.NewSession{Session: never}})
			b.gone(err)
			_, _, err = b.AdvanceSession(cancelled(), store.Advance{Change: by(now), SessionID: s.ID, IdleUntil: now.Add(time.Hour)})
			b.gone(err)
			_, err = b.RevokeSessions(cancelled(), store.RevokeSessions{Change: by(now), UserID: u.ID, Filter: store.SessionFilter{}})
			b.gone(err)
			_, _, err = b.Session(cancelled(), s.ID, now)
			b.gone(err)
			_, err = b.Sessions(cancelled(), u.ID, now)
			b.gone(err)
			got, _, err := b.Session(b.ctx(), s.ID, now)
			b.ok(err)
			b.sameSession(got, s)
			_, _, err = b.Session(b.ctx(), never.ID, now)
			b.is(err, store.ErrNotFound)
		},
	}
}
