package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth/store"
)

type commandTag = pgconn.CommandTag

// target names the rows that a method changes. They are locked together with the rows
// that its change depends on.
type target struct {
	users    []string
	sessions []string         // and their users
	tokens   []store.TokenRef // and their users
	code     *guess           // and its user
	keys     []string
	roles    roleLock
}

// guess is an attempt with a code.
type guess struct {
	purpose store.Purpose
	subject string
	hash    []byte
}

// roleLock says how to lock the revision of the table of roles.
type roleLock int

const (
	rolesAreNotAsked roleLock = iota
	rolesStay
	rolesChange
)

// held holds the locked rows as they were after the lock.
type held struct {
	roles    int64 // the revision of the table of roles, if it was locked
	users    map[string]*lockedUser
	sessions map[string]*sessionRow
	tokens   []store.Token
	code     *store.Token
	keys     map[string]*store.APIKey
	repeated error  // the *RepeatedError of a repeated idempotency key
	first    string // the first owner ever, if it was read; empty: none
}

// lockedUser holds the columns of a user that changes are checked against.
type lockedUser struct {
	id                           string
	emailKey, phone              string
	emailVerified, phoneVerified bool
	passwordHash                 string
	mfaEnabled                   bool
	bannedUntil                  time.Time
	revision, credentialRevision int64
	sequence                     int64
}

func (u *lockedUser) banned(now time.Time) bool { return now.Before(u.bannedUntil) }

// The locks, in the order in which they are taken. A user's row is locked before all
// other rows of the user, so that two changes of one user wait for each other only
// there.
const (
	lockRoles       = `select r.revision from auth.role_revision r for share`
	lockRolesChange = `select r.revision from auth.role_revision r for update`

	lockUsers = `select u.id, coalesce(u.email_key, ''), coalesce(u.phone, ''), u.email_verified_at is not null, u.phone_verified_at is not null,
			u.password_hash, u.mfa_enabled, u.banned_until, u.revision, u.credential_revision, u.sequence
		from auth.users u
		where u.id = any ($1::uuid[]
			|| array(select s.user_id from auth.sessions s where s.id = any ($2::uuid[]))
			|| array(select t.user_id from unnest($3::text[], $4::bytea[]) r (purpose, hash) join auth.tokens t on t.purpose = r.purpose and t.hash = r.hash)
			|| array(select t.user_id from auth.tokens t where t.purpose = $5::text and t.subject = $6::text and t.subject <> '')
			|| array(select o.id from auth.users o where $7::boolean and o.roles <> '{}' and o.roles @> array['` + store.RoleOwner + `']))
		order by u.id for update`

	lockSessions = `select ` + sessionColumns + ` from auth.sessions s where s.id = any ($1::uuid[]) order by s.id for update`

	lockKeys       = `select ` + keyColumns + ` from auth.api_keys k where k.id = any ($1::uuid[]) order by k.id for share`
	lockKeysChange = `select ` + keyColumns + ` from auth.api_keys k where k.id = any ($1::uuid[]) order by k.id for update`

	lockTokens = `select ` + tokenColumns + ` from unnest($1::text[], $2::bytea[]) r (purpose, hash)
		join auth.tokens t on t.purpose = r.purpose and t.hash = r.hash order by t.purpose, t.hash for update of t`
	lockCode = `select ` + tokenColumns + ` from auth.tokens t where t.purpose = $1::text and t.subject = $2::text and t.subject <> '' for update`
)

// lock locks the rows that a change depends on and those that it changes, in one round
// trip.
func (s *Store) lock(ctx context.Context, tx pgx.Tx, c *store.Change, on target) (*held, error) {
	h := &held{users: map[string]*lockedUser{}, sessions: map[string]*sessionRow{}, keys: map[string]*store.APIKey{}}
	b := &pgx.Batch{}
	if c.IfRoles != nil || on.roles != rolesAreNotAsked {
		sql := lockRoles
		if on.roles == rolesChange {
			sql = lockRolesChange
		}
		b.Queue(s.sql(sql)).QueryRow(func(row pgx.Row) error { return row.Scan(&h.roles) })
	}
	s.lockUsers(b, c, &on, h)
	s.lockSessions(b, c, &on, h)
	s.lockKeys(b, c, &on, h)
	s.lockTokens(b, c, &on, h)
	if c.FirstOwner {
		b.Queue(s.sql(selectFirstOwner)).QueryRow(func(row pgx.Row) error { return row.Scan(&h.first) })
	}
	if c.Idempotency != nil {
		s.claim(b, c.Idempotency, c.Now, h)
	}
	if err := send(ctx, tx, b); err != nil {
		return nil, err
	}
	found := h.tokens
	if h.code != nil {
		found = append([]store.Token{*h.code}, found...)
	}
	for _, t := range found {
		if t.UserID != "" && h.user(t.UserID) == nil {
			return nil, errMoved // the token was created, or superseded another user's, while this call waited for the user
		}
	}
	return h, nil
}

func (s *Store) lockUsers(b *pgx.Batch, c *store.Change, on *target, h *held) {
	users := append([]string{}, on.users...)
	for _, want := range c.IfUsers {
		users = append(users, want.ID)
	}
	for _, m := range c.Messages { // messages have a foreign key to users
		users = append(users, m.UserID)
	}
	sessions, tokens := on.sessions, on.tokens
	if by := c.By.Session; by != nil {
		users = append(users, by.UserID)
	}
	if c.By.Token != nil {
		tokens = append([]store.TokenRef{*c.By.Token}, tokens...)
	}
	users = canonicalAll(users...)
	if len(users)+len(sessions)+len(tokens) == 0 && on.code == nil && !c.KeepOwner {
		return
	}
	var code guess
	if on.code != nil {
		code = *on.code
	}
	purposes, hashes := refs(tokens)
	b.Queue(s.sql(lockUsers), users, canonicalAll(sessions...), purposes, hashes, string(code.purpose), code.subject, c.KeepOwner).Query(func(rows pgx.Rows) error {
		var u lockedUser
		var banned pgtype.Timestamptz
		_, err := pgx.ForEachRow(rows, []any{&u.id, &u.emailKey, &u.phone, &u.emailVerified, &u.phoneVerified, &u.passwordHash, &u.mfaEnabled, &banned, &u.revision, &u.credentialRevision, &u.sequence}, func() error {
			one := u
			one.bannedUntil = at(banned)
			h.users[u.id] = &one
			return nil
		})
		return err
	})
}

func (s *Store) lockSessions(b *pgx.Batch, c *store.Change, on *target, h *held) {
	sessions := on.sessions
	if by := c.By.Session; by != nil {
		sessions = append([]string{by.ID}, sessions...)
	}
	if sessions = canonicalAll(sessions...); len(sessions) == 0 {
		return
	}
	b.Queue(s.sql(lockSessions), sessions).Query(func(rows pgx.Rows) error {
		var r sessionRow
		_, err := pgx.ForEachRow(rows, r.into(), func() error {
			one := r
			h.sessions[r.s.ID] = &one
			return nil
		})
		return err
	})
}

func (s *Store) lockKeys(b *pgx.Batch, c *store.Change, on *target, h *held) {
	keys, sql := on.keys, lockKeysChange
	if len(keys) == 0 {
		sql = lockKeys // calls with the same key may run at the same time
	}
	if by := c.By.Key; by != nil {
		keys = append([]string{by.ID}, keys...)
	}
	if c.IfKey != nil {
		keys = append([]string{c.IfKey.ID}, keys...)
	}
	if keys = canonicalAll(keys...); len(keys) == 0 {
		return
	}
	b.Queue(s.sql(sql), keys).Query(func(rows pgx.Rows) error {
		list, err := pgx.CollectRows(rows, keyOf)
		for _, k := range list {
			h.keys[k.ID] = &k
		}
		return err
	})
}

func (s *Store) lockTokens(b *pgx.Batch, c *store.Change, on *target, h *held) {
	tokens := on.tokens
	if c.By.Token != nil {
		tokens = append([]store.TokenRef{*c.By.Token}, tokens...)
	}
	if len(tokens) > 0 {
		purposes, hashes := refs(tokens)
		b.Queue(s.sql(lockTokens), purposes, hashes).Query(func(rows pgx.Rows) (err error) {
			h.tokens, err = pgx.CollectRows(rows, tokenOf)
			return err
		})
	}
	if on.code != nil {
		b.Queue(s.sql(lockCode), string(on.code.purpose), on.code.subject).Query(func(rows pgx.Rows) error {
			list, err := pgx.CollectRows(rows, tokenOf)
			if len(list) > 0 {
				h.code = &list[0]
			}
			return err
		})
	}
}

func refs(tokens []store.TokenRef) (purposes []string, hashes [][]byte) {
	purposes, hashes = []string{}, [][]byte{}
	for _, t := range tokens {
		purposes, hashes = append(purposes, string(t.Purpose)), append(hashes, t.Hash)
	}
	return purposes, hashes
}
