package storetest

import (
	"context"
	"errors"

	"github.com/authmount/auth/store"
)

func users() checks {
	return checks{
		"a user comes back as it went in": func(b *bench) {
			nu := b.newUser("Ada@example.com")
			nu.User.EmailVerifiedAt, nu.User.Phone, nu.User.PhoneVerifiedAt, nu.User.FullName = now.Add(us), "+4930123456", now.Add(2*us), "Ada Lovelace"
			nu.User.UserMetadata = map[string]any{"s": "ü", "n": 1.5, "t": true, "z": nil, "m": map[string]any{"l": []any{"a", 2.0, map[string]any{}, []any{}}}}
			nu.User.AppMetadata = map[string]any{"plan": "pro"}
			nu.User.Roles = []string{"b", "a"}
			nu.User.Identities = []store.Identity{{ID: b.id(), Provider: "p", Subject: "s", Email: "x@example.com", CreatedAt: now, LastSignInAt: now.Add(us)}}
			nu.PasswordHash = "hash"
			created, err := b.create(nu)
			b.ok(err)
			b.sameUser(created, nu.User)
			for _, key := range []store.UserKey{store.ByID(nu.User.ID), store.ByEmail("ada@EXAMPLE.com"), store.ByPhone("+4930123456"), store.ByIdentity("p", "s")} {
				u, err := b.User(b.ctx(), key)
				b.ok(err)
				b.sameUser(u, nu.User)
				c, err := b.Credentials(b.ctx(), key)
				b.ok(err)
				b.sameUser(c.User, nu.User)
				equal(b, "Credentials.PasswordHash", c.PasswordHash, "hash")
			}
		},
		"a user needs no address": func(b *bench) {
			one, two := b.user(""), b.user("")
			equal(b, "one user for two", one.ID == two.ID, false)
		},
		"an unknown user is not found": func(b *bench) {
			b.user("ada@example.com")
			for _, key := range []store.UserKey{
				store.ByID(b.id()), store.ByEmail("b@example.com"), store.ByPhone("+491"), store.ByIdentity("p", "s"),
				store.ByID("x"), store.ByID("\x00"), store.ByEmail("\x00@example.com"), store.ByEmail("\xff@example.com"), store.ByPhone("\x00"), store.ByIdentity("p", "\x00"), store.ByIdentity("\xff", "s"),
			} {
				_, err := b.User(b.ctx(), key)
				b.is(err, store.ErrNotFound)
				_, err = b.Credentials(b.ctx(), key)
				b.is(err, store.ErrNotFound)
			}
			_, err := b.update(b.id(), store.UserPatch{FullName: ptr("x")})
			b.is(err, store.ErrNotFound)
			b.is(b.delete(b.id()), store.ErrNotFound)
		},
		"addresses are one whatever their case": func(b *bench) {
			b.user("Straße.Ünal@example.com")
			_, err := b.create(b.newUser("straße.üNAL@EXAMPLE.com"))
			b.conflict(err, "email")
			_, err = b.User(b.ctx(), store.ByEmail("STRAßE.ünal@example.com"))
			b.ok(err)
			b.user("mike@example.com")
			b.user("Οδυσσεύς@example.com")
			_, err = b.User(b.ctx(), store.ByEmail("ΟΔΥΣΣΕΎΣ@example.com")) // lower case alone does not match this
			b.ok(err)
			for _, other := range []string{"mİke@example.com", "MIKE\u0307@example.com", "mi\u212ae@example.com"} { // other case foldings match these
				_, err = b.User(b.ctx(), store.ByEmail(other))
				b.is(err, store.ErrNotFound)
			}
		},
		"unique values are unique": func(b *bench) {
			first := b.newUser("ada@example.com")
			first.User.Phone = "+4930123456"
			first.User.Identities = []store.Identity{{ID: b.id(), Provider: "p", Subject: "s", CreatedAt: now}}
			_, err := b.create(first)
			b.ok(err)
			for field, edit := range map[string]func(*store.User){
				"email": func(u *store.User) { u.Email = "ADA@example.com" },
				"phone": func(u *store.User) { u.Phone = "+4930123456" },
				"identity": func(u *store.User) {
					u.Identities = []store.Identity{{ID: b.id(), Provider: "p", Subject: "s", CreatedAt: now}}
				},
				"id": func(u *store.User) { u.ID = first.User.ID },
			} {
				nu := b.newUser("other@example.com")
				edit(&nu.User)
				_, err := b.create(nu)
				b.conflict(err, field)
			}
			other := b.user("other@example.com")
			for field, patch := range map[string]store.UserPatch{
				"email":    {Email: ptr("Ada@example.com"), FullName: ptr("x")},
				"phone":    {Phone: ptr("+4930123456"), FullName: ptr("x")},
				"identity": {Link: &store.Identity{ID: b.id(), Provider: "p", Subject: "s", CreatedAt: now}, FullName: ptr("x")},
			} {
				_, err := b.update(other.ID, patch)
				b.conflict(err, field)
			}
			u, err := b.User(b.ctx(), store.ByID(other.ID))
			b.ok(err)
			b.sameUser(u, other)
		},
		"a conflict keeps nothing": func(b *bench) {
			b.user("ada@example.com")
			nu := b.newUser("ada@example.com")
			s := b.newSession(nu.User.ID)
			t := newToken("t", "subject")
			t.UserID = nu.User.ID
			nu.Session, nu.Tokens = &s, []store.Token{t}
			nu.User.Identities = []store.Identity{{ID: b.id(), Provider: "p", Subject: "s", CreatedAt: now}}
			_, err := b.create(nu)
			b.conflict(err, "email")
			_, _, err = b.Session(b.ctx(), s.ID, now)
			b.is(err, store.ErrNotFound)
			_, err = b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
			b.is(err, store.ErrNotFound)
			_, err = b.User(b.ctx(), store.ByIdentity("p", "s"))
			b.is(err, store.ErrNotFound)
		},
		"a creation that is refused keeps nothing": func(b *bench) {
			refused := errors.New("refused")
			nu := b.newUser("ada@example.com")
			s := b.newSession(nu.User.ID)
			t := newToken("t", "subject")
			t.UserID = nu.User.ID
			nu.Session, nu.Tokens = &s, []store.Token{t}
			nu.Creating = func(_ context.Context, u store.User) error {
				equal(b.of("Creating"), "User.ID", u.ID, nu.User.ID)
				equal(b.of("Creating"), "User.Email", u.Email, "ada@example.com")
				return refused
			}
			_, err := b.create(nu)
			b.is(err, refused)
			b.token(newToken("link", "other"))
			_, _, err = b.use("link", store.Effect{Create: &nu})
			b.is(err, refused)
			b.ok(b.redeem("link")) // still valid
			_, err = b.User(b.ctx(), store.ByID(nu.User.ID))
			b.is(err, store.ErrNotFound)
			_, _, err = b.Session(b.ctx(), s.ID, now)
			b.is(err, store.ErrNotFound)
			_, err = b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
			b.is(err, store.ErrNotFound)
			nu.Creating = func(context.Context, store.User) error { return nil }
			_, err = b.create(nu)
			b.ok(err)
		},
		"a user comes with session and tokens": func(b *bench) {
			nu := b.newUser("ada@example.com")
			s := b.newSession(nu.User.ID)
			one, two := newToken("one", "1"), newToken("two", "2")
			one.UserID, two.UserID = nu.User.ID, nu.User.ID
			nu.Session, nu.Tokens = &s, []store.Token{one, two}
			u, err := b.create(nu)
			b.ok(err)
			want := nu.User
			want.LastSignInAt = s.CreatedAt
			b.sameUser(u, want)
			kept, _, err := b.Session(b.ctx(), s.ID, now)
			b.ok(err)
			b.sameSession(kept, s)
			for _, t := range nu.Tokens {
				got, err := b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
				b.ok(err)
				b.sameToken(got, t)
			}
		},
		"of parallel sign-ups one wins": func(b *bench) {
			won, lost := b.race(func(int) error {
				_, err := b.create(b.newUser("ada@example.com"))
				return err
			}, store.ErrConflict)
			b.oneWon(won, lost, store.ErrConflict)
		},
		"deleting takes everything along": func(b *bench) {
			nu := b.newUser("ada@example.com")
			nu.User.Phone = "+491"
			nu.User.Identities = []store.Identity{{ID: b.id(), Provider: "p", Subject: "s", CreatedAt: now}}
			u, err := b.create(nu)
			b.ok(err)
			s := b.session(u.ID)
			t := newToken("t", "")
			t.UserID = u.ID
			b.token(t)
			b.ok(b.delete(u.ID))
			for _, key := range []store.UserKey{store.ByID(u.ID), store.ByEmail(u.Email), store.ByPhone("+491"), store.ByIdentity("p", "s")} {
				_, err := b.User(b.ctx(), key)
				b.is(err, store.ErrNotFound)
			}
			_, _, err = b.Session(b.ctx(), s.ID, now)
			b.is(err, store.ErrNotFound)
			_, _, err = b.AdvanceSession(b.ctx(), store.Advance{Change: by(now), SessionID: s.ID, IdleUntil: now.Add(minute)})
			b.is(err, store.ErrNotFound)
			_, err = b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
			b.is(err, store.ErrNotFound)
			b.is(b.redeem("t"), store.ErrNotFound)
			b.is(b.put(t), store.ErrNotFound)
			_, err = b.signIn(b.newSession(u.ID))
			b.is(err, store.ErrNotFound)
			list, err := b.Sessions(b.ctx(), u.ID, now)
			b.ok(err)
			equal(b, "sessions", list, []store.Session{})
			nu.User.ID, nu.User.Identities[0].ID = b.id(), b.id()
			_, err = b.create(nu) // everything is free again
			b.ok(err)
		},
		"values are copies": func(b *bench) {
			nu := b.newUser("ada@example.com")
			nu.User.UserMetadata = map[string]any{"m": map[string]any{"k": "v"}, "l": []any{"a"}}
			nu.User.AppMetadata, nu.User.Roles = map[string]any{"k": "v"}, []string{"r"}
			nu.User.Identities = []store.Identity{{ID: b.id(), Provider: "p", Subject: "s", CreatedAt: now}}
			spoil := func(u store.User) {
				u.UserMetadata["m"].(map[string]any)["k"] = "spoilt"
				u.UserMetadata["l"].([]any)[0] = "spoilt"
				u.UserMetadata["new"], u.AppMetadata["k"] = true, "spoilt"
				u.Roles[0], u.Identities[0].Subject = "spoilt", "spoilt"
			}
			created, err := b.create(nu)
			b.ok(err)
			spoil(nu.User)
			spoil(created)
			read, err := b.User(b.ctx(), store.ByID(nu.User.ID))
			b.ok(err)
			if _, added := read.UserMetadata["new"]; added || read.UserMetadata["m"].(map[string]any)["k"] != "v" || read.UserMetadata["l"].([]any)[0] != "a" ||
				read.AppMetadata["k"] != "v" || read.Roles[0] != "r" || read.Identities[0].Subject != "s" {
				b.wrong("User, after callers wrote into theirs,", read, "none of what they wrote")
				b.FailNow()
			}
			spoil(read)
			patch, app := map[string]any{"m": map[string]any{"k": "w"}, "l": []any{"b"}}, map[string]any{"k": "w"}
			updated, err := b.update(nu.User.ID, store.UserPatch{UserMetadata: patch, AppMetadata: app})
			b.ok(err)
			spoil(updated)
			patch["m"].(map[string]any)["k"], app["k"] = "spoilt", "spoilt"
			read, err = b.User(b.ctx(), store.ByID(nu.User.ID))
			b.ok(err)
			equal(b, "User.UserMetadata.m.k, after the caller wrote into the patch,", read.UserMetadata["m"].(map[string]any)["k"], "w")
			equal(b, "User.AppMetadata.k, after the caller wrote into the patch,", read.AppMetadata["k"], "w")
		},
		"a caller who has gone changes nothing": func(b *bench) {
			u := b.user("ada@example.com")
			_, err := b.CreateUser(cancelled(), store.CreateUser{Change: by(now), NewUser: b.newUser("eve@example.com")})
			b.gone(err)
			_, err = b.UpdateUser(cancelled(), store.UpdateUser{Change: by(now), UserID: u.ID, Patch: store.UserPatch{FullName: ptr("x")}})
			b.gone(err)
			b.gone(b.DeleteUser(cancelled(), store.DeleteUser{Change: by(now), UserID: u.ID}))
			_, err = b.User(cancelled(), store.ByID(u.ID))
			b.gone(err)
			_, err = b.Credentials(cancelled(), store.ByID(u.ID))
			b.gone(err)
			_, err = b.User(b.ctx(), store.ByEmail("eve@example.com"))
			b.is(err, store.ErrNotFound)
			got, err := b.User(b.ctx(), store.ByID(u.ID))
			b.ok(err)
			b.sameUser(got, u)
		},
	}
}
