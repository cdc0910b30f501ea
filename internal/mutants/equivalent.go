package main

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed equivalent.txt
var equivalentList string

// equivalents are mutants that change nothing that matters, with the reason: in
// the file, the function and what is changed, as they are printed, and then the
// reason behind an equals sign.
func equivalents() (map[string]string, error) {
	known := map[string]string{}
	for i, entry := range strings.Split(equivalentList, "\n\n") {
		entry = strings.TrimSpace(entry)
		if entry == "" || strings.HasPrefix(entry, "#") {
			continue
		}
		key, why, ok := strings.Cut(entry, "\n= ")
		if !ok || strings.Count(key, "\n") != 2 {
			return nil, fmt.Errorf("equivalent.txt: entry %d is not a place, a - line, a + line and a reason:\n%s", i+1, entry)
		}
		known[key+"\n"] = why
	}
	return known, nil
}
