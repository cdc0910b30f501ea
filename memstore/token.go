package memstore

import (
	"context"
	"crypto/subtle"
	"time"

	"github.com/authmount/auth"
)

// PutToken keeps a token in place of an older one about the same.
func (s *Store) PutToken(ctx context.Context, t auth.Token) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if t.UserID != "" && s.users[t.UserID] == nil {
		return auth.ErrNotFound
	}
	s.addToken(t)
	return nil
}

func (s *Store) addToken(t auth.Token) {
	about := subject{t.Purpose, t.Subject}
	if t.Subject != "" {
		if older, ok := s.live[about]; ok {
			s.dropToken(older)
		}
	}
	id := tokenID{t.Purpose, string(t.Hash)}
	kept := copyToken(t)
	s.tokens[id] = &kept
	if t.Subject != "" {
		s.live[about] = id
	}
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

// liveToken answers nil for a token that is unknown or over.
func (s *Store) liveToken(id tokenID, now time.Time) *auth.Token {
	t := s.tokens[id]
	if t == nil || !now.Before(t.ExpiresAt) {
		return nil
	}
	return t
}

// PeekToken reads a live token.
func (s *Store) PeekToken(ctx context.Context, p auth.Purpose, hash []byte, now time.Time) (auth.Token, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return auth.Token{}, err
	}
	defer unlock()
	t := s.liveToken(tokenID{p, string(hash)}, now)
	if t == nil {
		return auth.Token{}, auth.ErrNotFound
	}
	return copyToken(*t), nil
}

// RedeemToken uses a token up together with its effect.
func (s *Store) RedeemToken(ctx context.Context, r auth.Redemption) (auth.Token, auth.User, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return auth.Token{}, auth.User{}, err
	}
	defer unlock()
	id := tokenID{r.Purpose, string(r.Hash)}
	t := s.liveToken(id, r.Now)
	if t == nil {
		return auth.Token{}, auth.User{}, auth.ErrNotFound
	}
	u, err := s.effect(ctx, t, r)
	if err != nil {
		return auth.Token{}, auth.User{}, err
	}
	used := copyToken(*t)
	s.dropToken(id)
	return used, u, nil
}

// effect applies what a redemption does besides using the token up.
func (s *Store) effect(ctx context.Context, t *auth.Token, r auth.Redemption) (auth.User, error) {
	id := r.UserID
	if id == "" {
		id = t.UserID
	}
	switch {
	case r.Create != nil:
		return s.createUser(ctx, *r.Create)
	case id == "":
		return auth.User{}, nil
	case r.Patch != nil && !r.Patch.Empty():
		return s.updateUser(id, *r.Patch, r.Now)
	}
	u := s.users[id]
	if u == nil {
		return auth.User{}, auth.ErrNotFound
	}
	return copyUser(u.User), nil
}

// TryCode judges a guess and counts it.
func (s *Store) TryCode(ctx context.Context, p auth.Purpose, subj string, hash []byte, now time.Time) (auth.Token, auth.User, error) {
	none := func(err error) (auth.Token, auth.User, error) { return auth.Token{}, auth.User{}, err }
	unlock, err := s.lock(ctx)
	if err != nil {
		return none(err)
	}
	defer unlock()
	id, ok := s.live[subject{p, subj}]
	if !ok {
		return none(auth.ErrNotFound)
	}
	t := s.liveToken(id, now)
	switch {
	case t == nil:
		return none(auth.ErrNotFound)
	case t.Tries >= t.MaxTries:
		return none(auth.ErrTooManyTries)
	case subtle.ConstantTimeCompare(t.Hash, hash) != 1:
		t.Tries++
		return none(auth.ErrWrongCode)
	}
	used := copyToken(*t)
	s.dropToken(id)
	var owner auth.User
	if u := s.users[used.UserID]; u != nil {
		owner = copyUser(u.User)
	}
	return used, owner, nil
}
