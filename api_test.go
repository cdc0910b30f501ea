package auth_test

import (
	"bytes"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth/internal/harness"
)

// TestAPI compares the exported API with its committed listing, so that it never changes
// by accident.
func TestAPI(t *testing.T) {
	var lines []string
	for _, dir := range publicPackages(t) {
		lines = append(lines, listAPI(t, dir)...)
	}
	got := strings.Join(lines, "\n") + "\n"
	if *harness.Update {
		if err := os.WriteFile("api.txt", []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("api.txt")
	if err != nil {
		t.Fatal(err)
	}
	old := strings.Split(strings.TrimSpace(string(want)), "\n")
	for _, l := range lines {
		if !slices.Contains(old, l) {
			t.Errorf("+ %s", l)
		}
	}
	for _, l := range old {
		if !slices.Contains(lines, l) {
			t.Errorf("- %s", l)
		}
	}
	if t.Failed() {
		t.Log("if this is meant, run make api and note it in CHANGELOG.md")
	}
}

// publicPackages returns the folders of the packages that an importer may use.
func publicPackages(t *testing.T) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", "{{.Name}} {{.ImportPath}}", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	const root = "github.com/authmount/auth"
	var dirs []string
	for line := range strings.Lines(string(out)) {
		name, path, _ := strings.Cut(strings.TrimSpace(line), " ")
		dir := "." + strings.TrimPrefix(path, root)
		if parts := strings.Split(dir, "/"); name != "main" && !slices.Contains(parts, "internal") && !slices.Contains(parts, "examples") {
			dirs = append(dirs, dir)
		}
	}
	if !slices.Contains(dirs, ".") || len(dirs) < 2 {
		t.Fatalf("packages %v", dirs)
	}
	return dirs
}

func listAPI(t *testing.T, dir string) []string {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	sources, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sources {
		if strings.HasSuffix(s, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, s, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(fset, files, "github.com/authmount/auth/"+dir)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	add := func(decl ast.Node) {
		var b bytes.Buffer
		if err := printer.Fprint(&b, fset, decl); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, p.Name+": "+strings.Join(strings.Fields(b.String()), " "))
	}
	funcs := func(list []*doc.Func) {
		for _, f := range list {
			f.Decl.Body = nil
			add(f.Decl)
		}
	}
	values := func(list []*doc.Value) {
		for _, v := range list {
			for _, spec := range v.Decl.Specs {
				add(spec)
			}
		}
	}
	values(p.Consts)
	values(p.Vars)
	funcs(p.Funcs)
	for _, typ := range p.Types {
		add(typ.Decl)
		values(typ.Consts)
		values(typ.Vars)
		funcs(typ.Funcs)
		funcs(typ.Methods)
	}
	slices.Sort(lines)
	return lines
}
