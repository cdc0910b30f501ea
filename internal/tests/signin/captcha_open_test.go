package signin_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/hcaptcha"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/turnstile"
)

// FailOpen admits requests while the service is down. A token that the service cannot read
// is no outage, because the client chooses the token: it admits nobody.
func TestMalformedCaptchaIsNoOutage(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch token := r.FormValue("response"); token {
		case "unreadable":
			_, _ = w.Write([]byte(`{"success":false,"error-codes":["bad-request"]}`))
		case "rejected", "two\nlines", "nul\x00", "\xff", "é":
			w.WriteHeader(http.StatusBadRequest)
		case "too-large":
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		case "down":
			w.WriteHeader(http.StatusBadGateway)
		case "broken":
			_, _ = w.Write([]byte(`{"success":false,"error-codes":["internal-error"]}`))
		default:
			_, _ = w.Write([]byte(`{"success":true}`))
		}
	}))
	defer service.Close()
	for name, verifier := range map[string]auth.Verifier{
		"turnstile": turnstile.New("secret", turnstile.WithURL(service.URL)),
		"hcaptcha":  hcaptcha.New("secret", hcaptcha.WithURL(service.URL)),
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}), auth.WithCaptcha(auth.CaptchaOptions{Verifier: verifier, FailOpen: true}))
			n := 0
			post := func(token string) *harness.Answer {
				n++
				form := url.Values{"email": {fmt.Sprintf("ada%d@example.com", n)}, "captcha_token": {token}}
				return w.Do("POST", "/forgot-password", form.Encode(), harness.Form, harness.SameOrigin, harness.Header{Name: "Accept", Value: "application/json"}, harness.FromAddress(n))
			}
			for _, token := range []string{"unreadable", "rejected", "too-large", "two\nlines", "nul\x00", "\xff", "é", strings.Repeat("x", 9000)} {
				if a := post(token); a.Status != http.StatusUnprocessableEntity && a.Status != http.StatusBadRequest || strings.Contains(string(a.Body), "unavailable") {
					t.Errorf("%.12q: %d %s", token, a.Status, a.Body)
				}
			}
			// The tokens of widgets, and real outages.
			for _, token := range []string{
				"0.zrSnRHO7h0HwSjSCU8oyzbjEtD8p.d62306d4ee00dda690f959a2", "P1_eyJ0eXAiOiJKV1QiLCJhbGciOiJIUzI1NiJ9.e30=", "10000000-aaaa-bbbb-cccc-000000000001",
				"03AGdBq26_x-" + strings.Repeat("y", 4000), `{"lot_number": "x", "pass_token": "y"}`, "down", "broken",
			} {
				if a := post(token); a.Status >= 400 {
					t.Errorf("%.12q: %d %s", token, a.Status, a.Body)
				}
			}
		})
	}
}
