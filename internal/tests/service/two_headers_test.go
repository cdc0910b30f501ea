package service_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
)

// No endpoint uses the token of one of two Authorization headers, because a proxy may have
// checked the other one. An endpoint refuses the request, or answers as it does without
// the header.
func TestTwoAuthorizationHeaders(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp(harness.AdaMail)
	send := func(route string, headers ...string) string {
		method, path, _ := strings.Cut(route, " ")
		path = strings.NewReplacer("{id}", harness.NewID(w.Auth), "{provider}", "google").Replace(path)
		r := httptest.NewRequestWithContext(t.Context(), method, "/auth/v1"+path, strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		r.Header["Authorization"] = headers
		rec := httptest.NewRecorder()
		w.Handler().ServeHTTP(rec, r)
		code := "none"
		if strings.Contains(rec.Body.String(), `"`+string(auth.CodeBadToken)+`"`) {
			code = string(auth.CodeBadToken)
		}
		return fmt.Sprint(rec.Code, " ", code)
	}
	refused := fmt.Sprint(http.StatusUnauthorized, " ", auth.CodeBadToken)
	valid := "Bearer " + s.AccessToken
	for _, route := range harness.Routes(w.Auth) {
		without := send(route)
		for name, headers := range map[string][]string{"first": {valid, "Bearer x"}, "second": {"Basic eDp5", valid}, "twice": {valid, valid}, "empty": {valid, ""}} {
			got := send(route, headers...)
			if got != refused && (strings.HasPrefix(without, "401") || got != without) {
				t.Errorf("%s, the valid token %s: %s, without a header %s", route, name, got, without)
			}
		}
	}
	if !w.Alive(s.AccessToken) {
		t.Error("the session ended")
	}

	// The application's own handlers.
	for name, h := range map[string]http.Handler{"Require": w.Require(http.NotFoundHandler()), "RequirePage": w.RequirePage(http.NotFoundHandler()), "Optional": w.Optional(http.NotFoundHandler())} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header["Authorization"] = []string{valid, "Bearer x"}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if rec.Code != http.StatusUnauthorized {
			t.Errorf("%s: %d", name, rec.Code)
		}
		r.Header["Authorization"] = []string{valid}
		rec = httptest.NewRecorder()
		if h.ServeHTTP(rec, r); rec.Code != http.StatusNotFound {
			t.Errorf("%s, one header: %d", name, rec.Code)
		}
	}
}
