package auth_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
)

// The document is committed for client generators, and so that its changes are reviewed.
func TestDocumentFile(t *testing.T) {
	var doc bytes.Buffer
	if err := json.Indent(&doc, harness.Document(), "", "  "); err != nil {
		t.Fatal(err)
	}
	doc.WriteByte('\n')
	const name = "openapi.json"
	if *harness.Update {
		if err := os.WriteFile(name, doc.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if committed, err := os.ReadFile(name); err != nil || !bytes.Equal(committed, doc.Bytes()) {
		t.Errorf("%s is not what the handler serves (%v): go test -run TestDocumentFile -update .", name, err)
	}
}

// The table in docs/settings.md is generated from the declarations of the settings.
func TestSettingsPage(t *testing.T) {
	const name, begin, end = "docs/settings.md", "-update . -->\n", "<!-- /written -->"
	page, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(page), begin)
	was, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s has no place for the table", name)
	}
	is := auth.SettingsRows()
	if *harness.Update {
		if err := os.WriteFile(name, []byte(before+begin+is+end+after), 0o600); err != nil { //nolint:gosec // the name is a constant
			t.Fatal(err)
		}
	} else if was != is {
		t.Errorf("the table in %s is not that of the declarations: go test -run TestSettingsPage -update .", name)
	}
}
