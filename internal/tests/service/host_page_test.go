package service_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/host"
)

// cutOff is a body that ends before it is there.
type cutOff struct{ r io.Reader }

func (c cutOff) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// A page of a package built on Auth is called once its whole request has arrived, from its
// own origin, while the service is on. Otherwise the package gets the error to show, and the
// matching headers are set. A failure of the page reaches the package, too.
func TestPagesAreCalledOnceAllIsThere(t *testing.T) {
	fine := func(w http.ResponseWriter, r *http.Request) error {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != "a=b" && r.Method == http.MethodPost {
			t.Errorf("body %q, %v", body, err)
		}
		_, err = io.WriteString(w, "fine")
		return err
	}
	for name, c := range map[string]struct {
		opts   []auth.Option
		method string
		body   io.Reader
		origin string
		page   func(http.ResponseWriter, *http.Request) error
		want   auth.Code // that the package gets; none: the page is shown
	}{
		"got":                       {nil, "GET", nil, "", fine, ""},
		"posted":                    {nil, "POST", strings.NewReader("a=b"), "https://auth.test", fine, ""},
		"too long":                  {nil, "POST", bytes.NewReader(make([]byte, 2<<20)), "https://auth.test", nil, auth.CodeBodyTooLarge},
		"cut off":                   {nil, "POST", cutOff{strings.NewReader("a=b")}, "https://auth.test", nil, auth.CodeBadJSON},
		"from elsewhere":            {nil, "POST", strings.NewReader("a=b"), "https://evil.test", nil, auth.CodeCrossSiteRequest},
		"cut off, from elsewhere":   {nil, "POST", cutOff{strings.NewReader("a=b")}, "https://evil.test", nil, auth.CodeBadJSON},
		"switched off":              {[]auth.Option{auth.WithSettings(auth.Settings{Enabled: auth.Off})}, "GET", nil, "", nil, auth.CodeNotFound},
		"switched off, and cut off": {[]auth.Option{auth.WithSettings(auth.Settings{Enabled: auth.Off})}, "POST", cutOff{strings.NewReader("a=b")}, "https://auth.test", nil, auth.CodeNotFound},
		"refused by the page":       {nil, "GET", nil, "", func(http.ResponseWriter, *http.Request) error { return auth.CodeInvalidToken }, auth.CodeInternal},
		"broken":                    {nil, "GET", nil, "", func(http.ResponseWriter, *http.Request) error { panic("page") }, auth.CodeInternal},
	} {
		w := harness.NewWorld(t, c.opts...)
		called := false
		var told []auth.Code
		h := host.Of(w).Page(func(rw http.ResponseWriter, r *http.Request) error {
			called = true
			if c.page == nil {
				return nil
			}
			return c.page(rw, r)
		}, func(rw http.ResponseWriter, _ *http.Request, err error) {
			told = append(told, host.As[*auth.Error](err).Code)
			_, _ = io.WriteString(rw, "problem")
		})
		r := httptest.NewRequestWithContext(t.Context(), c.method, "https://auth.test/page", c.body)
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if c.body != nil {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		body := "problem"
		if c.want == "" {
			body = "fine"
		}
		if called != (c.page != nil) || rec.Body.String() != body || c.want != "" && (len(told) != 1 || told[0] != c.want) || c.want == "" && told != nil {
			t.Errorf("%s: called %t, told %v, shown %q", name, called, told, rec.Body)
		}
		if rec.Header().Get("X-Request-Id") == "" {
			t.Errorf("%s: no request id", name)
		}
	}
	w := harness.NewWorld(t)
	defer func() {
		if v := recover(); v != http.ErrAbortHandler { //nolint:errorlint // the very value
			t.Errorf("a page that gives the connection up: %v", v)
		}
	}()
	gone := host.Of(w).Page(func(http.ResponseWriter, *http.Request) error { panic(http.ErrAbortHandler) }, func(http.ResponseWriter, *http.Request, error) { t.Error("it is told") })
	gone.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "GET", "https://auth.test/page", http.NoBody))
}

// The page of an invalid link says where to get another one, if that is possible. Only
// the sender can replace an invitation, and nobody replaces a recovery link. Other problems
// are not about the link.
func TestInvalidLinksNameTheWayToAnother(t *testing.T) {
	e := authtest.NewOn(t, harness.NewStore(t))
	const again, sender = "Go back to", "ask the person who sent it"
	for path, want := range map[string]string{
		"/reset-password": again, "/magic-link/verify": again,
		"/invitations/accept": sender, "/admin/first-owner": sender,
		"/secure-account": "",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			r := httptest.NewRequestWithContext(t.Context(), method, "/auth/v1"+path+"?token=used", strings.NewReader("token=used"))
			r.Header.Set("Accept", "text/html")
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			e.Handler().ServeHTTP(w, r)
			got := w.Body.String()
			if !strings.Contains(got, "no longer valid") {
				if path != "/admin/first-owner" || strings.Contains(got, "Links work once") { // of a stranger: sign in first
					t.Errorf("%s %s: %s", method, path, got)
				}
				continue
			}
			for _, text := range []string{again, sender} {
				if strings.Contains(got, text) != (text == want) {
					t.Errorf("%s %s: %q is shown: %t", method, path, text, text != want)
				}
			}
		}
	}
}
