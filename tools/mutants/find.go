package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// mutant is one change of the code: bytes [start,end) of a file become text.
type mutant struct {
	id         int
	file       string // relative to the module, with slashes
	line       int
	fn         string // "(*Auth).take"; "" outside functions
	start, end int
	text       string
	before     string // the changed lines
	after      string

	open, shut int  // the function's body, without its braces
	void       bool // the function returns nothing
	mark       int  // start of the statement that contains it
	alone      bool // needs its own build

	killer string // the test that failed
}

func (m *mutant) dir() string   { return path.Dir(m.file) }
func (m *mutant) place() string { return fmt.Sprintf("%s:%d", m.file, m.line) }

// key identifies a mutant, even if its line moves.
func (m *mutant) key() string {
	return fmt.Sprintf("%s %s\n- %s\n+ %s\n", m.file, m.fn, m.before, cmp.Or(m.after, "nothing"))
}

// matters reports whether a file matters to security. It lists the files that do not, so
// that new files count by default.
func matters(file string) bool {
	for _, dir := range []string{
		"examples/", "bench/", "authtest/", "storetest/", "scripts/", "tools/", "openapi/", // not part of a service
		"internal/axetest/", "internal/browsertest/", "internal/harness/", "internal/hostileclient/", "internal/peertest/", "internal/pgstores/", "internal/pgtest/", "internal/storetap/", // test helpers
		"internal/clientgen/", "internal/openapi/", // generators
	} {
		if strings.HasPrefix(file, dir) {
			return false
		}
	}
	if screen, ok := strings.CutPrefix(file, "dashboard/"); ok {
		switch screen {
		case "action.go", "dashboard.go", "first_owner.go", "markup.go", "page.go", "routes.go", "visit.go":
			return true
		}
		return false // displays results of operations, which check permissions themselves
	}
	switch file {
	case "document.go", "page_template.go", "internal/outbox/templates.go": // texts for people
		return false
	}
	return strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go")
}

// candidates returns all possible mutants.
func candidates(root string, only *regexp.Regexp) ([]*mutant, error) {
	var files []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		switch rel = filepath.ToSlash(rel); {
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") && rel != ".":
			return filepath.SkipDir
		case !d.IsDir() && matters(rel):
			files = append(files, rel)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	variadic := map[string]int{}
	sources := make([]*source, 0, len(files))
	for _, file := range files {
		s, err := parse(root, file)
		if err != nil {
			return nil, err
		}
		s.noteVariadic(variadic)
		sources = append(sources, s)
	}
	var all []*mutant
	for _, s := range sources {
		s.variadic = variadic
		for _, m := range s.mutants() {
			if only.MatchString(oneLine(m.key())) {
				all = append(all, m)
			}
		}
	}
	return all, nil
}

// source is a parsed file.
type source struct {
	file     string
	text     string
	fset     *token.FileSet
	tree     *ast.File
	variadic map[string]int // function name to the index of its first optional argument
	found    []*mutant
	fn       *ast.FuncDecl
	stack    []ast.Node
}

func parse(root, file string) (*source, error) {
	raw, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file))) //nolint:gosec // of this module
	if err != nil {
		return nil, err
	}
	s := &source{file: file, text: string(raw), fset: token.NewFileSet()}
	s.tree, err = parser.ParseFile(s.fset, file, raw, parser.SkipObjectResolution)
	return s, err
}

func (s *source) noteVariadic(into map[string]int) {
	for _, d := range s.tree.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Type.Params.NumFields() == 0 {
			continue
		}
		last := f.Type.Params.List[len(f.Type.Params.List)-1]
		if _, ok := last.Type.(*ast.Ellipsis); ok {
			into[f.Name.Name] = f.Type.Params.NumFields() - 1
		}
	}
}

func (s *source) offset(p token.Pos) int { return s.fset.Position(p).Offset }

// mutants collects the file's mutants.
func (s *source) mutants() []*mutant {
	for _, d := range s.tree.Decls {
		if s.fn, _ = d.(*ast.FuncDecl); s.fn != nil {
			if s.fn.Body != nil {
				s.walk(s.fn.Body)
			}
			continue
		}
		s.walk(d)
	}
	return s.found
}

func (s *source) walk(n ast.Node) {
	s.stack = nil
	ast.Inspect(n, func(n ast.Node) bool {
		if n == nil {
			s.stack = s.stack[:len(s.stack)-1]
			return true
		}
		if unimportant(n) {
			return false
		}
		s.stack = append(s.stack, n)
		s.mutate(n)
		return true
	})
}

// add adds a mutant that replaces the text between two positions.
func (s *source) add(from, to token.Pos, text string) { s.addAt(s.offset(from), s.offset(to), text) }

func (s *source) addAt(start, end int, text string) {
	m := &mutant{file: s.file, start: start, end: end, text: text}
	m.line = 1 + strings.Count(s.text[:start], "\n")
	begin := 1 + strings.LastIndex(s.text[:start], "\n")
	rest := strings.Index(s.text[end:], "\n")
	stop := len(s.text)
	if rest >= 0 {
		stop = end + rest
	}
	m.before = oneLine(s.text[begin:stop])
	m.after = oneLine(s.text[begin:start] + text + s.text[end:stop])
	if s.fn == nil {
		m.alone = true
	} else {
		m.fn, m.alone = nameOf(s.fn), hasLabel(s.fn)
		m.open, m.shut = s.offset(s.fn.Body.Lbrace)+1, s.offset(s.fn.Body.Rbrace)
		m.void = s.fn.Type.Results.NumFields() == 0
		m.mark = s.offset(s.statement())
	}
	s.found = append(s.found, m)
}

// hasLabel reports whether a function has a label, so that its body cannot be copied.
func hasLabel(f *ast.FuncDecl) (yes bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		_, is := n.(*ast.LabeledStmt)
		yes = yes || is
		return true
	})
	return yes
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// nameOf returns a function's name with its receiver.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv.NumFields() == 0 {
		return f.Name.Name
	}
	t, star := f.Recv.List[0].Type, ""
	if p, ok := t.(*ast.StarExpr); ok {
		t, star = p.X, "*"
	}
	if g, ok := t.(*ast.IndexExpr); ok {
		t = g.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return "(" + star + id.Name + ")." + f.Name.Name
	}
	return f.Name.Name
}

// statement returns the start of the innermost statement that is being walked.
func (s *source) statement() token.Pos {
	for i := len(s.stack) - 1; i > 0; i-- {
		stmt, ok := s.stack[i].(ast.Stmt)
		if !ok {
			continue
		}
		var list []ast.Stmt
		switch p := s.stack[i-1].(type) {
		case *ast.BlockStmt:
			list = p.List
		case *ast.CaseClause:
			list = p.Body
		case *ast.CommClause:
			list = p.Body
		}
		for _, l := range list {
			if _, isCase := l.(*ast.CaseClause); l == stmt && !isCase {
				if _, isComm := l.(*ast.CommClause); !isComm {
					return stmt.Pos()
				}
			}
		}
	}
	return s.fn.Body.Lbrace + 1
}
