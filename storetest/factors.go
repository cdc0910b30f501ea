package storetest

import (
	"slices"

	"github.com/authmount/auth/store"
)

// totp is an authentication with the factor.
var totp = store.AMR{Method: "totp", Timestamp: now.Unix()}

// newFactor describes a pending factor.
func (b *bench) newFactor(userID string) store.Factor {
	b.Helper()
	return store.Factor{ID: b.id(), UserID: userID, Kind: store.FactorTOTP, Required: true, Label: "phone", Secret: []byte("sealed"), State: []byte("0"), CreatedAt: now}
}

func (b *bench) putFactor(f store.Factor) error {
	return b.factors.PutFactor(b.ctx(), store.PutFactor{Change: by(now), Factor: f})
}

// pending adds a pending factor.
func (b *bench) pending(userID string) store.Factor {
	b.Helper()
	f := b.newFactor(userID)
	b.ok(b.putFactor(f))
	return f
}

// enabling describes the end of an enrolment within a session.
func enabling(f store.Factor, s store.Session) store.EnableFactor {
	return store.EnableFactor{
		Change: by(now), UserID: f.UserID, FactorID: f.ID, State: []byte("100"), Recovery: [][]byte{hashOf("r1"), hashOf("r2")},
		Completion: store.Completion{Raise: &store.RaisedLevel{SessionID: s.ID, Method: totp}},
	}
}

// enablingAnew describes the end of an enrolment with a new session.
func enablingAnew(f store.Factor, s store.Session) store.EnableFactor {
	e := enabling(f, s)
	e.Completion = store.Completion{Create: &store.NewSession{Session: raised(s)}}
	return e
}

// raised returns a session after a second factor.
func raised(s store.Session) store.Session {
	s.AAL, s.AMR = store.LevelAAL2, append(slices.Clip(s.AMR), totp)
	return s
}

// enable enables a factor within a session.
func (b *bench) enable(f store.Factor, s store.Session) (store.User, error) {
	done, err := b.factors.EnableFactor(b.ctx(), enabling(f, s))
	return done.User, err
}

// enableAnew enables a factor with a new session.
func (b *bench) enableAnew(f store.Factor, s store.Session) (store.User, error) {
	done, err := b.factors.EnableFactor(b.ctx(), enablingAnew(f, s))
	return done.User, err
}

// enrolled adds a user of whole with a factor, and the session that it was enabled in. It
// returns the stored factor.
func (b *bench) enrolled() (store.User, store.Session, store.Factor) {
	b.Helper()
	return b.enrol(b.whole())
}

// enrol gives a user a factor.
func (b *bench) enrol(u store.User) (store.User, store.Session, store.Factor) {
	b.Helper()
	s, f := b.session(u.ID), b.pending(u.ID)
	u, err := b.enable(f, s)
	b.ok(err)
	f.Enabled, f.State = true, []byte("100")
	return u, s, f
}

// has checks a user's only factor and number of recovery codes.
func (b *bench) has(want store.Factor, left int) {
	b.Helper()
	got, err := b.factors.Factors(b.ctx(), want.UserID)
	b.ok(err)
	if len(got.List) == 1 && want.LastUsedAt.IsZero() {
		got.List[0].LastUsedAt = want.LastUsedAt // may be set by the enabling
	}
	got.Recovery = store.Origin{}
	for i := range got.List {
		got.List[i].Origin = store.Origin{}
	}
	want.Origin = store.Origin{}
	equal(b, "Factors", got, store.Factors{List: []store.Factor{want}, RecoveryLeft: left})
}

// hasNone checks that a user has neither factors nor recovery codes.
func (b *bench) hasNone(userID string) {
	b.Helper()
	got, err := b.factors.Factors(b.ctx(), userID)
	b.ok(err)
	equal(b, "Factors", got, store.Factors{List: []store.Factor{}})
}

// using describes a use of a factor that gives it a new state.
func using(f store.Factor, state string) store.UseFactor {
	return store.UseFactor{Change: by(now), UserID: f.UserID, FactorID: f.ID, State: f.State, NewState: []byte(state)}
}

// useFactor uses a factor as it was read and gives it a new state.
func (b *bench) useFactor(f store.Factor, state string) error {
	_, err := b.factors.UseFactor(b.ctx(), using(f, state))
	return err
}

// raise raises a session by the use of a factor as it was read.
func (b *bench) raise(f store.Factor, state, sessionID string) (store.FactorResult, error) {
	c := using(f, state)
	c.Raise = &store.RaisedLevel{SessionID: sessionID, Method: totp}
	return b.factors.UseFactor(b.ctx(), c)
}

// recover uses a recovery code.
func (b *bench) recover(userID string, code ...string) (int, error) {
	c := store.UseRecoveryCode{Change: by(now), UserID: userID}
	for _, s := range code {
		c.Hashes = append(c.Hashes, hashOf(s))
	}
	done, err := b.factors.UseRecoveryCode(b.ctx(), c)
	return done.RecoveryLeft, err
}

// recovers checks that recovery codes are valid, and uses them up.
func (b *bench) recovers(userID string, codes ...string) {
	b.Helper()
	for _, c := range codes {
		_, err := b.recover(userID, c)
		b.ok(err)
	}
}

// renew replaces the recovery codes.
func (b *bench) renew(userID string, codes ...string) error {
	c := store.PutRecoveryCodes{Change: by(now), UserID: userID}
	for _, s := range codes {
		c.Hashes = append(c.Hashes, hashOf(s))
	}
	return b.factors.PutRecoveryCodes(b.ctx(), c)
}

func (b *bench) removeFactor(userID, factorID string) (store.User, error) {
	return b.factors.RemoveFactor(b.ctx(), store.RemoveFactor{Change: by(now), UserID: userID, FactorID: factorID})
}

// forgotten checks that nothing is left of a factor, not even for the next one.
func (b *bench) forgotten(f store.Factor) {
	b.Helper()
	b.hasNone(f.UserID)
	_, err := b.removeFactor(f.UserID, "")
	b.is(err, store.ErrNotFound)
	_, err = b.recover(f.UserID, "r2")
	b.is(err, store.ErrNotFound)
	b.is(b.renew(f.UserID, "n1"), store.ErrNotFound)
	b.is(b.useFactor(f, "200"), store.ErrNotFound)
	next, s := b.pending(f.UserID), b.session(f.UserID)
	e := enabling(next, s)
	e.State, e.Recovery = []byte("7"), [][]byte{hashOf("n1")}
	_, err = b.factors.EnableFactor(b.ctx(), e)
	b.ok(err)
	next.Enabled, next.State = true, []byte("7")
	b.has(next, 1)
	_, err = b.recover(f.UserID, "r2")
	b.is(err, store.ErrNotFound)
}

// factors checks enrolment and removal of a factor.
func factors() checks {
	return checks{
		"a factor is pending until it is enabled": func(b *bench) {
			u := b.user("ada@example.com")
			b.hasNone(u.ID)
			b.hasNone(b.id())
			b.is(b.putFactor(b.newFactor(b.id())), store.ErrNotFound)
			first, f := b.pending(u.ID), b.pending(u.ID)
			for _, none := range []store.Factor{first, f} {
				b.is(b.useFactor(none, "7"), store.ErrNotFound)
				_, err := b.removeFactor(u.ID, none.ID)
				b.is(err, store.ErrNotFound)
			}
			b.is(b.renew(u.ID, "r1"), store.ErrNotFound)
			_, err := b.recover(u.ID, "r1")
			b.is(err, store.ErrNotFound)
			b.has(f, 0)
			b.stands(store.Credentials{User: u})
			b.session(u.ID)
		},
		"enabling raises one session and ends the others": func(b *bench) {
			u, other := b.whole(), b.user("eve@example.com")
			kept, ended, foreign := b.session(u.ID), b.session(u.ID), b.session(other.ID)
			u.LastSignInAt = now
			_, err := b.enable(b.newFactor(u.ID), kept)
			b.is(err, store.ErrNotFound)
			replaced, f := b.pending(u.ID), b.pending(u.ID)
			_, err = b.enable(replaced, kept)
			b.is(err, store.ErrNotFound)
			moved, err := b.advance(kept.ID, 0, now)
			b.ok(err)
			e := enabling(f, kept)
			e.Now = now.Add(us)
			done, err := b.factors.EnableFactor(b.ctx(), e)
			b.ok(err)
			got := done.User
			u.MFAEnabled, u.UpdatedAt = true, e.Now
			u.Revision, u.CredentialRevision = max(got.Revision, u.Revision+1), max(got.CredentialRevision, u.CredentialRevision+1)
			b.sameUser(got, u)
			b.stands(store.Credentials{User: u, PasswordHash: "hash"})
			s, _, err := b.Session(b.ctx(), kept.ID, now)
			b.ok(err)
			b.sameSession(s, raised(moved))
			b.sameSession(done.Session, s)
			_, _, err = b.Session(b.ctx(), ended.ID, now)
			b.is(err, store.ErrSessionEnded)
			_, _, err = b.Session(b.ctx(), foreign.ID, now)
			b.ok(err)
			f.Enabled, f.State = true, []byte("100")
			b.has(f, 2)
			_, err = b.enable(f, kept)
			b.of("a factor that is enabled").conflict(err, "factor")
			b.of("a second factor of a kind that is not Several").conflict(b.putFactor(b.newFactor(u.ID)), "factor")
			b.has(f, 2)
		},
		"enabling creates a session": func(b *bench) {
			u := b.user("ada@example.com")
			s, f := b.newSession(u.ID), b.pending(u.ID)
			user, err := b.enableAnew(f, s)
			b.ok(err)
			equal(b, "User.LastSignInAt", user.LastSignInAt, s.CreatedAt)
			got, _, err := b.Session(b.ctx(), s.ID, now)
			b.ok(err)
			b.sameSession(got, raised(s))
		},
		"an enabling that fails changes nothing": func(b *bench) {
			u := b.user("ada@example.com")
			s, ended, f := b.session(u.ID), b.session(u.ID), b.pending(u.ID)
			_, err := b.revoke(u.ID, store.SessionFilter{ID: ended.ID})
			b.ok(err)
			u, err = b.update(u.ID, store.UserPatch{BannedUntil: ptr(now.Add(us))})
			b.ok(err)
			t := newToken("t", "subject")
			t.UserID = u.ID
			b.token(t)
			used := &store.TokenRef{Purpose: t.Purpose, Hash: t.Hash}
			e := enabling(f, s)
			e.Redeem = used
			_, err = b.factors.EnableFactor(b.ctx(), e)
			b.is(err, store.ErrBanned)
			e = enabling(f, ended)
			e.Now, e.Redeem = now.Add(us), used // the ban has expired
			_, err = b.factors.EnableFactor(b.ctx(), e)
			b.is(err, store.ErrSessionEnded)
			e = enabling(f, s)
			e.Now = s.IdleUntil
			_, err = b.factors.EnableFactor(b.ctx(), e)
			b.is(err, store.ErrSessionEnded)
			e = enabling(f, s)
			e.Now, e.Redeem = now.Add(us), &store.TokenRef{Purpose: t.Purpose, Hash: hashOf("other")}
			_, err = b.factors.EnableFactor(b.ctx(), e)
			b.is(err, store.ErrNotFound)
			b.stands(store.Credentials{User: u})
			b.has(f, 0)
			got, _, err := b.Session(b.ctx(), s.ID, now.Add(us))
			b.ok(err)
			b.sameSession(got, s)
			b.ok(b.redeem("t")) // still valid
		},
		"enabling uses up its token": func(b *bench) {
			u := b.user("ada@example.com")
			f := b.pending(u.ID)
			t := newToken("t", "subject")
			t.Purpose, t.UserID = store.PurposeEnroll, u.ID
			b.token(t)
			e := enablingAnew(f, b.newSession(u.ID))
			e.By, e.Redeem = store.Authority{Proof: true}, &store.TokenRef{Purpose: t.Purpose, Hash: t.Hash}
			_, err := b.factors.EnableFactor(b.ctx(), e)
			b.ok(err)
			_, err = b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
			b.is(err, store.ErrNotFound)
		},
		"an enabling raises nobody else's session": func(b *bench) {
			u := b.whole()
			foreign, f := b.session(b.user("eve@example.com").ID), b.pending(u.ID)
			_, err := b.enable(f, foreign)
			b.is(err, store.ErrSessionEnded)
			_, err = b.enable(f, store.Session{ID: b.id()})
			b.is(err, store.ErrSessionEnded)
			s, _, err := b.Session(b.ctx(), foreign.ID, now)
			b.ok(err)
			b.sameSession(s, foreign)
			b.has(f, 0)
		},
		"an enabling enables nobody else's factor": func(b *bench) {
			u, eve := b.whole(), b.user("eve@example.com")
			s, f := b.session(u.ID), b.pending(eve.ID)
			e := enabling(f, s)
			e.UserID = u.ID
			_, err := b.factors.EnableFactor(b.ctx(), e)
			b.is(err, store.ErrNotFound)
			b.has(f, 0)
			b.stands(store.Credentials{User: eve})
		},
		"a second factor is not skipped": func(b *bench) {
			u, _, _ := b.enrolled()
			s := b.newSession(u.ID)
			_, err := b.signIn(s)
			b.is(err, store.ErrMFARequired)
			_, _, err = b.Session(b.ctx(), s.ID, now)
			b.is(err, store.ErrNotFound)
			s.AAL = store.LevelAAL2
			_, err = b.signIn(s)
			b.ok(err)
		},
		"removing forgets everything": func(b *bench) {
			for _, named := range []bool{true, false} {
				u, s, f := b.enrolled()
				r := store.RemoveFactor{Change: by(now.Add(us)), UserID: u.ID}
				if named {
					r.FactorID = f.ID
				}
				got, err := b.factors.RemoveFactor(b.ctx(), r)
				b.ok(err)
				u.MFAEnabled, u.UpdatedAt = false, now.Add(us)
				u.Revision, u.CredentialRevision = max(got.Revision, u.Revision+1), max(got.CredentialRevision, u.CredentialRevision+1)
				b.sameUser(got, u)
				b.stands(store.Credentials{User: u, PasswordHash: "hash"})
				_, _, err = b.Session(b.ctx(), s.ID, now) // still live
				b.ok(err)
				b.forgotten(f)
				b.ok(b.delete(u.ID))
			}
		},
		"a removal names a factor of the user": func(b *bench) {
			u, _, f := b.enrolled()
			eve, _, other := b.enrol(b.user("eve@example.com"))
			for _, id := range []string{other.ID, b.id()} {
				_, err := b.removeFactor(u.ID, id)
				b.is(err, store.ErrNotFound)
			}
			_, err := b.removeFactor(b.id(), "")
			b.is(err, store.ErrNotFound)
			b.stands(store.Credentials{User: u, PasswordHash: "hash"})
			b.stands(store.Credentials{User: eve})
			b.has(f, 2)
			b.has(other, 2)
		},
		"a patch removes the factor": func(b *bench) {
			u, _, f := b.enrolled()
			got, err := b.update(u.ID, store.UserPatch{DropFactors: true})
			b.ok(err)
			u.MFAEnabled, u.Revision, u.CredentialRevision = false, max(got.Revision, u.Revision+1), max(got.CredentialRevision, u.CredentialRevision+1)
			b.sameUser(got, u)
			b.stands(store.Credentials{User: u, PasswordHash: "hash"})
			b.forgotten(f)
			other := b.user("")
			_, err = b.update(other.ID, store.UserPatch{DropFactors: true})
			b.ok(err) // there was no factor
			b.pending(other.ID)
			_, err = b.update(other.ID, store.UserPatch{DropFactors: true})
			b.ok(err)
			b.hasNone(other.ID)
		},
		"a factor goes with its user": func(b *bench) {
			u, _, f := b.enrolled()
			b.ok(b.delete(u.ID))
			b.hasNone(u.ID)
			b.is(b.putFactor(b.newFactor(u.ID)), store.ErrNotFound)
			b.is(b.useFactor(f, "200"), store.ErrNotFound)
		},
	}
}
