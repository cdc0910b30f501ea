// Package apicheck holds requests and responses to an OpenAPI 3.1 document, in
// tests. Schemas of OpenAPI 3.1 are JSON Schema 2020-12, so a validator of that
// does the work.
package apicheck

import (
	"bytes"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Checker knows one document. It is safe for concurrent use.
type Checker struct {
	doc      map[string]any
	compiler *jsonschema.Compiler
	compiled map[string]*jsonschema.Schema

	mu sync.Mutex // of compiled, and of what the compiler still completes
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

// methods are the names in a path item that are operations; the others, such as
// parameters, are shared by them.
var methods = []string{"get", "put", "post", "delete", "options", "patch", "trace"}

// Operations lists "GET /path" for everything in the document, sorted. HEAD is
// left out, because it belongs to GET.
func (c *Checker) Operations() []string {
	var ops []string
	paths, _ := c.doc["paths"].(map[string]any)
	for path := range paths {
		item, _ := c.lookup("paths", path)
		for _, m := range methods {
			if item[m] != nil {
				ops = append(ops, strings.ToUpper(m)+" "+path)
			}
		}
	}
	slices.Sort(ops)
	return ops
}

// Response checks one response: the status is documented for the operation, the
// headers promised are there, and the body fits its schema. The body of a HEAD is
// not looked at. Path is relative to the mount.
func (c *Checker) Response(method, path string, status int, header http.Header, body []byte) error {
	template, ok := c.match(path)
	if !ok {
		return fmt.Errorf("apicheck: %s is not in the document", path)
	}
	at := []string{"paths", template, strings.ToLower(method), "responses", strconv.Itoa(status)}
	response, ok := c.lookup(at...)
	if !ok {
		return fmt.Errorf("apicheck: %s %s does not document status %d", method, template, status)
	}
	at, response = c.follow(at, response)
	if err := c.headers(at, response, header); err != nil {
		return fmt.Errorf("apicheck: %s %s %d: %w", method, template, status, err)
	}
	if method == http.MethodHead { // a recorder keeps what the wire leaves out
		return nil
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

// headers checks the headers that the response found at a place promises, and
// those that it only allows, if they are there.
func (c *Checker) headers(at []string, response map[string]any, header http.Header) error {
	named, _ := response["headers"].(map[string]any)
	for name := range named {
		at, promise := c.follow(c.lookupAt(at, "headers", name))
		values := header.Values(name)
		if len(values) == 0 {
			if promise["required"] == true {
				return fmt.Errorf("no %s header", name)
			}
			continue
		}
		if err := c.validate(values[0], append(at, "schema")...); err != nil {
			return fmt.Errorf("header %s: %w", name, err)
		}
	}
	return nil
}

// match finds the documented path that a real one is. Of several, the one whose
// parameters come latest is meant, so that /users/me is not a /users/{id}.
func (c *Checker) match(path string) (template string, ok bool) {
	paths, _ := c.doc["paths"].(map[string]any)
	var best string // the template with parameters marked by the highest rune: the least wins
	for t := range paths {
		rank, fits := fit(t, path)
		if fits && (!ok || rank < best) {
			template, best, ok = t, rank, true
		}
	}
	return template, ok
}

// fit tells whether a path is of a template, and how the template sorts among
// others that fit.
func fit(template, path string) (rank string, ok bool) {
	want, have := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(have) {
		return "", false
	}
	for i, w := range want {
		switch {
		case strings.HasPrefix(w, "{") && have[i] != "":
			want[i] = string(utf8.MaxRune)
		case w != have[i]:
			return "", false
		}
	}
	return strings.Join(want, "/"), true
}

// lookupAt is lookup below a place; it returns the place found, too.
func (c *Checker) lookupAt(at []string, below ...string) ([]string, map[string]any) {
	at = slices.Concat(at, below)
	v, _ := c.lookup(at...)
	return at, v
}

// follow goes where a $ref leads, from what was found at a place.
func (c *Checker) follow(at []string, v map[string]any) ([]string, map[string]any) {
	ref, ok := v["$ref"].(string)
	if !ok {
		return at, v
	}
	return c.lookupAt(pointer(ref))
}

// pointer splits a reference within the document into names (RFC 6901).
func pointer(ref string) []string {
	names := strings.Split(strings.TrimPrefix(ref, "#/"), "/")
	for i, n := range names {
		names[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(n)
	}
	return names
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
	var place strings.Builder
	for _, name := range at {
		place.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name))
	}
	key := place.String()
	c.mu.Lock()
	defer c.mu.Unlock()
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
func escape(place string) string {
	return strings.NewReplacer("%", "%25", "{", "%7B", "}", "%7D").Replace(place)
}

// References lists the document's references that lead nowhere.
func (c *Checker) References() []string {
	var dangling []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if ref, ok := v["$ref"].(string); ok {
				if _, found := c.lookup(pointer(ref)...); !found {
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
