package sqlitestore

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/store"
)

// addEvent records an event of a change and fills in the fields that only the store knows.
// ended is set if the event lists the sessions that ended.
func (t *tx) addEvent(ev store.Event, e *effect, ended []string) {
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
	t.keepEvent(ev)
}

// keepEvent stores an event, unless its id is known.
func (t *tx) keepEvent(ev store.Event) {
	ev.At = utc(ev.At)
	var record store.Record
	if ev.Record != nil {
		record = *ev.Record
	}
	ip := ""
	if ev.Client.IP.IsValid() {
		ip = ev.Client.IP.String()
	}
	t.exec(`insert into auth_events (id, at, type, user_id, actor_id, ip, target, request_id, outcome, event) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (id) do nothing`,
		oneForm(ev.ID), micros(ev.At), ev.Type, oneForm(ev.UserID), oneForm(ev.Actor.ID), ip, oneForm(record.Target), oneForm(record.RequestID), ev.Outcome(), t.text(ev))
}

// oneForm returns a UUID in its usual form, and another text unchanged. Filters of events
// match UUIDs in any form.
func oneForm(s string) string {
	if id, err := uuid.Parse(s); err == nil {
		return id.String()
	}
	return s
}

func scanEvent(scan row) (e store.Event) {
	scan(parsed{&e})
	return e
}

// Events lists events, newest first.
func (s *Store) Events(ctx context.Context, q store.EventQuery) (all []store.Event, err error) {
	query := &query{sql: `select event from auth_events where true`}
	query.named(`id`, q.ID)
	query.named(`user_id`, q.UserID)
	query.named(`actor_id`, q.ActorID)
	query.named(`request_id`, q.RequestID)
	if uuid.Validate(q.Target) == nil {
		query.named(`user_id`, q.Target)
	} else {
		query.named(`target`, q.Target)
	}
	if q.Involving != "" {
		query.where(`(user_id = ? or actor_id = ?)`, oneForm(q.Involving), oneForm(q.Involving))
	}
	if begin, ok := strings.CutSuffix(q.Type, "*"); ok {
		query.where(`type >= ? and type < ?`, begin, begin+last)
	} else if q.Type != "" {
		query.where(`type = ?`, q.Type)
	}
	if len(q.Types) > 0 {
		query.where(`type in (select value from json_each(?))`, jsonOf(q.Types))
	}
	if q.IP.IsValid() {
		query.where(`ip = ?`, q.IP.String())
	}
	if q.Outcome != "" {
		query.where(`outcome = ?`, q.Outcome)
	}
	query.within(`at`, q.From, q.To)
	if q.Before != nil {
		query.where(`(at, id) < (?, ?)`, micros(q.Before.At), oneForm(q.Before.ID))
	}
	limit := q.Limit
	if limit <= 0 {
		limit = store.DefaultEventLimit
	}
	query.end(` order by at desc, id desc limit ?`, limit)
	return listed(ctx, s, query, scanEvent)
}

// AddEvents records events that belong to no change.
func (s *Store) AddEvents(ctx context.Context, list []store.Event) error {
	return s.write(ctx, func(t *tx) error {
		for _, e := range list {
			t.keepEvent(e)
		}
		return nil
	})
}

// SweepEvents deletes up to limit events that are too old, and returns the count.
func (s *Store) SweepEvents(ctx context.Context, before, _ time.Time, limit int) (n int, err error) {
	err = s.write(ctx, func(t *tx) error {
		n = int(t.exec(`delete from auth_events where id in (select id from auth_events where at < ? order by at limit ?)`, micros(before), limit))
		return nil
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}
