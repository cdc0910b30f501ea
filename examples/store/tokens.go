package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"maps"
	"time"

	"github.com/authmount/auth"
)

// ---- 3. Tokens ----

// PutToken keeps a token in place of an older one about the same.
func (s *Store) PutToken(ctx context.Context, c auth.PutToken) error {
	_, err := change(ctx, s, &c.Change, func(t *tx) (any, error) {
		if c.Supersedes != nil && !bytes.Equal(t.liveHash(c.Token.Purpose, c.Token.Subject, c.Now), *c.Supersedes) {
			return nil, auth.ErrStale
		}
		if c.Yields && t.liveHash(c.Token.Purpose, c.Token.Subject, c.Now) != nil {
			return nil, t.known(c.Token.UserID)
		}
		return nil, t.addToken(c.Token)
	})
	return err
}

// liveHash is of the live token about something; nil: there is none.
func (db *tables) liveHash(p auth.Purpose, subject string, now time.Time) []byte {
	for _, token := range db.tokens {
		if subject != "" && token.Purpose == p && token.Subject == subject && now.Before(token.ExpiresAt) {
			return token.Hash
		}
	}
	return nil
}

// known tells whether the user of a token is one; a token may be nobody's.
func (t *tx) known(id string) error {
	if _, ok := t.users[id]; !ok && id != "" {
		return auth.ErrNotFound
	}
	return nil
}

func (t *tx) addToken(token auth.Token) error {
	if err := t.known(token.UserID); err != nil {
		return err
	}
	maps.DeleteFunc(t.tokens, func(_ tokenKey, older auth.Token) bool {
		return token.Subject != "" && older.Subject == token.Subject && older.Purpose == token.Purpose
	})
	t.tokens[keyOf(token.Purpose, token.Hash)] = clone(token)
	return nil
}

func keyOf(p auth.Purpose, hash []byte) tokenKey { return tokenKey{string(p), string(hash)} }

func (db *tables) liveToken(p auth.Purpose, hash []byte, now time.Time) (auth.Token, error) {
	token, ok := db.tokens[keyOf(p, hash)]
	if !ok || !now.Before(token.ExpiresAt) {
		return auth.Token{}, auth.ErrNotFound
	}
	return token, nil
}

// PeekToken reads a live token.
func (s *Store) PeekToken(ctx context.Context, p auth.Purpose, hash []byte, now time.Time) (auth.Token, error) {
	return read(ctx, s, func(db *tables) (auth.Token, error) { return db.liveToken(p, hash, now) })
}

// RedeemToken uses a token up together with its effect.
func (s *Store) RedeemToken(ctx context.Context, c auth.Redemption) (auth.Token, auth.User, error) {
	out, err := change(ctx, s, &c.Change, func(t *tx) (pair[auth.Token], error) {
		token, err := t.liveToken(c.Purpose, c.Hash, c.Now)
		if err != nil {
			return pair[auth.Token]{}, err
		}
		return t.use(ctx, token, c.Effect, c.Now)
	})
	return out.Of, out.User, err
}

// TryCode judges a guess and counts it.
func (s *Store) TryCode(ctx context.Context, c auth.TryCode) (auth.Token, auth.User, error) {
	out, err := change(ctx, s, &c.Change, func(t *tx) (none pair[auth.Token], err error) {
		for key, code := range t.tokens {
			hash, live := code.CodeHash(c.Now)
			switch {
			case c.Subject == "" || code.Purpose != c.Purpose || code.Subject != c.Subject || !live:
				continue
			case code.Tries >= code.MaxTries:
				return none, auth.ErrTooManyTries // the right code is too late, too
			case subtle.ConstantTimeCompare(hash, c.Hash) != 1:
				code.Tries++
				t.tokens[key], t.outcome = code, auth.OutcomeWrongCode
				return none, auth.ErrWrongCode
			}
			return t.use(ctx, code, c.Effect, c.Now)
		}
		return none, auth.ErrNotFound
	})
	return out.Of, out.User, err
}

// use takes a token away and applies its effect. If that is refused the whole
// change is, so the token stays good.
func (t *tx) use(ctx context.Context, token auth.Token, e auth.Effect, now time.Time) (out pair[auth.Token], err error) {
	t.token, out.Of = &token, token
	delete(t.tokens, keyOf(token.Purpose, token.Hash))
	if id := cmp.Or(e.UserID, token.UserID); e.Create != nil {
		out.User, err = t.create(ctx, *e.Create)
	} else if id != "" {
		out.User, err = t.update(id, e.Patch, now)
	}
	return out, err
}
