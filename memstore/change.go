package memstore

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// effect is what a method means to do to its target. Planning one changes
// nothing; apply does, after every condition was judged.
type effect struct {
	about    string        // the id of the one user it is about; empty: none
	uses     *store.Token  // the token or code that the call itself uses up
	outcome  store.Outcome // OutcomeDone, or one that comes with a refusal
	refusal  error         // what the method returns although it has an effect
	noChange bool          // nothing happens, so nothing is recorded either

	replaces string      // the user who becomes after, or who goes if after is nil
	after    *store.User // for the rule about the last owner

	apply func() error // nil: nothing to do; an error means that nothing was done
	ended []string     // set by apply: the sessions that it ended
	left  int          // set by apply: the recovery codes that are left

	addedBy int64                   // Origin.AddedBy of what the change adds
	origins map[string]store.Origin // by user: the origin of what the change adds
	codes   bool                    // left counts

	other *store.Client // of OutcomeReplayed

	tells *store.NewDevice // of OutcomeNewDevice
}

// change is every mutating method: under the mutex it asks plan what the method
// means to do, judges the change's conditions, applies the effect and records
// what comes with it.
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
	e, err := s.judge(c, plan)
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

// judge is the only place where conditions are judged, in the order that
// store.Change gives. The caller holds the mutex until the effect is applied.
func (s *Store) judge(c *store.Change, plan func() (*effect, error)) (*effect, error) {
	if err := s.authority(c.By, c.Now); err != nil {
		return nil, err
	}
	e, planErr := plan()
	if planErr == nil && e.outcome == store.OutcomeWrongCode {
		return e, nil // counted, whatever else is asked
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

// origin is the Origin of what a change adds to a user, whose sequence it raises once.
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

// addedBy is the sequence of the user's session or enrolment token in whose name a change
// happens, or which it redeems; 0 if there is none.
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

// authority tells whether the one in whose name a change happens may still act.
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

// keyLives tells whether an API key is live, and as it was read.
func (s *Store) keyLives(ref store.KeyRef, now time.Time) bool {
	k := s.keys[ref.ID]
	return k != nil && k.Revision == ref.Revision && k.Live(now)
}

// repeated tells whether a change was made before under its key.
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

// stillSo tells whether all of at holds; uses is the token of this very call.
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

// ownerAfter tells whether an unbanned owner is left after an effect.
func (s *Store) ownerAfter(e *effect, now time.Time) bool {
	owns := func(u *store.User) bool { return !u.Banned(now) && slices.Contains(u.Roles, store.RoleOwner) }
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

// record keeps what comes with a change. Messages and the idempotency key belong
// to a change that was done; events to the outcome that they name.
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
