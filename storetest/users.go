package storetest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/authmount/auth"
)

// ordinary are patches that leave the second factor alone, each with what it
// makes of a user that whole has added.
func (b *bench) ordinary() map[string]struct {
	patch auth.UserPatch
	edit  func(*auth.Credentials)
} {
	b.Helper()
	linked, renewed := b.identity("p", "3"), b.identity("p", "1")
	without := func(c *auth.Credentials, provider, subject string) []auth.Identity {
		return slices.DeleteFunc(c.User.Identities, func(i auth.Identity) bool { return i.Provider == provider && i.Subject == subject })
	}
	return map[string]struct {
		patch auth.UserPatch
		edit  func(*auth.Credentials)
	}{
		"address":        {auth.UserPatch{Email: ptr("new@example.com")}, func(c *auth.Credentials) { c.User.Email = "new@example.com" }},
		"email verified": {auth.UserPatch{EmailVerified: ptr(false)}, func(c *auth.Credentials) { c.User.EmailVerified = false }},
		"phone":          {auth.UserPatch{Phone: ptr("+491")}, func(c *auth.Credentials) { c.User.Phone = "+491" }},
		"phone verified": {auth.UserPatch{PhoneVerified: ptr(false)}, func(c *auth.Credentials) { c.User.PhoneVerified = false }},
		"name":           {auth.UserPatch{FullName: ptr("B")}, func(c *auth.Credentials) { c.User.FullName = "B" }},
		"user metadata":  {auth.UserPatch{UserMetadata: map[string]any{}}, func(c *auth.Credentials) { c.User.UserMetadata = nil }},
		"app metadata":   {auth.UserPatch{AppMetadata: map[string]any{}}, func(c *auth.Credentials) { c.User.AppMetadata = nil }},
		"password":       {auth.UserPatch{PasswordHash: ptr("two")}, func(c *auth.Credentials) { c.PasswordHash = "two" }},
		"no password":    {auth.UserPatch{PasswordHash: ptr("")}, func(c *auth.Credentials) { c.PasswordHash = "" }},
		"ban":            {auth.UserPatch{BannedUntil: ptr(now)}, func(c *auth.Credentials) { c.User.BannedUntil = now }},
		"link":           {auth.UserPatch{Link: &linked}, func(c *auth.Credentials) { c.User.Identities = append(c.User.Identities, linked) }},
		"renewal":        {auth.UserPatch{Link: &renewed}, func(c *auth.Credentials) { c.User.Identities = append(without(c, "p", "1"), renewed) }},
		"unlink":         {auth.UserPatch{Unlink: ptr(auth.ByIdentity("p", "1"))}, func(c *auth.Credentials) { c.User.Identities = without(c, "p", "1") }},
		"link and unlink": {auth.UserPatch{Link: &linked, Unlink: ptr(auth.ByIdentity("q", "1"))}, func(c *auth.Credentials) {
			c.User.Identities = append(without(c, "q", "1"), linked)
		}},
		"revocation": {auth.UserPatch{Revoke: &auth.SessionFilter{ID: b.id()}}, func(*auth.Credentials) {}},
		"tokens":     {auth.UserPatch{DropTokens: []auth.Purpose{auth.PurposeReset}}, func(*auth.Credentials) {}},
	}
}

// refused are patches that would change all there is, but must not be applied.
func (b *bench) refused(u auth.User) map[string]auth.UserPatch {
	b.Helper()
	nu := b.newUser("taken@example.com")
	nu.User.Phone, nu.User.Identities = "+49", []auth.Identity{b.identity("p", "taken")}
	_, err := b.CreateUser(b.ctx(), nu)
	b.ok(err)
	refused := map[string]auth.UserPatch{
		"revision": {IfRevision: ptr(u.Revision + 1)},
		"hash":     {IfPasswordHash: ptr("other")},
		"email":    {Email: ptr("taken@example.com")},
		"phone":    {Phone: ptr("+49")},
		"identity": {Link: ptr(b.identity("p", "taken"))},
	}
	for name, p := range refused {
		p.FullName, p.PasswordHash, p.Unlink, p.RemoveFactor = ptr("x"), ptr("x"), ptr(auth.ByIdentity("p", "1")), true
		p.Revoke, p.DropTokens = &auth.SessionFilter{}, []auth.Purpose{auth.PurposeMagicLink}
		refused[name] = p
	}
	return refused
}

var users = map[string]func(*bench){
	"a user comes back as it went in": func(b *bench) {
		nu := b.newUser("Ada@example.com")
		nu.User.EmailVerified, nu.User.Phone, nu.User.PhoneVerified, nu.User.FullName = true, "+4930123456", true, "Ada Lovelace"
		nu.User.UserMetadata = map[string]any{"s": "ü", "n": 1.5, "t": true, "z": nil, "m": map[string]any{"l": []any{"a", 2.0, map[string]any{}, []any{}}}}
		nu.User.AppMetadata = map[string]any{"plan": "pro"}
		nu.User.Roles = []string{"b", "a"}
		nu.User.Identities = []auth.Identity{{ID: b.id(), Provider: "p", Subject: "s", Email: "x@example.com", CreatedAt: now, LastSignInAt: now.Add(us)}}
		nu.PasswordHash = "hash"
		created, err := b.CreateUser(b.ctx(), nu)
		b.ok(err)
		b.sameUser(created, nu.User)
		for _, key := range []auth.UserKey{auth.ByID(nu.User.ID), auth.ByEmail("ada@EXAMPLE.com"), auth.ByPhone("+4930123456"), auth.ByIdentity("p", "s")} {
			u, err := b.User(b.ctx(), key)
			b.ok(err)
			b.sameUser(u, nu.User)
			c, err := b.Credentials(b.ctx(), key)
			b.ok(err)
			b.sameUser(c.User, nu.User)
			if c.PasswordHash != "hash" {
				b.Errorf("hash %q", c.PasswordHash)
			}
		}
	},
	"a user needs no address": func(b *bench) {
		one, two := b.user(""), b.user("")
		if one.ID == two.ID {
			b.Error("one user for two")
		}
	},
	"an unknown user is not found": func(b *bench) {
		b.user("ada@example.com")
		for _, key := range []auth.UserKey{
			auth.ByID(b.id()), auth.ByEmail("b@example.com"), auth.ByPhone("+491"), auth.ByIdentity("p", "s"),
			auth.ByID("x"), auth.ByID("\x00"), auth.ByEmail("\x00@example.com"), auth.ByPhone("\x00"), auth.ByIdentity("p", "\x00"), auth.ByIdentity("\xff", "s"),
		} {
			_, err := b.User(b.ctx(), key)
			b.is(err, auth.ErrNotFound)
			_, err = b.Credentials(b.ctx(), key)
			b.is(err, auth.ErrNotFound)
		}
		_, err := b.UpdateUser(b.ctx(), b.id(), auth.UserPatch{FullName: ptr("x")}, now)
		b.is(err, auth.ErrNotFound)
		b.is(b.DeleteUser(b.ctx(), b.id()), auth.ErrNotFound)
	},
	"addresses are one whatever their case": func(b *bench) {
		b.user("Straße.Ünal@example.com")
		_, err := b.CreateUser(b.ctx(), b.newUser("straße.üNAL@EXAMPLE.com"))
		b.conflict(err, "email")
		_, err = b.User(b.ctx(), auth.ByEmail("STRAßE.ünal@example.com"))
		b.ok(err)
	},
	"unique values are unique": func(b *bench) {
		first := b.newUser("ada@example.com")
		first.User.Phone = "+4930123456"
		first.User.Identities = []auth.Identity{{ID: b.id(), Provider: "p", Subject: "s", CreatedAt: now}}
		_, err := b.CreateUser(b.ctx(), first)
		b.ok(err)
		for field, edit := range map[string]func(*auth.User){
			"email": func(u *auth.User) { u.Email = "ADA@example.com" },
			"phone": func(u *auth.User) { u.Phone = "+4930123456" },
			"identity": func(u *auth.User) {
				u.Identities = []auth.Identity{{ID: b.id(), Provider: "p", Subject: "s", CreatedAt: now}}
			},
			"id": func(u *auth.User) { u.ID = first.User.ID },
		} {
			nu := b.newUser("other@example.com")
			edit(&nu.User)
			_, err := b.CreateUser(b.ctx(), nu)
			b.conflict(err, field)
		}
		other := b.user("other@example.com")
		for field, patch := range map[string]auth.UserPatch{
			"email":    {Email: ptr("Ada@example.com"), FullName: ptr("x")},
			"phone":    {Phone: ptr("+4930123456"), FullName: ptr("x")},
			"identity": {Link: &auth.Identity{ID: b.id(), Provider: "p", Subject: "s", CreatedAt: now}, FullName: ptr("x")},
		} {
			_, err := b.UpdateUser(b.ctx(), other.ID, patch, now)
			b.conflict(err, field)
		}
		u, err := b.User(b.ctx(), auth.ByID(other.ID))
		b.ok(err)
		b.sameUser(u, other)
	},
	"a conflict keeps nothing": func(b *bench) {
		b.user("ada@example.com")
		nu := b.newUser("ada@example.com")
		s := b.newSession(nu.User.ID)
		t := newToken("t", "subject")
		t.UserID = nu.User.ID
		nu.Session, nu.Tokens = &s, []auth.Token{t}
		nu.User.Identities = []auth.Identity{{ID: b.id(), Provider: "p", Subject: "s", CreatedAt: now}}
		_, err := b.CreateUser(b.ctx(), nu)
		b.conflict(err, "email")
		_, _, err = b.Session(b.ctx(), s.ID, now)
		b.is(err, auth.ErrNotFound)
		_, err = b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
		b.is(err, auth.ErrNotFound)
		_, err = b.User(b.ctx(), auth.ByIdentity("p", "s"))
		b.is(err, auth.ErrNotFound)
	},
	"a creation that is refused keeps nothing": func(b *bench) {
		refused := errors.New("refused")
		nu := b.newUser("ada@example.com")
		s := b.newSession(nu.User.ID)
		t := newToken("t", "subject")
		t.UserID = nu.User.ID
		nu.Session, nu.Tokens = &s, []auth.Token{t}
		nu.Creating = func(_ context.Context, u auth.User) error {
			if u.ID != nu.User.ID || u.Email != "ada@example.com" {
				b.Errorf("creating %+v", u)
			}
			return refused
		}
		_, err := b.CreateUser(b.ctx(), nu)
		b.is(err, refused)
		b.token(newToken("link", "other"))
		_, _, err = b.RedeemToken(b.ctx(), auth.Redemption{Purpose: auth.PurposeMagicLink, Hash: hashOf("link"), Now: now, Create: &nu})
		b.is(err, refused)
		b.ok(b.redeem("link")) // still good
		_, err = b.User(b.ctx(), auth.ByID(nu.User.ID))
		b.is(err, auth.ErrNotFound)
		_, _, err = b.Session(b.ctx(), s.ID, now)
		b.is(err, auth.ErrNotFound)
		_, err = b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
		b.is(err, auth.ErrNotFound)
		nu.Creating = func(context.Context, auth.User) error { return nil }
		_, err = b.CreateUser(b.ctx(), nu)
		b.ok(err)
	},
	"a user comes with session and tokens": func(b *bench) {
		nu := b.newUser("ada@example.com")
		s := b.newSession(nu.User.ID)
		one, two := newToken("one", "1"), newToken("two", "2")
		one.UserID, two.UserID = nu.User.ID, nu.User.ID
		nu.Session, nu.Tokens = &s, []auth.Token{one, two}
		u, err := b.CreateUser(b.ctx(), nu)
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
			_, err := b.CreateUser(b.ctx(), b.newUser("ada@example.com"))
			return err
		}, auth.ErrConflict)
		if won != 1 || lost[auth.ErrConflict] != parallel-1 {
			b.Errorf("%d won, %v", won, lost)
		}
	},
	"a patch changes what it names": func(b *bench) {
		nu := b.newUser("ada@example.com")
		nu.User.FullName, nu.User.UserMetadata, nu.User.AppMetadata = "Ada", map[string]any{"a": "b"}, map[string]any{"c": "d"}
		nu.PasswordHash = "one"
		u, err := b.CreateUser(b.ctx(), nu)
		b.ok(err)
		later := now.Add(time.Second)
		got, err := b.UpdateUser(b.ctx(), u.ID, auth.UserPatch{FullName: ptr("")}, later)
		b.ok(err)
		want := u
		want.FullName, want.UpdatedAt, want.Revision = "", later, got.Revision
		b.sameUser(got, want)
		if got.Revision <= u.Revision {
			b.Errorf("revision %d after %d", got.Revision, u.Revision)
		}
		got, err = b.UpdateUser(b.ctx(), u.ID, auth.UserPatch{
			Email: ptr("New@example.com"), EmailVerified: ptr(true), Phone: ptr("+491"), PhoneVerified: ptr(true), FullName: ptr("B"),
			UserMetadata: map[string]any{"x": 1.0}, AppMetadata: map[string]any{}, BannedUntil: ptr(later), PasswordHash: ptr("two"),
		}, later)
		b.ok(err)
		want.Email, want.EmailVerified, want.Phone, want.PhoneVerified, want.FullName = "New@example.com", true, "+491", true, "B"
		want.UserMetadata, want.AppMetadata, want.BannedUntil, want.Revision = map[string]any{"x": 1.0}, nil, later, got.Revision
		b.sameUser(got, want)
		c, err := b.Credentials(b.ctx(), auth.ByEmail("new@example.com"))
		b.ok(err)
		b.sameUser(c.User, want)
		if c.PasswordHash != "two" {
			b.Errorf("hash %q", c.PasswordHash)
		}
		_, err = b.User(b.ctx(), auth.ByEmail("ada@example.com"))
		b.is(err, auth.ErrNotFound)
		b.user("ada@example.com") // free again
		got, err = b.UpdateUser(b.ctx(), u.ID, auth.UserPatch{BannedUntil: &time.Time{}, PasswordHash: ptr(""), Phone: ptr("")}, later)
		b.ok(err)
		if !got.BannedUntil.IsZero() || got.Phone != "" {
			b.Errorf("user %+v", got)
		}
		other := b.newUser("other@example.com")
		other.User.Phone = "+491" // free again, too
		_, err = b.CreateUser(b.ctx(), other)
		b.ok(err)
	},
	"a patch keeps what it does not name": func(b *bench) {
		later := now.Add(time.Second)
		for name, c := range b.ordinary() {
			b.Logf("patch: %s", name)
			u := b.whole()
			s := b.newSession(u.ID)
			u, err := b.CreateSession(b.ctx(), auth.NewSession{Session: s})
			b.ok(err)
			t := newToken("t", "subject")
			t.UserID = u.ID
			b.token(t)
			got, err := b.UpdateUser(b.ctx(), u.ID, c.patch, later)
			b.ok(err)
			want := auth.Credentials{User: u, PasswordHash: "hash"}
			c.edit(&want)
			want.User.UpdatedAt, want.User.Revision = later, max(got.Revision, u.Revision+1)
			b.sameUser(got, want.User)
			b.stands(want)
			kept, _, err := b.Session(b.ctx(), s.ID, now)
			b.ok(err)
			b.sameSession(kept, s)
			_, err = b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
			b.ok(err)
			b.ok(b.DeleteUser(b.ctx(), u.ID))
		}
	},
	"an own address may change its case": func(b *bench) {
		u := b.user("ada@example.com")
		got, err := b.UpdateUser(b.ctx(), u.ID, auth.UserPatch{Email: ptr("Ada@example.com")}, now)
		b.ok(err)
		if got.Email != "Ada@example.com" {
			b.Errorf("address %q", got.Email)
		}
	},
	"a patch holds its conditions": func(b *bench) {
		nu := b.newUser("ada@example.com")
		nu.PasswordHash = "one"
		u, err := b.CreateUser(b.ctx(), nu)
		b.ok(err)
		for name, p := range map[string]auth.UserPatch{
			"revision":    {IfRevision: ptr(u.Revision + 1), FullName: ptr("x")},
			"hash":        {IfPasswordHash: ptr("two"), FullName: ptr("x")},
			"no password": {IfPasswordHash: ptr(""), FullName: ptr("x")},
		} {
			if _, err := b.UpdateUser(b.ctx(), u.ID, p, now); err == nil {
				b.Errorf("%s: applied all the same", name)
			} else {
				b.is(err, auth.ErrStale)
			}
		}
		_, err = b.UpdateUser(b.ctx(), u.ID, auth.UserPatch{IfRevision: &u.Revision, IfPasswordHash: ptr("one"), FullName: ptr("x")}, now)
		b.ok(err)
		_, err = b.UpdateUser(b.ctx(), u.ID, auth.UserPatch{IfRevision: &u.Revision, FullName: ptr("y")}, now)
		b.is(err, auth.ErrStale)
		_, err = b.UpdateUser(b.ctx(), b.user("").ID, auth.UserPatch{IfPasswordHash: ptr("one"), FullName: ptr("x")}, now)
		b.is(err, auth.ErrStale) // who has no password has not this one
	},
	"a patch that is refused changes nothing": func(b *bench) {
		want := auth.Credentials{User: b.whole(), PasswordHash: "hash"}
		s := b.session(want.User.ID)
		want.User.LastSignInAt = s.CreatedAt
		t := newToken("t", "subject")
		t.UserID = want.User.ID
		b.token(t)
		for name, p := range b.refused(want.User) {
			b.Logf("refused: %s", name)
			if _, err := b.UpdateUser(b.ctx(), want.User.ID, p, now.Add(us)); err == nil {
				b.Error("applied all the same")
			}
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
			_, err := b.UpdateUser(b.ctx(), u.ID, auth.UserPatch{IfRevision: &u.Revision, FullName: ptr("x")}, now)
			return err
		}, auth.ErrStale)
		if won != 1 || lost[auth.ErrStale] != parallel-1 {
			b.Errorf("%d won, %v", won, lost)
		}
	},
	"identities are linked, renewed and unlinked": func(b *bench) {
		u := b.user("ada@example.com")
		first := auth.Identity{ID: b.id(), Provider: "p", Subject: "1", Email: "a@example.com", CreatedAt: now, LastSignInAt: now}
		_, err := b.UpdateUser(b.ctx(), u.ID, auth.UserPatch{Link: &first}, now)
		b.ok(err)
		renewed := first
		renewed.LastSignInAt, renewed.Email = now.Add(minute), "b@example.com"
		got, err := b.UpdateUser(b.ctx(), u.ID, auth.UserPatch{Link: &renewed}, now)
		b.ok(err)
		if len(got.Identities) != 1 || got.Identities[0] != renewed {
			b.Errorf("identities %+v", got.Identities)
		}
		_, err = b.UpdateUser(b.ctx(), u.ID, auth.UserPatch{Unlink: ptr(auth.ByIdentity("p", "other"))}, now)
		b.ok(err)
		got, err = b.UpdateUser(b.ctx(), u.ID, auth.UserPatch{Unlink: ptr(auth.ByIdentity("p", "1"))}, now)
		b.ok(err)
		if len(got.Identities) != 0 {
			b.Errorf("identities %+v", got.Identities)
		}
		_, err = b.User(b.ctx(), auth.ByIdentity("p", "1"))
		b.is(err, auth.ErrNotFound)
	},
	"a patch drops every identity, but for the one it links": func(b *bench) {
		nu := b.newUser("ada@example.com")
		for _, provider := range []string{"p", "q"} {
			nu.User.Identities = append(nu.User.Identities, auth.Identity{ID: b.id(), Provider: provider, Subject: "1", CreatedAt: now})
		}
		u, err := b.CreateUser(b.ctx(), nu)
		b.ok(err)
		kept := auth.Identity{ID: b.id(), Provider: "r", Subject: "1", CreatedAt: now, LastSignInAt: now}
		got, err := b.UpdateUser(b.ctx(), u.ID, auth.UserPatch{DropIdentities: true, Link: &kept}, now)
		b.ok(err)
		if len(got.Identities) != 1 || got.Identities[0] != kept {
			b.Errorf("identities %+v", got.Identities)
		}
		for _, provider := range []string{"p", "q"} {
			_, err := b.User(b.ctx(), auth.ByIdentity(provider, "1"))
			b.is(err, auth.ErrNotFound)
		}
		other := b.user("eve@example.com")
		_, err = b.UpdateUser(b.ctx(), other.ID, auth.UserPatch{Link: &auth.Identity{ID: b.id(), Provider: "p", Subject: "1", CreatedAt: now}}, now)
		b.ok(err) // free again
		_, err = b.UpdateUser(b.ctx(), u.ID, auth.UserPatch{DropIdentities: true}, now)
		b.ok(err)
		_, err = b.User(b.ctx(), auth.ByIdentity("r", "1"))
		b.is(err, auth.ErrNotFound)
	},
	"of parallel links of one identity one wins": func(b *bench) {
		ids := make([]string, parallel)
		for i := range ids {
			ids[i] = b.user("").ID
		}
		won, _ := b.race(func(i int) error {
			_, err := b.UpdateUser(b.ctx(), ids[i], auth.UserPatch{Link: &auth.Identity{ID: ids[i], Provider: "p", Subject: "s", CreatedAt: now}}, now)
			return err
		}, auth.ErrConflict)
		if won != 1 {
			b.Errorf("%d won", won)
		}
	},
	"a patch revokes sessions and drops tokens": func(b *bench) {
		u, other := b.user("ada@example.com"), b.user("eve@example.com")
		keep, gone, others := b.session(u.ID), b.session(u.ID), b.session(other.ID)
		for _, p := range []auth.Purpose{auth.PurposeReset, auth.PurposeMagicLink} {
			for _, about := range []string{"", "s"} {
				t := newToken(string(p)+about, about)
				t.Purpose, t.UserID = p, u.ID
				b.token(t)
			}
		}
		foreign := newToken("foreign", "f")
		foreign.Purpose, foreign.UserID = auth.PurposeReset, other.ID
		b.token(foreign)
		_, err := b.UpdateUser(b.ctx(), u.ID, auth.UserPatch{Revoke: &auth.SessionFilter{Except: keep.ID}, DropTokens: []auth.Purpose{auth.PurposeExchange, auth.PurposeReset}}, now)
		b.ok(err)
		_, _, err = b.Session(b.ctx(), gone.ID, now)
		b.is(err, auth.ErrSessionEnded)
		for _, id := range []string{keep.ID, others.ID} {
			_, _, err = b.Session(b.ctx(), id, now)
			b.ok(err)
		}
		for _, about := range []string{"", "s"} {
			_, err = b.PeekToken(b.ctx(), auth.PurposeReset, hashOf(string(auth.PurposeReset)+about), now)
			b.is(err, auth.ErrNotFound)
			_, err = b.PeekToken(b.ctx(), auth.PurposeMagicLink, hashOf(string(auth.PurposeMagicLink)+about), now)
			b.ok(err)
		}
		_, err = b.PeekToken(b.ctx(), auth.PurposeReset, foreign.Hash, now)
		b.ok(err)
	},
	"deleting takes everything along": func(b *bench) {
		nu := b.newUser("ada@example.com")
		nu.User.Phone = "+491"
		nu.User.Identities = []auth.Identity{{ID: b.id(), Provider: "p", Subject: "s", CreatedAt: now}}
		u, err := b.CreateUser(b.ctx(), nu)
		b.ok(err)
		s := b.session(u.ID)
		t := newToken("t", "")
		t.UserID = u.ID
		b.token(t)
		b.ok(b.DeleteUser(b.ctx(), u.ID))
		for _, key := range []auth.UserKey{auth.ByID(u.ID), auth.ByEmail(u.Email), auth.ByPhone("+491"), auth.ByIdentity("p", "s")} {
			_, err := b.User(b.ctx(), key)
			b.is(err, auth.ErrNotFound)
		}
		_, _, err = b.Session(b.ctx(), s.ID, now)
		b.is(err, auth.ErrNotFound)
		_, _, err = b.AdvanceSession(b.ctx(), auth.Advance{SessionID: s.ID, Now: now, IdleUntil: now.Add(minute)})
		b.is(err, auth.ErrNotFound)
		_, err = b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
		b.is(err, auth.ErrNotFound)
		b.is(b.redeem("t"), auth.ErrNotFound)
		b.is(b.PutToken(b.ctx(), t), auth.ErrNotFound)
		_, err = b.CreateSession(b.ctx(), auth.NewSession{Session: b.newSession(u.ID)})
		b.is(err, auth.ErrNotFound)
		list, err := b.Sessions(b.ctx(), u.ID, now)
		b.ok(err)
		if list == nil || len(list) != 0 {
			b.Errorf("sessions %v", list)
		}
		nu.User.ID, nu.User.Identities[0].ID = b.id(), b.id()
		_, err = b.CreateUser(b.ctx(), nu) // everything is free again
		b.ok(err)
	},
	"values are copies": func(b *bench) {
		nu := b.newUser("ada@example.com")
		nu.User.UserMetadata = map[string]any{"m": map[string]any{"k": "v"}, "l": []any{"a"}}
		nu.User.AppMetadata, nu.User.Roles = map[string]any{"k": "v"}, []string{"r"}
		nu.User.Identities = []auth.Identity{{ID: b.id(), Provider: "p", Subject: "s", CreatedAt: now}}
		spoil := func(u auth.User) {
			u.UserMetadata["m"].(map[string]any)["k"] = "spoilt"
			u.UserMetadata["l"].([]any)[0] = "spoilt"
			u.UserMetadata["new"], u.AppMetadata["k"] = true, "spoilt"
			u.Roles[0], u.Identities[0].Subject = "spoilt", "spoilt"
		}
		created, err := b.CreateUser(b.ctx(), nu)
		b.ok(err)
		spoil(nu.User)
		spoil(created)
		read, err := b.User(b.ctx(), auth.ByID(nu.User.ID))
		b.ok(err)
		if _, added := read.UserMetadata["new"]; added || read.UserMetadata["m"].(map[string]any)["k"] != "v" || read.UserMetadata["l"].([]any)[0] != "a" ||
			read.AppMetadata["k"] != "v" || read.Roles[0] != "r" || read.Identities[0].Subject != "s" {
			b.Fatalf("the store shares memory with its callers: %+v", read)
		}
		spoil(read)
		patch, app := map[string]any{"m": map[string]any{"k": "w"}, "l": []any{"b"}}, map[string]any{"k": "w"}
		updated, err := b.UpdateUser(b.ctx(), nu.User.ID, auth.UserPatch{UserMetadata: patch, AppMetadata: app}, now)
		b.ok(err)
		spoil(updated)
		patch["m"].(map[string]any)["k"], app["k"] = "spoilt", "spoilt"
		read, err = b.User(b.ctx(), auth.ByID(nu.User.ID))
		b.ok(err)
		if read.UserMetadata["m"].(map[string]any)["k"] != "w" || read.AppMetadata["k"] != "w" {
			b.Errorf("the store shares memory with a patch: %+v", read)
		}
	},
	"a caller who has gone changes nothing": func(b *bench) {
		u := b.user("ada@example.com")
		_, err := b.CreateUser(cancelled(), b.newUser("eve@example.com"))
		b.gone(err)
		_, err = b.UpdateUser(cancelled(), u.ID, auth.UserPatch{FullName: ptr("x")}, now)
		b.gone(err)
		b.gone(b.DeleteUser(cancelled(), u.ID))
		_, err = b.User(cancelled(), auth.ByID(u.ID))
		b.gone(err)
		_, err = b.Credentials(cancelled(), auth.ByID(u.ID))
		b.gone(err)
		_, err = b.User(b.ctx(), auth.ByEmail("eve@example.com"))
		b.is(err, auth.ErrNotFound)
		got, err := b.User(b.ctx(), auth.ByID(u.ID))
		b.ok(err)
		b.sameUser(got, u)
	},
}
