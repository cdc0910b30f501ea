package memstore_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// prepared returns a store with a user, an owner, a live and a revoked session, a token, a
// code, a role and a key.
func prepared(t *testing.T) *memstore.Store {
	t.Helper()
	ctx, s := t.Context(), withUser(t, store.User{Email: "ada@example.com", Roles: []string{store.RoleOwner}, BannedUntil: now})
	for _, id := range []string{sessionID, endedID} {
		_, err := s.CreateSession(ctx, store.CreateSession{Change: system(now), NewSession: store.NewSession{Session: newSession(id)}})
		ok(t, err)
	}
	_, err := s.RevokeSessions(ctx, store.RevokeSessions{Change: system(now), UserID: userID, Filter: store.SessionFilter{ID: endedID}})
	ok(t, err)
	for _, token := range []store.Token{
		{Purpose: store.PurposeReset, Hash: hash(1), UserID: userID},
		{Purpose: store.PurposePhoneCode, Hash: hash(2), UserID: userID, Subject: "s", MaxTries: 2},
		{Purpose: store.PurposeMagicLink, Hash: hash(3)},
	} {
		token.CreatedAt, token.ExpiresAt = now, now.Add(time.Hour)
		ok(t, s.PutToken(ctx, store.PutToken{Change: system(now), Token: token}))
	}
	_, err = s.PutKey(ctx, store.PutKey{Change: system(now), Key: store.APIKey{ID: "k", Hash: hash(4), ExpiresAt: now.Add(time.Hour)}})
	ok(t, err)
	_, err = s.PutRole(ctx, store.PutRole{Change: system(now), Role: store.RolePermissions{Name: "r"}})
	ok(t, err)
	return s
}

// Each condition that fails refuses the change with its error, and the first in the
// contract's order wins.
func TestConditions(t *testing.T) {
	session := func(id string) store.Authority {
		return store.Authority{Session: &store.SessionRef{ID: id, UserID: userID}}
	}
	token := func(b byte) store.Authority {
		return store.Authority{Token: &store.TokenRef{Purpose: store.PurposeReset, Hash: hash(b)}}
	}
	key := func(id string, revision int64) store.Authority {
		return store.Authority{Key: &store.KeyRef{ID: id, Revision: revision}}
	}
	at := func(u store.UserAt) []store.UserAt { return []store.UserAt{{ID: userID}, u} }
	stale := at(store.UserAt{ID: userID, Revision: ptr(int64(7))})
	for name, c := range map[string]struct {
		change store.Change
		want   error
	}{
		"no time":                       {store.Change{By: store.Authority{System: "x"}}, store.ErrInvalidChange},
		"no authority":                  {store.Change{Now: now}, store.ErrInvalidChange},
		"two authorities":               {store.Change{Now: now, By: store.Authority{System: "x", Proof: true}}, store.ErrInvalidChange},
		"proof":                         {store.Change{By: store.Authority{Proof: true}}, nil},
		"session":                       {store.Change{By: session(sessionID)}, nil},
		"ended session":                 {store.Change{By: session(endedID)}, store.ErrSessionEnded},
		"unknown session":               {store.Change{By: session(userID)}, store.ErrSessionEnded},
		"session at its end":            {store.Change{Now: now.Add(time.Hour), By: session(sessionID)}, store.ErrSessionEnded},
		"session of another":            {store.Change{By: store.Authority{Session: &store.SessionRef{ID: sessionID, UserID: "other"}}}, store.ErrSessionEnded},
		"banned":                        {store.Change{Now: now.Add(-1), By: session(sessionID)}, store.ErrBanned},
		"token":                         {store.Change{By: token(1)}, nil},
		"unknown token":                 {store.Change{By: token(9)}, store.ErrNotFound},
		"expired token":                 {store.Change{Now: now.Add(time.Hour), By: token(1)}, store.ErrNotFound},
		"banned by token":               {store.Change{Now: now.Add(-1), By: token(1)}, store.ErrBanned},
		"key":                           {store.Change{By: key("k", 0)}, nil},
		"changed key":                   {store.Change{By: key("k", 1)}, store.ErrKeyEnded},
		"unknown key":                   {store.Change{By: key("x", 0)}, store.ErrKeyEnded},
		"expired key":                   {store.Change{Now: now.Add(time.Hour), By: key("k", 0)}, store.ErrKeyEnded},
		"as it was":                     {store.Change{IfUsers: at(store.UserAt{ID: userID, Revision: ptr(int64(0)), CredentialRevision: ptr(int64(0))})}, nil},
		"revision":                      {store.Change{IfUsers: stale}, store.ErrStale},
		"credential revision":           {store.Change{IfUsers: at(store.UserAt{ID: userID, CredentialRevision: ptr(int64(1))})}, store.ErrStale},
		"password":                      {store.Change{IfUsers: at(store.UserAt{ID: userID, PasswordHash: ptr("")})}, store.ErrStale},
		"same address":                  {store.Change{IfUsers: at(store.UserAt{ID: userID, Email: ptr("ADA@example.com")})}, nil},
		"no address":                    {store.Change{IfUsers: at(store.UserAt{ID: userID, Email: ptr("")})}, store.ErrStale},
		"verified":                      {store.Change{IfUsers: at(store.UserAt{ID: userID, EmailVerified: ptr(true)})}, store.ErrStale},
		"number":                        {store.Change{IfUsers: at(store.UserAt{ID: userID, Phone: ptr("+1")})}, store.ErrStale},
		"verified number":               {store.Change{IfUsers: at(store.UserAt{ID: userID, PhoneVerified: ptr(true)})}, store.ErrStale},
		"user who is gone":              {store.Change{IfUsers: at(store.UserAt{ID: "gone"})}, store.ErrStale},
		"user of no token":              {store.Change{IfUsers: at(store.UserAt{})}, store.ErrStale},
		"roles":                         {store.Change{IfRoles: ptr(int64(1))}, nil},
		"other roles":                   {store.Change{IfRoles: ptr(int64(0))}, store.ErrStale},
		"last owner":                    {store.Change{KeepOwner: true}, store.ErrLastOwner},
		"authority before staleness":    {store.Change{By: session(endedID), IfUsers: stale}, store.ErrSessionEnded},
		"staleness before the owner":    {store.Change{IfUsers: stale, KeepOwner: true}, store.ErrStale},
		"invalid before all the others": {store.Change{Now: now, By: store.Authority{Session: &store.SessionRef{}, Proof: true}, IfUsers: stale}, store.ErrInvalidChange},
	} {
		t.Run(name, func(t *testing.T) {
			s, change := prepared(t), c.change
			if !errors.Is(c.want, store.ErrInvalidChange) {
				if change.Now.IsZero() {
					change.Now = now
				}
				if change.By == (store.Authority{}) {
					change.By.System = "test"
				}
			}
			change.Events = []store.OutcomeEvent{event(store.OutcomeDone, 1, now)}
			change.Messages = []store.SealedMessage{{ID: "m", ExpiresAt: now.Add(time.Hour).In(time.FixedZone("east", 3600))}}
			change.Idempotency = &store.Idempotency{Key: "k", ExpiresAt: now.Add(2 * time.Hour)}
			before, err := s.User(t.Context(), store.ByID(userID))
			ok(t, err)
			_, err = s.UpdateUser(t.Context(), store.UpdateUser{Change: change, UserID: userID, Patch: store.UserPatch{Roles: &[]string{}}})
			is(t, err, c.want)
			after, err := s.User(t.Context(), store.ByID(userID))
			ok(t, err)
			events, err := s.Events(t.Context(), store.EventQuery{UserID: userID})
			ok(t, err)
			messages, err := s.ClaimMessages(t.Context(), store.ClaimMessages{Now: now, Until: now.Add(1), Limit: 9})
			ok(t, err)
			for _, m := range messages {
				if m.ExpiresAt.Location() != time.UTC {
					t.Errorf("it ends at %v, which is not in UTC", m.ExpiresAt)
				}
			}
			again := system(now)
			again.Idempotency = change.Idempotency
			_, err = s.UpdateUser(t.Context(), store.UpdateUser{Change: again, UserID: userID})
			if c.want == nil {
				is(t, err, store.ErrRepeated)
			} else {
				ok(t, err)
			}
			if done := c.want == nil; done == reflect.DeepEqual(before, after) || done != (len(events) == 1) || done != (len(messages) == 1) {
				t.Errorf("%+v, %d events, %d messages", after, len(events), len(messages))
			}
		})
	}
}

// The token that a call uses up determines the user if the id is empty; the authority's
// token does not.
func TestEmptyIDMeansTheTokensUser(t *testing.T) {
	for name, c := range map[string]struct {
		purpose store.Purpose
		hash    []byte
		at      store.UserAt
		want    error
	}{
		"still so":      {store.PurposeReset, hash(1), store.UserAt{Revision: ptr(int64(0))}, nil},
		"stale":         {store.PurposeReset, hash(1), store.UserAt{Revision: ptr(int64(1))}, store.ErrStale},
		"no user":       {store.PurposeMagicLink, hash(3), store.UserAt{}, store.ErrStale},
		"dead token":    {store.PurposeReset, hash(9), store.UserAt{Revision: ptr(int64(1))}, store.ErrNotFound},
		"other purpose": {store.PurposeMagicLink, hash(1), store.UserAt{}, store.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			s, change := prepared(t), store.Change{Now: now, By: store.Authority{Proof: true}, IfUsers: []store.UserAt{c.at}}
			_, _, err := s.RedeemToken(t.Context(), store.Redemption{Change: change, Purpose: c.purpose, Hash: c.hash})
			is(t, err, c.want)
			if _, err := s.PeekToken(t.Context(), c.purpose, c.hash, now); errors.Is(c.want, store.ErrStale) != (err == nil) {
				t.Errorf("the token afterwards: %v", err)
			}
		})
	}
}

// A wrong attempt counts even if the conditions do not hold, unless the caller may not act
// at all.
func TestGuessesCount(t *testing.T) {
	repeated := &store.Idempotency{Key: "k", ExpiresAt: now.Add(time.Hour)}
	for name, c := range map[string]struct {
		change  store.Change
		want    error
		counted bool
	}{
		"plain":        {store.Change{}, store.ErrWrongCode, true},
		"stale":        {store.Change{IfUsers: []store.UserAt{{ID: "gone"}}}, store.ErrWrongCode, true},
		"repeated":     {store.Change{Idempotency: repeated}, store.ErrWrongCode, true},
		"last owner":   {store.Change{KeepOwner: true}, store.ErrWrongCode, true},
		"no authority": {store.Change{By: store.Authority{Session: &store.SessionRef{ID: endedID, UserID: userID}}}, store.ErrSessionEnded, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, change := prepared(t), c.change
			first := system(now)
			first.Idempotency = repeated
			_, err := s.UpdateUser(t.Context(), store.UpdateUser{Change: first, UserID: userID})
			ok(t, err)
			change.Now, change.Events = now, []store.OutcomeEvent{event(store.OutcomeDone, 1, now), event(store.OutcomeWrongCode, 2, now)}
			if change.By == (store.Authority{}) {
				change.By.Proof = true
			}
			guess := store.TryCode{Change: change, Purpose: store.PurposePhoneCode, Subject: "s", Hash: hash(9)}
			_, _, err = s.TryCode(t.Context(), guess)
			is(t, err, c.want)
			code, err := s.PeekToken(t.Context(), store.PurposePhoneCode, hash(2), now)
			ok(t, err)
			events, err := s.Events(t.Context(), store.EventQuery{UserID: userID})
			ok(t, err)
			if (code.Tries == 1) != c.counted || (len(events) == 1 && events[0].ID == event(0, 2, now).Event.ID) != c.counted {
				t.Errorf("%d tries, events %+v", code.Tries, events)
			}
		})
	}
}
