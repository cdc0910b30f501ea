package admin

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// A row's result is reported whole: a refusal by its code and message, its field, and
// whether the actor lacks the permission, which skips it. All other errors are internal
// errors.
func TestWhyARowWasNotDone(t *testing.T) {
	invalid := auth.Reject(auth.CodeValidationFailed, "Not so.")
	invalid.Fields = map[string]string{"email": "is no address"}
	for name, c := range map[string]struct {
		err  error
		want rowResult
	}{
		"refused":            {auth.Reject(auth.CodeUserBanned, "No."), rowResult{Result: resultFailed, Code: auth.CodeUserBanned, Message: "No."}},
		"refused, wrapped":   {fmt.Errorf("row: %w", auth.Reject(auth.CodeUserBanned, "No.")), rowResult{Result: resultFailed, Code: auth.CodeUserBanned, Message: "No."}},
		"about a field":      {invalid, rowResult{Result: resultFailed, Code: auth.CodeValidationFailed, Field: "email", Message: "is no address"}},
		"too strong":         {auth.Reject(auth.CodeTargetStronger, "No."), rowResult{Result: resultSkipped, Code: auth.CodeTargetStronger, Message: "No."}},
		"may not":            {auth.Reject(auth.CodeMissingPermission, "No."), rowResult{Result: resultFailed, Code: auth.CodeMissingPermission, Message: "No."}},
		"of no kind":         {errors.New("the cause"), rowResult{Result: resultFailed, Code: auth.CodeInternal}},
		"a value is another": {&store.ConflictError{Field: "phone"}, rowResult{Result: resultFailed, Code: auth.CodeInternal, Field: "phone"}},
	} {
		c.want.Row, c.want.ID = 7, "u"
		if got := (rowResult{Row: 7, ID: "u", Result: "?", Code: "?", Message: "?"}).withReason(c.err); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	list := []rowResult{{Result: resultDone}, {Result: resultDone}, {Result: resultDone}, {Result: resultSkipped}, {Result: resultSkipped}, {Result: resultFailed}}
	if n := tally(list); n != (store.JobCounts{Done: 3, Skipped: 2, Failed: 1}) {
		t.Errorf("%+v", n)
	}
	if n := tally(append(list, rowResult{})); n.Failed != 2 {
		t.Errorf("a row of which nothing is known: %+v", n)
	}
	for i, r := range failedRows(3, invalid) {
		if r != (rowResult{}).withReason(invalid) {
			t.Errorf("%d: %+v", i, r)
		}
	}
	if w := failingChunk(2, invalid); w.uniqueValues != nil {
		t.Errorf("it has the unique values %v", w.uniqueValues)
	} else if list, err := w.do(t.Context(), Actor{}, store.Job{}); err != nil || len(list) != 2 || list[1].Code != auth.CodeValidationFailed {
		t.Errorf("%+v, %v", list, err)
	}
}

// Outages, which may be retried, are distinguished from refusals.
func TestOutagesAreToldFromRefusals(t *testing.T) {
	over, end := context.WithCancel(t.Context())
	end()
	refusal, fault := auth.Reject(auth.CodeUserBanned, ""), auth.Reject(auth.CodeInternal, "")
	odd := auth.Reject(auth.CodeUnavailable, "")
	odd.Status = 500
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want bool
	}{
		"nothing":                    {t.Context(), nil, false},
		"nothing, at the end":        {over, nil, false},
		"a refusal":                  {t.Context(), refusal, false},
		"a refusal, wrapped":         {t.Context(), fmt.Errorf("row: %w", refusal), false},
		"a refusal, at the end":      {over, refusal, true},
		"a fault of ours":            {t.Context(), fault, false},
		"a fault of ours, at an end": {over, fault, true},
		"the store is away":          {t.Context(), auth.Reject(auth.CodeUnavailable, ""), true},
		"by the least such status":   {t.Context(), odd, true},
		"of no kind":                 {t.Context(), errors.New("away"), true},
	} {
		if got := outage(c.ctx, c.err); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// Two chunks are done concurrently if they share no value. A chunk that may take any value
// is done alone.
func TestChunksThatAreApart(t *testing.T) {
	of := func(keys ...string) chunkWork {
		w := chunkWork{uniqueValues: map[string]bool{}}
		for _, k := range keys {
			w.uniqueValues[k] = true
		}
		return w
	}
	for name, c := range map[string]struct {
		one, other chunkWork
		want       bool
	}{
		"of nothing":             {of(), of(), true},
		"of something else":      {of("a", "b"), of("c"), true},
		"of the same":            {of("a", "b"), of("b", "c"), false},
		"of anything":            {chunkWork{}, of("a"), false},
		"of nothing or anything": {of(), chunkWork{}, false},
	} {
		if c.one.independentOf(c.other) != c.want || c.other.independentOf(c.one) != c.want {
			t.Errorf("%s: not %t", name, c.want)
		}
	}
	for _, k := range jobKinds() {
		if got, ok := kindOf(store.Job{Kind: k.name}); !ok || got.name != k.name {
			t.Errorf("%s: %+v, %t", k.name, got, ok)
		}
	}
	if k, ok := kindOf(store.Job{Kind: "other"}); ok || k.name != "" {
		t.Errorf("%+v is known", k)
	}
	if len(jobKinds()) != 2 {
		t.Errorf("%d kinds", len(jobKinds()))
	}
}

// A job keeps its actor whole, and runs as nobody else.
func TestActorsOfJobs(t *testing.T) {
	id := func(aal string, permissions ...string) *Identity {
		return &Identity{ID: "x", Label: "X", AAL: aal, Permissions: permissions, AuthTime: time.Unix(1, 0)}
	}
	actors := []struct {
		acting *acting
		kept   jobActor
		goesOn Actor
	}{
		{&acting{user: &auth.User{ID: "u"}, session: auth.Session{ID: "s"}}, jobActor{Kind: store.ActorUser, ID: "u", Session: "s"}, Actor{caller: auth.Caller{UserID: "u", SessionID: "s"}, inJob: true}},
		{&acting{key: &store.APIKey{ID: "k", Name: "n", Revision: 3}}, jobActor{Kind: store.ActorKey, ID: "k", Name: "n", At: 3}, Actor{keyID: "k", keyName: "n", keyAt: 3, inJob: true}},
		{&acting{external: id("aal2", "a")}, jobActor{Kind: store.ActorExternal, External: id("aal2", "a")}, Actor{external: id("aal2", "a"), inJob: true}},
		{&acting{by: auth.Authority{System: "cron"}}, jobActor{Kind: store.ActorSystem, Name: "cron"}, Actor{system: "cron", inJob: true}},
	}
	for i, c := range actors {
		if got := c.acting.forJob(); !reflect.DeepEqual(got, c.kept) {
			t.Errorf("%d: kept as %+v", i, got)
		}
		if got := c.kept.actor(); !reflect.DeepEqual(got, c.goesOn) {
			t.Errorf("%d: goes on as %+v", i, got)
		}
		for j, other := range actors {
			if got := c.kept.same(other.kept); got != (i == j) {
				t.Errorf("%d and %d: %t", i, j, got)
			}
		}
	}
	x := jobActor{Kind: store.ActorExternal, External: id("aal2", "a", "b")}
	for name, c := range map[string]struct {
		other jobActor
		want  bool
	}{
		"in another order":  {jobActor{Kind: store.ActorExternal, External: id("aal2", "b", "a", "a")}, true},
		"who may less":      {jobActor{Kind: store.ActorExternal, External: id("aal2", "a")}, false},
		"who showed less":   {jobActor{Kind: store.ActorExternal, External: id("aal1", "a", "b")}, false},
		"of another kind":   {jobActor{Kind: store.ActorUser, External: id("aal2", "a", "b")}, false},
		"whom nobody knows": {jobActor{Kind: store.ActorExternal}, false},
	} {
		if x.same(c.other) != c.want || c.other.same(x) != c.want {
			t.Errorf("%s: not %t", name, c.want)
		}
	}
	for _, o := range []jobActor{{Kind: store.ActorUser, ID: "u", Session: "t"}, {Kind: store.ActorUser, ID: "v", Session: "s"}} {
		if o.same(actors[0].kept) {
			t.Errorf("%+v is the same", o)
		}
	}
	if o := actors[1].kept; o.same(jobActor{Kind: store.ActorKey, ID: "k", Name: "n", At: 4}) {
		t.Error("a key that was rotated is the same")
	}
}

// The row number of an event of an import is read in every form that stores return.
func TestRowsOfEvents(t *testing.T) {
	of := func(v any) auth.Event {
		return auth.Event{Record: &store.Record{Changes: map[string]store.FieldChange{"row": {After: v}}}}
	}
	for name, c := range map[string]struct {
		e    auth.Event
		want int
	}{
		"kept as it was": {of(7), 7}, "kept as JSON": {of(7.0), 7}, "no number": {of("7"), 0}, "none": {of(nil), 0},
		"of another event": {auth.Event{Record: &store.Record{}}, 0}, "without a record": {auth.Event{}, 0},
	} {
		if got := rowOf(c.e); got != c.want {
			t.Errorf("%s: %d", name, got)
		}
	}
}
