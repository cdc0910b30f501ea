package webpage

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/language"
)

// English has every text. Its files define the keys and placeholders of all languages.
const English = "en"

// Texts are the texts of one language by key. "{name}" in them is replaced.
type Texts map[string]string

// Of returns a text with values, given as name, value, name, value. Braces in a value are
// not replaced.
func (t Texts) Of(key string, values ...any) string {
	text, ok := t[key]
	if !ok {
		text = key
	}
	if len(values) == 0 || !strings.Contains(text, "{") {
		return text
	}
	pairs := make([]string, 0, len(values))
	for i := 0; i+1 < len(values); i += 2 {
		pairs = append(pairs, "{"+fmt.Sprint(values[i])+"}", fmt.Sprint(values[i+1]))
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// Or returns the text of a key, or else of another key.
func (t Texts) Or(key, other string, values ...any) string {
	if _, ok := t[key]; !ok {
		key = other
	}
	return t.Of(key, values...)
}

// Wait formats a duration. It is for the texts of pages.
func (t Texts) Wait(d time.Duration) string {
	switch minutes := int((d + time.Minute - 1) / time.Minute); {
	case d <= 50*time.Second:
		return t.Of("wait.seconds", "n", max(1, int((d+time.Second-1)/time.Second)))
	case minutes == 1:
		return t.Of("wait.minute")
	case minutes <= 120:
		return t.Of("wait.minutes", "n", minutes)
	default:
		return t.Of("wait.hours", "n", (minutes+59)/60)
	}
}

// Direction returns the value of an element's dir attribute in a language.
func Direction(locale string) string {
	script, _ := language.Make(locale).Script()
	switch script.String() {
	case "Arab", "Hebr", "Thaa", "Syrc", "Nkoo", "Adlm", "Rohg", "Mand", "Samr":
		return "rtl"
	}
	return "ltr"
}

// Languages are the texts of one file, such as pages.json, in the languages that have it.
type Languages struct {
	Names []string // the default language first
	Gaps  []Gap
	Own   bool // the application has texts

	texts   map[string]Texts
	matcher language.Matcher
}

// Gap is a file that is missing in a language of the application, or has not all texts.
type Gap struct {
	Language, File string
	Keys           []string // sorted; empty: the file is missing
}

// LoadLanguages reads languages/<language>/<file>.json in both layers. The application's
// texts replace built-in ones, and can add a language; its missing texts are those of the
// language def, which must be complete. more are further English texts. Errors name the
// files with unknown keys or placeholders.
func LoadLanguages(l Layers, file, def string, more Texts) (*Languages, error) {
	english, err := readTexts(l.Builtin, textsPath(English, file))
	if err != nil {
		return nil, err
	}
	maps.Copy(english, more)
	ls := &Languages{Own: l.Own != nil, texts: map[string]Texts{}}
	builtin, err := languagesIn(l.Builtin)
	if err != nil {
		return nil, err
	}
	own, err := languagesIn(l.Own)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, lang := range slices.Compact(slices.Sorted(slices.Values(slices.Concat(builtin, own)))) {
		texts, err := l.texts(lang, file, english)
		switch {
		case err == nil:
			ls.Names, ls.texts[lang] = append(ls.Names, lang), texts
		case !errors.Is(err, fs.ErrNotExist):
			errs = append(errs, err)
		case lang == def:
			errs = append(errs, fmt.Errorf("%s is missing, but %s is the default language", textsPath(def, file), def))
		case slices.Contains(own, lang):
			ls.Gaps = append(ls.Gaps, Gap{Language: lang, File: textsPath(lang, file)})
		}
	}
	if len(errs) == 0 && ls.texts[def] == nil {
		errs = append(errs, fmt.Errorf("%s is missing, but %s is the default language", textsPath(def, file), def))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return ls, ls.complete(file, def, english)
}

// complete fills gaps with the texts of the default language, and sorts it to the front.
func (ls *Languages) complete(file, def string, english Texts) error {
	slices.SortStableFunc(ls.Names, func(a, b string) int { return rank(a != def) - rank(b != def) })
	tags := make([]language.Tag, len(ls.Names))
	for i, lang := range ls.Names {
		tags[i] = language.Make(lang)
		var missing []string
		for _, key := range slices.Sorted(maps.Keys(english)) {
			if _, ok := ls.texts[lang][key]; !ok {
				missing = append(missing, key)
				ls.texts[lang][key] = ls.texts[def][key]
			}
		}
		if len(missing) == 0 {
			continue
		}
		if lang == def {
			return fmt.Errorf("%s is the default language, but has no texts for: %s", textsPath(def, file), strings.Join(missing, ", "))
		}
		ls.Gaps = append(ls.Gaps, Gap{Language: lang, File: textsPath(lang, file), Keys: missing})
	}
	ls.matcher = language.NewMatcher(tags)
	return nil
}

func rank(later bool) int {
	if later {
		return 1
	}
	return 0
}

// Texts returns the texts of one of ls.Names.
func (ls *Languages) Texts(lang string) Texts { return ls.texts[lang] }

// Pick returns the language that matches a list such as Accept-Language best.
func (ls *Languages) Pick(prefer string) string {
	tags, _, err := language.ParseAcceptLanguage(prefer)
	if err != nil || len(tags) == 0 {
		return ls.Names[0]
	}
	_, i, _ := ls.matcher.Match(tags...)
	return ls.Names[i]
}

func textsPath(lang, file string) string { return path.Join("languages", lang, file+".json") }

// languagesIn lists the folders of languages, sorted.
func languagesIn(in fs.FS) ([]string, error) {
	if in == nil {
		return nil, nil
	}
	entries, err := fs.ReadDir(in, "languages")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		if _, err := language.Parse(e.Name()); err != nil {
			return nil, fmt.Errorf("languages/%s is not the name of a language: %w", e.Name(), err)
		}
		names = append(names, e.Name())
	}
	return names, nil
}

// texts reads a language's texts of both layers. The error is fs.ErrNotExist if neither
// has the file.
func (l Layers) texts(lang, file string, english Texts) (Texts, error) {
	texts, missing := readTexts(l.Builtin, textsPath(lang, file))
	if missing != nil && !errors.Is(missing, fs.ErrNotExist) {
		return nil, missing
	}
	if lang == English { // with the texts that are in no file
		texts = maps.Clone(english)
	}
	if l.Own == nil {
		return texts, missing
	}
	name := textsPath(lang, file)
	own, err := readTexts(l.Own, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return texts, missing
	case err != nil:
		return nil, err
	}
	if texts == nil {
		texts = Texts{}
	}
	for _, key := range slices.Sorted(maps.Keys(own)) {
		original, ok := english[key]
		if !ok {
			err = errors.Join(err, fmt.Errorf("%s: there is no text %q; templates/%s lists them", name, key, textsPath(English, file)))
			continue
		}
		known := Placeholders(original)
		for _, p := range Placeholders(own[key]) {
			if !slices.Contains(known, p) {
				err = errors.Join(err, fmt.Errorf("%s: %s is not replaced in the text %q, only %q", name, p, key, known))
			}
		}
	}
	maps.Copy(texts, own)
	return texts, err
}

var placeholder = regexp.MustCompile(`\{[^{}"]*\}`)

// Placeholders returns the parts of a text that are replaced, such as "{brand}".
func Placeholders(text string) []string { return placeholder.FindAllString(text, -1) }

func readTexts(in fs.FS, name string) (Texts, error) {
	b, err := fs.ReadFile(in, name)
	if err != nil {
		return nil, err
	}
	var t Texts
	if err := json.Unmarshal(b, &t); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}
