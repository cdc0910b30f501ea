package pgstore

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth/store"
)

// The audit log: its lists, events that come without a change, and its sweep.

// Expressions on an event's data. eventActor and bySomebody are written as in
// events_actor_idx. That index leaves out events that users caused for themselves;
// these are found as events about the user.
const (
	eventActor  = `(e.data -> 'actor' ->> 'id')`
	bySomebody  = eventActor + ` is distinct from e.user_id::text`
	eventDenied = `(e.data -> 'record' ->> 'denied')`
	eventFailed = `e.type in ('` + string(store.EventSignInFailed) + `', '` + string(store.EventMessageFailed) + `')`
)

// kinds finds all event types in a range, with one index lookup for each. There are
// only a few dozen types, however many events there are.
const kinds = `with recursive kinds as (
		(select e.type from auth.events e where e.type ~>=~ ?::text and e.type ~<~ ?::text order by e.type using ~<~ limit 1)
	union all
		select (select e.type from auth.events e where e.type ~>~ k.type and e.type ~<~ ?::text order by e.type using ~<~ limit 1)
		from kinds k where k.type is not null
	)
	`

// The limit is part of the statement's text. If it were a parameter, Postgres would
// plan each list anew, which takes as long as reading a page.
const newestFirst = ` order by e.at desc, e.id desc limit `

// ofType and ofKind are ranges, sorted in the order of the index of types, so that
// Postgres reads the newest events of a type from that index. With an equality Postgres
// might scan all events by time until it has found enough. If other filters leave few
// events, that index is not worth reading; fewOfType and fewOfPrefix are written so
// that it does not apply.
const (
	ofType      = `e.type ~>=~ ?::text and e.type ~<=~ ?::text`
	ofKind      = `e.type ~>=~ k.type and e.type ~<=~ k.type`
	newestOf    = ` order by e.type using ~>~, e.at desc, e.id desc limit `
	fewOfType   = `e.type || '' = ?::text`
	fewOfPrefix = `e.type || '' like ?::text`
	oneOfTypes  = `e.type || '' = any (?::text[])`
)

// condition is a condition of a statement. Each ? in it is an argument.
type condition struct {
	sql  string
	args []any
}

// eventsQuery returns the statement for a list of events. ok is false if no event can
// match. The statement has only the conditions of its query, so that each combination
// has its own plan.
func eventsQuery(q store.EventQuery) (b *query, ok bool) {
	limit := q.Limit
	if limit <= 0 {
		limit = store.DefaultEventLimit
	}
	ways, narrow, ok := waysTo(q)
	if !ok {
		return nil, false
	}
	all, few := filters(q)
	narrow = narrow || few
	b = &query{}
	begin, isPrefix := strings.CutSuffix(q.Type, "*")
	switch {
	case isPrefix && !narrow: // the newest of each type
		below := begin[:len(begin)-1] + "/" // the character after the dot
		b.add(kinds, begin, below, below)
		b.add(`select e.* from kinds k cross join lateral (`)
		b.events(append(all, condition{ofKind, nil}), newestOf, limit)
		b.add(`) e where k.type is not null` + newestFirst + strconv.Itoa(limit))
		return b, true
	case isPrefix:
		all = append(all, condition{fewOfPrefix, []any{prefix(begin)}})
	case q.Type != "" && narrow:
		all = append(all, condition{fewOfType, []any{q.Type}})
	case q.Type != "":
		b.events(append(all, condition{ofType, []any{q.Type, q.Type}}), newestOf, limit)
		return b, true
	}
	if len(ways) == 1 {
		b.events(append(all, ways[0]...), newestFirst, limit)
		return b, true
	}
	b.add(`select e.* from ((`)
	for i, way := range ways {
		if i > 0 {
			b.add(`) union all (`)
		}
		b.events(append(all[:len(all):len(all)], way...), newestFirst, limit)
	}
	b.add(`)) e` + newestFirst + strconv.Itoa(limit))
	return b, true
}

// events adds the select of events that meet all conditions.
func (b *query) events(all []condition, order string, limit int) {
	b.add(`select ` + eventColumns + ` from auth.events e where true`)
	for _, c := range all {
		b.where(c.sql, c.args...)
	}
	b.add(order + strconv.Itoa(limit))
}

// waysTo returns the conditions on id, actor and user as alternatives. An event matches
// if it meets all conditions of one alternative, and no event meets two. few reports
// whether there are such conditions. ok is false if no event can match.
func waysTo(q store.EventQuery) (ways [][]condition, few, ok bool) {
	var fixed []condition
	about := func(id string) {
		var isID bool
		if id, isID = canonical(id); !isID {
			ok = false
		}
		fixed = append(fixed, condition{`e.user_id = ?::uuid`, []any{id}})
	}
	ok = true
	if q.ID != "" {
		id, isID := canonical(q.ID)
		if !isID {
			return nil, false, false
		}
		fixed = append(fixed, condition{`e.id = ?::uuid`, []any{id}})
	}
	if q.UserID != "" {
		about(q.UserID)
	}
	if q.Target != "" {
		if _, isID := canonical(q.Target); isID {
			about(q.Target)
		} else {
			fixed = append(fixed, condition{`(e.data -> 'record' ->> 'target') = ?::text`, []any{asKept(q.Target)}})
		}
	}
	actor, involved := idOrName(q.ActorID), idOrName(q.Involving)
	if actor == "" && q.ActorID != "" || involved == "" && q.Involving != "" {
		return nil, false, false // a name without valid characters matches no event, rather than all
	}
	if involved != "" && actor != "" && actor != involved {
		about(involved) // another user caused the event
	}
	if !ok {
		return nil, false, false
	}
	who := actor
	if who == "" {
		who = involved
	}
	few = len(fixed) > 0 || who != ""
	if who == "" {
		return [][]condition{fixed}, few, true
	}
	theirs := append(fixed[:len(fixed):len(fixed)], condition{eventActor + ` = ?::text and ` + bySomebody, []any{who}})
	if _, isID := canonical(who); !isID {
		return [][]condition{theirs}, few, true
	}
	own := append(fixed[:len(fixed):len(fixed)], condition{`e.user_id = ?::uuid`, []any{who}})
	if actor != "" {
		own = append(own, condition{eventActor + ` = ?::text`, []any{who}})
	}
	return [][]condition{own, theirs}, few, true
}

// idOrName returns an id in its stored form, and a name as it is.
func idOrName(s string) string {
	if id, ok := canonical(s); ok {
		return id
	}
	return asKept(s)
}

// asKept returns a text as events store it.
func asKept(s string) string { return asText(clean(s)) }

// filters returns the other conditions. few reports whether one of them selects few
// events.
func filters(q store.EventQuery) (all []condition, few bool) {
	if q.IP.IsValid() {
		all, few = append(all, condition{`(e.data -> 'client' ->> 'ip') = ?::text`, []any{q.IP.String()}}), true
	}
	if q.RequestID != "" {
		all, few = append(all, condition{`(e.data -> 'record' ->> 'request_id') = ?::text`, []any{asKept(q.RequestID)}}), true
	}
	if len(q.Types) > 0 {
		all, few = append(all, condition{oneOfTypes, []any{typeNames(q.Types)}}), true
	}
	switch q.Outcome {
	case store.EventDenied:
		all, few = append(all, condition{eventDenied + ` = 'true'`, nil}), true
	case store.EventFailed:
		all = append(all, condition{eventFailed + ` and ` + eventDenied + ` is distinct from 'true'`, nil})
	case store.EventDone:
		all = append(all, condition{eventDenied + ` is distinct from 'true' and not ` + eventFailed, nil})
	}
	if !q.From.IsZero() {
		all = append(all, condition{`e.at >= ?::timestamptz`, []any{q.From}})
	}
	if !q.To.IsZero() {
		all = append(all, condition{`e.at < ?::timestamptz`, []any{q.To}})
	}
	if q.Before != nil {
		id, ok := canonical(q.Before.ID)
		if !ok {
			id = "00000000-0000-0000-0000-000000000000"
		}
		all = append(all, condition{`(e.at, e.id) < (?::timestamptz, ?::uuid)`, []any{q.Before.At, id}})
	}
	return all, few
}

// Events lists events, newest first.
func (s *Store) Events(ctx context.Context, q store.EventQuery) ([]store.Event, error) {
	b, ok := eventsQuery(q)
	if !ok {
		return []store.Event{}, ctx.Err()
	}
	var list []store.Event
	err := s.do(ctx, func(ctx context.Context, on querier) error {
		list = []store.Event{}
		rows, err := on.Query(ctx, s.sql(b.sql.String()), b.args...)
		if err == nil {
			list, err = pgx.AppendRows(list, rows, eventOf)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// eventOf reads eventColumns.
func eventOf(row pgx.CollectableRow) (e store.Event, err error) {
	var happened pgtype.Timestamptz
	var data []byte
	if err := row.Scan(&e.ID, (*string)(&e.Type), &happened, &e.UserID, &e.SessionID, &data); err != nil {
		return e, err
	}
	var d eventData
	if err := json.Unmarshal(data, &d); err != nil {
		return e, fmt.Errorf("pgstore: event %s: %w", e.ID, err)
	}
	e.At, e.Actor, e.SessionIDs, e.Method, e.Provider = at(happened), d.Actor, d.SessionIDs, d.Method, d.Provider
	e.Message, e.Left, e.Reason, e.Client, e.Other, e.Record = d.Message, d.Left, d.Reason, d.Client, d.Other, d.Record
	return e, nil
}

// AddEvents records events without a change.
func (s *Store) AddEvents(ctx context.Context, list []store.Event) error {
	if len(list) == 0 {
		return ctx.Err()
	}
	outcomes := make([]store.OutcomeEvent, len(list))
	for i, e := range list {
		outcomes[i].Event = e
	}
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		_, err := q.Exec(ctx, s.sql(noteEvents), eventsInput(true, outcomes))
		return err
	})
	if err == nil {
		s.troubled.end()
	}
	return err
}

const sweepEvents = `with over as (select id from auth.events where at < $1::timestamptz limit $2::integer for update skip locked)
	delete from auth.events e using over where e.id = over.id`

// SweepEvents deletes up to limit events that are older than before. Only the instance
// that holds the sweep lease does so; the others return 0.
func (s *Store) SweepEvents(ctx context.Context, before, now time.Time, limit int) (int, error) {
	total := 0
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		total = 0
		mine, err := s.sweeps(ctx, q, now)
		if err != nil || !mine {
			return err
		}
		tag, err := q.Exec(ctx, s.sql(sweepEvents), before, limit)
		total = int(tag.RowsAffected())
		return err
	})
	return total, err
}

// typeNames returns types as texts, because drivers without the types of parameters
// encode only built-in types.
func typeNames(types []store.EventType) []string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	return names
}
