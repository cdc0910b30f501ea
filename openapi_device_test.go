package auth_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/authmount/auth"
)

// Whatever request a program signs in with may say which device it is, and the
// document says so. A refresh makes no session, and callbacks come from browsers.
func TestSignInsDocumentTheDevice(t *testing.T) {
	var doc struct {
		Paths map[string]struct {
			Post struct {
				Parameters []struct{ Name, In string }
				Responses  map[string]json.RawMessage
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
		documented := false
		for _, p := range item.Post.Parameters {
			documented = documented || p.In == "header" && p.Name == "X-Device-Id"
		}
		if !documented {
			t.Errorf("POST %s does not document X-Device-Id", path)
		}
	}
	if found < 7 {
		t.Errorf("%d sign-ins found", found)
	}
}
