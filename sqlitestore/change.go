package sqlitestore

import (
	"bytes"
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// effect is the planned work of a method. Planning changes nothing; apply does, after the
// conditions were checked.
type effect struct {
	about    string        // the id of the one user that it is about; empty: none
	uses     *store.Token  // the token or code that the call itself uses up
	outcome  store.Outcome // OutcomeDone, or one that comes with a refusal
	refusal  error         // the error of a method that has an effect nevertheless
	noChange bool          // nothing changes, so nothing is recorded either

	apply  func() error // nil: no work
	finish func() error // nil, or what follows the conditions about owners

	ended []string // set by apply: the ended sessions
	left  int      // set by apply, if codes is: the recovery codes left
	codes bool     // the change uses a recovery code

	addedBy int64                   // Origin.AddedBy of the change's additions
	origins map[string]store.Origin // by user: the Origin of the change's additions

	other *store.Client    // of OutcomeReplayed
	news  *store.NewDevice // of OutcomeNewDevice
}

// change runs every method with a Change, in one transaction: it plans the effect, checks
// the change's conditions, applies the effect, and records the change's events and messages.
func (s *Store) change(ctx context.Context, c *store.Change, plan func(*tx) (*effect, error)) error {
	if err := c.Check(); err != nil {
		return err
	}
	c.Now = utc(c.Now)
	var e *effect
	err := s.write(ctx, func(t *tx) (err error) {
		e, err = t.begin(c, plan)
		if err != nil || t.err != nil {
			return err
		}
		return t.finish(c, e)
	})
	if err != nil {
		return err
	}
	return e.refusal
}

// begin checks the conditions of a change, in the order of store.Change, except those
// about owners that depend on the effect.
func (t *tx) begin(c *store.Change, plan func(*tx) (*effect, error)) (*effect, error) {
	if err := t.authority(c.By, c.Now); err != nil {
		return nil, err
	}
	e, planErr := plan(t)
	if planErr == nil && e.outcome == store.OutcomeWrongCode {
		return e, nil // counted, even if another condition does not hold
	}
	if err := t.repeated(c.Idempotency, c.Now); err != nil {
		return nil, err
	}
	if planErr != nil {
		return nil, planErr
	}
	if e.refusal != nil {
		return e, nil
	}
	for _, at := range c.IfUsers {
		if !t.stillSo(at, e.uses, c.Now) {
			return nil, store.ErrStale
		}
	}
	if c.IfRoles != nil && *c.IfRoles != t.rolesRevision() {
		return nil, store.ErrStale
	}
	if c.IfKey != nil && !t.keyLives(*c.IfKey, c.Now) {
		return nil, store.ErrStale
	}
	return e, nil
}

// finish applies an effect. The conditions about owners are checked afterwards, because the
// transaction can be undone.
func (t *tx) finish(c *store.Change, e *effect) error {
	if e.about != "" {
		e.addedBy = t.addedBy(c.By, e.about, e.uses)
	}
	owned := c.FirstOwner && t.everOwned()
	if e.apply != nil {
		if err := e.apply(); err != nil {
			return err
		}
	}
	switch {
	case t.err != nil:
		return nil // reported by run
	case e.refusal == nil && c.KeepOwner && !t.exists(anOwner, micros(c.Now)):
		return store.ErrLastOwner
	case e.refusal == nil && owned:
		return store.ErrOwned
	}
	if e.finish != nil && t.err == nil {
		if err := e.finish(); err != nil {
			return err
		}
	}
	if !e.noChange {
		t.record(c, e)
	}
	return nil
}

// anOwner finds an unbanned owner who accepted.
const anOwner = `select 1 from auth_user_roles r join auth_users u on u.id = r.user_id
	where r.role = '` + store.RoleOwner + `' and (u.banned_until is null or u.banned_until <= ?1)
		and u.accepted_sequence > 0 and (u.accepted_until is null or u.accepted_until > ?1) limit 1`

// origin returns the Origin of a change's additions to a user. It raises the user's
// sequence once.
func (t *tx) origin(e *effect, u *user) store.Origin {
	o, raised := e.origins[u.ID]
	if !raised {
		u.Sequence++
		t.exec(`update auth_users set sequence = ? where id = ?`, u.Sequence, u.ID)
		o = store.Origin{Sequence: u.Sequence}
		if u.ID == e.about {
			o.AddedBy = e.addedBy
		}
		e.setOrigin(u.ID, o)
	}
	return o
}

func (e *effect) setOrigin(userID string, o store.Origin) {
	if e.origins == nil {
		e.origins = map[string]store.Origin{}
	}
	e.origins[userID] = o
}

// addedBy returns the sequence of the user's session or enrolment token that is the
// change's authority or that it redeems; 0 if there is none.
func (t *tx) addedBy(by store.Authority, userID string, redeems *store.Token) int64 {
	if by.Session != nil && by.Session.UserID == userID {
		return value[int64](t, `select sequence from auth_sessions where id = ?`, by.Session.ID)
	}
	if by.Token != nil {
		redeems = t.token(by.Token.Purpose, by.Token.Hash)
	}
	if redeems != nil && redeems.Purpose == store.PurposeEnroll && redeems.UserID == userID {
		return redeems.Sequence
	}
	return 0
}

// authority checks that the authority of a change is live and its user not banned.
func (t *tx) authority(by store.Authority, now time.Time) error {
	var owner string
	switch {
	case by.Session != nil:
		if !t.exists(`select 1 from auth_sessions where id = ? and user_id = ? and revoked = 0 and ends_at > ?`, by.Session.ID, by.Session.UserID, micros(now)) {
			return store.ErrSessionEnded
		}
		owner = by.Session.UserID
	case by.Token != nil:
		token := t.liveToken(*by.Token, now)
		if token == nil {
			return store.ErrNotFound
		}
		owner = token.UserID
	case by.Key != nil:
		if !t.keyLives(*by.Key, now) {
			return store.ErrKeyEnded
		}
	}
	if owner != "" && t.exists(`select 1 from auth_users where id = ? and banned_until > ?`, owner, micros(now)) {
		return store.ErrBanned
	}
	return nil
}

// keyLives reports whether an API key is live and unchanged.
func (t *tx) keyLives(ref store.KeyRef, now time.Time) bool {
	return t.exists(`select 1 from auth_api_keys where id = ? and revision = ? and revoked_at is null and (expires_at is null or expires_at > ?)`, ref.ID, ref.Revision, micros(now))
}

// repeated checks whether a change was made before under its idempotency key.
func (t *tx) repeated(i *store.Idempotency, now time.Time) error {
	if i == nil {
		return nil
	}
	done := first(t, func(scan row) (r store.Idempotency) {
		scan(&r.RequestHash, &r.Result)
		return r
	}, `select request_hash, result from auth_idempotency where actor = ? and route = ? and key = ? and expires_at > ?`, i.Actor, i.Route, i.Key, micros(now))
	if done == nil {
		return nil
	}
	return &store.RepeatedError{Same: bytes.Equal(done.RequestHash, i.RequestHash), Result: done.Result}
}

// stillSo reports whether all of at holds; uses is the token that the call uses up.
func (t *tx) stillSo(at store.UserAt, uses *store.Token, now time.Time) bool {
	id := at.ID
	if id == "" && uses != nil {
		id = uses.UserID
	}
	u := t.user(id)
	return u != nil &&
		is(at.Revision, u.Revision) && is(at.CredentialRevision, u.CredentialRevision) && is(at.PasswordHash, u.hash) &&
		(at.Email == nil || store.EmailKey(*at.Email) == store.EmailKey(u.Email)) && is(at.EmailVerified, u.EmailVerified()) &&
		is(at.Phone, u.Phone) && is(at.PhoneVerified, u.PhoneVerified()) && is(at.Banned, u.Banned(now))
}

func is[T comparable](want *T, got T) bool { return want == nil || *want == got }

// record stores the events and messages of a change. Messages and the idempotency key
// belong to OutcomeDone; each event belongs to the outcome that it names.
func (t *tx) record(c *store.Change, e *effect) {
	for _, o := range c.Events {
		switch {
		case o.On == e.outcome && o.Event.Record != nil && len(e.ended) > 0:
			t.addEvent(o.Event, e, e.ended)
		case o.On == e.outcome:
			t.addEvent(o.Event, e, nil)
		case o.On == store.OutcomeSessionsEnded && e.outcome == store.OutcomeDone && len(e.ended) > 0:
			t.addEvent(o.Event, e, e.ended)
		case o.On == store.OutcomeNewDevice && e.news != nil:
			t.addEvent(o.Event, e, nil)
		}
	}
	if e.outcome != store.OutcomeDone {
		return
	}
	for _, m := range c.Messages {
		t.addMessage(m)
	}
	if e.news != nil {
		for _, token := range e.news.Tokens {
			t.addToken(token, e)
		}
		for _, m := range e.news.Messages {
			t.addMessage(m)
		}
	}
	if i := c.Idempotency; i != nil {
		t.exec(`insert or replace into auth_idempotency (actor, route, key, request_hash, result, expires_at) values (?, ?, ?, ?, ?, ?)`,
			i.Actor, i.Route, i.Key, blob(i.RequestHash), blob(i.Result), micros(i.ExpiresAt))
	}
}
