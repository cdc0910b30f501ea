package turnstile_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/turnstile"
)

// An invalid token, or one of another host, is auth.ErrCaptcha; other responses are other
// errors.
func TestVerify(t *testing.T) {
	for body, want := range map[string]error{
		`{"success":true,"hostname":"app.example.com"}`:              nil,
		`{"success":true,"hostname":"evil.example.com"}`:             auth.ErrCaptcha,
		`{"success":false,"error-codes":["invalid-input-response"]}`: auth.ErrCaptcha,
		`{"success":false,"error-codes":["invalid-input-secret"]}`:   errAny,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.FormValue("secret") != "the-secret" || r.FormValue("response") != "the-token" {
				t.Errorf("asked %v", r.Form)
			}
			_, _ = w.Write([]byte(body))
		}))
		v := turnstile.New("the-secret", turnstile.WithURL(server.URL), turnstile.WithHTTPClient(server.Client()), turnstile.WithHostname("app.example.com"))
		err := v.Verify(t.Context(), "the-token", netip.MustParseAddr("192.0.2.1"))
		server.Close()
		if (err != nil) != (want != nil) || errors.Is(err, auth.ErrCaptcha) != errors.Is(want, auth.ErrCaptcha) {
			t.Errorf("%s: error %v", body, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "turnstile: ") {
			t.Errorf("%s: it does not say whose: %v", body, err)
		}
	}
}

var errAny = errors.New("any other")
