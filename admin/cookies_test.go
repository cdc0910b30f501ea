package admin_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
)

const shop = "https://shop.example.com" // an origin of WithCORS

// cookiesOf returns the header of a browser that is signed in to the application.
func (o *office) cookiesOf(who *authtest.SignedIn) string {
	o.t.Helper()
	w := httptest.NewRecorder()
	if err := o.SetCookies(w, httptest.NewRequestWithContext(o.t.Context(), http.MethodPost, "/", nil), &who.Tokens); err != nil {
		o.t.Fatal(err)
	}
	var all []string
	for _, c := range w.Result().Cookies() {
		all = append(all, c.Name+"="+c.Value)
	}
	return "Cookie: " + strings.Join(all, "; ")
}

// No operation accepts the application's cookies, because every script of the
// application's pages could act as an operator who visits them. New says so once.
func TestCookiesOfTheApplication(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	o := newOffice(t, memstore.New(), auth.WithCookies(auth.CookieOptions{}), auth.WithCORS(shop), auth.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if !strings.Contains(log.String(), "SameOriginCookies") {
		t.Errorf("the log does not name the option: %s", log.String())
	}
	target := o.fill()
	owner := o.operator("owner@example.com", "*")
	for _, row := range admin.Table() {
		for _, from := range []string{"Sec-Fetch-Site: same-origin", "Origin: " + shop} {
			o.try(nil, row, target, from, o.cookiesOf(owner)).want(401, auth.CodeMissingToken)
		}
	}
	a := o.do(owner, "GET /users", "", "Origin: "+shop, "Sec-Fetch-Site: cross-site").want(200)
	if a.header.Get("Access-Control-Allow-Origin") != shop {
		t.Errorf("a back office with bearer tokens on another origin gets %v", a.header)
	}
}

// With the option a back office on the service's own origin uses the cookies, and no other
// origin does, not even to read.
func TestCookiesOfTheSameOrigin(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	o := newOfficeWith(t, memstore.New(), admin.Options{SameOriginCookies: true}, auth.WithCookies(auth.CookieOptions{}), auth.WithCORS(shop), auth.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if strings.Contains(log.String(), "SameOriginCookies") {
		t.Error("the log asks for the option that is set")
	}
	target := o.fill()
	owner := o.operator("owner@example.com", "*")
	for _, row := range admin.Table() {
		for _, from := range [][]string{{"Origin: " + shop}, {"Origin: " + shop, "Sec-Fetch-Site: cross-site"}, {"Sec-Fetch-Site: same-site"}, {"Origin: https://evil.example", "Sec-Fetch-Site: none"}} {
			o.try(nil, row, target, append(from, o.cookiesOf(owner))...).want(403, auth.CodeCrossSiteRequest)
		}
	}
	for _, pattern := range []string{"GET /users", "GET /users/export", "POST /users/{id}/ban"} {
		body := ""
		if strings.HasPrefix(pattern, "POST") {
			body = `{"reason":"x"}`
		}
		o.do(nil, strings.ReplaceAll(pattern, "{id}", target.User.ID), body, "Sec-Fetch-Site: same-origin", "Origin: https://app.example.com", o.cookiesOf(owner)).want(200)
	}
	o.do(owner, "GET /users", "", "Origin: "+shop, "Sec-Fetch-Site: cross-site").want(200)
}
