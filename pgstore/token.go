package pgstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/store"
)

// insertTokens returns the beginning of a statement that inserts tokens. The source of
// the tokens follows, as t, then supersede: a token replaces an older one with the same
// purpose and subject, in the same row.
//
// sequence is the expression for the user's sequence, for tokens that do not have one
// of their own.
func insertTokens(sequence string) string {
	return `insert into auth.tokens (purpose, hash, subject, user_id, data, created_at, expires_at, max_tries, tries, code, code_expires_at, sequence, added_by)
		select t.purpose, t.hash, t.subject, t.user_id, t.data, t.created_at, t.expires_at, t.max_tries, t.tries, t.code, t.code_expires_at,
			case when t.user_id is null then 0 else coalesce(t.sequence, ` + sequence + `, 0) end, t.added_by`
}

// sequenceOfUser is the sequence of a token's user before the statement.
const sequenceOfUser = `(select u.sequence from auth.users u where u.id = t.user_id)`

const supersede = `
		on conflict (purpose, subject) where subject <> '' do update set hash = excluded.hash, user_id = excluded.user_id, data = excluded.data,
			created_at = excluded.created_at, expires_at = excluded.expires_at, max_tries = excluded.max_tries, tries = excluded.tries,
			code = excluded.code, code_expires_at = excluded.code_expires_at, sequence = excluded.sequence, added_by = excluded.added_by`

var insertTokensOnly = insertTokens(sequenceOfUser) + ` from jsonb_to_recordset($1::jsonb) as ` + tokenRecord + supersede

// putToken locks the user before the token, as all statements do. It is the same
// statement for tokens that supersede and tokens that yield, so that its duration does
// not reveal which was the case.
var putToken = putTokenHead + yield() + putTokenTail

// yield returns supersede for tokens that yield: if $5 is not null and the older token
// is live at $5, that is written again unchanged.
func yield() string {
	var set []string
	for _, column := range []string{"hash", "user_id", "data", "created_at", "expires_at", "max_tries", "tries", "code", "code_expires_at", "sequence", "added_by"} {
		set = append(set, column+" = case when tokens.expires_at > $5::timestamptz then tokens."+column+" else excluded."+column+" end")
	}
	return `
		on conflict (purpose, subject) where subject <> '' do update set ` + strings.Join(set, ",\n\t\t\t")
}

// putFirstToken inserts a token if there is none with the same purpose and subject.
var putFirstToken = putTokenHead + ` on conflict (purpose, subject) where subject <> '' do nothing` + putTokenTail

var putTokenHead = `with who as materialized (
		select u.id, u.sequence from auth.users u where u.id = $3::uuid for key share
	), token as (
		` + insertTokens(`(select who.sequence from who)`) + ` from jsonb_to_recordset($4::jsonb) as ` + tokenRecord + `
		where $3::uuid is null or exists (select from who)`

const putTokenTail = `
		returning user_id
	), about as (
		select user_id, 0 as outcome from token
	), ` + recorded + `
	select ` + noted + ` from token`

// PutToken stores a token. It replaces an older one with the same purpose and subject.
func (s *Store) PutToken(ctx context.Context, c store.PutToken) error {
	if err := c.Check(); err != nil {
		return err
	}
	if _, ok := canonical(c.Token.UserID); !ok && c.Token.UserID != "" {
		return cmp.Or(ctx.Err(), store.ErrNotFound)
	}
	c.Token.Origin = store.Origin{}
	if plain(&c.Change) && len(c.IfUsers) == 0 && c.Supersedes == nil && c.Token.Purpose != store.PurposeEnroll && areAbout(c.Messages, c.Token.UserID) {
		events, tried := s.noting(&c.Change)
		var ok bool
		err := s.do(ctx, func(ctx context.Context, q querier) (err error) {
			ok, err = s.putToken(ctx, q, &c, events, messagesInput(c.Messages))
			return err
		})
		if err == nil && (!ok || !tried) {
			s.unrecorded(&c.Change, &result{about: c.Token.UserID}, tried)
		}
		return err
	}
	return s.change(ctx, &c.Change, target{users: []string{c.Token.UserID}}, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		of, err := h.user(c.Token.UserID), error(nil)
		switch {
		case c.Token.UserID == "":
		case of == nil:
			return nil, store.ErrNotFound
		case c.Token.Purpose == store.PurposeEnroll:
			c.Token.Origin = of.origin(h.addedBy(&c.By, of.id, nil))
			if _, err := tx.Exec(ctx, s.sql(setSequence), of.id, c.Token.Sequence); err != nil {
				return nil, err
			}
		}
		if c.Supersedes == nil {
			_, err = s.putToken(ctx, tx, &c, none, none)
		} else {
			err = s.putTokenOver(ctx, tx, &c)
		}
		return &result{about: c.Token.UserID}, err
	})
}

// setSequence raises a user's sequence to that of a change.
const setSequence = `update auth.users u set sequence = $2::bigint where u.id = $1::uuid`

const (
	//nolint:gosec // no credentials
	lockTokenAbout = `select t.hash from auth.tokens t where t.purpose = $1::text and t.subject = $2::text and t.subject <> '' and t.expires_at > $3::timestamptz for update`

	//nolint:gosec // no credentials
	dropDeadToken = `delete from auth.tokens t where t.purpose = $1::text and t.subject = $2::text and t.subject <> '' and t.expires_at <= $3::timestamptz`
)

// putTokenOver stores a token in place of the one that c.Supersedes names. Errors:
// ErrStale.
func (s *Store) putTokenOver(ctx context.Context, tx pgx.Tx, c *store.PutToken) error {
	var hash []byte
	err := tx.QueryRow(ctx, s.sql(lockTokenAbout), string(c.Token.Purpose), c.Token.Subject, c.Now).Scan(&hash)
	switch {
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return err
	case !bytes.Equal(hash, *c.Supersedes):
		return store.ErrStale
	case len(hash) > 0:
		_, err = s.putToken(ctx, tx, c, none, none)
		return err
	}
	if _, err = tx.Exec(ctx, s.sql(dropDeadToken), string(c.Token.Purpose), c.Token.Subject, c.Now); err == nil {
		_, err = s.insertToken(ctx, tx, putFirstToken, c.Token, none, none)
	}
	if errors.Is(err, store.ErrNotFound) { // another call put a token meanwhile
		err = store.ErrStale
	}
	return err
}

// putToken stores a token that supersedes any older one, or yields to a live one. ok
// reports whether the events were recorded.
func (s *Store) putToken(ctx context.Context, q querier, c *store.PutToken, events, messages string) (ok bool, err error) {
	var yieldsAt *time.Time
	if c.Yields {
		yieldsAt = &c.Now
	}
	return s.insertToken(ctx, q, putToken, c.Token, events, messages, yieldsAt)
}

// insertToken runs putToken or putFirstToken. ok reports whether the events were
// recorded.
func (s *Store) insertToken(ctx context.Context, q querier, sql string, t store.Token, events, messages string, more ...any) (ok bool, err error) {
	args := append([]any{events, messages, orNull(t.UserID), tokensInput(t)}, more...)
	err = q.QueryRow(ctx, s.sql(sql), args...).Scan(&ok)
	if errors.Is(err, pgx.ErrNoRows) {
		err = store.ErrNotFound
	}
	return ok, err
}

const peekToken = `select ` + tokenColumns + ` from auth.tokens t where t.purpose = $1::text and t.hash = $2::bytea and t.expires_at > $3::timestamptz`

// PeekToken reads a live token.
func (s *Store) PeekToken(ctx context.Context, p store.Purpose, hash []byte, now time.Time) (store.Token, error) {
	var t store.Token
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		rows, err := q.Query(ctx, s.sql(peekToken), string(p), hash, now)
		if err == nil {
			t, err = pgx.CollectExactlyOneRow(rows, tokenOf)
		}
		return err
	})
	if err != nil {
		return store.Token{}, err
	}
	return t, nil
}

// redeem uses up a token, for calls without another effect. It never waits, so that it
// reads token and user at one instant. It does not find a token that another
// transaction has locked; a transaction handles that.
const redeem = `with t as materialized (
		select * from auth.tokens t where t.purpose = $3::text and t.hash = $4::bytea and t.expires_at > $5::timestamptz for update skip locked
	), u as materialized (
		select u.* from auth.users u join t on u.id = coalesce($6::uuid, t.user_id)
	), used as (
		delete from auth.tokens c using t where c.purpose = t.purpose and c.hash = t.hash and (coalesce($6::uuid, t.user_id) is null or exists (select from u))
		returning c.hash
	), about as (
		select coalesce($6::uuid, t.user_id) as user_id, 0 as outcome from t join used on true
	), ` + recorded + `
	select ` + tokenColumns + `, ` + maybeUserColumns + `, ` + claimsColumn + `, ` + noted + ` from t join used on true left join u on true`

// RedeemToken uses up a token together with its effect. Without an effect and
// conditions it is one statement.
func (s *Store) RedeemToken(ctx context.Context, c store.Redemption) (store.Token, store.User, error) {
	if err := c.Check(); err != nil {
		return store.Token{}, store.User{}, err
	}
	b, done, err := s.bound(ctx)
	if err != nil {
		return store.Token{}, store.User{}, err
	}
	defer done()
	if plain(&c.Change) && len(c.IfUsers) == 0 && len(c.Messages) == 0 && isNone(&c.Effect) {
		t, u, err := s.redeemAlone(b, &c)
		if !errors.Is(err, errNotAlone) {
			return t, u, err
		}
		if _, err = s.PeekToken(b, c.Purpose, c.Hash, c.Now); err != nil { // usually there is no such token
			return store.Token{}, store.User{}, err
		}
	}
	ref := store.TokenRef{Purpose: c.Purpose, Hash: c.Hash}
	on := target{users: []string{c.UserID}, tokens: []store.TokenRef{ref}, roles: rolesOfEffect(&c.Effect)}
	var t store.Token
	var u store.User
	err = s.change(b, &c.Change, on, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		found := h.token(ref, c.Now)
		if found == nil {
			return nil, store.ErrNotFound
		}
		t, u = *found, store.User{}
		return s.use(ctx, tx, h, &c.Change, found, &c.Effect, &u)
	})
	if err != nil {
		return store.Token{}, store.User{}, err
	}
	return t, u, nil
}

// errNotAlone is returned if a single statement changed no row, so that a transaction
// has to find out the reason.
var errNotAlone = errors.New("pgstore: not alone")

// isNone reports whether an effect changes nothing.
func isNone(e *store.Effect) bool { return e.Create == nil && (e.Patch == nil || e.Patch.Empty()) }

func (s *Store) redeemAlone(ctx context.Context, c *store.Redemption) (store.Token, store.User, error) {
	user, ok := canonical(c.UserID)
	if c.UserID != "" && !ok {
		return store.Token{}, store.User{}, errNotAlone
	}
	var t store.Token
	var u store.User
	var recorded bool
	events, tried := s.noting(&c.Change)
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		var tr tokenRow
		var ur userRow
		err := q.QueryRow(ctx, s.sql(redeem), events, none, string(c.Purpose), c.Hash, c.Now, orNull(user)).
			Scan(append(append(tr.into(), ur.into()...), &ur.claims, &recorded)...)
		if errors.Is(err, pgx.ErrNoRows) {
			return errNotAlone
		}
		if err == nil {
			t = tr.token()
			u, err = ur.user()
		}
		return err
	})
	if err == nil && (!recorded || !tried) {
		s.unrecorded(&c.Change, &result{about: cmp.Or(user, t.UserID)}, tried)
	}
	return t, u, err
}

//nolint:gosec // no credentials
const useToken = `delete from auth.tokens where purpose = $1::text and hash = $2::bytea`

// use uses up a locked token together with its effect.
func (s *Store) use(ctx context.Context, tx pgx.Tx, h *held, c *store.Change, t *store.Token, e *store.Effect, u *store.User) (*result, error) {
	r := &result{}
	var err error
	switch id := cmp.Or(e.UserID, t.UserID); {
	case e.Create != nil:
		r, err = s.create(ctx, tx, *e.Create, u)
	case id != "":
		r, err = s.patch(ctx, tx, h.user(id), e.Patch, c.Now, h.addedBy(&c.By, id, t), u)
	}
	if err != nil {
		return nil, err
	}
	r.used = t
	_, err = tx.Exec(ctx, s.sql(useToken), string(t.Purpose), t.Hash)
	return r, err
}

func rolesOfEffect(e *store.Effect) roleLock {
	if e.Create != nil {
		return rolesOf(e.Create.User.Roles)
	}
	return rolesOfPatch(e.Patch)
}
