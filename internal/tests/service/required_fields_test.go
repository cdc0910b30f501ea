package service_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
)

// Every request by which a program signs in may name the device and the transport of the
// session, and the document says so. A refresh and a confirmation create no session, and
// callbacks come from browsers.
func TestSignInsDocumentTheDevice(t *testing.T) {
	found := 0
	for path, item := range harness.API().Document.Paths.Map() {
		if item.Post == nil || path == "/refresh" || path == "/me/confirm" || strings.HasSuffix(path, "/callback") {
			continue
		}
		done := item.Post.Responses.Status(http.StatusOK)
		if done == nil || done.Value.Content["application/json"] == nil || done.Value.Content["application/json"].Schema.Ref != "#/components/schemas/Session" {
			continue
		}
		found++
		for _, name := range []string{"X-Device-Id", "X-Session-Transport"} {
			if item.Post.Parameters.GetByInAndName("header", name) == nil {
				t.Errorf("POST %s does not document %s", path, name)
			}
		}
		if item.Post.RequestBody.Value.Content["application/json"].Schema.Value.Properties["remember"] == nil {
			t.Errorf("POST %s does not document remember", path)
		}
	}
	if found < 7 {
		t.Errorf("%d sign-ins found", found)
	}
}

// A missing or empty required field is reported by its name, at every endpoint that takes JSON.
func TestRequiredFields(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct {
					Schema struct {
						Required   []string
						Properties map[string]any
					}
				}
			}
		}
	}
	if err := json.Unmarshal(harness.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	w, _ := harness.NewProviderWorld(t, auth.WithRateLimits(auth.RateLimits{Off: true}))
	access := w.LoginAs(t, "ada@example.com").AccessToken
	samples := map[string]any{
		"email": "ben@example.com", "password": harness.GoodPassword, "current_password": harness.GoodPassword, "new_password": harness.OwnersPassword,
		"totp_code": "123456", "otp": "123456", "code": "x", "token": "x", "id_token": "x", "request_id": "x", "phone": harness.PhoneNumber,
	}
	tried := 0
	for path, methods := range doc.Paths {
		for method, op := range methods {
			schema := op.RequestBody.Content["application/json"].Schema
			for _, required := range schema.Required {
				tried++
				body := map[string]any{}
				for field, sample := range samples {
					if _, has := schema.Properties[field]; has && (field != "phone" || required == "otp") {
						body[field] = sample
					}
				}
				for _, leave := range []bool{true, false} {
					body[required] = ""
					if leave {
						delete(body, required)
					}
					a := w.Call(strings.ToUpper(method)+" "+path, maps.Clone(body), access)
					fields := harness.DecodeAs[struct {
						Code    auth.Code
						Details struct{ Fields map[string]string }
					}](a)
					if a.Status != 422 || fields.Code != auth.CodeValidationFailed || len(fields.Details.Fields) != 1 || fields.Details.Fields[required] == "" {
						t.Errorf("%s %s without %s: %d %s", method, path, required, a.Status, a.Body)
					}
				}
			}
		}
	}
	if tried < 12 {
		t.Errorf("only %d fields are required", tried)
	}
}

// Every endpoint that takes JSON reports invalid JSON as such, and not as a missing field.
func TestBadJSONAtEveryDoor(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Required bool
				Content  map[string]any
			}
		}
	}
	if err := json.Unmarshal(harness.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	w, _ := harness.NewProviderWorld(t, auth.WithRateLimits(auth.RateLimits{Off: true}))
	access := w.LoginAs(t, "ada@example.com").AccessToken
	tried := 0
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if op.RequestBody.Content["application/json"] == nil || strings.Contains(path, "{") {
				continue
			}
			tried++
			for _, body := range []string{`{"a":`, `[1]`, `"text"`} {
				a := w.Do(strings.ToUpper(method), path, body, harness.Bearer(access))
				if a.Status != 400 || !strings.Contains(string(a.Body), `"bad_json"`) {
					t.Errorf("%s %s with %s: %d %s", method, path, body, a.Status, a.Body)
				}
			}
		}
	}
	if tried < 18 {
		t.Errorf("only %d endpoints were tried", tried)
	}
}
