package storetest

import (
	"time"

	"github.com/authmount/auth/store"
)

// newLinkCode describes a token that is a link and the code 123456 at once, for ada.
func newLinkCode() store.Token {
	t := newCode("link", "ada", 5)
	t.Code, t.CodeExpiresAt = hashOf("123456"), now.Add(10*time.Second)
	return t
}

// linkCodes checks tokens that are a link and a code at once.
func linkCodes() checks {
	return checks{
		"a link's code comes back as it went in": func(b *bench) {
			t := newLinkCode()
			want := newLinkCode()
			b.token(t)
			t.Code[0] ^= 1
			got, err := b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
			b.ok(err)
			b.sameToken(got, want)
			b.token(newToken("other", "ada"))
			got, err = b.PeekToken(b.ctx(), t.Purpose, hashOf("other"), now)
			b.ok(err)
			b.sameToken(got, newToken("other", "ada")) // without the code of an older one
		},
		"a link's code uses the link up": func(b *bench) {
			t := newLinkCode()
			b.token(t)
			b.is(b.try("ada", "000000"), store.ErrWrongCode)
			b.is(b.try("ada", "link"), store.ErrWrongCode) // the link's own hash is not a code
			got, _, err := b.guess("ada", "123456", store.Effect{})
			b.ok(err)
			t.Attempts = 2
			b.sameToken(got, t)
			b.is(b.redeem("link"), store.ErrNotFound)
			b.is(b.try("ada", "123456"), store.ErrNotFound)
		},
		"a link uses its code up": func(b *bench) {
			b.token(newLinkCode())
			b.ok(b.redeem("link"))
			b.is(b.try("ada", "123456"), store.ErrNotFound)
			b.is(b.try("ada", "000000"), store.ErrNotFound)
		},
		"a link outlives its code": func(b *bench) {
			t := newLinkCode()
			b.token(t)
			for _, code := range []string{"123456", "000000"} {
				try := store.CodeAttempt{Change: proof(t.CodeExpiresAt), Purpose: t.Purpose, Subject: "ada", Hash: hashOf(code)}
				_, _, err := b.RedeemCode(b.ctx(), try)
				b.is(err, store.ErrNotFound)
				try.IfRoles = ptr(int64(99)) // also with a condition that does not hold
				_, _, err = b.RedeemCode(b.ctx(), try)
				b.is(err, store.ErrNotFound)
			}
			_, _, err := b.RedeemToken(b.ctx(), store.Redemption{Change: proof(t.CodeExpiresAt), Purpose: t.Purpose, Hash: t.Hash})
			b.ok(err)
			b.token(t)
			_, _, err = b.RedeemCode(b.ctx(), store.CodeAttempt{Change: proof(t.CodeExpiresAt.Add(-us)), Purpose: t.Purpose, Subject: "ada", Hash: t.Code})
			b.ok(err)
		},
		"a link outlives the tries at its code": func(b *bench) {
			b.token(newLinkCode())
			for range 5 {
				b.is(b.try("ada", "000000"), store.ErrWrongCode)
			}
			b.is(b.try("ada", "123456"), store.ErrTooManyAttempts)
			b.ok(b.redeem("link"))
		},
		"of a link and its code at once one wins": func(b *bench) {
			u := b.user("ada@example.com")
			t := newLinkCode()
			t.UserID = u.ID
			b.token(t)
			won, lost := b.race(func(i int) error {
				if i%2 == 0 {
					return b.redeem("link")
				}
				return b.try("ada", "123456")
			}, store.ErrNotFound)
			b.oneWon(won, lost, store.ErrNotFound)
		},
		"a code that has an effect is the link's own": func(b *bench) {
			u := b.user("ada@example.com")
			t := newLinkCode()
			t.UserID = u.ID
			b.token(t)
			b.is(func() error {
				_, _, err := b.guess("ada", "link", store.Effect{Patch: &store.UserPatch{FullName: ptr("x")}})
				return err
			}(), store.ErrWrongCode)
			_, got, err := b.guess("ada", "123456", store.Effect{Patch: &store.UserPatch{EmailVerifiedAt: ptr(now)}})
			b.ok(err)
			equal(b, "User.EmailVerified()", got.EmailVerified(), true)
			b.is(b.redeem("link"), store.ErrNotFound)
		},
	}
}
