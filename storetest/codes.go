package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/authmount/auth/store"
)

func codes() checks {
	return checks{
		"a code is judged and used up": func(b *bench) {
			c := newCode("123456", "+491", 5)
			b.token(c)
			b.is(b.try("+491", "000000"), store.ErrWrongCode)
			b.is(b.try("+492", "123456"), store.ErrNotFound)
			_, _, err := b.RedeemCode(b.ctx(), store.CodeAttempt{Change: proof(now), Purpose: store.PurposeReset, Subject: "+491", Hash: c.Hash})
			b.is(err, store.ErrNotFound)
			got, _, err := b.guess("+491", "123456", store.Effect{})
			b.ok(err)
			c.Attempts = 1
			b.sameToken(got, c)
			b.is(b.try("+491", "123456"), store.ErrNotFound)
		},
		"a code tells whose it is": func(b *bench) {
			u := b.user("ada@example.com")
			c := newCode("123456", "+491", 3)
			c.UserID = u.ID
			b.token(c)
			_, got, err := b.guess("+491", "123456", store.Effect{})
			b.ok(err)
			b.sameUser(got, u)
			b.token(newCode("123456", "+492", 3))
			_, got, err = b.guess("+492", "123456", store.Effect{})
			b.ok(err)
			b.sameUser(got, store.User{})
		},
		"a code dies with its tries": func(b *bench) {
			b.token(newCode("123456", "+491", 3))
			for range 3 {
				b.is(b.try("+491", "000000"), store.ErrWrongCode)
			}
			b.is(b.try("+491", "123456"), store.ErrTooManyAttempts)
			b.is(b.try("+491", "000000"), store.ErrTooManyAttempts)
			b.token(newCode("654321", "+491", 3)) // a new code has its own count of attempts
			b.ok(b.try("+491", "654321"))
		},
		"a token without tries is no code": func(b *bench) {
			b.token(newToken("t", "subject"))
			b.is(b.try("subject", "t"), store.ErrTooManyAttempts)
			b.ok(b.redeem("t"))
		},
		"a code expires": func(b *bench) {
			c := newCode("123456", "+491", 3)
			b.token(c)
			try := store.CodeAttempt{Change: proof(now.Add(minute)), Purpose: c.Purpose, Subject: "+491", Hash: c.Hash}
			_, _, err := b.RedeemCode(b.ctx(), try)
			b.is(err, store.ErrNotFound)
			try.Now = now.Add(minute - us)
			_, _, err = b.RedeemCode(b.ctx(), try)
			b.ok(err)
		},
		"parallel guesses are all counted": func(b *bench) {
			b.token(newCode("123456", "+491", 5))
			won, lost := b.race(func(i int) error { return b.try("+491", fmt.Sprint(i)) }, store.ErrWrongCode, store.ErrTooManyAttempts)
			b.won(won, lost, 0, map[error]int{store.ErrWrongCode: 5, store.ErrTooManyAttempts: parallel - 5})
			b.is(b.try("+491", "123456"), store.ErrTooManyAttempts)
		},
		"of parallel uses of a code one wins": func(b *bench) {
			b.token(newCode("123456", "+491", 5))
			won, lost := b.race(func(int) error { return b.try("+491", "123456") }, store.ErrNotFound)
			b.oneWon(won, lost, store.ErrNotFound)
		},
		"a code that supersedes works once against parallel guesses": func(b *bench) {
			for round := range 20 {
				code, subject := fmt.Sprint("new", round), fmt.Sprint("+49", round)
				b.token(newCode(fmt.Sprint("old", round), subject, 1000))
				won, _ := b.race(func(i int) error {
					if i == parallel/2 {
						if err := b.put(newCode(code, subject, 1000)); err != nil {
							return err
						}
						return store.ErrWrongCode // not an attempt at the code
					}
					return b.try(subject, code)
				}, store.ErrWrongCode, store.ErrNotFound)
				if b.try(subject, code) == nil {
					won++
				}
				need(b, "times that it worked", won, 1)
			}
		},
		"parallel guesses are counted while a code supersedes": func(b *bench) {
			for round := range 20 {
				subject := fmt.Sprint("+49", round)
				b.token(newCode(fmt.Sprint("old", round), subject, 1))
				_, lost := b.race(func(i int) error {
					if i == parallel/2 {
						return b.put(newCode(fmt.Sprint("new", round), subject, 5))
					}
					return b.try(subject, "000000")
				}, store.ErrWrongCode, store.ErrTooManyAttempts)
				for range parallel { // bounded, because a store might never count
					if !errors.Is(b.try(subject, "000000"), store.ErrWrongCode) {
						break
					}
					lost[store.ErrWrongCode]++
				}
				if n := lost[store.ErrWrongCode]; n > 1+5 {
					b.wrong("guesses that were judged", n, "at most 6")
					b.FailNow()
				}
			}
		},
		"a code's effect is applied with it": func(b *bench) {
			u := b.user("ada@example.com")
			c := newCode("123456", "+491", 3)
			c.UserID = u.ID
			b.token(c)
			_, got, err := b.guess("+491", "123456", store.Effect{Patch: &store.UserPatch{Phone: ptr("+491"), PhoneVerifiedAt: ptr(now)}})
			b.ok(err)
			equal(b, "User.ID", got.ID, u.ID)
			equal(b, "User.Phone", got.Phone, "+491")
			equal(b, "User.PhoneVerified()", got.PhoneVerified(), true)
			b.token(newCode("123456", "+492", 3))
			nu := b.newUser("")
			nu.User.Phone, nu.User.PhoneVerifiedAt = "+492", now
			_, got, err = b.guess("+492", "123456", store.Effect{Create: &nu})
			b.ok(err)
			b.sameUser(got, nu.User)
			b.stands(store.Credentials{User: nu.User})
			b.is(b.try("+492", "123456"), store.ErrNotFound)
		},
		"an effect that fails leaves the code good and untried": func(b *bench) {
			u, cases := b.failing()
			c := newCode("123456", "+491", 1)
			c.UserID = u.ID
			b.token(c)
			for name, f := range cases {
				try := store.CodeAttempt{Change: proof(now), Purpose: c.Purpose, Subject: c.Subject, Hash: c.Hash, Effect: f.effect}
				try.IfUsers = f.ifUsers
				_, _, err := b.RedeemCode(b.ctx(), try)
				b.of("%s", name).fails(err, f.want)
				got, err := b.PeekToken(b.ctx(), c.Purpose, c.Hash, now)
				b.of("%s", name).fails(err, nil)
				equal(b.of("%s", name), "Token.Attempts", got.Attempts, 0)
			}
			b.stands(store.Credentials{User: u})
			b.ok(b.try("+491", "123456"))
		},
		"a wrong code is counted whatever the conditions": func(b *bench) {
			u := b.user("ada@example.com")
			s := b.session(u.ID)
			_, err := b.revoke(u.ID, store.SessionFilter{})
			b.ok(err)
			c := newCode("123456", "+491", 20)
			c.UserID = u.ID
			b.token(c)
			counted := 0
			for name, edit := range map[string]func(*store.CodeAttempt){
				"none":           func(*store.CodeAttempt) {},
				"stale":          func(c *store.CodeAttempt) { c.IfUsers = []store.UserAt{{ID: u.ID, Revision: ptr(u.Revision + 1)}} },
				"stale itself":   func(c *store.CodeAttempt) { c.IfUsers = []store.UserAt{{Email: ptr("eve@example.com")}} },
				"user gone":      func(c *store.CodeAttempt) { c.IfUsers = []store.UserAt{{ID: b.id()}} },
				"roles":          func(c *store.CodeAttempt) { c.IfRoles = ptr(int64(99)) },
				"no owner":       func(c *store.CodeAttempt) { c.KeepOwner = true },
				"nobody":         func(c *store.CodeAttempt) { c.UserID = b.id() },
				"taken":          func(c *store.CodeAttempt) { c.Create = ptr(b.newUser("ada@example.com")) },
				"in a system's":  func(c *store.CodeAttempt) { c.By = by(now).By },
				"not invalid":    func(c *store.CodeAttempt) { c.Now = time.Time{} },
				"not in dead":    func(c *store.CodeAttempt) { c.By = store.Authority{Session: &store.SessionRef{ID: s.ID, UserID: u.ID}} },
				"not for nobody": func(c *store.CodeAttempt) { c.By = store.Authority{} },
			} {
				try := store.CodeAttempt{Change: proof(now), Purpose: c.Purpose, Subject: c.Subject, Hash: hashOf("000000")}
				try.Patch = &store.UserPatch{FullName: ptr("x")}
				edit(&try)
				want := store.ErrWrongCode
				switch {
				case name == "not in dead":
					want = store.ErrSessionEnded
				case strings.HasPrefix(name, "not"):
					want = store.ErrInvalidChange
				default:
					counted++
				}
				if try.Create != nil {
					try.Patch = nil
				}
				_, _, err := b.RedeemCode(b.ctx(), try)
				b.of("%s", name).fails(err, want)
				got, err := b.PeekToken(b.ctx(), c.Purpose, c.Hash, now)
				b.ok(err)
				equal(b.of("%s", name), "Token.Attempts", got.Attempts, counted)
			}
			b.is(b.try("+491", "123457"), store.ErrWrongCode)
			b.ok(b.try("+491", "123456"))
		},
	}
}
