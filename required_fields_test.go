package auth_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/authmount/auth"
)

// Every field that the document calls required is asked for by its name, at every
// endpoint that takes JSON, whether it is absent or empty.
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
	if err := json.Unmarshal(auth.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	w, _ := providerWorld(t, auth.WithRateLimits(auth.RateLimits{Off: true}))
	access := w.LoginAs(t, "ada@example.com").AccessToken
	samples := map[string]any{
		"email": "ben@example.com", "password": goodPassword, "current_password": goodPassword, "new_password": ownersPassword,
		"totp_code": "123456", "otp": "123456", "code": "x", "token": "x", "id_token": "x", "phone": number,
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
					a := w.call(strings.ToUpper(method)+" "+path, maps.Clone(body), access)
					fields := decodeAs[struct {
						Code    auth.Code
						Details struct{ Fields map[string]string }
					}](a)
					if a.status != 422 || fields.Code != auth.CodeValidationFailed || len(fields.Details.Fields) != 1 || fields.Details.Fields[required] == "" {
						t.Errorf("%s %s without %s: %d %s", method, path, required, a.status, a.body)
					}
				}
			}
		}
	}
	if tried < 12 {
		t.Errorf("only %d fields are required", tried)
	}
}

// Every endpoint that takes JSON says so of what is none, and not that a field is
// missing, or nothing.
func TestBadJSONAtEveryDoor(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Required bool
				Content  map[string]any
			}
		}
	}
	if err := json.Unmarshal(auth.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	w, _ := providerWorld(t, auth.WithRateLimits(auth.RateLimits{Off: true}))
	access := w.LoginAs(t, "ada@example.com").AccessToken
	tried := 0
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if op.RequestBody.Content["application/json"] == nil || strings.Contains(path, "{") {
				continue
			}
			tried++
			for _, body := range []string{`{"a":`, `[1]`, `"text"`} {
				a := w.do(strings.ToUpper(method), path, body, bearer(access))
				if a.status != 400 || !strings.Contains(string(a.body), `"bad_json"`) {
					t.Errorf("%s %s with %s: %d %s", method, path, body, a.status, a.body)
				}
			}
		}
	}
	if tried < 18 {
		t.Errorf("only %d endpoints were tried", tried)
	}
}
