package admin

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/authmount/auth"
)

// What an export writes quickly is what encoding/json writes: for every character, and
// for every field of every kind of account.
func TestExportedJSONIsThatOfThePackage(t *testing.T) {
	t.Parallel()
	same := func(name string, v any) {
		t.Helper()
		got, err := appendJSON([]byte("before"), v)
		want, errWant := json.Marshal(v)
		if err != nil || errWant != nil || string(got) != "before"+string(want) {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	for c := range 0x250 {
		for _, text := range []string{string(rune(c)), "a" + string(rune(c)) + "b", string([]byte{byte(c)})} {
			same("a text", &text)
		}
	}
	full := auth.User{
		ID: nobodys, Email: "a<b>@example.com", EmailVerifiedAt: time.Unix(1, 2).UTC(), Phone: "+491", PhoneVerifiedAt: time.Unix(3, 0).UTC(), FullName: `"Ada" & \co`, Roles: []string{"x", "<y>"}, MFAEnabled: true,
		Identities: []auth.Identity{{ID: nobodys, Provider: "github", Subject: "7"}}, UserMetadata: map[string]any{"a": "<"}, AppMetadata: map[string]any{"b": []any{1.5, nil}},
		CreatedAt: time.Unix(5, 6).UTC(), UpdatedAt: time.Unix(7, 0).UTC(), LastSignInAt: time.Unix(8, 0).UTC(), BannedUntil: time.Unix(9, 0).UTC(),
	}
	for name, u := range map[string]auth.User{"an account with everything": full, "an account with nothing": {}} {
		for _, withheld := range []bool{false, true} {
			row := exportedRow{userView: userView{UserView: u.View(), Status: "active"}, withheld: withheld, hash: optional(u.FullName), totp: optional(u.Phone)}
			for _, f := range allExported {
				v := f.of(&row)
				same(name+", "+f.name, v)
				cell, err := cellOf(v)
				if err != nil {
					t.Error(err)
				}
				if is := reflect.ValueOf(v); is.Kind() == reflect.Pointer && is.IsNil() && cell != "" {
					t.Errorf("%s of %s is %q in a table", f.name, name, cell)
				}
			}
		}
	}
}

const nobodys = "01a1fb4c-2b13-7a71-806e-d67843451400"

// Each column of the audit log's export is named once, and a row has as many cells as there are.
func TestColumnsOfTheAuditLog(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, name := range eventColumns() {
		if seen[name] {
			t.Errorf("%s is there twice", name)
		}
		seen[name] = true
	}
	e := auth.Event{ID: "1", Type: "x.y", At: time.Unix(1, 0).UTC(), UserID: "u", SessionID: "s", SessionIDs: []string{"a", "b"}, Method: "m", Provider: "p", Reason: "r"}
	e.Actor = auth.Actor{Kind: auth.ActorUser, ID: "id", SessionID: "as"}
	e.Record = &auth.Record{Actor: "label", Target: "t", RequestID: "q", Operation: "o", Changes: map[string]auth.FieldChange{"f": {Before: 1, After: "=2"}}}
	e.Client.UserAgent = "agent"
	cells, err := viewEvent(e).cells()
	if err != nil || len(cells) != len(eventColumns()) {
		t.Fatalf("%d cells of %d, %v", len(cells), len(eventColumns()), err)
	}
	want := map[string]string{
		"id": "1", "at": "1970-01-01T00:00:01Z", "type": "x.y", "outcome": string(e.Outcome()), "actor_kind": "user", "actor_id": "id", "actor": "label", "actor_session_id": "as", "user_id": "u", "target": "t",
		"session_id": "s", "session_ids": "a b", "method": "m", "provider": "p", "reason": "r", "ip": "", "user_agent": "agent", "request_id": "q", "operation": "o", "changes": `{"f":{"before":1,"after":"=2"}}`,
	}
	for i, name := range eventColumns() {
		if cells[i] != want[name] {
			t.Errorf("%s is %q, want %q", name, cells[i], want[name])
		}
	}
}
