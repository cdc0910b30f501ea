package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// sources is a package with mutants of each kind, and tests that miss some.
var sources = map[string]string{
	"go.mod": "module example.com/door\n\ngo 1.26\n",
	"door.go": `package door

import "errors"

const most = 3

type Pass struct{ Name, Seal string }

var errShut = errors.New("shut")

// Open lets in who has a name, below the limit.
func Open(p Pass, guests int) (Pass, error) {
	if p.Name == "" || guests >= most {
		return Pass{}, errShut
	}
	p.Seal = "s"
	return Pass{Name: p.Name, Seal: p.Seal}, nil
}
`,
	"door_test.go": `package door

import "testing"

func TestOpen(t *testing.T) {
	if p, err := Open(Pass{Name: "n"}, 2); err != nil || p.Name != "n" {
		t.Fatal(err)
	}
	if _, err := Open(Pass{}, 2); err == nil {
		t.Fatal("let in")
	}
}
`,
}

// TestSurvivors finds what the tests of a small package miss.
func TestSurvivors(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range sources {
		if err := write(filepath.Join(root, name), text); err != nil {
			t.Fatal(err)
		}
	}
	pool, err := candidates(root, regexp.MustCompile(""))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := newWorkshop(root, 2, &out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	sample, err := w.sample(t.Context(), pool, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.judge(t.Context(), sample); err != nil {
		t.Fatal(err)
	}
	var survived []string
	for _, m := range sample {
		if m.killer == "" {
			survived = append(survived, m.after)
		}
	}
	slices.Sort(survived)
	want := []string{
		"",
		"const most = 4",
		`if p.Name == "" || (false && (guests >= most)) {`,
		`if p.Name == "" || guests > most {`,
		"return Pass{Name: p.Name}, nil",
	}
	if !slices.Equal(survived, want) {
		t.Errorf("survived:\n%s\nwant:\n%s\n%s", strings.Join(survived, "\n"), strings.Join(want, "\n"), &out)
	}
	for name, text := range sources {
		if now, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(now) != text {
			t.Errorf("%s was changed (%v)", name, err)
		}
	}
}

// TestSQLEdits leaves out conditions whole.
func TestSQLEdits(t *testing.T) {
	t.Parallel()
	sql := "select 1 from t where a = $1 and exists (select from u where u.id = t.id and u.at > $2) and b between 1 and 2 for update"
	var got []string
	for _, e := range sqlEdits(sql) {
		got = append(got, oneLine(sql[:e.start]+e.text+sql[e.end:]))
	}
	want := []string{
		"select 1 from t where a = $1 and exists (select from u where u.id = t.id and u.at > $2) for update",
		"select 1 from t where a = $1 and b between 1 and 2 for update",
		"select 1 from t where a = $1 and exists (select from u where u.id = t.id) and b between 1 and 2 for update",
		"select 1 from t where a = $1 and exists (select from u where u.id = t.id and u.at >= $2) and b between 1 and 2 for update",
		"select 1 from t where a = $1 and exists (select from u where u.id = t.id and u.at > $2) and b between 1 and 2",
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}
