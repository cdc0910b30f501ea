// Package openapi generates an OpenAPI 3.1 document. The schemas and a few lines of prose
// for each route are written by hand. The route table provides the rest: security, error
// responses with their codes, rate limits, headers, path parameters, HEAD, and the names
// of operations.
package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Envelope is common to all operations.
type Envelope struct {
	Server  string  // the handler's mount point, such as "/auth/v1"
	Always  []Error // of all operations
	Body    []Error // also, of operations that read a body
	Limited []Error // also, of operations with a rate limit
}

// Part is a part of the document: routes, and two JSON files for them. The types schemas
// and prose define the files.
type Part struct {
	Routes  []Route
	Schemas []byte
	Prose   []byte
}

// Route is one row of a route table.
type Route struct {
	Pattern  string     // "POST /signup"
	Security [][]string // alternatives, each a set of required security schemes; empty: open to everybody
	Limits   []string   // names of its rate limits
	Errors   []Error    // in addition to those of Envelope
	Forms    bool       // accepts its JSON body as a page's form, too, and answers forms with pages
}

// Error is an error code and its HTTP status.
type Error struct {
	Code   string
	Status int
}

type object = map[string]any

// schemas is the content of Part.Schemas. A part may refer to schemas of the others.
type schemas struct {
	Schemas         object `json:"schemas"` // in the shorthand of builder.schema
	SecuritySchemes object `json:"securitySchemes"`
}

// prose is the content of Part.Prose.
type prose struct {
	Info       object               `json:"info"`       // in one part only
	Tags       []string             `json:"tags"`       // groups of operations
	Parameters map[string]string    `json:"parameters"` // descriptions of path parameters
	Headers    map[string]object    `json:"headers"`    // request headers: schemas with descriptions
	Limits     map[string]string    `json:"limits"`     // descriptions of the rate limits
	Form       map[string]any       `json:"form"`       // schemas of the fields that are common to all forms of Route.Forms
	Operations map[string]operation `json:"operations"` // one for each route
}

type operation struct {
	Tag         string              `json:"tag"`
	Summary     string              `json:"summary"`
	Description string              `json:"description"`
	Query       map[string]object   `json:"query"`    // schemas with descriptions
	Headers     []string            `json:"headers"`  // names of prose.Headers
	JSON        any                 `json:"json"`     // schema of the body
	Form        any                 `json:"form"`     // schema of the body as a form
	Lines       any                 `json:"lines"`    // schema of one line of an application/x-ndjson body
	Optional    bool                `json:"optional"` // the body may be absent
	Example     any                 `json:"example"`  // of the JSON body
	Responses   map[string]response `json:"responses"`
}

// response is a successful response.
type response struct {
	Description string   `json:"description"`
	JSON        any      `json:"json"`  // schema of the body
	Other       []string `json:"other"` // additional media types
	Cache       string   `json:"cache"` // Cache-Control, unless it is no-store
}

// document is an OpenAPI document, in the order for readers.
type document struct {
	OpenAPI    string            `json:"openapi"`
	Info       object            `json:"info"`
	Servers    []object          `json:"servers"`
	Security   any               `json:"security,omitempty"` // of operations without their own
	Tags       []object          `json:"tags"`
	Paths      map[string]object `json:"paths"`
	Components components        `json:"components"`
}

type components struct {
	Schemas         object `json:"schemas"`
	Responses       object `json:"responses"`
	Parameters      object `json:"parameters,omitempty"`
	Headers         object `json:"headers"`
	SecuritySchemes object `json:"securitySchemes"`
}

// builder is an unfinished document with the faults found so far.
type builder struct {
	envelope Envelope
	doc      document
	faults   []error
}

// Build returns the document of all parts. Equal parts produce equal bytes. The error
// names every fault: a route without prose, prose without a route, an unknown or
// duplicate name, unknown fields in the files.
func Build(e Envelope, parts ...Part) ([]byte, error) {
	b := &builder{envelope: e, doc: document{
		OpenAPI: "3.1.0", Servers: []object{{"url": e.Server}}, Tags: []object{}, Paths: map[string]object{},
		Components: components{Schemas: object{}, Responses: object{}, Parameters: object{}, Headers: headers(), SecuritySchemes: object{}},
	}}
	read := make([]prose, len(parts))
	sources := object{}
	for i, p := range parts {
		var s schemas
		b.read(p.Schemas, &s)
		b.read(p.Prose, &read[i])
		b.merge(sources, s.Schemas)
		b.merge(b.doc.Components.SecuritySchemes, s.SecuritySchemes)
		b.introduce(read[i])
	}
	for name := range sources { // schemas refer to each other: register all names first
		b.doc.Components.Schemas[name] = nil
	}
	for name, s := range sources {
		b.doc.Components.Schemas[name] = b.schema(s, true)
	}
	for i, p := range parts {
		b.part(p.Routes, read[i])
	}
	b.shareRepeats()
	if b.doc.Info == nil {
		b.fault("no part has an info")
	}
	if len(b.faults) > 0 {
		return nil, errors.Join(b.faults...)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(b.doc); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	return out.Bytes(), nil
}

func (b *builder) fault(format string, args ...any) {
	b.faults = append(b.faults, fmt.Errorf("openapi: "+format, args...))
}

// read is strict, so that it reports misspelled fields.
func (b *builder) read(file []byte, v any) {
	if len(file) == 0 {
		return
	}
	dec := json.NewDecoder(bytes.NewReader(file))
	dec.DisallowUnknownFields()
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		b.fault("%T: %w", v, err)
	}
}

func (b *builder) merge(into, from object) {
	for name, v := range from {
		if into[name] != nil {
			b.fault("%s comes twice", name)
		}
		into[name] = v
	}
}

// introduce adds the sections before the operations.
func (b *builder) introduce(p prose) {
	if p.Info != nil && b.doc.Info != nil {
		b.fault("two parts have an info")
	}
	if p.Info != nil {
		b.doc.Info = p.Info
	}
	for _, tag := range p.Tags {
		b.doc.Tags = append(b.doc.Tags, object{"name": tag})
	}
}

// part adds the operations of a part.
func (b *builder) part(routes []Route, p prose) {
	known := map[string]bool{}
	for _, rt := range routes {
		known[rt.Pattern] = true
		op, ok := p.Operations[rt.Pattern]
		if !ok {
			b.fault("%s has no prose: describe it in openapi/prose.json", rt.Pattern)
			continue
		}
		method, path, _ := strings.Cut(rt.Pattern, " ")
		method = strings.ToLower(method)
		if b.doc.Paths[path] == nil {
			b.doc.Paths[path] = object{}
		}
		b.merge(b.doc.Paths[path], object{method: b.operation(rt, method, path, op, p)})
		if method == "get" {
			b.doc.Paths[path]["head"] = b.head(rt, path, op, p)
		}
	}
	for pattern := range p.Operations {
		if !known[pattern] {
			b.fault("%s has prose and no route: take it out of openapi/prose.json", pattern)
		}
	}
}

// common returns the fields that a GET shares with its HEAD.
func (b *builder) common(rt Route, method, path string, op operation, p prose) object {
	if !slices.ContainsFunc(b.doc.Tags, func(tag object) bool { return tag["name"] == op.Tag }) {
		b.fault("%s: there is no tag %q", rt.Pattern, op.Tag)
	}
	o := object{"operationId": operationID(method, path), "tags": []string{op.Tag}, "security": b.security(rt)}
	if list := b.parameters(path, op, p); len(list) > 0 {
		o["parameters"] = list
	}
	return o
}

func (b *builder) operation(rt Route, method, path string, op operation, p prose) object {
	if op.Summary == "" {
		b.fault("%s has no summary", rt.Pattern)
	}
	if rt.Forms {
		op = b.withForm(rt, op, p)
	}
	o := b.common(rt, method, path, op, p)
	o["summary"] = op.Summary
	if op.Description != "" {
		o["description"] = op.Description
	}
	if body := b.requestBody(op); body != nil {
		o["requestBody"] = body
	}
	o["responses"] = b.responses(rt, op, p)
	return o
}

// operationID returns "getMe" for GET /me and "deleteSessionsById" for DELETE
// /sessions/{id}.
func operationID(method, path string) string {
	path = strings.ReplaceAll(path, "{", "by ")
	id := method
	for _, word := range strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune("/-_. {}", r) }) {
		id += strings.ToUpper(word[:1]) + word[1:]
	}
	return id
}

func (b *builder) security(rt Route) []object {
	alternatives := []object{}
	for _, names := range rt.Security {
		together := object{}
		for _, name := range names {
			if b.doc.Components.SecuritySchemes[name] == nil {
				b.fault("%s: there is no security scheme %q", rt.Pattern, name)
			}
			together[name] = []string{}
		}
		alternatives = append(alternatives, together)
	}
	return alternatives
}

var parameter = regexp.MustCompile(`\{([^}]+)\}`)

// parameters returns path parameters in order, then query parameters, then headers.
func (b *builder) parameters(path string, op operation, p prose) []any {
	var list []any
	for _, m := range parameter.FindAllStringSubmatch(path, -1) {
		if p.Parameters[m[1]] == "" {
			b.fault("%s: the parameter %s has no prose: describe it in openapi/prose.json", path, m[1])
		}
		list = append(list, shareable{camel(m[1]), object{"name": m[1], "in": "path", "required": true, "description": p.Parameters[m[1]], "schema": object{"type": "string"}}})
	}
	add := func(name, in string, schema object) {
		s := maps.Clone(schema)
		q := object{"name": name, "in": in}
		if description, ok := s["description"]; ok {
			q["description"] = description
			delete(s, "description")
		}
		q["schema"] = b.schema(s, false)
		list = append(list, shareable{camel(name), q})
	}
	for _, name := range sorted(op.Query) {
		add(name, "query", op.Query[name])
	}
	for _, name := range op.Headers {
		if p.Headers[name] == nil {
			b.fault("%s: the header %s has no prose: describe it in openapi/prose.json", path, name)
			continue
		}
		add(name, "header", p.Headers[name])
	}
	return list
}

func (b *builder) requestBody(op operation) object {
	content := object{}
	if op.JSON != nil {
		c := object{"schema": b.schema(op.JSON, false)}
		if op.Example != nil {
			c["example"] = op.Example
		}
		content["application/json"] = c
	}
	if op.Form != nil {
		content["application/x-www-form-urlencoded"] = object{"schema": b.schema(op.Form, false)}
	}
	if op.Lines != nil {
		content["application/x-ndjson"] = object{"schema": b.schema(op.Lines, false)}
	}
	if len(content) == 0 {
		return nil
	}
	return object{"required": !op.Optional, "content": content}
}
