package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/openapi"
	"github.com/authmount/auth/memstore"
)

var update = harness.Update

// The requirements of each operation are written down a second time, separately from the
// code that the other tests read. An operation that lacks its permission, its recent
// authentication or the required strength of its actor differs from that.
func TestOperationsAskForWhatIsWrittenDown(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, row := range admin.Table() {
		line := fmt.Sprintf("%s: %s", row.Pattern, row.Permission)
		for what, so := range map[string]bool{"proof of the last 15 minutes": row.StepUp, "also to oneself": row.Self, "not recorded": row.Reads, "returns a secret": row.Secret, row.Strength: row.Strength != ""} {
			if so {
				line += ", " + what
			}
		}
		parts := strings.Split(line, ", ")
		slices.Sort(parts[1:])
		lines = append(lines, strings.Join(parts, ", "))
	}
	slices.Sort(lines)
	got, path := strings.Join(lines, "\n")+"\n", filepath.Join("testdata", "ledger", "operations.txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	compareLedgers(t, string(want), got)
}

// The admin side's part of the document is committed, so that clients can be generated
// from it and changes are seen.
func TestDocumentFile(t *testing.T) {
	o := newOffice(t, memstore.New())
	doc, err := openapi.Format(adminsShare(t, o.document()))
	if err != nil {
		t.Fatal(err)
	}
	const name = "openapi.json"
	if *update {
		if err := os.WriteFile(name, doc, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if committed, err := os.ReadFile(name); err != nil || !bytes.Equal(committed, doc) {
		t.Errorf("%s is not what the handler serves (%v): go test ./admin -run TestDocumentFile -update", name, err)
	}
}

// adminsShare removes from a document the operations of the root's openapi.json, the HEAD
// of each GET, and the components that only these use.
func adminsShare(t *testing.T, doc []byte) []byte {
	t.Helper()
	var all struct {
		OpenAPI    json.RawMessage                       `json:"openapi"`
		Info       json.RawMessage                       `json:"info"`
		Servers    json.RawMessage                       `json:"servers"`
		Security   json.RawMessage                       `json:"security"`
		Tags       json.RawMessage                       `json:"tags"`
		Paths      map[string]map[string]json.RawMessage `json:"paths"`
		Components map[string]map[string]json.RawMessage `json:"components"`
	}
	if err := json.Unmarshal(doc, &all); err != nil {
		t.Fatal(err)
	}
	used := map[string]bool{}
	var follow func(text []byte)
	follow = func(text []byte) {
		for _, ref := range reference.FindAllSubmatch(text, -1) {
			if name := string(ref[0]); !used[name] {
				used[name] = true
				follow(all.Components[string(ref[1])][string(ref[2])])
			}
		}
	}
	for path, operations := range all.Paths {
		delete(operations, "head")
		if !strings.HasPrefix(path, "/admin/") {
			delete(all.Paths, path)
			continue
		}
		for _, operation := range operations {
			follow(operation)
		}
	}
	for section, components := range all.Components {
		for name := range components {
			if section != "securitySchemes" && !used[`"#/components/`+section+`/`+name+`"`] {
				delete(components, name)
			}
		}
	}
	var share bytes.Buffer
	enc := json.NewEncoder(&share)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(all); err != nil {
		t.Fatal(err)
	}
	return share.Bytes()
}

var reference = regexp.MustCompile(`"#/components/(\w+)/([^"]+)"`)

// The document is the same for all options of a service, except for the admission of
// operators. That is the reason that the harness reads it once.
func TestOneDocumentForAllOptions(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]admin.Options{"Authmount's own admins": {}, "the application's own": {Authenticate: authorize}} {
		plain := newOfficeWith(t, memstore.New(), of).document()
		of.RequireMFA, of.NotifyImpersonated = auth.Off, true
		other := newOfficeWith(t, memstore.New(), of, auth.WithSettings(auth.Settings{Password: auth.Off, SignUp: auth.Off}), auth.WithCookies(auth.CookieOptions{}),
			auth.WithCORS(), auth.WithHooks(auth.Hooks{BeforeDelete: func(context.Context, auth.User) error { return nil }}), auth.WithTrustedProxies("10.0.0.0/8"),
			auth.WithSecretKeys(auth.SecretKey{Key: "sk_test_of_the_options", Scopes: []string{"*"}}))
		if !bytes.Equal(plain, other.document()) {
			t.Errorf("%s: another document", name)
		}
	}
}
