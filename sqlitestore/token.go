package sqlitestore

import (
	"bytes"
	"context"
	"crypto/subtle"
	"time"

	"github.com/authmount/auth/store"
)

const selectTokens = `select t.purpose, t.hash, t.subject, coalesce(t.user_id, ''), t.data, t.created_at, t.expires_at, t.max_attempts, t.attempts, t.code, t.code_expires_at, t.sequence, t.added_by from auth_tokens t`

func scanToken(scan row) (k store.Token) {
	scan(&k.Purpose, &k.Hash, &k.Subject, &k.UserID, &k.Data, at{&k.CreatedAt}, at{&k.ExpiresAt}, &k.MaxAttempts, &k.Attempts, &k.Code, at{&k.CodeExpiresAt}, &k.Sequence, &k.AddedBy)
	return k
}

// token returns nil for an unknown token.
func (t *tx) token(p store.Purpose, hash []byte) *store.Token {
	return first(t, scanToken, selectTokens+` where t.purpose = ? and t.hash = ?`, p, blob(hash))
}

// liveToken returns nil for an unknown or expired token.
func (t *tx) liveToken(ref store.TokenRef, now time.Time) *store.Token {
	return first(t, scanToken, selectTokens+` where t.purpose = ? and t.hash = ? and t.expires_at > ?`, ref.Purpose, blob(ref.Hash), micros(now))
}

// liveAbout returns the live token of a purpose and subject; nil if there is none.
func (t *tx) liveAbout(p store.Purpose, subject string, now time.Time) *store.Token {
	return first(t, scanToken, selectTokens+` where t.purpose = ? and t.subject = ? and t.subject <> '' and t.expires_at > ?`, p, subject, micros(now))
}

// PutToken stores a token and deletes an older one of the same purpose and subject.
func (s *Store) PutToken(ctx context.Context, c store.PutToken) error {
	return s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		if c.Token.UserID != "" && !t.exists(`select 1 from auth_users where id = ?`, c.Token.UserID) {
			return nil, store.ErrNotFound
		}
		live := t.liveAbout(c.Token.Purpose, c.Token.Subject, c.Now)
		if c.Supersedes != nil && !bytes.Equal(hashOf(live), *c.Supersedes) {
			return nil, store.ErrStale
		}
		if older := t.token(c.Token.Purpose, c.Token.Hash); older != nil && (c.Token.Subject == "" || older.Subject != c.Token.Subject) {
			return nil, &store.ConflictError{Field: "token"}
		}
		e := &effect{about: c.Token.UserID}
		e.apply = func() error {
			if !c.Yields || live == nil {
				t.addToken(c.Token, e)
			}
			return nil
		}
		return e, nil
	})
}

func hashOf(k *store.Token) []byte {
	if k == nil {
		return nil
	}
	return k.Hash
}

// addToken stores a token of a change with its Origin, in place of one with its hash or
// subject.
func (t *tx) addToken(k store.Token, e *effect) {
	k.Origin = store.Origin{}
	if u := t.user(k.UserID); k.UserID != "" && u != nil {
		k.Sequence = u.Sequence
		if k.Purpose == store.PurposeEnroll {
			k.Origin = t.origin(e, u)
		}
	}
	t.dropToken(&k)
	t.exec(`delete from auth_tokens where purpose = ? and subject = ? and subject <> ''`, k.Purpose, k.Subject)
	t.exec(`insert into auth_tokens (purpose, hash, subject, user_id, data, created_at, expires_at, max_attempts, attempts, code, code_expires_at, sequence, added_by)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		k.Purpose, blob(k.Hash), k.Subject, orNull(k.UserID), blob(k.Data), micros(k.CreatedAt), micros(k.ExpiresAt), k.MaxAttempts, k.Attempts, bytesOrNull(k.Code), maybe(k.CodeExpiresAt), k.Sequence, k.AddedBy)
}

func (t *tx) dropToken(k *store.Token) {
	t.exec(`delete from auth_tokens where purpose = ? and hash = ?`, k.Purpose, blob(k.Hash))
}

// dropTokens deletes a user's tokens of some purposes.
func (t *tx) dropTokens(userID string, purposes []store.Purpose) {
	for _, p := range purposes {
		t.exec(`delete from auth_tokens where user_id = ? and purpose = ?`, userID, p)
	}
}

// PeekToken reads a live token.
func (s *Store) PeekToken(ctx context.Context, p store.Purpose, hash []byte, now time.Time) (found store.Token, err error) {
	err = s.read(ctx, func(t *tx) error {
		k := t.liveToken(store.TokenRef{Purpose: p, Hash: hash}, now)
		if k == nil {
			return store.ErrNotFound
		}
		found = *k
		return nil
	})
	return found, err
}

// RedeemToken uses a token up together with its effect.
func (s *Store) RedeemToken(ctx context.Context, c store.Redemption) (used store.Token, owner store.User, err error) {
	err = s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		k := t.liveToken(store.TokenRef{Purpose: c.Purpose, Hash: c.Hash}, c.Now)
		if k == nil {
			return nil, store.ErrNotFound
		}
		used = *k
		return t.planUse(s, &c.Change, k, c.Effect, &owner)
	})
	if err != nil {
		return store.Token{}, store.User{}, err
	}
	return used, owner, nil
}

// RedeemCode checks an attempt at a code and counts it.
func (s *Store) RedeemCode(ctx context.Context, c store.CodeAttempt) (used store.Token, owner store.User, err error) {
	err = s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		k := t.liveAbout(c.Purpose, c.Subject, c.Now)
		if k == nil {
			return nil, store.ErrNotFound
		}
		hash, live := k.CodeHash(c.Now)
		switch {
		case !live:
			return nil, store.ErrNotFound
		case k.Attempts >= k.MaxAttempts:
			return nil, store.ErrTooManyAttempts
		case subtle.ConstantTimeCompare(hash, c.Hash) != 1:
			return &effect{about: userOf(k, c.Effect), outcome: store.OutcomeWrongCode, refusal: store.ErrWrongCode, apply: func() error {
				t.exec(`update auth_tokens set attempts = attempts + 1 where purpose = ? and hash = ?`, k.Purpose, k.Hash)
				return nil
			}}, nil
		}
		used = *k
		return t.planUse(s, &c.Change, k, c.Effect, &owner)
	})
	if err != nil {
		return store.Token{}, store.User{}, err
	}
	return used, owner, nil
}

// userOf returns the id of the user that the use of a token affects, or "".
func userOf(k *store.Token, do store.Effect) string {
	switch {
	case do.Create != nil:
		return do.Create.User.ID
	case do.UserID != "":
		return do.UserID
	}
	return k.UserID
}

// planUse plans to use a token up together with its effect, which sets owner.
func (t *tx) planUse(s *Store, c *store.Change, k *store.Token, do store.Effect, owner *store.User) (e *effect, err error) {
	switch id := userOf(k, do); {
	case do.Create != nil:
		e, err = t.planCreate(s, *do.Create, owner)
	case id != "":
		e, err = t.planUpdate(c, id, do.Patch, k, owner)
	default:
		e = &effect{}
	}
	if err != nil {
		return nil, err
	}
	e.uses = k
	inner := e.apply
	e.apply = func() error {
		t.dropToken(k)
		if inner != nil {
			return inner()
		}
		return nil
	}
	return e, nil
}
