package siteverify_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/authmount/auth/internal/siteverify"
)

var errRefused = errors.New("refused")

// The service's result for a token is returned; any other response is an error, and no
// error contains the secret or the token.
func TestVerify(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		body    string
		refused bool
		fails   bool
	}{
		"good":              {200, `{"success":true,"hostname":"app.example.com"}`, false, false},
		"not good":          {200, `{"success":false,"error-codes":["invalid-input-response"]}`, true, false},
		"used before":       {200, `{"success":false,"error-codes":["timeout-or-duplicate"]}`, true, false},
		"of another host":   {200, `{"success":true,"hostname":"evil.example.com"}`, true, false},
		"a wrong secret":    {200, `{"success":false,"error-codes":["invalid-input-secret"]}`, false, true},
		"unreadable":        {200, `{"success":false,"error-codes":["bad-request"]}`, true, false},
		"status 400":        {400, ``, true, false},
		"success as string": {200, `{"success":"true"}`, false, true},
		"no answer":         {200, `{}`, false, true},
		"no JSON":           {502, `Bad Gateway the-secret the-token`, false, true},
		"down, as it says":  {500, `{"success":false,"error-codes":["internal-error"]}`, false, true},
		"a redirect":        {302, ``, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost || r.FormValue("secret") != "the-secret" || r.FormValue("response") != "the-token" || r.FormValue("remoteip") != "192.0.2.1" || r.Header.Get("Accept") != "application/json" {
					t.Errorf("asked %s %v %v", r.Method, r.Form, r.Header)
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			v := &siteverify.Service{Name: "captchas", Refused: errRefused, URL: server.URL, Client: server.Client(), Fields: url.Values{"secret": {"the-secret"}}, Hostname: "app.example.com"}
			err := v.Verify(t.Context(), "the-token", netip.MustParseAddr("192.0.2.1"))
			if errors.Is(err, errRefused) != c.refused || (err != nil) != (c.refused || c.fails) {
				t.Errorf("error %v", err)
			}
			if err != nil && (strings.Contains(err.Error(), "the-secret") || strings.Contains(err.Error(), "the-token")) {
				t.Errorf("it tells a secret: %v", err)
			}
		})
	}
}

// A mistake in the configuration is not reported as a failed captcha.
func TestConfigurationErrors(t *testing.T) {
	for _, code := range []string{"missing-input-secret", "invalid-input-secret", "internal-error", "sitekey-secret-mismatch", "not-using-dummy-passcode"} {
		err := answered(t, `{"success":false,"error-codes":["`+code+`"]}`)
		if err == nil || errors.Is(err, errRefused) || err.Error() != "captchas: the service returned "+code {
			t.Errorf("%s: %v", code, err)
		}
	}
	if err := answered(t, `{"success":true,"hostname":"evil.example.com"}`); err != nil {
		t.Errorf("a host, where none is asked for: %v", err)
	}
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	v := &siteverify.Service{Name: "captchas", Refused: errRefused, URL: server.URL, Client: server.Client()}
	if err := v.Verify(t.Context(), "the-token", netip.Addr{}); err == nil || errors.Is(err, errRefused) {
		t.Errorf("nobody there: %v", err)
	}
}

// answered returns the result for a response, without a client's IP address.
func answered(t *testing.T, body string) error {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("response") != "the-token" || r.Form.Has("remoteip") {
			t.Errorf("asked %v", r.Form)
		}
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	v := &siteverify.Service{Name: "captchas", Refused: errRefused, URL: server.URL, Client: server.Client()}
	return v.Verify(t.Context(), "the-token", netip.Addr{})
}
