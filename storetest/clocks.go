package storetest

import (
	"fmt"
	"time"

	"github.com/authmount/auth/store"
)

// clocks are changes of two callers: one clock is five minutes fast, one five minutes slow.
var clocks = []store.Change{by(now.Add(5 * minute)), by(now.Add(-5 * minute))}

// clockChecks checks callers with different clocks.
func clockChecks() checks {
	return checks{
		"what comes later has the larger sequence at any time of a caller": func(b *bench) {
			a := b.account(b.user("ada@example.com"))
			for i := range 4 {
				c, name := clocks[i%2], fmt.Sprint(i)
				a.step("a session", 0, func() error { return a.signInAs(name, name, c) }, "session "+name, "device "+name)
				a.step("a password", 0, a.patch(c, store.UserPatch{PasswordHash: ptr(name)}), "Password")
				a.step("an identity", 0, a.patch(c, store.UserPatch{Link: ptr(b.identity("p", name))}), "identity "+name)
				a.step("an address", 0, a.patch(c, store.UserPatch{Email: ptr(name + "@example.com"), EmailVerifiedAt: &c.Now}), "Email", "EmailVerified")
			}
		},
		"sessions from a session on end, and none before, at any time of a caller": func(b *bench) {
			a := b.account(b.user("ada@example.com"))
			for i := range 6 {
				b.ok(a.signInAs(fmt.Sprint(i), "", clocks[i%2]))
			}
			for i, from := range []int{5, 2} {
				c := clocks[i]
				ended, err := b.RevokeSessions(b.ctx(), store.RevokeSessions{Change: c, UserID: a.id, Filter: store.SessionFilter{FromSequence: a.from(fmt.Sprint(from))}})
				b.ok(err)
				equal(b, "number of sessions that ended", len(ended), []int{1, 3}[i])
				for j := range 6 {
					_, _, err := b.Session(b.ctx(), a.sessions[fmt.Sprint(j)].ID, now)
					equal(b.of("session %d", j), "live", err == nil, j < from)
				}
			}
			b.ok(a.signInAs("new", "", clocks[1]))
			_, err := b.update(a.id, store.UserPatch{Revoke: &store.SessionFilter{FromSequence: a.from("1")}})
			b.ok(err)
			for name, live := range map[string]bool{"0": true, "1": false, "new": false} {
				_, _, err := b.Session(b.ctx(), a.sessions[name].ID, now)
				equal(b.of("session %s", name), "live", err == nil, live)
			}
		},
		"a session that a late clock creates is kept, and its device remembered": func(b *bench) {
			a := b.account(b.user("ada@example.com"))
			for i := range store.MaxDevices + 1 {
				b.ok(a.signInAs(fmt.Sprint(i), fmt.Sprint(i), clocks[0]))
			}
			s := b.newSession(a.id)
			s.Device, s.CreatedAt, s.LastActiveAt, s.IdleUntil = "late", clocks[1].Now, clocks[1].Now, now.Add(time.Hour)
			_, err := b.CreateSession(b.ctx(), store.CreateSession{Change: clocks[1], NewSession: store.NewSession{Session: s, KeepSessions: 2}})
			b.ok(err)
			b.knows(a.id, "late", true)
			list, err := b.Sessions(b.ctx(), a.id, now)
			b.ok(err)
			need(b, "number of sessions", len(list), 2)
			equal(b, "the session is kept", list[0].ID == s.ID || list[1].ID == s.ID, true)
		},
	}
}

// everySessionByOrder checks EndEverySession with different clocks.
func everySessionByOrder() checks {
	return checks{
		"every session ends that was created before, and none after, at any time of a caller": func(b *bench) {
			order := func() int64 {
				b.Helper()
				n, err := b.admin.SessionOrder(b.ctx())
				b.ok(err)
				return n
			}
			end := func(until int64, want int) {
				b.Helper()
				n, err := b.admin.EndEverySession(b.ctx(), store.EndEverySession{Change: by(now), Until: until, At: now, Limit: 100})
				b.ok(err)
				equal(b, "number of sessions that ended", n, want)
			}
			none := order() // before the first session
			ada, eve := b.account(b.user("ada@example.com")), b.account(b.user("eve@example.com"))
			b.ok(ada.signInAs("fast", "", clocks[0]))
			end(none, 0)
			b.ok(eve.signInAs("slow", "", clocks[1]))
			until := order()
			b.rises("SessionOrder", none, until)
			b.ok(ada.signInAs("later", "", clocks[1]))
			b.ok(eve.signInAs("later", "", clocks[0]))
			end(until, 2)
			for name, s := range map[string]store.Session{"Ada's": ada.sessions["later"], "Eve's": eve.sessions["later"]} {
				_, _, err := b.Session(b.ctx(), s.ID, now)
				b.of("%s later session", name).ok(err)
			}
			for name, s := range map[string]store.Session{"fast": ada.sessions["fast"], "slow": eve.sessions["slow"]} {
				_, _, err := b.Session(b.ctx(), s.ID, now)
				b.of("session by a %s clock", name).is(err, store.ErrSessionEnded)
			}
		},
	}
}
