package storetest

import (
	"github.com/authmount/auth/store"
)

// proofs checks Store.AddAuthentication.
func proofs() checks {
	add := func(b *bench, id string, c store.Change, proof store.AMR) (store.Session, store.User, error) {
		return b.AddAuthentication(b.ctx(), store.AddAuthentication{Change: c, SessionID: id, Proof: proof})
	}
	return checks{
		"a proof is added to a live session": func(b *bench) {
			want := store.Credentials{User: b.whole(), PasswordHash: "hash"}
			s, ended, other := b.session(want.User.ID), b.session(want.User.ID), b.session(want.User.ID)
			want.User.LastSignInAt = now
			_, err := b.revoke(s.UserID, store.SessionFilter{ID: ended.ID})
			b.ok(err)
			moved, err := b.advance(s.ID, 0, now)
			b.ok(err)
			first := moved.AMR
			for i := range 2 { // the second entry of a method replaces the first
				proof := store.AMR{Method: "again", Timestamp: now.Unix() + int64(i)}
				moved.AMR = append(first[:len(first):len(first)], proof)
				got, user, err := add(b, s.ID, by(now.Add(minute)), proof)
				b.ok(err)
				b.sameSession(got, moved)
				b.sameUser(user, want.User)
				read, _, err := b.Session(b.ctx(), s.ID, now)
				b.ok(err)
				b.sameSession(read, moved)
				b.stands(want)
			}
			read, _, err := b.Session(b.ctx(), other.ID, now)
			b.ok(err)
			b.sameSession(read, other)
			proof := store.AMR{Method: "password", Timestamp: now.Unix()}
			_, _, err = add(b, ended.ID, by(now), proof)
			b.is(err, store.ErrSessionEnded)
			_, _, err = add(b, s.ID, by(moved.IdleUntil), proof)
			b.is(err, store.ErrSessionEnded)
			_, _, err = add(b, b.id(), by(now), proof)
			b.is(err, store.ErrNotFound)
			_, err = b.update(s.UserID, store.UserPatch{BannedUntil: ptr(now.Add(us))})
			b.ok(err)
			_, _, err = add(b, s.ID, by(now), proof)
			b.is(err, store.ErrBanned)
		},
		"a proof leaves the level as it is": func(b *bench) {
			for _, level := range []string{store.LevelAAL1, store.LevelAAL2} {
				s := b.newSession(b.user("").ID)
				s.AAL = level
				_, err := b.signIn(s)
				b.ok(err)
				got, _, err := add(b, s.ID, by(now), store.AMR{Method: "password", Timestamp: now.Unix()})
				b.ok(err)
				equal(b.of("a session of %s", level), "Session.AAL", got.AAL, level)
				equal(b, "Session.Counter", got.Counter, s.Counter)
			}
		},
	}
}
