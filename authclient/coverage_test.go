package authclient

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// document is the part of a server's OpenAPI document that clients have to cover.
type document struct {
	Security   security // of operations without their own
	Paths      map[string]map[string]struct{ Security *security }
	Components struct {
		Schemas map[string]schema
	}
}

type security []map[string][]string

type schema struct {
	Properties map[string]json.RawMessage
}

func readDocument(t *testing.T) document {
	t.Helper()
	rec := httptest.NewRecorder()
	newService(t).Handler().ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/auth/v1/openapi.json", nil))
	var d document
	if err := json.Unmarshal(rec.Body.Bytes(), &d); err != nil || len(d.Paths) < 50 {
		t.Fatal(err, len(d.Paths))
	}
	return d
}

// operations returns the document's operations, as "GET /admin/users/{}".
func (d document) operations(keep func(path string, s security) bool) (list []string) {
	for path, methods := range d.Paths {
		for method, o := range methods {
			s := d.Security
			if o.Security != nil {
				s = *o.Security
			}
			if keep(path, s) && slices.Contains([]string{"get", "post", "put", "patch", "delete"}, method) {
				list = append(list, strings.ToUpper(method)+" "+regexp.MustCompile(`\{\w+\}`).ReplaceAllString(path, "{}"))
			}
		}
	}
	slices.Sort(list)
	return list
}

// recorder records the requests it gets. Ids that tests give are "{}".
type recorder struct{ asked map[string]bool }

func (rec *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	rec.asked[r.Method+" "+strings.TrimPrefix(r.URL.Path, "/auth/v1")] = true
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(r.URL.Path, "/sessions") && r.Method == http.MethodGet, strings.HasSuffix(r.URL.Path, "/openid-configuration"):
		_, _ = io.WriteString(w, `{"issuer":"i"}`)
	default: // a session, for every method that completes a sign-in
		_, _ = io.WriteString(w, `{"access_token":"a","refresh_token":"r","expires_in":900,"token_type":"bearer","user":{"id":"u"},"url":"u"}`)
	}
}

// callAll calls every method of v, with "{}" for texts.
func callAll(t *testing.T, v reflect.Value, skip ...string) {
	t.Helper()
	for i := range v.NumMethod() {
		name, m := v.Type().Method(i).Name, v.Method(i)
		if slices.Contains(skip, name) {
			continue
		}
		var in []reflect.Value
		for j := range m.Type().NumIn() {
			if m.Type().IsVariadic() && j == m.Type().NumIn()-1 {
				break
			}
			switch p := m.Type().In(j); {
			case p == reflect.TypeFor[context.Context]():
				in = append(in, reflect.ValueOf(t.Context()))
			case p == reflect.TypeFor[io.Reader]():
				in = append(in, reflect.ValueOf(strings.NewReader("{}\n")))
			case p.Kind() == reflect.String:
				in = append(in, reflect.ValueOf("{}").Convert(p))
			case p.Kind() == reflect.Struct && p != reflect.TypeFor[OTPParams]() && p.NumField() > 0 && p.Field(0).Name == "Provider":
				x := reflect.New(p).Elem()
				x.Field(0).SetString("{}")
				in = append(in, x)
			case p.Kind() == reflect.Func:
				in = append(in, reflect.MakeFunc(p, func([]reflect.Value) []reflect.Value { return nil }))
			default:
				in = append(in, reflect.Zero(p))
			}
		}
		for _, out := range m.Call(in) {
			if out.Kind() == reflect.Func && out.Type().CanSeq2() {
				for range out.Seq2() {
					break
				}
			}
		}
	}
}

// Every operation of the admin side that accepts secret keys has a method, and no method
// calls anything else.
func TestAdminHasEveryOperationForKeys(t *testing.T) {
	t.Parallel()
	rec := &recorder{map[string]bool{}}
	srv := httptest.NewServer(rec)
	defer srv.Close()
	a, err := NewAdmin(srv.URL, secretKey)
	if err != nil {
		t.Fatal(err)
	}
	callAll(t, reflect.ValueOf(a))
	want := readDocument(t).operations(func(path string, s security) bool {
		return strings.HasPrefix(path, "/admin/") && slices.ContainsFunc(s, func(schemes map[string][]string) bool { return schemes["secret-key"] != nil })
	})
	if len(want) < 50 {
		t.Errorf("only %d operations accept keys", len(want))
	}
	compare(t, rec.asked, want)
}

// Every flow of the wire has a method, too, except pages that browsers open.
func TestClientHasEveryFlow(t *testing.T) {
	t.Parallel()
	rec := &recorder{map[string]bool{}}
	srv := httptest.NewServer(rec)
	defer srv.Close()
	c, err := NewClient(srv.URL, WithTokenStore(&endless{}))
	if err != nil {
		t.Fatal(err)
	}
	callAll(t, reflect.ValueOf(c), "SignOut", "Transport", "DeleteAccount") // methods that sign out come last
	ctx := t.Context()
	_, _ = c.VerifyOTP(ctx, VerifyOTPParams{Phone: "1"})
	_, _ = c.SendOTP(ctx, OTPParams{Phone: "1"})
	_ = c.Refresh(ctx)
	_ = c.DeleteAccount(ctx)
	_, _ = c.VerifyMagicLink(ctx, "x")
	_ = c.SignOut(ctx, ScopeGlobal)
	for _, page := range []string{"GET /magic-link/verify", "GET /verify-email", "GET /reset-password", "GET /secure-account", "GET /oauth/{}/callback", "POST /oauth/{}/callback", "GET /openapi.json", "GET /pages/passkey.js", "GET /.well-known/jwks.json", "GET /.well-known/openid-configuration",
		"POST /passkeys/sign-in/begin", "POST /passkeys/sign-in/finish", "POST /me/passkeys/begin", "POST /me/passkeys"} {
		rec.asked[page] = true // of browsers and verifiers
	}
	compare(t, rec.asked, readDocument(t).operations(func(path string, _ security) bool { return !strings.HasPrefix(path, "/admin/") }))
}

// endless is a store that always has its session.
type endless struct{ MemoryStore }

func (*endless) Load(context.Context) (*Session, error) {
	return &Session{AccessToken: "a", RefreshToken: "r", ExpiresAt: time.Now().Add(time.Hour), User: User{ID: "u"}}, nil
}

func compare(t *testing.T, asked map[string]bool, want []string) {
	t.Helper()
	for _, op := range want {
		if !asked[op] {
			t.Error("the client lacks", op)
		}
	}
	for op := range asked {
		if !slices.Contains(want, op) {
			t.Error("the server lacks", op)
		}
	}
}

// The hand-written types have exactly the members that the document gives them.
func TestTypesAreTheDocuments(t *testing.T) {
	t.Parallel()
	d := readDocument(t)
	for name, typ := range map[string]reflect.Type{
		"User": reflect.TypeFor[User](), "SessionInfo": reflect.TypeFor[SessionInfo](), "Settings": reflect.TypeFor[Settings](), "TOTPSetup": reflect.TypeFor[TOTPSetup](), "Passkey": reflect.TypeFor[Passkey](),
	} {
		s, ok := d.Components.Schemas[name]
		if !ok {
			t.Errorf("the document has no %s", name)
			continue
		}
		members := map[string]bool{}
		for _, f := range reflect.VisibleFields(typ) {
			if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag != "" {
				members[tag] = true
			}
		}
		for m := range s.Properties {
			if !members[m] {
				t.Errorf("%s lacks %s", typ, m)
			}
			delete(members, m)
		}
		for m := range members {
			t.Errorf("%s has %s, which the document has not", typ, m)
		}
	}
}
