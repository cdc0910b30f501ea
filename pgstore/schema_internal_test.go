package pgstore

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
)

func TestInSchemaText(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"select 1":                     "select 1",
		"select * from auth.users":     "select * from zz.users",
		"auth.users":                   "zz.users",
		"(auth.uid())":                 "(zz.uid())",
		"a,auth.b\n\tauth.c\n":         "a,zz.b\n\tzz.c\n",
		"'auth.users'::regclass":       "'zz.users'::regclass",
		"create schema auth":           "create schema zz",
		"create schema auth;":          "create schema zz;",
		"schema if not exists auth;":   "schema if not exists zz;",
		"pg_notify('auth_revoked', x)": "pg_notify('zz_revoked', x)",
		"auth.a auth.b auth.c":         "zz.a zz.b zz.c",

		"oauth.x unauth.x _auth.x 1auth.x": "oauth.x unauth.x _auth.x 1auth.x",
		"u.auth.x":                         "u.auth.x",
		"to authenticated":                 "to authenticated",
		"schema authority":                 "schema authority",
		"authauth.x":                       "authauth.x",
		"'auth' auth, auth: auth. auth.":   "'auth' auth, auth: auth. auth.",
		"auth_revoked 'auth_revoked_'":     "auth_revoked 'auth_revoked_'",
		"see auth.New":                     "see auth.New",
	} {
		if got := inSchema(text, "zz"); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
		if got := inSchema(text, defaultSchema); got != text {
			t.Errorf("%q becomes %q in its own schema", text, got)
		}
	}
}

// written returns all SQL texts of this package: its migrations, and the strings in its
// source.
func written(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, m := range migrations() {
		texts["migration "+m.name] = m.sql
	}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if texts[fset.Position(lit.Pos()).String()], err = strconv.Unquote(lit.Value); err != nil {
					t.Error(err)
				}
			}
			return true
		})
	}
	return texts
}

// In every statement and migration, the schema's name is replaced everywhere, and other
// text is not. The names that may follow it are known from the migrations.
func TestInSchemaEverywhere(t *testing.T) {
	texts := written(t)
	names := []string{"sessions_ordinal_seq"} // created with a column
	made := regexp.MustCompile(`create (?:or replace )?(?:unlogged )?(?:table|function|view|type|sequence)(?: if not exists)? auth\.([a-z_]+)`)
	for _, text := range texts {
		for _, m := range made.FindAllStringSubmatch(text, -1) {
			names = append(names, m[1])
		}
	}
	if len(names) < 15 {
		t.Fatalf("only %v are made", names)
	}
	theirs := regexp.MustCompile(`\bauth\.(` + strings.Join(names, "|") + `)\b`)
	leftOver := regexp.MustCompile(`\bauth(_[a-z_]+|\.[a-z_]+|;)|(schema|exists) auth\b`)
	replaced := 0
	for where, text := range texts {
		got := inSchema(text, "zz")
		want := theirs.ReplaceAllString(text, "zz.$1")
		want = strings.NewReplacer("schema auth ", "schema zz ", "exists auth;", "exists zz;", "'auth_revoked'", "'zz_revoked'").Replace(want)
		if got != want {
			t.Errorf("%s becomes\n%s\nwant\n%s", where, got, want)
		}
		if rest := leftOver.FindString(got); rest != "" && strings.Contains(text, " ") && !strings.HasPrefix(where, "schema.go") {
			t.Errorf("%s: %q is left in\n%s", where, rest, got)
		}
		replaced += strings.Count(got, "zz")
	}
	if replaced < 100 {
		t.Errorf("only %d places", replaced)
	}
}

func TestReadMigrations(t *testing.T) {
	const plain = "create table auth.x ();\n"
	from := func(n any) string { return fmt.Sprint("-- compatible from ", n, "\n", plain) }
	for name, test := range map[string]struct {
		files []string // by number, each with its name
		texts []string
		want  string // the versions that each accepts, or the error
	}{
		"none":           {nil, nil, "[]"},
		"no line":        {[]string{"0001_a", "0002_b"}, []string{plain, plain}, "[1 2]"},
		"compatible":     {[]string{"0001_a", "0002_b", "0003_c", "0004_d"}, []string{plain, from(1), from(2), from(2)}, "[1 1 2 2]"},
		"later line":     {[]string{"0001_a", "0002_b"}, []string{plain, plain + from(1)}, "[1 2]"},
		"a gap":          {[]string{"0001_a", "0003_b"}, []string{plain, plain}, "0003_b.sql is out of order"},
		"twice":          {[]string{"0001_a", "0001_b"}, []string{plain, plain}, "0001_b.sql is out of order"},
		"no number":      {[]string{"first"}, []string{plain}, "first.sql is out of order"},
		"its own future": {[]string{"0001_a", "0002_b"}, []string{plain, from(3)}, "has to name a version from 1 to 2"},
		"falls":          {[]string{"0001_a", "0002_b", "0003_c"}, []string{plain, plain, from(1)}, "has to name a version from 2 to 3"},
		"no version":     {[]string{"0001_a"}, []string{from("the start")}, "has to name a version from 1 to 1"},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{}
			for i, f := range test.files {
				files[f+".sql"] = &fstest.MapFile{Data: []byte(test.texts[i])}
			}
			list, err := readMigrations(files, ".")
			takes := []int{}
			for _, m := range list {
				takes = append(takes, m.compatible)
			}
			if got := fmt.Sprint(takes); err == nil && got != test.want || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s, %v; want %s", got, err, test.want)
			}
		})
	}
}
