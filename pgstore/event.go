package pgstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth"
)

// eventData is what an event says besides the columns that it has of its own.
type eventData struct {
	Actor      auth.Actor  `json:"actor"`
	SessionIDs []string    `json:"session_ids,omitempty"`
	Method     string      `json:"method,omitempty"`
	Provider   string      `json:"provider,omitempty"`
	Message    auth.Kind   `json:"message,omitempty"`
	Left       int         `json:"left,omitempty"`
	Reason     string      `json:"reason,omitempty"`
	Client     auth.Client `json:"client"`

	Other  *auth.Client `json:"other,omitempty"`
	Record *auth.Record `json:"record,omitempty"`
}

// dataOf leaves out the one character that Postgres keeps no text with: what
// strangers send must not make an event fail.
func dataOf(e auth.Event) eventData {
	clean := func(s string) string { return strings.ReplaceAll(s, "\x00", "") }
	d := eventData{e.Actor, e.SessionIDs, e.Method, e.Provider, e.Message, e.Left, clean(e.Reason), e.Client, e.Other, e.Record}
	d.Client.UserAgent = clean(d.Client.UserAgent)
	return d
}

const eventColumns = `e.id, e.type, e.at, coalesce(e.user_id::text, ''), coalesce(e.session_id::text, ''), e.data`

// insertEvents is for events that were chosen before, and filled in.
const insertEvents = `insert into auth.events (id, type, at, user_id, session_id, data)
	select e.id, e.type, e.at, e.user_id, e.session_id, e.data from jsonb_to_recordset($1::jsonb) as ` + eventRecord + `
	on conflict (id) do nothing`

// recorded are the parts of a statement that record the events ($1) and messages
// ($2) of its change in the same step. They follow a part about (user_id,
// outcome), which has a row if there was a change.
const recorded = `events as (
		insert into auth.events (id, type, at, user_id, session_id, data)
		select e.id, e.type, e.at, coalesce(e.user_id, about.user_id), e.session_id, e.data
		from about, jsonb_to_recordset($1::jsonb) as ` + eventRecord + ` where e."on" = about.outcome
		on conflict (id) do nothing
	), messages as (
		insert into auth.messages (` + messageNames + `)
		select ` + messageInputs + ` from about, jsonb_to_recordset($2::jsonb) as ` + messageRecord + ` where about.outcome = 0
		on conflict (id) do nothing
	)`

const selectEvents = `select ` + eventColumns + ` from auth.events e
	where ($1::timestamptz is null or (e.at, e.id) < ($1::timestamptz, $2::uuid))
	order by e.at desc, e.id desc limit $3::integer`

const selectEventsOfUser = `select ` + eventColumns + ` from auth.events e
	where e.user_id = $4::uuid and ($1::timestamptz is null or (e.at, e.id) < ($1::timestamptz, $2::uuid))
	order by e.at desc, e.id desc limit $3::integer`

const eventPage = 50 // when EventQuery has no limit

// Events lists events, newest first.
func (s *Store) Events(ctx context.Context, q auth.EventQuery) ([]auth.Event, error) {
	limit := q.Limit
	if limit <= 0 {
		limit = eventPage
	}
	var before pgtype.Timestamptz
	var beforeID *string
	if q.Before != nil {
		id, ok := canonical(q.Before.ID)
		if !ok {
			id = "00000000-0000-0000-0000-000000000000"
		}
		before, beforeID = pgtype.Timestamptz{Time: q.Before.At, Valid: true}, &id
	}
	sql, args := selectEvents, []any{before, beforeID, limit}
	if q.UserID != "" {
		id, ok := canonical(q.UserID)
		if !ok {
			return []auth.Event{}, ctx.Err()
		}
		sql, args = selectEventsOfUser, append(args, id)
	}
	var list []auth.Event
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		list = []auth.Event{}
		rows, err := q.Query(ctx, s.sql(sql), args...)
		if err != nil {
			return err
		}
		var e auth.Event
		var happened pgtype.Timestamptz
		var data []byte
		_, err = pgx.ForEachRow(rows, []any{&e.ID, (*string)(&e.Type), &happened, &e.UserID, &e.SessionID, &data}, func() error {
			var d eventData
			if err := json.Unmarshal(data, &d); err != nil {
				return fmt.Errorf("pgstore: event %s: %w", e.ID, err)
			}
			list = append(list, auth.Event{ID: e.ID, Type: e.Type, At: at(happened), UserID: e.UserID, SessionID: e.SessionID, Actor: d.Actor,
				SessionIDs: d.SessionIDs, Method: d.Method, Provider: d.Provider, Message: d.Message, Left: d.Left, Reason: d.Reason, Client: d.Client, Other: d.Other, Record: d.Record})
			return nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// chosen are the events of a change that ended so, with what only the store
// knows.
func chosen(c *auth.Change, r *result) []auth.OutcomeEvent {
	var list []auth.OutcomeEvent
	for _, o := range c.Events {
		ended := o.On == auth.OutcomeSessionsEnded && r.outcome == auth.OutcomeDone && len(r.ended) > 0
		onNewDevice := o.On == auth.OutcomeNewDevice && r.tells != nil
		if o.On != r.outcome && !ended && !onNewDevice {
			continue
		}
		if o.Event.UserID == "" {
			o.Event.UserID = r.about
		}
		if ended {
			o.Event.SessionIDs = slices.Sorted(slices.Values(r.ended))
		}
		if r.left != nil {
			o.Event.Left = *r.left
		}
		if r.other != nil {
			o.Event.Other = r.other
		}
		list = append(list, o)
	}
	return list
}
