package storetest

import (
	"bytes"
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

// enable describes the end of an enrolment on a session.
func enable(userID string, s auth.Session) auth.EnableFactor {
	s.AAL = auth.LevelAAL2
	return auth.EnableFactor{UserID: userID, Secret: []byte("sealed"), Step: 100, Recovery: [][]byte{hashOf("r1"), hashOf("r2")}, Session: s, Now: now}
}

// enrolled adds a user with a factor, and the session it was enabled on.
func (b *factorBench) enrolled() (auth.User, auth.Session) {
	b.Helper()
	u := b.user("ada@example.com")
	s := b.session(u.ID)
	b.ok(b.PutFactor(b.ctx(), u.ID, []byte("sealed"), now))
	u, err := b.EnableFactor(b.ctx(), enable(u.ID, s))
	b.ok(err)
	return u, s
}

var factors = map[string]func(*factorBench){
	"a factor is pending until it is enabled": func(b *factorBench) {
		u := b.user("ada@example.com")
		_, err := b.Factor(b.ctx(), u.ID)
		b.is(err, auth.ErrNotFound)
		b.is(b.PutFactor(b.ctx(), b.id(), []byte("x"), now), auth.ErrNotFound)
		b.ok(b.PutFactor(b.ctx(), u.ID, []byte("first"), now))
		b.ok(b.PutFactor(b.ctx(), u.ID, []byte("sealed"), now))
		f, err := b.Factor(b.ctx(), u.ID)
		b.ok(err)
		if f.Enabled || !bytes.Equal(f.Secret, []byte("sealed")) || f.UserID != u.ID {
			b.Errorf("factor %+v", f)
		}
		b.is(b.UseTOTPStep(b.ctx(), u.ID, 7), auth.ErrStale)
		got, err := b.User(b.ctx(), auth.ByID(u.ID))
		b.ok(err)
		if got.MFAEnabled {
			b.Error("enabled already")
		}
	},
	"enabling raises one session and ends the others": func(b *factorBench) {
		u, other := b.user("ada@example.com"), b.user("eve@example.com")
		kept, ended, foreign := b.session(u.ID), b.session(u.ID), b.session(other.ID)
		_, err := b.EnableFactor(b.ctx(), enable(u.ID, kept))
		b.is(err, auth.ErrNotFound)
		b.ok(b.PutFactor(b.ctx(), u.ID, []byte("other"), now))
		_, err = b.EnableFactor(b.ctx(), enable(u.ID, kept))
		b.is(err, auth.ErrStale) // replaced meanwhile
		b.ok(b.PutFactor(b.ctx(), u.ID, []byte("sealed"), now))
		got, err := b.EnableFactor(b.ctx(), enable(u.ID, kept))
		b.ok(err)
		if !got.MFAEnabled || got.Revision <= u.Revision {
			b.Errorf("user %+v", got)
		}
		s, _, err := b.Session(b.ctx(), kept.ID, now)
		b.ok(err)
		if s.AAL != auth.LevelAAL2 {
			b.Errorf("session %+v", s)
		}
		_, _, err = b.Session(b.ctx(), ended.ID, now)
		b.is(err, auth.ErrSessionEnded)
		_, _, err = b.Session(b.ctx(), foreign.ID, now)
		b.ok(err)
		f, err := b.Factor(b.ctx(), u.ID)
		b.ok(err)
		if !f.Enabled || f.LastStep != 100 || f.RecoveryLeft != 2 {
			b.Errorf("factor %+v", f)
		}
		_, err = b.EnableFactor(b.ctx(), enable(u.ID, kept))
		b.is(err, auth.ErrConflict)
		b.is(b.PutFactor(b.ctx(), u.ID, []byte("x"), now), auth.ErrConflict)
	},
	"enabling makes a session that is not there": func(b *factorBench) {
		u := b.user("ada@example.com")
		s := b.newSession(u.ID)
		b.ok(b.PutFactor(b.ctx(), u.ID, []byte("sealed"), now))
		_, err := b.EnableFactor(b.ctx(), enable(u.ID, s))
		b.ok(err)
		got, _, err := b.Session(b.ctx(), s.ID, now)
		b.ok(err)
		if got.AAL != auth.LevelAAL2 {
			b.Errorf("session %+v", got)
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
		u, _ := b.enrolled()
		got, err := b.RemoveFactor(b.ctx(), u.ID, now)
		b.ok(err)
		if got.MFAEnabled {
			b.Errorf("user %+v", got)
		}
		_, err = b.RemoveFactor(b.ctx(), u.ID, now)
		b.is(err, auth.ErrNotFound)
		_, err = b.Factor(b.ctx(), u.ID)
		b.is(err, auth.ErrNotFound)
		_, err = b.UseRecoveryCode(b.ctx(), u.ID, hashOf("r2"))
		b.is(err, auth.ErrNotFound)
		b.is(b.PutRecoveryCodes(b.ctx(), u.ID, nil), auth.ErrNotFound)
		_, err = b.CreateSession(b.ctx(), auth.NewSession{Session: b.newSession(u.ID)})
		b.ok(err)
	},
	"a patch removes the factor": func(b *factorBench) {
		u, _ := b.enrolled()
		got, err := b.UpdateUser(b.ctx(), u.ID, auth.UserPatch{RemoveFactor: true}, now)
		b.ok(err)
		if got.MFAEnabled {
			b.Errorf("user %+v", got)
		}
		_, err = b.Factor(b.ctx(), u.ID)
		b.is(err, auth.ErrNotFound)
	},
	"a factor goes with its user": func(b *factorBench) {
		u, _ := b.enrolled()
		b.ok(b.DeleteUser(b.ctx(), u.ID))
		_, err := b.Factor(b.ctx(), u.ID)
		b.is(err, auth.ErrNotFound)
		b.is(b.PutFactor(b.ctx(), u.ID, []byte("x"), now), auth.ErrNotFound)
	},
	"raising lifts a live session": func(b *factorBench) {
		u := b.user("ada@example.com")
		s, ended := b.session(u.ID), b.session(u.ID)
		_, err := b.RevokeSessions(b.ctx(), u.ID, auth.SessionFilter{ID: ended.ID}, now)
		b.ok(err)
		proof := auth.AMR{Method: "totp", Timestamp: now.Unix()}
		got, _, err := b.RaiseSession(b.ctx(), s.ID, proof, now)
		b.ok(err)
		if got.AAL != auth.LevelAAL2 || len(got.AMR) != 2 || got.AMR[1] != proof {
			b.Errorf("session %+v", got)
		}
		_, _, err = b.RaiseSession(b.ctx(), ended.ID, proof, now)
		b.is(err, auth.ErrSessionEnded)
		_, _, err = b.RaiseSession(b.ctx(), b.id(), proof, now)
		b.is(err, auth.ErrNotFound)
	},
	"a caller who has gone changes nothing": func(b *factorBench) {
		u, s := b.enrolled()
		b.gone(b.UseTOTPStep(cancelled(), u.ID, 200))
		_, err := b.UseRecoveryCode(cancelled(), u.ID, hashOf("r1"))
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
