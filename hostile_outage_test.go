package auth_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth/internal/storetap"
)

// Whichever call of a request fails, nobody is refused as if it were for something
// that they did: they may try again, or it was done without what failed. What there is
// besides a refusal is written down (see traces_test.go).
func TestTracesOfOutagesAreNoRefusals(t *testing.T) {
	t.Parallel()
	if os.Getenv(onPostgres) != "" {
		return // what a call returns that fails is the tap's, whatever the store
	}
	traceTable(t, "outage ", hostileRows(), outages)
}

// outages is what comes of a row's request when each of its calls fails in turn.
func outages(t *testing.T, r row) []string {
	t.Helper()
	lines := []string{title(r, "")}
	w := newTraceWorld(t, r)
	ref := w.trace(trial{row: r}, time.Second)
	for k := 1; k <= ref.n; k++ {
		tr := w.trace(trial{row: r, fault: storetap.FailsBefore, k: k}, time.Second)
		got, want := resultOf(tr.answer()), resultOf(ref.answer())
		if tr.hit && got != want && got != "303 unavailable" && !strings.HasPrefix(got, "503") {
			t.Errorf("%s, %s: answers %s", r.name, tr.trial, got)
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
	what := fmt.Sprintf("%d %s fails: %s", tr.k, method, resultOf(tr.answer()))
	if strings.HasPrefix(resultOf(tr.answer()), "503") {
		what += fmt.Sprintf(", again in %s s", tr.answer().header.Get("Retry-After"))
		end := slices.IndexFunc(tr.lines, func(line string) bool { return strings.HasPrefix(line, "answer ") })
		after := slices.IndexFunc(tr.lines[end:], func(line string) bool { return strings.HasPrefix(line, "  {") })
		return append(append([]string{what}, tr.lines[at+1:end]...), tr.lines[end+after+1:]...)
	}
	return append([]string{what}, tr.lines[at+1:]...)
}
