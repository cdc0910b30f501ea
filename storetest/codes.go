package storetest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/authmount/auth"
)

func codes() checks {
	return checks{
		"a code is judged and used up": func(b *bench) {
			c := newCode("123456", "+491", 5)
			b.token(c)
			b.is(b.try("+491", "000000"), auth.ErrWrongCode)
			b.is(b.try("+492", "123456"), auth.ErrNotFound)
			_, _, err := b.TryCode(b.ctx(), auth.TryCode{Change: proof(now), Purpose: auth.PurposeReset, Subject: "+491", Hash: c.Hash})
			b.is(err, auth.ErrNotFound)
			got, _, err := b.guess("+491", "123456", auth.Effect{})
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
			_, got, err := b.guess("+491", "123456", auth.Effect{})
			b.ok(err)
			b.sameUser(got, u)
			b.token(newCode("123456", "+492", 3))
			_, got, err = b.guess("+492", "123456", auth.Effect{})
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
			try := auth.TryCode{Change: proof(now.Add(minute)), Purpose: c.Purpose, Subject: "+491", Hash: c.Hash}
			_, _, err := b.TryCode(b.ctx(), try)
			b.is(err, auth.ErrNotFound)
			try.Now = now.Add(minute - us)
			_, _, err = b.TryCode(b.ctx(), try)
			b.ok(err)
		},
		"parallel guesses are all counted": func(b *bench) {
			b.token(newCode("123456", "+491", 5))
			won, lost := b.race(func(i int) error { return b.try("+491", fmt.Sprint(i)) }, auth.ErrWrongCode, auth.ErrTooManyTries)
			b.won(won, lost, 0, map[error]int{auth.ErrWrongCode: 5, auth.ErrTooManyTries: parallel - 5})
			b.is(b.try("+491", "123456"), auth.ErrTooManyTries)
		},
		"of parallel uses of a code one wins": func(b *bench) {
			b.token(newCode("123456", "+491", 5))
			won, lost := b.race(func(int) error { return b.try("+491", "123456") }, auth.ErrNotFound)
			b.oneWon(won, lost, auth.ErrNotFound)
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
						return auth.ErrWrongCode // no guess
					}
					return b.try(subject, code)
				}, auth.ErrWrongCode, auth.ErrNotFound)
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
				}, auth.ErrWrongCode, auth.ErrTooManyTries)
				for range parallel { // a store that never counts would never stop
					if !errors.Is(b.try(subject, "000000"), auth.ErrWrongCode) {
						break
					}
					lost[auth.ErrWrongCode]++
				}
				if n := lost[auth.ErrWrongCode]; n > 1+5 {
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
			_, got, err := b.guess("+491", "123456", auth.Effect{Patch: &auth.UserPatch{Phone: ptr("+491"), PhoneVerifiedAt: ptr(now)}})
			b.ok(err)
			equal(b, "User.ID", got.ID, u.ID)
			equal(b, "User.Phone", got.Phone, "+491")
			equal(b, "User.PhoneVerified()", got.PhoneVerified(), true)
			b.token(newCode("123456", "+492", 3))
			nu := b.newUser("")
			nu.User.Phone, nu.User.PhoneVerifiedAt = "+492", now
			_, got, err = b.guess("+492", "123456", auth.Effect{Create: &nu})
			b.ok(err)
			b.sameUser(got, nu.User)
			b.stands(auth.Credentials{User: nu.User})
			b.is(b.try("+492", "123456"), auth.ErrNotFound)
		},
		"an effect that fails leaves the code good and untried": func(b *bench) {
			u, cases := b.failing()
			c := newCode("123456", "+491", 1)
			c.UserID = u.ID
			b.token(c)
			for name, f := range cases {
				try := auth.TryCode{Change: proof(now), Purpose: c.Purpose, Subject: c.Subject, Hash: c.Hash, Effect: f.effect}
				try.IfUsers = f.ifUsers
				_, _, err := b.TryCode(b.ctx(), try)
				b.of("%s", name).fails(err, f.want)
				got, err := b.PeekToken(b.ctx(), c.Purpose, c.Hash, now)
				b.of("%s", name).fails(err, nil)
				equal(b.of("%s", name), "Token.Tries", got.Tries, 0)
			}
			b.stands(auth.Credentials{User: u})
			b.ok(b.try("+491", "123456"))
		},
		"a wrong code is counted whatever the conditions": func(b *bench) {
			u := b.user("ada@example.com")
			s := b.session(u.ID)
			_, err := b.revoke(u.ID, auth.SessionFilter{})
			b.ok(err)
			c := newCode("123456", "+491", 20)
			c.UserID = u.ID
			b.token(c)
			counted := 0
			for name, edit := range map[string]func(*auth.TryCode){
				"none":           func(*auth.TryCode) {},
				"stale":          func(c *auth.TryCode) { c.IfUsers = []auth.UserAt{{ID: u.ID, Revision: ptr(u.Revision + 1)}} },
				"stale itself":   func(c *auth.TryCode) { c.IfUsers = []auth.UserAt{{Email: ptr("eve@example.com")}} },
				"user gone":      func(c *auth.TryCode) { c.IfUsers = []auth.UserAt{{ID: b.id()}} },
				"roles":          func(c *auth.TryCode) { c.IfRoles = ptr(int64(99)) },
				"no owner":       func(c *auth.TryCode) { c.KeepOwner = true },
				"nobody":         func(c *auth.TryCode) { c.UserID = b.id() },
				"taken":          func(c *auth.TryCode) { c.Create = ptr(b.newUser("ada@example.com")) },
				"in a system's":  func(c *auth.TryCode) { c.By = by(now).By },
				"not invalid":    func(c *auth.TryCode) { c.Now = time.Time{} },
				"not in dead":    func(c *auth.TryCode) { c.By = auth.Authority{Session: &auth.SessionRef{ID: s.ID, UserID: u.ID}} },
				"not for nobody": func(c *auth.TryCode) { c.By = auth.Authority{} },
			} {
				try := auth.TryCode{Change: proof(now), Purpose: c.Purpose, Subject: c.Subject, Hash: hashOf("000000")}
				try.Patch = &auth.UserPatch{FullName: ptr("x")}
				edit(&try)
				want := auth.ErrWrongCode
				switch {
				case name == "not in dead":
					want = auth.ErrSessionEnded
				case strings.HasPrefix(name, "not"):
					want = auth.ErrInvalidChange
				default:
					counted++
				}
				if try.Create != nil {
					try.Patch = nil
				}
				_, _, err := b.TryCode(b.ctx(), try)
				b.of("%s", name).fails(err, want)
				got, err := b.PeekToken(b.ctx(), c.Purpose, c.Hash, now)
				b.ok(err)
				equal(b.of("%s", name), "Token.Tries", got.Tries, counted)
			}
			b.is(b.try("+491", "123457"), auth.ErrWrongCode)
			b.ok(b.try("+491", "123456"))
		},
	}
}
