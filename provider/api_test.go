package provider_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth/provider"
)

// service is a provider's API that returns the request.
func service(t *testing.T) (*provider.API, string) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/echo", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"method":%q,"type":%q,"token":%q,"accept":%q,"query":%q,"body":%q}`, //nolint:gosec // read by the test alone
			r.Method, r.Header.Get("Content-Type"), r.Header.Get("Authorization"), r.Header.Get("Accept"), r.URL.RawQuery, body)
	})
	mux.HandleFunc("/status/{code}", func(w http.ResponseWriter, r *http.Request) {
		var code int
		_, _ = fmt.Sscan(r.PathValue("code"), &code)
		w.Header().Set("Location", "/echo")
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "s3cr3t echoed")
	})
	mux.HandleFunc("/long/{bytes}", func(w http.ResponseWriter, r *http.Request) {
		var n int
		_, _ = fmt.Sscan(r.PathValue("bytes"), &n)
		_, _ = w.Write(bytes.Repeat([]byte("x"), n))
	})
	mux.HandleFunc("/text", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-www-form-urlencoded")
		_, _ = io.WriteString(w, "id=7&email=ada%40example.com")
	})
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"id": s3cr3t}`) })
	mux.HandleFunc("/typed", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"method": 987654321}`) })
	mux.HandleFunc("/hangs", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	p := provider.OAuth2("own", provider.OAuth2Options{ClientID: "id", ClientSecret: "s3cr3t"})
	return provider.NewAPI(p, nil, "t0ken"), srv.URL
}

type echo struct{ Method, Type, Token, Accept, Query, Body string }

func TestAPIGet(t *testing.T) {
	api, at := service(t)
	var got echo
	if err := api.Get(t.Context(), at+"/echo?fields=id", &got); err != nil {
		t.Fatal(err)
	}
	if want := (echo{Method: "GET", Token: "Bearer t0ken", Accept: "application/json", Query: "fields=id"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestAPIPostForm(t *testing.T) {
	api, at := service(t)
	var got echo
	if err := api.PostForm(t.Context(), at+"/echo", url.Values{"a": {"1 2"}, "b": {"&"}}, &got); err != nil {
		t.Fatal(err)
	}
	want := echo{Method: "POST", Type: "application/x-www-form-urlencoded", Token: "Bearer t0ken", Accept: "application/json", Body: "a=1+2&b=%26"}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Do sends any method, content type and header, and returns any response.
func TestAPIDo(t *testing.T) {
	api, at := service(t)
	for name, c := range map[string]struct {
		in     provider.Request
		status int
		body   string
		kind   string
	}{
		"defaults": {provider.Request{URL: at + "/echo"}, 200, `{"method":"GET","type":"","token":"Bearer t0ken","accept":"","query":"","body":""}`, "application/json"},
		"graphql": {
			provider.Request{Method: "POST", URL: at + "/echo", ContentType: "application/graphql", Body: []byte("{me}")}, 200,
			`{"method":"POST","type":"application/graphql","token":"Bearer t0ken","accept":"","query":"","body":"{me}"}`, "application/json",
		},
		"a token elsewhere": {
			provider.Request{Method: "PUT", URL: at + "/echo", Header: http.Header{"Authorization": {"token x"}, "Accept": {"text/xml"}}}, 200,
			`{"method":"PUT","type":"","token":"token x","accept":"text/xml","query":"","body":""}`, "application/json",
		},
		"no JSON":    {provider.Request{URL: at + "/text"}, 200, "id=7&email=ada%40example.com", "application/x-www-form-urlencoded"},
		"a refusal":  {provider.Request{URL: at + "/status/403"}, 403, "s3cr3t echoed", "text/plain; charset=utf-8"},
		"a redirect": {provider.Request{URL: at + "/status/302"}, 302, "s3cr3t echoed", "text/plain; charset=utf-8"},
	} {
		res, err := api.Do(t.Context(), c.in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if res.Status != c.status || string(res.Body) != c.body || res.Header.Get("Content-Type") != c.kind {
			t.Errorf("%s: %d %s %s", name, res.Status, res.Header.Get("Content-Type"), res.Body)
		}
	}
	in := http.Header{"Accept": {"text/xml"}}
	if _, err := api.Do(t.Context(), provider.Request{URL: at + "/echo", Header: in}); err != nil || len(in) != 1 {
		t.Errorf("the caller's header became %v, %v", in, err)
	}
	var got echo
	if err := provider.NewAPI(api.Provider(), nil, "").Get(t.Context(), at+"/echo", &got); err != nil || got.Token != "" {
		t.Errorf("without a token it sends %q, %v", got.Token, err)
	}
}

// A body of 1 MiB is read completely; a longer one is an error.
func TestAPIBody(t *testing.T) {
	api, at := service(t)
	res, err := api.Do(t.Context(), provider.Request{URL: at + "/long/1048576"})
	if err != nil || len(res.Body) != 1<<20 {
		t.Fatalf("1 MiB: %v", err)
	}
	if res, err := api.Do(t.Context(), provider.Request{URL: at + "/long/1048577"}); err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("one byte more: %d bytes, %v", len(res.Body), err)
	}
}

// Errors name the endpoint and the problem, and contain nothing that the provider or the
// caller sent.
func TestAPIErrors(t *testing.T) {
	api, at := service(t)
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	for path, want := range map[string]string{
		at + "/status/500?proof=s3cr3t": "/status/500: status 500",
		at + "/status/302":              "/status/302: status 302",
		at + "/broken?proof=s3cr3t":     "/broken: malformed JSON at byte 8",
		at + "/typed":                   "/typed: a value of the wrong type at byte 20",
		at + "/hangs?proof=s3cr3t":      "/hangs: context deadline exceeded",
		"http://api.example.com/me":     "is not https",
		"/me":                           "is not an absolute URL",
		"https://u:s3cr3t@api.test/":    "is not an absolute URL",
		"https://%zz?s3cr3t":            "is not an absolute URL",
	} {
		ctx := t.Context()
		if strings.Contains(path, "/hangs") {
			ctx = soon
		}
		for _, err := range []error{api.Get(ctx, path, &echo{}), api.PostForm(ctx, path, url.Values{"s": {"s3cr3t"}}, &echo{})} {
			if err == nil || !strings.HasSuffix(err.Error(), want) || strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "t0ken") || strings.Contains(err.Error(), "9876") {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	var status *provider.StatusError
	if err := api.Get(t.Context(), at+"/status/404", &echo{}); !errors.As(err, &status) || status.Status != 404 {
		t.Errorf("no StatusError: %v", err)
	}
}

// Secrets are neither logged nor printed.
func TestRedaction(t *testing.T) {
	api, _ := service(t)
	var log strings.Builder
	l := slog.New(slog.NewTextHandler(&log, nil))
	l.Info("x", "api", api, "provider", api.Provider())
	for _, f := range []string{"%v", "%+v", "%#v", "%s"} {
		_, _ = fmt.Fprintf(&log, f+f, api, api.Provider())
	}
	if s := log.String(); strings.Contains(s, "s3cr3t") || strings.Contains(s, "t0ken") || strings.Contains(s, "&{") || !strings.Contains(s, "[redacted]") {
		t.Error(s)
	}
	if api.AccessToken() != "t0ken" || api.Provider().ClientSecret != "s3cr3t" {
		t.Error("the function itself does not get them")
	}
}
