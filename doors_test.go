package auth_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// An account is made, and a message is sent, in one place each, where the limits
// are drawn: whatever door somebody adds, it leads there.
func TestOneDoorForAccountsAndMessages(t *testing.T) {
	may := map[string][]string{ // what is mentioned to where it may be
		"NewUser":         {"account.go", "import.go", "import_batch.go", "store.go", "store_user.go", "kit_users.go"}, // the application imports, and operators make accounts, without limits
		"ImportedRow":     {"import_batch.go", "store_import.go"},
		"accountPermit{}": {"account.go"},
		"sendPermit{}":    {"mail_send.go"},
		"permitFor":       {"mail_send.go", "account.go"},
		"SealedMessage{}": {"mail_seal.go"}, // by enclose, which asks maySend
	}
	seen := map[string]bool{}
	set, files := sources(t)
	for name, file := range files {
		found := func(what string, at token.Pos) {
			seen[what] = true
			if !slices.Contains(may[what], name) {
				t.Errorf("%s has %s, which belongs to %v", set.Position(at), what, may[what])
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr: // the key is a field's name
				ast.Inspect(n.Value, func(inner ast.Node) bool { mention(inner, found); return true })
				return false
			default:
				mention(n, found)
			}
			return true
		})
	}
	for what := range may {
		if !seen[what] {
			t.Errorf("%s is nowhere: this test looks for the wrong thing", what)
		}
	}
}

// mention tells found what a node is, if it is one of those that are looked for.
func mention(n ast.Node, found func(string, token.Pos)) {
	switch n := n.(type) {
	case *ast.Ident:
		if n.Name == "NewUser" || n.Name == "ImportedRow" || n.Name == "permitFor" {
			found(n.Name, n.Pos())
		}
	case *ast.CompositeLit:
		if id, ok := n.Type.(*ast.Ident); ok && len(n.Elts) > 0 && (id.Name == "accountPermit" || id.Name == "sendPermit" || id.Name == "SealedMessage") {
			found(id.Name+"{}", n.Pos())
		}
	}
}

// sources are the parsed files of the package, without tests.
func sources(t *testing.T) (*token.FileSet, map[string]*ast.File) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	set, files := token.NewFileSet(), map[string]*ast.File{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		if files[name], err = parser.ParseFile(set, name, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	return set, files
}
