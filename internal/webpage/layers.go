// Package webpage holds the parts that all HTML pages of the module share: templates in
// layers, languages, the look, and the content security policy.
package webpage

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
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

// CheckFiles returns an error that names the files which match none of the patterns of
// path.Match, because they would never be read.
func CheckFiles(own fs.FS, patterns ...string) error {
	if own == nil {
		return nil
	}
	var unknown []error
	err := fs.WalkDir(own, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		for _, p := range patterns {
			if ok, err := path.Match(p, name); ok || err != nil {
				return err
			}
		}
		unknown = append(unknown, fmt.Errorf("the option Templates has a file %q that is not read; there are %s", name, strings.Join(patterns, ", ")))
		return nil
	})
	return errors.Join(append(unknown, err)...)
}
