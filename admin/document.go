package admin

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"sync"
)

// The hand-written parts of the OpenAPI document: for each resource a file of schemas and
// one of prose.
//
//go:embed openapi/*.json
var documents embed.FS

// The joined files of each kind. They are part of the program and never change.
var (
	allSchemas = sync.OnceValues(func() ([]byte, error) { return document("schemas") })
	allProse   = sync.OnceValues(func() ([]byte, error) { return document("prose") })
)

// document joins the files of one kind, such as "prose", into one.
func document(kind string) ([]byte, error) {
	names, err := fs.Glob(documents, "openapi/*."+kind+".json")
	if err != nil {
		return nil, err
	}
	whole := map[string]any{}
	for _, name := range names {
		text, err := documents.ReadFile(name)
		if err != nil {
			return nil, err
		}
		var part map[string]any
		if err := json.Unmarshal(text, &part); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if err := join(whole, part); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	describeSettings(kind, whole)
	offerKeys(whole)
	return json.Marshal(whole)
}

// offerKeys documents the header of withKey for every POST.
func offerKeys(prose map[string]any) {
	operations, _ := prose["operations"].(map[string]any)
	for pattern, of := range operations {
		if o, ok := of.(map[string]any); ok && strings.HasPrefix(pattern, "POST ") {
			headers, _ := o["headers"].([]any)
			o["headers"] = append(headers, "Idempotency-Key")
		}
	}
}

// join adds part to whole: sections of unique names, and lists.
func join(whole, part map[string]any) error {
	for section, of := range part {
		list, isList := of.([]any)
		if isList {
			before, _ := whole[section].([]any)
			whole[section] = append(before, list...)
			continue
		}
		names, _ := of.(map[string]any)
		all, ok := whole[section].(map[string]any)
		if !ok {
			all = map[string]any{}
			whole[section] = all
		}
		for name, v := range names {
			if _, twice := all[name]; twice {
				return fmt.Errorf("%s of %s comes twice", name, strings.TrimSuffix(section, "s"))
			}
			all[name] = v
		}
	}
	return nil
}
