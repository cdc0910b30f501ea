package harness

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/authmount/auth"
)

var Transport = Header{"X-Session-Transport", "cookie"}

const (
	AccessCookie  = "__Host-authmount-access"
	RefreshCookie = "__Host-authmount-refresh"
)

// SetCookies returns the session cookies that a response sets, by name.
func (a *Answer) SetCookies() map[string]*http.Cookie {
	m := map[string]*http.Cookie{}
	for _, c := range (&http.Response{Header: a.Header}).Cookies() {
		if strings.HasSuffix(c.Name, "-access") || strings.HasSuffix(c.Name, "-refresh") {
			m[c.Name] = c
		}
	}
	return m
}

func Cookies(pairs ...string) Header { return Header{"Cookie", strings.Join(pairs, "; ")} }

// InCookies signs up an account in cookie mode.
func (w *World) InCookies(email string) (access, refresh string) {
	w.T.Helper()
	set := w.Do("POST", "/signup", map[string]any{"email": email, "password": GoodPassword}, Transport).Want(200).SetCookies()
	if len(set) != 2 || set[AccessCookie] == nil || set[RefreshCookie] == nil {
		w.T.Fatalf("cookies %v", set)
	}
	return set[AccessCookie].Value, set[RefreshCookie].Value
}

// API is the OpenAPI document that every response is checked against.
var API = sync.OnceValue(func() *Contract {
	c, err := NewContract(Document())
	if err != nil {
		panic(err)
	}
	return c
})

// Answer is a response that was read and checked.
type Answer struct {
	T      *testing.T
	Status int
	Header http.Header
	Body   []byte
}

// Header is a header to set on a request.
type Header struct{ Name, Value string }

func Bearer(token string) Header { return Header{"Authorization", "Bearer " + token} }

// Do sends one request and checks the response against the OpenAPI document.
func (w *World) Do(method, path string, body any, headers ...Header) *Answer {
	w.T.Helper()
	a := w.DoOn(w.Handler(), method, path, body, headers...)
	path, _, _ = strings.Cut(path, "?")
	if method != http.MethodOptions && documented(path, a.Status) {
		if err := API().Response(method, strings.TrimPrefix(path, "/auth/v1"), a.Status, a.Header, a.Body); err != nil {
			w.T.Errorf("%v\n%s", err, a.Body)
		}
	}
	return a
}

// DoOn sends one request to a handler.
func (w *World) DoOn(h http.Handler, method, path string, body any, headers ...Header) *Answer {
	w.T.Helper()
	var reader io.Reader = http.NoBody
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			w.T.Fatal(err)
		}
		reader = bytes.NewReader(raw)
	}
	r := httptest.NewRequestWithContext(w.T.Context(), method, path, reader)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, edit := range headers {
		switch edit.Name {
		case "RemoteAddr":
			r.RemoteAddr = edit.Value
		default:
			r.Header.Set(edit.Name, edit.Value)
		}
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, r)
	return &Answer{T: w.T, Status: rec.Code, Header: rec.Header(), Body: rec.Body.Bytes()}
}

// documented reports whether a response can be in the document: unknown methods and
// paths cannot.
func documented(path string, status int) bool {
	known := strings.TrimPrefix(path, "/auth/v1")
	return status != http.StatusMethodNotAllowed && slices.ContainsFunc(API().Operations(), func(op string) bool {
		_, p, _ := strings.Cut(op, " ")
		return template(p).MatchString(known)
	})
}

// template returns a pattern that matches a documented path.
func template(path string) *regexp.Regexp {
	return regexp.MustCompile("^" + regexp.MustCompile(`\\{[a-z]+\\}`).ReplaceAllString(regexp.QuoteMeta(path), "[^/]+") + "$")
}

// Want fails the test unless the status is right and, for errors, the code.
func (a *Answer) Want(status int, code ...auth.Code) *Answer {
	a.T.Helper()
	if a.Status != status {
		a.T.Fatalf("status %d, want %d: %s", a.Status, status, a.Body)
	}
	if len(code) > 0 {
		var e struct {
			Code auth.Code `json:"code"`
		}
		if err := json.Unmarshal(a.Body, &e); err != nil || e.Code != code[0] {
			a.T.Fatalf("code %q, want %q: %s", e.Code, code[0], a.Body)
		}
	}
	return a
}

// Session is the Session object of the API, with the fields that tests read.
type Session struct {
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	User         User   `json:"user"`
	Left         int    `json:"recovery_codes_left"`
}

type User struct {
	ID            string         `json:"id"`
	Email         string         `json:"email"`
	EmailVerified bool           `json:"email_verified"`
	MFAEnabled    bool           `json:"mfa_enabled"`
	Identities    []Identity     `json:"identities"`
	FullName      string         `json:"full_name"`
	UserMetadata  map[string]any `json:"user_metadata"`
	AppMetadata   map[string]any `json:"app_metadata"`
	Roles         []string       `json:"roles"`
}

type Identity struct {
	Provider string `json:"provider"`
	Subject  string `json:"subject"`
	Email    string `json:"email"`
}

func DecodeAs[T any](a *Answer) T {
	a.T.Helper()
	var v T
	if err := json.Unmarshal(a.Body, &v); err != nil {
		a.T.Fatalf("%v: %s", err, a.Body)
	}
	return v
}

func (a *Answer) Session() Session { a.T.Helper(); a.Want(200); return DecodeAs[Session](a) }

// Form is the content type of a page's form.
var Form = Header{"Content-Type", "application/x-www-form-urlencoded"}

// Browser is the Accept header of browsers.
var Browser = Header{"Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}

// Page requests a page behind a handler, as a browser does.
func (w *World) Page(h http.Handler, method, target string, headers ...Header) *Answer {
	w.T.Helper()
	return w.DoOn(h, method, target, nil, append([]Header{Browser}, headers...)...)
}

// Greeter is a page that shows the signed-in user.
var Greeter = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	who := "nobody"
	if c := auth.ClaimsFrom(r.Context()); c != nil {
		who = c.Email
	}
	_, _ = w.Write([]byte("hello " + who))
})

// SameOrigin marks a request as sent by a page of the same origin.
var SameOrigin = Header{"Sec-Fetch-Site", "same-origin"}
