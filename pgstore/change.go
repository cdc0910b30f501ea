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

// plain reports whether a change depends only on its method's own target and IfUsers,
// so that a single statement can carry it out.
func plain(c *store.Change) bool {
	names := func(o store.OutcomeEvent) bool { return o.Event.Record != nil } // a single statement cannot record these
	return (c.By.Proof || c.By.System != "") && c.IfRoles == nil && c.IfKey == nil && !c.KeepOwner && !c.FirstOwner && c.Idempotency == nil && !slices.ContainsFunc(c.Events, names)
}

// result describes the effect of a change.
type result struct {
	about    string        // the user that the change is about; empty: none
	used     *store.Token  // the token or code that the call redeemed
	outcome  store.Outcome // OutcomeDone, or the outcome of refusal
	refusal  error         // an error that the method returns although its effect is committed
	noChange bool          // nothing changed, so nothing is recorded
	ended    []string      // the sessions that were revoked
	left     *int          // the number of remaining recovery codes
	other    *store.Client // for OutcomeReplayed

	tells    *store.NewDevice // for OutcomeNewDevice
	sequence int64            // of the session on the new device

	last func() error // called after all conditions were checked; may be nil

	untold, tried bool // the events were not recorded; recording them was attempted
}

// change runs a mutating method in a transaction, for all methods and cases that a
// single statement cannot handle. It locks the rows that the change depends on, checks
// the authority, runs the effect f, checks the other conditions on the locked rows, and
// records events, messages and the idempotency key. The conditions come after the effect,
// because errors about the method's target take precedence, and a conflict shows only
// there. A failed condition undoes the effect.
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
		if h.repeated != nil && !h.guessIsWrong(on, c.Now) { // a wrong code counts as an attempt in a repetition, too
			return h.repeated
		}
		r, err = f(ctx, tx, h)
		if err != nil {
			return err
		}
		if r.refusal == nil {
			if err := s.checkChange(ctx, tx, c, h, r); err != nil {
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

// authority checks that the session, token or API key that authorises a change is still
// valid. Errors: ErrSessionEnded, ErrNotFound, ErrKeyEnded, ErrBanned.
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

// keyLives reports whether an API key is live and still has the revision that was read.
func (h *held) keyLives(ref store.KeyRef, now time.Time) bool {
	k := h.key(ref.ID)
	return k != nil && k.Revision == ref.Revision && k.Live(now)
}

const ownerIsLeft = `select exists (select from auth.users u
	where u.roles <> '{}' and u.roles @> array['` + store.RoleOwner + `'] and (u.banned_until is null or u.banned_until <= $1::timestamptz)
		and u.accepted_sequence > 0 and (u.accepted_until is null or u.accepted_until > $1::timestamptz))`

// checkChange checks IfUsers, IfRoles, IfKey, KeepOwner and FirstOwner. The result of ownerIsLeft
// is stable, because every change that may remove an owner locks all owners.
func (s *Store) checkChange(ctx context.Context, tx pgx.Tx, c *store.Change, h *held, r *result) error {
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
		return s.checkFirstOwner(ctx, tx, h, r)
	}
	return nil
}

// still reports whether a user meets all conditions of want.
func (u *lockedUser) still(want store.UserAt, now time.Time) bool {
	return u != nil &&
		is(want.Revision, u.revision) && is(want.CredentialRevision, u.credentialRevision) && is(want.PasswordHash, u.passwordHash) &&
		(want.Email == nil || store.EmailKey(*want.Email) == u.emailKey) && is(want.EmailVerified, u.emailVerified) &&
		is(want.Phone, u.phone) && is(want.PhoneVerified, u.phoneVerified) && (want.Banned == nil || *want.Banned == u.banned(now))
}

func is[T comparable](want *T, have T) bool { return want == nil || *want == have }

// claimKey stores an idempotency key, unless an earlier change used it. Parallel calls
// with the same key wait until the first one ends.
const claimKey = `insert into auth.idempotency as i (actor, route, key, request_hash, result, expires_at)
	values ($1::text, $2::text, $3::text, $4::bytea, $5::bytea, $6::timestamptz)
	on conflict (actor, route, key) do update set request_hash = excluded.request_hash, result = excluded.result, expires_at = excluded.expires_at
		where i.expires_at <= $7::timestamptz`

const selectKeyed = `select request_hash, result from auth.idempotency where actor = $1::text and route = $2::text and key = $3::text`

const releaseKey = `delete from auth.idempotency where actor = $1::text and route = $2::text and key = $3::text`

// claim adds the statements that store the change's idempotency key to a batch.
func (s *Store) claim(b *pgx.Batch, i *store.Idempotency, now time.Time, h *held) {
	var claimed bool
	b.Queue(s.sql(claimKey), i.Actor, i.Route, i.Key, nonNil(i.RequestHash), nonNil(i.Result), i.ExpiresAt, now).Exec(func(tag commandTag) error {
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

// record stores the events, messages and idempotency key of a change. Messages and the
// key are stored only for OutcomeDone, events for the outcome that they name.
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
