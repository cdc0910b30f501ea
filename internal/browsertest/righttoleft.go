package browsertest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
)

// RightToLeft returns templates with the language "ar", which has every text of English in
// right-to-left letters of the same number.
func RightToLeft(t *testing.T) fstest.MapFS {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	all := fstest.MapFS{}
	for _, name := range []string{"mails.json", "pages.json", "dashboard.json"} {
		raw, err := os.ReadFile(filepath.Join(filepath.Dir(here), "../../templates/languages/en", name)) //nolint:gosec // files of this repository
		if err != nil {
			t.Fatal(err)
		}
		var texts map[string]string
		if err := json.Unmarshal(raw, &texts); err != nil {
			t.Fatal(err)
		}
		for key, text := range texts {
			if key != "time.layout" {
				texts[key] = mirrored(text)
			}
		}
		if raw, err = json.Marshal(texts); err != nil {
			t.Fatal(err)
		}
		all["languages/ar/"+name] = &fstest.MapFile{Data: raw}
	}
	return all
}

var parts = regexp.MustCompile(`\{[^{}"]*\}|[^{}]+`)

// mirrored replaces the letters of a text, but not its placeholders.
func mirrored(text string) string {
	return parts.ReplaceAllStringFunc(text, func(part string) string {
		if part[0] == '{' {
			return part
		}
		return strings.Map(func(r rune) rune {
			if letters := []rune("ابتثجحخدذرزسشصضطظعغفقكلمنهوي"); unicode.IsLetter(r) {
				return letters[int(r)%len(letters)]
			}
			return r
		}, part)
	})
}
