package dashboard

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/memstore"
)

// said returns all texts in the code, except codes of the wire.
func said(t *testing.T) []string {
	t.Helper()
	var list []string
	add := func(e ast.Expr) {
		if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			if strings.ContainsAny(text, "abcdefghijklmnopqrstuvwxyz") {
				list = append(list, text)
			}
		}
	}
	names, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				sel, ok := n.Fun.(*ast.SelectorExpr)
				if !ok || len(n.Args) == 0 {
					return true
				}
				switch sel.Sel.Name {
				case "t", "to", "sorted", "secret", "fact":
					add(n.Args[0])
				case "suspect":
					add(n.Args[2])
				case "columns":
					for _, a := range n.Args {
						add(a)
					}
				case "choices":
					for i, a := range n.Args {
						if i%2 == 1 {
							add(a)
						}
					}
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && slices.Contains([]string{"title", "text", "submit", "done", "nav", "Label"}, key.Name) {
					add(n.Value)
				}
			}
			return true
		})
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Every text exists in German, and there is no unused text.
func TestTexts(t *testing.T) {
	t.Parallel()
	a, err := auth.New(t.Context(), memstore.New(), auth.WithDevMode(), auth.WithBaseURL("http://localhost:1/auth/v1"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close(t.Context()) })
	adm, err := admin.New(t.Context(), a, admin.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := New(adm, Options{})
	if err != nil {
		t.Fatal(err)
	}
	english, german := d.looks.langs.Texts("en"), d.looks.langs.Texts("de")
	for _, text := range said(t) {
		if (german[text] == "" || english[text] == "") && !strings.HasSuffix(text, "_metadata") {
			t.Errorf("there is no text for %q", text)
		}
	}
	for key, text := range english { // keys with spaces or capitals are the English text
		if strings.ContainsAny(key, " ABCDEFGHIJKLMNOPQRSTUVWXYZ") && key != text {
			t.Errorf("%q is %q in English", key, text)
		}
	}
}
