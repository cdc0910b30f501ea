package auth_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/authmount/auth/internal/harness"
)

// The document is committed: for clients to generate from, and so that a change of it is
// seen.
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
