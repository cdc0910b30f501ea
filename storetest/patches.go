package storetest

import (
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// patchCase is a patch and its result for a user of whole.
type patchCase struct {
	patch store.UserPatch
	edit  func(*store.Credentials)
}

// ordinary returns patches that do not change the second factor.
func (b *bench) ordinary() map[string]patchCase {
	b.Helper()
	linked, renewed := b.identity("p", "3"), b.identity("p", "1")
	without := func(c *store.Credentials, provider, subject string) []store.Identity {
		return slices.DeleteFunc(c.User.Identities, func(i store.Identity) bool { return i.Provider == provider && i.Subject == subject })
	}
	return map[string]patchCase{
		"address":        {store.UserPatch{Email: ptr("new@example.com")}, func(c *store.Credentials) { c.User.Email = "new@example.com" }},
		"email verified": {store.UserPatch{EmailVerifiedAt: &time.Time{}}, func(c *store.Credentials) { c.User.EmailVerifiedAt = time.Time{} }},
		"phone":          {store.UserPatch{Phone: ptr("+491")}, func(c *store.Credentials) { c.User.Phone = "+491" }},
		"phone verified": {store.UserPatch{PhoneVerifiedAt: &time.Time{}}, func(c *store.Credentials) { c.User.PhoneVerifiedAt = time.Time{} }},
		"name":           {store.UserPatch{FullName: ptr("B")}, func(c *store.Credentials) { c.User.FullName = "B" }},
		"user metadata":  {store.UserPatch{UserMetadata: map[string]any{}}, func(c *store.Credentials) { c.User.UserMetadata = nil }},
		"app metadata":   {store.UserPatch{AppMetadata: map[string]any{}}, func(c *store.Credentials) { c.User.AppMetadata = nil }},
		"password":       {store.UserPatch{PasswordHash: ptr("two")}, func(c *store.Credentials) { c.PasswordHash = "two" }},
		"no password":    {store.UserPatch{PasswordHash: ptr("")}, func(c *store.Credentials) { c.PasswordHash = "" }},
		"rehash":         {store.UserPatch{Rehash: ptr("again")}, func(c *store.Credentials) { c.PasswordHash = "again" }},
		"roles":          {store.UserPatch{Roles: &[]string{"s", "q"}}, func(c *store.Credentials) { c.User.Roles = []string{"s", "q"} }},
		"no roles":       {store.UserPatch{Roles: &[]string{}}, func(c *store.Credentials) { c.User.Roles = nil }},
		"ban":            {store.UserPatch{BannedUntil: ptr(now)}, func(c *store.Credentials) { c.User.BannedUntil = now }},
		"link":           {store.UserPatch{Link: &linked}, func(c *store.Credentials) { c.User.Identities = append(c.User.Identities, linked) }},
		"renewal":        {store.UserPatch{Link: &renewed}, func(c *store.Credentials) { c.User.Identities = append(without(c, "p", "1"), renewed) }},
		"unlink":         {store.UserPatch{Unlink: ptr(store.ByIdentity("p", "1"))}, func(c *store.Credentials) { c.User.Identities = without(c, "p", "1") }},
		"link and unlink": {store.UserPatch{Link: &linked, Unlink: ptr(store.ByIdentity("q", "1"))}, func(c *store.Credentials) {
			c.User.Identities = append(without(c, "q", "1"), linked)
		}},
		"revocation": {store.UserPatch{Revoke: &store.SessionFilter{ID: b.id()}}, func(*store.Credentials) {}},
		"tokens":     {store.UserPatch{DropTokens: []store.Purpose{store.PurposeReset}}, func(*store.Credentials) {}},
	}
}

// refused returns changes of every field that must not be applied.
func (b *bench) refused(u store.User) map[string]store.UpdateUser {
	b.Helper()
	nu := b.newUser("taken@example.com")
	nu.User.Phone, nu.User.Handle, nu.User.Identities = "+49", "taken", []store.Identity{b.identity("p", "taken")}
	_, err := b.create(nu)
	b.ok(err)
	refused := map[string]store.UpdateUser{
		"revision": {Change: store.Change{IfUsers: []store.UserAt{{ID: u.ID, Revision: ptr(u.Revision + 1)}}}},
		"hash":     {Change: store.Change{IfUsers: []store.UserAt{{ID: u.ID, PasswordHash: ptr("other")}}}},
		"email":    {Patch: store.UserPatch{Email: ptr("taken@example.com")}},
		"phone":    {Patch: store.UserPatch{Phone: ptr("+49")}},
		"identity": {Patch: store.UserPatch{Link: ptr(b.identity("p", "taken"))}},
		"handle":   {Patch: store.UserPatch{Handle: ptr("taken")}},
	}
	for name, c := range refused {
		c.UserID, c.Now, c.By = u.ID, now.Add(us), by(now).By
		p := &c.Patch
		p.FullName, p.PasswordHash, p.Unlink, p.DropFactors = ptr("x"), ptr("x"), ptr(store.ByIdentity("p", "1")), true
		p.Revoke, p.DropTokens, p.Roles = &store.SessionFilter{}, []store.Purpose{store.PurposeMagicLink}, &[]string{}
		refused[name] = c
	}
	return refused
}

func patches() checks {
	return checks{
		"a patch changes what it names": func(b *bench) {
			nu := b.newUser("ada@example.com")
			nu.User.FullName, nu.User.UserMetadata, nu.User.AppMetadata = "Ada", map[string]any{"a": "b"}, map[string]any{"c": "d"}
			nu.PasswordHash = "one"
			u, err := b.create(nu)
			b.ok(err)
			later := now.Add(time.Second)
			got, err := b.UpdateUser(b.ctx(), store.UpdateUser{Change: by(later), UserID: u.ID, Patch: store.UserPatch{FullName: ptr("")}})
			b.ok(err)
			want := u
			want.FullName, want.UpdatedAt, want.Revision = "", later, got.Revision
			b.sameUser(got, want)
			b.rises("User.Revision", u.Revision, got.Revision)
			got, err = b.UpdateUser(b.ctx(), store.UpdateUser{Change: by(later), UserID: u.ID, Patch: store.UserPatch{
				Email: ptr("New@example.com"), EmailVerifiedAt: ptr(now), Phone: ptr("+491"), PhoneVerifiedAt: ptr(now), FullName: ptr("B"),
				UserMetadata: map[string]any{"x": 1.0}, AppMetadata: map[string]any{}, BannedUntil: ptr(later), PasswordHash: ptr("two"),
				Roles: &[]string{"a", "b"},
			}})
			b.ok(err)
			want.Email, want.EmailVerifiedAt, want.Phone, want.PhoneVerifiedAt, want.FullName = "New@example.com", now, "+491", now, "B"
			want.UserMetadata, want.AppMetadata, want.BannedUntil, want.Roles = map[string]any{"x": 1.0}, nil, later, []string{"a", "b"}
			want.Revision, want.CredentialRevision = got.Revision, got.CredentialRevision
			b.sameUser(got, want)
			c, err := b.Credentials(b.ctx(), store.ByEmail("new@example.com"))
			b.ok(err)
			b.sameUser(c.User, want)
			equal(b, "Credentials.PasswordHash", c.PasswordHash, "two")
			_, err = b.User(b.ctx(), store.ByEmail("ada@example.com"))
			b.is(err, store.ErrNotFound)
			b.user("ada@example.com") // free again
			got, err = b.UpdateUser(b.ctx(), store.UpdateUser{Change: by(later), UserID: u.ID, Patch: store.UserPatch{BannedUntil: &time.Time{}, PasswordHash: ptr(""), Phone: ptr("")}})
			b.ok(err)
			equal(b, "User.BannedUntil", got.BannedUntil, time.Time{})
			equal(b, "User.Phone", got.Phone, "")
			other := b.newUser("other@example.com")
			other.User.Phone = "+491" // free again, too
			_, err = b.create(other)
			b.ok(err)
		},
		"a patch keeps what it does not name": func(b *bench) {
			later := now.Add(time.Second)
			for name, c := range b.ordinary() {
				b.Logf("patch: %s", name)
				u := b.whole()
				s := b.newSession(u.ID)
				u, err := b.signIn(s)
				b.ok(err)
				t := newToken("t", "subject")
				t.UserID = u.ID
				b.token(t)
				got, err := b.UpdateUser(b.ctx(), store.UpdateUser{Change: by(later), UserID: u.ID, Patch: c.patch})
				b.ok(err)
				want := store.Credentials{User: u, PasswordHash: "hash"}
				c.edit(&want)
				want.User.UpdatedAt, want.User.Revision, want.User.CredentialRevision = later, max(got.Revision, u.Revision+1), got.CredentialRevision
				b.sameUser(got, want.User)
				b.stands(want)
				kept, _, err := b.Session(b.ctx(), s.ID, now)
				b.ok(err)
				b.sameSession(kept, s)
				_, err = b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
				b.ok(err)
				b.ok(b.delete(u.ID))
			}
		},
		"an own address may change its case": func(b *bench) {
			u := b.user("ada@example.com")
			got, err := b.update(u.ID, store.UserPatch{Email: ptr("Ada@example.com")})
			b.ok(err)
			equal(b, "User.Email", got.Email, "Ada@example.com")
		},
		"a patch holds its conditions": func(b *bench) {
			nu := b.newUser("ada@example.com")
			nu.PasswordHash = "one"
			u, err := b.create(nu)
			b.ok(err)
			for name, at := range map[string]store.UserAt{
				"revision":    {Revision: ptr(u.Revision + 1)},
				"hash":        {PasswordHash: ptr("two")},
				"no password": {PasswordHash: ptr("")},
			} {
				at.ID = u.ID
				_, err := b.updateIf(at, store.UserPatch{FullName: ptr("x")})
				b.of("%s", name).is(err, store.ErrStale)
			}
			_, err = b.updateIf(store.UserAt{ID: u.ID, Revision: &u.Revision, PasswordHash: ptr("one")}, store.UserPatch{FullName: ptr("x")})
			b.ok(err)
			_, err = b.updateIf(store.UserAt{ID: u.ID, Revision: &u.Revision}, store.UserPatch{FullName: ptr("y")})
			b.is(err, store.ErrStale)
			_, err = b.updateIf(store.UserAt{ID: b.user("").ID, PasswordHash: ptr("one")}, store.UserPatch{FullName: ptr("x")})
			b.is(err, store.ErrStale) // a user without a password does not have this one
		},
		"a patch that is refused changes nothing": func(b *bench) {
			want := store.Credentials{User: b.whole(), PasswordHash: "hash"}
			s := b.session(want.User.ID)
			want.User.LastSignInAt = s.CreatedAt
			t := newToken("t", "subject")
			t.UserID = want.User.ID
			b.token(t)
			for name, c := range b.refused(want.User) {
				b.Logf("refused: %s", name)
				_, err := b.UpdateUser(b.ctx(), c)
				b.refuses(err, "applied all the same")
				b.stands(want)
				kept, _, err := b.Session(b.ctx(), s.ID, now)
				b.ok(err)
				b.sameSession(kept, s)
				_, err = b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
				b.ok(err)
			}
		},
		"of parallel patches of one revision one wins": func(b *bench) {
			u := b.user("ada@example.com")
			won, lost := b.race(func(int) error {
				_, err := b.updateIf(store.UserAt{ID: u.ID, Revision: &u.Revision}, store.UserPatch{FullName: ptr("x")})
				return err
			}, store.ErrStale)
			b.oneWon(won, lost, store.ErrStale)
		},
		"identities are linked, renewed and unlinked": func(b *bench) {
			u := b.user("ada@example.com")
			first := store.Identity{ID: b.id(), Provider: "p", Subject: "1", Email: "a@example.com", CreatedAt: now, LastSignInAt: now}
			_, err := b.update(u.ID, store.UserPatch{Link: &first})
			b.ok(err)
			renewed := first
			renewed.LastSignInAt, renewed.Email = now.Add(minute), "b@example.com"
			got, err := b.update(u.ID, store.UserPatch{Link: &renewed})
			b.ok(err)
			renewed.Origin = store.Origin{Sequence: 2}
			equal(b, "User.Identities", got.Identities, []store.Identity{renewed})
			_, err = b.update(u.ID, store.UserPatch{Unlink: ptr(store.ByIdentity("p", "other"))})
			b.ok(err)
			got, err = b.update(u.ID, store.UserPatch{Unlink: ptr(store.ByIdentity("p", "1"))})
			b.ok(err)
			equal(b, "number of User.Identities", len(got.Identities), 0)
			_, err = b.User(b.ctx(), store.ByIdentity("p", "1"))
			b.is(err, store.ErrNotFound)
		},
		"of parallel links of one identity one wins": func(b *bench) {
			ids := make([]string, parallel)
			for i := range ids {
				ids[i] = b.user("").ID
			}
			won, _ := b.race(func(i int) error {
				_, err := b.update(ids[i], store.UserPatch{Link: &store.Identity{ID: ids[i], Provider: "p", Subject: "s", CreatedAt: now}})
				return err
			}, store.ErrConflict)
			equal(b, "successful parallel calls", won, 1)
		},
		"a patch revokes sessions and drops tokens": func(b *bench) {
			u, other := b.user("ada@example.com"), b.user("eve@example.com")
			keep, gone, others := b.session(u.ID), b.session(u.ID), b.session(other.ID)
			for _, p := range []store.Purpose{store.PurposeReset, store.PurposeMagicLink} {
				for _, about := range []string{"", "s"} {
					t := newToken(string(p)+about, about)
					t.Purpose, t.UserID = p, u.ID
					b.token(t)
				}
			}
			foreign := newToken("foreign", "f")
			foreign.Purpose, foreign.UserID = store.PurposeReset, other.ID
			b.token(foreign)
			_, err := b.update(u.ID, store.UserPatch{Revoke: &store.SessionFilter{Except: keep.ID}, DropTokens: []store.Purpose{store.PurposeExchange, store.PurposeReset}})
			b.ok(err)
			_, _, err = b.Session(b.ctx(), gone.ID, now)
			b.is(err, store.ErrSessionEnded)
			for _, id := range []string{keep.ID, others.ID} {
				_, _, err = b.Session(b.ctx(), id, now)
				b.ok(err)
			}
			for _, about := range []string{"", "s"} {
				_, err = b.PeekToken(b.ctx(), store.PurposeReset, hashOf(string(store.PurposeReset)+about), now)
				b.is(err, store.ErrNotFound)
				_, err = b.PeekToken(b.ctx(), store.PurposeMagicLink, hashOf(string(store.PurposeMagicLink)+about), now)
				b.ok(err)
			}
			_, err = b.PeekToken(b.ctx(), store.PurposeReset, foreign.Hash, now)
			b.ok(err)
		},
	}
}
