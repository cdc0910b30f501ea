package sqlitestore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

const sessionColumns = `s.id, s.user_id, s.counter, s.rotated_at, s.aal, s.amr, s.created_at, s.last_active_at, s.idle_until, s.expires_at, s.ip, s.user_agent, s.device,
	s.sequence, s.added_by, s.revoked, s.rotated_device, s.replayed_at, s.replayed_counter, s.strayed_counter, s.strays`

const selectSessions = `select ` + sessionColumns + ` from auth_sessions s`

// session is a row of auth_sessions.
type session struct {
	store.Session

	revoked  bool
	rotation store.Rotation
}

// columns returns where sessionColumns go.
func (s *session) columns() []any {
	return []any{&s.ID, &s.UserID, &s.Counter, at{&s.RotatedAt}, &s.AAL, parsed{&s.AMR}, at{&s.CreatedAt}, at{&s.LastActiveAt}, at{&s.IdleUntil}, at{&s.ExpiresAt}, &s.IP, &s.UserAgent, &s.Device,
		&s.Sequence, &s.AddedBy, &s.revoked, &s.rotation.Device, at{&s.rotation.ReplayedAt}, &s.rotation.Replayed, &s.rotation.StrayedAt, &s.rotation.Strays}
}

func scanSession(scan row) (s session) {
	scan(s.columns()...)
	return s
}

func scanPlainSession(scan row) store.Session { return scanSession(scan).Session }

func (s *session) liveAt(now time.Time) bool { return !s.revoked && now.Before(s.End()) }

func (t *tx) session(id string) *session {
	return first(t, scanSession, selectSessions+` where s.id = ?`, id)
}

// get returns a live session of a user who is not banned. With ErrBanned it also returns
// the session and user.
func (t *tx) get(id string, now time.Time) (*session, *user, error) {
	both := first(t, func(scan row) (both ownedSession) {
		var identities []identityJSON
		scan(append(both.session.columns(), both.user.columns(&identities)...)...)
		both.user.addIdentities(identities)
		return both
	}, `select `+sessionColumns+`, `+userColumns+` from auth_sessions s join auth_users u on u.id = s.user_id where s.id = ?`, id)
	if both == nil {
		return nil, nil, store.ErrNotFound
	}
	s, u := &both.session, &both.user
	if err := u.parse(); err != nil {
		return nil, nil, err
	}
	switch {
	case u.Banned(now):
		return s, u, store.ErrBanned
	case !s.liveAt(now):
		return nil, nil, store.ErrSessionEnded
	}
	return s, u, nil
}

// ownedSession is a session with its user.
type ownedSession struct {
	session session
	user    user
}

// Session reads a session with its user.
func (s *Store) Session(ctx context.Context, id string, now time.Time) (found store.Session, owner store.User, err error) {
	err = s.read(ctx, func(t *tx) error {
		sess, u, err := t.get(id, now)
		if sess != nil {
			found, owner = sess.Session, u.User
		}
		return err
	})
	return found, owner, err
}

// Sessions lists a user's live sessions, newest first.
func (s *Store) Sessions(ctx context.Context, userID string, now time.Time) (all []store.Session, err error) {
	err = s.read(ctx, func(t *tx) error {
		all = list(t, scanPlainSession, selectSessions+` where s.user_id = ? and s.revoked = 0 and s.ends_at > ? order by s.created_at desc, s.id desc`, userID, micros(now))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// CreateSession adds a session.
func (s *Store) CreateSession(ctx context.Context, c store.CreateSession) (owner store.User, err error) {
	var e *effect
	err = s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		u := t.user(c.Session.UserID)
		e = &effect{about: c.Session.UserID}
		if err := t.mayCreate(e, u, &c.NewSession, c.Now); err != nil {
			return nil, err
		}
		e.apply = func() error {
			t.createSession(e, u, &c.NewSession, c.Now)
			owner = u.User
			return nil
		}
		return e, nil
	})
	if err != nil {
		return store.User{}, err
	}
	e.created(&c.NewSession)
	return owner, nil
}

// mayCreate checks whether a session may be created for u, who may be nil.
func (t *tx) mayCreate(e *effect, u *user, n *store.NewSession, now time.Time) error {
	switch {
	case u == nil:
		return store.ErrNotFound
	case u.Banned(n.Session.CreatedAt):
		return store.ErrBanned
	case u.MFAEnabled && n.Session.AAL != store.LevelAAL2 && (!n.OnTrustedDevice || !now.Before(t.trustedUntil(u, n.Session.Device))):
		return store.ErrMFARequired
	case t.exists(`select 1 from auth_sessions where id = ?`, n.Session.ID):
		return &store.ConflictError{Field: "id"}
	}
	return t.onDevice(e, u, &n.Session, &n.OnNewDevice)
}

// createSession adds a session with everything that NewSession names.
func (t *tx) createSession(e *effect, u *user, n *store.NewSession, now time.Time) {
	t.addSession(u, n.Session, e)
	t.trust(u, n)
	e.ended = append(e.ended, t.keepSessions(u.ID, n.Session.ID, n.KeepSessions, now)...)
	slices.Sort(e.ended)
}

// created calls the callbacks of a new session after the change.
func (e *effect) created(n *store.NewSession) {
	if n.Ended != nil && len(e.ended) > 0 {
		n.Ended(slices.Clone(e.ended))
	}
	if e.news != nil && e.news.Made != nil {
		e.news.Made()
	}
}

func (t *tx) addSession(u *user, s store.Session, e *effect) {
	origin := t.origin(e, u)
	u.LastSignInAt = utc(s.CreatedAt)
	t.exec(`insert into auth_sessions (id, user_id, counter, rotated_at, aal, amr, created_at, last_active_at, idle_until, expires_at, ip, user_agent, device, rotated_device, sequence, added_by)
		values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		s.ID, u.ID, s.Counter, micros(s.RotatedAt), s.AAL, t.text(s.AMR), micros(s.CreatedAt), micros(s.LastActiveAt), micros(s.IdleUntil), maybe(s.ExpiresAt), s.IP, s.UserAgent, s.Device, s.Device, origin.Sequence, origin.AddedBy)
	t.exec(`update auth_users set last_sign_in_at = ? where id = ?`, maybe(u.LastSignInAt), u.ID)
	t.see(u, s.Device, u.LastSignInAt, origin)
}

// keepSessions ends live sessions of a user until n are left: the new one and the most
// recently active others. It returns the ids of the ended sessions.
func (t *tx) keepSessions(userID, created string, n int, now time.Time) []string {
	if n <= 0 {
		return nil
	}
	return values[string](t, `update auth_sessions set revoked = 1 where id in (
		select id from auth_sessions where user_id = ? and id <> ? and revoked = 0 and ends_at > ? order by last_active_at desc, id desc limit -1 offset ?) returning id`,
		userID, created, micros(now), n-1)
}

// AdvanceSession advances the counter of a session.
func (s *Store) AdvanceSession(ctx context.Context, c store.Advance) (advanced store.Session, owner store.User, err error) {
	if err := c.Check(); err != nil {
		return store.Session{}, store.User{}, err
	}
	if err := c.DrawFirst(ctx, s.Take); err != nil {
		return store.Session{}, store.User{}, err
	}
	var e *effect
	err = s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		sess, u, err := t.get(c.SessionID, c.Now)
		if err != nil {
			return nil, err
		}
		e = &effect{about: u.ID}
		was := *sess
		switch {
		case c.Counter > sess.Counter:
			return nil, store.ErrSessionEnded
		case c.NeedsFactor(sess.Session, u.User):
			return nil, store.ErrMFARequired
		case c.Counter == sess.Counter:
			sess.rotation.Move(&c)
			sess.advance(&c)
		default:
			switch sess.rotation.Repeats(&sess.Session, &c) {
			case store.OutcomeDone:
				e.noChange = true // the same successor again
			case store.OutcomeReplayed:
				other := sess.Client()
				e.outcome, e.other = store.OutcomeReplayed, &other
			default:
				e.outcome, e.refusal, sess.revoked = store.OutcomeReused, store.ErrReused, true
			}
		}
		advanced, owner = sess.Session, u.User
		if !e.noChange || sess.rotation != was.rotation {
			e.apply = func() error { return t.saveSession(sess) }
		}
		return e, nil
	})
	if err != nil && !errors.Is(err, store.ErrReused) {
		return store.Session{}, store.User{}, err
	}
	if err == nil && e.other != nil && c.Replayed != nil {
		c.Replayed(*e.other)
	}
	return advanced, owner, err
}

func (s *session) advance(c *store.Advance) {
	s.Counter++
	s.RotatedAt, s.LastActiveAt, s.IdleUntil = c.Now, c.Now, utc(c.IdleUntil)
	if c.IP != "" {
		s.IP = c.IP
	}
	if c.UserAgent != "" {
		s.UserAgent = c.UserAgent
	}
}

// saveSession stores the columns that AdvanceSession changes.
func (t *tx) saveSession(s *session) error {
	t.exec(`update auth_sessions set counter = ?, rotated_at = ?, last_active_at = ?, idle_until = ?, ip = ?, user_agent = ?, revoked = ?,
		rotated_device = ?, replayed_at = ?, replayed_counter = ?, strayed_counter = ?, strays = ? where id = ?`,
		s.Counter, micros(s.RotatedAt), micros(s.LastActiveAt), micros(s.IdleUntil), s.IP, s.UserAgent, s.revoked,
		s.rotation.Device, maybe(s.rotation.ReplayedAt), s.rotation.Replayed, s.rotation.StrayedAt, s.rotation.Strays, s.ID)
	return nil
}

// RevokeSessions ends a user's live sessions that match.
func (s *Store) RevokeSessions(ctx context.Context, c store.RevokeSessions) (ended []string, err error) {
	err = s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		e := &effect{about: c.UserID}
		e.apply = func() error {
			e.ended = t.revoke(c.UserID, c.Filter, c.Now)
			t.dropTokens(c.UserID, c.DropTokens)
			if c.DropDevices {
				t.dropDevices(c.UserID, c.Filter)
			}
			ended = append([]string{}, e.ended...)
			return nil
		}
		return e, nil
	})
	if err != nil {
		return nil, err
	}
	return ended, nil
}

// revoke ends a user's live sessions and impersonations that match, and returns their ids,
// sorted.
func (t *tx) revoke(userID string, f store.SessionFilter, now time.Time) []string {
	ended := values[string](t, `update auth_sessions set revoked = 1 where user_id = ?1 and revoked = 0 and ends_at > ?2
		and (?3 = '' or id = ?3) and id <> ?4 and sequence >= ?5 and (?6 is null or created_at < ?6) and (?7 = '' or ip = ?7) returning id`,
		userID, micros(now), f.ID, f.Except, f.FromSequence, bound(f.Before), f.IP)
	ended = append(ended, t.revokeImpersonations(userID, f, now)...)
	slices.Sort(ended)
	return ended
}

// AddAuthentication adds an authentication method to a session.
func (s *Store) AddAuthentication(ctx context.Context, c store.AddAuthentication) (raised store.Session, owner store.User, err error) {
	err = s.change(ctx, &c.Change, func(t *tx) (*effect, error) {
		sess, u, err := t.get(c.SessionID, c.Now)
		if err != nil {
			return nil, err
		}
		return &effect{about: u.ID, apply: func() error {
			sess.AMR = withMethod(sess.AMR, c.Proof)
			t.exec(`update auth_sessions set amr = ? where id = ?`, t.text(sess.AMR), sess.ID)
			raised, owner = sess.Session, u.User
			return nil
		}}, nil
	})
	if err != nil {
		return store.Session{}, store.User{}, err
	}
	return raised, owner, nil
}

// withMethod adds an entry to a list of methods and replaces one of the same method.
func withMethod(list []store.AMR, m store.AMR) []store.AMR {
	return append(slices.DeleteFunc(list, func(other store.AMR) bool { return other.Method == m.Method }), m)
}
