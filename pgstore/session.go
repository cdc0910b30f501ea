package pgstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth/internal/gather"
	"github.com/authmount/auth/store"
)

// insertSessions stores the sessions s of users, and insertDevices their devices.
const (
	insertSessions = `insert into auth.sessions (id, user_id, counter, rotated_at, aal, amr, created_at, last_active_at, idle_until, expires_at, ip, user_agent, device, rotated_device, sequence, added_by)
		select s.id, s.user_id, s.counter, s.rotated_at, s.aal, s.amr, s.created_at, s.last_active_at, s.idle_until, s.expires_at, s.ip, s.user_agent, s.device, s.device, s.sequence, s.added_by
		from s`
	insertDevices = `insert into auth.devices as d (user_id, device, first_seen_at, last_seen_at, sequence, added_by)
		select s.user_id, s.device, s.created_at, s.created_at, s.sequence, s.added_by from s where s.device <> ''`
)

// createSession checks all conditions against the user's row as it is once locked.
//
// Parameters: $6 is true if there was a second factor, or if a check before found that
// none is needed. $14 is the number of sessions to keep, $15 the current time, $16 the
// number of devices to keep. $26 refuses a new device. In a transaction $27 is the
// sequence to which the change raises the user's, and $28 the sequence of the session
// that added this one; otherwise $27 is null and $28 is 0.
//
// The functions that delete surplus sessions and devices are only called if there may
// be some. The user's row, which is locked, holds an upper bound of the number of
// sessions.
//
// Most sign-ins send no message. For them the statement leaves out the parts for
// messages ($29) and for a new device (messages $30, tokens $31), which take time even
// if empty. A session without a device ($2) has a statement of its own, because the
// check for other devices needs its own plan.
const (
	createSession        = lockSignIn + signInIf + seenThere + signInStill + makeSessionQuietly
	createSessionNowhere = lockSignIn + signInIf + seenNowhere + signInStill + makeSessionQuietly

	makeSessionQuietly = makeSession + endSessions + recordSignIn + `, about.ended) as noted from about
	)` + signedIn + `, false, ` + noted + ` from u, about`

	lockSignIn = `with u as (
		update auth.users u set last_sign_in_at = $5::timestamptz, sessions_at_most = u.sessions_at_most + 1, sequence = coalesce($27::bigint, u.sequence + 1)`
	signInIf = `
		where u.id = $4::uuid and (u.banned_until is null or u.banned_until <= $5::timestamptz) and ($6::boolean or not u.mfa_enabled)
			and (not $26::boolean or u.last_sign_in_at is null or `
	signInStill = `)
			and ` + stillSo + `
		returning u.*`
	makeSession = `
	), s as materialized (
		select $3::uuid as id, u.id as user_id, $17::bigint as counter, $18::timestamptz as rotated_at, $19::text as aal, $20::jsonb as amr, $5::timestamptz as created_at,
			$21::timestamptz as last_active_at, $22::timestamptz as idle_until, $23::timestamptz as expires_at, $24::text as ip, $25::text as user_agent, $2::text as device, u.sequence, $28::bigint as added_by
		from u
	), sessions as (
		` + insertSessions + `
	), devices as (
		` + insertDevices + `
		on conflict (user_id, device) do update set last_seen_at = greatest(d.last_seen_at, excluded.last_seen_at)
		returning d.user_id, d.device, d.first_seen_at = d.last_seen_at as is_new, d.xmax = 0 as inserted
	)`
	endSessions = `, about as materialized (
		select u.id as user_id, case when $14::integer > 0 and u.sessions_at_most > $14::integer
			then auth.end_least_active_sessions(u.id, $3::uuid, $14::integer, $15::timestamptz) else '{}' end as ended`
	recordSignIn = `
		from u
	), events as (
		select auth.note_events($1::jsonb, about.user_id, array[0] || case when about.ended <> '{}' then array[` + sessionsEnded + `] else '{}' end`
	signedIn = `
	select ` + userColumns + `, about.ended, (select auth.forget_least_seen_devices(d.user_id, d.device, $16::integer) from devices d where d.is_new)`

	hasDevices  = `exists (select from auth.devices d where d.user_id = u.id)`
	seenThere   = `exists (select from auth.devices d where d.user_id = u.id and d.device = $2::text)`
	seenNowhere = `not ` + hasDevices
	seenOn      = `case when $2::text = '' then ` + seenNowhere + ` else ` + seenThere + ` end`
)

var createSessionTelling = lockSignIn + `
		from (select b.last_sign_in_at as at from auth.users b where b.id = $4::uuid) before` + signInIf + seenOn + signInStill + `, before.at is not null as was_here` + makeSession + endSessions + `,
			coalesce(u.was_here and case when $2::text = '' then ` + hasDevices + ` else (select d.inserted from devices d) end, false) as new_device` + recordSignIn + ` || case when about.new_device then array[` + newDevice + `] else '{}' end, about.ended) as noted from about
	), post as materialized (
		select m.* from about, jsonb_to_recordset($29::jsonb || case when about.new_device then $30::jsonb else '[]' end) as ` + messageRecord + `
	), messages as (
		` + insertPost + `
	), logged as (
		` + logPost + `
	), tokens as (
		` + insertTokens(`(select u.sequence from u)`) + ` from about, jsonb_to_recordset($31::jsonb) as ` + tokenRecord + ` where about.new_device` + supersede + `
	)` + signedIn + `, about.new_device, ` + noted + ` from u, about`

// auth.OutcomeSessionsEnded and auth.OutcomeNewDevice.
const (
	sessionsEnded = "3"
	newDevice     = "5"
)

// CreateSession adds a session. It is one statement if all conditions are about the
// session's user.
func (s *Store) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	u, ended, isNew, err := s.createSession(ctx, c)
	if err != nil {
		return store.User{}, err
	}
	made(&c.OnNewDevice, isNew)
	if c.Ended != nil && len(ended) > 0 {
		c.Ended(ended)
	}
	return u, nil
}

func (s *Store) createSession(ctx context.Context, c store.CreateSession) (u store.User, ended []string, isNew bool, err error) {
	if err := c.Check(); err != nil {
		return u, nil, false, err
	}
	b, done, err := s.bound(ctx)
	if err != nil {
		return u, nil, false, err
	}
	defer done()
	id, _ := canonical(c.Session.UserID)
	mayBeSimple := len(c.IfUsers) == 0
	if len(c.IfUsers) == 1 {
		other, _ := canonical(c.IfUsers[0].ID)
		mayBeSimple = other == id && c.IfUsers[0].Banned == nil // the statement checks a ban at another instant
	}
	asksTrust := c.OnTrustedDevice || !c.TrustUntil.IsZero() // rare, and the statement lacks the check
	if !asksTrust && plain(&c.Change) && mayBeSimple && id != "" && areAbout(slices.Concat(c.Messages, c.OnNewDevice.Messages), c.Session.UserID) {
		events, tried := s.noting(&c.Change)
		var ok bool
		err := s.do(b, func(ctx context.Context, q querier) (err error) {
			u, ended, isNew, err = s.insertSession(ctx, q, id, &c, c.IfUsers, nil, events, &ok)
			return err
		})
		if err == nil && (!ok || !tried) {
			r := &result{about: id, ended: ended}
			if isNew {
				r.tells = &c.OnNewDevice
			}
			s.unrecorded(&c.Change, r, tried)
		}
		if !errors.Is(err, errNotAlone) {
			return u, ended, isNew, err
		}
	}
	err = s.change(b, &c.Change, target{users: []string{id}}, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		of := h.user(id)
		if of == nil {
			return nil, store.ErrNotFound
		}
		r := &result{about: of.id}
		err := s.mayCreate(ctx, tx, of, &c.NewSession, c.Now, r)
		if err == nil {
			u, err = s.addSession(ctx, tx, of, &c.NewSession, &c.Change, of.origin(h.addedBy(&c.By, of.id, nil)), r)
		}
		ended, isNew = r.ended, r.tells != nil
		return r, err
	})
	return u, ended, isNew, err
}

// mayCreate checks whether a session may be created for a locked user.
func (s *Store) mayCreate(ctx context.Context, tx pgx.Tx, of *lockedUser, n *store.NewSession, now time.Time, r *result) error {
	if of.banned(n.Session.CreatedAt) {
		return store.ErrBanned
	}
	if err := s.mayPass(ctx, tx, of, n, now); err != nil {
		return err
	}
	return s.onDevice(ctx, tx, of, &n.Session, &n.OnNewDevice, r)
}

// addSession creates a session that mayCreate allowed, without the events and messages
// of the change.
func (s *Store) addSession(ctx context.Context, tx pgx.Tx, of *lockedUser, n *store.NewSession, c *store.Change, by store.Origin, r *result) (store.User, error) {
	alone := &store.CreateSession{Change: store.Change{Now: c.Now, By: c.By}, NewSession: store.NewSession{Session: n.Session, KeepSessions: n.KeepSessions, OnTrustedDevice: true}}
	u, ended, _, err := s.insertSession(ctx, tx, of.id, alone, nil, &by, none, new(bool))
	r.ended = append(r.ended, ended...)
	r.sequence = by.Sequence
	if err == nil {
		err = s.trust(ctx, tx, of, n)
	}
	return u, err
}

// origin returns the Origin of everything that a change adds to a locked user. Each
// statement of the change that adds something sets the user's sequence to it.
func (u *lockedUser) origin(addedBy int64) store.Origin {
	return store.Origin{Sequence: u.sequence + 1, AddedBy: addedBy}
}

// insertSession returns errNotAlone if the user does not meet the conditions. by is the
// origin in a transaction, and otherwise nil. ok is set to whether the events were
// recorded.
func (s *Store) insertSession(ctx context.Context, q querier, userID string, c *store.CreateSession, still []store.UserAt, by *store.Origin, events string, ok *bool) (u store.User, ended []string, isNew bool, err error) {
	sess, on := &c.Session, &c.OnNewDevice
	args := append([]any{events, asText(sess.Device), sess.ID, userID, micro(sess.CreatedAt), sess.AAL == store.LevelAAL2 || c.OnTrustedDevice}, stillInput(still)...)
	args = append(args, c.KeepSessions, c.Now, store.MaxDevices, int64(sess.Counter), micro(sess.RotatedAt), sess.AAL, text(nonNil(sess.AMR)),
		micro(sess.LastActiveAt), micro(sess.IdleUntil), moment(sess.ExpiresAt), asText(sess.IP), asText(sess.UserAgent), on.Refuse)
	if by == nil {
		args = append(args, nil, 0)
	} else {
		args = append(args, by.Sequence, by.AddedBy)
	}
	sql := createSession
	if sess.Device == "" {
		sql = createSessionNowhere
	}
	if len(c.Messages)+len(on.Messages)+len(on.Tokens) > 0 || on.Made != nil || slices.ContainsFunc(c.Events, whenNewDevice) {
		sql, args = createSessionTelling, append(args, messagesInput(c.Messages), messagesInput(on.Messages), tokensInput(withOrigin(on.Tokens, store.Origin{})...))
	}
	var r userRow
	if err = q.QueryRow(ctx, s.sql(sql), args...).Scan(append(r.into(), &ended, nil, &isNew, ok)...); errors.Is(err, pgx.ErrNoRows) {
		return u, nil, false, errNotAlone
	}
	if err == nil {
		u, err = r.user()
	}
	return u, ended, isNew, err
}

// sessionUser receives a session and its user.
type sessionUser struct {
	sess sessionRow
	user userRow
}

func (r *sessionUser) both() (store.Session, store.User, error) { return r.sess.both(&r.user) }

// The arrays are in a sub-select, so that Postgres does not plan anew for each length.
const (
	readOne  = `select ` + sessionColumns + `, ` + userFacts + ` from auth.sessions s join auth.users u on u.id = s.user_id where s.id = $1::uuid`
	readMany = `select r.n, ` + sessionColumns + `, ` + userFacts + ` from unnest((select $1::uuid[])) with ordinality r (id, n)
		join auth.sessions s on s.id = r.id join auth.users u on u.id = s.user_id`
)

// Session reads a session with its user. Simultaneous calls share statements.
func (s *Store) Session(ctx context.Context, id string, now time.Time) (store.Session, store.User, error) {
	r, err := gathered(ctx, s, s.reads, s.readOne, id, id)
	if err != nil {
		return store.Session{}, store.User{}, err
	}
	if r == nil {
		return store.Session{}, store.User{}, store.ErrNotFound
	}
	sess, u, err := r.both()
	switch {
	case err != nil:
		return store.Session{}, store.User{}, err
	case u.Banned(now):
		return sess, u, store.ErrBanned
	case !r.sess.liveAt(now):
		return store.Session{}, store.User{}, store.ErrSessionEnded
	}
	return sess, u, nil
}

func (s *Store) readOne(ctx context.Context, id string) (r *sessionUser, err error) {
	err = s.do(ctx, func(ctx context.Context, q querier) error {
		r = &sessionUser{}
		if err = q.QueryRow(ctx, s.sql(readOne), id).Scan(r.sess.andUser(&r.user)...); errors.Is(err, pgx.ErrNoRows) {
			r, err = nil, nil
		}
		return err
	})
	return r, err
}

func (s *Store) readMany(ctx context.Context, calls []*gather.Call[string, *sessionUser]) error {
	ids := make([]pgtype.UUID, len(calls))
	for i, c := range calls {
		ids[i] = idOf(c.Arg)
	}
	found, err := s.findAll(ctx, len(calls), readMany, []any{ids}, func(r *sessionUser) []any { return r.sess.andUser(&r.user) })
	if err != nil {
		return err
	}
	for i, c := range calls { // nil if not found
		c.Return(found[i])
	}
	return nil
}

// gathered runs a call about a session. It shares a statement with other calls, unless
// the context carries a transaction.
func gathered[A any](ctx context.Context, s *Store, g *gather.Group[A, *sessionUser], one func(context.Context, A) (*sessionUser, error), arg A, id string) (*sessionUser, error) {
	b, done, err := s.bound(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if _, ok := canonical(id); !ok {
		return nil, store.ErrNotFound // no session has this id
	}
	if Tx(ctx) != nil {
		return one(b, arg)
	}
	return g.Do(b, arg)
}

// findAll returns the row of each of n calls, or nil. The first column is the call's
// number, from one.
func (s *Store) findAll(ctx context.Context, n int, sql string, args []any, into func(*sessionUser) []any) ([]*sessionUser, error) {
	found := make([]*sessionUser, n)
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		clear(found)
		rows, err := q.Query(ctx, s.sql(sql), args...)
		if err != nil {
			return err
		}
		var which int
		var r sessionUser
		_, err = pgx.ForEachRow(rows, append([]any{&which}, into(&r)...), func() error {
			row := r
			found[which-1] = &row
			return nil
		})
		return err
	})
	return found, err
}

func idOf(s string) pgtype.UUID {
	var id pgtype.UUID
	c, _ := canonical(s)
	_ = id.Scan(c) // an invalid id is null, and finds nothing
	return id
}

const listSessions = `select ` + sessionColumns + ` from auth.sessions s
	where s.user_id = $1::uuid and s.revoked_at is null and least(s.idle_until, s.expires_at) > $2::timestamptz
	order by s.created_at desc, s.id desc`

// Sessions lists a user's live sessions, newest first.
func (s *Store) Sessions(ctx context.Context, userID string, now time.Time) ([]store.Session, error) {
	id, ok := canonical(userID)
	if !ok {
		return []store.Session{}, ctx.Err()
	}
	var list []store.Session
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		list = []store.Session{}
		rows, err := q.Query(ctx, s.sql(listSessions), id, now)
		if err != nil {
			return err
		}
		list, err = pgx.AppendRows(list, rows, func(row pgx.CollectableRow) (store.Session, error) {
			var r sessionRow
			if err := row.Scan(r.into()...); err != nil {
				return store.Session{}, err
			}
			return r.session()
		})
		return err
	})
	return list, err
}

const revokeSessions = `update auth.sessions s set revoked_at = $2::timestamptz
	where s.user_id = $1::uuid and s.revoked_at is null and least(s.idle_until, s.expires_at) > $2::timestamptz
		and ($3::uuid is null or s.id = $3::uuid) and ($4::uuid is null or s.id <> $4::uuid) and s.sequence >= $5::bigint
		and ($6::timestamptz is null or s.created_at < $6::timestamptz) and ($7::text is null or s.ip = $7::text)
	returning s.id`

// RevokeSessions revokes a user's live sessions that match.
func (s *Store) RevokeSessions(ctx context.Context, c store.RevokeSessions) ([]string, error) {
	var ended []string
	id, _ := canonical(c.UserID)
	err := s.change(ctx, &c.Change, target{users: []string{id}}, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		r := &result{about: id, ended: []string{}}
		b := &pgx.Batch{}
		if u := h.user(id); u != nil {
			s.queueRevoke(b, u.id, c.Filter, c.Now, &r.ended)
			if len(c.DropTokens) > 0 {
				b.Queue(s.sql(dropTokens), u.id, purposes(c.DropTokens), false)
			}
			if c.DropDevices {
				s.queueForget(b, u.id, c.Filter)
			}
		}
		err := send(ctx, tx, b)
		ended = r.ended
		return r, err
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(ended)
	return ended, nil
}

// queueRevoke adds to a batch the statement that revokes sessions of a locked user. The
// lock keeps two calls from revoking the user's sessions in different orders. ended
// receives their ids.
func (s *Store) queueRevoke(b *pgx.Batch, userID string, f store.SessionFilter, now time.Time, ended *[]string) {
	only, ok := canonical(f.ID)
	if f.ID != "" && !ok {
		return // no session has this id
	}
	except, _ := canonical(f.Except)
	b.Queue(s.sql(revokeSessions), userID, now, orNull(only), orNull(except), f.FromSequence, moment(f.Before), orNull(asText(f.IP))).Query(func(rows pgx.Rows) (err error) {
		*ended, err = pgx.AppendRows(*ended, rows, pgx.RowTo[string])
		return err
	})
	s.queueRevokeImpersonations(b, userID, only, except, f, now, ended)
}

// Callers returns the contexts of all calls that share the statement of a context. A
// tracer (pgx.QueryTracer) can link to their spans, because a shared statement has no
// single parent. For any other context it returns nil.
func Callers(ctx context.Context) []context.Context { return gather.Callers(ctx) }
