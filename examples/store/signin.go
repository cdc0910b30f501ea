package store

import (
	"maps"
	"slices"
	"time"

	"github.com/authmount/auth"
)

// What comes with a new session, and what becomes of one that is shared.

// device is one that a user has signed in on.
type device struct{ userID, hash string }

// see remembers that a session was made on a device.
func (t *tx) see(d device, at time.Time) {
	last, known := t.devices[d]
	if d.hash == "" || known && last.After(at) {
		return
	}
	if !known {
		t.forgetDevices(d.userID, auth.MaxDevices-1)
	}
	t.devices[d] = at
}

// forgetDevices leaves a user the n devices that were seen last.
func (t *tx) forgetDevices(userID string, n int) {
	var theirs []device
	for d := range t.devices {
		if d.userID == userID {
			theirs = append(theirs, d)
		}
	}
	slices.SortFunc(theirs, func(a, b device) int { return byAge(t.devices[b], b.hash, t.devices[a], a.hash) })
	for _, d := range theirs[min(n, len(theirs)):] {
		delete(t.devices, d)
	}
}

// forgetOthers forgets a user's devices but that of the session named, if it is
// the user's.
func (t *tx) forgetOthers(userID, except string) {
	s := t.sessions[except]
	maps.DeleteFunc(t.devices, func(d device, _ time.Time) bool {
		return d.userID == userID && (s.UserID != userID || s.Device != d.hash)
	})
}

// keepSessions ends a user's live sessions but the one just made and those active
// last, so that n are left.
func (t *tx) keepSessions(made auth.Session, n int, now time.Time) (ended []string) {
	var others []auth.Session
	for id, sess := range t.sessions {
		if sess.UserID == made.UserID && id != made.ID && sess.live(now) {
			others = append(others, sess.Session)
		}
	}
	slices.SortFunc(others, func(a, b auth.Session) int { return byAge(b.LastActiveAt, b.ID, a.LastActiveAt, a.ID) })
	for _, sess := range others[min(n-1, len(others)):] {
		ended = append(ended, t.revoke(made.UserID, auth.SessionFilter{ID: sess.ID}, now)...)
	}
	slices.Sort(ended)
	return ended
}

// mayReplay tells whether the counter before the current one may come late: not
// often, and not twice in a row, so that two who share a session are found out.
func (s *session) mayReplay(now time.Time) bool {
	return s.ReplayedAt.IsZero() || !now.Before(s.ReplayedAt.Add(auth.ReplayGap)) && s.Replayed+1 != s.Counter
}
