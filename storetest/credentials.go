package storetest

import (
	"reflect"
	"time"

	"github.com/authmount/auth/store"
)

// naming returns patches that each name one field of UserPatch, for a user of whole, and
// whether they raise CredentialRevision.
func (b *bench) naming() map[string]struct {
	patch store.UserPatch
	rises bool
} {
	b.Helper()
	linked := b.identity("p", "3")
	return map[string]struct {
		patch store.UserPatch
		rises bool
	}{
		"Email":           {store.UserPatch{Email: ptr("new@example.com")}, true},
		"EmailVerifiedAt": {store.UserPatch{EmailVerifiedAt: &time.Time{}}, true},
		"Phone":           {store.UserPatch{Phone: ptr("+491")}, true},
		"PhoneVerifiedAt": {store.UserPatch{PhoneVerifiedAt: &time.Time{}}, true},
		"FullName":        {store.UserPatch{FullName: ptr("x")}, false},
		"UserMetadata":    {store.UserPatch{UserMetadata: map[string]any{"x": "y"}}, false},
		"AppMetadata":     {store.UserPatch{AppMetadata: map[string]any{"x": "y"}}, false},
		"PasswordHash":    {store.UserPatch{PasswordHash: ptr("x")}, true},
		"Rehash":          {store.UserPatch{Rehash: ptr("x")}, false},
		"Roles":           {store.UserPatch{Roles: &[]string{"x"}}, true},
		"BannedUntil":     {store.UserPatch{BannedUntil: ptr(now)}, true},
		"Notes":           {store.UserPatch{Notes: ptr("x")}, false},
		"Handle":          {store.UserPatch{Handle: ptr("x")}, false},
		"Link":            {store.UserPatch{Link: &linked}, true},
		"Unlink":          {store.UserPatch{Unlink: ptr(store.ByIdentity("p", "1"))}, true},
		"Revoke":          {store.UserPatch{Revoke: &store.SessionFilter{}}, false},
		"DropTokens":      {store.UserPatch{DropTokens: []store.Purpose{store.PurposeReset}}, false},
		"DropFactors":     {store.UserPatch{DropFactors: true}, true},
		"DropDevices":     {store.UserPatch{DropDevices: true}, false},
		"RevokeKeys":      {store.UserPatch{RevokeKeys: 1}, false},
		"DropCredentials": {store.UserPatch{DropCredentials: true}, true},
		"KeepFactors":     {store.UserPatch{DropCredentials: true, KeepFactors: []string{b.id()}}, true},
		"KeepSession":     {store.UserPatch{DropCredentials: true, KeepSession: b.id()}, true},
		"Accept":          {store.UserPatch{Accept: true}, true},
		"AcceptedUntil":   {store.UserPatch{AcceptedUntil: ptr(now)}, true},
	}
}

// credentials checks when credentials count as changed, and that all can be dropped.
func credentials() checks {
	return checks{
		"every member of a patch is known": func(b *bench) {
			known := b.naming()
			for i := range reflect.TypeFor[store.UserPatch]().NumField() {
				name := reflect.TypeFor[store.UserPatch]().Field(i).Name
				_, ok := known[name]
				equal(b, "naming in storetest/credentials.go knows UserPatch."+name+", and whether it raises CredentialRevision as UserPatch.raisesCredentials in store/user.go has it:", ok, true)
			}
		},
		"a patch raises the revisions that it has to": func(b *bench) {
			for name, c := range b.naming() {
				u := b.whole()
				b.token(newToken("t", "subject"))
				for _, apply := range []func() (store.User, error){
					func() (store.User, error) { return b.updateAt(now.Add(us), u.ID, c.patch) },
					func() (store.User, error) { // a repeated patch is a change, too, except Link
						_, got, err := b.use("t", store.Effect{UserID: u.ID, Patch: &c.patch})
						return got, err
					},
				} {
					got, err := apply()
					b.ok(err)
					b.of("%s", name).rises("User.Revision", u.Revision, got.Revision)
					if c.rises {
						b.of("%s", name).rises("User.CredentialRevision", u.CredentialRevision, got.CredentialRevision)
					} else {
						equal(b.of("%s", name), "User.CredentialRevision", got.CredentialRevision, u.CredentialRevision)
					}
					stored, err := b.User(b.ctx(), store.ByID(u.ID))
					b.ok(err)
					b.sameUser(stored, got)
					if u = got; name == "Link" {
						c.rises = false // the user has the identity already
					}
					if name == "Unlink" {
						break
					}
				}
				b.ok(b.delete(u.ID))
				_ = b.redeem("t")
			}
		},
		"an empty patch raises nothing": func(b *bench) {
			u := b.whole()
			got, err := b.updateAt(now.Add(minute), u.ID, store.UserPatch{})
			b.ok(err)
			b.sameUser(got, u)
			b.stands(store.Credentials{User: u, PasswordHash: "hash"})
		},
		"a new user begins at revision zero, without a factor": func(b *bench) {
			nu := b.newUser("ada@example.com")
			nu.User.Revision, nu.User.CredentialRevision, nu.User.MFAEnabled = 7, 8, true
			got, err := b.create(nu)
			b.ok(err)
			equal(b, "User.Revision", got.Revision, 0)
			equal(b, "User.CredentialRevision", got.CredentialRevision, 0)
			equal(b, "User.MFAEnabled", got.MFAEnabled, false)
			b.stands(store.Credentials{User: got})
		},
		"all ways in are dropped but those named": func(b *bench) {
			for name, named := range b.kept() {
				b.Logf("named: %s", name)
				b.dropped(func(id string, p store.UserPatch) (store.User, error) { return b.updateAt(now.Add(us), id, p) }, named)
				b.dropped(func(id string, p store.UserPatch) (store.User, error) {
					b.token(newToken("link", "subject"))
					r := store.Redemption{Change: proof(now.Add(us)), Purpose: store.PurposeMagicLink, Hash: hashOf("link")}
					r.UserID, r.Patch = id, &p
					_, u, err := b.RedeemToken(b.ctx(), r)
					return u, err
				}, named)
			}
		},
		"dropping is judged with everything else": func(b *bench) {
			u := b.whole()
			s := b.session(u.ID)
			u.LastSignInAt = now
			b.user("taken@example.com")
			_, err := b.update(u.ID, store.UserPatch{DropCredentials: true, Email: ptr("taken@example.com")})
			b.conflict(err, "email")
			_, err = b.updateIf(store.UserAt{ID: u.ID, Revision: ptr(u.Revision + 1)}, store.UserPatch{DropCredentials: true})
			b.is(err, store.ErrStale)
			b.stands(store.Credentials{User: u, PasswordHash: "hash"})
			_, _, err = b.Session(b.ctx(), s.ID, now)
			b.ok(err)
		},
	}
}

// kept returns patches that name credentials in addition to DropCredentials.
func (b *bench) kept() map[string]patchCase {
	b.Helper()
	linked, renewed := b.identity("p", "3"), b.identity("p", "1")
	return map[string]patchCase{
		"none":     {store.UserPatch{}, func(*store.Credentials) {}},
		"password": {store.UserPatch{PasswordHash: ptr("new")}, func(c *store.Credentials) { c.PasswordHash = "new" }},
		"address proved": {store.UserPatch{EmailVerifiedAt: ptr(now.Add(us))}, func(c *store.Credentials) {
			c.User.Email, c.User.EmailVerifiedAt = "ada@example.com", now.Add(us)
		}},
		"another address": {store.UserPatch{Email: ptr("new@example.com"), EmailVerifiedAt: ptr(now.Add(us))}, func(c *store.Credentials) {
			c.User.Email, c.User.EmailVerifiedAt = "new@example.com", now.Add(us)
		}},
		"number proved": {store.UserPatch{PhoneVerifiedAt: ptr(now.Add(us))}, func(c *store.Credentials) {
			c.User.Phone, c.User.PhoneVerifiedAt = "+4930123456", now.Add(us)
		}},
		"another number": {store.UserPatch{Phone: ptr("+491"), PhoneVerifiedAt: ptr(now.Add(us))}, func(c *store.Credentials) {
			c.User.Phone, c.User.PhoneVerifiedAt = "+491", now.Add(us)
		}},
		"identity":     {store.UserPatch{Link: &linked}, func(c *store.Credentials) { c.User.Identities = []store.Identity{linked} }},
		"own identity": {store.UserPatch{Link: &renewed}, func(c *store.Credentials) { c.User.Identities = []store.Identity{renewed} }},
		"name":         {store.UserPatch{FullName: ptr("B")}, func(c *store.Credentials) { c.User.FullName = "B" }},
	}
}

// dropped drops all credentials except the named ones from an account that has every kind,
// and checks that none is left.
func (b *bench) dropped(apply func(id string, p store.UserPatch) (store.User, error), named patchCase) {
	b.Helper()
	u := b.whole()
	ids := []string{b.session(u.ID).ID}
	if b.factors != nil {
		var s store.Session
		u, s, _ = b.enrol(u)
		ids = append(ids, s.ID)
	}
	other := b.user("other@example.com")
	foreign := b.session(other.ID)
	purposes := []store.Purpose{
		store.PurposeMagicLink, store.PurposeVerifyEmail, store.PurposeReset, store.PurposeExchange, store.PurposePhoneCode,
		store.PurposeMFA, store.PurposeEnroll, store.PurposePhoneChange, store.PurposeOAuth, "one that comes later",
	}
	owners := map[string]bool{u.ID: false, other.ID: true} // the users with tokens that must be kept
	for id := range owners {
		for _, p := range purposes {
			t := newToken(id+string(p), id+string(p))
			t.Purpose, t.UserID = p, id
			b.token(t)
		}
	}
	u, err := b.User(b.ctx(), store.ByID(u.ID))
	b.ok(err)
	p := named.patch
	p.DropCredentials = true
	got, err := apply(u.ID, p)
	b.ok(err)
	want := store.Credentials{User: u}
	want.User.Email, want.User.EmailVerifiedAt, want.User.Phone, want.User.PhoneVerifiedAt = "", time.Time{}, "", time.Time{}
	want.User.Identities, want.User.MFAEnabled, want.User.UpdatedAt = nil, false, now.Add(us)
	want.User.Revision = max(got.Revision, u.Revision+1)
	want.User.CredentialRevision = max(got.CredentialRevision, u.CredentialRevision+1)
	named.edit(&want)
	b.sameUser(got, want.User)
	b.stands(want)
	for _, id := range ids {
		_, _, err := b.Session(b.ctx(), id, now)
		b.is(err, store.ErrSessionEnded)
	}
	_, _, err = b.Session(b.ctx(), foreign.ID, now)
	b.ok(err)
	for id, stays := range owners {
		for _, p := range purposes {
			_, err := b.PeekToken(b.ctx(), p, hashOf(id+string(p)), now)
			equal(b.of("token for %s", p), "still there", err == nil, stays)
		}
	}
	if b.factors != nil {
		b.hasNone(u.ID)
		for _, code := range []string{"r1", "r2"} {
			_, err := b.recover(u.ID, code)
			b.is(err, store.ErrNotFound)
		}
	}
	for _, i := range []string{"1", "2"} {
		if _, err := b.User(b.ctx(), store.ByIdentity("p", i)); err == nil && (p.Link == nil || p.Link.Subject != i) {
			b.wrong("identity "+i, "left", "none")
		}
	}
	for _, id := range []string{u.ID, other.ID} {
		b.ok(b.delete(id))
	}
}
