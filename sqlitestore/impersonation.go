package sqlitestore

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

const selectImpersonations = `select i.id, i.user_id, i.actor_id, i.actor_session, i.reason, i.created_at, i.expires_at, i.ip, i.user_agent, i.sequence, i.user_revision, i.actor_revision, i.roles_revision from auth_impersonations i`

func scanImpersonation(scan row) (i store.Impersonation) {
	scan(&i.ID, &i.UserID, &i.ActorID, &i.ActorSessionID, &i.Reason, at{&i.CreatedAt}, at{&i.ExpiresAt}, &i.IP, &i.UserAgent, &i.Sequence, &i.UserRevision, &i.ActorRevision, &i.RolesRevision)
	return i
}

// liveImpersonation is the condition that an impersonation i is live at the time ?1 (see
// store.AdminStore).
const liveImpersonation = `i.ended = 0 and i.expires_at > ?1
	and exists (select 1 from auth_sessions s where s.id = i.actor_session and s.user_id = i.actor_id and s.revoked = 0 and s.ends_at > ?1)
	and exists (select 1 from auth_users a where a.id = i.actor_id and (a.banned_until is null or a.banned_until <= ?1) and a.credential_revision = i.actor_revision)
	and exists (select 1 from auth_users u where u.id = i.user_id and (u.banned_until is null or u.banned_until <= ?1) and u.credential_revision = i.user_revision)
	and i.roles_revision = (select roles_revision from auth_project)`

// impersonation reads a live impersonation.
func (t *tx) impersonation(id string, now time.Time) (*store.Impersonation, error) {
	if i := first(t, scanImpersonation, selectImpersonations+` where i.id = ?2 and `+liveImpersonation, micros(now), id); i != nil {
		return i, nil
	}
	if t.exists(`select 1 from auth_impersonations where id = ?`, id) {
		return nil, store.ErrSessionEnded
	}
	return nil, store.ErrNotFound
}

// BeginImpersonation stores an impersonation.
func (s *Store) BeginImpersonation(ctx context.Context, c store.BeginImpersonation) error {
	return s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		i := c.Impersonation
		u, actor, sess := t.user(i.UserID), t.user(i.ActorID), t.session(i.ActorSessionID)
		switch {
		case u == nil:
			return nil, store.ErrNotFound
		case actor == nil || sess == nil || sess.UserID != actor.ID || !sess.liveAt(c.Now):
			return nil, store.ErrSessionEnded
		case u.Banned(c.Now) || actor.Banned(c.Now):
			return nil, store.ErrBanned
		case t.exists(`select 1 from auth_impersonations where id = ?`, i.ID):
			return nil, &store.ConflictError{Field: "id"}
		}
		return &effect{about: u.ID, apply: func() error {
			t.exec(`insert into auth_impersonations (id, user_id, actor_id, actor_session, reason, created_at, expires_at, ip, user_agent, sequence, user_revision, actor_revision, roles_revision)
				values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, i.ID, u.ID, actor.ID, sess.ID, i.Reason, micros(i.CreatedAt), micros(i.ExpiresAt), i.IP, i.UserAgent,
				u.Sequence, u.CredentialRevision, actor.CredentialRevision, t.rolesRevision())
			return nil
		}}, nil
	})
}

// Impersonation reads a live impersonation with its user.
func (s *Store) Impersonation(ctx context.Context, id string, now time.Time) (found store.Impersonation, owner store.User, err error) {
	err = s.snapshot(ctx, func(t *tx) error {
		i, err := t.impersonation(id, now)
		if err != nil {
			return err
		}
		if u := t.user(i.UserID); u != nil {
			found, owner = *i, u.User
		}
		return nil
	})
	if err != nil {
		return store.Impersonation{}, store.User{}, err
	}
	return found, owner, nil
}

// mostImpersonations is the highest number of impersonations in a list.
const mostImpersonations = 1000

// Impersonations lists live impersonations, newest first.
func (s *Store) Impersonations(ctx context.Context, userID string, now time.Time) ([]store.Impersonation, error) {
	return listed(ctx, s, &query{
		selectImpersonations + ` where (?2 = '' or i.user_id = ?2) and ` + liveImpersonation + ` order by i.created_at desc, i.id desc limit ?3`,
		[]any{micros(now), userID, mostImpersonations},
	}, scanImpersonation)
}

// EndImpersonation ends an impersonation.
func (s *Store) EndImpersonation(ctx context.Context, c store.EndImpersonation) error {
	return s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		i, err := t.impersonation(c.ID, c.Now)
		if err != nil {
			return nil, err
		}
		return &effect{about: i.UserID, apply: func() error {
			t.exec(`update auth_impersonations set ended = 1 where id = ?`, i.ID)
			return nil
		}}, nil
	})
}

// revokeImpersonations ends a user's impersonations that match, and returns their ids.
func (t *tx) revokeImpersonations(userID string, f store.SessionFilter, now time.Time) []string {
	return values[string](t, `update auth_impersonations as i set ended = 1 where `+liveImpersonation+` and i.user_id = ?2
		and (?3 = '' or i.id = ?3) and i.id <> ?4 and i.sequence >= ?5 and (?6 is null or i.created_at < ?6) and (?7 = '' or i.ip = ?7) returning id`,
		micros(now), userID, f.ID, f.Except, f.FromSequence, bound(f.Before), f.IP)
}
