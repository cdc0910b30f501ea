package pages

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/internal/webpage"
)

// texts are the texts of one language by key. "{name}" in them is replaced.
type texts map[string]string

// of returns a text with values, given as name, value, name, value.
func (t texts) of(name string, values ...any) string {
	text, ok := t[name]
	if !ok {
		return name
	}
	for i := 0; i+1 < len(values); i += 2 {
		text = strings.ReplaceAll(text, "{"+fmt.Sprint(values[i])+"}", fmt.Sprint(values[i+1]))
	}
	return text
}

// or returns the text of a key, or else of another key.
func (t texts) or(name, other string, values ...any) string {
	if _, ok := t[name]; !ok {
		name = other
	}
	return t.of(name, values...)
}

// wait formats a duration.
func (t texts) wait(d time.Duration) string {
	switch minutes := int((d + time.Minute - 1) / time.Minute); {
	case d <= 50*time.Second:
		return t.of("wait.seconds", "n", max(1, int((d+time.Second-1)/time.Second)))
	case minutes == 1:
		return t.of("wait.minute")
	case minutes <= 120:
		return t.of("wait.minutes", "n", minutes)
	default:
		return t.of("wait.hours", "n", (minutes+59)/60)
	}
}

// loadTexts reads the texts of a language: those of this package, or else of the default
// language, replaced by the application's own.
func loadTexts(own fs.FS, locale string) (texts, error) {
	all, err := readTexts(builtin(), "texts."+locale+".json")
	if errors.Is(err, fs.ErrNotExist) {
		all, err = readTexts(builtin(), "texts."+defaultLocale+".json")
	}
	if err != nil || own == nil {
		return all, err
	}
	changed, err := readTexts(own, "texts."+locale+".json")
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	for name, text := range changed {
		if _, ok := all[name]; !ok {
			err = errors.Join(err, fmt.Errorf("texts.%s.json: there is no text %q; pages/templates/texts.en.json lists them", locale, name))
		}
		replaced := placeholder.FindAllString(all[name], -1)
		for _, p := range placeholder.FindAllString(text, -1) {
			if !slices.Contains(replaced, p) {
				err = errors.Join(err, fmt.Errorf("texts.%s.json: %s is not replaced in the text %q, only %q", locale, p, name, replaced))
			}
		}
		all[name] = text
	}
	return all, err
}

// placeholder matches the parts of a text that a page replaces.
var placeholder = regexp.MustCompile(`\{[a-z]+\}`)

func readTexts(in fs.FS, name string) (texts, error) {
	b, err := fs.ReadFile(in, name)
	if err != nil {
		return nil, err
	}
	var t texts
	if err := json.Unmarshal(b, &t); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// languagesOf returns the languages that have texts.
func (p *Pages) languagesOf(l webpage.Layers) (*webpage.Languages, error) {
	if langs, err := webpage.FindLanguages(l, ".", "texts", "json", p.site.Locale); err == nil {
		return langs, nil
	}
	return webpage.FindLanguages(l, ".", "texts", "json", defaultLocale)
}
