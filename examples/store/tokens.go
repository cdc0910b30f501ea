package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"maps"
	"time"

	"github.com/authmount/auth/store"
)

// ---- 3. Tokens ----

// PutToken stores a token and replaces an older one about the same subject.
func (s *Store) PutToken(ctx context.Context, c store.PutToken) error {
	_, err := change(ctx, s, &c.Change, func(t *tx) (any, error) {
		if err := t.known(c.Token.UserID); err != nil {
			return nil, err
		}
		if c.Supersedes != nil && !bytes.Equal(t.liveHash(c.Token.Purpose, c.Token.Subject, c.Now), *c.Supersedes) {
			return nil, store.ErrStale
		}
		if c.Yields && t.liveHash(c.Token.Purpose, c.Token.Subject, c.Now) != nil {
			return nil, nil
		}
		if older, ok := t.tokens[keyOf(c.Token.Purpose, c.Token.Hash)]; ok && (c.Token.Subject == "" || older.Subject != c.Token.Subject) {
			return nil, &store.ConflictError{Field: "token"}
		}
		return nil, t.addToken(c.Token)
	})
	return err
}

// liveHash returns the hash of the live token about a subject, or nil.
func (db *tables) liveHash(p store.Purpose, subject string, now time.Time) []byte {
	for _, token := range db.tokens {
		if subject != "" && token.Purpose == p && token.Subject == subject && now.Before(token.ExpiresAt) {
			return token.Hash
		}
	}
	return nil
}

// known reports whether a token's user exists; a token may have no user.
func (t *tx) known(id string) error {
	if _, ok := t.users[id]; !ok && id != "" {
		return store.ErrNotFound
	}
	return nil
}

func (t *tx) addToken(token store.Token) error {
	if err := t.known(token.UserID); err != nil {
		return err
	}
	maps.DeleteFunc(t.tokens, func(_ tokenKey, older store.Token) bool {
		return token.Subject != "" && older.Subject == token.Subject && older.Purpose == token.Purpose
	})
	utc(&token.CreatedAt, &token.ExpiresAt, &token.CodeExpiresAt)
	token.Origin = store.Origin{}
	switch {
	case token.UserID == "":
	case token.Purpose == store.PurposeEnroll:
		token.Origin = t.origin(token.UserID)
	default:
		token.Sequence = t.users[token.UserID].User.Sequence
	}
	t.tokens[keyOf(token.Purpose, token.Hash)] = clone(token)
	return nil
}

func keyOf(p store.Purpose, hash []byte) tokenKey { return tokenKey{string(p), string(hash)} }

func (db *tables) liveToken(p store.Purpose, hash []byte, now time.Time) (store.Token, error) {
	token, ok := db.tokens[keyOf(p, hash)]
	if !ok || !now.Before(token.ExpiresAt) {
		return store.Token{}, store.ErrNotFound
	}
	return token, nil
}

// PeekToken reads a live token.
func (s *Store) PeekToken(ctx context.Context, p store.Purpose, hash []byte, now time.Time) (store.Token, error) {
	return read(ctx, s, func(db *tables) (store.Token, error) { return db.liveToken(p, hash, now) })
}

// RedeemToken uses a token up together with its effect.
func (s *Store) RedeemToken(ctx context.Context, c store.Redemption) (store.Token, store.User, error) {
	out, err := change(ctx, s, &c.Change, func(t *tx) (pair[store.Token], error) {
		token, err := t.liveToken(c.Purpose, c.Hash, c.Now)
		if err != nil {
			return pair[store.Token]{}, err
		}
		return t.use(ctx, token, c.Effect, c.Now)
	})
	return out.Of, out.User, err
}

// RedeemCode checks a code and counts the attempt.
func (s *Store) RedeemCode(ctx context.Context, c store.CodeAttempt) (store.Token, store.User, error) {
	out, err := change(ctx, s, &c.Change, func(t *tx) (none pair[store.Token], err error) {
		for key, code := range t.tokens {
			hash, live := code.CodeHash(c.Now)
			switch {
			case c.Subject == "" || code.Purpose != c.Purpose || code.Subject != c.Subject || !live:
				continue
			case code.Attempts >= code.MaxAttempts:
				return none, store.ErrTooManyAttempts // also for the correct code
			case subtle.ConstantTimeCompare(hash, c.Hash) != 1:
				code.Attempts++
				t.tokens[key], t.outcome = code, store.OutcomeWrongCode
				return none, store.ErrWrongCode
			}
			return t.use(ctx, code, c.Effect, c.Now)
		}
		return none, store.ErrNotFound
	})
	return out.Of, out.User, err
}

// use removes a token and applies its effect. If the effect is rejected, the whole change
// is, and the token stays valid.
func (t *tx) use(ctx context.Context, token store.Token, e store.Effect, now time.Time) (out pair[store.Token], err error) {
	t.token, out.Of = &token, token
	delete(t.tokens, keyOf(token.Purpose, token.Hash))
	if id := cmp.Or(e.UserID, token.UserID); e.Create != nil {
		out.User, err = t.create(ctx, *e.Create)
	} else if id != "" {
		out.User, err = t.update(id, e.Patch, now)
	}
	return out, err
}
