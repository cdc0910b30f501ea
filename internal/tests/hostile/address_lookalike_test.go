package hostile_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// doorsFor lists the operations that have a JSON body with a field, from the document.
func doorsFor(t *testing.T, field string) []string {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(harness.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	at := func(v any, path ...string) map[string]any {
		for _, name := range path {
			m, _ := v.(map[string]any)
			v = m[name]
			if ref, ok := object(v)["$ref"].(string); ok {
				v = doc
				for _, part := range strings.Split(strings.TrimPrefix(ref, "#/"), "/") {
					v = object(v)[part]
				}
			}
		}
		return object(v)
	}
	var doors []string
	for path, methods := range at(doc, "paths") {
		for method, operation := range object(methods) {
			schema := at(operation, "requestBody", "content", "application/json", "schema")
			for _, s := range append(list(schema["anyOf"]), append(list(schema["oneOf"]), append(list(schema["allOf"]), schema)...)...) {
				if at(s, "properties")[field] != nil {
					doors = append(doors, strings.ToUpper(method)+" "+path)
					break
				}
			}
		}
	}
	return doors
}

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }

func list(v any) []any { l, _ := v.([]any); return l }

// wantField fails the test unless one field was refused.
func wantField(a *harness.Answer, name string) {
	a.T.Helper()
	a.Want(422, auth.CodeValidationFailed)
	e := harness.DecodeAs[struct {
		Details struct {
			Fields map[string]string `json:"fields"`
		} `json:"details"`
	}](a)
	if len(e.Details.Fields) != 1 || e.Details.Fields[name] == "" {
		a.T.Errorf("refused: %v, want %s", e.Details.Fields, name)
	}
}

// Every endpoint that takes an email address refuses one that could be mistaken for another.
// No account has such an address.
func TestLookalikesAtEveryDoor(t *testing.T) {
	w, idp := harness.NewProviderWorld(t, auth.WithRateLimits(auth.RateLimits{Off: true}))
	mike := w.Member("mike@example.com")
	doors := doorsFor(t, "email")
	if len(doors) < 5 {
		t.Fatalf("only %v take an address", doors)
	}
	for _, lookalike := range []string{"mİke@example.com", "mıke@example.com", "m\u0456ke@example.com", "mi\u0307ke@example.com", "ｍike@example.com", "mike\u200b@example.com", "mike@exam\u00adple.com", "mi\u212ae@example.com"} {
		for _, door := range doors {
			method, path, _ := strings.Cut(door, " ")
			body := map[string]any{"email": lookalike}
			if path == "/login" || path == "/signup" {
				body["password"] = harness.GoodPassword
			}
			wantField(w.Do(method, path, body, harness.Bearer(mike.AccessToken)), "email")
		}
		if _, err := w.ImportUser(t.Context(), auth.ImportUserParams{Email: lookalike, EmailVerified: true}); err == nil {
			t.Errorf("%+q was imported", lookalike)
		}
		v := w.NewVisitor(idp)
		s := v.SignIn("google", authtest.Person{Subject: lookalike, Email: lookalike, EmailVerified: true, Name: "Mike"}, "").Session()
		if s.User.ID == mike.User.ID || s.User.Email != "" {
			t.Errorf("%+q came from a provider, and signed in to %q with the address %q", lookalike, s.User.ID, s.User.Email)
		}
		if u, err := w.Store.User(t.Context(), store.ByEmail(lookalike)); err == nil {
			t.Errorf("%+q is %q's in the store", lookalike, u.Email)
		}
	}
}

// namesSeen are the names that reach the store.
type namesSeen struct {
	auth.Store
	t *testing.T
}

func (s namesSeen) Unwrap() auth.Store { return s.Store }

func (s namesSeen) check(name string) {
	if strings.ContainsAny(name, "\u200b\u202e\u2066\u00ad\u3164\u2800\n\u2028") || strings.TrimSpace(name) != name {
		s.t.Errorf("the name %+q was kept", name)
	}
}

func (s namesSeen) CreateUser(ctx context.Context, p store.CreateUser) (auth.User, error) {
	s.check(p.User.FullName)
	return s.Store.CreateUser(ctx, p)
}

func (s namesSeen) UpdateUser(ctx context.Context, p store.UpdateUser) (auth.User, error) {
	if p.Patch.FullName != nil {
		s.check(*p.Patch.FullName)
	}
	return s.Store.UpdateUser(ctx, p)
}

// A name reads the same everywhere, at every endpoint that takes one. Characters that change
// the direction of text are refused, and invisible characters are removed.
func TestNamesAtEveryDoor(t *testing.T) {
	idp := authtest.StartProvider(t)
	w := &harness.World{T: t, Log: &harness.SyncBuffer{}}
	w.Env = authtest.NewOn(t, namesSeen{harness.NewStore(t), t}, auth.WithRateLimits(auth.RateLimits{Off: true}), auth.WithProvider(idp.Google()))
	idp.Now = w.Clock.Now
	doors := doorsFor(t, "full_name")
	if len(doors) < 2 {
		t.Fatalf("only %v take a name", doors)
	}
	s := w.Member("ada@example.com")
	for i, c := range []struct{ given, want string }{ // "": refused
		{"Ada\u202eecalevoL", ""}, {"\u2066Ada", ""}, {"Ada\u061c", ""}, {"Ada\u2028Lovelace", ""}, {"Ada\nLovelace", ""}, {"Ada\ufffd", ""},
		{"A\u200bd\u00ada\ufeff Lovelace", "Ada Lovelace"}, {" \u3164Ada\u2800 ", "Ada"}, {"Ada ❤\ufe0f", "Ada ❤\ufe0f"}, {"Ada\ufe0f 👩\u200d🚀\u200d", "Ada 👩\u200d🚀"}, {"Ada\U000e0041", "Ada"},
		{"A\u0308da", "\u00c4da"}, {"A\u034f\u0308da", "\u00c4da"}, {"می\u200cخواهم", "می\u200cخواهم"}, {strings.Repeat("é", 200), strings.Repeat("é", 200)}, {strings.Repeat("é", 201), ""},
	} {
		for n, door := range doors {
			method, path, _ := strings.Cut(door, " ")
			body := map[string]any{"full_name": c.given}
			if path == "/signup" {
				body["email"], body["password"] = "n"+string(rune('a'+i))+string(rune('a'+n))+"@example.com", harness.GoodPassword
			}
			headers := []harness.Header{harness.Bearer(s.AccessToken)}
			if path == "/invitations/accept" {
				body["token"], body["password"] = w.Invited("v"+string(rune('a'+i))+"@example.com"), harness.GoodPassword
				headers = nil
			}
			a := w.Do(method, path, body, headers...)
			if c.want == "" {
				wantField(a, "full_name")
				continue
			}
			got := harness.DecodeAs[harness.User](a.Want(200))
			if path == "/signup" || path == "/invitations/accept" {
				got = a.Session().User
			}
			if got.FullName != c.want {
				t.Errorf("%s: %+q became %+q, want %+q", door, c.given, got.FullName, c.want)
			}
		}
		u, err := w.ImportUser(t.Context(), auth.ImportUserParams{Email: "i" + string(rune('a'+i)) + "@example.com", FullName: c.given})
		if (err != nil) != (c.want == "") || u.FullName != c.want {
			t.Errorf("import: %+q became %+q (%v), want %+q", c.given, u.FullName, err, c.want)
		}
		got := w.NewVisitor(idp).SignIn("google", authtest.Person{Subject: "s" + string(rune('a'+i)), Name: c.given}, "").Session()
		if got.User.FullName != c.want {
			t.Errorf("provider: %+q became %+q, want %+q", c.given, got.User.FullName, c.want)
		}
	}
}
