package storetest

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
)

// refusal is why a change does not happen.
type refusal struct {
	edit func(*auth.Change)
	want error
}

// conditions are that a change happens if all conditions hold, at every method,
// and not at all if one does not.
func conditions(has *bench) checks {
	return merge(atDoors(has, refuses), checks{
		"every method that changes something is known": func(b *bench) {
			known, all := doors(), map[string]bool{}
			for _, face := range faces() {
				for _, method := range changing(face) {
					all[method] = true
					if known[method] == nil {
						b.wrong(face.Name()+"."+method, "unknown", "a line in doors")
					}
				}
			}
			for method := range known {
				equal(b, "an interface has "+method, all[method], true)
			}
		},
		"every condition on a user is known": func(b *bench) {
			known := conditionsOn(b.whole())
			for i := range reflect.TypeFor[auth.UserAt]().NumField() {
				name := reflect.TypeFor[auth.UserAt]().Field(i).Name
				_, ok := known[name]
				equal(b, "conditionsOn knows UserAt."+name, ok, true)
			}
		},
		"they are judged in the order of the contract": inOrder,
		"a version of the contract is named": func(b *bench) {
			equal(b, "Contract()", b.Contract(), auth.ContractVersion)
		},
	})
}

// inOrder breaks several conditions at once.
func inOrder(b *bench) {
	w := newWorld(b)
	u := w.person()
	s := w.device(u.ID)
	_, err := b.revoke(u.ID, auth.SessionFilter{})
	b.ok(err)
	made := auth.CreateUser{Change: by(now), NewUser: b.newUser("")}
	made.Idempotency = once()
	_, err = b.CreateUser(b.ctx(), made)
	b.ok(err)
	before := w.state()
	c := auth.UpdateUser{UserID: b.id(), Patch: *sweeping()} // nobody
	c.By = auth.Authority{Session: &auth.SessionRef{ID: s.ID, UserID: u.ID}}
	c.Idempotency, c.IfUsers, c.KeepOwner = once(), []auth.UserAt{{ID: u.ID, Revision: ptr(int64(99))}}, true
	w.witness(&c.Change)
	for _, step := range []struct {
		want  error
		right func()
	}{
		{auth.ErrInvalidChange, func() { c.Now = now }},
		{auth.ErrSessionEnded, func() { c.By = by(now).By }},
		{auth.ErrRepeated, func() { c.Idempotency = nil }},
		{auth.ErrNotFound, func() { c.UserID = u.ID }},
		{auth.ErrStale, func() { c.IfUsers = nil }},
		{auth.ErrLastOwner, func() { c.KeepOwner = false }},
	} {
		_, err := b.UpdateUser(b.ctx(), c)
		b.fails(err, step.want)
		step.right()
	}
	b.unchanged("refused", before, w.state())
	_, err = b.UpdateUser(b.ctx(), c)
	b.ok(err)
}

// permissions are that what is conditional happens, at every method.
func permissions(has *bench) checks { return atDoors(has, permits) }

// refuses tries a call in every way in which it must be refused.
func refuses(b *bench, prepare func(*world) attempt) {
	w := newWorld(b)
	dead, a := w.dead(), prepare(w)
	stale := w.stale(a)
	before := w.state()
	try := func(name string, ctx context.Context, r refusal) {
		landed := false
		w.Run(name, func(t *testing.T) {
			c := by(now)
			r.edit(&c)
			w.witness(&c)
			b := w.in(t)
			b.fails(a.call(ctx, c), r.want)
			landed = !b.unchanged("refused", before, w.state())
		})
		if landed { // what follows needs a call that can succeed
			w.users, w.sessions, w.apiKeys, w.tokens = nil, nil, nil, nil
			a = prepare(w)
			stale = w.stale(a)
			before = w.state()
		}
	}
	for _, name := range slices.Sorted(maps.Keys(dead)) {
		try(name, w.ctx(), dead[name])
	}
	for _, name := range slices.Sorted(maps.Keys(stale)) {
		try(name, w.ctx(), stale[name])
	}
	try("a caller who has gone", cancelled(), refusal{func(*auth.Change) {}, context.Canceled})
	w.ok(a.call(w.ctx(), by(now))) // so it was for the conditions
	if len(differences(before, w.state())) == 0 {
		w.wrong("effect", nil, "one")
	}
}

// permits makes a call in every way in which it must succeed, and looks at what
// is recorded.
func permits(b *bench, prepare func(*world) attempt) {
	w := newWorld(b)
	w.person(auth.RoleOwner)
	actor := w.person()
	s, t := w.device(actor.ID), w.secret(actor.ID, 0)
	all := map[string]func(*auth.Change){
		"session":          func(c *auth.Change) { c.By = auth.Authority{Session: &auth.SessionRef{ID: s.ID, UserID: actor.ID}} },
		"token":            func(c *auth.Change) { c.By = auth.Authority{Token: &auth.TokenRef{Purpose: t.Purpose, Hash: t.Hash}} },
		"proof":            func(c *auth.Change) { c.By = auth.Authority{Proof: true} },
		"external":         func(c *auth.Change) { c.By = auth.Authority{External: "4711"} },
		"an owner is left": func(c *auth.Change) { c.KeepOwner = true },
		"the same roles":   func(c *auth.Change) { c.IfRoles = ptr(w.rolesRevision()) },
	}
	if w.keys != nil {
		k, err := w.keys.PutKey(w.ctx(), auth.PutKey{Change: by(now), Key: w.newKey()})
		w.ok(err)
		all["the same key"] = func(c *auth.Change) { c.IfKey = &auth.KeyRef{ID: k.ID, Revision: k.Revision} }
		all["key"] = func(c *auth.Change) { c.By = auth.Authority{Key: &auth.KeyRef{ID: k.ID, Revision: k.Revision}} }
	}
	run := func(name string, a attempt, edit func(*auth.Change)) {
		w.Run(name, func(t *testing.T) {
			w := &world{bench: w.in(t)}
			c := by(now)
			edit(&c)
			ids := w.witness(&c)
			w.ok(a.call(w.ctx(), c))
			outcomes := []auth.Outcome{auth.OutcomeDone}
			if len(a.ends) > 0 {
				outcomes = append(outcomes, auth.OutcomeSessionsEnded)
			}
			if a.isNew {
				outcomes = append(outcomes, auth.OutcomeNewDevice)
			}
			w.noticed(ids, a.about, a.ends, outcomes...)
		})
	}
	for name, edit := range all {
		run(name, prepare(w), edit)
	}
	for field := range conditionsOn(w.person()) {
		a := prepare(w)
		var right []auth.UserAt
		for _, at := range conditionsOn(a.user)[field].right {
			at.ID = a.user.ID
			right = append(right, at)
			if a.self {
				at.ID = ""
				right = append(right, at)
			}
		}
		run("user at "+field, a, func(c *auth.Change) { c.IfUsers = right })
	}
}

// rolesRevision is the revision of the table of roles, if there is one.
func (b *bench) rolesRevision() int64 {
	b.Helper()
	if b.roles == nil {
		return 0
	}
	t, err := b.roles.Roles(b.ctx())
	b.ok(err)
	return t.Revision
}

// onUser are conditions on one member of a user, whose ID is to be set.
type onUser struct{ right, wrong []auth.UserAt }

// conditionsOn are conditions on each member of a user, who has the password
// hash "hash" and whose address and number are known and verified.
func conditionsOn(u auth.User) map[string]onUser {
	return map[string]onUser{
		"ID":                 {right: []auth.UserAt{{}}},
		"Revision":           {[]auth.UserAt{{Revision: &u.Revision}}, []auth.UserAt{{Revision: ptr(u.Revision + 1)}, {Revision: ptr(u.Revision - 1)}}},
		"CredentialRevision": {[]auth.UserAt{{CredentialRevision: &u.CredentialRevision}}, []auth.UserAt{{CredentialRevision: ptr(u.CredentialRevision + 1)}}},
		"PasswordHash":       {[]auth.UserAt{{PasswordHash: ptr("hash")}}, []auth.UserAt{{PasswordHash: ptr("other")}, {PasswordHash: ptr("")}}},
		"Email":              {[]auth.UserAt{{Email: &u.Email}, {Email: ptr(strings.ToUpper(u.Email))}}, []auth.UserAt{{Email: ptr("other@example.com")}, {Email: ptr("")}}},
		"EmailVerified":      {[]auth.UserAt{{EmailVerified: ptr(true)}}, []auth.UserAt{{EmailVerified: ptr(false)}}},
		"Phone":              {[]auth.UserAt{{Phone: &u.Phone}}, []auth.UserAt{{Phone: ptr("+491")}, {Phone: ptr("")}}},
		"PhoneVerified":      {[]auth.UserAt{{PhoneVerified: ptr(true)}}, []auth.UserAt{{PhoneVerified: ptr(false)}}},
		"Banned":             {[]auth.UserAt{{Banned: ptr(false)}}, []auth.UserAt{{Banned: ptr(true)}}},
	}
}

// stale are conditions on users, roles and owners that do not hold.
func (w *world) stale(a attempt) map[string]refusal {
	w.Helper()
	all := map[string]refusal{}
	on := func(name string, want error, at ...auth.UserAt) {
		all[name] = refusal{func(c *auth.Change) { c.IfUsers = at }, want}
	}
	bare := w.newUser("")
	nobody, err := w.create(bare)
	w.ok(err)
	for field, c := range conditionsOn(a.user) {
		for i, at := range c.wrong {
			at.ID = a.user.ID
			name := "user at another " + field + strings.Repeat(", too", i)
			on(name, auth.ErrStale, at)
			if a.self {
				at.ID = ""
				on(name+", of the token", auth.ErrStale, at)
			}
		}
		if slices.Contains([]string{"PasswordHash", "Email", "Phone", "EmailVerified", "PhoneVerified"}, field) {
			at := c.right[0]
			at.ID = nobody.ID
			on("user without "+field, auth.ErrStale, at)
		}
	}
	same := auth.UserAt{ID: a.user.ID, Revision: &a.user.Revision}
	gone := w.person()
	w.ok(w.delete(gone.ID))
	on("a user who is gone", auth.ErrStale, auth.UserAt{ID: gone.ID})
	on("a user who never was", auth.ErrStale, auth.UserAt{ID: w.id()})
	on("a user by no id", auth.ErrStale, auth.UserAt{ID: "x"})
	on("the second user is another", auth.ErrStale, same, auth.UserAt{ID: nobody.ID, Revision: ptr(nobody.Revision + 1)})
	on("the first user is another", auth.ErrStale, auth.UserAt{ID: nobody.ID, Revision: ptr(nobody.Revision + 1)}, same)
	on("one user at two revisions", auth.ErrStale, same, auth.UserAt{ID: a.user.ID, Revision: ptr(a.user.Revision + 1)})
	if !a.self {
		on("a user whom no token names", auth.ErrStale, auth.UserAt{})
	}
	other := w.rolesRevision() + 1
	all["other roles"] = refusal{func(c *auth.Change) { c.IfRoles = &other }, auth.ErrStale}
	w.deadKeys(func(name string, ref auth.KeyRef) {
		all["with a key "+name] = refusal{func(c *auth.Change) { c.IfKey = &ref }, auth.ErrStale}
	})
	banned := w.person(auth.RoleOwner)
	_, err = w.update(banned.ID, auth.UserPatch{BannedUntil: ptr(now.Add(us))})
	w.ok(err)
	all["no owner is left"] = refusal{func(c *auth.Change) { c.KeepOwner = true }, auth.ErrLastOwner}
	return all
}

// dead are changes without time or authority, or in the name of what has ended.
func (w *world) dead() map[string]refusal {
	w.Helper()
	all := map[string]refusal{
		"no time":      {func(c *auth.Change) { c.Now = time.Time{} }, auth.ErrInvalidChange},
		"no authority": {func(c *auth.Change) { c.By = auth.Authority{} }, auth.ErrInvalidChange},
	}
	actor := w.person()
	live, t := w.device(actor.ID), w.secret(actor.ID, 0)
	for name, add := range map[string]func(*auth.Authority){
		"session": func(a *auth.Authority) { a.Session = &auth.SessionRef{ID: live.ID, UserID: actor.ID} },
		"token":   func(a *auth.Authority) { a.Token = &auth.TokenRef{Purpose: t.Purpose, Hash: t.Hash} },
		"key":     func(a *auth.Authority) { a.Key = &auth.KeyRef{ID: live.ID} },
		"proof":   func(a *auth.Authority) { a.Proof = true },
	} {
		all["a system and a "+name] = refusal{func(c *auth.Change) { add(&c.By) }, auth.ErrInvalidChange}
	}
	inName := func(name string, want error, a auth.Authority) {
		all[name] = refusal{func(c *auth.Change) { c.By = a }, want}
	}
	session := func(name string, want error, id, userID string) {
		inName("a session "+name, want, auth.Authority{Session: &auth.SessionRef{ID: id, UserID: userID}})
	}
	token := func(name string, want error, p auth.Purpose, hash []byte) {
		inName("a token "+name, want, auth.Authority{Token: &auth.TokenRef{Purpose: p, Hash: hash}})
	}

	ended, idle, over := w.device(actor.ID), w.newSession(actor.ID), w.newSession(actor.ID)
	_, err := w.revoke(actor.ID, auth.SessionFilter{ID: ended.ID})
	w.ok(err)
	idle.CreatedAt, idle.IdleUntil = now.Add(-minute), now
	over.CreatedAt, over.ExpiresAt = now.Add(-minute), now
	for _, s := range []auth.Session{idle, over} {
		_, err := w.signIn(s)
		w.ok(err)
	}
	banned := w.person()
	bannedSession, bannedToken := w.device(banned.ID), w.secret(banned.ID, 0)
	_, err = w.update(banned.ID, auth.UserPatch{BannedUntil: ptr(now.Add(us))})
	w.ok(err)
	gone := w.person()
	goneSession, goneToken := w.device(gone.ID), w.secret(gone.ID, 0)
	w.ok(w.delete(gone.ID))
	session("that was revoked", auth.ErrSessionEnded, ended.ID, actor.ID)
	session("left alone too long", auth.ErrSessionEnded, idle.ID, actor.ID)
	session("that has expired", auth.ErrSessionEnded, over.ID, actor.ID)
	session("of somebody else", auth.ErrSessionEnded, live.ID, banned.ID)
	session("of nobody", auth.ErrSessionEnded, live.ID, "")
	session("that never was", auth.ErrSessionEnded, w.id(), actor.ID)
	session("by no id", auth.ErrSessionEnded, "x", "x")
	session("of a user who is gone", auth.ErrSessionEnded, goneSession.ID, gone.ID)
	session("of a banned user", auth.ErrBanned, bannedSession.ID, banned.ID)

	used, late := w.secret(actor.ID, 0), newToken(w.id(), "")
	_, _, err = w.RedeemToken(w.ctx(), auth.Redemption{Change: proof(now), Purpose: used.Purpose, Hash: used.Hash})
	w.ok(err)
	late.UserID, late.ExpiresAt = actor.ID, now
	w.token(late)
	token("that was used", auth.ErrNotFound, used.Purpose, used.Hash)
	token("that has expired", auth.ErrNotFound, late.Purpose, late.Hash)
	token("that never was", auth.ErrNotFound, t.Purpose, hashOf("unknown"))
	token("of another purpose", auth.ErrNotFound, auth.PurposeReset, t.Hash)
	token("of a user who is gone", auth.ErrNotFound, goneToken.Purpose, goneToken.Hash)
	token("of a banned user", auth.ErrBanned, bannedToken.Purpose, bannedToken.Hash)

	w.deadKeys(func(name string, ref auth.KeyRef) {
		inName("a key "+name, auth.ErrKeyEnded, auth.Authority{Key: &ref})
	})
	return all
}

// deadKeys are API keys that are over, or not as they were read.
func (w *world) deadKeys(key func(name string, ref auth.KeyRef)) {
	w.Helper()
	key("that never was", auth.KeyRef{ID: w.id()})
	if w.keys == nil {
		return
	}
	put := func(k auth.APIKey) auth.APIKey {
		k, err := w.keys.PutKey(w.ctx(), auth.PutKey{Change: by(now), Key: k})
		w.ok(err)
		return k
	}
	revoked, expired, changed := w.newKey(), w.newKey(), put(put(w.newKey()))
	revoked.RevokedAt, expired.ExpiresAt = now, now
	key("that was revoked", auth.KeyRef{ID: put(revoked).ID})
	key("that has expired", auth.KeyRef{ID: put(expired).ID})
	key("that changed meanwhile", auth.KeyRef{ID: changed.ID})
	key("that has not changed yet", auth.KeyRef{ID: changed.ID, Revision: changed.Revision + 1})
}
