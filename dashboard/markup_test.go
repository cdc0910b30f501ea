package dashboard

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

// The content of a page passes the methods of a drawing that escape it. The compiler
// enforces that markup is constant, as long as nothing converts a text to it and nothing
// else writes to a page.
func TestMarkup(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	drawn, wrote := 0, 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range f.Imports {
			if slices.Contains([]string{`"html/template"`, `"text/template"`}, i.Path.Value) {
				t.Errorf("%s imports %s: what it makes would have to be escaped a second time, or not at all", name, i.Path.Value)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				fun, ok := n.Fun.(*ast.Ident)
				if !ok || fun.Name != "markup" {
					return true
				}
				drawn++
				if _, constant := n.Args[0].(*ast.BasicLit); !constant {
					t.Errorf("%s makes markup of what is not written there", set.Position(n.Pos()))
				}
			case *ast.SelectorExpr:
				if n.Sel.Name == "written" {
					wrote++
					if name != "markup.go" {
						t.Errorf("%s writes to a page past the methods of markup.go", set.Position(n.Pos()))
					}
				}
			case *ast.CompositeLit:
				if is, ok := n.Type.(*ast.Ident); ok && is.Name == "drawing" && name != "markup.go" {
					t.Errorf("%s makes a drawing of a buffer that it can write to; newDrawing does", set.Position(n.Pos()))
				}
			}
			return true
		})
	}
	if drawn == 0 || wrote == 0 {
		t.Error("nothing makes markup, or writes it: this looks for it wrongly")
	}
}
