package storetest

import (
	"github.com/authmount/auth/store"
)

// factorUse are the checks of how a factor is used, alone and in races.
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
			_, got, err := b.factors.RaiseSession(b.ctx(), store.RaiseSession{Change: by(now), SessionID: s.ID, Proof: totp})
			b.ok(err)
			b.sameUser(got, u)
			_, err = b.revoke(u.ID, store.SessionFilter{})
			b.ok(err)
			b.stands(store.Credentials{User: u, PasswordHash: "hash"})
			b.has(f, 2)
			b.recovers(u.ID, "r1", "r2")
		},
		"using a factor leaves the rest of it and its user alone": func(b *bench) {
			u, _, f := b.enrolled()
			use := store.UseTOTPStep{Change: by(now.Add(us)), UserID: u.ID, FactorID: f.ID, Step: 200}
			b.ok(b.factors.UseTOTPStep(b.ctx(), use))
			f.LastStep, f.LastUsedAt = 200, now.Add(us)
			b.has(f, 2)
			use.Now, use.Step, use.Secret = now.Add(2*us), 201, []byte("sealed anew")
			b.ok(b.factors.UseTOTPStep(b.ctx(), use))
			use.Secret[0] = 'x'
			f.LastStep, f.LastUsedAt, f.Secret = 201, now.Add(2*us), []byte("sealed anew")
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
			want.Secret = []byte("sealed")
			b.ok(b.putFactor(f))
			f.Secret[0] = 'x'
			read, err := b.factors.Factors(b.ctx(), u.ID)
			b.ok(err)
			read.List[0].Secret[0] = 'x'
			s := b.session(u.ID)
			e := enabling(f, s)
			enabled, err := b.factors.EnableFactor(b.ctx(), e)
			b.ok(err)
			e.Recovery[0][0], e.Session.AMR[0].Method = e.Recovery[0][0]^1, "spoilt"
			want.Enabled, want.LastStep = true, 100
			b.has(want, 2)
			b.recovers(u.ID, "r1")
			raised, reader, err := b.factors.RaiseSession(b.ctx(), store.RaiseSession{Change: by(now), SessionID: s.ID, Proof: totp})
			b.ok(err)
			raised.AMR[0].Method = "spoilt"
			kept, _, err := b.Session(b.ctx(), s.ID, now)
			b.ok(err)
			equal(b, "Session.AMR[0].Method, after callers wrote into theirs,", kept.AMR[0].Method, "password")
			c := store.PutRecoveryCodes{Change: by(now), UserID: u.ID, Hashes: [][]byte{hashOf("n1")}}
			b.ok(b.factors.PutRecoveryCodes(b.ctx(), c))
			c.Hashes[0][0] ^= 1
			b.recovers(u.ID, "n1")
			removed, err := b.removeFactor(u.ID, "")
			b.ok(err)
			for _, shared := range []store.User{enabled, reader, removed} {
				shared.Roles[0] = "spoilt"
			}
			u, err = b.User(b.ctx(), store.ByID(u.ID))
			b.ok(err)
			equal(b, "User.Roles[0], after callers wrote into theirs,", u.Roles[0], "r")
		},
		"a step is used once, and never an older one": func(b *bench) {
			_, _, f := b.enrolled()
			b.is(b.step(f, 100), store.ErrUsed)
			b.is(b.step(f, 99), store.ErrUsed)
			b.ok(b.step(f, 102))
			b.is(b.step(f, 102), store.ErrUsed)
			b.is(b.step(f, 101), store.ErrUsed)
			b.ok(b.step(f, 103))
			foreign := f
			foreign.UserID = b.user("").ID
			b.is(b.step(foreign, 200), store.ErrNotFound)
			foreign = f
			foreign.ID = b.id()
			b.is(b.step(foreign, 200), store.ErrNotFound)
		},
		"a recovery code works once": func(b *bench) {
			u, _, _ := b.enrolled()
			left, err := b.recover(u.ID, "unknown", "r1") // under the key before, too
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
		"raising lifts a live session": func(b *bench) {
			want := store.Credentials{User: b.whole(), PasswordHash: "hash"}
			s, ended := b.session(want.User.ID), b.session(want.User.ID)
			want.User.LastSignInAt = now
			_, err := b.revoke(s.UserID, store.SessionFilter{ID: ended.ID})
			b.ok(err)
			moved, err := b.advance(s.ID, 0, now)
			b.ok(err)
			raise := func(id string, c store.Change, proof store.AMR) (store.Session, store.User, error) {
				return b.factors.RaiseSession(b.ctx(), store.RaiseSession{Change: c, SessionID: id, Proof: proof})
			}
			first := moved.AMR
			for i := range 2 { // the second proof of a method takes the place of the first
				proof := store.AMR{Method: "totp", Timestamp: now.Unix() + int64(i)}
				moved.AAL, moved.AMR = store.LevelAAL2, append(first[:len(first):len(first)], proof)
				got, user, err := raise(s.ID, by(now.Add(minute)), proof)
				b.ok(err)
				b.sameSession(got, moved)
				b.sameUser(user, want.User)
				read, _, err := b.Session(b.ctx(), s.ID, now)
				b.ok(err)
				b.sameSession(read, moved)
				b.stands(want)
			}
			_, _, err = raise(ended.ID, by(now), totp)
			b.is(err, store.ErrSessionEnded)
			_, _, err = raise(s.ID, by(moved.IdleUntil), totp)
			b.is(err, store.ErrSessionEnded)
			_, _, err = raise(b.id(), by(now), totp)
			b.is(err, store.ErrNotFound)
			_, err = b.update(s.UserID, store.UserPatch{BannedUntil: ptr(now.Add(us))})
			b.ok(err)
			_, _, err = raise(s.ID, by(now), totp)
			b.is(err, store.ErrBanned)
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
						_, err = b.enable(f, b.newSession(u.ID))
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
				_, err := b.enable(f, b.newSession(u.ID))
				return err
			}, store.ErrConflict)
			b.oneWon(won, lost, store.ErrConflict)
			list, err := b.Sessions(b.ctx(), u.ID, now)
			b.ok(err)
			equal(b, "number of sessions", len(list), 1)
		},
		"of parallel uses of a step one wins": func(b *bench) {
			_, _, f := b.enrolled()
			won, lost := b.race(func(int) error { return b.step(f, 101) }, store.ErrUsed)
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
			b.gone(b.factors.UseTOTPStep(cancelled(), store.UseTOTPStep{Change: by(now), UserID: u.ID, FactorID: f.ID, Step: 200}))
			b.has(f, 2)
		},
	}
}
