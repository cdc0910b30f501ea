package admin

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// An exported account is what encoding/json writes of its view, field by field, and a cell
// is empty where there is nothing.
func TestExportedFieldsAreThoseOfTheView(t *testing.T) {
	t.Parallel()
	full := auth.User{
		ID: nobodys, Email: "a<b>@example.com", EmailVerifiedAt: time.Unix(1, 2000).UTC(), Phone: "+491", PhoneVerifiedAt: time.Unix(3, 0).UTC(), FullName: `"Ada" & \co`, Roles: []string{"x", "<y>"}, MFAEnabled: true,
		Identities: []auth.Identity{{ID: nobodys, Provider: "github", Subject: "7"}}, UserMetadata: map[string]any{"a": "<"}, AppMetadata: map[string]any{"b": []any{1.5, nil}},
		CreatedAt: time.Unix(5, 6000).UTC(), UpdatedAt: time.Unix(7, 0).UTC(), LastSignInAt: time.Unix(8, 0).UTC(), BannedUntil: time.Unix(9, 0).UTC(),
	}
	least := auth.User{ID: nobodys, CreatedAt: full.CreatedAt, UpdatedAt: full.UpdatedAt}
	for name, u := range map[string]auth.User{"an account with everything": full, "an account with the least": least} {
		for _, withheld := range []bool{false, true} {
			row := exportedRow{UserRow: &store.UserRow{User: u}, status: "active", withheld: withheld, hash: u.FullName, totp: u.Phone}
			row.UserMetadataJSON, row.AppMetadataJSON = textOf(t, auth.ViewOf(u).UserMetadata), textOf(t, auth.ViewOf(u).AppMetadata)
			view := struct {
				userView
				Hash     *string `json:"password_hash"`
				TOTP     *string `json:"totp_secret"`
				Withheld bool    `json:"secrets_withheld"`
			}{userView{UserView: auth.ViewOf(u), Status: "active"}, optional(row.hash), optional(row.totp), withheld}
			want := map[string]json.RawMessage{}
			if err := json.Unmarshal(textOf(t, view), &want); err != nil {
				t.Fatal(err)
			}
			for _, f := range allExported {
				var line, cells bytes.Buffer
				if o := newUserWriter([]string{f.name}, FormatNDJSON, &line); o.page([]exportedRow{row}) != nil || line.String() != `{"`+f.name+`":`+string(want[f.name])+"}\n" {
					t.Errorf("%s: %s is %s, want %s", name, f.name, line.String(), want[f.name])
				}
				if o := newUserWriter([]string{f.name}, FormatCSV, &cells); o.page([]exportedRow{row}) != nil || (string(want[f.name]) == "null") != (cells.String() == "\n") {
					t.Errorf("%s: %s is %q in a table", name, f.name, cells.String())
				}
			}
		}
	}
}

func textOf(t *testing.T, v any) json.RawMessage {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
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
	e.Actor = auth.Actor{Kind: store.ActorUser, ID: "id", SessionID: "as"}
	e.Record = &store.Record{Actor: "label", Target: "t", RequestID: "q", Operation: "o", Changes: map[string]store.FieldChange{"f": {Before: 1, After: "=2"}}}
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
