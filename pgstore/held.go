package pgstore

import (
	"bytes"
	"crypto/subtle"
	"time"

	"github.com/authmount/auth/store"
)

// user returns a locked user, or nil if there is none or it was not locked.
func (h *held) user(id string) *lockedUser {
	id, _ = canonical(id)
	return h.users[id]
}

func (h *held) session(id string) *sessionRow {
	id, _ = canonical(id)
	return h.sessions[id]
}

// liveSession returns a live session and its user. Its errors are those of
// store.Store.Session.
func (h *held) liveSession(id string, now time.Time) (*sessionRow, *lockedUser, error) {
	sess := h.session(id)
	if sess == nil {
		return nil, nil, store.ErrNotFound
	}
	u := h.user(sess.s.UserID)
	switch {
	case u == nil:
		return nil, nil, store.ErrNotFound
	case u.banned(now):
		return nil, nil, store.ErrBanned
	case !sess.liveAt(now):
		return nil, nil, store.ErrSessionEnded
	}
	return sess, u, nil
}

func (h *held) key(id string) *store.APIKey {
	id, _ = canonical(id)
	return h.keys[id]
}

// addedBy returns Origin.AddedBy for a credential that a change adds to a user. That is
// the sequence of the user's session or enrolment token that authorises the change or
// is redeemed by it, or 0.
func (h *held) addedBy(by *store.Authority, userID string, redeems *store.Token) int64 {
	userID, _ = canonical(userID)
	if by.Session != nil {
		if sess := h.session(by.Session.ID); sess != nil && sess.s.UserID == userID {
			return sess.s.Sequence
		}
	}
	if by.Token != nil {
		redeems = h.anyToken(*by.Token)
	}
	if redeems != nil && redeems.Purpose == store.PurposeEnroll && redeems.UserID == userID {
		return redeems.Sequence
	}
	return 0
}

// anyToken returns a token, live or expired, or nil.
func (h *held) anyToken(ref store.TokenRef) *store.Token {
	for i := range h.tokens {
		if t := &h.tokens[i]; t.Purpose == ref.Purpose && bytes.Equal(t.Hash, ref.Hash) {
			return t
		}
	}
	return nil
}

// token returns a live token, or nil.
func (h *held) token(ref store.TokenRef, now time.Time) *store.Token {
	if t := h.anyToken(ref); t != nil && now.Before(t.ExpiresAt) {
		return t
	}
	return nil
}

// guessIsWrong reports whether the change is an attempt with a wrong code.
func (h *held) guessIsWrong(on target, now time.Time) bool {
	if on.code == nil {
		return false
	}
	_, err := h.liveCode(on.code, now)
	return err == store.ErrWrongCode //nolint:errorlint // made right here
}

// liveCode returns the code if the attempt is correct. Its errors are those of
// store.Store.RedeemCode.
func (h *held) liveCode(g *guess, now time.Time) (*store.Token, error) {
	if h.code == nil {
		return nil, store.ErrNotFound
	}
	hash, live := h.code.CodeHash(now)
	switch {
	case !live:
		return nil, store.ErrNotFound
	case h.code.Attempts >= h.code.MaxAttempts:
		return nil, store.ErrTooManyAttempts
	case subtle.ConstantTimeCompare(hash, g.hash) != 1:
		return h.code, store.ErrWrongCode
	}
	return h.code, nil
}
