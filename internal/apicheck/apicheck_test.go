package apicheck

import (
	"net/http"
	"strings"
	"testing"
)

const doc = `{"openapi":"3.1.0","paths":{
	"/things/{id}":{"get":{"responses":{
		"200":{"headers":{"X-Id":{"$ref":"#/components/headers/X-Id"}},"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Thing"}}}},
		"204":{"headers":{"X-Note":{"schema":{"pattern":"^[a-z]+$"}}}},
		"404":{"$ref":"#/components/responses/Gone"}}}},
	"/things/new":{"parameters":[],"get":{"responses":{"201":{}}}},
	"/{kind}/new":{"get":{"responses":{"202":{}}},"head":{"responses":{"202":{"headers":{"X-Id":{"$ref":"#/components/headers/X-Id"}}}}}},
	"/things":{"post":{
		"requestBody":{"$ref":"#/components/requestBodies/Thing"},
		"responses":{"201":{}}}},
	"/optional":{"post":{
		"requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/Thing"}}}},
		"responses":{"201":{}}}}},
	"components":{
		"headers":{"X-Id":{"required":true,"schema":{"pattern":"^[0-9]+$"}}},
		"requestBodies":{"Thing":{"required":true,"content":{
			"application/json":{"schema":{"$ref":"#/components/schemas/Thing"}},
			"application/x-www-form-urlencoded":{"schema":{"$ref":"#/components/schemas/Thing"}}}}},
		"responses":{"Gone":{"content":{"application/json":{"schema":{"properties":{"code":{"enum":["gone"]}},"required":["code"]}}}}},
		"schemas":{"Thing":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}}}}`

// The checker has to notice whatever it is there to notice.
func TestResponse(t *testing.T) {
	c, err := Load([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	header := func(id, contentType string) http.Header {
		h := http.Header{}
		if id != "" {
			h.Set("X-Id", id)
		}
		if contentType != "" {
			h.Set("Content-Type", contentType)
		}
		return h
	}
	const json = "application/json; charset=utf-8"
	for name, r := range map[string]struct {
		method, path string
		status       int
		header       http.Header
		body         string
		want         string // part of the error; empty: none
	}{
		"good":             {"GET", "/things/7", 200, header("1", json), `{"a":"b"}`, ""},
		"no content":       {"GET", "/things/7", 204, nil, "", ""},
		"good error":       {"GET", "/things/7", 404, header("", json), `{"code":"gone"}`, ""},
		"optional header":  {"GET", "/things/7", 204, http.Header{"X-Note": {"hi"}}, "", ""},
		"plain over any":   {"GET", "/things/new", 201, nil, "", ""},
		"late parameter":   {"GET", "/other/new", 202, nil, "", ""},
		"head":             {"HEAD", "/other/new", 202, header("1", ""), "x", ""},
		"head of a GET":    {"HEAD", "/things/new", 201, nil, "", "does not document"},
		"head, no header":  {"HEAD", "/other/new", 202, nil, "", "no X-Id"},
		"empty parameter":  {"GET", "/things/", 200, nil, "", "not in the document"},
		"unknown path":     {"GET", "/other", 200, nil, "", "not in the document"},
		"unknown method":   {"POST", "/things/7", 200, nil, "", "does not document"},
		"unknown status":   {"GET", "/things/7", 500, nil, "", "does not document"},
		"missing header":   {"GET", "/things/7", 200, header("", json), `{"a":"b"}`, "no X-Id"},
		"bad header":       {"GET", "/things/7", 200, header("x", json), `{"a":"b"}`, "X-Id"},
		"bad option":       {"GET", "/things/7", 204, http.Header{"X-Note": {"7"}}, "", "X-Note"},
		"missing field":    {"GET", "/things/7", 200, header("1", json), `{}`, "200"},
		"wrong type":       {"GET", "/things/7", 200, header("1", json), `{"a":1}`, "200"},
		"leaked field":     {"GET", "/things/7", 200, header("1", json), `{"a":"b","hash":"x"}`, "200"},
		"wrong code":       {"GET", "/things/7", 404, header("", json), `{"code":"other"}`, "404"},
		"no JSON":          {"GET", "/things/7", 200, header("1", json), `<html>`, "200"},
		"other media type": {"GET", "/things/7", 200, header("1", "text/html"), `{"a":"b"}`, "text/html"},
		"no media type":    {"GET", "/things/7", 200, header("1", ""), `{"a":"b"}`, "content type"},
		"body with none":   {"GET", "/things/7", 204, nil, "x", "has a body"},
	} {
		err := c.Response(r.method, r.path, r.status, r.header, []byte(r.body))
		if (err == nil) != (r.want == "") || (err != nil && !strings.Contains(err.Error(), r.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
