package storetest

import (
	"fmt"
	"time"

	"github.com/authmount/auth/store"
)

// failure is an effect of a token or code that must fail.
type failure struct {
	effect  store.Effect
	ifUsers []store.UserAt
	want    error
}

// failing adds a user and returns effects that cannot be applied to it.
func (b *bench) failing() (store.User, map[string]failure) {
	b.Helper()
	u := b.user("ada@example.com")
	b.user("eve@example.com")
	taken := b.newUser("eve@example.com")
	rename := &store.UserPatch{FullName: ptr("x")}
	return u, map[string]failure{
		"stale":            {store.Effect{Patch: rename}, []store.UserAt{{ID: u.ID, Revision: ptr(u.Revision + 7)}}, store.ErrStale},
		"stale itself":     {store.Effect{Patch: rename}, []store.UserAt{{Revision: ptr(u.Revision + 7)}}, store.ErrStale},
		"conflict":         {store.Effect{Patch: &store.UserPatch{Email: ptr("eve@example.com"), FullName: ptr("x")}}, nil, store.ErrConflict},
		"create conflicts": {store.Effect{Create: &taken}, nil, store.ErrConflict},
		"user gone":        {store.Effect{UserID: b.id(), Patch: rename}, nil, store.ErrNotFound},
		"nobody to return": {store.Effect{UserID: b.id(), Patch: &store.UserPatch{}}, nil, store.ErrNotFound},
	}
}

func tokens() checks {
	return checks{
		"a token comes back as it went in": func(b *bench) {
			u := b.user("ada@example.com")
			t := newToken("t", "subject")
			t.UserID, t.MaxAttempts = u.ID, 5
			b.token(t)
			for range 2 { // a peek does not use it up
				got, err := b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
				b.ok(err)
				b.sameToken(got, t)
			}
			got, user, err := b.use("t", store.Effect{})
			b.ok(err)
			b.sameToken(got, t)
			b.sameUser(user, u)
		},
		"tokens are copies": func(b *bench) {
			want := newToken("t", "subject")
			t := newToken("t", "subject")
			b.token(t)
			t.Data[0], t.Hash[0] = 'x', t.Hash[0]^1
			got, err := b.PeekToken(b.ctx(), want.Purpose, want.Hash, now)
			b.ok(err)
			b.sameToken(got, want)
			got.Data[0], got.Hash[0] = 'x', got.Hash[0]^1
			got, err = b.PeekToken(b.ctx(), want.Purpose, want.Hash, now)
			b.ok(err)
			b.sameToken(got, want)
		},
		"a token works once": func(b *bench) {
			b.token(newToken("t", "subject"))
			b.ok(b.redeem("t"))
			b.is(b.redeem("t"), store.ErrNotFound)
			_, err := b.PeekToken(b.ctx(), store.PurposeMagicLink, hashOf("t"), now)
			b.is(err, store.ErrNotFound)
		},
		"an unknown token is not found": func(b *bench) {
			b.is(b.redeem("t"), store.ErrNotFound)
		},
		"token expiry is exact": func(b *bench) {
			b.token(newToken("t", "subject"))
			r := store.Redemption{Change: proof(now.Add(minute)), Purpose: store.PurposeMagicLink, Hash: hashOf("t")}
			_, _, err := b.RedeemToken(b.ctx(), r)
			b.is(err, store.ErrNotFound)
			_, err = b.PeekToken(b.ctx(), r.Purpose, r.Hash, r.Now)
			b.is(err, store.ErrNotFound)
			r.Now = r.Now.Add(-us)
			_, err = b.PeekToken(b.ctx(), r.Purpose, r.Hash, r.Now)
			b.ok(err)
			_, _, err = b.RedeemToken(b.ctx(), r)
			b.ok(err)
		},
		"a token serves its purpose only": func(b *bench) {
			b.token(newToken("t", "subject"))
			_, err := b.PeekToken(b.ctx(), store.PurposeReset, hashOf("t"), now)
			b.is(err, store.ErrNotFound)
			_, _, err = b.RedeemToken(b.ctx(), store.Redemption{Change: proof(now), Purpose: store.PurposeReset, Hash: hashOf("t")})
			b.is(err, store.ErrNotFound)
			b.ok(b.redeem("t"))
		},
		"a newer token supersedes": func(b *bench) {
			b.token(newToken("old", "subject"))
			other := newToken("other", "subject")
			other.Purpose = store.PurposeReset
			b.token(other)
			b.token(newToken("else", "somebody else"))
			newer := newToken("new", "subject")
			newer.UserID = b.user("ada@example.com").ID // a user is known by now
			b.token(newer)
			b.is(b.redeem("old"), store.ErrNotFound)
			b.ok(b.redeem("new"))
			b.ok(b.redeem("else"))
			_, err := b.PeekToken(b.ctx(), store.PurposeReset, other.Hash, now)
			b.ok(err)
		},
		"a token gets another code": func(b *bench) {
			t := newCode("one", "+491", 3)
			t.Code, t.CodeExpiresAt, t.Hash = hashOf("one"), t.ExpiresAt, hashOf("link")
			b.token(t)
			b.is(b.try("+491", "wrong"), store.ErrWrongCode)
			t.Code = hashOf("two")
			b.ok(b.PutToken(b.ctx(), store.PutToken{Change: by(now), Token: t, Supersedes: &t.Hash}))
			b.is(b.try("+491", "one"), store.ErrWrongCode)
			_, err := b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
			b.ok(err)
			b.ok(b.try("+491", "two"))
			_, err = b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
			b.is(err, store.ErrNotFound)
		},
		"a token supersedes the one that was seen, and no other": func(b *bench) {
			over := func(secret string, seen []byte) error {
				t := newToken(secret, "subject")
				t.ExpiresAt = now.Add(60 * minute)
				return b.PutToken(b.ctx(), store.PutToken{Change: by(now), Token: t, Supersedes: &seen})
			}
			b.is(over("first", hashOf("none")), store.ErrStale)
			b.is(b.redeem("first"), store.ErrNotFound)
			dead := newToken("dead", "subject")
			dead.ExpiresAt = now
			b.token(dead)
			b.is(over("first", hashOf("dead")), store.ErrStale)
			b.ok(over("first", nil))
			b.is(over("second", nil), store.ErrStale)
			b.is(over("second", hashOf("other")), store.ErrStale)
			b.ok(over("second", hashOf("first")))
			b.is(b.redeem("first"), store.ErrNotFound)
			b.is(over("third", hashOf("first")), store.ErrStale)
			b.ok(b.redeem("second"))
			b.is(over("third", hashOf("second")), store.ErrStale)
			t := newToken("whose", "subject")
			t.UserID = b.user("ada@example.com").ID
			b.ok(b.PutToken(b.ctx(), store.PutToken{Change: by(now), Token: t, Supersedes: new([]byte)}))
			b.is(b.PutToken(b.ctx(), store.PutToken{Change: by(now), Token: t, Supersedes: new([]byte)}), store.ErrStale)
		},
		"of parallel tokens that supersede one thing one is put": func(b *bench) {
			for _, seen := range [][]byte{nil, hashOf("seen")} {
				subject := fmt.Sprintf("subject %x", seen)
				if len(seen) > 0 {
					b.token(newToken("seen", subject))
				}
				won, lost := b.race(func(i int) error {
					return b.PutToken(b.ctx(), store.PutToken{Change: by(now), Token: newToken(fmt.Sprint(i, subject), subject), Supersedes: &seen})
				}, store.ErrStale)
				b.oneWon(won, lost, store.ErrStale)
			}
		},
		"a token that yields leaves a live one": func(b *bench) {
			yields := func(secret, subject string, at time.Time) {
				t := newToken(secret, subject)
				t.ExpiresAt = at.Add(60 * minute)
				b.ok(b.PutToken(b.ctx(), store.PutToken{Change: by(at), Token: t, Yields: true}))
			}
			b.token(newToken("live", "subject"))
			yields("late", "subject", now)
			b.is(b.redeem("late"), store.ErrNotFound)
			want := newToken("live", "subject")
			got, err := b.PeekToken(b.ctx(), want.Purpose, want.Hash, now)
			b.ok(err)
			b.sameToken(got, want)
			b.ok(b.redeem("live"))
			yields("first", "subject", now)
			b.ok(b.redeem("first"))
			b.token(newToken("dead", "subject"))
			yields("next", "subject", want.ExpiresAt)
			b.ok(b.redeem("next"))
			yields("one", "", now)
			yields("two", "", now)
			b.ok(b.redeem("one"))
			b.ok(b.redeem("two"))
		},
		"tokens about nothing live side by side": func(b *bench) {
			b.token(newToken("one", ""))
			b.token(newToken("two", ""))
			b.ok(b.redeem("one"))
			b.ok(b.redeem("two"))
		},
		"parallel tokens about one thing leave one": func(b *bench) {
			b.race(func(i int) error { return b.put(newToken(fmt.Sprint(i), "subject")) })
			live := 0
			for i := range parallel {
				if _, err := b.PeekToken(b.ctx(), store.PurposeMagicLink, hashOf(fmt.Sprint(i)), now); err == nil {
					live++
				}
			}
			equal(b, "tokens that are live", live, 1)
		},
		"of parallel redemptions one wins": func(b *bench) {
			u := b.user("ada@example.com")
			t := newToken("t", "subject")
			t.UserID = u.ID
			b.token(t)
			won, lost := b.race(func(i int) error {
				_, _, err := b.use("t", store.Effect{Patch: &store.UserPatch{FullName: ptr(fmt.Sprint(i))}})
				return err
			}, store.ErrNotFound)
			b.oneWon(won, lost, store.ErrNotFound)
			got, err := b.User(b.ctx(), store.ByID(u.ID))
			b.ok(err)
			equal(b, "User.Revision", got.Revision, u.Revision+1)
		},
		"a redemption patches its user": func(b *bench) {
			u, other := b.user("ada@example.com"), b.user("eve@example.com")
			t := newToken("t", "subject")
			t.UserID = u.ID
			b.token(t)
			_, got, err := b.RedeemToken(b.ctx(), store.Redemption{
				Change: proof(now.Add(us)), Purpose: t.Purpose, Hash: t.Hash, Effect: store.Effect{Patch: &store.UserPatch{EmailVerifiedAt: ptr(now)}},
			})
			b.ok(err)
			equal(b, "User.ID", got.ID, u.ID)
			equal(b, "User.EmailVerified()", got.EmailVerified(), true)
			equal(b, "User.UpdatedAt", got.UpdatedAt, now.Add(us))
			b.token(newToken("nobody's", "nobody"))
			_, got, err = b.use("nobody's", store.Effect{UserID: other.ID, Patch: &store.UserPatch{FullName: ptr("x")}})
			b.ok(err)
			equal(b, "User.ID", got.ID, other.ID)
			equal(b, "User.FullName", got.FullName, "x")
		},
		"a redemption without effect changes nothing": func(b *bench) {
			u := b.whole()
			t := newToken("t", "subject")
			t.UserID = u.ID
			b.token(t)
			_, got, err := b.RedeemToken(b.ctx(), store.Redemption{Change: proof(now.Add(us)), Purpose: t.Purpose, Hash: t.Hash, Effect: store.Effect{Patch: &store.UserPatch{}}})
			b.ok(err)
			b.sameUser(got, u)
			got.Roles[0] = "spoilt"
			b.stands(store.Credentials{User: u, PasswordHash: "hash"})
			b.token(newToken("nobody's", "nobody"))
			_, got, err = b.use("nobody's", store.Effect{})
			b.ok(err)
			b.sameUser(got, store.User{})
		},
		"a patch for nobody uses the token up": func(b *bench) {
			for _, p := range []store.UserPatch{{FullName: ptr("x")}, {Revoke: &store.SessionFilter{}}} {
				b.token(newToken("nobody's", "nobody"))
				_, got, err := b.use("nobody's", store.Effect{Patch: &p})
				b.ok(err)
				b.sameUser(got, store.User{})
				b.is(b.redeem("nobody's"), store.ErrNotFound)
			}
		},
		"of a new user's tokens about one thing the last is good": func(b *bench) {
			nu := b.newUser("ada@example.com")
			nu.Tokens = []store.Token{newToken("one", "subject"), newToken("two", "subject"), newToken("three", ""), newToken("four", "")}
			_, err := b.create(nu)
			b.ok(err)
			b.is(b.redeem("one"), store.ErrNotFound)
			for _, secret := range []string{"two", "three", "four"} {
				b.ok(b.redeem(secret))
			}
		},
		"a redemption creates its user": func(b *bench) {
			b.token(newToken("t", "subject"))
			nu := b.newUser("ada@example.com")
			s := b.newSession(nu.User.ID)
			nu.Session, nu.Tokens, nu.PasswordHash = &s, []store.Token{newToken("next", "next")}, "hash"
			_, got, err := b.use("t", store.Effect{Create: &nu})
			b.ok(err)
			want := nu.User
			want.LastSignInAt = s.CreatedAt
			b.sameUser(got, want)
			b.stands(store.Credentials{User: want, PasswordHash: "hash"})
			kept, _, err := b.Session(b.ctx(), s.ID, now)
			b.ok(err)
			b.sameSession(kept, s)
			b.is(b.redeem("t"), store.ErrNotFound)
			b.ok(b.redeem("next"))
		},
		"an effect that fails leaves the token good": func(b *bench) {
			u, cases := b.failing()
			t := newToken("t", "subject")
			t.UserID = u.ID
			b.token(t)
			for name, c := range cases {
				r := store.Redemption{Change: proof(now), Purpose: t.Purpose, Hash: t.Hash, Effect: c.effect}
				r.IfUsers = c.ifUsers
				_, _, err := b.RedeemToken(b.ctx(), r)
				b.of("%s", name).fails(err, c.want)
				_, err = b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
				b.of("%s", name).fails(err, nil)
			}
			b.stands(store.Credentials{User: u})
			b.ok(b.redeem("t"))
		},
		"a caller who has gone changes nothing": func(b *bench) {
			b.token(newCode("t", "subject", 5))
			b.gone(b.PutToken(cancelled(), store.PutToken{Change: by(now), Token: newToken("new", "subject")}))
			_, _, err := b.RedeemToken(cancelled(), store.Redemption{Change: proof(now), Purpose: store.PurposeMagicLink, Hash: hashOf("t")})
			b.gone(err)
			_, _, err = b.RedeemCode(cancelled(), store.CodeAttempt{Change: proof(now), Purpose: store.PurposeMagicLink, Subject: "subject", Hash: hashOf("wrong")})
			b.gone(err)
			_, err = b.PeekToken(cancelled(), store.PurposeMagicLink, hashOf("t"), now)
			b.gone(err)
			got, err := b.PeekToken(b.ctx(), store.PurposeMagicLink, hashOf("t"), now)
			b.ok(err)
			equal(b, "Token.Attempts", got.Attempts, 0)
		},
	}
}
