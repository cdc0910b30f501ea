package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/authmount/auth"
)

const (
	maxEvents = 10_000 // so many are kept, the newest
	eventsFor = 90 * 24 * time.Hour
	eventPage = 50 // when EventQuery has no limit
)

// addEvent records an event with what only the store knows. ended is given for
// OutcomeSessionsEnded.
func (s *Store) addEvent(ev auth.Event, e *effect, ended []string) {
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
	ev = copyEvent(ev)
	i, _ := slices.BinarySearchFunc(s.events, ev, compareEvents)
	s.events = slices.Insert(s.events, i, ev)
	if n := len(s.events) - maxEvents; n > 0 {
		clear(s.events[:n])
		s.events = s.events[n:] // moves nothing; append makes room now and then
	}
}

// Events lists events, newest first.
func (s *Store) Events(ctx context.Context, q auth.EventQuery) ([]auth.Event, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	limit, end := q.Limit, len(s.events)
	if limit <= 0 {
		limit = eventPage
	}
	if q.Before != nil {
		end, _ = slices.BinarySearchFunc(s.events, copyEvent(*q.Before), compareEvents)
	}
	list := []auth.Event{}
	for i := end - 1; i >= 0 && len(list) < limit; i-- {
		if q.UserID == "" || s.events[i].UserID == q.UserID {
			list = append(list, copyEvent(s.events[i]))
		}
	}
	return list, nil
}

// sweepEvents deletes up to limit events that are too old, and counts them.
func (s *Store) sweepEvents(now time.Time, limit int) int {
	oldest := now.Add(-eventsFor)
	n := 0
	for n < len(s.events) && n < limit && s.events[n].At.Before(oldest) {
		n++
	}
	s.events = slices.Delete(s.events, 0, n)
	return n
}

func compareEvents(a, b auth.Event) int { return byAge(a.At, a.ID, b.At, b.ID) }

// copyEvent leaves out the error and the device, which are for the process in
// which it happened.
func copyEvent(e auth.Event) auth.Event {
	e.SessionIDs, e.Err, e.Client.Device = slices.Clone(e.SessionIDs), nil, ""
	e.At, e.Record = utc(e.At), e.Record.Clone()
	return e
}
