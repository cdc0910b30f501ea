package pgstore

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth/store"
)

const impersonationColumns = `i.id, i.user_id, i.actor_id, i.actor_session, i.reason, i.created_at, i.expires_at, i.ip, i.user_agent, i.sequence, i.user_revision, i.actor_revision, i.roles_revision`

// impersonationIsLive checks, at $2, that an impersonation i and everything that it
// depends on is live and unchanged.
const (
	impersonationRests = `
		join auth.users u on u.id = i.user_id
		join auth.users a on a.id = i.actor_id
		join auth.sessions s on s.id = i.actor_session and s.user_id = i.actor_id
		cross join auth.role_revision r`
	impersonationIsLive = `i.ended_at is null and i.expires_at > $2::timestamptz
		and s.revoked_at is null and least(s.idle_until, s.expires_at) > $2::timestamptz
		and (a.banned_until is null or a.banned_until <= $2::timestamptz) and (u.banned_until is null or u.banned_until <= $2::timestamptz)
		and u.credential_revision = i.user_revision and a.credential_revision = i.actor_revision and r.revision = i.roles_revision`
)

const (
	insertImpersonation = `insert into auth.impersonations (id, user_id, actor_id, actor_session, reason, created_at, expires_at, ip, user_agent, user_revision, actor_revision, roles_revision, sequence)
	values ($1::uuid, $2::uuid, $3::uuid, $4::uuid, $5::text, $6::timestamptz, $7::timestamptz, $8::text, $9::text, $10::bigint, $11::bigint, $12::bigint, $13::bigint)`

	readImpersonation = `select ` + impersonationColumns + `, ` + impersonationIsLive + `, ` + userFacts + `
	from auth.impersonations i` + impersonationRests + ` where i.id = $1::uuid`

	listImpersonations = `select ` + impersonationColumns + ` from auth.impersonations i` + impersonationRests + `
	where ` + impersonationIsLive + ` and i.user_id = $1::uuid
	order by i.created_at desc, i.id desc limit 1000`
	listAllImpersonations = `select ` + impersonationColumns + ` from auth.impersonations i` + impersonationRests + `
	where ` + impersonationIsLive + ` and $1::uuid is null
	order by i.created_at desc, i.id desc limit 1000`

	whoImpersonates = `select i.user_id::text, i.actor_id::text, i.actor_session::text from auth.impersonations i where i.id = $1::uuid`

	endImpersonation = `update auth.impersonations e set ended_at = $2::timestamptz
	from auth.impersonations i` + impersonationRests + ` where e.id = i.id and i.id = $1::uuid and ` + impersonationIsLive

	revokeImpersonations = `update auth.impersonations e set ended_at = $2::timestamptz
	from auth.impersonations i` + impersonationRests + `
	where e.id = i.id and i.user_id = $1::uuid and ` + impersonationIsLive + `
		and ($3::uuid is null or i.id = $3::uuid) and ($4::uuid is null or i.id <> $4::uuid) and i.sequence >= $5::bigint
		and ($6::timestamptz is null or i.created_at < $6::timestamptz) and ($7::text is null or i.ip = $7::text)
	returning e.id`
)

// impersonationRow receives impersonationColumns.
type impersonationRow struct {
	i                store.Impersonation
	created, expires pgtype.Timestamptz
}

func (r *impersonationRow) into() []any {
	i := &r.i
	return []any{&i.ID, &i.UserID, &i.ActorID, &i.ActorSessionID, &i.Reason, &r.created, &r.expires, &i.IP, &i.UserAgent, &i.Sequence, &i.UserRevision, &i.ActorRevision, &i.RolesRevision}
}

func (r *impersonationRow) impersonation() store.Impersonation {
	i := r.i
	i.CreatedAt, i.ExpiresAt = at(r.created), at(r.expires)
	return i
}

// BeginImpersonation stores an impersonation. It locks the users and the actor's
// session, so that a change that revokes that session waits for it, or has been made
// before.
func (s *Store) BeginImpersonation(ctx context.Context, c store.BeginImpersonation) error {
	i := c.Impersonation
	return s.change(ctx, &c.Change, target{users: []string{i.UserID, i.ActorID}, sessions: []string{i.ActorSessionID}, roles: rolesStay}, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		u, actor, sess := h.user(i.UserID), h.user(i.ActorID), h.session(i.ActorSessionID)
		switch {
		case u == nil:
			return nil, store.ErrNotFound
		case actor == nil || sess == nil || sess.s.UserID != actor.id || !sess.liveAt(c.Now):
			return nil, store.ErrSessionEnded
		case u.banned(c.Now) || actor.banned(c.Now):
			return nil, store.ErrBanned
		}
		_, err := tx.Exec(ctx, s.sql(insertImpersonation), i.ID, u.id, actor.id, sess.s.ID, asText(i.Reason), micro(i.CreatedAt), micro(i.ExpiresAt), asText(i.IP), asText(i.UserAgent),
			u.credentialRevision, actor.credentialRevision, h.roles, u.sequence)
		return &result{about: u.id}, err
	})
}

// Impersonation reads a live impersonation with its user.
func (s *Store) Impersonation(ctx context.Context, id string, now time.Time) (i store.Impersonation, u store.User, err error) {
	id, ok := canonical(id)
	if !ok {
		return i, u, store.ErrNotFound
	}
	err = s.do(ctx, func(ctx context.Context, q querier) error {
		var r impersonationRow
		var of userRow
		var live bool
		err := q.QueryRow(ctx, s.sql(readImpersonation), id, now).Scan(append(append(r.into(), &live), of.facts()...)...)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return store.ErrNotFound
		case err != nil:
			return err
		case !live:
			return store.ErrSessionEnded
		}
		of.u.ID = r.i.UserID
		i = r.impersonation()
		u, err = of.user()
		return err
	})
	if err != nil {
		return store.Impersonation{}, store.User{}, err
	}
	return i, u, nil
}

// Impersonations lists live impersonations, newest first.
func (s *Store) Impersonations(ctx context.Context, userID string, now time.Time) ([]store.Impersonation, error) {
	sql, id := listAllImpersonations, any(nil)
	if userID != "" {
		one, ok := canonical(userID)
		if !ok {
			return []store.Impersonation{}, ctx.Err()
		}
		sql, id = listImpersonations, one
	}
	var list []store.Impersonation
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		list = []store.Impersonation{}
		rows, err := q.Query(ctx, s.sql(sql), id, now)
		if err != nil {
			return err
		}
		var r impersonationRow
		_, err = pgx.ForEachRow(rows, r.into(), func() error {
			list = append(list, r.impersonation())
			return nil
		})
		return err
	})
	return list, err
}

// EndImpersonation ends an impersonation. It reads the user, actor and session before
// it locks them, because they never change.
func (s *Store) EndImpersonation(ctx context.Context, c store.EndImpersonation) error {
	id, _ := canonical(c.ID)
	ctx, done, err := s.bound(ctx) // for both statements: a caller who leaves between them does not stop the second
	if err != nil {
		return err
	}
	defer done()
	var userID, actorID, sessionID string
	if id != "" {
		err := s.do(ctx, func(ctx context.Context, q querier) error {
			err := q.QueryRow(ctx, s.sql(whoImpersonates), id).Scan(&userID, &actorID, &sessionID)
			if errors.Is(err, pgx.ErrNoRows) {
				return nil
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	on := target{roles: rolesStay}
	if userID != "" {
		on.users, on.sessions = []string{userID, actorID}, []string{sessionID}
	}
	return s.change(ctx, &c.Change, on, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		if userID == "" || h.user(userID) == nil {
			return nil, store.ErrNotFound
		}
		tag, err := tx.Exec(ctx, s.sql(endImpersonation), id, c.Now)
		if err == nil && tag.RowsAffected() == 0 {
			err = store.ErrSessionEnded
		}
		return &result{about: userID}, err
	})
}

// queueRevokeImpersonations adds to a batch the statement that ends impersonations of a
// locked user. ended receives their ids.
func (s *Store) queueRevokeImpersonations(b *pgx.Batch, userID, only, except string, f store.SessionFilter, now time.Time, ended *[]string) {
	b.Queue(s.sql(revokeImpersonations), userID, now, orNull(only), orNull(except), f.FromSequence, moment(f.Before), orNull(asText(f.IP))).Query(func(rows pgx.Rows) (err error) {
		*ended, err = pgx.AppendRows(*ended, rows, pgx.RowTo[string])
		return err
	})
}
