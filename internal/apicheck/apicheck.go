// Package apicheck holds responses to an OpenAPI 3.1 document, in tests. Schemas
// of OpenAPI 3.1 are JSON Schema 2020-12, so a validator of that does the work.
package apicheck

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"sort"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Checker knows one document. It is not safe for concurrent use.
type Checker struct {
	doc      map[string]any
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema
}

const location = "mem:///openapi.json"

// Load reads a document.
func Load(doc []byte) (*Checker, error) {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		return nil, err
	}
	root, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("apicheck: not an object")
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource(location, root); err != nil {
		return nil, err
	}
	return &Checker{doc: root, compiler: c, compiled: map[string]*jsonschema.Schema{}}, nil
}

// Operations lists "GET /path" for everything in the document, sorted.
func (c *Checker) Operations() []string {
	var ops []string
	paths, _ := c.doc["paths"].(map[string]any)
	for path, item := range paths {
		methods, _ := item.(map[string]any)
		for m := range methods {
			ops = append(ops, strings.ToUpper(m)+" "+path)
		}
	}
	sort.Strings(ops)
	return ops
}

// Response checks one response: the status is documented for the operation, the
// headers promised are there, and the body fits its schema. Path is relative to
// the mount.
func (c *Checker) Response(method, path string, status int, header http.Header, body []byte) error {
	template, ok := c.match(path)
	if !ok {
		return fmt.Errorf("apicheck: %s is not in the document", path)
	}
	if method == http.MethodHead {
		method = http.MethodGet
	}
	at := []string{"paths", template, strings.ToLower(method), "responses", strconv.Itoa(status)}
	response, ok := c.lookup(at...)
	if !ok {
		return fmt.Errorf("apicheck: %s %s does not document status %d", method, template, status)
	}
	if ref, isRef := response["$ref"].(string); isRef {
		at = strings.Split(strings.TrimPrefix(ref, "#/"), "/")
		response, _ = c.lookup(at...)
	}
	if err := c.headers(response, header); err != nil {
		return fmt.Errorf("apicheck: %s %s %d: %w", method, template, status, err)
	}
	content, _ := response["content"].(map[string]any)
	if len(content) == 0 {
		if len(body) > 0 {
			return fmt.Errorf("apicheck: %s %s %d has a body, and should have none", method, template, status)
		}
		return nil
	}
	mediaType, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return fmt.Errorf("apicheck: %s %s %d: content type: %w", method, template, status, err)
	}
	if content[mediaType] == nil {
		return fmt.Errorf("apicheck: %s %s %d answers %s", method, template, status, mediaType)
	}
	if mediaType != "application/json" {
		return nil
	}
	var v any
	if v, err = jsonschema.UnmarshalJSON(bytes.NewReader(body)); err != nil {
		return fmt.Errorf("apicheck: %s %s %d: %w", method, template, status, err)
	}
	if err := c.validate(v, append(at, "content", mediaType, "schema")...); err != nil {
		return fmt.Errorf("apicheck: %s %s %d: %w", method, template, status, err)
	}
	return nil
}

// headers checks the headers that a response promises.
func (c *Checker) headers(response map[string]any, header http.Header) error {
	named, _ := response["headers"].(map[string]any)
	for name := range named {
		values := header.Values(name)
		if len(values) == 0 {
			return fmt.Errorf("no %s header", name)
		}
		if err := c.validate(values[0], "components", "headers", name, "schema"); err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
	}
	return nil
}

// match finds the documented path with parameters that a real one is.
func (c *Checker) match(path string) (string, bool) {
	paths, _ := c.doc["paths"].(map[string]any)
	if _, ok := paths[path]; ok {
		return path, true
	}
	real := strings.Split(path, "/")
	for template := range paths {
		parts := strings.Split(template, "/")
		if len(parts) != len(real) {
			continue
		}
		same := true
		for i, p := range parts {
			same = same && (p == real[i] || strings.HasPrefix(p, "{"))
		}
		if same {
			return template, true
		}
	}
	return "", false
}

func (c *Checker) lookup(at ...string) (map[string]any, bool) {
	var v any = c.doc
	for _, name := range at {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	m, ok := v.(map[string]any)
	return m, ok
}

func (c *Checker) validate(v any, at ...string) error {
	var pointer strings.Builder
	for _, name := range at {
		pointer.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	key := pointer.String()
	if c.compiled[key] == nil {
		schema, err := c.compiler.Compile(location + "#" + escape(key))
		if err != nil {
			return err
		}
		c.compiled[key] = schema
	}
	return c.compiled[key].Validate(v)
}

// escape makes a JSON pointer fit for a URL's fragment.
func escape(pointer string) string {
	return strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D").Replace(pointer)
}

// References lists the document's references that lead nowhere.
func (c *Checker) References() []string {
	var dangling []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				if _, found := c.lookup(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...); !found {
					dangling = append(dangling, ref)
				}
			}
			for _, e := range v {
				walk(e)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(c.doc)
	return dangling
}
