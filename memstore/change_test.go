package memstore_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/memstore"
)

// prepared is a store with a user, an owner, a live and an ended session, a
// token, a code, a role and a key.
func prepared(t *testing.T) *memstore.Store {
	t.Helper()
	ctx, s := t.Context(), withUser(t, auth.User{Email: "ada@example.com", Roles: []string{auth.RoleOwner}, BannedUntil: now})
	for _, id := range []string{sessionID, endedID} {
		_, err := s.CreateSession(ctx, auth.CreateSession{Change: system(now), Session: newSession(id)})
		ok(t, err)
	}
	_, err := s.RevokeSessions(ctx, auth.RevokeSessions{Change: system(now), UserID: userID, Filter: auth.SessionFilter{ID: endedID}})
	ok(t, err)
	for _, token := range []auth.Token{
		{Purpose: auth.PurposeReset, Hash: hash(1), UserID: userID},
		{Purpose: auth.PurposePhoneCode, Hash: hash(2), UserID: userID, Subject: "s", MaxTries: 2},
		{Purpose: auth.PurposeMagicLink, Hash: hash(3)},
	} {
		token.CreatedAt, token.ExpiresAt = now, now.Add(time.Hour)
		ok(t, s.PutToken(ctx, auth.PutToken{Change: system(now), Token: token}))
	}
	_, err = s.PutKey(ctx, auth.PutKey{Change: system(now), Key: auth.APIKey{ID: "k", Hash: hash(4), ExpiresAt: now.Add(time.Hour)}})
	ok(t, err)
	_, err = s.PutRole(ctx, auth.PutRole{Change: system(now), Role: auth.RolePermissions{Name: "r"}})
	ok(t, err)
	return s
}

// Each condition that fails refuses the change with its error, and the one that
// comes first in the contract's order wins.
func TestConditions(t *testing.T) {
	session := func(id string) auth.Authority {
		return auth.Authority{Session: &auth.SessionRef{ID: id, UserID: userID}}
	}
	token := func(b byte) auth.Authority {
		return auth.Authority{Token: &auth.TokenRef{Purpose: auth.PurposeReset, Hash: hash(b)}}
	}
	key := func(id string, revision int64) auth.Authority {
		return auth.Authority{Key: &auth.KeyRef{ID: id, Revision: revision}}
	}
	at := func(u auth.UserAt) []auth.UserAt { return []auth.UserAt{{ID: userID}, u} }
	stale := at(auth.UserAt{ID: userID, Revision: ptr(int64(7))})
	for name, c := range map[string]struct {
		change auth.Change
		want   error
	}{
		"no time":                       {auth.Change{By: auth.Authority{System: "x"}}, auth.ErrInvalidChange},
		"no authority":                  {auth.Change{Now: now}, auth.ErrInvalidChange},
		"two authorities":               {auth.Change{Now: now, By: auth.Authority{System: "x", Proof: true}}, auth.ErrInvalidChange},
		"proof":                         {auth.Change{By: auth.Authority{Proof: true}}, nil},
		"session":                       {auth.Change{By: session(sessionID)}, nil},
		"ended session":                 {auth.Change{By: session(endedID)}, auth.ErrSessionEnded},
		"unknown session":               {auth.Change{By: session(userID)}, auth.ErrSessionEnded},
		"session at its end":            {auth.Change{Now: now.Add(time.Hour), By: session(sessionID)}, auth.ErrSessionEnded},
		"session of another":            {auth.Change{By: auth.Authority{Session: &auth.SessionRef{ID: sessionID, UserID: "other"}}}, auth.ErrSessionEnded},
		"banned":                        {auth.Change{Now: now.Add(-1), By: session(sessionID)}, auth.ErrBanned},
		"token":                         {auth.Change{By: token(1)}, nil},
		"unknown token":                 {auth.Change{By: token(9)}, auth.ErrNotFound},
		"expired token":                 {auth.Change{Now: now.Add(time.Hour), By: token(1)}, auth.ErrNotFound},
		"banned by token":               {auth.Change{Now: now.Add(-1), By: token(1)}, auth.ErrBanned},
		"key":                           {auth.Change{By: key("k", 0)}, nil},
		"changed key":                   {auth.Change{By: key("k", 1)}, auth.ErrKeyEnded},
		"unknown key":                   {auth.Change{By: key("x", 0)}, auth.ErrKeyEnded},
		"expired key":                   {auth.Change{Now: now.Add(time.Hour), By: key("k", 0)}, auth.ErrKeyEnded},
		"as it was":                     {auth.Change{IfUsers: at(auth.UserAt{ID: userID, Revision: ptr(int64(0)), CredentialRevision: ptr(int64(0))})}, nil},
		"revision":                      {auth.Change{IfUsers: stale}, auth.ErrStale},
		"credential revision":           {auth.Change{IfUsers: at(auth.UserAt{ID: userID, CredentialRevision: ptr(int64(1))})}, auth.ErrStale},
		"password":                      {auth.Change{IfUsers: at(auth.UserAt{ID: userID, PasswordHash: ptr("")})}, auth.ErrStale},
		"same address":                  {auth.Change{IfUsers: at(auth.UserAt{ID: userID, Email: ptr("ADA@example.com")})}, nil},
		"no address":                    {auth.Change{IfUsers: at(auth.UserAt{ID: userID, Email: ptr("")})}, auth.ErrStale},
		"verified":                      {auth.Change{IfUsers: at(auth.UserAt{ID: userID, EmailVerified: ptr(true)})}, auth.ErrStale},
		"number":                        {auth.Change{IfUsers: at(auth.UserAt{ID: userID, Phone: ptr("+1")})}, auth.ErrStale},
		"verified number":               {auth.Change{IfUsers: at(auth.UserAt{ID: userID, PhoneVerified: ptr(true)})}, auth.ErrStale},
		"user who is gone":              {auth.Change{IfUsers: at(auth.UserAt{ID: "gone"})}, auth.ErrStale},
		"user of no token":              {auth.Change{IfUsers: at(auth.UserAt{})}, auth.ErrStale},
		"roles":                         {auth.Change{IfRoles: ptr(int64(1))}, nil},
		"other roles":                   {auth.Change{IfRoles: ptr(int64(0))}, auth.ErrStale},
		"last owner":                    {auth.Change{KeepOwner: true}, auth.ErrLastOwner},
		"authority before staleness":    {auth.Change{By: session(endedID), IfUsers: stale}, auth.ErrSessionEnded},
		"staleness before the owner":    {auth.Change{IfUsers: stale, KeepOwner: true}, auth.ErrStale},
		"invalid before all the others": {auth.Change{Now: now, By: auth.Authority{Session: &auth.SessionRef{}, Proof: true}, IfUsers: stale}, auth.ErrInvalidChange},
	} {
		t.Run(name, func(t *testing.T) {
			s, change := prepared(t), c.change
			if !errors.Is(c.want, auth.ErrInvalidChange) {
				if change.Now.IsZero() {
					change.Now = now
				}
				if change.By == (auth.Authority{}) {
					change.By.System = "test"
				}
			}
			change.Events = []auth.OutcomeEvent{event(auth.OutcomeDone, 1, now)}
			change.Messages = []auth.SealedMessage{{ID: "m", ExpiresAt: now.Add(time.Hour).In(time.FixedZone("east", 3600))}}
			change.Idempotency = &auth.Idempotency{Key: "k", ExpiresAt: now.Add(2 * time.Hour)}
			before, err := s.User(t.Context(), auth.ByID(userID))
			ok(t, err)
			_, err = s.UpdateUser(t.Context(), auth.UpdateUser{Change: change, UserID: userID, Patch: auth.UserPatch{Roles: &[]string{}}})
			is(t, err, c.want)
			after, err := s.User(t.Context(), auth.ByID(userID))
			ok(t, err)
			events, err := s.Events(t.Context(), auth.EventQuery{UserID: userID})
			ok(t, err)
			messages, err := s.ClaimMessages(t.Context(), auth.ClaimMessages{Now: now, Until: now.Add(1), Limit: 9})
			ok(t, err)
			for _, m := range messages {
				if m.ExpiresAt.Location() != time.UTC {
					t.Errorf("it ends at %v, which is not in UTC", m.ExpiresAt)
				}
			}
			again := system(now)
			again.Idempotency = change.Idempotency
			_, err = s.UpdateUser(t.Context(), auth.UpdateUser{Change: again, UserID: userID})
			if c.want == nil {
				is(t, err, auth.ErrRepeated)
			} else {
				ok(t, err)
			}
			if done := c.want == nil; done == reflect.DeepEqual(before, after) || done != (len(events) == 1) || done != (len(messages) == 1) {
				t.Errorf("%+v, %d events, %d messages", after, len(events), len(messages))
			}
		})
	}
}

// The token that a call uses up names the user of an empty id; the authority's
// token does not.
func TestEmptyIDMeansTheTokensUser(t *testing.T) {
	for name, c := range map[string]struct {
		purpose auth.Purpose
		hash    []byte
		at      auth.UserAt
		want    error
	}{
		"still so":      {auth.PurposeReset, hash(1), auth.UserAt{Revision: ptr(int64(0))}, nil},
		"stale":         {auth.PurposeReset, hash(1), auth.UserAt{Revision: ptr(int64(1))}, auth.ErrStale},
		"no user":       {auth.PurposeMagicLink, hash(3), auth.UserAt{}, auth.ErrStale},
		"dead token":    {auth.PurposeReset, hash(9), auth.UserAt{Revision: ptr(int64(1))}, auth.ErrNotFound},
		"other purpose": {auth.PurposeMagicLink, hash(1), auth.UserAt{}, auth.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			s, change := prepared(t), auth.Change{Now: now, By: auth.Authority{Proof: true}, IfUsers: []auth.UserAt{c.at}}
			_, _, err := s.RedeemToken(t.Context(), auth.Redemption{Change: change, Purpose: c.purpose, Hash: c.hash})
			is(t, err, c.want)
			if _, err := s.PeekToken(t.Context(), c.purpose, c.hash, now); errors.Is(c.want, auth.ErrStale) != (err == nil) {
				t.Errorf("the token afterwards: %v", err)
			}
		})
	}
}

// A wrong guess counts whatever the conditions say, unless the one who guesses
// may not act at all.
func TestGuessesCount(t *testing.T) {
	repeated := &auth.Idempotency{Key: "k", ExpiresAt: now.Add(time.Hour)}
	for name, c := range map[string]struct {
		change  auth.Change
		want    error
		counted bool
	}{
		"plain":        {auth.Change{}, auth.ErrWrongCode, true},
		"stale":        {auth.Change{IfUsers: []auth.UserAt{{ID: "gone"}}}, auth.ErrWrongCode, true},
		"repeated":     {auth.Change{Idempotency: repeated}, auth.ErrWrongCode, true},
		"last owner":   {auth.Change{KeepOwner: true}, auth.ErrWrongCode, true},
		"no authority": {auth.Change{By: auth.Authority{Session: &auth.SessionRef{ID: endedID, UserID: userID}}}, auth.ErrSessionEnded, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, change := prepared(t), c.change
			first := system(now)
			first.Idempotency = repeated
			_, err := s.UpdateUser(t.Context(), auth.UpdateUser{Change: first, UserID: userID})
			ok(t, err)
			change.Now, change.Events = now, []auth.OutcomeEvent{event(auth.OutcomeDone, 1, now), event(auth.OutcomeWrongCode, 2, now)}
			if change.By == (auth.Authority{}) {
				change.By.Proof = true
			}
			guess := auth.TryCode{Change: change, Purpose: auth.PurposePhoneCode, Subject: "s", Hash: hash(9)}
			_, _, err = s.TryCode(t.Context(), guess)
			is(t, err, c.want)
			code, err := s.PeekToken(t.Context(), auth.PurposePhoneCode, hash(2), now)
			ok(t, err)
			events, err := s.Events(t.Context(), auth.EventQuery{UserID: userID})
			ok(t, err)
			if (code.Tries == 1) != c.counted || (len(events) == 1 && events[0].ID == event(0, 2, now).Event.ID) != c.counted {
				t.Errorf("%d tries, events %+v", code.Tries, events)
			}
		})
	}
}
