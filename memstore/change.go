package memstore

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// effect is the planned work of a method. Planning changes nothing; apply does, after every
// condition was checked.
type effect struct {
	about    string        // the id of the one user that it is about; empty: none
	uses     *store.Token  // the token or code that the call itself uses up
	outcome  store.Outcome // OutcomeDone, or one that comes with a refusal
	refusal  error         // the error of a method that has an effect nevertheless
	noChange bool          // nothing changes, so nothing is recorded either

	replaces string      // the user that after replaces, or that is deleted if after is nil
	after    *store.User // for the condition about the last owner

	apply func() error // nil: no work; if it fails, nothing was changed
	ended []string     // set by apply: the ended sessions
	left  int          // set by apply, if codes is: the recovery codes left
	codes bool         // the change uses a recovery code

	addedBy int64                   // Origin.AddedBy of the change's additions
	origins map[string]store.Origin // by user: the Origin of the change's additions

	other *store.Client // of OutcomeReplayed

	tells *store.NewDevice // of OutcomeNewDevice
}

// change runs every mutating method. Under the mutex it plans the effect, checks the
// change's conditions, applies the effect, and records the change's events and messages.
func (s *Store) change(ctx context.Context, c *store.Change, plan func() (*effect, error)) error {
	if err := c.Check(); err != nil {
		return err
	}
	c.Now = utc(c.Now)
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	e, err := s.checkChange(c, plan)
	if err != nil {
		return err
	}
	if e.about != "" {
		e.addedBy = s.addedBy(c.By, e.about, e.uses)
	}
	if e.apply != nil {
		if err := e.apply(); err != nil {
			return err
		}
	}
	if !e.noChange {
		s.record(c, e)
	}
	return e.refusal
}

// checkChange checks all conditions, in the order of store.Change. The caller holds the mutex
// until the effect is applied.
func (s *Store) checkChange(c *store.Change, plan func() (*effect, error)) (*effect, error) {
	if err := s.authority(c.By, c.Now); err != nil {
		return nil, err
	}
	e, planErr := plan()
	if planErr == nil && e.outcome == store.OutcomeWrongCode {
		return e, nil // counted, even if another condition does not hold
	}
	if err := s.repeated(c.Idempotency, c.Now); err != nil {
		return nil, err
	}
	if planErr != nil {
		return nil, planErr
	}
	if e.refusal != nil {
		return e, nil
	}
	for _, at := range c.IfUsers {
		if !s.stillSo(at, e.uses, c.Now) {
			return nil, store.ErrStale
		}
	}
	if c.IfRoles != nil && *c.IfRoles != s.rolesRevision {
		return nil, store.ErrStale
	}
	if c.IfKey != nil && !s.keyLives(*c.IfKey, c.Now) {
		return nil, store.ErrStale
	}
	if c.KeepOwner && !s.ownerAfter(e, c.Now) {
		return nil, store.ErrLastOwner
	}
	if c.FirstOwner && s.owned {
		return nil, store.ErrOwned
	}
	return e, nil
}

// origin returns the Origin of a change's additions to a user. It raises the user's
// sequence once.
func (e *effect) origin(u *user) store.Origin {
	o, raised := e.origins[u.ID]
	if !raised {
		u.Sequence++
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
func (s *Store) addedBy(by store.Authority, userID string, redeems *store.Token) int64 {
	if by.Session != nil && by.Session.UserID == userID {
		return s.sessions[by.Session.ID].Sequence
	}
	if by.Token != nil {
		redeems = s.tokens[refID(*by.Token)]
	}
	if redeems != nil && redeems.Purpose == store.PurposeEnroll && redeems.UserID == userID {
		return redeems.Sequence
	}
	return 0
}

// authority checks that the authority of a change is live and its user not banned.
func (s *Store) authority(by store.Authority, now time.Time) error {
	var owner string
	switch {
	case by.Session != nil:
		sess := s.sessions[by.Session.ID]
		if sess == nil || sess.UserID != by.Session.UserID || !sess.liveAt(now) {
			return store.ErrSessionEnded
		}
		owner = sess.UserID
	case by.Token != nil:
		t := s.liveToken(refID(*by.Token), now)
		if t == nil {
			return store.ErrNotFound
		}
		owner = t.UserID
	case by.Key != nil:
		if !s.keyLives(*by.Key, now) {
			return store.ErrKeyEnded
		}
	}
	if u := s.users[owner]; u != nil && u.Banned(now) {
		return store.ErrBanned
	}
	return nil
}

// keyLives reports whether an API key is live and unchanged.
func (s *Store) keyLives(ref store.KeyRef, now time.Time) bool {
	k := s.keys[ref.ID]
	return k != nil && k.Revision == ref.Revision && k.Live(now)
}

// repeated checks whether a change was made before under its idempotency key.
func (s *Store) repeated(i *store.Idempotency, now time.Time) error {
	if i == nil {
		return nil
	}
	done, ok := s.done[changeKey{i.Actor, i.Route, i.Key}]
	if !ok || !now.Before(done.ExpiresAt) {
		return nil
	}
	return &store.RepeatedError{Same: bytes.Equal(done.RequestHash, i.RequestHash), Result: slices.Clone(done.Result)}
}

// stillSo reports whether all of at holds; uses is the token that the call uses up.
func (s *Store) stillSo(at store.UserAt, uses *store.Token, now time.Time) bool {
	id := at.ID
	if id == "" && uses != nil {
		id = uses.UserID
	}
	u := s.users[id]
	return u != nil &&
		is(at.Revision, u.Revision) && is(at.CredentialRevision, u.CredentialRevision) && is(at.PasswordHash, u.hash) &&
		(at.Email == nil || store.EmailKey(*at.Email) == store.EmailKey(u.Email)) && is(at.EmailVerified, u.EmailVerified()) &&
		is(at.Phone, u.Phone) && is(at.PhoneVerified, u.PhoneVerified()) && is(at.Banned, u.Banned(now))
}

func is[T comparable](want *T, got T) bool { return want == nil || *want == got }

// ownerAfter reports whether an unbanned owner is left after an effect.
func (s *Store) ownerAfter(e *effect, now time.Time) bool {
	owns := func(u *store.User) bool {
		return !u.Banned(now) && u.Accepted(now) && slices.Contains(u.Roles, store.RoleOwner)
	}
	if e.after != nil && owns(e.after) {
		return true
	}
	for id, u := range s.users {
		if id != e.replaces && owns(&u.User) {
			return true
		}
	}
	return false
}

// record stores the events and messages of a change. Messages and the idempotency key
// belong to OutcomeDone; each event belongs to the outcome that it names.
func (s *Store) record(c *store.Change, e *effect) {
	for _, o := range c.Events {
		switch {
		case o.On == e.outcome && o.Event.Record != nil && len(e.ended) > 0:
			s.addEvent(o.Event, e, e.ended)
		case o.On == e.outcome:
			s.addEvent(o.Event, e, nil)
		case o.On == store.OutcomeSessionsEnded && e.outcome == store.OutcomeDone && len(e.ended) > 0:
			s.addEvent(o.Event, e, e.ended)
		case o.On == store.OutcomeNewDevice && e.tells != nil:
			s.addEvent(o.Event, e, nil)
		}
	}
	if e.outcome != store.OutcomeDone {
		return
	}
	for _, m := range c.Messages {
		s.addMessage(m)
	}
	if e.tells != nil {
		for _, t := range e.tells.Tokens {
			s.addToken(t, e)
		}
		for _, m := range e.tells.Messages {
			s.addMessage(m)
		}
	}
	if i := c.Idempotency; i != nil {
		kept := *i
		kept.RequestHash, kept.Result = slices.Clone(i.RequestHash), slices.Clone(i.Result)
		s.done[changeKey{i.Actor, i.Route, i.Key}] = &kept
	}
}
