package pgstore

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/authmount/auth/store"
)

// eventData holds the fields of an event that have no column of their own.
type eventData struct {
	Actor      store.Actor  `json:"actor"`
	SessionIDs []string     `json:"session_ids,omitempty"`
	Method     string       `json:"method,omitempty"`
	Provider   string       `json:"provider,omitempty"`
	Message    store.Kind   `json:"message,omitempty"`
	Left       int          `json:"left,omitempty"`
	Reason     string       `json:"reason,omitempty"`
	Client     store.Client `json:"client"`

	Other  *store.Client `json:"other,omitempty"`
	Record *store.Record `json:"record,omitempty"`
}

// dataOf returns an event's data without NUL characters, which Postgres cannot store.
// Input from strangers must not make recording an event fail.
func dataOf(e store.Event) eventData {
	d := eventData{e.Actor, e.SessionIDs, e.Method, e.Provider, e.Message, e.Left, clean(e.Reason), e.Client, e.Other, cleanRecord(e.Record)}
	d.Client.UserAgent = clean(d.Client.UserAgent)
	return d
}

// cleanRecord removes NUL characters from a record, which may hold the fields of a
// refused request.
func cleanRecord(r *store.Record) *store.Record {
	if r == nil {
		return nil
	}
	c := *r
	c.Actor, c.Target, c.RequestID = clean(c.Actor), clean(c.Target), clean(c.RequestID)
	own := false // c.Changes is a copy
	for field, v := range r.Changes {
		if isClean(v.Before) && isClean(v.After) {
			continue
		}
		if !own {
			c.Changes, own = maps.Clone(r.Changes), true
		}
		c.Changes[field] = store.FieldChange{After: clean(fmt.Sprint(v.After)), Before: clean(fmt.Sprint(v.Before))}
	}
	return &c
}

// isClean reports whether Postgres can store a value. It avoids marshalling for the
// most frequent types.
func isClean(v any) bool {
	switch v := v.(type) {
	case nil, bool, int, time.Time:
		return true
	case string:
		return !strings.Contains(v, "\x00")
	}
	b, err := json.Marshal(v)
	return err != nil || !bytes.Contains(b, []byte(`\u0000`))
}

// clean removes NUL characters, which Postgres cannot store in text.
func clean(s string) string { return strings.ReplaceAll(s, "\x00", "") }

const eventColumns = `e.id, e.type, e.at, coalesce(e.user_id::text, ''), coalesce(e.session_id::text, ''), e.data`

// noteEvents records events that were selected and completed before.
const noteEvents = `select auth.note_events($1::jsonb, null, null, '{}')`

// recorded holds the parts of a statement that record the events ($1) and messages ($2)
// of its change, and the log of these messages, in the same step. They follow a part
// about (user_id, outcome), which has a row if there was a change.
const recorded = `events as (
		select auth.note_events($1::jsonb, about.user_id, array[about.outcome], '{}') as noted from about
	), post as materialized (
		select m.* from about, jsonb_to_recordset($2::jsonb) as ` + messageRecord + ` where about.outcome = 0
	), messages as (
		` + insertPost + `
	), logged as (
		` + logPost + `
	)`

// noted is true if the events were recorded or there were none; see noting.
const noted = `coalesce((select events.noted from events), true)`

// chosen returns the events of a change for the outcome that it had, completed with
// data that only the store knows.
func chosen(c *store.Change, r *result) []store.OutcomeEvent {
	var list []store.OutcomeEvent
	for _, o := range c.Events {
		ended := o.On == store.OutcomeSessionsEnded && r.outcome == store.OutcomeDone && len(r.ended) > 0
		onNewDevice := o.On == store.OutcomeNewDevice && r.tells != nil
		if o.On != r.outcome && !ended && !onNewDevice {
			continue
		}
		if o.Event.UserID == "" {
			o.Event.UserID = r.about
		}
		if ended || o.Event.Record != nil && len(r.ended) > 0 {
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

// noting returns a change's events as the parameter of its statement. After an event
// could not be recorded, it leaves out events with a fallback (store.Change.Unrecorded)
// for a while, so that not every call waits for the same lock.
func (s *Store) noting(c *store.Change) (input string, tried bool) {
	if c.Unrecorded != nil && s.troubled.now() {
		return none, false
	}
	return eventsInput(c.Unrecorded == nil, c.Events), true
}

// unrecorded passes the events of a change that was made without them to
// store.Change.Unrecorded.
func (s *Store) unrecorded(c *store.Change, r *result, tried bool) {
	if tried {
		s.troubled.begin()
	}
	var list []store.Event
	for _, o := range chosen(c, r) {
		list = append(list, o.Event)
	}
	if len(list) > 0 {
		c.Unrecorded(list)
	}
}

// troubled remembers that recording events failed.
type troubled struct{ until atomic.Int64 }

// troubleFor is the time for which it does so.
const troubleFor = 5 * time.Second

func (t *troubled) now() bool { return time.Now().UnixNano() < t.until.Load() }
func (t *troubled) begin()    { t.until.Store(time.Now().Add(troubleFor).UnixNano()) }
func (t *troubled) end()      { t.until.Store(0) }
