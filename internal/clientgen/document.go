package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// document is the part of an OpenAPI document that clients are generated from.
type document struct {
	Security   []map[string][]string // of operations without their own
	Paths      map[string]map[string]*operation
	Components struct {
		Schemas    map[string]*schema
		Parameters map[string]*parameter
		Responses  map[string]*response
	}
}

type operation struct {
	Security    *[]map[string][]string
	Summary     string
	Description string
	Parameters  []*parameter
	RequestBody struct {
		Required bool
		Content  map[string]media
	}
	Responses map[string]*response
}

type parameter struct {
	Ref         string `json:"$ref"`
	Name        string
	In          string
	Required    bool
	Description string
	Schema      *schema
}

type response struct {
	Ref     string `json:"$ref"`
	Content map[string]media
}

type media struct{ Schema *schema }

// schema is a JSON Schema. The schemas true and {} have no keywords.
type schema struct {
	keywords
	never bool // the schema false
}

type keywords struct {
	Ref                  string `json:"$ref"`
	Type                 list
	Format               string
	Const                json.RawMessage
	Enum                 []json.RawMessage
	AnyOf, OneOf, AllOf  []*schema
	Properties           map[string]*schema
	AdditionalProperties *schema
	MaxProperties        *int
	Required             []string
	Items                *schema
	Description          string
}

// list is one text, or a list of texts.
type list []string

func (l *list) UnmarshalJSON(text []byte) error {
	if text[0] == '[' {
		return json.Unmarshal(text, (*[]string)(l))
	}
	*l = make(list, 1)
	return json.Unmarshal(text, &(*l)[0])
}

func (s *schema) UnmarshalJSON(text []byte) error {
	if text[0] == '{' {
		return json.Unmarshal(text, &s.keywords)
	}
	s.never = bytes.Equal(text, []byte("false"))
	return nil
}

func readDocument(name string) (*document, error) {
	text, err := os.ReadFile(name) //nolint:gosec // of the repository
	if err != nil {
		return nil, err
	}
	d := new(document)
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, operations := range d.Paths {
		for _, o := range operations {
			d.resolve(o)
		}
	}
	return d, nil
}

// resolve replaces references to parameters and responses. It keeps references to
// schemas, because their names are types.
func (d *document) resolve(o *operation) {
	for i, p := range o.Parameters {
		if p.Ref != "" {
			o.Parameters[i] = d.Components.Parameters[last(p.Ref)]
		}
	}
	for status, r := range o.Responses {
		if r.Ref != "" {
			o.Responses[status] = d.Components.Responses[last(r.Ref)]
		}
	}
}

// deref returns the schema that a reference names.
func (d *document) deref(s *schema) *schema {
	for s != nil && s.Ref != "" {
		s = d.Components.Schemas[last(s.Ref)]
	}
	return s
}

// last returns the name at the end of a reference.
func last(ref string) string { return ref[strings.LastIndexByte(ref, '/')+1:] }

// call is an operation, split into the parts of its method.
type call struct {
	name
	verb, path string
	*operation
	query   []*parameter
	json    *schema // of the request body
	lines   *schema // of one line of the request body
	streams bool    // the response body is read as a stream
	results []*schema
	page    *schema // result of an operation that returns pages of a list
	items   string  // member of the page that holds the list
}

// read looks an operation up.
func (d *document) read(n name) (*call, error) {
	verb, path, _ := strings.Cut(n.operation, " ")
	o := d.Paths[path][strings.ToLower(verb)]
	if o == nil {
		return nil, fmt.Errorf("%s is not in the document", n.operation)
	}
	c := &call{name: n, verb: verb, path: path, operation: o}
	for _, p := range o.Parameters {
		if p.In == "query" {
			c.query = append(c.query, p)
		}
	}
	c.json = d.deref(o.RequestBody.Content["application/json"].Schema)
	c.lines = d.deref(o.RequestBody.Content["application/x-ndjson"].Schema)
	for _, status := range sorted(o.Responses) {
		if content := o.Responses[status].Content; status[0] == '2' {
			_, streams := content["application/x-ndjson"]
			c.streams = c.streams || streams
			c.results = append(c.results, content["application/json"].Schema)
		}
	}
	for _, s := range c.results {
		if s = d.deref(s); s != nil && s.Properties["next_cursor"] != nil {
			c.page = s
			for _, member := range sorted(s.Properties) {
				if slices.Contains(s.Properties[member].Type, "array") {
					c.items = member
				}
			}
		}
	}
	return c, nil
}

// byMetadata reports whether metadata.<name> is a parameter for every name.
func (c *call) byMetadata() bool {
	return strings.Contains(c.Description, "metadata.<name>") || c.path == "/admin/users/export"
}

// check verifies that the table of names has the operations that accept a secret key, and
// no others, because the admin clients have nothing but a key.
func (d *document) check() error {
	known := map[string]bool{}
	for _, n := range names {
		known[n.operation] = true
	}
	for path, operations := range d.Paths {
		for verb, o := range operations {
			if operation := strings.ToUpper(verb) + " " + path; known[operation] != d.acceptsKeys(o) {
				return fmt.Errorf("%s: has a name in names.go: %t; accepts secret keys: %t", operation, known[operation], d.acceptsKeys(o))
			}
		}
	}
	return nil
}

func (d *document) acceptsKeys(o *operation) bool {
	security := d.Security
	if o.Security != nil {
		security = *o.Security
	}
	return slices.ContainsFunc(security, func(schemes map[string][]string) bool { _, ok := schemes["secret-key"]; return ok })
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
