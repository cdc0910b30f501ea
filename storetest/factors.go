package storetest

import (
	"slices"

	"github.com/authmount/auth"
)

// totp is a proof by the factor.
var totp = auth.AMR{Method: "totp", Timestamp: now.Unix()}

// newFactor describes a pending factor.
func (b *bench) newFactor(userID string) auth.Factor {
	b.Helper()
	return auth.Factor{ID: b.id(), UserID: userID, Kind: auth.FactorTOTP, Label: "phone", Secret: []byte("sealed"), CreatedAt: now}
}

func (b *bench) putFactor(f auth.Factor) error {
	return b.factors.PutFactor(b.ctx(), auth.PutFactor{Change: by(now), Factor: f})
}

// pending adds a pending factor.
func (b *bench) pending(userID string) auth.Factor {
	b.Helper()
	f := b.newFactor(userID)
	b.ok(b.putFactor(f))
	return f
}

// enabling describes the end of an enrolment on a session.
func enabling(f auth.Factor, s auth.Session) auth.EnableFactor {
	s.AAL, s.AMR = auth.LevelAAL2, append(slices.Clip(s.AMR), totp)
	return auth.EnableFactor{
		Change: by(now), UserID: f.UserID, FactorID: f.ID, Step: 100, Recovery: [][]byte{hashOf("r1"), hashOf("r2")}, Session: s,
	}
}

func (b *bench) enable(f auth.Factor, s auth.Session) (auth.User, error) {
	return b.factors.EnableFactor(b.ctx(), enabling(f, s))
}

// enrolled adds a whole user with a factor, and the session it was enabled on.
// The factor is as the store keeps it.
func (b *bench) enrolled() (auth.User, auth.Session, auth.Factor) {
	b.Helper()
	return b.enrol(b.whole())
}

// enrol gives a user a factor.
func (b *bench) enrol(u auth.User) (auth.User, auth.Session, auth.Factor) {
	b.Helper()
	s, f := b.session(u.ID), b.pending(u.ID)
	u, err := b.enable(f, s)
	b.ok(err)
	f.Enabled, f.LastStep = true, 100
	return u, s, f
}

// has wants a user's one factor and recovery codes as the store keeps them.
func (b *bench) has(want auth.Factor, left int) {
	b.Helper()
	got, err := b.factors.Factors(b.ctx(), want.UserID)
	b.ok(err)
	if len(got.List) == 1 && want.LastUsedAt.IsZero() {
		got.List[0].LastUsedAt = want.LastUsedAt // may be the enabling's
	}
	equal(b, "Factors", got, auth.Factors{List: []auth.Factor{want}, RecoveryLeft: left})
}

// hasNone wants neither factors nor recovery codes.
func (b *bench) hasNone(userID string) {
	b.Helper()
	got, err := b.factors.Factors(b.ctx(), userID)
	b.ok(err)
	equal(b, "Factors", got, auth.Factors{List: []auth.Factor{}})
}

// step uses a time step of a factor.
func (b *bench) step(f auth.Factor, step int64) error {
	return b.factors.UseTOTPStep(b.ctx(), auth.UseTOTPStep{Change: by(now), UserID: f.UserID, FactorID: f.ID, Step: step})
}

// recover uses a recovery code.
func (b *bench) recover(userID string, code ...string) (int, error) {
	c := auth.UseRecoveryCode{Change: by(now), UserID: userID}
	for _, s := range code {
		c.Hashes = append(c.Hashes, hashOf(s))
	}
	return b.factors.UseRecoveryCode(b.ctx(), c)
}

// recovers wants these recovery codes to be good, and uses them up.
func (b *bench) recovers(userID string, codes ...string) {
	b.Helper()
	for _, c := range codes {
		_, err := b.recover(userID, c)
		b.ok(err)
	}
}

// renew replaces the recovery codes.
func (b *bench) renew(userID string, codes ...string) error {
	c := auth.PutRecoveryCodes{Change: by(now), UserID: userID}
	for _, s := range codes {
		c.Hashes = append(c.Hashes, hashOf(s))
	}
	return b.factors.PutRecoveryCodes(b.ctx(), c)
}

func (b *bench) removeFactor(userID, factorID string) (auth.User, error) {
	return b.factors.RemoveFactor(b.ctx(), auth.RemoveFactor{Change: by(now), UserID: userID, FactorID: factorID})
}

// forgotten wants nothing left of a factor, not even for the next one.
func (b *bench) forgotten(f auth.Factor) {
	b.Helper()
	b.hasNone(f.UserID)
	_, err := b.removeFactor(f.UserID, "")
	b.is(err, auth.ErrNotFound)
	_, err = b.recover(f.UserID, "r2")
	b.is(err, auth.ErrNotFound)
	b.is(b.renew(f.UserID, "n1"), auth.ErrNotFound)
	b.is(b.step(f, 200), auth.ErrNotFound)
	next, s := b.pending(f.UserID), b.session(f.UserID)
	e := enabling(next, s)
	e.Step, e.Recovery = 7, [][]byte{hashOf("n1")}
	_, err = b.factors.EnableFactor(b.ctx(), e)
	b.ok(err)
	next.Enabled, next.LastStep = true, 7
	b.has(next, 1)
	_, err = b.recover(f.UserID, "r2")
	b.is(err, auth.ErrNotFound)
}

// factors are the checks of how a factor begins and ends.
func factors() checks {
	return checks{
		"a factor is pending until it is enabled": func(b *bench) {
			u := b.user("ada@example.com")
			b.hasNone(u.ID)
			b.hasNone(b.id())
			b.is(b.putFactor(b.newFactor(b.id())), auth.ErrNotFound)
			first, f := b.pending(u.ID), b.pending(u.ID)
			for _, none := range []auth.Factor{first, f} {
				b.is(b.step(none, 7), auth.ErrNotFound)
				_, err := b.removeFactor(u.ID, none.ID)
				b.is(err, auth.ErrNotFound)
			}
			b.is(b.renew(u.ID, "r1"), auth.ErrNotFound)
			_, err := b.recover(u.ID, "r1")
			b.is(err, auth.ErrNotFound)
			b.has(f, 0)
			b.stands(auth.Credentials{User: u})
			b.session(u.ID)
		},
		"enabling raises one session and ends the others": func(b *bench) {
			u, other := b.whole(), b.user("eve@example.com")
			kept, ended, foreign := b.session(u.ID), b.session(u.ID), b.session(other.ID)
			u.LastSignInAt = now
			_, err := b.enable(b.newFactor(u.ID), kept)
			b.is(err, auth.ErrNotFound)
			replaced, f := b.pending(u.ID), b.pending(u.ID)
			_, err = b.enable(replaced, kept)
			b.is(err, auth.ErrNotFound)
			moved, err := b.advance(kept.ID, 0, now)
			b.ok(err)
			e := enabling(f, kept) // as read before that refresh, which has to last
			e.Now = now.Add(us)
			got, err := b.factors.EnableFactor(b.ctx(), e)
			b.ok(err)
			u.MFAEnabled, u.UpdatedAt = true, e.Now
			u.Revision, u.CredentialRevision = max(got.Revision, u.Revision+1), max(got.CredentialRevision, u.CredentialRevision+1)
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
			f.Enabled, f.LastStep = true, 100
			b.has(f, 2)
			_, err = b.enable(f, kept)
			b.conflict(err, "factor")
			b.conflict(b.putFactor(b.newFactor(u.ID)), "factor")
			b.has(f, 2)
		},
		"enabling makes a session that is not there": func(b *bench) {
			u := b.user("ada@example.com")
			s, f := b.newSession(u.ID), b.pending(u.ID)
			user, err := b.enable(f, s)
			b.ok(err)
			equal(b, "User.LastSignInAt", user.LastSignInAt, s.CreatedAt)
			got, _, err := b.Session(b.ctx(), s.ID, now)
			b.ok(err)
			b.sameSession(got, enabling(f, s).Session)
		},
		"an enabling that fails changes nothing": func(b *bench) {
			u := b.user("ada@example.com")
			s, ended, f := b.session(u.ID), b.session(u.ID), b.pending(u.ID)
			_, err := b.revoke(u.ID, auth.SessionFilter{ID: ended.ID})
			b.ok(err)
			u, err = b.update(u.ID, auth.UserPatch{BannedUntil: ptr(now.Add(us))})
			b.ok(err)
			t := newToken("t", "subject")
			t.UserID = u.ID
			b.token(t)
			used := &auth.TokenRef{Purpose: t.Purpose, Hash: t.Hash}
			e := enabling(f, s)
			e.Redeem = used
			_, err = b.factors.EnableFactor(b.ctx(), e)
			b.is(err, auth.ErrBanned)
			e = enabling(f, ended)
			e.Now, e.Redeem = now.Add(us), used // the ban is over
			_, err = b.factors.EnableFactor(b.ctx(), e)
			b.is(err, auth.ErrSessionEnded)
			e = enabling(f, s)
			e.Now = s.IdleUntil
			_, err = b.factors.EnableFactor(b.ctx(), e)
			b.is(err, auth.ErrSessionEnded)
			e = enabling(f, s)
			e.Now, e.Redeem = now.Add(us), &auth.TokenRef{Purpose: t.Purpose, Hash: hashOf("other")}
			_, err = b.factors.EnableFactor(b.ctx(), e)
			b.is(err, auth.ErrNotFound)
			b.stands(auth.Credentials{User: u})
			b.has(f, 0)
			got, _, err := b.Session(b.ctx(), s.ID, now.Add(us))
			b.ok(err)
			b.sameSession(got, s)
			b.ok(b.redeem("t")) // still good
		},
		"enabling uses up its token": func(b *bench) {
			u := b.user("ada@example.com")
			f := b.pending(u.ID)
			t := newToken("t", "subject")
			t.Purpose, t.UserID = auth.PurposeEnroll, u.ID
			b.token(t)
			e := enabling(f, b.newSession(u.ID))
			e.By, e.Redeem = auth.Authority{Proof: true}, &auth.TokenRef{Purpose: t.Purpose, Hash: t.Hash}
			_, err := b.factors.EnableFactor(b.ctx(), e)
			b.ok(err)
			_, err = b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
			b.is(err, auth.ErrNotFound)
		},
		"an enabling raises nobody else's session": func(b *bench) {
			u := b.whole()
			foreign, f := b.session(b.user("eve@example.com").ID), b.pending(u.ID)
			e := enabling(f, foreign)
			_, err := b.factors.EnableFactor(b.ctx(), e)
			b.is(err, auth.ErrSessionEnded)
			e.Session.UserID = u.ID
			_, err = b.factors.EnableFactor(b.ctx(), e)
			b.is(err, auth.ErrSessionEnded)
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
			b.is(err, auth.ErrNotFound)
			b.has(f, 0)
			b.stands(auth.Credentials{User: eve})
		},
		"a second factor is not skipped": func(b *bench) {
			u, _, _ := b.enrolled()
			s := b.newSession(u.ID)
			_, err := b.signIn(s)
			b.is(err, auth.ErrMFARequired)
			_, _, err = b.Session(b.ctx(), s.ID, now)
			b.is(err, auth.ErrNotFound)
			s.AAL = auth.LevelAAL2
			_, err = b.signIn(s)
			b.ok(err)
		},
		"removing forgets everything": func(b *bench) {
			for _, named := range []bool{true, false} {
				u, s, f := b.enrolled()
				r := auth.RemoveFactor{Change: by(now.Add(us)), UserID: u.ID}
				if named {
					r.FactorID = f.ID
				}
				got, err := b.factors.RemoveFactor(b.ctx(), r)
				b.ok(err)
				u.MFAEnabled, u.UpdatedAt = false, now.Add(us)
				u.Revision, u.CredentialRevision = max(got.Revision, u.Revision+1), max(got.CredentialRevision, u.CredentialRevision+1)
				b.sameUser(got, u)
				b.stands(auth.Credentials{User: u, PasswordHash: "hash"})
				_, _, err = b.Session(b.ctx(), s.ID, now) // goes on
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
				b.is(err, auth.ErrNotFound)
			}
			_, err := b.removeFactor(b.id(), "")
			b.is(err, auth.ErrNotFound)
			b.stands(auth.Credentials{User: u, PasswordHash: "hash"})
			b.stands(auth.Credentials{User: eve})
			b.has(f, 2)
			b.has(other, 2)
		},
		"a patch removes the factor": func(b *bench) {
			u, _, f := b.enrolled()
			got, err := b.update(u.ID, auth.UserPatch{DropFactors: true})
			b.ok(err)
			u.MFAEnabled, u.Revision, u.CredentialRevision = false, max(got.Revision, u.Revision+1), max(got.CredentialRevision, u.CredentialRevision+1)
			b.sameUser(got, u)
			b.stands(auth.Credentials{User: u, PasswordHash: "hash"})
			b.forgotten(f)
			other := b.user("")
			_, err = b.update(other.ID, auth.UserPatch{DropFactors: true})
			b.ok(err) // there was none
			b.pending(other.ID)
			_, err = b.update(other.ID, auth.UserPatch{DropFactors: true})
			b.ok(err)
			b.hasNone(other.ID)
		},
		"a factor goes with its user": func(b *bench) {
			u, _, f := b.enrolled()
			b.ok(b.delete(u.ID))
			b.hasNone(u.ID)
			b.is(b.putFactor(b.newFactor(u.ID)), auth.ErrNotFound)
			b.is(b.step(f, 200), auth.ErrNotFound)
		},
	}
}
