package webpage

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

var builtinTexts = fstest.MapFS{
	"languages/en/a.json": file(`{"hello": "Hello {name}", "bye": "Bye"}`),
	"languages/de/a.json": file(`{"hello": "Hallo {name}", "bye": "Tschüss"}`),
	"languages/en/b.json": file(`{"x": "x"}`),
}

// The application's texts replace built-in ones and add languages. Missing texts are those
// of the default language, and are listed.
func TestOwnTexts(t *testing.T) {
	t.Parallel()
	own := fstest.MapFS{
		"languages/de/a.json": file(`{"bye": "Servus"}`),
		"languages/it/a.json": file(`{"hello": "Ciao {name}"}`),
		"languages/pt/b.json": file(`{"x": "y"}`),
	}
	_, err := LoadLanguages(Layers{Own: own, Builtin: builtinTexts}, "a", "de", Texts{"more": "More"})
	if err == nil {
		t.Fatal("a default language without a text was accepted")
	}
	if !strings.Contains(err.Error(), "languages/de/a.json is the default language, but has no texts for: more") {
		t.Error(err)
	}
	ls, err := LoadLanguages(Layers{Own: own, Builtin: builtinTexts}, "a", "de", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Texts{
		"de": {"hello": "Hallo {name}", "bye": "Servus"},
		"en": {"hello": "Hello {name}", "bye": "Bye"},
		"it": {"hello": "Ciao {name}", "bye": "Servus"},
	}
	if !slices.Equal(ls.Names, []string{"de", "en", "it"}) || !reflect.DeepEqual(ls.texts, want) {
		t.Errorf("%q, %v", ls.Names, ls.texts)
	}
	if gaps := []Gap{{"pt", "languages/pt/a.json", nil}, {"it", "languages/it/a.json", []string{"bye"}}}; !reflect.DeepEqual(ls.Gaps, gaps) {
		t.Errorf("%+v", ls.Gaps)
	}
	if got := ls.Texts("it").Of("hello", "name", "{x}", "x", "y"); got != "Ciao {x}" {
		t.Errorf("a value was replaced: %q", got)
	}
	for prefer, want := range map[string]string{"it-CH": "it", "pt, en;q=0.5": "en", "": "de", "*;;": "de"} {
		if got := ls.Pick(prefer); got != want {
			t.Errorf("%q: %q", prefer, got)
		}
	}
}

// A mistake in the application's texts is an error that names the file and the text.
func TestMistakesInTexts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ file, text, want string }{
		"unknown key":            {"languages/it/a.json", `{"helo": "x"}`, `languages/it/a.json: there is no text "helo"; templates/languages/en/a.json lists them`},
		"unknown placeholder":    {"languages/it/a.json", `{"hello": "Ciao {naem}"}`, `languages/it/a.json: {naem} is not replaced in the text "hello", only ["{name}"]`},
		"capital placeholder":    {"languages/de/a.json", `{"hello": "Hallo {Name}"}`, `{Name} is not replaced in the text "hello"`},
		"placeholder with space": {"languages/en/a.json", `{"bye": "{ name }"}`, `{ name } is not replaced in the text "bye", only []`},
		"no texts":               {"languages/it/a.json", `[]`, "languages/it/a.json: json"},
		"no language":            {"languages/not_a_language!/a.json", `{}`, "languages/not_a_language! is not the name of a language"},
	} {
		_, err := LoadLanguages(Layers{Own: fstest.MapFS{c.file: file(c.text)}, Builtin: builtinTexts}, "a", "en", nil)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := LoadLanguages(Layers{Builtin: builtinTexts}, "b", "de", nil); err == nil || !strings.Contains(err.Error(), "languages/de/b.json is missing") {
		t.Errorf("a default language without the file: %v", err)
	}
}

// Every built-in language has exactly the texts of English, with the same placeholders.
func TestBuiltinLanguages(t *testing.T) {
	t.Parallel()
	l := Layers{Builtin: os.DirFS("../../templates")}
	labels := Texts{} // the declarations of settings have English labels; they are lower-case names
	german, err := readTexts(l.Builtin, textsPath("de", "dashboard"))
	if err != nil {
		t.Fatal(err)
	}
	english, err := readTexts(l.Builtin, textsPath(English, "dashboard"))
	if err != nil {
		t.Fatal(err)
	}
	for key := range german {
		if _, ok := english[key]; !ok && !strings.ContainsAny(key, " ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
			labels[key] = key
		}
	}
	for file, want := range map[string]string{"mails": "en de es fr", "pages": "en de es fr", "dashboard": "en de"} {
		more := Texts{}
		if file == "dashboard" {
			more = labels
		}
		ls, err := LoadLanguages(l, file, English, more)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Join(ls.Names, " ") != want || len(ls.Gaps) != 0 {
			t.Errorf("%s: %q, %+v", file, ls.Names, ls.Gaps)
		}
		for _, lang := range ls.Names {
			if len(ls.Texts(lang)) != len(ls.Texts(English)) {
				t.Errorf("%s has texts that English lacks", textsPath(lang, file))
			}
			for key, text := range ls.Texts(lang) {
				if en := ls.Texts(English)[key]; !slices.Equal(set(Placeholders(text)), set(Placeholders(en))) {
					t.Errorf("%s, %s: %q has other placeholders than %q", textsPath(lang, file), key, text, en)
				}
				if lang == "fr" && elided.MatchString(text) {
					t.Errorf("%s, %s: %q is wrong before a vowel", textsPath(lang, file), key, text)
				}
				if strings.TrimSpace(text) == "" {
					t.Errorf("%s, %s: no text", textsPath(lang, file), key)
				}
			}
			duplicates(t, l, textsPath(lang, file))
		}
	}
}

// elided matches French words that lose a letter before a name with a vowel, and before no
// other name, so that no text is right for all applications.
var elided = regexp.MustCompile(`(?i)\b(de|que|le|la)[ \x{a0}\x{202f}]\{(app|brand)\}`)

func set(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }

// duplicates reports keys that a file has twice.
func duplicates(t *testing.T, l Layers, name string) {
	t.Helper()
	raw, err := l.Read(name)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	d := json.NewDecoder(strings.NewReader(string(raw)))
	for i := 0; ; i++ {
		token, err := d.Token()
		if err != nil {
			return
		}
		if key, ok := token.(string); ok && i%2 == 1 {
			if seen[key] {
				t.Errorf("%s has %q twice", name, key)
			}
			seen[key] = true
		}
	}
}

func TestDirection(t *testing.T) {
	t.Parallel()
	for lang, want := range map[string]string{
		"ar": "rtl", "ar-EG": "rtl", "he": "rtl", "fa": "rtl", "ur": "rtl", "yi": "rtl", "ckb": "rtl", "dv": "rtl", "ps": "rtl", "uz-Arab": "rtl",
		"en": "ltr", "fr": "ltr", "tr": "ltr", "uz": "ltr", "ja": "ltr", "ar-Latn": "ltr", "": "ltr", "not a language": "ltr",
	} {
		if got := Direction(lang); got != want {
			t.Errorf("%q: %s", lang, got)
		}
	}
}
