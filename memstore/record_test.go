package memstore_test

import (
	"testing"
	"time"

	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// prepared returns a store with a user, an owner, a live and a revoked session, a token, a
// code, a role and a key.
func prepared(t *testing.T) *memstore.Store {
	t.Helper()
	ctx, s := t.Context(), withUser(t, store.User{Email: "ada@example.com", Roles: []string{store.RoleOwner}, AcceptedSequence: 1, BannedUntil: now})
	for _, id := range []string{sessionID, endedID} {
		_, err := s.CreateSession(ctx, store.CreateSession{Change: system(now), NewSession: store.NewSession{Session: newSession(id)}})
		ok(t, err)
	}
	_, err := s.RevokeSessions(ctx, store.RevokeSessions{Change: system(now), UserID: userID, Filter: store.SessionFilter{ID: endedID}})
	ok(t, err)
	for _, token := range []store.Token{
		{Purpose: store.PurposeReset, Hash: hash(1), UserID: userID},
		{Purpose: store.PurposePhoneCode, Hash: hash(2), UserID: userID, Subject: "s", MaxAttempts: 2},
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

// A refresh token that is repeated within the grace period changes nothing, so no event is
// recorded. Without grace it is reuse, however the clocks differ.
func TestGrace(t *testing.T) {
	for name, c := range map[string]struct {
		grace, after time.Duration
		want         error
		recorded     store.Outcome
	}{
		"within":          {time.Minute, time.Second, nil, -1},
		"over":            {time.Minute, time.Minute, nil, store.OutcomeReplayed},
		"none":            {0, 0, store.ErrReused, store.OutcomeReused},
		"an earlier hour": {0, -time.Second, store.ErrReused, store.OutcomeReused},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, s := t.Context(), prepared(t)
			advance := store.Advance{Change: system(now.Add(time.Minute)), SessionID: sessionID, IdleUntil: now.Add(time.Hour)}
			first, _, err := s.AdvanceSession(ctx, advance)
			ok(t, err)
			advance.Now, advance.Grace = advance.Now.Add(c.after), c.grace
			for on := range store.OutcomeReplayed + 1 {
				advance.Events = append(advance.Events, event(on, int(on), now))
			}
			again, u, err := s.AdvanceSession(ctx, advance)
			is(t, err, c.want)
			if again.Counter != first.Counter || u.ID != userID {
				t.Errorf("session %+v of %q", again, u.ID)
			}
			events, err := s.Events(ctx, store.EventQuery{})
			ok(t, err)
			if c.recorded < 0 != (len(events) == 0) || (len(events) > 0 && (len(events) != 1 || events[0].ID != event(0, int(c.recorded), now).Event.ID)) {
				t.Errorf("recorded %+v", events)
			}
		})
	}
}

// The previous hash of a key can be used again.
func TestReplacedKeyFreesItsHash(t *testing.T) {
	ctx, s := t.Context(), prepared(t)
	put := func(id string, h byte) {
		t.Helper()
		_, err := s.PutKey(ctx, store.PutKey{Change: system(now), Key: store.APIKey{ID: id, Hash: hash(h)}})
		ok(t, err)
	}
	put("k", 5)
	put("other", 4)
}

// A message for a user whom the change deletes is deleted as well.
func TestMessageOfADeletedUser(t *testing.T) {
	ctx, s := t.Context(), prepared(t)
	c := system(now)
	c.Messages = []store.SealedMessage{
		{ID: "theirs", UserID: userID, ExpiresAt: now.Add(time.Hour)}, {ID: "nobody's", ExpiresAt: now.Add(time.Hour)},
	}
	ok(t, s.DeleteUser(ctx, store.DeleteUser{Change: c, UserID: userID}))
	list, err := s.ClaimMessages(ctx, store.ClaimMessages{Now: now, Until: now.Add(time.Second), Limit: 9})
	if err != nil || len(list) != 1 || list[0].ID != "nobody's" {
		t.Errorf("%+v, %v", list, err)
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
			guess := store.CodeAttempt{Change: change, Purpose: store.PurposePhoneCode, Subject: "s", Hash: hash(9)}
			_, _, err = s.RedeemCode(t.Context(), guess)
			is(t, err, c.want)
			code, err := s.PeekToken(t.Context(), store.PurposePhoneCode, hash(2), now)
			ok(t, err)
			events, err := s.Events(t.Context(), store.EventQuery{UserID: userID})
			ok(t, err)
			if (code.Attempts == 1) != c.counted || (len(events) == 1 && events[0].ID == event(0, 2, now).Event.ID) != c.counted {
				t.Errorf("%d tries, events %+v", code.Attempts, events)
			}
		})
	}
}
