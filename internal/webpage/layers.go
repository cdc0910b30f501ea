// Package webpage holds the parts that all HTML pages of the module share: templates in
// layers, languages, the look, and the content security policy.
package webpage

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/language"
)

// Layers finds a template in the application's files first, then in the built-in ones.
type Layers struct {
	Own     fs.FS // may be nil
	Builtin fs.FS
}

// Read returns a file of the first layer that has it.
func (l Layers) Read(name string) ([]byte, error) {
	if l.Own != nil {
		b, err := fs.ReadFile(l.Own, name)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return b, err
		}
	}
	return fs.ReadFile(l.Builtin, name)
}

// Names lists the files in a folder of both layers, sorted.
func (l Layers) Names(dir string) ([]string, error) {
	entries, err := fs.ReadDir(l.Builtin, dir)
	if err != nil {
		return nil, err
	}
	if l.Own != nil {
		own, err := fs.ReadDir(l.Own, dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		entries = append(entries, own...)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Languages are the locales of a folder, the default first, with a matcher for the
// preferences of readers.
type Languages struct {
	Names   []string
	matcher language.Matcher
}

// FindLanguages returns the locales for which the folder has a file such as
// "layout.de.txt".
func FindLanguages(l Layers, dir, stem, ext, def string) (*Languages, error) {
	files, err := l.Names(dir)
	if err != nil {
		return nil, err
	}
	ls := &Languages{}
	for _, f := range files {
		rest, ok := strings.CutPrefix(f, stem+".")
		name, isExt := strings.CutSuffix(rest, "."+ext)
		if ok && isExt {
			ls.Names = append(ls.Names, name)
		}
	}
	if !slices.Contains(ls.Names, def) {
		return nil, fmt.Errorf("no %s for the locale %q", path.Join(dir, stem+"."+def+"."+ext), def)
	}
	slices.SortStableFunc(ls.Names, func(a, b string) int { return rank(a != def) - rank(b != def) })
	tags := make([]language.Tag, len(ls.Names))
	for i, n := range ls.Names {
		if tags[i], err = language.Parse(n); err != nil {
			return nil, fmt.Errorf("template locale %q: %w", n, err)
		}
	}
	ls.matcher = language.NewMatcher(tags)
	return ls, nil
}

func rank(later bool) int {
	if later {
		return 1
	}
	return 0
}

// Pick returns the locale that matches a list such as Accept-Language best.
func (ls *Languages) Pick(prefer string) string {
	tags, _, err := language.ParseAcceptLanguage(prefer)
	if err != nil || len(tags) == 0 {
		return ls.Names[0]
	}
	_, i, _ := ls.matcher.Match(tags...)
	return ls.Names[i]
}
