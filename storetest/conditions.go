package storetest

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth/store"
)

// refusal is the reason why a change must be refused.
type refusal struct {
	edit func(*store.Change)
	want error
}

// conditions checks, at every method, that a change happens if all conditions hold, and not
// at all if one does not.
func conditions(has *bench) checks {
	return merge(atEveryMethod(has, refuses), checks{
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
			for i := range reflect.TypeFor[store.UserAt]().NumField() {
				name := reflect.TypeFor[store.UserAt]().Field(i).Name
				_, ok := known[name]
				equal(b, "conditionsOn knows UserAt."+name, ok, true)
			}
		},
		"they are judged in the order of the contract": inOrder,
		"a version of the contract is named": func(b *bench) {
			equal(b, "Contract()", b.Contract(), store.ContractVersion)
		},
	})
}

// inOrder violates several conditions at once.
func inOrder(b *bench) {
	w := newWorld(b)
	u := w.person()
	s := w.device(u.ID)
	_, err := b.revoke(u.ID, store.SessionFilter{})
	b.ok(err)
	made := store.CreateUser{Change: by(now), NewUser: b.newUser("")}
	made.Idempotency = once()
	_, err = b.CreateUser(b.ctx(), made)
	b.ok(err)
	before := w.state()
	c := store.UpdateUser{UserID: b.id(), Patch: *sweeping()} // an unknown user
	c.By = store.Authority{Session: &store.SessionRef{ID: s.ID, UserID: u.ID}}
	c.Idempotency, c.IfUsers, c.KeepOwner = once(), []store.UserAt{{ID: u.ID, Revision: ptr(int64(99))}}, true
	w.witness(&c.Change)
	for _, step := range []struct {
		want  error
		right func()
	}{
		{store.ErrInvalidChange, func() { c.Now = now }},
		{store.ErrSessionEnded, func() { c.By = by(now).By }},
		{store.ErrRepeated, func() { c.Idempotency = nil }},
		{store.ErrNotFound, func() { c.UserID = u.ID }},
		{store.ErrStale, func() { c.IfUsers = nil }},
		{store.ErrLastOwner, func() { c.KeepOwner = false }},
	} {
		_, err := b.UpdateUser(b.ctx(), c)
		b.fails(err, step.want)
		step.right()
	}
	b.unchanged("refused", before, w.state())
	_, err = b.UpdateUser(b.ctx(), c)
	b.ok(err)
}

// permissions checks, at every method, that a change happens if its conditions hold.
func permissions(has *bench) checks { return atEveryMethod(has, permits) }

// refuses makes a call with each reason to refuse it.
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
		if landed { // the next attempt needs a call that can succeed
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
	try("a caller who has gone", cancelled(), refusal{func(*store.Change) {}, context.Canceled})
	w.ok(a.call(w.ctx(), by(now))) // so the refusals were due to the conditions
	if len(differences(before, w.state())) == 0 {
		w.wrong("effect", nil, "one")
	}
}

// permits makes a call with each condition that holds, and checks the recorded events and
// messages.
func permits(b *bench, prepare func(*world) attempt) {
	w := newWorld(b)
	w.person(store.RoleOwner)
	actor := w.person()
	s, t := w.device(actor.ID), w.secret(actor.ID, 0)
	all := map[string]func(*store.Change){
		"session": func(c *store.Change) { c.By = store.Authority{Session: &store.SessionRef{ID: s.ID, UserID: actor.ID}} },
		"token": func(c *store.Change) {
			c.By = store.Authority{Token: &store.TokenRef{Purpose: t.Purpose, Hash: t.Hash}}
		},
		"proof":            func(c *store.Change) { c.By = store.Authority{Proof: true} },
		"external":         func(c *store.Change) { c.By = store.Authority{External: "4711"} },
		"an owner is left": func(c *store.Change) { c.KeepOwner = true },
		"the same roles":   func(c *store.Change) { c.IfRoles = ptr(w.rolesRevision()) },
	}
	if w.project != nil {
		k, err := w.project.PutKey(w.ctx(), store.PutKey{Change: by(now), Key: w.newKey()})
		w.ok(err)
		all["the same key"] = func(c *store.Change) { c.IfKey = &store.KeyRef{ID: k.ID, Revision: k.Revision} }
		all["key"] = func(c *store.Change) { c.By = store.Authority{Key: &store.KeyRef{ID: k.ID, Revision: k.Revision}} }
	}
	run := func(name string, a attempt, edit func(*store.Change)) {
		w.Run(name, func(t *testing.T) {
			w := &world{bench: w.in(t)}
			c := by(now)
			edit(&c)
			ids := w.witness(&c)
			w.ok(a.call(w.ctx(), c))
			outcomes := []store.Outcome{store.OutcomeDone}
			if len(a.ends) > 0 {
				outcomes = append(outcomes, store.OutcomeSessionsEnded)
			}
			if a.isNew {
				outcomes = append(outcomes, store.OutcomeNewDevice)
			}
			w.noticed(ids, a.about, a.ends, outcomes...)
		})
	}
	for name, edit := range all {
		run(name, prepare(w), edit)
	}
	for field := range conditionsOn(w.person()) {
		a := prepare(w)
		var right []store.UserAt
		for _, at := range conditionsOn(a.user)[field].right {
			at.ID = a.user.ID
			right = append(right, at)
			if a.self {
				at.ID = ""
				right = append(right, at)
			}
		}
		run("user at "+field, a, func(c *store.Change) { c.IfUsers = right })
	}
}

// rolesRevision returns the revision of the table of roles; 0 without one.
func (b *bench) rolesRevision() int64 {
	b.Helper()
	if b.project == nil {
		return 0
	}
	t, err := b.project.Roles(b.ctx())
	b.ok(err)
	return t.Revision
}

// onUser holds conditions on one field of a user; the caller sets their ID.
type onUser struct{ right, wrong []store.UserAt }

// conditionsOn returns conditions on each field of a user with the password hash "hash" and
// a verified email address and phone number.
func conditionsOn(u store.User) map[string]onUser {
	return map[string]onUser{
		"ID":                 {right: []store.UserAt{{}}},
		"Revision":           {[]store.UserAt{{Revision: &u.Revision}}, []store.UserAt{{Revision: ptr(u.Revision + 1)}, {Revision: ptr(u.Revision - 1)}}},
		"CredentialRevision": {[]store.UserAt{{CredentialRevision: &u.CredentialRevision}}, []store.UserAt{{CredentialRevision: ptr(u.CredentialRevision + 1)}}},
		"PasswordHash":       {[]store.UserAt{{PasswordHash: ptr("hash")}}, []store.UserAt{{PasswordHash: ptr("other")}, {PasswordHash: ptr("")}}},
		"Email":              {[]store.UserAt{{Email: &u.Email}, {Email: ptr(strings.ToUpper(u.Email))}}, []store.UserAt{{Email: ptr("other@example.com")}, {Email: ptr("")}}},
		"EmailVerified":      {[]store.UserAt{{EmailVerified: ptr(true)}}, []store.UserAt{{EmailVerified: ptr(false)}}},
		"Phone":              {[]store.UserAt{{Phone: &u.Phone}}, []store.UserAt{{Phone: ptr("+491")}, {Phone: ptr("")}}},
		"PhoneVerified":      {[]store.UserAt{{PhoneVerified: ptr(true)}}, []store.UserAt{{PhoneVerified: ptr(false)}}},
		"Banned":             {[]store.UserAt{{Banned: ptr(false)}}, []store.UserAt{{Banned: ptr(true)}}},
	}
}

// stale returns conditions on users, roles and owners that do not hold.
func (w *world) stale(a attempt) map[string]refusal {
	w.Helper()
	all := map[string]refusal{}
	on := func(name string, want error, at ...store.UserAt) {
		all[name] = refusal{func(c *store.Change) { c.IfUsers = at }, want}
	}
	bare := w.newUser("")
	nobody, err := w.create(bare)
	w.ok(err)
	for field, c := range conditionsOn(a.user) {
		for i, at := range c.wrong {
			at.ID = a.user.ID
			name := "user at another " + field + strings.Repeat(", too", i)
			on(name, store.ErrStale, at)
			if a.self {
				at.ID = ""
				on(name+", of the token", store.ErrStale, at)
			}
		}
		if slices.Contains([]string{"PasswordHash", "Email", "Phone", "EmailVerified", "PhoneVerified"}, field) {
			at := c.right[0]
			at.ID = nobody.ID
			on("user without "+field, store.ErrStale, at)
		}
	}
	same := store.UserAt{ID: a.user.ID, Revision: &a.user.Revision}
	gone := w.person()
	w.ok(w.delete(gone.ID))
	on("a user who is gone", store.ErrStale, store.UserAt{ID: gone.ID})
	on("a user who never was", store.ErrStale, store.UserAt{ID: w.id()})
	on("a user by no id", store.ErrStale, store.UserAt{ID: "x"})
	on("the second user is another", store.ErrStale, same, store.UserAt{ID: nobody.ID, Revision: ptr(nobody.Revision + 1)})
	on("the first user is another", store.ErrStale, store.UserAt{ID: nobody.ID, Revision: ptr(nobody.Revision + 1)}, same)
	on("one user at two revisions", store.ErrStale, same, store.UserAt{ID: a.user.ID, Revision: ptr(a.user.Revision + 1)})
	if !a.self {
		on("a user whom no token names", store.ErrStale, store.UserAt{})
	}
	other := w.rolesRevision() + 1
	all["other roles"] = refusal{func(c *store.Change) { c.IfRoles = &other }, store.ErrStale}
	w.deadKeys(func(name string, ref store.KeyRef) {
		all["with a key "+name] = refusal{func(c *store.Change) { c.IfKey = &ref }, store.ErrStale}
	})
	banned := w.person(store.RoleOwner)
	_, err = w.update(banned.ID, store.UserPatch{BannedUntil: ptr(now.Add(us))})
	w.ok(err)
	all["no owner is left"] = refusal{func(c *store.Change) { c.KeepOwner = true }, store.ErrLastOwner}
	return all
}

// dead returns changes without time or authority, or with an authority that is not live.
func (w *world) dead() map[string]refusal {
	w.Helper()
	all := map[string]refusal{
		"no time":      {func(c *store.Change) { c.Now = time.Time{} }, store.ErrInvalidChange},
		"no authority": {func(c *store.Change) { c.By = store.Authority{} }, store.ErrInvalidChange},
	}
	actor := w.person()
	live, t := w.device(actor.ID), w.secret(actor.ID, 0)
	for name, add := range map[string]func(*store.Authority){
		"session": func(a *store.Authority) { a.Session = &store.SessionRef{ID: live.ID, UserID: actor.ID} },
		"token":   func(a *store.Authority) { a.Token = &store.TokenRef{Purpose: t.Purpose, Hash: t.Hash} },
		"key":     func(a *store.Authority) { a.Key = &store.KeyRef{ID: live.ID} },
		"proof":   func(a *store.Authority) { a.Proof = true },
	} {
		all["a system and a "+name] = refusal{func(c *store.Change) { add(&c.By) }, store.ErrInvalidChange}
	}
	inName := func(name string, want error, a store.Authority) {
		all[name] = refusal{func(c *store.Change) { c.By = a }, want}
	}
	session := func(name string, want error, id, userID string) {
		inName("a session "+name, want, store.Authority{Session: &store.SessionRef{ID: id, UserID: userID}})
	}
	token := func(name string, want error, p store.Purpose, hash []byte) {
		inName("a token "+name, want, store.Authority{Token: &store.TokenRef{Purpose: p, Hash: hash}})
	}

	ended, idle, over := w.device(actor.ID), w.newSession(actor.ID), w.newSession(actor.ID)
	_, err := w.revoke(actor.ID, store.SessionFilter{ID: ended.ID})
	w.ok(err)
	idle.CreatedAt, idle.IdleUntil = now.Add(-minute), now
	over.CreatedAt, over.ExpiresAt = now.Add(-minute), now
	for _, s := range []store.Session{idle, over} {
		_, err := w.signIn(s)
		w.ok(err)
	}
	banned := w.person()
	bannedSession, bannedToken := w.device(banned.ID), w.secret(banned.ID, 0)
	_, err = w.update(banned.ID, store.UserPatch{BannedUntil: ptr(now.Add(us))})
	w.ok(err)
	gone := w.person()
	goneSession, goneToken := w.device(gone.ID), w.secret(gone.ID, 0)
	w.ok(w.delete(gone.ID))
	session("that was revoked", store.ErrSessionEnded, ended.ID, actor.ID)
	session("left alone too long", store.ErrSessionEnded, idle.ID, actor.ID)
	session("that has expired", store.ErrSessionEnded, over.ID, actor.ID)
	session("of somebody else", store.ErrSessionEnded, live.ID, banned.ID)
	session("of nobody", store.ErrSessionEnded, live.ID, "")
	session("that never was", store.ErrSessionEnded, w.id(), actor.ID)
	session("by no id", store.ErrSessionEnded, "x", "x")
	session("of a user who is gone", store.ErrSessionEnded, goneSession.ID, gone.ID)
	session("of a banned user", store.ErrBanned, bannedSession.ID, banned.ID)

	used, late := w.secret(actor.ID, 0), newToken(w.id(), "")
	_, _, err = w.RedeemToken(w.ctx(), store.Redemption{Change: proof(now), Purpose: used.Purpose, Hash: used.Hash})
	w.ok(err)
	late.UserID, late.ExpiresAt = actor.ID, now
	w.token(late)
	token("that was used", store.ErrNotFound, used.Purpose, used.Hash)
	token("that has expired", store.ErrNotFound, late.Purpose, late.Hash)
	token("that never was", store.ErrNotFound, t.Purpose, hashOf("unknown"))
	token("of another purpose", store.ErrNotFound, store.PurposeReset, t.Hash)
	token("of a user who is gone", store.ErrNotFound, goneToken.Purpose, goneToken.Hash)
	token("of a banned user", store.ErrBanned, bannedToken.Purpose, bannedToken.Hash)

	w.deadKeys(func(name string, ref store.KeyRef) {
		inName("a key "+name, store.ErrKeyEnded, store.Authority{Key: &ref})
	})
	return all
}

// deadKeys passes API keys that are not live or have changed.
func (w *world) deadKeys(key func(name string, ref store.KeyRef)) {
	w.Helper()
	key("that never was", store.KeyRef{ID: w.id()})
	if w.project == nil {
		return
	}
	put := func(k store.APIKey) store.APIKey {
		k, err := w.project.PutKey(w.ctx(), store.PutKey{Change: by(now), Key: k})
		w.ok(err)
		return k
	}
	revoked, expired, changed := w.newKey(), w.newKey(), put(put(w.newKey()))
	revoked.RevokedAt, expired.ExpiresAt = now, now
	key("that was revoked", store.KeyRef{ID: put(revoked).ID})
	key("that has expired", store.KeyRef{ID: put(expired).ID})
	key("that changed meanwhile", store.KeyRef{ID: changed.ID})
	key("that has not changed yet", store.KeyRef{ID: changed.ID, Revision: changed.Revision + 1})
}
