package traces_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth/internal/harness"
)

// traceTable records the effects of each row of a table, in a file for each pattern.
func traceTable(t *testing.T, what string, table map[string][]harness.Row, of func(t *testing.T, r harness.Row) []string) {
	t.Helper()
	for pattern, rows := range table {
		t.Run(pattern, func(t *testing.T) {
			t.Parallel()
			var lines []string
			slices.SortStableFunc(rows, func(a, b harness.Row) int { return strings.Compare(title(a, ""), title(b, "")) })
			for _, r := range rows {
				lines = append(lines, of(t, r)...)
			}
			compareTrace(t, what+pattern, lines)
		})
	}
}

// traceFile returns the file of a test's trace by its name.
func traceFile(name string) string {
	name = strings.Trim(regexp.MustCompile(`[^a-zA-Z0-9]+`).ReplaceAllString(name, "-"), "-")
	return filepath.Join("testdata", name+".txt")
}

// compareTrace compares a trace with the recorded one, or records it.
func compareTrace(t *testing.T, name string, lines []string) {
	t.Helper()
	file := traceFile(name)
	if *harness.Update {
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(string(raw), "\n")
	for i := range max(len(lines), len(want)) {
		is, was := "nothing", "nothing"
		if i < len(lines) {
			is = lines[i]
		}
		if i < len(want) {
			was = want[i]
		}
		if is == was {
			continue
		}
		t.Errorf("%s, line %d:\n- %s\n+ %s\nif this is meant: go test ./internal/tests/traces -update", file, i+1, was, is)
		return
	}
}

// The trace of a removed route would otherwise stay forever.
func TestTracesAreOfRoutesThatThereAre(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{traceFile("late"): true, traceFile("odd bodies"): true, traceFile("bare store"): true, traceFile("impersonated requests"): true}
	for _, table := range []map[string][]harness.Row{harness.HostileRows(), kitRows(), pageRows()} {
		for pattern := range table {
			want[traceFile(pattern)] = true
		}
	}
	for _, file := range files {
		if !want[file] {
			t.Errorf("%s is of no route", file)
		}
	}
}
