package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/store"
)

// survives checks that a round trip through JSON does not change a value.
func survives[T any](b *bench, v T) {
	b.Helper()
	raw, err := json.Marshal(v)
	b.ok(err)
	var again T
	b.ok(json.Unmarshal(raw, &again))
	equal(b, fmt.Sprintf("%T after a round trip through JSON", v), again, v)
}

// kept checks the form of stored values: ids, order and JSON.
func kept() checks {
	return checks{
		"what is kept survives JSON": func(b *bench) {
			u := b.whole()
			u.BannedUntil = now
			s := b.session(u.ID)
			got, user, err := b.Session(b.ctx(), s.ID, now)
			b.ok(err)
			survives(b, got)
			survives(b, user)
			t := newToken("t", "subject")
			t.UserID = u.ID
			b.token(t)
			token, err := b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
			b.ok(err)
			survives(b, token)
			if b.factors != nil {
				b.enrol(u)
				f, err := b.factors.Factors(b.ctx(), u.ID)
				b.ok(err)
				survives(b, f)
			}
			if b.journal != nil {
				b.say(u.ID, b.event(now))
				list, err := b.journal.Events(b.ctx(), store.EventQuery{})
				b.ok(err)
				survives(b, list)
			}
			if b.journal != nil {
				b.post(u.ID, b.message())
				list, err := b.journal.ClaimMessages(b.ctx(), store.ClaimMessages{Now: now, Until: now.Add(minute), Limit: 1})
				b.ok(err)
				survives(b, list)
			}
			if b.project != nil {
				table, err := b.putRole(store.RolePermissions{Name: "one", Permissions: []string{"a:b"}})
				b.ok(err)
				survives(b, table)
			}
			if b.project != nil {
				k, err := b.putKey(b.newKey("k"))
				b.ok(err)
				survives(b, k)
			}
		},
		"times are in UTC, to the microsecond": func(b *bench) {
			nu := b.newUser("ada@example.com")
			u := &nu.User
			u.EmailVerifiedAt, u.Phone, u.PhoneVerifiedAt, u.LastSignInAt, u.BannedUntil = now, "+491", now, now, now
			u.Identities = []store.Identity{b.identity("p", "1")}
			sent := nu
			sent.User = abroad(nu.User)
			made, err := b.CreateUser(b.ctx(), store.CreateUser{Change: abroad(by(now)), NewUser: sent})
			b.ok(err)
			b.sameUser(made, *u)
			b.stands(store.Credentials{User: *u})
			until := now.Add(us)
			sent.User, err = b.UpdateUser(b.ctx(), store.UpdateUser{Change: abroad(by(now)), UserID: u.ID, Patch: store.UserPatch{BannedUntil: ptr(abroad(until)), EmailVerifiedAt: ptr(abroad(until))}})
			b.ok(err)
			u.BannedUntil, u.EmailVerifiedAt, u.Revision, u.CredentialRevision = until, until, 1, 1
			b.sameUser(sent.User, *u)
			b.stands(store.Credentials{User: *u})
			s := b.newSession(u.ID)
			s.AAL, s.Device = store.LevelAAL2, "one"
			s.CreatedAt, s.ExpiresAt = until, now.Add(2*time.Hour)
			owner, err := b.CreateSession(b.ctx(), store.CreateSession{Change: abroad(by(until)), NewSession: store.NewSession{Session: abroad(s), TrustUntil: abroad(until)}})
			b.ok(err)
			equal(b, "User.LastSignInAt", owner.LastSignInAt, until)
			b.trusts(u.ID, "one", until)
			kept, _, err := b.Session(b.ctx(), s.ID, until)
			b.ok(err)
			b.sameSession(kept, s)
			moved, _, err := b.AdvanceSession(b.ctx(), store.Advance{Change: abroad(by(until)), SessionID: s.ID, IdleUntil: abroad(now.Add(minute))})
			b.ok(err)
			s.Counter, s.RotatedAt, s.LastActiveAt, s.IdleUntil = 1, until, until, now.Add(minute)
			b.sameSession(moved, s)
			t := newToken("t", "subject")
			t.CodeExpiresAt = until
			b.token(abroad(t))
			got, err := b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
			b.ok(err)
			equal(b, "Token", []time.Time{got.CreatedAt, got.ExpiresAt, got.CodeExpiresAt}, []time.Time{t.CreatedAt, t.ExpiresAt, t.CodeExpiresAt})
		},
		"an id is a UUID of any version": func(b *bench) {
			newID := map[string]func() string{
				"1": func() string { return uuid.Must(uuid.NewUUID()).String() },
				"3": func() string { return uuid.NewMD5(uuid.NameSpaceDNS, hashOf(b.id())).String() },
				"4": func() string { return uuid.NewString() },
				"5": func() string { return uuid.NewSHA1(uuid.NameSpaceDNS, hashOf(b.id())).String() },
				"6": func() string { return uuid.Must(uuid.NewV6()).String() },
				"8": func() string { return "01234567-89ab-8" + b.id()[15:] },
			}
			for version, id := range newID {
				b := b.of("version %s", version)
				nu := b.newUser("")
				nu.User.ID = id()
				i := b.identity("p", version)
				i.ID = id()
				nu.User.Identities = []store.Identity{i}
				u, err := b.create(nu)
				b.ok(err)
				b.stands(store.Credentials{User: nu.User})
				s := b.newSession(u.ID)
				s.ID = id()
				_, err = b.signIn(s)
				b.ok(err)
				got, _, err := b.Session(b.ctx(), s.ID, now)
				b.ok(err)
				b.sameSession(got, s)
				if b.factors != nil {
					f := b.newFactor(u.ID)
					f.ID = id()
					b.ok(b.putFactor(f))
					b.has(f, 0)
				}
				if b.project != nil {
					k := b.newKey(version)
					k.ID = id()
					_, err := b.putKey(k)
					b.ok(err)
					k.CreatedAt = now
					b.keeps(k)
				}
			}
		},
		"lists are in the order of time and id": func(b *bench) {
			nu := b.newUser("ada@example.com")
			var want []string
			for i := range 6 {
				identity := b.identity("p", b.id())
				identity.CreatedAt = now.Add(time.Duration(i/2) * us)
				identity.ID = uuid.NewString()
				nu.User.Identities = append(nu.User.Identities, identity)
			}
			slices.SortFunc(nu.User.Identities, func(a, b store.Identity) int {
				if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
					return c
				}
				return slices.Compare([]byte(a.ID), []byte(b.ID))
			})
			for _, i := range nu.User.Identities {
				want = append(want, i.ID)
			}
			slices.Reverse(nu.User.Identities)
			_, err := b.create(nu)
			b.ok(err)
			u, err := b.User(b.ctx(), store.ByID(nu.User.ID))
			b.ok(err)
			var got []string
			for _, i := range u.Identities {
				got = append(got, i.ID)
			}
			listed(b, "ids of identities", got, want)
			got, want = nil, nil
			for range 4 { // with equal times
				s := b.newSession(u.ID)
				s.ID = uuid.NewString()
				_, err := b.signIn(s)
				b.ok(err)
				want = append(want, s.ID)
			}
			slices.Sort(want)
			slices.Reverse(want) // newest first
			list, err := b.Sessions(b.ctx(), u.ID, now)
			b.ok(err)
			for _, s := range list {
				got = append(got, s.ID)
			}
			listed(b, "ids of sessions", got, want)
		},
	}
}
