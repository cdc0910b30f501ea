package store

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

func (s *session) live(now time.Time) bool { return !s.Revoked && now.Before(s.End()) }

// addSession adds a session. onTrusted reports whether OnTrustedDevice applies.
func (t *tx) addSession(sess store.Session, onTrusted bool) (store.User, error) {
	c, ok := t.users[sess.UserID]
	_, taken := t.sessions[sess.ID]
	switch {
	case !ok:
		return c.User, store.ErrNotFound
	case c.User.Banned(sess.CreatedAt):
		return c.User, store.ErrBanned
	case c.User.MFAEnabled && sess.AAL != store.LevelAAL2 && !onTrusted:
		return c.User, store.ErrMFARequired
	case taken:
		return c.User, &store.ConflictError{Field: "id"}
	}
	utc(&sess.RotatedAt, &sess.CreatedAt, &sess.LastActiveAt, &sess.IdleUntil, &sess.ExpiresAt)
	sess.Origin = t.origin(sess.UserID)
	t.sessions[sess.ID] = session{Session: clone(sess), Rotation: store.Rotation{Device: sess.Device}}
	t.see(device{sess.UserID, sess.Device}, sess.CreatedAt, sess.Origin)
	c = t.users[sess.UserID]
	c.User.LastSignInAt = sess.CreatedAt // does not raise a revision
	t.users[sess.UserID] = c
	return c.User, nil
}

// Session reads a session with its user.
func (s *Store) Session(ctx context.Context, id string, now time.Time) (store.Session, store.User, error) {
	found, err := read(ctx, s, func(db *tables) (pair[session], error) { return db.session(id, now) })
	return found.Of.Session, found.User, err
}

func (db *tables) session(id string, now time.Time) (pair[session], error) {
	sess, ok := db.sessions[id]
	u := db.users[sess.UserID].User
	switch {
	case !ok:
		return pair[session]{}, store.ErrNotFound
	case u.Banned(now):
		return pair[session]{sess, u}, store.ErrBanned
	case !sess.live(now):
		return pair[session]{}, store.ErrSessionEnded
	}
	return pair[session]{sess, u}, nil
}

// AdvanceSession increments the counter. An old counter that Rotation.Repeats does not
// accept revokes the session.
func (s *Store) AdvanceSession(ctx context.Context, c store.Advance) (store.Session, store.User, error) {
	err := c.Check()
	if err == nil {
		err = c.DrawFirst(ctx, s.Take)
	}
	if err != nil {
		return store.Session{}, store.User{}, err
	}
	var other []store.Client
	out, err := change(ctx, s, &c.Change, func(t *tx) (pair[session], error) {
		found, err := t.session(c.SessionID, c.Now)
		sess := &found.Of
		switch {
		case err != nil:
			return found, err
		case c.Counter > sess.Counter:
			return found, store.ErrSessionEnded
		case c.NeedsFactor(sess.Session, found.User):
			return found, store.ErrMFARequired
		case c.Counter == sess.Counter:
			sess.Rotation.Move(&c)
			sess.Counter++
			sess.RotatedAt, sess.LastActiveAt, sess.IdleUntil = c.Now, c.Now, c.IdleUntil
			utc(&sess.IdleUntil)
			sess.IP, sess.UserAgent = cmp.Or(c.IP, sess.IP), cmp.Or(c.UserAgent, sess.UserAgent)
		default:
			switch sess.Rotation.Repeats(&sess.Session, &c) {
			case store.OutcomeDone: // two windows refreshed at once, or a response was lost: the same successor
			case store.OutcomeReplayed:
				t.outcome = store.OutcomeReplayed
				other = []store.Client{sess.Client()} // optional: Event.Other
			default:
				sess.Revoked, t.outcome, err = true, store.OutcomeReused, store.ErrReused
			}
		}
		t.sessions[sess.ID] = *sess
		return found, err
	})
	if err == nil && len(other) > 0 && c.Replayed != nil {
		c.Replayed(other[0])
	}
	return out.Of.Session, out.User, err
}

// AddAuthentication records an authentication and replaces an earlier one by the same
// method.
func (s *Store) AddAuthentication(ctx context.Context, c store.AddAuthentication) (store.Session, store.User, error) {
	out, err := change(ctx, s, &c.Change, func(t *tx) (pair[session], error) {
		found, err := t.session(c.SessionID, c.Now)
		if err == nil {
			others := slices.DeleteFunc(slices.Clone(found.Of.AMR), func(a store.AMR) bool { return a.Method == c.Proof.Method })
			found.Of.AMR = append(others, c.Proof)
			t.sessions[c.SessionID] = found.Of
		}
		return found, err
	})
	return out.Of.Session, out.User, err
}

// Sessions lists a user's live sessions, newest first.
func (s *Store) Sessions(ctx context.Context, userID string, now time.Time) ([]store.Session, error) {
	return read(ctx, s, func(db *tables) ([]store.Session, error) {
		list := []store.Session{}
		for _, sess := range db.sessions {
			if sess.UserID == userID && sess.live(now) {
				list = append(list, sess.Session)
			}
		}
		slices.SortFunc(list, func(a, b store.Session) int { return byAge(b.CreatedAt, b.ID, a.CreatedAt, a.ID) })
		return list, nil
	})
}

// RevokeSessions ends a user's live sessions that match.
func (s *Store) RevokeSessions(ctx context.Context, c store.RevokeSessions) ([]string, error) {
	return change(ctx, s, &c.Change, func(t *tx) ([]string, error) {
		t.dropTokens(c.UserID, c.DropTokens)
		if c.DropDevices {
			t.forget(c.UserID, c.Filter)
		}
		return t.revoke(c.UserID, c.Filter, c.Now), nil
	})
}

func (t *tx) revoke(userID string, f store.SessionFilter, now time.Time) []string {
	ended := []string{}
	for id, sess := range t.sessions {
		if sess.UserID == userID && sess.live(now) && (f.ID == "" || f.ID == id) && f.Except != id && sess.Sequence >= f.FromSequence &&
			(f.Before.IsZero() || sess.CreatedAt.Before(f.Before)) && (f.IP == "" || f.IP == sess.IP) {
			sess.Revoked = true
			t.sessions[id] = sess
			ended = append(ended, id)
		}
	}
	slices.Sort(ended)
	return ended
}
