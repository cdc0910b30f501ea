package pgstore

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/authmount/auth/store"
)

// Every field of an event is stored, in a column or in its data: a field that is added to
// auth.Event has to be added here.
func TestEventsAreKeptWhole(t *testing.T) {
	columns := []string{"ID", "Type", "At", "UserID", "SessionID"}
	const kept = "-" // in this process only
	data := reflect.TypeFor[eventData]()
	for _, f := range reflect.VisibleFields(reflect.TypeFor[store.Event]()) {
		name := f.Tag.Get("json")
		other, ok := data.FieldByName(f.Name)
		switch {
		case name == kept || slices.Contains(columns, f.Name):
			if ok {
				t.Errorf("%s is kept twice", f.Name)
			}
		case !ok || other.Type != f.Type || other.Tag.Get("json") != name:
			t.Errorf("%s is not kept", f.Name)
		}
	}
}

// Text from strangers cannot make an event fail.
func TestEventsWithoutNUL(t *testing.T) {
	e := store.Event{Reason: "a\x00b", Client: store.Client{UserAgent: "c\x00d"}, Record: &store.Record{Changes: map[string]store.FieldChange{"name": {Before: "e\x00f", After: "g\x00h"}}}}
	b, err := json.Marshal(dataOf(e))
	if err != nil {
		t.Fatal(err)
	}
	var d eventData
	if err := json.Unmarshal(b, &d); err != nil || d.Reason != "ab" || d.Client.UserAgent != "cd" || d.Record.Changes["name"] != (store.FieldChange{Before: "ef", After: "gh"}) {
		t.Errorf("%s, %v", b, err)
	}
}
