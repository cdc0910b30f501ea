package auth_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"
)

// Every example program ends in order: its server finishes what it began, and then
// the service sends what waits to be sent.
func TestExamplesShutDown(t *testing.T) {
	paths, err := filepath.Glob("examples/*/main.go")
	if err != nil || len(paths) < 4 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ended := false
		ast.Inspect(file, func(n ast.Node) bool {
			if join, ok := n.(*ast.CallExpr); ok && called(join, "errors", "Join") && len(join.Args) == 2 {
				ended = ended || called(join.Args[0], "srv", "Shutdown") && called(join.Args[1], "a", "Close")
			}
			for _, dead := range []string{"Fatal", "Fatalf"} { // would leave out what was deferred
				if call, ok := n.(*ast.CallExpr); ok && called(call, "log", dead) && len(call.Args) > 0 {
					if _, nested := call.Args[0].(*ast.CallExpr); nested {
						t.Errorf("%s: log.%s of a call", path, dead)
					}
				}
			}
			return true
		})
		if !ended {
			t.Errorf("%s: no errors.Join(srv.Shutdown(…), a.Close(…))", path)
		}
	}
}

// called tells whether an expression calls on.name.
func called(e ast.Expr, on, name string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == on
}
