package auth_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
)

// Whatever request a program signs in with may say which device it is, and how the
// session goes out, and the document says so. A refresh makes no session, and callbacks come from browsers.
func TestSignInsDocumentTheDevice(t *testing.T) {
	type parameter struct{ Name, In string }
	var doc struct {
		Paths map[string]struct {
			Post struct {
				Parameters  []parameter
				RequestBody json.RawMessage
				Responses   map[string]json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(auth.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	found := 0
	for path, item := range doc.Paths {
		if !bytes.Contains(item.Post.Responses["200"], []byte(`schemas/Session"`)) || path == "/refresh" || strings.HasSuffix(path, "/callback") {
			continue
		}
		found++
		for _, name := range []string{"X-Device-Id", "X-Session-Transport"} {
			if !slices.ContainsFunc(item.Post.Parameters, func(p parameter) bool { return p.In == "header" && p.Name == name }) {
				t.Errorf("POST %s does not document %s", path, name)
			}
		}
		if !bytes.Contains(item.Post.RequestBody, []byte(`"remember"`)) {
			t.Errorf("POST %s does not document remember", path)
		}
	}
	if found < 7 {
		t.Errorf("%d sign-ins found", found)
	}
}
