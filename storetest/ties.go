package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// ties checks decisions between equal rows.
func ties() checks {
	return checks{
		"of equally active sessions those with higher ids are kept": func(b *bench) {
			u := b.user("ada@example.com")
			var ids []string
			for range 6 {
				ids = append(ids, b.session(u.ID).ID)
			}
			slices.Sort(ids)
			last := b.newSession(u.ID)
			ended, err := b.signInKeeping(last, 4)
			b.ok(err)
			listed(b, "ended", ended, ids[:3])
			left := append(ids[3:], last.ID)
			slices.Sort(left)
			listed(b, "sessions that are left", b.live(u.ID, now), left)
		},
		"records with equal times are in the order of their names": func(b *bench) {
			u := b.user("ada@example.com")
			var tokens, devices []string
			for _, subject := range []string{"b", "B", "a", "_", "c"} {
				for _, p := range []store.Purpose{store.PurposeMFA, store.PurposeMagicLink, store.PurposeEnroll} {
					t := newToken(subject+string(p), subject)
					t.Purpose, t.UserID = p, u.ID
					b.token(t)
					tokens = append(tokens, string(p)+" "+subject)
				}
				s := b.newSession(u.ID)
				s.Device = subject
				_, err := b.signIn(s)
				b.ok(err)
				devices = append(devices, subject)
			}
			slices.Sort(tokens)
			slices.Sort(devices)
			var gotTokens, gotDevices []string
			h, err := b.UserRecords(b.ctx(), u.ID, now)
			b.ok(err)
			for _, t := range h.Pending {
				gotTokens = append(gotTokens, fmt.Sprint(t.Purpose, " ", t.Subject))
			}
			for _, d := range h.Devices {
				gotDevices = append(gotDevices, d.Device)
			}
			equal(b, "tokens", gotTokens, tokens)
			equal(b, "devices", gotDevices, devices)
		},
	}
}

// precedence checks that a method's own errors come in the order of its documentation, if
// several apply.
func precedence() checks {
	return checks{
		"a session is refused for its first reason": func(b *bench) {
			if b.factors == nil {
				return
			}
			u, _, _ := b.enrolled()
			c := store.CreateSession{Change: by(now), NewSession: store.NewSession{Session: b.session(b.user("").ID), OnNewDevice: store.NewDevice{Refuse: true}}}
			c.Session.UserID, c.Session.AAL, c.Session.Device = b.id(), store.LevelAAL1, "unknown"
			_, err := b.update(u.ID, store.UserPatch{BannedUntil: ptr(now.Add(minute))})
			b.ok(err)
			at2 := b.newSession(u.ID)
			at2.AAL, at2.Device, at2.CreatedAt = store.LevelAAL2, "known", now.Add(minute)
			_, err = b.signIn(at2)
			b.ok(err)
			try := func(want error) {
				b.Helper()
				_, err := b.CreateSession(b.ctx(), c)
				b.is(err, want)
			}
			try(store.ErrNotFound)
			c.Session.UserID = u.ID
			try(store.ErrBanned)
			c.Session.CreatedAt = now.Add(minute)
			try(store.ErrMFARequired)
			c.Session.AAL = store.LevelAAL2
			c.OnNewDevice.Refuse = false
			_, err = b.CreateSession(b.ctx(), c)
			b.of("a session with the id of another").conflict(err, "id")
		},
		"a token is refused for its user before the token it supersedes": func(b *bench) {
			t := newToken("t", "subject")
			t.UserID = b.id()
			err := b.PutToken(b.ctx(), store.PutToken{Change: by(now), Token: t, Supersedes: ptr(hashOf("other"))})
			b.is(err, store.ErrNotFound)
			t.UserID = ""
			err = b.PutToken(b.ctx(), store.PutToken{Change: by(now), Token: t, Supersedes: ptr(hashOf("other"))})
			b.is(err, store.ErrStale)
		},
		"a value is taken before a condition is stale": func(b *bench) {
			b.user("eve@example.com")
			u := b.user("ada@example.com")
			nu := b.newUser("eve@example.com")
			c, p := store.CreateUser{Change: by(now), NewUser: nu}, store.UpdateUser{Change: by(now), UserID: u.ID, Patch: store.UserPatch{Email: ptr("eve@example.com")}}
			c.IfUsers = []store.UserAt{{ID: b.id()}}
			p.IfUsers = c.IfUsers
			_, err := b.CreateUser(b.ctx(), c)
			b.conflict(err, "email")
			_, err = b.UpdateUser(b.ctx(), p)
			b.conflict(err, "email")
		},
		"a key at another revision is stale before its hash is taken": func(b *bench) {
			if b.project == nil {
				return
			}
			k, err := b.putKey(b.newKey("k"))
			b.ok(err)
			other := b.newKey("other")
			_, err = b.putKey(other)
			b.ok(err)
			other.Hash = k.Hash
			_, err = b.project.PutKey(b.ctx(), store.PutKey{Change: by(now), Key: other, IfRevision: ptr(int64(7))})
			b.is(err, store.ErrStale)
			_, err = b.project.PutKey(b.ctx(), store.PutKey{Change: by(now), Key: other, IfRevision: ptr(int64(0))})
			b.conflict(err, "key")
		},
	}
}

// exact checks single rules about ids, hashes and times.
func exact() checks {
	return checks{
		"the id of an identity is taken once": func(b *bench) {
			first, second := b.user(""), b.user("")
			i := b.identity("p", "1")
			_, err := b.update(first.ID, store.UserPatch{Link: &i})
			b.ok(err)
			i.Subject = "2"
			_, err = b.update(second.ID, store.UserPatch{Link: &i})
			b.of("UserPatch.Link with the id of another identity").conflict(err, "id")
			_, err = b.User(b.ctx(), store.ByIdentity("p", "2"))
			b.is(err, store.ErrNotFound)
			nu := b.newUser("")
			nu.User.Identities = []store.Identity{i}
			_, err = b.create(nu)
			b.of("a new user's identity with the id of another identity").conflict(err, "id")
		},
		"a hash belongs to one subject": func(b *bench) {
			t := newCode("code", "first", 3)
			b.token(t)
			t.Subject = "second"
			b.conflict(b.PutToken(b.ctx(), store.PutToken{Change: by(now), Token: t}), "token")
			got, err := b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
			b.ok(err)
			equal(b, "Token.Subject", got.Subject, "first")
		},
		"a token about nothing takes no hash from another": func(b *bench) {
			for _, subject := range []string{"", "subject"} {
				t := newToken("t"+subject, subject)
				b.token(t)
				t.Subject = ""
				b.of("subject %q", subject).conflict(b.put(t), "token")
			}
		},
		"a refused call returns no other result": func(b *bench) {
			u := b.user("ada@example.com")
			ended := b.session(u.ID)
			_, err := b.revoke(u.ID, store.SessionFilter{ID: ended.ID})
			b.ok(err)
			s, owner, err := b.Session(b.ctx(), ended.ID, now)
			b.is(err, store.ErrSessionEnded)
			equal(b, "Session", s, store.Session{})
			equal(b, "User", owner, store.User{})
			code := newCode("123456", "+491", 3)
			code.UserID = u.ID
			b.token(code)
			t, owner, err := b.guess("+491", "000000", store.Effect{})
			b.is(err, store.ErrWrongCode)
			equal(b, "Token", t, store.Token{})
			equal(b, "User", owner, store.User{})
			if b.admin == nil {
				return
			}
			b.session(u.ID)
			until, err := b.admin.SessionOrder(b.ctx())
			b.ok(err)
			c := store.EndEverySession{Change: by(now), Until: until, At: now, Limit: 10}
			c.IfUsers = []store.UserAt{{ID: b.id()}}
			n, err := b.admin.EndEverySession(b.ctx(), c)
			b.is(err, store.ErrStale)
			equal(b, "the number that ended", n, 0)
		},
		"a hook is called after the conditions were checked": func(b *bench) {
			called := false
			nu := b.newUser("ada@example.com")
			nu.Creating = func(context.Context, store.User) error {
				called = true
				return nil
			}
			c := store.CreateUser{Change: by(now), NewUser: nu}
			for name, edit := range map[string]func(*store.Change){
				"IfUsers":   func(c *store.Change) { c.IfUsers = []store.UserAt{{ID: b.id()}} },
				"KeepOwner": func(c *store.Change) { c.KeepOwner = true },
			} {
				c.Change = by(now)
				edit(&c.Change)
				_, err := b.CreateUser(b.ctx(), c)
				b.of("%s", name).refuses(err, "a condition that does not hold")
				equal(b.of("%s", name), "NewUser.Creating called", called, false)
			}
			c.Change = by(now)
			_, err := b.CreateUser(b.ctx(), c)
			b.ok(err)
			equal(b, "NewUser.Creating called", called, true)
		},
		"credentials do not depend on the time of the machine": func(b *bench) {
			u := b.user("ada@example.com")
			until := time.Now().Add(-time.Hour).UTC().Truncate(us) // over by the machine, not by the caller
			b.trust(u.ID, "one", until)
			b.trusts(u.ID, "one", until)
			past := now.Add(us) // over by the caller's next call, too
			b.trust(u.ID, "two", past)
			b.trusts(u.ID, "two", past)
		},
	}
}
