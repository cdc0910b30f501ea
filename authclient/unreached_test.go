package authclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
)

// roundTrip is an http.RoundTripper of a function.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A request is repeated only whole: if its body is gone, the caller gets the answer there
// is. A request that was refused for a reason other than its token's age is not repeated
// either.
func TestTransportRepeatsWholeRequestsOnly(t *testing.T) {
	t.Parallel()
	again := func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("body")), nil }
	for name, row := range map[string]struct {
		body    io.Reader
		getBody func() (io.ReadCloser, error)
		code    auth.Code
		tries   int
	}{
		"no body":             {nil, nil, auth.CodeTokenStale, 2},
		"empty":               {http.NoBody, nil, auth.CodeTokenStale, 2},
		"to be had again":     {strings.NewReader("body"), again, auth.CodeTokenStale, 2},
		"read once":           {strings.NewReader("body"), nil, auth.CodeTokenStale, 1},
		"not to be had again": {strings.NewReader("body"), func() (io.ReadCloser, error) { return nil, io.ErrUnexpectedEOF }, auth.CodeTokenStale, 1},
		"another refusal":     {nil, nil, auth.CodeReauthNeeded, 1},
	} {
		s := newService(t)
		c := signedIn(t, s, "ada@example.com")
		tries := 0
		tr := c.Transport(roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Body != nil {
				_, _ = io.Copy(io.Discard, r.Body)
			}
			tries++
			return &http.Response{StatusCode: 401, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"code":"` + string(row.code) + `"}`)), Request: r}, nil
		}))
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		if row.body != nil {
			r.Body, r.GetBody = io.NopCloser(row.body), row.getBody
		}
		if row.body == http.NoBody {
			r.Body = http.NoBody
		}
		given := r.Body
		res, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(name, err)
		}
		if r.Body != given || r.Header.Get("Authorization") != "" {
			t.Errorf("%s: the caller's request is changed", name)
		}
		b, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if tries != row.tries || !strings.Contains(string(b), string(row.code)) {
			t.Errorf("%s: sent %d times, answered %s", name, tries, b)
		}
	}
}

// A request without an answer returns the error that caused it, and without a session
// nothing is sent.
func TestTransportTellsFailures(t *testing.T) {
	t.Parallel()
	s := newService(t)
	failing := roundTrip(func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF })
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	if res, err := signedIn(t, s, "ada@example.com").Transport(failing).RoundTrip(r); !errors.Is(err, io.ErrUnexpectedEOF) { //nolint:bodyclose // there is none
		t.Error(res, err)
	}
	body := &closed{Reader: strings.NewReader("x")}
	r.Body = body
	if res, err := newClient(t, s).Transport(failing).RoundTrip(r); !errors.Is(err, CodeNoSession) || !body.done { //nolint:bodyclose // likewise
		t.Error(res, err, body.done)
	}
}

type closed struct {
	io.Reader
	done bool
}

func (c *closed) Close() error { c.done = true; return nil }

// A verifier reports the reason why it has no keys: an unreachable server differs from one
// that publishes none.
func TestVerifierSaysWhyThereAreNoKeys(t *testing.T) {
	t.Parallel()
	const found, keys = "/auth/v1/.well-known/openid-configuration", "/auth/v1/.well-known/jwks.json"
	for name, row := range map[string]struct {
		path, body string
		want       auth.Code
	}{
		"no discovery":        {found, "", CodeNetwork},
		"no key set":          {keys, "", CodeNetwork},
		"no issuer":           {found, `{}`, CodeBadResponse},
		"no keys":             {keys, `{"keys":[]}`, CodeBadResponse},
		"discovery of others": {found, `<html>`, CodeBadResponse},
	} {
		s := newService(t)
		s.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			switch {
			case r.URL.Path != row.path:
				next.ServeHTTP(w, r)
			case row.body == "":
				panic(http.ErrAbortHandler)
			default:
				_, _ = io.WriteString(w, row.body)
			}
		})
		if _, err := NewVerifier(t.Context(), s.url); !errors.Is(err, row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A caller that leaves does not keep the next one from requesting newer keys.
func TestWhoLeavesDoesNotPutKeysOff(t *testing.T) {
	t.Parallel()
	s := newService(t)
	tok := accessToken(t, signedIn(t, s, "ada@example.com"))
	v := newVerifier(t, s, WithRemember(-1))
	s.clock.Advance(keysStale + time.Minute)
	quit := make(chan struct{})
	defer close(quit)
	s.set(func(http.ResponseWriter, *http.Request, http.Handler) { <-quit })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = v.Verify(ctx, tok)
	if v.againAt.Load() != 0 {
		t.Error("put off")
	}
}

// A caller who stops waiting for a token gets none. The error of a refused token that
// cannot be renewed has the reason.
func TestTokensThatAreNotHad(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	s.clock.Advance(15*time.Minute - 10*time.Second)
	ctx, cancel := context.WithCancel(t.Context())
	quit := make(chan struct{})
	defer close(quit)
	s.set(func(http.ResponseWriter, *http.Request, http.Handler) { cancel(); <-quit })
	if got, err := c.Token(ctx); !errors.Is(err, context.Canceled) || got != "" {
		t.Error(err)
	}

	other := newService(t)
	c = signedIn(t, other, "ada@example.com")
	other.set(func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		if r.URL.Path == "/auth/v1/refresh" {
			answer(w, 503, auth.CodeUnavailable)
			return
		}
		answer(w, 401, auth.CodeTokenStale)
	})
	if _, err := c.User(t.Context()); !errors.Is(err, auth.CodeUnavailable) {
		t.Error(err)
	}
	var e *Error
	if _, err := newClient(t, other).Token(t.Context()); !errors.As(err, &e) || e.Code != CodeNoSession || e.Message == "" {
		t.Error(err)
	}
}

// If the session had ended before its sign-out, that is no failure; an unreachable server
// is.
func TestSignOutOfWhatHasEnded(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for code, status := range map[auth.Code]int{auth.CodeInvalidRefreshToken: 400, auth.CodeSessionEnded: 400, auth.CodeUnavailable: 503} {
		s.set(nil)
		c := signedIn(t, s, string(code)+"@example.com")
		s.set(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { answer(w, status, code) })
		if err := c.SignOut(t.Context(), ""); (err != nil) != (status == 503) || c.State().Status != StatusSignedOut {
			t.Error(code, err, c.State())
		}
	}
}

// A flow is completed by a whole URL, or by its query alone, without the fragment.
func TestCompleteByTheQueryAlone(t *testing.T) {
	t.Parallel()
	c := newClient(t, newService(t))
	for redirected, want := range map[string]auth.Code{
		"error=access_denied&error_code=oauth_denied": auth.CodeOAuthDenied, home + "?error=access_denied#x": auth.CodeOAuthDenied,
		"state=x": CodeForeignURL, home: CodeForeignURL, home + "?%zz": CodeForeignURL, "": CodeForeignURL,
	} {
		if _, err := newFlow(c).Complete(t.Context(), redirected); !errors.Is(err, want) {
			t.Errorf("%q: %v", redirected, err)
		}
	}
}

// A store that has become unreadable does not keep a session from being renewed.
func TestRenewalWithoutTheStore(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	was := accessToken(t, c)
	c.store = unread{}
	s.clock.Advance(16 * time.Minute)
	if accessToken(t, c) == was || s.count("POST /refresh") != 1 {
		t.Error("not renewed")
	}
}

// A completed operation is not repeated if the repetition could look like a failure.
func TestAdminRepeatsWhatMayBe(t *testing.T) {
	t.Parallel()
	a, err := NewAdmin("https://app.example.com", secretKey)
	if err != nil {
		t.Fatal(err)
	}
	for want, rows := range map[repeat][]call{
		repeatAlways:  {a.prepared("GET", "/x", nil, nil), a.prepared("POST", "/x", nil, nil), a.prepared("PATCH", "/x", nil, nil)},
		repeatRefused: {a.prepared("DELETE", "/x", nil, nil), a.prepared("PATCH", "/x", nil, []CallOption{func(c *call) { c.header.Set("If-Match", `"1"`) }})},
	} {
		for _, k := range rows {
			if k.repeat != want {
				t.Errorf("%s %v: %v", k.method, k.header, k.repeat)
			}
		}
	}
}
