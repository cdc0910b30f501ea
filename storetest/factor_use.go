package storetest

import (
	"fmt"

	"github.com/authmount/auth/store"
)

// factorUse checks the use of a factor, alone and in races.
func factorUse() checks {
	return checks{
		"a patch that does not name the factor leaves it alone": func(b *bench) {
			for name, c := range b.ordinary() {
				b.Logf("patch: %s", name)
				u, _, f := b.enrolled()
				got, err := b.update(u.ID, c.patch)
				b.ok(err)
				want := store.Credentials{User: u, PasswordHash: "hash"}
				c.edit(&want)
				want.User.Revision, want.User.CredentialRevision = got.Revision, got.CredentialRevision
				b.sameUser(got, want.User)
				b.stands(want)
				b.has(f, 2)
				b.token(newToken("t", "subject"))
				_, got, err = b.use("t", store.Effect{UserID: u.ID, Patch: &c.patch})
				b.ok(err)
				want.User.Revision, want.User.CredentialRevision = got.Revision, got.CredentialRevision
				b.stands(want)
				b.has(f, 2)
				b.recovers(u.ID, "r2", "r1")
				b.ok(b.delete(u.ID))
			}
		},
		"a patch that is refused leaves the factor alone": func(b *bench) {
			u, _, f := b.enrolled()
			for name, c := range b.refused(u) {
				b.Logf("refused: %s", name)
				_, err := b.UpdateUser(b.ctx(), c)
				b.refuses(err, "applied all the same")
				b.stands(store.Credentials{User: u, PasswordHash: "hash"})
				b.has(f, 2)
			}
			b.recovers(u.ID, "r1", "r2")
		},
		"a session's life leaves the factor alone": func(b *bench) {
			u, _, f := b.enrolled()
			s := b.newSession(u.ID)
			s.AAL = store.LevelAAL2
			u, err := b.signIn(s)
			b.ok(err)
			_, err = b.advance(s.ID, 0, now)
			b.ok(err)
			_, err = b.revoke(u.ID, store.SessionFilter{})
			b.ok(err)
			b.stands(store.Credentials{User: u, PasswordHash: "hash"})
			b.has(f, 2)
			b.recovers(u.ID, "r1", "r2")
		},
		"using a factor leaves the rest of it and its user alone": func(b *bench) {
			u, _, f := b.enrolled()
			use := using(f, "200")
			use.Now = now.Add(us)
			done, err := b.factors.UseFactor(b.ctx(), use)
			b.ok(err)
			b.sameUser(done.User, u)
			equal(b, "FactorResult.Session", done.Session, store.Session{})
			f.State, f.LastUsedAt = []byte("200"), now.Add(us)
			b.has(f, 2)
			use = using(f, "201")
			use.Now, use.Secret = now.Add(2*us), []byte("sealed anew")
			_, err = b.factors.UseFactor(b.ctx(), use)
			b.ok(err)
			use.Secret[0], use.NewState[0] = 'x', 'x'
			f.State, f.LastUsedAt, f.Secret = []byte("201"), now.Add(2*us), []byte("sealed anew")
			b.has(f, 2)
			b.recovers(u.ID, "r1")
			b.has(f, 1)
			b.ok(b.renew(u.ID, "n1", "n2", "n3"))
			b.has(f, 3)
			b.stands(store.Credentials{User: u, PasswordHash: "hash"})
		},
		"factors are copies": func(b *bench) {
			u := b.whole()
			f := b.newFactor(u.ID)
			want := f
			want.Secret, want.State = []byte("sealed"), []byte("0")
			b.ok(b.putFactor(f))
			f.Secret[0], f.State[0] = 'x', 'x'
			read, err := b.factors.Factors(b.ctx(), u.ID)
			b.ok(err)
			read.List[0].Secret[0], read.List[0].State[0] = 'x', 'x'
			s := b.session(u.ID)
			e := enabling(f, s)
			enabled, err := b.factors.EnableFactor(b.ctx(), e)
			b.ok(err)
			e.Recovery[0][0], e.State[0], enabled.Session.AMR[0].Method = e.Recovery[0][0]^1, 'x', "spoilt"
			want.Enabled, want.State = true, []byte("100")
			b.has(want, 2)
			b.recovers(u.ID, "r1")
			used, err := b.raise(want, "101", s.ID)
			b.ok(err)
			used.Session.AMR[0].Method = "spoilt"
			kept, _, err := b.Session(b.ctx(), s.ID, now)
			b.ok(err)
			equal(b, "Session.AMR[0].Method, after callers wrote into theirs,", kept.AMR[0].Method, "password")
			c := store.PutRecoveryCodes{Change: by(now), UserID: u.ID, Hashes: [][]byte{hashOf("n1")}}
			b.ok(b.factors.PutRecoveryCodes(b.ctx(), c))
			c.Hashes[0][0] ^= 1
			b.recovers(u.ID, "n1")
			removed, err := b.removeFactor(u.ID, "")
			b.ok(err)
			for _, shared := range []store.User{enabled.User, used.User, removed} {
				shared.Roles[0] = "spoilt"
			}
			u, err = b.User(b.ctx(), store.ByID(u.ID))
			b.ok(err)
			equal(b, "User.Roles[0], after callers wrote into theirs,", u.Roles[0], "r")
		},
		"a factor is used in the state that was read, and in no other": func(b *bench) {
			_, _, f := b.enrolled()
			for _, other := range []string{"", "0", "99", "101", "1000"} {
				read := f
				read.State = []byte(other)
				b.of("state %q", other).is(b.useFactor(read, "102"), store.ErrUsed)
			}
			b.has(f, 2)
			b.ok(b.useFactor(f, "102"))
			b.is(b.useFactor(f, "103"), store.ErrUsed)
			f.State = []byte("102")
			b.ok(b.useFactor(f, "102")) // a counter that stays at 0
			b.ok(b.useFactor(f, ""))
			f.State = nil
			b.ok(b.useFactor(f, "103"))
			f.State = []byte("103")
			foreign := f
			foreign.UserID = b.user("").ID
			b.is(b.useFactor(foreign, "200"), store.ErrNotFound)
			foreign = f
			foreign.ID = b.id()
			b.is(b.useFactor(foreign, "200"), store.ErrNotFound)
		},
		"a recovery code works once": func(b *bench) {
			u, _, _ := b.enrolled()
			left, err := b.recover(u.ID, "unknown", "r1") // also under the previous key
			b.ok(err)
			equal(b, "recovery codes left", left, 1)
			_, err = b.recover(u.ID, "r1")
			b.is(err, store.ErrNotFound)
			_, err = b.recover(b.user("").ID, "r2")
			b.is(err, store.ErrNotFound)
			_, err = b.recover(u.ID)
			b.is(err, store.ErrNotFound)
			b.ok(b.renew(u.ID, "n1"))
			_, err = b.recover(u.ID, "r2")
			b.is(err, store.ErrNotFound)
			_, err = b.recover(u.ID, "n1")
			b.ok(err)
		},
		"using a factor raises a live session": func(b *bench) {
			u, _, f := b.enrolled()
			eve, foreign, _ := b.enrol(b.user("eve@example.com"))
			at2 := func() store.Session {
				s := b.newSession(u.ID)
				s.AAL = store.LevelAAL2
				_, err := b.signIn(s)
				b.ok(err)
				return s
			}
			s, ended := at2(), at2()
			_, err := b.revoke(s.UserID, store.SessionFilter{ID: ended.ID})
			b.ok(err)
			moved, err := b.advance(s.ID, 0, now)
			b.ok(err)
			want := store.Credentials{User: u, PasswordHash: "hash"}
			want.User.LastSignInAt = now
			first := moved.AMR
			for i := range 2 { // the second entry of a method replaces the first
				method := store.AMR{Method: "totp", Timestamp: now.Unix() + int64(i)}
				moved.AMR = append(first[:len(first):len(first)], method)
				c := using(f, fmt.Sprint(i))
				c.Now, c.Raise = now.Add(minute), &store.RaisedLevel{SessionID: s.ID, Method: method}
				done, err := b.factors.UseFactor(b.ctx(), c)
				b.ok(err)
				f.State, f.LastUsedAt = c.NewState, c.Now
				b.sameSession(done.Session, moved)
				b.sameUser(done.User, want.User)
				read, _, err := b.Session(b.ctx(), s.ID, now)
				b.ok(err)
				b.sameSession(read, moved)
				b.stands(want)
				b.has(f, 2)
			}
			for name, id := range map[string]string{"ended": ended.ID, "unknown": b.id(), "another user's": foreign.ID} {
				_, err = b.raise(f, "x", id)
				b.of("a session that is %s", name).is(err, store.ErrSessionEnded)
			}
			late := using(f, "x")
			late.Now, late.Raise = moved.IdleUntil, &store.RaisedLevel{SessionID: s.ID, Method: totp}
			_, err = b.factors.UseFactor(b.ctx(), late)
			b.is(err, store.ErrSessionEnded)
			_, err = b.update(s.UserID, store.UserPatch{BannedUntil: ptr(now.Add(us))})
			b.ok(err)
			_, err = b.raise(f, "x", s.ID)
			b.is(err, store.ErrBanned)
			b.has(f, 2)
			_, _, err = b.Session(b.ctx(), foreign.ID, now)
			b.ok(err)
			_ = eve
		},
		"no session outlives an enabling without the factor": func(b *bench) {
			for range 20 {
				u := b.user("")
				kept, f := b.session(u.ID), b.pending(u.ID)
				b.race(func(i int) error {
					switch {
					case i == parallel/2:
						_, err := b.enable(f, kept)
						return err
					case i%4 == 0:
						_, err := b.advance(kept.ID, 0, now)
						return err
					}
					_, err := b.signIn(b.newSession(u.ID))
					return err
				}, store.ErrMFARequired)
				list, err := b.Sessions(b.ctx(), u.ID, now)
				b.ok(err)
				need(b, "number of sessions", len(list), 1)
				need(b, "Session.ID", list[0].ID, kept.ID)
				need(b, "Session.AAL", list[0].AAL, store.LevelAAL2)
				need(b, "Session.Counter", list[0].Counter, 1)
			}
		},
		"parallel removals and enrolments leave user and factor at one": func(b *bench) {
			for range 20 {
				u := b.user("")
				f := b.pending(u.ID)
				b.race(func(i int) error {
					var err error
					switch i % 4 {
					case 0:
						_, err = b.removeFactor(u.ID, "")
					case 1:
						err = b.putFactor(b.newFactor(u.ID))
					case 2:
						_, err = b.enableAnew(f, b.newSession(u.ID))
					case 3:
						_, err = b.update(u.ID, store.UserPatch{DropFactors: i%8 == 3, FullName: ptr("x")})
					}
					return err
				}, store.ErrNotFound, store.ErrConflict)
				got, err := b.User(b.ctx(), store.ByID(u.ID))
				b.ok(err)
				fs, err := b.factors.Factors(b.ctx(), u.ID)
				b.ok(err)
				need(b, "User.MFAEnabled", got.MFAEnabled, len(fs.List) > 0 && fs.List[0].Enabled)
				if !got.MFAEnabled {
					need(b, "Factors.RecoveryLeft", fs.RecoveryLeft, 0)
				}
			}
		},
		"of parallel enablings one wins": func(b *bench) {
			u := b.user("ada@example.com")
			f := b.pending(u.ID)
			won, lost := b.race(func(int) error {
				_, err := b.enableAnew(f, b.newSession(u.ID))
				return err
			}, store.ErrConflict)
			b.oneWon(won, lost, store.ErrConflict)
			list, err := b.Sessions(b.ctx(), u.ID, now)
			b.ok(err)
			equal(b, "number of sessions", len(list), 1)
		},
		"of parallel uses of a state one wins": func(b *bench) {
			_, _, f := b.enrolled()
			won, lost := b.race(func(i int) error { return b.useFactor(f, fmt.Sprint(101+i)) }, store.ErrUsed)
			b.oneWon(won, lost, store.ErrUsed)
		},
		"of parallel uses of a recovery code one wins": func(b *bench) {
			u, _, _ := b.enrolled()
			won, lost := b.race(func(int) error {
				_, err := b.recover(u.ID, "r1")
				return err
			}, store.ErrNotFound)
			b.oneWon(won, lost, store.ErrNotFound)
		},
		"a caller who has gone changes nothing": func(b *bench) {
			u, _, f := b.enrolled()
			_, err := b.factors.Factors(cancelled(), u.ID)
			b.gone(err)
			_, err = b.factors.UseFactor(cancelled(), using(f, "200"))
			b.gone(err)
			b.has(f, 2)
		},
	}
}
