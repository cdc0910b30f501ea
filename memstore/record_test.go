package memstore_test

import (
	"testing"
	"time"

	"github.com/authmount/auth/store"
)

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
