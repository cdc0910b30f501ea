package apicheck

import (
	"slices"
	"strings"
	"testing"
)

func TestRequest(t *testing.T) {
	c, err := Load([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	const json, form = "application/json; charset=utf-8", "application/x-www-form-urlencoded"
	for name, r := range map[string]struct {
		method, path, contentType, body string
		want                            string // part of the error; empty: none
	}{
		"good":              {"POST", "/things", json, `{"a":"b"}`, ""},
		"good form":         {"POST", "/things", form, "a=b", ""},
		"none needed":       {"GET", "/things/7", "", "", ""},
		"left out":          {"POST", "/optional", "", "", ""},
		"unknown path":      {"POST", "/other", json, `{}`, "not in the document"},
		"unknown method":    {"PUT", "/things", json, `{}`, "does not document PUT"},
		"none given":        {"POST", "/things", json, "", "needs a body"},
		"none taken":        {"GET", "/things/7", json, `{}`, "should have none"},
		"missing field":     {"POST", "/things", json, `{}`, "missing property 'a'"},
		"additional field":  {"POST", "/things", json, `{"a":"b","c":1}`, "'c' not allowed"},
		"wrong type":        {"POST", "/things", json, `{"a":1}`, "want string"},
		"optional but bad":  {"POST", "/optional", json, `{}`, "missing property 'a'"},
		"no JSON":           {"POST", "/things", json, "a=b", "invalid character"},
		"missing in form":   {"POST", "/things", form, "b=a", "missing property 'a'"},
		"twice in form":     {"POST", "/things", form, "a=b&a=c", "a comes 2 times"},
		"no form":           {"POST", "/things", form, "a=%zz", "invalid URL escape"},
		"other media type":  {"POST", "/things", "text/plain", "a", "takes no text/plain"},
		"form where no one": {"POST", "/optional", form, "a=b", "takes no " + form},
		"no media type":     {"POST", "/things", "", `{"a":"b"}`, "content type"},
	} {
		err := c.Request(r.method, r.path, r.contentType, []byte(r.body))
		if (err == nil) != (r.want == "") || (err != nil && !strings.Contains(err.Error(), r.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOperations(t *testing.T) {
	c, err := Load([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"GET /things/new", "GET /things/{id}", "GET /{kind}/new", "POST /optional", "POST /things"}
	if got := c.Operations(); !slices.Equal(got, want) {
		t.Errorf("operations %v, want %v", got, want)
	}
}

func TestLoad(t *testing.T) {
	for _, bad := range []string{"", "[]", `{"a":`, `"openapi"`} {
		if _, err := Load([]byte(bad)); err == nil {
			t.Errorf("%q is taken for a document", bad)
		}
	}
}

func TestReferences(t *testing.T) {
	c, err := Load([]byte(`{"a":{"$ref":"#/b~1c"},"d":[{"$ref":"#/no/where"}],"b/c":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.References(); !slices.Equal(got, []string{"#/no/where"}) {
		t.Errorf("dangling %v", got)
	}
}
