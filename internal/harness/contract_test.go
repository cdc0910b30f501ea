package harness

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// People copy examples, so each one matches its schema. The examples of requests are checked
// when the document is read.
func TestSchemaExamples(t *testing.T) {
	for _, name := range []string{"Email", "Error", "Phone", "Session", "User"} {
		schema := API().Document.Components.Schemas[name].Value
		if len(schema.Examples) == 0 {
			t.Errorf("%s has no example", name)
		}
		for _, example := range schema.Examples {
			body, err := json.Marshal(example)
			if err != nil {
				t.Fatal(err)
			}
			if err := API().Fits("#/components/schemas/"+name, body); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// A response that differs from the document is an error.
func TestContract(t *testing.T) {
	header := func(contentType string, others ...string) http.Header {
		h := http.Header{"X-Request-Id": {"r"}, "Cache-Control": {"no-store"}}
		if contentType != "" {
			h.Set("Content-Type", contentType)
		}
		for _, name := range others {
			if name, missing := strings.CutPrefix(name, "-"); missing {
				h.Del(name)
			} else {
				h.Set(name, "1")
			}
		}
		return h
	}
	const failure = `{"code":"not_found","message":"m","request_id":"r"}`
	for name, r := range map[string]struct {
		method, path string
		status       int
		header       http.Header
		body         string
		want         string // part of the error; empty: none
	}{
		"valid":              {"GET", "/healthz", 200, header("application/json; charset=utf-8"), `{"status":"ok"}`, ""},
		"valid error":        {"GET", "/healthz", 404, header("application/json"), failure, ""},
		"valid parameter":    {"DELETE", "/sessions/x", 404, header("application/json"), failure, ""},
		"valid HEAD":         {"HEAD", "/healthz", 200, header(""), "x", ""},
		"valid page":         {"GET", "/reset-password", 200, header("text/html; charset=utf-8"), "<html>", ""},
		"undeclared path":    {"GET", "/nothing", 404, header("application/json"), failure, "/nothing"},
		"undeclared method":  {"PUT", "/healthz", 404, header("application/json"), failure, "PUT"},
		"undeclared status":  {"GET", "/healthz", 418, header("application/json"), failure, "status"},
		"undeclared field":   {"GET", "/healthz", 200, header("application/json"), `{"status":"ok","secret":"x"}`, "secret"},
		"wrong type":         {"GET", "/healthz", 404, header("application/json"), `{"code":"not_found","message":7,"request_id":"r"}`, "message"},
		"wrong value":        {"GET", "/healthz", 200, header("application/json"), `{"status":"well"}`, "status"},
		"missing field":      {"GET", "/healthz", 200, header("application/json"), `{}`, "status"},
		"missing header":     {"GET", "/healthz", 200, header("application/json", "-X-Request-Id"), `{"status":"ok"}`, "X-Request-Id"},
		"wrong header":       {"GET", "/healthz", 200, header("application/json", "Cache-Control"), `{"status":"ok"}`, "Cache-Control"},
		"missing on HEAD":    {"HEAD", "/healthz", 200, header("", "-X-Request-Id"), "", "X-Request-Id"},
		"undeclared code":    {"GET", "/healthz", 404, header("application/json"), strings.Replace(failure, "not_found", "user_banned", 1), "/code"},
		"no JSON":            {"GET", "/healthz", 200, header("application/json"), `<html>`, "invalid character"},
		"undeclared type":    {"GET", "/healthz", 200, header("text/html"), `{"status":"ok"}`, "text/html"},
		"no type":            {"GET", "/healthz", 200, header(""), `{"status":"ok"}`, `""`},
		"body where none is": {"DELETE", "/sessions/x", 204, header(""), "x", "has a body"},
	} {
		err := API().Response(r.method, r.path, r.status, r.header, []byte(r.body))
		if (err == nil) != (r.want == "") || err != nil && !strings.Contains(err.Error(), r.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// sometimes are the fields that an answer may lack; any other is null instead.
var sometimes = map[string][]string{
	"Session": {"recovery_codes_left", "recovery_codes"},
	"Enabled": {"recovery_codes_left"},
	"Error":   {"details", "mfa_token", "expires_in", "factors"},

	"PasskeyRequest": {"request_id"},
}

// Returned objects are closed, so that a leaked field fails a test, and complete, so that a
// lost field does.
func TestDocumentObjectsAreStrict(t *testing.T) {
	for name, ref := range API().Document.Components.Schemas {
		schema := ref.Value
		if !schema.Type.Is("object") {
			continue
		}
		if open := schema.AdditionalProperties.Has; open == nil || *open {
			t.Errorf("%s takes additional properties", name)
		}
		for p := range schema.Properties {
			if slices.Contains(schema.Required, p) == slices.Contains(sometimes[name], p) {
				t.Errorf("%s.%s: required, or else listed under sometimes", name, p)
			}
		}
	}
}

// An Error offers a second factor only where one is required.
func TestErrorSchema(t *testing.T) {
	for body, valid := range map[string]bool{
		`{"code":"bad_json","message":"m","request_id":"r"}`:                                        true,
		`{"code":"mfa_required","message":"m","request_id":"r","mfa_token":"t","expires_in":300}`:   true,
		`{"code":"mfa_required","message":"m","request_id":"r"}`:                                    false,
		`{"code":"bad_json","message":"m","request_id":"r","mfa_token":"t"}`:                        false,
		`{"code":"bad_json","message":"m"}`:                                                         false,
		`{"code":"bad_json","message":"m","request_id":"r","cause":"secret"}`:                       false,
		`{"code":"weak_password","message":"m","request_id":"r","details":{"reasons":["common"]}}`:  true,
		`{"code":"weak_password","message":"m","request_id":"r","details":{"password":"hunter2!"}}`: false,
	} {
		if err := API().Fits("#/components/schemas/Error", []byte(body)); (err == nil) != valid {
			t.Errorf("%s: %v", body, err)
		}
	}
}
