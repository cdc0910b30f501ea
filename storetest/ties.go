package storetest

import (
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
			b.conflict(err, "id")
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
			b.conflict(err, "id")
			_, err = b.User(b.ctx(), store.ByIdentity("p", "2"))
			b.is(err, store.ErrNotFound)
			nu := b.newUser("")
			nu.User.Identities = []store.Identity{i}
			_, err = b.create(nu)
			b.conflict(err, "id")
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
