package admin_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/memstore"
)

var update = flag.Bool("update", false, "write testdata/ledger and openapi.json")

// What each operation asks for is written down a second time, apart from the code that
// the other tests read it from: one that forgets its permission, its proof or how strong
// its actor has to be differs from that.
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

// The document of a service with its admin side is committed, for clients to generate
// from, and so that a change of it is seen.
func TestDocumentFile(t *testing.T) {
	o := newOffice(t, memstore.New())
	var doc bytes.Buffer
	if err := json.Indent(&doc, o.document(), "", "\t"); err != nil {
		t.Fatal(err)
	}
	doc.WriteByte('\n')
	const name = "openapi.json"
	if *update {
		if err := os.WriteFile(name, doc.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if committed, err := os.ReadFile(name); err != nil || !bytes.Equal(committed, doc.Bytes()) {
		t.Errorf("%s is not what the handler serves (%v): go test ./admin -run TestDocumentFile -update", name, err)
	}
}

// Whatever a service's options are, its document is the same, but for who lets operators
// in: which is why the harness reads it once.
func TestOneDocumentForAllOptions(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]admin.Options{"Authmount's own admins": {}, "the application's own": {Authorize: authorize}} {
		plain := newOfficeWith(t, memstore.New(), of).document()
		of.RequireMFA, of.TellImpersonated = auth.Off, true
		other := newOfficeWith(t, memstore.New(), of, auth.WithSettings(auth.Settings{Password: auth.Off, SignUp: auth.Off}), auth.WithCookies(auth.CookieOptions{}),
			auth.WithCORS(), auth.WithHooks(auth.Hooks{BeforeDelete: func(context.Context, auth.User) error { return nil }}), auth.WithTrustedProxies("10.0.0.0/8"),
			auth.WithSecretKeys(auth.SecretKey{Key: "sk_test_of_the_options", Scopes: []string{"*"}}))
		if !bytes.Equal(plain, other.document()) {
			t.Errorf("%s: another document", name)
		}
	}
}
