package sqlitestore

import (
	"context"

	"github.com/authmount/auth/store"
)

// AnonymizeUser removes everything that identifies a user.
func (s *Store) AnonymizeUser(ctx context.Context, c store.AnonymizeUser) (left store.User, err error) {
	err = s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		e, err := t.planUpdate(&c.Change, c.UserID, c.Patch(), nil, &left)
		if err != nil {
			return nil, err
		}
		patch := e.apply
		e.apply = func() error {
			if err := patch(); err != nil {
				return err
			}
			t.exec(`delete from auth_sessions where user_id = ?`, c.UserID)
			t.exec(`delete from auth_tokens where subject <> '' and subject in (select value from json_each(?))`, jsonOf(append([]string{}, c.Subjects...)))
			t.exec(`delete from auth_messages where user_id = ? or recipient <> '' and recipient in (select value from json_each(?))`, c.UserID, jsonOf(append([]string{}, c.Recipients...)))
			t.dropLog(c.UserID, c.Recipients...)
			t.rewriteEvents(&c)
			return nil
		}
		return e, nil
	})
	if err != nil {
		return store.User{}, err
	}
	return left, nil
}

// rewriteEvents anonymises the events about the user, by the user, and about no user with
// one of the user's names.
func (t *tx) rewriteEvents(c *store.AnonymizeUser) {
	names := []string{}
	for _, name := range c.Names {
		names = append(names, oneForm(name))
	}
	for _, id := range values[string](t, `select id from auth_events where user_id = ?1 or actor_id = ?1 or user_id = '' and target <> '' and target in (select value from json_each(?2))`, oneForm(c.UserID), jsonOf(names)) {
		if ev := first(t, scanEvent, `delete from auth_events where id = ? returning event`, id); ev != nil {
			t.keepEvent(c.Rewrite(*ev))
		}
	}
}
