package authclient

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/authmount/auth"
)

// The token is sent to the project's origin and the named ones only, also after a
// redirect. A stale one is renewed.
func TestTransportSendsTheTokenToItsOriginsOnly(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	var got []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Header.Get("Authorization")) }))
	defer other.Close()
	var tries int
	s.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		case "/stale":
			b, _ := io.ReadAll(r.Body)
			if tries++; tries == 1 {
				answer(w, 401, auth.CodeTokenStale)
				return
			}
			_, _ = w.Write(b)
		default:
			next.ServeHTTP(w, r)
		}
	})
	h := &http.Client{Transport: c.Transport(nil)}
	get := func(url string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		res, err := h.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		b, _ := io.ReadAll(res.Body)
		return fmt.Sprint(res.StatusCode, string(b))
	}
	get(other.URL)
	get(s.url + "/away")
	if len(got) != 2 || strings.Join(got, "") != "" {
		t.Errorf("another origin got the token: %q", got)
	}
	if answered := get(s.url + "/stale"); answered != "200body" || tries != 2 || s.count("POST /refresh") != 1 {
		t.Error(answered, tries)
	}
	named := &http.Client{Transport: signedIn(t, s, "bob@example.com", WithTokenOrigins(other.URL)).Transport(nil)}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, other.URL, nil)
	res, err := named.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if !strings.HasPrefix(got[2], "Bearer ") {
		t.Error("a named origin got none")
	}
}
