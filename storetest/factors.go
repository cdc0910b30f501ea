package storetest

import (
	"reflect"
	"slices"
	"testing"

	"github.com/authmount/auth"
)

// factorBench is a bench whose store knows second factors.
type factorBench struct {
	*bench
	auth.FactorStore
}

// runFactors checks auth.FactorStore on a store that is one.
func runFactors(t *testing.T, open func(t *testing.T) auth.Store) {
	t.Helper()
	if _, ok := open(t).(auth.FactorStore); !ok {
		return
	}
	for name, check := range factors {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			fs, _ := s.(auth.FactorStore)
			check(&factorBench{bench: &bench{T: t, Store: s}, FactorStore: fs})
		})
	}
}

// totp is a proof by the factor.
var totp = auth.AMR{Method: "totp", Timestamp: now.Unix()}

// enable describes the end of an enrolment on a session.
func enable(userID string, s auth.Session) auth.EnableFactor {
	s.AAL, s.AMR = auth.LevelAAL2, append(slices.Clip(s.AMR), totp)
	return auth.EnableFactor{UserID: userID, Secret: []byte("sealed"), Step: 100, Recovery: [][]byte{hashOf("r1"), hashOf("r2")}, Session: s, Now: now}
}

// enrolled adds a whole user with a factor, and the session it was enabled on.
func (b *factorBench) enrolled() (auth.User, auth.Session) {
	b.Helper()
	u := b.whole()
	s := b.session(u.ID)
	b.ok(b.PutFactor(b.ctx(), u.ID, []byte("sealed"), now))
	u, err := b.EnableFactor(b.ctx(), enable(u.ID, s))
	b.ok(err)
	return u, s
}

// sealed is the factor of a user who is enrolled.
func sealed(userID string) auth.Factor {
	return auth.Factor{UserID: userID, Secret: []byte("sealed"), Enabled: true, LastStep: 100, RecoveryLeft: 2}
}

// has wants a factor as the store keeps it.
func (b *factorBench) has(want auth.Factor) {
	b.Helper()
	got, err := b.Factor(b.ctx(), want.UserID)
	b.ok(err)
	if !reflect.DeepEqual(got, want) {
		b.Errorf("factor\n%+v\nwant\n%+v", got, want)
	}
}

// recovers wants these recovery codes to be good, and uses them up.
func (b *factorBench) recovers(userID string, codes ...string) {
	b.Helper()
	for _, c := range codes {
		_, err := b.UseRecoveryCode(b.ctx(), userID, hashOf(c))
		b.ok(err)
	}
}

// forgotten wants nothing left of a factor, not even for the next one.
func (b *factorBench) forgotten(userID string) {
	b.Helper()
	_, err := b.Factor(b.ctx(), userID)
	b.is(err, auth.ErrNotFound)
	_, err = b.RemoveFactor(b.ctx(), userID, now)
	b.is(err, auth.ErrNotFound)
	_, err = b.UseRecoveryCode(b.ctx(), userID, hashOf("r2"))
	b.is(err, auth.ErrNotFound)
	b.is(b.PutRecoveryCodes(b.ctx(), userID, nil), auth.ErrNotFound)
	b.is(b.UseTOTPStep(b.ctx(), userID, 200), auth.ErrStale)
	s := b.session(userID)
	b.ok(b.PutFactor(b.ctx(), userID, []byte("sealed"), now))
	e := enable(userID, s)
	e.Step, e.Recovery = 7, [][]byte{hashOf("n1")}
	_, err = b.EnableFactor(b.ctx(), e)
	b.ok(err)
	want := sealed(userID)
	want.LastStep, want.RecoveryLeft = 7, 1
	b.has(want)
	_, err = b.UseRecoveryCode(b.ctx(), userID, hashOf("r2"))
	b.is(err, auth.ErrNotFound)
}

var factors = map[string]func(*factorBench){
	"a factor is pending until it is enabled": func(b *factorBench) {
		u := b.user("ada@example.com")
		_, err := b.Factor(b.ctx(), u.ID)
		b.is(err, auth.ErrNotFound)
		b.is(b.PutFactor(b.ctx(), b.id(), []byte("x"), now), auth.ErrNotFound)
		b.ok(b.PutFactor(b.ctx(), u.ID, []byte("first"), now))
		b.ok(b.PutFactor(b.ctx(), u.ID, []byte("sealed"), now))
		b.is(b.UseTOTPStep(b.ctx(), u.ID, 7), auth.ErrStale)
		b.is(b.PutRecoveryCodes(b.ctx(), u.ID, [][]byte{hashOf("r1")}), auth.ErrNotFound)
		_, err = b.UseRecoveryCode(b.ctx(), u.ID, hashOf("r1"))
		b.is(err, auth.ErrNotFound)
		_, err = b.RemoveFactor(b.ctx(), u.ID, now)
		b.is(err, auth.ErrNotFound)
		b.has(auth.Factor{UserID: u.ID, Secret: []byte("sealed")})
		b.stands(auth.Credentials{User: u})
		b.session(u.ID)
	},
	"enabling raises one session and ends the others": func(b *factorBench) {
		u, other := b.whole(), b.user("eve@example.com")
		kept, ended, foreign := b.session(u.ID), b.session(u.ID), b.session(other.ID)
		u.LastSignInAt = now
		_, err := b.EnableFactor(b.ctx(), enable(u.ID, kept))
		b.is(err, auth.ErrNotFound)
		b.ok(b.PutFactor(b.ctx(), u.ID, []byte("other"), now))
		_, err = b.EnableFactor(b.ctx(), enable(u.ID, kept))
		b.is(err, auth.ErrStale) // replaced meanwhile
		b.ok(b.PutFactor(b.ctx(), u.ID, []byte("sealed"), now))
		moved, err := b.advance(kept.ID, 0, now)
		b.ok(err)
		e := enable(u.ID, kept) // as read before that refresh, which has to last
		e.Now = now.Add(us)
		got, err := b.EnableFactor(b.ctx(), e)
		b.ok(err)
		u.MFAEnabled, u.UpdatedAt, u.Revision = true, e.Now, max(got.Revision, u.Revision+1)
		b.sameUser(got, u)
		b.stands(auth.Credentials{User: u, PasswordHash: "hash"})
		s, _, err := b.Session(b.ctx(), kept.ID, now)
		b.ok(err)
		moved.AAL, moved.AMR = e.Session.AAL, e.Session.AMR
		b.sameSession(s, moved)
		_, _, err = b.Session(b.ctx(), ended.ID, now)
		b.is(err, auth.ErrSessionEnded)
		_, _, err = b.Session(b.ctx(), foreign.ID, now)
		b.ok(err)
		b.has(sealed(u.ID))
		_, err = b.EnableFactor(b.ctx(), enable(u.ID, kept))
		b.is(err, auth.ErrConflict)
		b.is(b.PutFactor(b.ctx(), u.ID, []byte("x"), now), auth.ErrConflict)
	},
	"enabling makes a session that is not there": func(b *factorBench) {
		u := b.user("ada@example.com")
		s := b.newSession(u.ID)
		b.ok(b.PutFactor(b.ctx(), u.ID, []byte("sealed"), now))
		user, err := b.EnableFactor(b.ctx(), enable(u.ID, s))
		b.ok(err)
		if !user.LastSignInAt.Equal(s.CreatedAt) {
			b.Errorf("last sign-in %v", user.LastSignInAt)
		}
		got, _, err := b.Session(b.ctx(), s.ID, now)
		b.ok(err)
		b.sameSession(got, enable(u.ID, s).Session)
	},
	"an enabling that fails changes nothing": func(b *factorBench) {
		u := b.user("ada@example.com")
		s, ended := b.session(u.ID), b.session(u.ID)
		b.ok(b.PutFactor(b.ctx(), u.ID, []byte("sealed"), now))
		_, err := b.RevokeSessions(b.ctx(), u.ID, auth.SessionFilter{ID: ended.ID}, now)
		b.ok(err)
		u, err = b.UpdateUser(b.ctx(), u.ID, auth.UserPatch{BannedUntil: ptr(now.Add(us))}, now)
		b.ok(err)
		_, err = b.EnableFactor(b.ctx(), enable(u.ID, s))
		b.is(err, auth.ErrBanned)
		e := enable(u.ID, ended)
		e.Now = now.Add(us) // the ban is over
		_, err = b.EnableFactor(b.ctx(), e)
		b.is(err, auth.ErrStale)
		e = enable(u.ID, s)
		e.Now = s.IdleUntil
		_, err = b.EnableFactor(b.ctx(), e)
		b.is(err, auth.ErrStale)
		b.stands(auth.Credentials{User: u})
		b.has(auth.Factor{UserID: u.ID, Secret: []byte("sealed")})
		got, _, err := b.Session(b.ctx(), s.ID, now.Add(us))
		b.ok(err)
		b.sameSession(got, s)
	},
	"a patch that does not name the factor leaves it alone": func(b *factorBench) {
		for name, c := range b.ordinary() {
			b.Logf("patch: %s", name)
			u, _ := b.enrolled()
			got, err := b.UpdateUser(b.ctx(), u.ID, c.patch, now)
			b.ok(err)
			want := auth.Credentials{User: u, PasswordHash: "hash"}
			c.edit(&want)
			want.User.Revision = got.Revision
			b.sameUser(got, want.User)
			b.stands(want)
			b.has(sealed(u.ID))
			b.token(newToken("t", "subject"))
			_, got, err = b.RedeemToken(b.ctx(), auth.Redemption{Purpose: auth.PurposeMagicLink, Hash: hashOf("t"), Now: now, UserID: u.ID, Patch: &c.patch})
			b.ok(err)
			want.User.Revision = got.Revision
			b.stands(want)
			b.has(sealed(u.ID))
			b.recovers(u.ID, "r2", "r1")
			b.ok(b.DeleteUser(b.ctx(), u.ID))
		}
	},
	"a patch that is refused leaves the factor alone": func(b *factorBench) {
		u, _ := b.enrolled()
		for name, p := range b.refused(u) {
			b.Logf("refused: %s", name)
			if _, err := b.UpdateUser(b.ctx(), u.ID, p, now); err == nil {
				b.Error("applied all the same")
			}
			b.stands(auth.Credentials{User: u, PasswordHash: "hash"})
			b.has(sealed(u.ID))
		}
		b.recovers(u.ID, "r1", "r2")
	},
	"a session's life leaves the factor alone": func(b *factorBench) {
		u, _ := b.enrolled()
		s := b.newSession(u.ID)
		s.AAL = auth.LevelAAL2
		u, err := b.CreateSession(b.ctx(), auth.NewSession{Session: s})
		b.ok(err)
		_, err = b.advance(s.ID, 0, now)
		b.ok(err)
		_, got, err := b.RaiseSession(b.ctx(), s.ID, totp, now)
		b.ok(err)
		b.sameUser(got, u)
		_, err = b.RevokeSessions(b.ctx(), u.ID, auth.SessionFilter{}, now)
		b.ok(err)
		b.stands(auth.Credentials{User: u, PasswordHash: "hash"})
		b.has(sealed(u.ID))
		b.recovers(u.ID, "r1", "r2")
	},
	"using a factor leaves the rest of it and its user alone": func(b *factorBench) {
		u, _ := b.enrolled()
		want := sealed(u.ID)
		b.ok(b.UseTOTPStep(b.ctx(), u.ID, 200))
		want.LastStep = 200
		b.has(want)
		b.recovers(u.ID, "r1")
		want.RecoveryLeft = 1
		b.has(want)
		b.ok(b.PutRecoveryCodes(b.ctx(), u.ID, [][]byte{hashOf("n1"), hashOf("n2"), hashOf("n3")}))
		want.RecoveryLeft = 3
		b.has(want)
		b.stands(auth.Credentials{User: u, PasswordHash: "hash"})
	},
	"factors are copies": func(b *factorBench) {
		u := b.whole()
		secret := []byte("sealed")
		b.ok(b.PutFactor(b.ctx(), u.ID, secret, now))
		secret[0] = 'x'
		f, err := b.Factor(b.ctx(), u.ID)
		b.ok(err)
		f.Secret[0] = 'x'
		s := b.session(u.ID)
		e := enable(u.ID, s)
		enabled, err := b.EnableFactor(b.ctx(), e)
		b.ok(err)
		e.Secret[0], e.Recovery[0][0], e.Session.AMR[0].Method = 'x', e.Recovery[0][0]^1, "spoilt"
		b.has(sealed(u.ID))
		b.recovers(u.ID, "r1")
		raised, read, err := b.RaiseSession(b.ctx(), s.ID, totp, now)
		b.ok(err)
		raised.AMR[0].Method = "spoilt"
		kept, _, err := b.Session(b.ctx(), s.ID, now)
		b.ok(err)
		if kept.AMR[0] != s.AMR[0] {
			b.Errorf("session %+v", kept)
		}
		codes := [][]byte{hashOf("n1")}
		b.ok(b.PutRecoveryCodes(b.ctx(), u.ID, codes))
		codes[0][0] ^= 1
		b.recovers(u.ID, "n1")
		removed, err := b.RemoveFactor(b.ctx(), u.ID, now)
		b.ok(err)
		for _, shared := range []auth.User{enabled, read, removed} {
			shared.Roles[0] = "spoilt"
		}
		u, err = b.User(b.ctx(), auth.ByID(u.ID))
		b.ok(err)
		if u.Roles[0] != "r" {
			b.Errorf("the store shares memory with its callers: %+v", u)
		}
	},
	"an enabling raises nobody else's session": func(b *factorBench) {
		u := b.whole()
		foreign := b.session(b.user("eve@example.com").ID)
		b.ok(b.PutFactor(b.ctx(), u.ID, []byte("sealed"), now))
		e := enable(u.ID, foreign)
		_, err := b.EnableFactor(b.ctx(), e)
		b.is(err, auth.ErrStale)
		s, _, err := b.Session(b.ctx(), foreign.ID, now)
		b.ok(err)
		if s.AAL != auth.LevelAAL1 {
			b.Errorf("session %+v", s)
		}
	},
	"no session outlives an enabling without the factor": func(b *factorBench) {
		for range 20 {
			u := b.user("")
			kept := b.session(u.ID)
			b.ok(b.PutFactor(b.ctx(), u.ID, []byte("sealed"), now))
			b.race(func(i int) error {
				switch {
				case i == parallel/2:
					_, err := b.EnableFactor(b.ctx(), enable(u.ID, kept))
					return err
				case i%4 == 0:
					_, err := b.advance(kept.ID, 0, now)
					return err
				}
				_, err := b.CreateSession(b.ctx(), auth.NewSession{Session: b.newSession(u.ID)})
				return err
			}, auth.ErrMFARequired)
			list, err := b.Sessions(b.ctx(), u.ID, now)
			b.ok(err)
			if len(list) != 1 || list[0].ID != kept.ID || list[0].AAL != auth.LevelAAL2 || list[0].Counter != 1 {
				b.Fatalf("sessions %+v", list)
			}
		}
	},
	"parallel removals and enrolments leave user and factor at one": func(b *factorBench) {
		for range 20 {
			u := b.user("")
			b.ok(b.PutFactor(b.ctx(), u.ID, []byte("sealed"), now))
			b.race(func(i int) error {
				var err error
				switch i % 4 {
				case 0:
					_, err = b.RemoveFactor(b.ctx(), u.ID, now)
				case 1:
					err = b.PutFactor(b.ctx(), u.ID, []byte("sealed"), now)
				case 2:
					_, err = b.EnableFactor(b.ctx(), enable(u.ID, b.newSession(u.ID)))
				case 3:
					_, err = b.UpdateUser(b.ctx(), u.ID, auth.UserPatch{RemoveFactor: i%8 == 3, FullName: ptr("x")}, now)
				}
				return err
			}, auth.ErrNotFound, auth.ErrConflict, auth.ErrStale)
			got, err := b.User(b.ctx(), auth.ByID(u.ID))
			b.ok(err)
			f, err := b.Factor(b.ctx(), u.ID)
			if err != nil {
				b.is(err, auth.ErrNotFound)
			}
			if got.MFAEnabled != f.Enabled {
				b.Fatalf("user %v, factor %v", got.MFAEnabled, f.Enabled)
			}
		}
	},
	"of parallel enablings one wins": func(b *factorBench) {
		u := b.user("ada@example.com")
		b.ok(b.PutFactor(b.ctx(), u.ID, []byte("sealed"), now))
		won, _ := b.race(func(int) error {
			_, err := b.EnableFactor(b.ctx(), enable(u.ID, b.newSession(u.ID)))
			return err
		}, auth.ErrConflict)
		if won != 1 {
			b.Errorf("%d won", won)
		}
	},
	"a step is used once, and never an older one": func(b *factorBench) {
		u, _ := b.enrolled()
		b.is(b.UseTOTPStep(b.ctx(), u.ID, 100), auth.ErrStale)
		b.is(b.UseTOTPStep(b.ctx(), u.ID, 99), auth.ErrStale)
		b.ok(b.UseTOTPStep(b.ctx(), u.ID, 102))
		b.is(b.UseTOTPStep(b.ctx(), u.ID, 102), auth.ErrStale)
		b.is(b.UseTOTPStep(b.ctx(), u.ID, 101), auth.ErrStale)
		b.ok(b.UseTOTPStep(b.ctx(), u.ID, 103))
	},
	"of parallel uses of a step one wins": func(b *factorBench) {
		u, _ := b.enrolled()
		won, lost := b.race(func(int) error { return b.UseTOTPStep(b.ctx(), u.ID, 101) }, auth.ErrStale)
		if won != 1 || lost[auth.ErrStale] != parallel-1 {
			b.Errorf("%d won, %v", won, lost)
		}
	},
	"a recovery code works once": func(b *factorBench) {
		u, _ := b.enrolled()
		left, err := b.UseRecoveryCode(b.ctx(), u.ID, hashOf("r1"))
		b.ok(err)
		if left != 1 {
			b.Errorf("%d left", left)
		}
		_, err = b.UseRecoveryCode(b.ctx(), u.ID, hashOf("r1"))
		b.is(err, auth.ErrNotFound)
		b.ok(b.PutRecoveryCodes(b.ctx(), u.ID, [][]byte{hashOf("n1")}))
		_, err = b.UseRecoveryCode(b.ctx(), u.ID, hashOf("r2"))
		b.is(err, auth.ErrNotFound)
		_, err = b.UseRecoveryCode(b.ctx(), u.ID, hashOf("n1"))
		b.ok(err)
	},
	"of parallel uses of a recovery code one wins": func(b *factorBench) {
		u, _ := b.enrolled()
		won, lost := b.race(func(int) error {
			_, err := b.UseRecoveryCode(b.ctx(), u.ID, hashOf("r1"))
			return err
		}, auth.ErrNotFound)
		if won != 1 || lost[auth.ErrNotFound] != parallel-1 {
			b.Errorf("%d won, %v", won, lost)
		}
	},
	"removing forgets everything": func(b *factorBench) {
		u, s := b.enrolled()
		got, err := b.RemoveFactor(b.ctx(), u.ID, now.Add(us))
		b.ok(err)
		u.MFAEnabled, u.UpdatedAt, u.Revision = false, now.Add(us), max(got.Revision, u.Revision+1)
		b.sameUser(got, u)
		b.stands(auth.Credentials{User: u, PasswordHash: "hash"})
		_, _, err = b.Session(b.ctx(), s.ID, now) // goes on
		b.ok(err)
		b.forgotten(u.ID)
	},
	"a patch removes the factor": func(b *factorBench) {
		u, _ := b.enrolled()
		got, err := b.UpdateUser(b.ctx(), u.ID, auth.UserPatch{RemoveFactor: true}, now)
		b.ok(err)
		u.MFAEnabled, u.Revision = false, max(got.Revision, u.Revision+1)
		b.sameUser(got, u)
		b.stands(auth.Credentials{User: u, PasswordHash: "hash"})
		b.forgotten(u.ID)
		_, err = b.UpdateUser(b.ctx(), b.user("").ID, auth.UserPatch{RemoveFactor: true}, now)
		b.ok(err) // there was none
	},
	"a factor goes with its user": func(b *factorBench) {
		u, _ := b.enrolled()
		b.ok(b.DeleteUser(b.ctx(), u.ID))
		_, err := b.Factor(b.ctx(), u.ID)
		b.is(err, auth.ErrNotFound)
		b.is(b.PutFactor(b.ctx(), u.ID, []byte("x"), now), auth.ErrNotFound)
	},
	"raising lifts a live session": func(b *factorBench) {
		want := auth.Credentials{User: b.whole(), PasswordHash: "hash"}
		s, ended := b.session(want.User.ID), b.session(want.User.ID)
		want.User.LastSignInAt = now
		_, err := b.RevokeSessions(b.ctx(), s.UserID, auth.SessionFilter{ID: ended.ID}, now)
		b.ok(err)
		moved, err := b.advance(s.ID, 0, now)
		b.ok(err)
		for i := range 2 { // a second proof is added, too
			proof := auth.AMR{Method: "totp", Timestamp: now.Unix() + int64(i)}
			moved.AAL, moved.AMR = auth.LevelAAL2, append(moved.AMR, proof)
			got, user, err := b.RaiseSession(b.ctx(), s.ID, proof, now.Add(minute))
			b.ok(err)
			b.sameSession(got, moved)
			b.sameUser(user, want.User)
			read, _, err := b.Session(b.ctx(), s.ID, now)
			b.ok(err)
			b.sameSession(read, moved)
			b.stands(want)
		}
		_, _, err = b.RaiseSession(b.ctx(), ended.ID, totp, now)
		b.is(err, auth.ErrSessionEnded)
		_, _, err = b.RaiseSession(b.ctx(), s.ID, totp, moved.IdleUntil)
		b.is(err, auth.ErrSessionEnded)
		_, _, err = b.RaiseSession(b.ctx(), b.id(), totp, now)
		b.is(err, auth.ErrNotFound)
		_, err = b.UpdateUser(b.ctx(), s.UserID, auth.UserPatch{BannedUntil: ptr(now.Add(us))}, now)
		b.ok(err)
		_, _, err = b.RaiseSession(b.ctx(), s.ID, totp, now)
		b.is(err, auth.ErrBanned)
	},
	"a caller who has gone changes nothing": func(b *factorBench) {
		u, s := b.enrolled()
		pending := b.user("eve@example.com")
		b.gone(b.PutFactor(cancelled(), pending.ID, []byte("x"), now))
		_, err := b.Factor(b.ctx(), pending.ID)
		b.is(err, auth.ErrNotFound)
		b.ok(b.PutFactor(b.ctx(), pending.ID, []byte("sealed"), now))
		_, err = b.EnableFactor(cancelled(), enable(pending.ID, b.newSession(pending.ID)))
		b.gone(err)
		b.has(auth.Factor{UserID: pending.ID, Secret: []byte("sealed")})
		_, err = b.Factor(cancelled(), u.ID)
		b.gone(err)
		b.gone(b.PutRecoveryCodes(cancelled(), u.ID, nil))
		b.gone(b.UseTOTPStep(cancelled(), u.ID, 200))
		_, err = b.UseRecoveryCode(cancelled(), u.ID, hashOf("r1"))
		b.gone(err)
		_, err = b.RemoveFactor(cancelled(), u.ID, now)
		b.gone(err)
		_, _, err = b.RaiseSession(cancelled(), s.ID, auth.AMR{}, now)
		b.gone(err)
		b.ok(b.UseTOTPStep(b.ctx(), u.ID, 200))
		_, err = b.UseRecoveryCode(b.ctx(), u.ID, hashOf("r1"))
		b.ok(err)
	},
}
