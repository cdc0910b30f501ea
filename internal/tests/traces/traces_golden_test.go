package traces_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
)

// Whichever call of a request fails, nobody is refused as if it were for something
// that they did: they may try again, or it was done without what failed. What there is
// besides a refusal is written down (see traces_test.go).
func TestTracesOfOutagesAreNoRefusals(t *testing.T) {
	t.Parallel()
	traceTable(t, "outage ", harness.HostileRows(), outages)
}

// outages is what comes of a row's request when each of its calls fails in turn.
func outages(t *testing.T, r harness.Row) []string {
	t.Helper()
	lines := []string{title(r, "")}
	w := newTraceWorld(t, r)
	ref := w.trace(harness.Trial{Row: r}, time.Second)
	for k := 1; k <= ref.N; k++ {
		tr := w.trace(harness.Trial{Row: r, Fault: storetap.FailsBefore, K: k}, time.Second)
		got, want := harness.ResultOf(tr.Answer()), harness.ResultOf(ref.Answer())
		if tr.Hit && got != want && got != "303 unavailable" && !strings.HasPrefix(got, "503") {
			t.Errorf("%s, %s: answers %s", r.Name, tr.Trial, got)
		}
		lines = append(lines, tr.afterFault()...)
	}
	return append(lines, "")
}

// afterFault is what is written down of a trial in which a call failed: its name, the
// answer, and whatever else came of it.
func (tr *tracing) afterFault() []string {
	at := slices.IndexFunc(tr.lines, func(line string) bool { return strings.HasSuffix(line, storetap.ErrFault.Error()) })
	if at < 0 {
		return []string{"  nothing failed"}
	}
	method, _, _ := strings.Cut(strings.TrimSuffix(tr.lines[at], ": "+storetap.ErrFault.Error()), " {")
	what := fmt.Sprintf("%d %s fails: %s", tr.K, method, harness.ResultOf(tr.Answer()))
	if strings.HasPrefix(harness.ResultOf(tr.Answer()), "503") {
		what += fmt.Sprintf(", again in %s s", tr.Answer().Header.Get("Retry-After"))
		end := slices.IndexFunc(tr.lines, func(line string) bool { return strings.HasPrefix(line, "answer ") })
		after := slices.IndexFunc(tr.lines[end:], func(line string) bool { return strings.HasPrefix(line, "  {") })
		return append(append([]string{what}, tr.lines[at+1:end]...), tr.lines[end+after+1:]...)
	}
	return append([]string{what}, tr.lines[at+1:]...)
}

// traceTable writes down what comes of each row of a table, a file for each pattern.
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

// traceFile is where it is written down what a test calls by that name.
func traceFile(name string) string {
	name = strings.Trim(regexp.MustCompile(`[^a-zA-Z0-9]+`).ReplaceAllString(name, "-"), "-")
	return filepath.Join("testdata", name+".txt")
}

// compareTrace compares what was written down with what was before, or writes it
// down.
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

// A file of a route that there is no more would be kept for ever.
func TestTracesAreOfRoutesThatThereAre(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for pattern := range harness.HostileRows() {
		for _, what := range []string{"", "late ", "outage "} {
			want[traceFile(what+pattern)] = true
		}
	}
	for _, table := range []map[string][]harness.Row{kitRows(), pageRows()} {
		for pattern := range table {
			want[traceFile(pattern)] = true
		}
	}
	for pattern := range cookieRows() {
		want[traceFile("cookie "+pattern)] = true
	}
	want[traceFile("odd bodies")], want[traceFile("bare store")] = true, true
	for _, file := range files {
		if !want[file] {
			t.Errorf("%s is of no route", file)
		}
		delete(want, file)
	}
	if len(want) > 0 {
		t.Errorf("%v: not written down", slices.Sorted(maps.Keys(want)))
	}
}
