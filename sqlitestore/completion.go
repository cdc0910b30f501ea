package sqlitestore

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// complete runs a change that uses a second factor of a user. use plans that use; then the
// completion is checked. Both are applied in this order.
func (s *Store) complete(ctx context.Context, c *store.Change, userID string, done *store.Completion,
	use func(*tx, *effect, *user) (func(*store.FactorResult), error),
) (result store.FactorResult, err error) {
	var e *effect
	err = s.change(ctx, c, func(t *tx) (*effect, error) {
		u := t.user(userID)
		if u == nil {
			return nil, store.ErrNotFound
		}
		e = &effect{about: u.ID}
		apply, err := use(t, e, u)
		if err != nil {
			return nil, err
		}
		raised, err := t.mayComplete(e, u, done, c.Now)
		if err != nil {
			return nil, err
		}
		e.apply = func() error {
			apply(&result)
			t.applyCompletion(e, u, done, raised, c.Now, &result)
			return nil
		}
		return e, nil
	})
	if err != nil {
		return store.FactorResult{}, err
	}
	if done.Create != nil {
		e.created(done.Create)
	}
	return result, nil
}

// mayComplete checks a completion. It returns the session of Raise.
func (t *tx) mayComplete(e *effect, u *user, c *store.Completion, now time.Time) (raised *session, err error) {
	if c.Redeem != nil {
		if e.uses = t.liveToken(*c.Redeem, now); e.uses == nil || e.uses.UserID != u.ID {
			return nil, store.ErrNotFound
		}
	}
	switch {
	case c.Raise != nil:
		raised = t.session(c.Raise.SessionID)
		if raised == nil || raised.UserID != u.ID || !raised.liveAt(now) {
			return nil, store.ErrSessionEnded
		}
	case c.Create != nil && c.Create.Session.AAL != store.LevelAAL2:
		return nil, store.ErrMFARequired
	case c.Create != nil:
		if err := t.mayCreate(e, u, c.Create, now); err != nil {
			return nil, err
		}
	}
	if u.Banned(now) && (c.Redeem != nil || c.Raise != nil || c.Create != nil) {
		return nil, store.ErrBanned
	}
	return raised, nil
}

func (t *tx) applyCompletion(e *effect, u *user, c *store.Completion, raised *session, now time.Time, result *store.FactorResult) {
	switch {
	case raised != nil:
		raised.AAL, raised.AMR = store.LevelAAL2, withMethod(raised.AMR, c.Raise.Method)
		t.exec(`update auth_sessions set aal = ?, amr = ? where id = ?`, raised.AAL, t.text(raised.AMR), raised.ID)
		result.Session = raised.Session
	case c.Create != nil:
		t.createSession(e, u, c.Create, now)
		if created := t.session(c.Create.Session.ID); created != nil {
			result.Session = created.Session
		}
	}
	if e.uses != nil {
		t.dropToken(e.uses)
	}
	result.User = u.User
}
