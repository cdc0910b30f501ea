package storetest

import (
	"errors"
	"fmt"

	"github.com/authmount/auth"
)

// newCode describes a code with a number of tries.
func newCode(code, subject string, tries int) auth.Token {
	t := newToken(code, subject)
	t.MaxTries = tries
	return t
}

func (b *bench) try(subject, code string) error {
	_, _, err := b.TryCode(b.ctx(), auth.PurposeMagicLink, subject, hashOf(code), now)
	return err
}

var tokens = map[string]func(*bench){
	"a token comes back as it went in": func(b *bench) {
		u := b.user("ada@example.com")
		t := newToken("t", "subject")
		t.UserID, t.MaxTries = u.ID, 5
		b.token(t)
		for range 2 { // peeking leaves it good
			got, err := b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
			b.ok(err)
			b.sameToken(got, t)
		}
		got, user, err := b.RedeemToken(b.ctx(), auth.Redemption{Purpose: t.Purpose, Hash: t.Hash, Now: now})
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
		b.is(b.redeem("t"), auth.ErrNotFound)
		_, err := b.PeekToken(b.ctx(), auth.PurposeMagicLink, hashOf("t"), now)
		b.is(err, auth.ErrNotFound)
	},
	"an unknown token is not found": func(b *bench) {
		b.is(b.redeem("t"), auth.ErrNotFound)
	},
	"token expiry is exact": func(b *bench) {
		b.token(newToken("t", "subject"))
		r := auth.Redemption{Purpose: auth.PurposeMagicLink, Hash: hashOf("t"), Now: now.Add(minute)}
		_, _, err := b.RedeemToken(b.ctx(), r)
		b.is(err, auth.ErrNotFound)
		_, err = b.PeekToken(b.ctx(), r.Purpose, r.Hash, r.Now)
		b.is(err, auth.ErrNotFound)
		r.Now = r.Now.Add(-us)
		_, err = b.PeekToken(b.ctx(), r.Purpose, r.Hash, r.Now)
		b.ok(err)
		_, _, err = b.RedeemToken(b.ctx(), r)
		b.ok(err)
	},
	"a token serves its purpose only": func(b *bench) {
		b.token(newToken("t", "subject"))
		_, err := b.PeekToken(b.ctx(), auth.PurposeReset, hashOf("t"), now)
		b.is(err, auth.ErrNotFound)
		_, _, err = b.RedeemToken(b.ctx(), auth.Redemption{Purpose: auth.PurposeReset, Hash: hashOf("t"), Now: now})
		b.is(err, auth.ErrNotFound)
		b.ok(b.redeem("t"))
	},
	"a newer token supersedes": func(b *bench) {
		b.token(newToken("old", "subject"))
		other := newToken("other", "subject")
		other.Purpose = auth.PurposeReset
		b.token(other)
		b.token(newToken("else", "somebody else"))
		newer := newToken("new", "subject")
		newer.UserID = b.user("ada@example.com").ID // known by now
		b.token(newer)
		b.is(b.redeem("old"), auth.ErrNotFound)
		b.ok(b.redeem("new"))
		b.ok(b.redeem("else"))
		_, err := b.PeekToken(b.ctx(), auth.PurposeReset, other.Hash, now)
		b.ok(err)
	},
	"tokens about nothing live side by side": func(b *bench) {
		b.token(newToken("one", ""))
		b.token(newToken("two", ""))
		b.ok(b.redeem("one"))
		b.ok(b.redeem("two"))
	},
	"parallel tokens about one thing leave one": func(b *bench) {
		b.race(func(i int) error { return b.PutToken(b.ctx(), newToken(fmt.Sprint(i), "subject")) })
		live := 0
		for i := range parallel {
			if _, err := b.PeekToken(b.ctx(), auth.PurposeMagicLink, hashOf(fmt.Sprint(i)), now); err == nil {
				live++
			}
		}
		if live != 1 {
			b.Errorf("%d are live", live)
		}
	},
	"of parallel redemptions one wins": func(b *bench) {
		u := b.user("ada@example.com")
		t := newToken("t", "subject")
		t.UserID = u.ID
		b.token(t)
		won, lost := b.race(func(i int) error {
			_, _, err := b.RedeemToken(b.ctx(), auth.Redemption{
				Purpose: t.Purpose, Hash: t.Hash, Now: now, Patch: &auth.UserPatch{FullName: ptr(fmt.Sprint(i))},
			})
			return err
		}, auth.ErrNotFound)
		if won != 1 || lost[auth.ErrNotFound] != parallel-1 {
			b.Errorf("%d won, %v", won, lost)
		}
		got, err := b.User(b.ctx(), auth.ByID(u.ID))
		b.ok(err)
		if got.Revision != u.Revision+1 {
			b.Errorf("the effect was applied %d times", got.Revision-u.Revision)
		}
	},
	"a redemption patches its user": func(b *bench) {
		u, other := b.user("ada@example.com"), b.user("eve@example.com")
		t := newToken("t", "subject")
		t.UserID = u.ID
		b.token(t)
		_, got, err := b.RedeemToken(b.ctx(), auth.Redemption{Purpose: t.Purpose, Hash: t.Hash, Now: now.Add(us), Patch: &auth.UserPatch{EmailVerified: ptr(true)}})
		b.ok(err)
		if got.ID != u.ID || !got.EmailVerified || !got.UpdatedAt.Equal(now.Add(us)) {
			b.Errorf("user %+v", got)
		}
		b.token(newToken("nobody's", "nobody"))
		_, got, err = b.RedeemToken(b.ctx(), auth.Redemption{Purpose: t.Purpose, Hash: hashOf("nobody's"), Now: now, UserID: other.ID, Patch: &auth.UserPatch{FullName: ptr("x")}})
		b.ok(err)
		if got.ID != other.ID || got.FullName != "x" {
			b.Errorf("user %+v", got)
		}
	},
	"a redemption without effect changes nothing": func(b *bench) {
		u := b.whole()
		t := newToken("t", "subject")
		t.UserID = u.ID
		b.token(t)
		_, got, err := b.RedeemToken(b.ctx(), auth.Redemption{Purpose: t.Purpose, Hash: t.Hash, Now: now.Add(us), Patch: &auth.UserPatch{}})
		b.ok(err)
		b.sameUser(got, u)
		got.Roles[0] = "spoilt"
		b.stands(auth.Credentials{User: u, PasswordHash: "hash"})
		b.token(newToken("nobody's", "nobody"))
		_, got, err = b.RedeemToken(b.ctx(), auth.Redemption{Purpose: t.Purpose, Hash: hashOf("nobody's"), Now: now})
		b.ok(err)
		b.sameUser(got, auth.User{})
	},
	"a patch for nobody uses the token up": func(b *bench) {
		for _, p := range []auth.UserPatch{{FullName: ptr("x")}, {Revoke: &auth.SessionFilter{}}} {
			b.token(newToken("nobody's", "nobody"))
			r := auth.Redemption{Purpose: auth.PurposeMagicLink, Hash: hashOf("nobody's"), Now: now, Patch: &p}
			_, got, err := b.RedeemToken(b.ctx(), r)
			b.ok(err)
			b.sameUser(got, auth.User{})
			_, _, err = b.RedeemToken(b.ctx(), r)
			b.is(err, auth.ErrNotFound)
		}
	},
	"of a new user's tokens about one thing the last is good": func(b *bench) {
		nu := b.newUser("ada@example.com")
		nu.Tokens = []auth.Token{newToken("one", "subject"), newToken("two", "subject"), newToken("three", ""), newToken("four", "")}
		_, err := b.CreateUser(b.ctx(), nu)
		b.ok(err)
		b.is(b.redeem("one"), auth.ErrNotFound)
		for _, secret := range []string{"two", "three", "four"} {
			b.ok(b.redeem(secret))
		}
	},
	"a redemption creates its user": func(b *bench) {
		b.token(newToken("t", "subject"))
		nu := b.newUser("ada@example.com")
		s := b.newSession(nu.User.ID)
		nu.Session, nu.Tokens, nu.PasswordHash = &s, []auth.Token{newToken("next", "next")}, "hash"
		_, got, err := b.RedeemToken(b.ctx(), auth.Redemption{Purpose: auth.PurposeMagicLink, Hash: hashOf("t"), Now: now, Create: &nu})
		b.ok(err)
		want := nu.User
		want.LastSignInAt = s.CreatedAt
		b.sameUser(got, want)
		b.stands(auth.Credentials{User: want, PasswordHash: "hash"})
		kept, _, err := b.Session(b.ctx(), s.ID, now)
		b.ok(err)
		b.sameSession(kept, s)
		b.is(b.redeem("t"), auth.ErrNotFound)
		b.ok(b.redeem("next"))
	},
	"an effect that fails leaves the token good": func(b *bench) {
		u := b.user("ada@example.com")
		b.user("eve@example.com")
		t := newToken("t", "subject")
		t.UserID = u.ID
		b.token(t)
		taken := b.newUser("eve@example.com")
		for name, c := range map[string]struct {
			r    auth.Redemption
			want error
		}{
			"stale":            {auth.Redemption{Patch: &auth.UserPatch{IfRevision: ptr(u.Revision + 7), FullName: ptr("x")}}, auth.ErrStale},
			"conflict":         {auth.Redemption{Patch: &auth.UserPatch{Email: ptr("eve@example.com"), FullName: ptr("x")}}, auth.ErrConflict},
			"create conflicts": {auth.Redemption{Create: &taken}, auth.ErrConflict},
			"user gone":        {auth.Redemption{UserID: b.id(), Patch: &auth.UserPatch{FullName: ptr("x")}}, auth.ErrNotFound},
			"nobody to return": {auth.Redemption{UserID: b.id(), Patch: &auth.UserPatch{}}, auth.ErrNotFound},
		} {
			c.r.Purpose, c.r.Hash, c.r.Now = t.Purpose, t.Hash, now
			if _, _, err := b.RedeemToken(b.ctx(), c.r); !errors.Is(err, c.want) {
				b.Errorf("%s: error %v", name, err)
			}
			if _, err := b.PeekToken(b.ctx(), t.Purpose, t.Hash, now); err != nil {
				b.Errorf("%s: the token is gone: %v", name, err)
			}
		}
		got, err := b.User(b.ctx(), auth.ByID(u.ID))
		b.ok(err)
		b.sameUser(got, u)
		b.ok(b.redeem("t"))
	},
	"a code is judged and used up": func(b *bench) {
		c := newCode("123456", "+491", 5)
		b.token(c)
		b.is(b.try("+491", "000000"), auth.ErrWrongCode)
		b.is(b.try("+492", "123456"), auth.ErrNotFound)
		_, _, err := b.TryCode(b.ctx(), auth.PurposeReset, "+491", c.Hash, now)
		b.is(err, auth.ErrNotFound)
		got, _, err := b.TryCode(b.ctx(), c.Purpose, "+491", c.Hash, now)
		b.ok(err)
		c.Tries = 1
		b.sameToken(got, c)
		b.is(b.try("+491", "123456"), auth.ErrNotFound)
	},
	"a code tells whose it is": func(b *bench) {
		u := b.user("ada@example.com")
		c := newCode("123456", "+491", 3)
		c.UserID = u.ID
		b.token(c)
		_, got, err := b.TryCode(b.ctx(), c.Purpose, "+491", c.Hash, now)
		b.ok(err)
		b.sameUser(got, u)
		b.token(newCode("123456", "+492", 3))
		_, got, err = b.TryCode(b.ctx(), c.Purpose, "+492", c.Hash, now)
		b.ok(err)
		b.sameUser(got, auth.User{})
	},
	"a code dies with its tries": func(b *bench) {
		b.token(newCode("123456", "+491", 3))
		for range 3 {
			b.is(b.try("+491", "000000"), auth.ErrWrongCode)
		}
		b.is(b.try("+491", "123456"), auth.ErrTooManyTries)
		b.is(b.try("+491", "000000"), auth.ErrTooManyTries)
		b.token(newCode("654321", "+491", 3)) // a new code has tries of its own
		b.ok(b.try("+491", "654321"))
	},
	"a token without tries is no code": func(b *bench) {
		b.token(newToken("t", "subject"))
		b.is(b.try("subject", "t"), auth.ErrTooManyTries)
		b.ok(b.redeem("t"))
	},
	"a code expires": func(b *bench) {
		c := newCode("123456", "+491", 3)
		b.token(c)
		_, _, err := b.TryCode(b.ctx(), c.Purpose, "+491", c.Hash, now.Add(minute))
		b.is(err, auth.ErrNotFound)
		_, _, err = b.TryCode(b.ctx(), c.Purpose, "+491", c.Hash, now.Add(minute-us))
		b.ok(err)
	},
	"parallel guesses are all counted": func(b *bench) {
		b.token(newCode("123456", "+491", 5))
		won, lost := b.race(func(i int) error { return b.try("+491", fmt.Sprint(i)) }, auth.ErrWrongCode, auth.ErrTooManyTries)
		if won != 0 || lost[auth.ErrWrongCode] != 5 || lost[auth.ErrTooManyTries] != parallel-5 {
			b.Errorf("%d won, %v", won, lost)
		}
		b.is(b.try("+491", "123456"), auth.ErrTooManyTries)
	},
	"of parallel uses of a code one wins": func(b *bench) {
		b.token(newCode("123456", "+491", 5))
		won, lost := b.race(func(int) error { return b.try("+491", "123456") }, auth.ErrNotFound)
		if won != 1 || lost[auth.ErrNotFound] != parallel-1 {
			b.Errorf("%d won, %v", won, lost)
		}
	},
	"a code that supersedes works once against parallel guesses": func(b *bench) {
		for round := range 20 {
			code, subject := fmt.Sprint("new", round), fmt.Sprint("+49", round)
			b.token(newCode(fmt.Sprint("old", round), subject, 1000))
			won, _ := b.race(func(i int) error {
				if i == parallel/2 {
					if err := b.PutToken(b.ctx(), newCode(code, subject, 1000)); err != nil {
						return err
					}
					return auth.ErrWrongCode // no guess
				}
				return b.try(subject, code)
			}, auth.ErrWrongCode, auth.ErrNotFound)
			if b.try(subject, code) == nil {
				won++
			}
			if won != 1 {
				b.Fatalf("it worked %d times", won)
			}
		}
	},
	"parallel guesses are counted while a code supersedes": func(b *bench) {
		for round := range 20 {
			subject := fmt.Sprint("+49", round)
			b.token(newCode(fmt.Sprint("old", round), subject, 1))
			_, lost := b.race(func(i int) error {
				if i == parallel/2 {
					return b.PutToken(b.ctx(), newCode(fmt.Sprint("new", round), subject, 5))
				}
				return b.try(subject, "000000")
			}, auth.ErrWrongCode, auth.ErrTooManyTries)
			for range parallel { // a store that never counts would never stop
				if !errors.Is(b.try(subject, "000000"), auth.ErrWrongCode) {
					break
				}
				lost[auth.ErrWrongCode]++
			}
			if n := lost[auth.ErrWrongCode]; n > 1+5 {
				b.Fatalf("%d guesses at codes for 6", n)
			}
		}
	},
	"a caller who has gone changes nothing": func(b *bench) {
		b.token(newCode("t", "subject", 5))
		b.gone(b.PutToken(cancelled(), newToken("new", "subject")))
		_, _, err := b.RedeemToken(cancelled(), auth.Redemption{Purpose: auth.PurposeMagicLink, Hash: hashOf("t"), Now: now})
		b.gone(err)
		_, _, err = b.TryCode(cancelled(), auth.PurposeMagicLink, "subject", hashOf("wrong"), now)
		b.gone(err)
		_, err = b.PeekToken(cancelled(), auth.PurposeMagicLink, hashOf("t"), now)
		b.gone(err)
		got, err := b.PeekToken(b.ctx(), auth.PurposeMagicLink, hashOf("t"), now)
		b.ok(err)
		if got.Tries != 0 {
			b.Errorf("%d tries", got.Tries)
		}
	},
}
