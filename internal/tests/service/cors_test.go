package service_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
)

func TestCORS(t *testing.T) {
	w := harness.NewWorld(t, auth.WithCORS("https://app.test"))
	pre := func(origin, method, name string) *harness.Answer {
		return w.Do("OPTIONS", "/auth/v1/login", nil, harness.Header{Name: "Origin", Value: origin}, harness.Header{Name: "Access-Control-Request-Method", Value: method}, harness.Header{Name: "Access-Control-Request-Headers", Value: name})
	}
	for _, name := range []string{"accept", "accept-language", "apikey", "authorization", "content-type", "x-api-key", "x-captcha-token", "x-device-id", "x-request-id", "x-session-transport"} {
		a := pre("https://app.test", "POST", name)
		if a.Status != 204 || a.Header.Get("Access-Control-Allow-Origin") != "https://app.test" || a.Header.Get("Access-Control-Allow-Headers") != name || a.Header.Get("Access-Control-Max-Age") != "600" {
			t.Errorf("preflight of %s: %d %v", name, a.Status, a.Header)
		}
	}
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		if a := pre("https://app.test", method, "apikey"); a.Header.Get("Access-Control-Allow-Methods") != method {
			t.Errorf("preflight of %s: %v", method, a.Header)
		}
	}
	for _, asked := range [][3]string{{"https://evil.test", "POST", "apikey"}, {"https://app.test", "TRACE", "apikey"}, {"https://app.test", "POST", "x-other"}} {
		if a := pre(asked[0], asked[1], asked[2]); a.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("preflight of %q: %v", asked, a.Header)
		}
	}
	a := w.Do("GET", "/settings", nil, harness.Header{Name: "Origin", Value: "https://app.test"}).Want(200)
	if exposed := strings.ToLower(a.Header.Get("Access-Control-Expose-Headers")); !strings.Contains(exposed, "date") || !strings.Contains(exposed, "retry-after") || !strings.Contains(exposed, "x-request-id") {
		t.Errorf("exposed %q", exposed)
	}
	if a.Header.Get("Access-Control-Allow-Credentials") != "" {
		t.Error("credentials are allowed without cookie mode")
	}
}

// The allowed origins call the application's own routes, too, with any header. Routes that
// CORS does not wrap answer no preflight.
func TestCORSOfOwnRoutes(t *testing.T) {
	w := harness.NewWorld(t, auth.WithCORS("https://app.test"))
	mux := http.NewServeMux()
	mux.Handle("POST /notes", w.Require(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
	ask := func(h http.Handler, method, origin string, more http.Header) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, "/notes", http.NoBody)
		r.Header = more.Clone()
		r.Header.Set("Origin", origin)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec
	}
	preflight := http.Header{"Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"authorization,idempotency-key"}}
	for origin, allowed := range map[string]string{"https://app.test": "https://app.test", "https://evil.test": ""} {
		if rec := ask(w.CORS(mux), "OPTIONS", origin, preflight); rec.Header().Get("Access-Control-Allow-Origin") != allowed {
			t.Errorf("preflight from %s: %d %v", origin, rec.Code, rec.Header())
		}
	}
	bearer := http.Header{"Authorization": {"Bearer " + w.PostSignUp("ada@example.com").AccessToken}}
	if rec := ask(w.CORS(mux), "POST", "https://app.test", bearer); rec.Code != 200 || rec.Header().Get("Access-Control-Allow-Origin") != "https://app.test" {
		t.Errorf("%d %v", rec.Code, rec.Header())
	}
	if rec := ask(w.CORS(mux), "POST", "https://app.test", http.Header{}); rec.Code != 401 || rec.Header().Get("Access-Control-Allow-Origin") == "" { // so that the page can read the error
		t.Errorf("without a token: %d %v", rec.Code, rec.Header())
	}
	if rec := ask(mux, "OPTIONS", "https://app.test", preflight); rec.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("without CORS: %v", rec.Header())
	}
	if rec := ask(harness.NewWorld(t).CORS(mux), "OPTIONS", "https://app.test", preflight); rec.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("without WithCORS: %v", rec.Header())
	}
}

// CORS around the whole mux, and so around the endpoints, sets each header once.
func TestCORSAroundTheEndpoints(t *testing.T) {
	w := harness.NewWorld(t, auth.WithCORS("https://app.test"))
	for origin, allowed := range map[string][]string{"https://app.test": {"https://app.test"}, "https://evil.test": nil} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/auth/v1/settings", http.NoBody)
		r.Header.Set("Origin", origin)
		rec := httptest.NewRecorder()
		w.CORS(w.Handler()).ServeHTTP(rec, r)
		if vary := rec.Header().Values("Vary"); rec.Code != 200 || !slices.Equal(vary, []string{"Origin"}) || !slices.Equal(rec.Header().Values("Access-Control-Allow-Origin"), allowed) {
			t.Errorf("from %s: %d %v", origin, rec.Code, rec.Header())
		}
	}
}
