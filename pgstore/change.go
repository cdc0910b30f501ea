package pgstore

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/store"
)

// plain tells whether a change rests on nothing but its method's own target and
// IfUsers, so that one statement may be the whole of it.
func plain(c *store.Change) bool {
	names := func(o store.OutcomeEvent) bool { return o.Event.Record != nil } // what a statement alone does not
	return (c.By.Proof || c.By.System != "") && c.IfRoles == nil && c.IfKey == nil && !c.KeepOwner && !c.FirstOwner && c.Idempotency == nil && !slices.ContainsFunc(c.Events, names)
}

// result is what the effect of a change was.
type result struct {
	about    string        // the one user it is about; empty: none
	used     *store.Token  // the token or code that the call itself used up
	outcome  store.Outcome // OutcomeDone, or what refusal is
	refusal  error         // what the method returns although it had an effect
	noChange bool          // nothing happened, so nothing is recorded either
	ended    []string      // the sessions that ended
	left     *int          // the recovery codes that are left
	other    *store.Client // of OutcomeReplayed

	tells    *store.NewDevice // of OutcomeNewDevice
	sequence int64            // that the session on it has

	last func() error // to be done once all conditions were judged; may be nil

	untold, tried bool // the events were not recorded, and whether it was tried
}

// change is every mutating method, but for what a single statement does: in a
// transaction it locks what the change rests on, judges the authority by what it
// has locked, has the effect f, judges the other conditions, and records what
// comes with it. The conditions are judged after the effect, as what a method
// says of its target comes first (a value that is taken, for one, turns out by
// the attempt); they are judged by what was locked before it, and undo it.
func (s *Store) change(ctx context.Context, c *store.Change, on target, f func(context.Context, pgx.Tx, *held) (*result, error)) error {
	if err := c.Check(); err != nil {
		return err
	}
	var r *result
	err := s.inTx(ctx, func(ctx context.Context, tx pgx.Tx) error {
		r = nil
		h, err := s.lock(ctx, tx, c, on)
		if err != nil {
			return err
		}
		if err := h.authority(&c.By, c.Now); err != nil {
			return err
		}
		if h.repeated != nil && !h.guessIsWrong(on, c.Now) { // a wrong guess counts whatever the conditions say
			return h.repeated
		}
		r, err = f(ctx, tx, h)
		if err != nil {
			return err
		}
		if r.refusal == nil {
			if err := s.judge(ctx, tx, c, h, r); err != nil {
				return err
			}
		}
		if r.last != nil {
			if err := r.last(); err != nil {
				return err
			}
		}
		if err := s.record(ctx, tx, c, h, r); err != nil {
			return err
		}
		if r.refusal != nil {
			return &counted{r.refusal}
		}
		return nil
	})
	if r != nil && r.untold && (err == nil || errors.Is(err, r.refusal)) {
		s.unrecorded(c, r, r.tried)
	}
	return err
}

// authority tells whether the one in whose name a change happens may still act.
func (h *held) authority(by *store.Authority, now time.Time) error {
	var who string
	switch {
	case by.Session != nil:
		sess, of := h.session(by.Session.ID), h.user(by.Session.UserID)
		if sess == nil || of == nil || sess.s.UserID != of.id || !sess.liveAt(now) {
			return store.ErrSessionEnded
		}
		who = of.id
	case by.Token != nil:
		t := h.token(*by.Token, now)
		if t == nil {
			return store.ErrNotFound
		}
		who = t.UserID
	case by.Key != nil:
		if !h.keyLives(*by.Key, now) {
			return store.ErrKeyEnded
		}
	}
	if u := h.user(who); u != nil && u.banned(now) {
		return store.ErrBanned
	}
	return nil
}

// keyLives tells whether an API key is live, and as it was read.
func (h *held) keyLives(ref store.KeyRef, now time.Time) bool {
	k := h.key(ref.ID)
	return k != nil && k.Revision == ref.Revision && k.Live(now)
}

const ownerIsLeft = `select exists (select from auth.users u
	where u.roles <> '{}' and u.roles @> array['` + store.RoleOwner + `'] and (u.banned_until is null or u.banned_until <= $1::timestamptz))`

// judge judges IfUsers, IfRoles, IfKey, KeepOwner and FirstOwner. An owner whom this statement sees
// and whom nobody has locked here cannot be about to go: whoever ends an owner
// has locked all of them.
func (s *Store) judge(ctx context.Context, tx pgx.Tx, c *store.Change, h *held, r *result) error {
	for _, want := range c.IfUsers {
		id := want.ID
		if id == "" && r.used != nil {
			id = r.used.UserID
		}
		if !h.user(id).still(want, c.Now) {
			return store.ErrStale
		}
	}
	if c.IfRoles != nil && *c.IfRoles != h.roles {
		return store.ErrStale
	}
	if c.IfKey != nil && !h.keyLives(*c.IfKey, c.Now) {
		return store.ErrStale
	}
	if c.KeepOwner {
		var left bool
		if err := tx.QueryRow(ctx, s.sql(ownerIsLeft), c.Now).Scan(&left); err != nil {
			return err
		}
		if !left {
			return store.ErrLastOwner
		}
	}
	if c.FirstOwner {
		return s.judgeFirst(ctx, tx, h, r)
	}
	return nil
}

// still tells whether all that is asked of a user holds.
func (u *lockedUser) still(want store.UserAt, now time.Time) bool {
	return u != nil &&
		is(want.Revision, u.revision) && is(want.CredentialRevision, u.credentialRevision) && is(want.PasswordHash, u.passwordHash) &&
		(want.Email == nil || store.EmailKey(*want.Email) == u.emailKey) && is(want.EmailVerified, u.emailVerified) &&
		is(want.Phone, u.phone) && is(want.PhoneVerified, u.phoneVerified) && (want.Banned == nil || *want.Banned == u.banned(now))
}

func is[T comparable](want *T, have T) bool { return want == nil || *want == have }

// claimKey takes an idempotency key, unless a change was made under it. Of
// parallel calls with the same one the others wait for how the first ends.
const claimKey = `insert into auth.idempotency as i (actor, route, key, request_hash, result, expires_at)
	values ($1::text, $2::text, $3::text, $4::bytea, $5::bytea, $6::timestamptz)
	on conflict (actor, route, key) do update set request_hash = excluded.request_hash, result = excluded.result, expires_at = excluded.expires_at
		where i.expires_at <= $7::timestamptz`

const selectKeyed = `select request_hash, result from auth.idempotency where actor = $1::text and route = $2::text and key = $3::text`

const releaseKey = `delete from auth.idempotency where actor = $1::text and route = $2::text and key = $3::text`

// claim adds to a batch what takes the change's idempotency key.
func (s *Store) claim(b *pgx.Batch, i *store.Idempotency, now time.Time, h *held) {
	var claimed bool
	b.Queue(s.sql(claimKey), i.Actor, i.Route, i.Key, orEmpty(i.RequestHash), orEmpty(i.Result), i.ExpiresAt, now).Exec(func(tag commandTag) error {
		claimed = tag.RowsAffected() > 0
		return nil
	})
	b.Queue(s.sql(selectKeyed), i.Actor, i.Route, i.Key).QueryRow(func(row pgx.Row) error {
		var hash, done []byte
		if err := row.Scan(&hash, &done); err != nil || claimed {
			return err
		}
		if len(done) == 0 {
			done = nil
		}
		h.repeated = &store.RepeatedError{Same: bytes.Equal(hash, i.RequestHash), Result: done}
		return nil
	})
}

// record keeps what comes with a change. Messages and the idempotency key belong
// to a change that was done; events to the outcome that they name.
func (s *Store) record(ctx context.Context, tx pgx.Tx, c *store.Change, h *held, r *result) error {
	b := &pgx.Batch{}
	done := r.outcome == store.OutcomeDone && !r.noChange
	if i := c.Idempotency; i != nil && !done && h.repeated == nil {
		b.Queue(s.sql(releaseKey), i.Actor, i.Route, i.Key)
	}
	if events := chosen(c, r); len(events) > 0 && !r.noChange {
		was := *c
		was.Events = events
		var input string
		input, r.tried = s.noting(&was)
		r.untold = !r.tried
		b.Queue(s.sql(noteEvents), input).QueryRow(func(row pgx.Row) error {
			var ok bool
			err := row.Scan(&ok)
			r.untold = r.untold || !ok
			return err
		})
	}
	if done && len(c.Messages) > 0 {
		b.Queue(s.sql(insertMessages), messagesInput(c.Messages))
	}
	if on := r.tells; on != nil {
		b.Queue(s.sql(insertTokensOnly), tokensInput(withOrigin(on.Tokens, store.Origin{Sequence: r.sequence})...))
		b.Queue(s.sql(insertMessages), messagesInput(on.Messages))
	}
	return send(ctx, tx, b)
}
