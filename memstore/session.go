package memstore

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// CreateSession adds a session.
func (s *Store) CreateSession(ctx context.Context, c store.CreateSession) (owner store.User, err error) {
	var e *effect
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		u := s.users[c.Session.UserID]
		e = &effect{about: c.Session.UserID}
		if err := s.mayCreate(e, u, &c.NewSession, c.Now); err != nil {
			return nil, err
		}
		e.apply = func() error {
			s.addSession(u, c.Session, e)
			u.trust(&c.NewSession)
			e.ended = s.keepSessions(u, c.Session.ID, c.KeepSessions, c.Now)
			owner = copyUser(u.User)
			return nil
		}
		return e, nil
	})
	if err == nil && c.Ended != nil && len(e.ended) > 0 {
		c.Ended(slices.Clone(e.ended))
	}
	if err == nil {
		e.made()
	}
	return owner, err
}

// mayCreate checks whether a session may be created for u, who may be nil.
func (s *Store) mayCreate(e *effect, u *user, n *store.NewSession, now time.Time) error {
	switch {
	case u == nil:
		return store.ErrNotFound
	case u.Banned(n.Session.CreatedAt):
		return store.ErrBanned
	case u.MFAEnabled && n.Session.AAL != store.LevelAAL2 && (!n.OnTrustedDevice || !now.Before(u.trustedUntil(n.Session.Device))):
		return store.ErrMFARequired
	case s.sessions[n.Session.ID] != nil:
		return &store.ConflictError{Field: "id"}
	}
	return e.onDevice(u, &n.Session, &n.OnNewDevice)
}

// onDevice checks whether the device of a new session is new to the user.
func (e *effect) onDevice(u *user, sess *store.Session, on *store.NewDevice) error {
	_, known := u.devices[sess.Device]
	if sess.Device == "" {
		known = len(u.devices) == 0
	}
	switch {
	case known || u.LastSignInAt.IsZero():
		return nil
	case on.Refuse:
		return store.ErrNewDevice
	}
	e.tells = on
	return nil
}

// made calls NewDevice.Made if the device was new.
func (e *effect) made() {
	if e.tells != nil && e.tells.Made != nil {
		e.tells.Made()
	}
}

// keepSessions ends live sessions of a user until n are left: the new one and the most
// recently active others. It returns the sorted ids of the ended sessions.
func (s *Store) keepSessions(u *user, made string, n int, now time.Time) (ended []string) {
	if n <= 0 {
		return nil
	}
	var others []*session
	for id := range u.sessions {
		if sess := s.sessions[id]; id != made && sess.liveAt(now) {
			others = append(others, sess)
		}
	}
	slices.SortFunc(others, func(a, b *session) int { return byAge(b.LastActiveAt, b.ID, a.LastActiveAt, a.ID) })
	for _, sess := range others[min(n-1, len(others)):] {
		sess.revoked = true
		ended = append(ended, sess.ID)
	}
	slices.Sort(ended)
	return ended
}

func (s *Store) addSession(u *user, sess store.Session, e *effect) {
	s.order++
	kept := &session{Session: copySession(sess), order: s.order, rotation: store.Rotation{Device: sess.Device}}
	kept.UserID, kept.Origin = u.ID, e.origin(u)
	s.sessions[sess.ID] = kept
	u.sessions[sess.ID] = true
	u.LastSignInAt = utc(sess.CreatedAt)
	u.see(sess.Device, u.LastSignInAt, kept.Origin)
}

// see remembers a device and forgets the least recently seen one if there are too many.
func (u *user) see(hash string, at time.Time, origin store.Origin) {
	if hash == "" {
		return
	}
	d, known := u.devices[hash]
	if !known {
		d.First, d.Origin = at, origin
	}
	if at.After(d.Last) {
		d.Last = at
	}
	u.devices[hash] = d
	if len(u.devices) <= store.MaxDevices {
		return
	}
	oldest := ""
	for other, d := range u.devices {
		if other != hash && (oldest == "" || byAge(d.Last, other, u.devices[oldest].Last, oldest) < 0) {
			oldest = other
		}
	}
	delete(u.devices, oldest)
}

func (s *Store) dropSession(id string) {
	if u := s.users[s.sessions[id].UserID]; u != nil {
		delete(u.sessions, id)
	}
	delete(s.sessions, id)
}

// get returns a live session of a user who is not banned. With ErrBanned it also returns
// the session and user.
func (s *Store) get(id string, now time.Time) (*session, *user, error) {
	sess := s.sessions[id]
	if sess == nil {
		return nil, nil, store.ErrNotFound
	}
	u := s.users[sess.UserID]
	switch {
	case u.Banned(now):
		return sess, u, store.ErrBanned
	case !sess.liveAt(now):
		return nil, nil, store.ErrSessionEnded
	}
	return sess, u, nil
}

func (s *session) liveAt(now time.Time) bool { return !s.revoked && now.Before(s.End()) }

// Session reads a session with its user.
func (s *Store) Session(ctx context.Context, id string, now time.Time) (store.Session, store.User, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return store.Session{}, store.User{}, err
	}
	defer unlock()
	sess, u, err := s.get(id, now)
	if sess == nil {
		return store.Session{}, store.User{}, err
	}
	return copySession(sess.Session), copyUser(u.User), err
}

// AdvanceSession advances the counter of a session.
func (s *Store) AdvanceSession(ctx context.Context, c store.Advance) (advanced store.Session, owner store.User, err error) {
	if err := c.Check(); err != nil {
		return store.Session{}, store.User{}, err
	}
	if err := c.DrawFirst(ctx, s.Take); err != nil {
		return store.Session{}, store.User{}, err
	}
	var other *store.Client
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		sess, u, err := s.get(c.SessionID, c.Now)
		if err != nil {
			return nil, err
		}
		e := &effect{about: u.ID}
		turn := sess.rotation
		move := func() {}
		switch {
		case c.Counter > sess.Counter:
			return nil, store.ErrSessionEnded
		case c.NeedsFactor(sess.Session, u.User):
			return nil, store.ErrMFARequired
		case c.Counter == sess.Counter:
			turn.Move(&c)
			move = func() { sess.advance(c) }
		default:
			switch turn.Repeats(&sess.Session, &c) {
			case store.OutcomeDone:
				e.noChange = true // the same successor again
			case store.OutcomeReplayed:
				who := sess.Client()
				e.outcome, e.other = store.OutcomeReplayed, &who
			default:
				e.outcome, e.refusal = store.OutcomeReused, store.ErrReused
				move = func() { sess.revoked = true }
			}
		}
		e.apply = func() error {
			move()
			sess.rotation = turn
			other = e.other
			advanced, owner = copySession(sess.Session), copyUser(u.User)
			return nil
		}
		return e, nil
	})
	if err == nil && other != nil && c.Replayed != nil {
		c.Replayed(*other)
	}
	return advanced, owner, err
}

func (s *session) advance(c store.Advance) {
	s.Counter++
	s.RotatedAt, s.LastActiveAt, s.IdleUntil = c.Now, c.Now, utc(c.IdleUntil)
	if c.IP != "" {
		s.IP = c.IP
	}
	if c.UserAgent != "" {
		s.UserAgent = c.UserAgent
	}
}

// Sessions lists a user's live sessions, newest first.
func (s *Store) Sessions(ctx context.Context, userID string, now time.Time) ([]store.Session, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	list := []store.Session{}
	if u := s.users[userID]; u != nil {
		for id := range u.sessions {
			if sess := s.sessions[id]; sess.liveAt(now) {
				list = append(list, copySession(sess.Session))
			}
		}
	}
	slices.SortFunc(list, func(a, b store.Session) int { return byAge(b.CreatedAt, b.ID, a.CreatedAt, a.ID) })
	return list, nil
}

// RevokeSessions ends a user's live sessions that match.
func (s *Store) RevokeSessions(ctx context.Context, c store.RevokeSessions) (ended []string, err error) {
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		e := &effect{about: c.UserID}
		e.apply = func() error {
			ended = []string{}
			if u := s.users[c.UserID]; u != nil {
				e.ended = s.revoke(u, c.Filter, c.Now)
				s.dropTokens(u, c.DropTokens)
				if c.DropDevices {
					s.dropDevices(u, c.Filter)
				}
				ended = append(ended, e.ended...)
			}
			return nil
		}
		return e, nil
	})
	return ended, err
}

// forgotten marks that devices were forgotten, for as long as those would have been
// remembered. It makes a client that sends no device still count as new.
const forgotten = "-" // no device has this hash

// dropDevices forgets the user's devices, as RevokeSessions.DropDevices says.
func (s *Store) dropDevices(u *user, f store.SessionFilter) {
	of := func(id string) string {
		if !u.sessions[id] {
			return ""
		}
		return s.sessions[id].Device
	}
	only, except, mark := of(f.ID), of(f.Except), u.devices[forgotten]
	maps.DeleteFunc(u.devices, func(hash string, d device) bool {
		if f.ID != "" && hash != only || hash == except {
			return false
		}
		if d.Last.After(mark.Last) {
			mark = device{First: d.Last, Last: d.Last}
		}
		return true
	})
	if !mark.Last.IsZero() {
		u.devices[forgotten] = mark
	}
	if f.ID == "" {
		u.trustNone()
	}
}

// revoke ends the live sessions that match and returns their ids, sorted.
func (s *Store) revoke(u *user, f store.SessionFilter, now time.Time) (ended []string) {
	for id := range u.sessions {
		sess := s.sessions[id]
		if sess.liveAt(now) && (f.ID == "" || f.ID == id) && f.Except != id && sess.Sequence >= f.FromSequence &&
			(f.Before.IsZero() || sess.CreatedAt.Before(f.Before)) && (f.IP == "" || f.IP == sess.IP) {
			sess.revoked = true
			ended = append(ended, id)
		}
	}
	ended = append(ended, s.revokeImpersonations(u, f, now)...)
	slices.Sort(ended)
	return ended
}
