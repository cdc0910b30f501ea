package webpage

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

// unreadable is a layer with unreadable folders.
type unreadable struct{ fs.FS }

var errUnreadable = errors.New("unreadable")

func (unreadable) ReadDir(string) ([]fs.DirEntry, error) { return nil, errUnreadable }

// An unreadable folder is an error, not a folder without languages. A folder that the
// application lacks is not an error.
func TestUnreadableFolders(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"languages/en/a.json": {Data: []byte(`{}`)}, "languages/de/a.json": {Data: []byte(`{}`)}}
	for name, test := range map[string]struct {
		layers Layers
		ok     bool
	}{
		"both":                          {Layers{Own: files, Builtin: files}, true},
		"no folder of the application":  {Layers{Own: fstest.MapFS{}, Builtin: files}, true},
		"the application's is broken":   {Layers{Own: unreadable{files}, Builtin: files}, false},
		"the built-in folder is broken": {Layers{Builtin: unreadable{files}}, false},
	} {
		langs, err := LoadLanguages(test.layers, "a", "en", nil)
		if (err == nil) != test.ok || test.ok && strings.Join(langs.Names, " ") != "en de" {
			t.Errorf("%s: %+v, %v", name, langs, err)
		}
	}
}

// A logo that the policy does not allow is not shown; the rest of the page is.
func TestForbiddenLogo(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	Write(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), Response{Status: 200, Styles: "'none'", Look: Look{Logo: "javascript:x"}})
	if policy := w.Header().Get("Content-Security-Policy"); !strings.Contains(policy, "; img-src data:; ") {
		t.Errorf("%q", policy)
	}
}
