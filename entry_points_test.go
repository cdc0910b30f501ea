package auth_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// An account is made, and a message is sent, in one place each, where the limits
// are drawn: whatever door somebody adds, it leads there.
func TestOneDoorForAccountsAndMessages(t *testing.T) {
	may := map[string][]string{ // what is mentioned to where it may be
		"NewUser":         {"signup.go", "import.go", "import_batch.go", "host_account.go"}, // the application imports, and operators make accounts, without limits
		"ImportedRow":     {"import_batch.go"},
		"accountPermit{}": {"signup.go"},
		"sendPermit{}":    {"mail_send.go"},
		"permitFor":       {"mail_send.go", "signup.go"},
		"SealedMessage{}": {"mail_send.go"}, // by enclose, which asks maySend
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
		if name := typeName(n.Type); len(n.Elts) > 0 && (name == "accountPermit" || name == "sendPermit" || name == "SealedMessage") {
			found(name+"{}", n.Pos())
		}
	}
}

// typeName is the name of a literal's type, of this package or of package store.
func typeName(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		if of, ok := s.X.(*ast.Ident); ok && of.Name == "store" {
			return s.Sel.Name
		}
	}
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return ""
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

// Wherever the code gives an account another root, a number or an identity, it asks
// whether the account may grow, or there is a reason not to. A function that is not
// listed here fails.
func TestWhateverAddsARootAsks(t *testing.T) {
	may := map[string]string{ // function: why it need not ask
		"ConfirmPhone":  "",
		"linkIdentity":  "",
		"detachPhone":   "takes one away",
		"renewIdentity": "the account's already",
		"joinByEmail":   "", // by prove: the address is proved
		"undo":          "takes one away",
		"checkSignUp":   "of an account to make",
		"editRoots":     "an operator answers for it, and what nobody proved goes with a takeover",
	}
	seen := map[string]bool{}
	set, files := sources(t)
	for _, file := range files {
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			adds, asks := false, false
			ast.Inspect(f.Body, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CompositeLit:
					if typeName(n.Type) == "UserPatch" {
						for _, e := range n.Elts {
							kv, _ := e.(*ast.KeyValueExpr)
							key, _ := kv.Key.(*ast.Ident)
							adds = adds || key.Name == "Phone" || key.Name == "Link"
						}
					}
				case *ast.AssignStmt:
					for _, to := range n.Lhs {
						if s, ok := to.(*ast.SelectorExpr); ok && (s.Sel.Name == "Link" || s.Sel.Name == "Phone") {
							id, _ := s.X.(*ast.Ident)
							adds = adds || id != nil && (id.Name == "p" || id.Name == "patch")
						}
					}
				case *ast.CallExpr:
					if id, ok := n.Fun.(*ast.Ident); ok {
						asks = asks || id.Name == "mayGrow" || id.Name == "prove"
					}
				}
				return true
			})
			if !adds {
				continue
			}
			why, listed := may[f.Name.Name]
			seen[f.Name.Name] = true
			if !listed || why == "" && !asks {
				t.Errorf("%s: %s adds a root and does not ask mayGrow", set.Position(f.Pos()), f.Name.Name)
			}
		}
	}
	for name := range may {
		if !seen[name] {
			t.Errorf("%s adds no root: this test looks for the wrong thing", name)
		}
	}
}

// No other door: a patch gets its password from setPassword, which takes what
// choosePassword made; and the store deletes for DeleteUser alone.
func TestOneDoorForPasswordsAndDeletions(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]string{
		"a patch's password":   "setPassword",
		"a chosenPassword":     "choosePassword",
		"store.DeleteUser":     "endUser",
		"beforePasswordChange": "choosePassword",
		"beforeDelete":         "endUser",
	}
	found := map[string]int{}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			for _, what := range doorsIn(fn) {
				found[what]++
				if allowed[what] != fn.Name.Name {
					t.Errorf("%s: %s is another door to %s", f.Name(), fn.Name.Name, what)
				}
			}
		}
	}
	for what := range allowed {
		if found[what] == 0 {
			t.Errorf("nothing does %s any more", what)
		}
	}
}

// isNewString reports whether a call is new(string), a pointer to an empty text.
func isNewString(call *ast.CallExpr) bool {
	f, _ := call.Fun.(*ast.Ident)
	of, _ := call.Args[0].(*ast.Ident)
	return f != nil && of != nil && f.Name == "new" && of.Name == "string"
}

// doorsIn names what a function does of the above.
func doorsIn(fn *ast.FuncDecl) (list []string) {
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				s, ok := to.(*ast.SelectorExpr)
				if !ok || s.Sel.Name != "PasswordHash" {
					continue
				}
				if call, ok := n.Rhs[min(i, len(n.Rhs)-1)].(*ast.CallExpr); ok && len(call.Args) == 1 && isNewString(call) {
					continue // removes the password
				}
				if of, ok := s.X.(*ast.Ident); ok && slices.Contains([]string{"c", "nu", "im"}, of.Name) {
					continue // credentials that were read, and a new user's
				}
				list = append(list, "a patch's password")
			}
		case *ast.CompositeLit:
			switch of := typeName(n.Type); {
			case of == "chosenPassword" && len(n.Elts) > 0:
				list = append(list, "a chosenPassword")
			case of == "UserPatch":
				for _, e := range n.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok && kv.Key.(*ast.Ident).Name == "PasswordHash" {
						list = append(list, "a patch's password")
					}
				}
			}
		case *ast.CallExpr:
			s, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				break
			}
			if of, ok := s.X.(*ast.SelectorExpr); ok && of.Sel.Name == "store" && s.Sel.Name == "DeleteUser" {
				list = append(list, "store.DeleteUser")
			}
			if s.Sel.Name == "beforePasswordChange" || s.Sel.Name == "beforeDelete" {
				list = append(list, s.Sel.Name)
			}
		}
		return true
	})
	return list
}

// Sessions of accounts that were there before are made in one place, which tells
// of new devices: whatever flow somebody adds, it leads there.
func TestOneDoorForSessions(t *testing.T) {
	set, files := sources(t)
	found := map[string]int{}
	for in, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || len(lit.Elts) == 0 {
				return true
			}
			name := typeName(lit.Type)
			found[name]++
			switch name {
			case "NewDevice":
				if in != "device.go" {
					t.Errorf("%s says what is recorded of new devices", set.Position(lit.Pos()))
				}
			case "NewSession":
				if !slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool {
					kv, ok := e.(*ast.KeyValueExpr)
					if !ok {
						return false
					}
					key, ok := kv.Key.(*ast.Ident)
					value, isIdent := kv.Value.(*ast.Ident)
					return ok && isIdent && key.Name == "OnNewDevice" && value.Name == "on"
				}) {
					t.Errorf("%s makes a session past makeSession", set.Position(lit.Pos()))
				}
			}
			return true
		})
	}
	for _, name := range []string{"NewDevice", "NewSession"} {
		if found[name] == 0 {
			t.Errorf("%s is nowhere: this test looks for the wrong thing", name)
		}
	}
}
