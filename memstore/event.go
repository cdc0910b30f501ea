package memstore

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/store"
)

const maxEvents = 10_000 // the newest that are kept

// addEvent records an event and fills in the fields that only the store knows. ended is set
// if the event lists the sessions that ended.
func (s *Store) addEvent(ev store.Event, e *effect, ended []string) {
	if ev.UserID == "" {
		ev.UserID = e.about
	}
	if ended != nil {
		ev.SessionIDs = ended
	}
	if e.codes {
		ev.Left = e.left
	}
	if e.other != nil {
		ev.Other = e.other
	}
	s.keepEvent(ev)
}

// keepEvent stores an event, unless its id is known.
func (s *Store) keepEvent(ev store.Event) {
	ev = copyEvent(ev)
	i, there := slices.BinarySearchFunc(s.events, ev, compareEvents)
	if there {
		return
	}
	s.events = slices.Insert(s.events, i, ev)
	if n := len(s.events) - maxEvents; n > 0 {
		clear(s.events[:n])
		s.events = s.events[n:] // moves nothing; append reallocates now and then
	}
}

// Events lists events, newest first. It scans all of them.
func (s *Store) Events(ctx context.Context, q store.EventQuery) ([]store.Event, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	limit, end := q.Limit, len(s.events)
	if limit <= 0 {
		limit = store.DefaultEventLimit
	}
	if q.Before != nil {
		end, _ = slices.BinarySearchFunc(s.events, copyEvent(*q.Before), compareEvents)
	}
	list := []store.Event{}
	for i := end - 1; i >= 0 && len(list) < limit; i-- {
		if eventPicked(&s.events[i], &q) {
			list = append(list, copyEvent(s.events[i]))
		}
	}
	return list, nil
}

// eventPicked reports whether an event matches all of a query except its place in the list.
func eventPicked(e *store.Event, q *store.EventQuery) bool {
	r := e.Record
	if r == nil {
		r = &store.Record{}
	}
	named := func(want string, got ...string) bool {
		return want == "" || slices.ContainsFunc(got, func(g string) bool { return g != "" && (g == want || sameID(g, want)) })
	}
	target := r.Target
	if uuid.Validate(q.Target) == nil {
		target = e.UserID
	}
	begin, isBegin := strings.CutSuffix(q.Type, "*")
	return (len(q.Types) == 0 || slices.Contains(q.Types, e.Type)) && named(q.ID, e.ID) && named(q.UserID, e.UserID) && named(q.Involving, e.UserID, e.Actor.ID) && named(q.ActorID, e.Actor.ID) &&
		named(q.Target, target) && named(q.RequestID, r.RequestID) &&
		(q.Type == "" || string(e.Type) == q.Type || isBegin && strings.HasPrefix(string(e.Type), begin)) &&
		(!q.IP.IsValid() || e.Client.IP == q.IP) && (q.Outcome == "" || e.Outcome() == q.Outcome) &&
		(q.From.IsZero() || !e.At.Before(q.From)) && (q.To.IsZero() || e.At.Before(q.To))
}

// sameID reports whether two texts are the same UUID.
func sameID(a, b string) bool {
	x, err := uuid.Parse(a)
	y, err2 := uuid.Parse(b)
	return err == nil && err2 == nil && x == y
}

// AddEvents records events that belong to no change.
func (s *Store) AddEvents(ctx context.Context, list []store.Event) error {
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for _, e := range list {
		s.keepEvent(e)
	}
	return nil
}

// SweepEvents deletes up to limit events that are too old, and returns the count.
func (s *Store) SweepEvents(ctx context.Context, before, _ time.Time, limit int) (int, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	n := 0
	for n < len(s.events) && n < limit && s.events[n].At.Before(before) {
		n++
	}
	s.events = slices.Delete(s.events, 0, n)
	return n, nil
}

func compareEvents(a, b store.Event) int { return byAge(a.At, a.ID, b.At, b.ID) }

// copyEvent omits the error and the device, which only the process of the event needs.
func copyEvent(e store.Event) store.Event {
	e.SessionIDs, e.Err, e.Client.Device = slices.Clone(e.SessionIDs), nil, ""
	e.At, e.Record = utc(e.At), e.Record.Clone()
	return e
}
