package outbound_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth/internal/outbound"
)

// raw serves bytes that need not be HTTP.
func raw(t *testing.T, response string) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(c))
			_, _ = io.WriteString(c, response)
			_ = c.Close()
		}
	}()
	return "http://" + l.Addr().String()
}

func get(ctx context.Context, at string) (*outbound.Response, error) {
	return outbound.Do(ctx, outbound.NewClient(), outbound.Request{Method: http.MethodGet, URL: at})
}

// A service may send anything. No error contains it, or a query.
func TestErrorsQuoteNothing(t *testing.T) {
	header := "HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("s3cr3t", 20_000) + "\r\n\r\n"
	for name, c := range map[string]struct{ response, want string }{
		"no HTTP":          {"s3cr3t\r\n\r\n", outbound.ErrMalformed.Error()},
		"status":           {"HTTP/1.1 s3cr3t\r\n\r\n", outbound.ErrMalformed.Error()},
		"header":           {"HTTP/1.1 200 OK\r\ns3cr3t\r\n\r\n", outbound.ErrMalformed.Error()},
		"long header":      {header, outbound.ErrMalformed.Error()},
		"chunks":           {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\ns3cr3t\r\n", outbound.ErrMalformed.Error()},
		"content encoding": {"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 12\r\n\r\ns3cr3ts3cr3t", outbound.ErrMalformed.Error()},
		"cut short":        {"HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\ns3cr3t", "unexpected EOF"},
		"nothing":          {"", "EOF"},
	} {
		at := raw(t, c.response)
		if _, err := get(t.Context(), at+"/path?token=s3cr3t"); err == nil || !strings.HasSuffix(err.Error(), "/path: "+c.want) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCause(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + l.Addr().String()
	_ = l.Close()
	if _, err := get(t.Context(), nobody); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Error(err)
	}
	tls := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(tls.Close)
	if _, err := get(t.Context(), tls.URL); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Error(err)
	}
	hangs := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(hangs.Close)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := get(ctx, hangs.URL); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	cancel()
	if _, err := get(ctx, hangs.URL); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := outbound.Do(t.Context(), outbound.NewClient(), outbound.Request{Method: "s3cr3t method", URL: nobody}); err == nil || strings.Contains(err.Error(), "s3cr3t") {
		t.Error(err)
	}
}

// A request that would send a secret unencrypted is not made.
func TestUnencryptedURLs(t *testing.T) {
	client := &http.Client{Transport: never(func() { t.Error("it was sent") })}
	for _, at := range []string{"http://a.test/?token=s3cr3t", "http://192.0.2.1/?token=s3cr3t"} {
		if _, err := outbound.Do(t.Context(), client, outbound.Request{URL: at}); err == nil || err.Error() != "the URL is not https" {
			t.Error(err)
		}
		if err := outbound.GetJSON(t.Context(), client, at, nil); err == nil || err.Error() != "the URL is not https" {
			t.Error(err)
		}
	}
}

type never func()

func (f never) RoundTrip(*http.Request) (*http.Response, error) {
	f()
	return nil, errors.New("never")
}

// The limits of these clients do not affect other clients of the program.
func TestDefaultTransportUnchanged(t *testing.T) {
	if shared, ok := http.DefaultTransport.(*http.Transport); !ok || outbound.NewClient().Transport == http.DefaultTransport || shared.MaxResponseHeaderBytes != 0 {
		t.Error("the transport of all is changed")
	}
}

// Redirects are returned, not followed, and bodies are limited.
func TestLimits(t *testing.T) {
	reached := false
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	t.Cleanup(thief.Close)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n int
		if _, err := fmt.Sscan(strings.TrimPrefix(r.URL.Path, "/"), &n); err == nil {
			_, _ = w.Write(make([]byte, n))
			return
		}
		http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
	}))
	t.Cleanup(srv.Close)
	if res, err := get(t.Context(), srv.URL+"/away"); err != nil || res.Status != http.StatusTemporaryRedirect || res.Header.Get("Location") != thief.URL || reached {
		t.Errorf("%+v, %v, followed: %v", res, err, reached)
	}
	if res, err := get(t.Context(), srv.URL+"/1048576"); err != nil || len(res.Body) != 1<<20 {
		t.Error(err)
	}
	if _, err := get(t.Context(), srv.URL+"/1048577"); !errors.Is(err, outbound.ErrTooLarge) {
		t.Error(err)
	}
}

func TestGetJSON(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gone" {
			w.WriteHeader(http.StatusGone)
		}
		_, _ = fmt.Fprintf(w, `{"accept":%q}`, r.Header.Get("Accept")) //nolint:gosec // read by the test alone
	}))
	t.Cleanup(srv.Close)
	var v struct{ Accept string }
	if err := outbound.GetJSON(t.Context(), outbound.NewClient(), srv.URL, &v); err != nil || v.Accept != "application/json" {
		t.Errorf("%+v, %v", v, err)
	}
	if err := outbound.GetJSON(t.Context(), outbound.NewClient(), srv.URL+"/gone", &v); err == nil || err.Error() != "status 410" {
		t.Error(err)
	}
}

func TestDecodeJSON(t *testing.T) {
	for doc, want := range map[string]string{
		`{"n":1}`:                    "",
		`{"n":"s3cr3t"}`:             "a value of the wrong type at byte 13",
		`{"n":s3cr3t}`:               "malformed JSON at byte 6",
		``:                           "malformed JSON at byte 0",
		`{"n":99999999999999999999}`: "a value of the wrong type at byte 25",
	} {
		var v struct{ N int }
		if err := outbound.DecodeJSON([]byte(doc), v); err == nil { // a value of another type
			t.Errorf("%s into no pointer", doc)
		}
		if err := outbound.DecodeJSON([]byte(doc), &v); fmt.Sprint(err) != want && (err != nil || want != "") {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

func TestCheckURL(t *testing.T) {
	for raw, ok := range map[string]bool{
		"https://a.test/x": true, "http://localhost:1/": true, "http://a.localhost": true, "http://127.0.0.2": true, "http://[::1]:8080/x": true,
		"http://a.test": false, "http://192.0.2.1": false, "http://[2001:db8::1]": false, "http://0.0.0.0": false, "ftp://localhost": false, "http://127.0.0.1.a.test": false, "http://localhost.a.test": false, "ftp://a.test": false, "a.test": false,
		"//a.test": false, "https:///x": false, "https://u@a.test": false, "": false, "https://%zz": false, "javascript:alert(1)": false,
	} {
		if err := outbound.CheckURL(raw); (err == nil) != ok {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
