package storetest

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/authmount/auth/store"
)

// acts describes an impersonation of a user by the actor of a live session.
func (b *bench) acts(actor store.Session, userID string) store.Impersonation {
	return store.Impersonation{
		ID: b.id(), UserID: userID, ActorID: actor.UserID, ActorSessionID: actor.ID, Reason: "ticket 7",
		CreatedAt: now, ExpiresAt: now.Add(minute / 2), IP: "192.0.2.7", UserAgent: "agent",
	}
}

func (b *bench) beginActing(i store.Impersonation) error {
	return b.admin.BeginImpersonation(b.ctx(), store.BeginImpersonation{Change: by(now), Impersonation: i})
}

func (b *bench) endActing(id string, at time.Time) error {
	return b.admin.EndImpersonation(b.ctx(), store.EndImpersonation{Change: by(at), ID: id})
}

// stage returns an operator's session and an impersonation by it.
func (b *bench) stage() (operator store.Session, i store.Impersonation) {
	b.Helper()
	operator = b.session(b.user("op@example.com").ID)
	i = b.acts(operator, b.user("ada@example.com").ID)
	b.ok(b.beginActing(i))
	return operator, i
}

// liveActing checks whether an impersonation is live, by a read and by both lists, which
// must agree.
func (b *bench) liveActing(i store.Impersonation, at time.Time, want bool) {
	b.Helper()
	_, u, err := b.admin.Impersonation(b.ctx(), i.ID, at)
	if want {
		b.ok(err)
		need(b, "User.ID", u.ID, i.UserID)
	} else {
		b.is(err, store.ErrSessionEnded)
	}
	for _, userID := range []string{i.UserID, ""} {
		list, err := b.admin.Impersonations(b.ctx(), userID, at)
		b.ok(err)
		equal(b.of("of %q", userID), "listed", slices.ContainsFunc(list, func(o store.Impersonation) bool { return o.ID == i.ID }), want)
	}
}

func beginImpersonation(w *world) attempt {
	u := w.person()
	i := w.acts(w.device(w.person().ID), u.ID)
	return attempt{user: w.as(u.ID), about: u.ID, call: func(ctx context.Context, c store.Change) error {
		return w.admin.BeginImpersonation(ctx, store.BeginImpersonation{Change: c, Impersonation: i})
	}}
}

func endImpersonation(w *world) attempt {
	u := w.person()
	i := w.acts(w.device(w.person().ID), u.ID)
	w.ok(w.beginActing(i))
	return attempt{user: w.as(u.ID), about: u.ID, call: func(ctx context.Context, c store.Change) error {
		return w.admin.EndImpersonation(ctx, store.EndImpersonation{Change: c, ID: i.ID})
	}}
}

// impersonations check AdminStore.
func impersonations() checks {
	all := checks{
		"an impersonation is kept, and read with its user": func(b *bench) {
			_, i := b.stage()
			got, u, err := b.admin.Impersonation(b.ctx(), i.ID, now)
			b.ok(err)
			i.Sequence, i.UserRevision, i.ActorRevision, i.RolesRevision = u.Sequence, got.UserRevision, got.ActorRevision, got.RolesRevision
			equal(b, "Impersonation", got, i)
			equal(b, "User.Email", u.Email, "ada@example.com")
			b.liveActing(i, now, true)
			b.liveActing(i, i.ExpiresAt.Add(-us), true)
			b.liveActing(i, i.ExpiresAt, false)
		},
		"nothing of the user's is touched": func(b *bench) {
			operator := b.session(b.user("op@example.com").ID)
			u := b.user("ada@example.com")
			before, err := b.Credentials(b.ctx(), store.ByID(u.ID))
			b.ok(err)
			b.ok(b.beginActing(b.acts(operator, u.ID)))
			after, err := b.Credentials(b.ctx(), store.ByID(u.ID))
			b.ok(err)
			equal(b, "Credentials", after, before)
			list, err := b.Sessions(b.ctx(), u.ID, now)
			b.ok(err)
			equal(b, "the number of sessions", len(list), 0)
		},
		"no other method takes one for a session": func(b *bench) {
			_, i := b.stage()
			_, _, err := b.Session(b.ctx(), i.ID, now)
			b.is(err, store.ErrNotFound)
			_, _, err = b.AdvanceSession(b.ctx(), store.Advance{Change: by(now), SessionID: i.ID, IdleUntil: now.Add(minute)})
			b.is(err, store.ErrNotFound)
			c := by(now)
			c.By = store.Authority{Session: &store.SessionRef{ID: i.ID, UserID: i.UserID}}
			_, err = b.UpdateUser(b.ctx(), store.UpdateUser{Change: c, UserID: i.UserID, Patch: store.UserPatch{FullName: ptr("x")}})
			b.is(err, store.ErrSessionEnded)
			nested := b.acts(store.Session{ID: i.ID, UserID: i.UserID}, b.user("bob@example.com").ID)
			b.is(b.beginActing(nested), store.ErrSessionEnded)
		},
		"it counts for no cap": func(b *bench) {
			_, i := b.stage()
			_, err := b.CreateSession(b.ctx(), store.CreateSession{Change: by(now), NewSession: store.NewSession{Session: b.newSession(i.UserID), KeepSessions: 1}})
			b.ok(err)
			b.liveActing(i, now, true)
		},
		"none begins of nobody, of the banned, or by a session that is not live": func(b *bench) {
			operator := b.session(b.user("op@example.com").ID)
			u, other := b.user("ada@example.com"), b.user("bob@example.com")
			b.is(b.beginActing(b.acts(operator, b.id())), store.ErrNotFound)
			foreign := b.acts(operator, u.ID)
			foreign.ActorID = other.ID
			b.is(b.beginActing(foreign), store.ErrSessionEnded)
			_, err := b.update(other.ID, store.UserPatch{BannedUntil: ptr(now.Add(minute))})
			b.ok(err)
			b.is(b.beginActing(b.acts(operator, other.ID)), store.ErrBanned)
			_, err = b.RevokeSessions(b.ctx(), store.RevokeSessions{Change: by(now), UserID: operator.UserID})
			b.ok(err)
			b.is(b.beginActing(b.acts(operator, u.ID)), store.ErrSessionEnded)
		},
		"it is ended once": func(b *bench) {
			_, i := b.stage()
			b.is(b.endActing(b.id(), now), store.ErrNotFound)
			b.ok(b.endActing(i.ID, now))
			b.liveActing(i, now, false)
			b.is(b.endActing(i.ID, now), store.ErrSessionEnded)
		},
		"ending a user's sessions ends it, if it matches": func(b *bench) {
			operator, i := b.stage()
			second := b.acts(operator, i.UserID)
			b.ok(b.beginActing(second))
			revoke := func(f store.SessionFilter, want ...string) {
				b.Helper()
				ended, err := b.RevokeSessions(b.ctx(), store.RevokeSessions{Change: by(now), UserID: i.UserID, Filter: f})
				b.ok(err)
				listed(b, "ended", ended, want)
			}
			revoke(store.SessionFilter{ID: b.id()})
			revoke(store.SessionFilter{ID: i.ID}, i.ID)
			b.liveActing(i, now, false)
			b.liveActing(second, now, true)
			revoke(store.SessionFilter{Except: second.ID})
			revoke(store.SessionFilter{}, second.ID)
			b.liveActing(second, now, false)
		},
		"of a sign-out of the actor and a beginning at once, none is left live": func(b *bench) {
			u := b.user("ada@example.com")
			for range 20 {
				operator := b.session(b.user("").ID)
				i := b.acts(operator, u.ID)
				var wg sync.WaitGroup
				wg.Go(func() { _, _ = b.revoke(operator.UserID, store.SessionFilter{}) })
				wg.Go(func() { _ = b.beginActing(i) })
				wg.Wait()
				_, _, err := b.admin.Impersonation(b.ctx(), i.ID, now)
				if err == nil {
					b.wrong("Impersonation", "live", "none")
				}
			}
		},
	}
	for name, end := range map[string]func(b *bench, operator store.Session, i store.Impersonation) error{
		"the actor's session": func(b *bench, operator store.Session, _ store.Impersonation) error {
			_, err := b.RevokeSessions(b.ctx(), store.RevokeSessions{Change: by(now), UserID: operator.UserID, Filter: store.SessionFilter{ID: operator.ID}})
			return err
		},
		"a ban of the actor": func(b *bench, operator store.Session, _ store.Impersonation) error {
			_, err := b.update(operator.UserID, store.UserPatch{BannedUntil: ptr(now.Add(minute))})
			return err
		},
		"a ban of the user": func(b *bench, _ store.Session, i store.Impersonation) error {
			_, err := b.update(i.UserID, store.UserPatch{BannedUntil: ptr(now.Add(minute))})
			return err
		},
		"a change of the actor's roles": func(b *bench, operator store.Session, _ store.Impersonation) error {
			_, err := b.update(operator.UserID, store.UserPatch{Roles: &[]string{}})
			return err
		},
		"a change of the user's roles": func(b *bench, _ store.Session, i store.Impersonation) error {
			_, err := b.update(i.UserID, store.UserPatch{Roles: &[]string{"x"}})
			return err
		},
		"a change of any role": func(b *bench, _ store.Session, _ store.Impersonation) error {
			if b.project == nil {
				return nil
			}
			_, err := b.putRole(store.RolePermissions{Name: "x"})
			return err
		},
	} {
		all["it ends with "+name] = func(b *bench) {
			operator, i := b.stage()
			b.liveActing(i, now, true)
			b.ok(end(b, operator, i))
			b.liveActing(i, now, false)
		}
	}
	return all
}
