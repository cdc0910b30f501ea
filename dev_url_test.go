package auth_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/memstore"
)

// In dev mode, links lead to the port that is served, whatever a request says of its
// host; a base URL that was given is left as it is.
func TestDevLinksLeadToThePortServed(t *testing.T) {
	for name, opts := range map[string][]auth.Option{"made up": nil, "given": {auth.WithBaseURL("http://localhost:9/auth/v1")}} {
		a, err := auth.New(t.Context(), memstore.New(), append([]auth.Option{auth.WithDevMode(), auth.WithMail(auth.MailOptions{Sync: true})}, opts...)...)
		if err != nil {
			t.Fatal(err)
		}
		srv := httptest.NewServer(a.Handler())
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/auth/v1/signup", strings.NewReader(`{"email":"ada@example.com","password":"`+goodPassword+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "evil.test:1234"
		r.Header.Set("Content-Type", "application/json")
		res, err := srv.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		want := srv.URL + "/auth/v1/"
		if opts != nil {
			want = "http://localhost:9/auth/v1/"
		}
		m, err := a.Inbox().Wait(t.Context(), func(m auth.Message) bool { return m.Kind == auth.KindVerifyEmail })
		if err != nil || !strings.HasPrefix(m.Link, want) {
			t.Errorf("%s: %s, want %s…: %v", name, m.Link, want, err)
		}
		srv.Close()
		_ = a.Close(t.Context())
	}
}
