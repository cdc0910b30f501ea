package apicheck

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/authmount/auth/authtest"
)

// own loads the document that a service returns.
func own(t *testing.T) *Checker {
	t.Helper()
	rec := httptest.NewRecorder()
	authtest.New(t).Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/openapi.json", http.NoBody))
	if rec.Code != http.StatusOK {
		t.Fatal(rec.Code, rec.Body)
	}
	c, err := Load(rec.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// operation is one operation of the document, and where it stands.
type operation struct {
	name, path string // "GET /me", "/me"
	at         []string
	fields     map[string]any
}

// operations lists every operation, and the HEAD of every GET.
func operations(c *Checker) []operation {
	names := c.Operations()
	for _, name := range names {
		if path, ok := strings.CutPrefix(name, "GET "); ok {
			names = append(names, "HEAD "+path)
		}
	}
	var list []operation
	for _, name := range names {
		method, path, _ := strings.Cut(name, " ")
		at, fields := c.lookupAt([]string{"paths", path, strings.ToLower(method)})
		list = append(list, operation{name, path, at, fields})
	}
	return list
}

func TestDocumentReferences(t *testing.T) {
	if dangling := own(t).References(); len(dangling) > 0 {
		t.Errorf("references to nothing: %v", dangling)
	}
}

var parameter = regexp.MustCompile(`\{([^}]+)\}`)

// Operations have names of their own, say what they are for, and declare the
// parameters of their path.
func TestDocumentOperations(t *testing.T) {
	c := own(t)
	var ids, tags []any
	known, _ := c.doc["tags"].([]any)
	for _, tag := range known {
		tag, _ := tag.(map[string]any)
		tags = append(tags, tag["name"])
	}
	for _, op := range operations(c) {
		id := op.fields["operationId"]
		if id == nil || id == "" || slices.Contains(ids, id) {
			t.Errorf("%s: operationId %v", op.name, id)
		}
		ids = append(ids, id)
		if op.fields["summary"] == nil || op.fields["security"] == nil {
			t.Errorf("%s lacks a summary or security", op.name)
		}
		if named, _ := op.fields["tags"].([]any); len(named) != 1 || !slices.Contains(tags, named[0]) {
			t.Errorf("%s: tags %v", op.name, named)
		}
		var want, got []string
		for _, m := range parameter.FindAllStringSubmatch(op.path, -1) {
			want = append(want, m[1])
		}
		list, _ := op.fields["parameters"].([]any)
		for _, p := range list {
			p, _ := p.(map[string]any)
			_, p = c.follow(nil, p)
			if name, _ := p["name"].(string); p["in"] == "path" && p["required"] == true {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s declares the path parameters %v, want %v", op.name, got, want)
		}
	}
}

// Every response carries the request id, and what its status promises.
func TestDocumentResponses(t *testing.T) {
	promises := map[string][]string{
		"303": {"Location"}, "401": {"WWW-Authenticate"}, "405": {"Allow"}, "429": {"Retry-After"}, "503": {"Retry-After"},
	}
	c := own(t)
	for _, op := range operations(c) {
		responses, _ := op.fields["responses"].(map[string]any)
		for _, must := range []string{"404", "405", "500", "503"} {
			if responses[must] == nil {
				t.Errorf("%s does not document %s", op.name, must)
			}
		}
		if keyed, _ := op.fields["security"].([]any); len(keyed) > 0 && responses["401"] == nil {
			t.Errorf("%s asks for credentials and does not document 401", op.name)
		}
		for status := range responses {
			at, response := c.follow(c.lookupAt(op.at, "responses", status))
			for _, name := range append([]string{"X-Request-Id"}, promises[status]...) {
				if _, header := c.follow(c.lookupAt(at, "headers", name)); header["required"] != true {
					t.Errorf("%s %s does not promise %s", op.name, status, name)
				}
			}
			if strings.HasPrefix(op.name, "HEAD") {
				if response["content"] != nil {
					t.Errorf("%s %s has a body", op.name, status)
				}
			} else if n, err := strconv.Atoi(status); err != nil || n >= 400 {
				checkError(t, c, op.name+" "+status, at)
			}
			if response["description"] == nil {
				t.Errorf("%s %s has no description", op.name, status)
			}
		}
	}
}

// checkError finds an error response that is not the Error object, or that does
// not say which codes it may carry.
func checkError(t *testing.T, c *Checker, name string, at []string) {
	t.Helper()
	_, schema := c.lookupAt(at, "content", "application/json", "schema")
	all, _ := schema["allOf"].([]any)
	var isError bool
	var codes []any
	for _, part := range all {
		part, _ := part.(map[string]any)
		isError = isError || part["$ref"] == "#/components/schemas/Error"
		props, _ := part["properties"].(map[string]any)
		code, _ := props["code"].(map[string]any)
		enum, _ := code["enum"].([]any)
		codes = append(codes, enum...)
	}
	if !isError || len(codes) == 0 {
		t.Errorf("%s is not an Error with its codes", name)
	}
	for i, code := range codes {
		if slices.Contains(codes[:i], code) {
			t.Errorf("%s lists %v twice", name, code)
		}
	}
}

// sometimes are the fields that an answer may lack; any other is null instead.
var sometimes = map[string][]string{
	"Session": {"recovery_codes_left"},
	"Enabled": {"recovery_codes_left"},
	"Error":   {"details", "mfa_token", "expires_in", "factors"},
}

// Objects that are answered are closed, so that a field that leaks fails a test,
// and complete, so that one that is lost does.
func TestDocumentObjectsAreStrict(t *testing.T) {
	c := own(t)
	schemas, _ := c.lookup("components", "schemas")
	for name := range schemas {
		_, schema := c.lookupAt([]string{"components", "schemas", name})
		if schema["type"] != "object" {
			continue
		}
		if schema["additionalProperties"] != false {
			t.Errorf("%s takes additional properties", name)
		}
		required, _ := schema["required"].([]any)
		props, _ := schema["properties"].(map[string]any)
		for p := range props {
			if slices.Contains(required, any(p)) == slices.Contains(sometimes[name], p) {
				t.Errorf("%s.%s: required, or else listed under sometimes", name, p)
			}
		}
	}
}

// Examples are what people copy: they fit their schemas.
func TestDocumentExamples(t *testing.T) {
	c := own(t)
	var checked int
	for _, op := range operations(c) {
		_, content := c.lookupAt(op.at, "requestBody", "content", "application/json")
		if content["example"] == nil {
			continue
		}
		checked++
		body, err := json.Marshal(content["example"])
		if err != nil {
			t.Fatal(err)
		}
		method, _, _ := strings.Cut(op.name, " ")
		if err := c.Request(method, op.path, "application/json", body); err != nil {
			t.Error(err)
		}
	}
	if checked == 0 {
		t.Error("no request has an example")
	}
	for _, name := range []string{"User", "Session", "Error"} {
		at, schema := c.lookupAt([]string{"components", "schemas", name})
		examples, _ := schema["examples"].([]any)
		if len(examples) == 0 {
			t.Errorf("%s has no example", name)
		}
		for i, example := range examples {
			if err := c.validate(example, at...); err != nil {
				t.Errorf("example %d of %s: %v", i, name, err)
			}
		}
	}
}

// Wherever an API key may be asked for, either header carries it, and a server
// without keys asks for none.
func TestDocumentSecurity(t *testing.T) {
	c := own(t)
	for _, op := range operations(c) {
		alternatives, _ := op.fields["security"].([]any)
		if len(alternatives) == 0 {
			continue
		}
		var names []string
		for _, a := range alternatives {
			a, _ := a.(map[string]any)
			names = append(names, strings.Join(slices.Sorted(maps.Keys(a)), "+"))
		}
		keyed, signedIn := []string{"apikey", "x-api-key", ""}, []string{"apikey+bearer", "bearer+x-api-key", "bearer"}
		if !slices.Equal(names, keyed) && !slices.Equal(names, signedIn) {
			t.Errorf("%s: security %q", op.name, names)
		}
	}
}

// HEAD asks for what GET asks for.
func TestDocumentHeads(t *testing.T) {
	c := own(t)
	for _, op := range operations(c) {
		if !strings.HasPrefix(op.name, "HEAD") {
			continue
		}
		_, get := c.lookupAt([]string{"paths", op.path, "get"})
		for _, same := range []string{"security", "parameters", "tags"} {
			if !reflect.DeepEqual(op.fields[same], get[same]) {
				t.Errorf("%s: %s %v, want %v", op.name, same, op.fields[same], get[same])
			}
		}
	}
}

// An Error offers to go on with a second factor only where one is asked for.
func TestErrorSchema(t *testing.T) {
	c := own(t)
	for body, good := range map[string]bool{
		`{"code":"bad_json","message":"m","request_id":"r"}`:                                        true,
		`{"code":"mfa_required","message":"m","request_id":"r","mfa_token":"t","expires_in":300}`:   true,
		`{"code":"mfa_required","message":"m","request_id":"r"}`:                                    false,
		`{"code":"bad_json","message":"m","request_id":"r","mfa_token":"t"}`:                        false,
		`{"code":"bad_json","message":"m"}`:                                                         false,
		`{"code":"bad_json","message":"m","request_id":"r","cause":"secret"}`:                       false,
		`{"code":"weak_password","message":"m","request_id":"r","details":{"reasons":["common"]}}`:  true,
		`{"code":"weak_password","message":"m","request_id":"r","details":{"password":"hunter2!"}}`: false,
	} {
		v, err := parse("application/json", []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.validate(v, "components", "schemas", "Error"); (err == nil) != good {
			t.Errorf("%s: %v", body, err)
		}
	}
}
