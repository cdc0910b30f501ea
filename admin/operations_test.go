package admin_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth/admin"
)

var update = flag.Bool("update", false, "write testdata/operations.txt")

// What each operation asks for is written down a second time, apart from the code that
// the other tests read it from: one that forgets its permission, its proof or how strong
// its actor has to be differs from that.
func TestOperationsAskForWhatIsWrittenDown(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, row := range admin.Table() {
		line := fmt.Sprintf("%s: %s", row.Pattern, row.Permission)
		for what, so := range map[string]bool{"proof of the last 15 minutes": row.StepUp, "also to oneself": row.Self, "not recorded": row.Reads, "returns a secret": row.Secret, row.Strength: row.Strength != ""} {
			if so {
				line += ", " + what
			}
		}
		parts := strings.Split(line, ", ")
		slices.Sort(parts[1:])
		lines = append(lines, strings.Join(parts, ", "))
	}
	slices.Sort(lines)
	got, path := strings.Join(lines, "\n")+"\n", filepath.Join("testdata", "operations.txt")
	if *update {
		if err := os.MkdirAll("testdata", 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(got, "\n") {
		if have := strings.Split(string(want), "\n"); i >= len(have) || have[i] != line {
			t.Fatalf("line %d: %s\nif this is meant, write it down with -update", i+1, line)
		}
	}
}
