package harness

import (
	"bytes"
	"context"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Contract is an OpenAPI document that responses are compared with. It is safe for
// concurrent use.
type Contract struct {
	Document *openapi3.T
	router   routers.Router
	bodies   *jsonschema.Compiler // the other validator mishandles null in enumerations and in {}

	mu     sync.Mutex
	schema map[string]*jsonschema.Schema // by JSON pointer
}

// NewContract reads a document. The error names dangling references, operations without
// their path parameters, duplicate names, and examples that violate their schema.
func NewContract(document []byte) (*Contract, error) {
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err != nil {
		return nil, err
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		return nil, err
	}
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return nil, err
	}
	c := &Contract{Document: doc, router: router, bodies: jsonschema.NewCompiler(), schema: map[string]*jsonschema.Schema{}}
	c.bodies.DefaultDraft(jsonschema.Draft2020)
	c.bodies.AssertFormat()
	return c, c.bodies.AddResource("openapi.json", whole)
}

// Operations returns "GET /path" of each operation, sorted. HEAD is omitted, because it
// belongs to GET.
func (c *Contract) Operations() []string {
	var list []string
	for path, item := range c.Document.Paths.Map() {
		for method := range item.Operations() {
			if method != http.MethodHead {
				list = append(list, method+" "+path)
			}
		}
	}
	slices.Sort(list)
	return list
}

// Response checks that the document has the operation, the status, the headers, and the
// media type and the members of the body. The path is relative to the mount.
func (c *Contract) Response(method, path string, status int, header http.Header, body []byte) error {
	r, err := http.NewRequestWithContext(context.Background(), method, c.Document.Servers[0].URL+path, http.NoBody)
	if err != nil {
		return err
	}
	route, parameters, err := c.router.FindRoute(r)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	r.Method = http.MethodGet // the headers of a HEAD are not compared
	mediaType, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: parameters, Route: route},
		Status:                 status,
		Header:                 header,
		Options:                &openapi3filter.Options{IncludeResponseStatus: true, ExcludeResponseBody: true},
	}
	if err := openapi3filter.ValidateResponse(context.Background(), input); err != nil {
		return fmt.Errorf("%s %s %d: %w", method, route.Path, status, err)
	}
	if method == http.MethodHead { // a recorder keeps the body that HTTP omits
		return nil
	}
	response := route.Operation.Responses.Status(status)
	switch content := response.Value.Content; {
	case content == nil && len(body) > 0:
		return fmt.Errorf("%s %s %d has a body, and the document has none", method, route.Path, status)
	case content != nil && content[mediaType] == nil:
		return fmt.Errorf("%s %s %d has a body of type %q, which the document has not", method, route.Path, status, mediaType)
	case content == nil || mediaType != "application/json":
		return nil
	}
	at := response.Ref
	if at == "" {
		at = fmt.Sprintf("#/paths/%s/%s/responses/%d", escaped.Replace(route.Path), strings.ToLower(method), status)
	}
	if err := c.Fits(at+"/content/application~1json/schema", body); err != nil {
		return fmt.Errorf("%s %s %d: %w", method, route.Path, status, err)
	}
	return nil
}

// escaped escapes a path for a JSON pointer in a URL.
var escaped = strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D")

// Fits checks JSON against the schema at a JSON pointer.
func (c *Contract) Fits(at string, body []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.schema[at] == nil {
		if c.schema[at], err = c.bodies.Compile("openapi.json" + at); err != nil {
			return err
		}
	}
	return c.schema[at].Validate(v)
}
