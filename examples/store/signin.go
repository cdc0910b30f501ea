package store

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// Data that is stored with a new session, and the detection of shared sessions.

// CreateSession adds a session.
func (s *Store) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	var ended []string
	var isNew bool
	u, err := change(ctx, s, &c.Change, func(t *tx) (store.User, error) {
		isNew = t.isNew(c.Session)
		d := device{c.Session.UserID, c.Session.Device}
		u, err := t.addSession(c.Session, c.OnTrustedDevice && c.Now.Before(t.trustedUntil(d)))
		if err == nil && !c.TrustUntil.IsZero() && c.Session.AAL == store.LevelAAL2 {
			t.trust(d, c.TrustUntil)
		}
		if err == nil && isNew {
			err = t.onNewDevice(c.OnNewDevice)
		}
		if err == nil && c.KeepSessions > 0 {
			ended = t.keepSessions(c.Session, c.KeepSessions, c.Now) // optional: and c.Events of OutcomeSessionsEnded
		}
		return u, err
	})
	if err == nil && c.Ended != nil && len(ended) > 0 {
		c.Ended(ended)
	}
	if err == nil && isNew && c.OnNewDevice.Made != nil {
		c.OnNewDevice.Made()
	}
	return u, err
}

// device is a device on which a user has signed in.
type device struct{ userID, hash string }

// seen is the stored state of a device.
type seen struct {
	first, last  time.Time
	trustedUntil time.Time
	trustedAt    int64 // the user's CredentialRevision at that time; a higher one ends the trust
	store.Origin
}

// trust marks the device of a new session as trusted.
func (t *tx) trust(d device, until time.Time) {
	if s, known := t.devices[d]; known {
		utc(&until)
		s.trustedUntil, s.trustedAt = until, t.users[d.userID].User.CredentialRevision
		t.devices[d] = s
	}
}

// trustedUntil returns until when a user trusts a device.
func (db *tables) trustedUntil(d device) time.Time {
	s := db.devices[d]
	if s.trustedAt != db.users[d.userID].User.CredentialRevision {
		return time.Time{}
	}
	return s.trustedUntil
}

// see stores that a session was created on a device.
func (t *tx) see(d device, at time.Time, origin store.Origin) {
	s, known := t.devices[d]
	if d.hash == "" || known && s.last.After(at) {
		return
	}
	if !known {
		t.forgetDevices(d.userID, store.MaxDevices-1)
		s.first, s.Origin = at, origin
	}
	s.last = at
	t.devices[d] = s
}

// isNew reports whether a session is created on a new device: the user has signed in
// before, but not on this device. Call it before the session is added.
func (t *tx) isNew(s store.Session) bool {
	_, known := t.devices[device{s.UserID, s.Device}]
	if s.Device == "" { // new for a user with devices
		known = true
		for d := range t.devices {
			known = known && d.userID != s.UserID
		}
	}
	return !known && !t.users[s.UserID].User.LastSignInAt.IsZero()
}

// onNewDevice rejects a session, or stores the tokens for a new device.
func (t *tx) onNewDevice(on store.NewDevice) error {
	if on.Refuse {
		return store.ErrNewDevice
	}
	for _, token := range on.Tokens { // optional: and on.Messages, c.Events of OutcomeNewDevice
		if err := t.addToken(token); err != nil {
			return err
		}
	}
	return nil
}

// forgetDevices keeps the n most recently used devices of a user.
func (t *tx) forgetDevices(userID string, n int) {
	var theirs []device
	for d := range t.devices {
		if d.userID == userID {
			theirs = append(theirs, d)
		}
	}
	slices.SortFunc(theirs, func(a, b device) int { return byAge(t.devices[b].last, b.hash, t.devices[a].last, a.hash) })
	for _, d := range theirs[min(n, len(theirs)):] {
		delete(t.devices, d)
	}
}

// forgotten replaces forgotten devices, so that a client without a device id still counts
// as new.
const forgotten = "-" // not a hash

// forget deletes a user's devices as RevokeSessions.DropDevices says.
func (t *tx) forget(userID string, f store.SessionFilter) {
	is := func(id string, d device) bool {
		s, ok := t.sessions[id]
		return ok && s.UserID == userID && s.Device == d.hash
	}
	mark := t.devices[device{userID, forgotten}].last
	maps.DeleteFunc(t.devices, func(d device, s seen) bool {
		if d.userID != userID || f.ID != "" && !is(f.ID, d) || is(f.Except, d) {
			return false
		}
		if s.last.After(mark) {
			mark = s.last
		}
		return true
	})
	if !mark.IsZero() {
		t.devices[device{userID, forgotten}] = seen{last: mark}
	}
	for d, s := range t.devices {
		if d.userID == userID && f.ID == "" { // still known but no longer trusted
			t.devices[d] = seen{first: s.first, last: s.last, Origin: s.Origin}
		}
	}
}

// keepSessions revokes a user's live sessions except the new one and the most recently
// active ones, so that n remain.
func (t *tx) keepSessions(made store.Session, n int, now time.Time) (ended []string) {
	var others []store.Session
	for id, sess := range t.sessions {
		if sess.UserID == made.UserID && id != made.ID && sess.live(now) {
			others = append(others, sess.Session)
		}
	}
	slices.SortFunc(others, func(a, b store.Session) int { return byAge(b.LastActiveAt, b.ID, a.LastActiveAt, a.ID) })
	for _, sess := range others[min(n-1, len(others)):] {
		ended = append(ended, t.revoke(made.UserID, store.SessionFilter{ID: sess.ID}, now)...)
	}
	slices.Sort(ended)
	return ended
}
