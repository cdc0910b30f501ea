package pages_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Managers of passwords and browsers fill fields in that say what they are for.
func TestFieldsSayWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, "(field .") {
				continue
			}
			n++
			if !strings.Contains(line, `"autocomplete"`) {
				t.Errorf("%s has no autocomplete: %s", file, line)
			}
		}
	}
	if n < 10 {
		t.Errorf("%d fields", n)
	}
}
