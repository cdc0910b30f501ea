package memstore

import (
	"bytes"
	"context"
	"crypto/subtle"
	"time"

	"github.com/authmount/auth/store"
)

// PutToken stores a token and deletes an older one of the same purpose and subject.
func (s *Store) PutToken(ctx context.Context, c store.PutToken) error {
	return s.change(ctx, &c.Change, func() (*effect, error) {
		if c.Token.UserID != "" && s.users[c.Token.UserID] == nil {
			return nil, store.ErrNotFound
		}
		if c.Supersedes != nil && !bytes.Equal(s.liveHash(subject{c.Token.Purpose, c.Token.Subject}, c.Now), *c.Supersedes) {
			return nil, store.ErrStale
		}
		if older := s.tokens[tokenID{c.Token.Purpose, string(c.Token.Hash)}]; older != nil && (c.Token.Subject == "" || older.Subject != c.Token.Subject) {
			return nil, &store.ConflictError{Field: "token"}
		}
		e := &effect{about: c.Token.UserID}
		e.apply = func() error {
			if !c.Yields || s.liveHash(subject{c.Token.Purpose, c.Token.Subject}, c.Now) == nil {
				s.addToken(c.Token, e)
			}
			return nil
		}
		return e, nil
	})
}

// liveHash returns the hash of the live token of a purpose and subject; nil if there is
// none.
func (s *Store) liveHash(about subject, now time.Time) []byte {
	id, ok := s.live[about]
	if t := s.liveToken(id, now); ok && t != nil {
		return t.Hash
	}
	return nil
}

// addToken stores a token of a change with its Origin.
func (s *Store) addToken(t store.Token, e *effect) {
	t.Origin = store.Origin{}
	if u := s.users[t.UserID]; u != nil && t.Purpose == store.PurposeEnroll {
		t.Origin = e.origin(u)
	} else if u != nil {
		t.Sequence = u.Sequence
	}
	s.keepToken(t)
}

func (s *Store) keepToken(t store.Token) {
	id, about := tokenID{t.Purpose, string(t.Hash)}, subject{t.Purpose, t.Subject}
	s.dropToken(id)
	if t.Subject != "" {
		if older, ok := s.live[about]; ok {
			s.dropToken(older)
		}
		s.live[about] = id
	}
	kept := copyToken(t)
	s.tokens[id] = &kept
	if t.UserID != "" {
		s.users[t.UserID].tokens[id] = true
	}
}

func (s *Store) dropToken(id tokenID) {
	t := s.tokens[id]
	if t == nil {
		return
	}
	delete(s.tokens, id)
	if about := (subject{t.Purpose, t.Subject}); s.live[about] == id {
		delete(s.live, about)
	}
	if u := s.users[t.UserID]; u != nil {
		delete(u.tokens, id)
	}
}

func refID(r store.TokenRef) tokenID { return tokenID{r.Purpose, string(r.Hash)} }

// liveToken returns nil for an unknown or expired token.
func (s *Store) liveToken(id tokenID, now time.Time) *store.Token {
	t := s.tokens[id]
	if t == nil || !now.Before(t.ExpiresAt) {
		return nil
	}
	return t
}

// PeekToken reads a live token.
func (s *Store) PeekToken(ctx context.Context, p store.Purpose, hash []byte, now time.Time) (store.Token, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return store.Token{}, err
	}
	defer unlock()
	t := s.liveToken(tokenID{p, string(hash)}, now)
	if t == nil {
		return store.Token{}, store.ErrNotFound
	}
	return copyToken(*t), nil
}

// RedeemToken uses a token up together with its effect.
func (s *Store) RedeemToken(ctx context.Context, c store.Redemption) (t store.Token, u store.User, err error) {
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		token := s.liveToken(tokenID{c.Purpose, string(c.Hash)}, c.Now)
		if token == nil {
			return nil, store.ErrNotFound
		}
		return s.planUse(ctx, &c.Change, token, c.Effect, &t, &u)
	})
	return t, u, err
}

// RedeemCode checks an attempt at a code and counts it.
func (s *Store) RedeemCode(ctx context.Context, c store.CodeAttempt) (t store.Token, u store.User, err error) {
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		id, ok := s.live[subject{c.Purpose, c.Subject}]
		code := s.liveToken(id, c.Now)
		if !ok || code == nil {
			return nil, store.ErrNotFound
		}
		hash, live := code.CodeHash(c.Now)
		switch {
		case !live:
			return nil, store.ErrNotFound
		case code.Attempts >= code.MaxAttempts:
			return nil, store.ErrTooManyAttempts
		case subtle.ConstantTimeCompare(hash, c.Hash) != 1:
			return &effect{about: whose(code, c.Effect), outcome: store.OutcomeWrongCode, refusal: store.ErrWrongCode, apply: func() error {
				code.Attempts++
				return nil
			}}, nil
		}
		return s.planUse(ctx, &c.Change, code, c.Effect, &t, &u)
	})
	return t, u, err
}

// whose returns the id of the user that using a token affects, or "".
func whose(t *store.Token, e store.Effect) string {
	switch {
	case e.Create != nil:
		return e.Create.User.ID
	case e.UserID != "":
		return e.UserID
	}
	return t.UserID
}

// planUse plans to use a token up together with its effect. apply sets used and owner.
func (s *Store) planUse(ctx context.Context, c *store.Change, t *store.Token, do store.Effect, used *store.Token, owner *store.User) (*effect, error) {
	e := &effect{}
	if id := whose(t, do); do.Create != nil || id != "" {
		var err error
		if do.Create != nil {
			e, err = s.planCreate(ctx, *do.Create, owner)
		} else {
			e, err = s.planUpdate(c, id, do.Patch, t, owner)
		}
		if err != nil {
			return nil, err
		}
	}
	e.uses = t
	inner := e.apply
	e.apply = func() error {
		if inner != nil {
			if err := inner(); err != nil {
				return err
			}
		}
		*used = copyToken(*t)
		s.dropToken(tokenID{t.Purpose, string(t.Hash)})
		return nil
	}
	return e, nil
}
