package auth_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth/internal/harness"
)

// snippetParams are the values that a snippet may use without a declaration.
const snippetParams = `t *testing.T
ctx context.Context
err error
mux *http.ServeMux
r *http.Request
req *http.Request
rec *httptest.ResponseRecorder
notes http.Handler
db *pgstore.Store
a *auth.Auth
adm *admin.Admin
c *authclient.Client
url, id, key, clientID, clientSecret, userID, accountSID, authToken string
secret []byte`

var (
	snippet  = regexp.MustCompile("(?ms)^```go\n(.*?)^```")
	declared = regexp.MustCompile(`(?m)^(\w+(?:, \w+)*) :=`)
)

// The Go snippets of the documents compile. "…" in a list of arguments represents more
// arguments.
func TestSnippets(t *testing.T) {
	if harness.OnAnotherStore() {
		return // the documents do not depend on the store
	}
	overlay, packages := map[string]string{}, []string{"./internal/snippets"}
	dir := t.TempDir()
	n := 0
	docs, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range append(docs, "README.md") {
		text, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range snippet.FindAllSubmatchIndex(text, -1) {
			n++
			name := fmt.Sprintf("snippet%d.go", n)
			path := filepath.Join(dir, name)
			where := fmt.Sprintf("%s:%d", doc, 1+bytes.Count(text[:m[2]], []byte("\n")))
			code := string(text[m[2]:m[3]])
			in := filepath.Join("internal", "snippets")
			if strings.HasPrefix(code, "package ") { // a whole program
				in = filepath.Join(in, fmt.Sprint("program", n))
				packages = append(packages, "./"+filepath.ToSlash(in))
			} else {
				code = snippetFile(n, where, code)
			}
			if err := os.WriteFile(path, []byte(code), 0o600); err != nil { //nolint:gosec // under t.TempDir
				t.Fatal(err)
			}
			overlay[absolute(t, filepath.Join(in, name))] = path
		}
	}
	if n < 20 {
		t.Fatalf("only %d snippets found", n)
	}
	b, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, b, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", append([]string{"build", "-gcflags=-e", "-overlay", list}, packages...)...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// snippetFile turns a snippet into a file. Errors in it name the position in the document.
func snippetFile(n int, where, code string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "package snippets\n\n")
	for _, pkg := range []string{
		"context", "encoding/json", "errors", "fmt", "log", "net/http", "net/http/httptest", "os", "slices", "strings", "sync", "testing", "time",
		"github.com/authmount/auth", "github.com/authmount/auth/admin", "github.com/authmount/auth/authclient", "github.com/authmount/auth/authtest",
		"github.com/authmount/auth/dashboard", "github.com/authmount/auth/hibp", "github.com/authmount/auth/passkey", "github.com/authmount/auth/pgstore", "github.com/authmount/auth/pgstore/rls", "github.com/authmount/auth/sqlitestore",
		"github.com/authmount/auth/provider", "github.com/authmount/auth/smtpmail", "github.com/authmount/auth/store", "github.com/authmount/auth/turnstile",
		"github.com/authmount/auth/twiliosms", "github.com/jackc/pgx/v5",
	} {
		alias := strings.TrimSuffix(pkg, "/v5")
		alias = alias[strings.LastIndex(alias, "/")+1:]
		if regexp.MustCompile(`\b` + alias + `\.[A-Z]`).MatchString(code + snippetParams) {
			fmt.Fprintf(&b, "import %q\n", pkg)
		}
	}
	fmt.Fprintf(&b, "\nfunc snippet%d(%s) {{\n//line %s\n%s\n", n, strings.ReplaceAll(snippetParams, "\n", ", "), where, strings.NewReplacer(", …)", ")", ", …,", ",").Replace(code))
	for _, m := range declared.FindAllStringSubmatch(code, -1) {
		for name := range strings.SplitSeq(m[1], ", ") {
			fmt.Fprintf(&b, "_ = %s\n", name)
		}
	}
	b.WriteString("}}\n")
	return b.String()
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var (
	namedTest = regexp.MustCompile("`((?:Test|Fuzz|Example)[A-Z]\\w*)`")
	namedFile = regexp.MustCompile("`((?:[\\w.-]+/)*[\\w.-]+\\.(?:go|sql|json|txt|yml|md)|(?:[\\w.-]+/)+)`")
	aTest     = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example)\w+)\(`)
)

// The tests and files that the documents name exist.
func TestDocumentsNameWhatExists(t *testing.T) {
	tests, files := inRepository(t)
	docs, err := filepath.Glob("docs/*.md")
	if err != nil || len(docs) < 5 {
		t.Fatal(docs, err)
	}
	for _, doc := range append(docs, "README.md", "ARCHITECTURE.md", "SECURITY.md", "CONTRIBUTING.md") {
		b, err := os.ReadFile(doc)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(b), "\n") {
			for _, m := range namedTest.FindAllStringSubmatch(line, -1) {
				if !slices.Contains(tests, m[1]) {
					t.Errorf("%s:%d: there is no %s", doc, i+1, m[1])
				}
			}
			for _, m := range namedFile.FindAllStringSubmatch(line, -1) {
				// A bare name may be a file in the package that a table describes.
				if !slices.ContainsFunc(files, func(f string) bool { return f == m[1] || strings.HasSuffix(f, "/"+m[1]) }) {
					t.Errorf("%s:%d: there is no %s", doc, i+1, m[1])
				}
			}
		}
	}
}

// inRepository returns the tests by name, and the files and folders (with a trailing
// slash) by path.
func inRepository(t *testing.T) (tests, files []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir():
			files = append(files, filepath.ToSlash(path)+"/")
			return nil
		}
		files = append(files, filepath.ToSlash(path))
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(path) //nolint:gosec // our own tree
		for _, m := range aTest.FindAllSubmatch(b, -1) {
			tests = append(tests, string(m[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests, files
}
