package authclient

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
)

// A server can ask for a wait of a day at most, in both forms. A time that is past or
// unreadable means no wait.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for h, want := range map[string]time.Duration{
		"": 0, "soon": 0, "0": 0, "-5": 0, "1": time.Second, "86400": 24 * time.Hour, "86401": 24 * time.Hour, "99999999999999999999": 0,
		now.Add(time.Minute).Format(http.TimeFormat): time.Minute, now.Add(-time.Minute).Format(http.TimeFormat): 0, now.Add(48 * time.Hour).Format(http.TimeFormat): 24 * time.Hour,
	} {
		if got := retryAfter(h, now); got != want {
			t.Errorf("%q: %v, want %v", h, got, want)
		}
	}
}

// An error has all the fields of the server's error, and the request's id from either
// place.
func TestRefusalKeepsWhatWasSaid(t *testing.T) {
	t.Parallel()
	answered := func(header, body string) *Error {
		return refused(&http.Response{StatusCode: 422, Header: http.Header{"X-Request-Id": {header}, "Retry-After": {"7"}}, Body: io.NopCloser(strings.NewReader(body))})
	}
	e := answered("of the header", `{"code":"validation_failed","message":"No.","request_id":"of the body","details":{"fields":{"email":"is none"},"reasons":["length"],"permission":"p","role":"r"},"mfa_token":"t","expires_in":300,"factors":["totp"]}`)
	if e.Code != auth.CodeValidationFailed || e.Status != 422 || e.Message != "No." || e.RequestID != "of the body" || e.RetryAfter != 7*time.Second || e.Fields["email"] != "is none" ||
		e.Reasons[0] != "length" || e.Permission != "p" || e.Role != "r" || e.Factors[0] != "totp" || e.mfa().token != "t" || e.mfa().enroll || e.mfa().life != 5*time.Minute {
		t.Errorf("%+v", *e)
	}
	if e := answered("of the header", `{"code":"mfa_enrollment_required","mfa_token":"t"}`); e.RequestID != "of the header" || !e.mfa().enroll {
		t.Errorf("%+v", *e)
	}
	for _, body := range []string{"", "<html>", `{}`, `{"code":7}`} {
		if e := answered("of the header", body); e.Code != CodeBadResponse || e.RequestID != "of the header" || e.RetryAfter != 7*time.Second || !strings.Contains(e.Error(), "status 422") || e.mfa != nil {
			t.Errorf("%q: %+v", body, *e)
		}
	}
	if e := noAnswer(&url.Error{Err: context.Canceled}); !errors.Is(e, context.Canceled) || e.Code != CodeNetwork || e.Message == "" {
		t.Errorf("%+v", *e)
	}
}

// Pauses double, and a server that asks for more than ten seconds is not waited for.
func TestPausesBetweenTries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		e         Error
		r         repeat
		try       int
		from, end time.Duration // end 0: no retry
	}{
		"first":              {Error{Status: 503, Code: "x"}, repeatAlways, 0, 200 * time.Millisecond, 400 * time.Millisecond},
		"third":              {Error{Status: 500, Code: "x"}, repeatAlways, 2, 800 * time.Millisecond, 1600 * time.Millisecond},
		"too many":           {Error{Status: 429}, repeatRefused, 0, 200 * time.Millisecond, 400 * time.Millisecond},
		"overloaded":         {Error{Status: 503, Code: auth.CodeOverloaded}, repeatRefused, 0, 200 * time.Millisecond, 400 * time.Millisecond},
		"as asked":           {Error{Status: 429, RetryAfter: 10 * time.Second}, repeatRefused, 0, 10200 * time.Millisecond, 10400 * time.Millisecond},
		"too long":           {Error{Status: 429, RetryAfter: 10*time.Second + 1}, repeatRefused, 0, 0, 0},
		"may have been done": {Error{Status: 503, Code: "x"}, repeatRefused, 0, 0, 0},
		"refused for good":   {Error{Status: 499, Code: "x"}, repeatAlways, 0, 0, 0},
		"timed out":          {Error{Status: 408, Code: "x"}, repeatAlways, 0, 200 * time.Millisecond, 400 * time.Millisecond},
		"in a moment":        {Error{Status: 429, RetryAfter: 1}, repeatRefused, 2, 200 * time.Millisecond, 400*time.Millisecond + 1},
		"a proxy's page":     {Error{Status: 404, Code: CodeBadResponse}, repeatAlways, 0, 200 * time.Millisecond, 400 * time.Millisecond},
		"no answer":          {Error{Code: CodeNetwork}, repeatAlways, 0, 200 * time.Millisecond, 400 * time.Millisecond},
	} {
		d, again := c.e.again(c.r, c.try)
		if again != (c.end > 0) || (again && (d < c.from || d >= c.end)) {
			t.Errorf("%s: %v, %v", name, d, again)
		}
	}
}

// The defaults of a client, and the options that New refuses.
func TestConfigurations(t *testing.T) {
	t.Parallel()
	for opt, want := range map[int]int{-1: 0, 0: 0, 1: 1, 7: 7} {
		if c, err := newConfig(forClient, "https://app.example.com", []Option{WithRetries(opt)}); err != nil || c.retries != want {
			t.Errorf("%d retries: %v", opt, err)
		}
	}
	own := slog.New(slog.DiscardHandler)
	c, err := newConfig(forClient, "https://app.example.com", []Option{WithLogger(own)})
	if err != nil || c.retries != 2 || c.log != own || c.http.Jar != nil {
		t.Errorf("%+v, %v", c, err)
	}
	for _, bad := range []Option{nil, WithLogger(nil), WithAPIKey("sk_live_x"), WithTokenOrigins("https://"), WithTokenOrigins("api.example.com"), WithTokenOrigins("https://ada@api.example.com"),
		WithTokenOrigins("https://api.example.com/v1"), WithTokenOrigins("https://%zz"), WithTokenOrigins("http://api.example.com"), WithTokenOrigins("https://api.example.com", "")} {
		if _, err := newConfig(forClient, "https://app.example.com", []Option{bad}); err == nil {
			t.Error("a bad option is taken")
		}
	}
	if _, err := newConfig(forClient, "https://app.example.com", []Option{WithAPIKey("pk_live_x"), nil, WithAPIKey("pk_live_x")}); err == nil || !strings.Contains(err.Error(), "option 2 of 3 is nil") {
		t.Errorf("no option: %v", err)
	}
	if _, err := NewVerifier(t.Context(), "app.example.com", WithLateStart()); err == nil || !strings.Contains(err.Error(), "NewVerifier: the URL") {
		t.Error(err)
	}
	for raw, want := range map[string]string{
		"https://App.example.com": "https://app.example.com:443", "https://app.example.com:443/x": "https://app.example.com:443", "HTTPS://app.example.com:8443": "https://app.example.com:8443",
		"http://app.example.com": "http://app.example.com:80", "http://app.example.com:443": "http://app.example.com:443",
	} {
		u, err := url.Parse(raw)
		if err != nil || originOf(u) != want {
			t.Errorf("%s: %s, %v", raw, originOf(u), err)
		}
	}
}

// The URL of a project is absolute and has a mount path only: a bare origin gets the usual
// one.
func TestURLsOfProjects(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://a.example": "https://a.example/auth/v1", "https://a.example/": "https://a.example/auth/v1", "https://a.example//": "https://a.example/auth/v1",
		"https://a.example:8443/x/": "https://a.example:8443/x", "http://127.0.0.1:8080": "http://127.0.0.1:8080/auth/v1",
		"": "", "https://": "", "https:///x": "", "https:a.example": "", "a.example": "", "//a.example": "", "ftp://a.example": "", "https://%zz": "", "http://a.example": "",
		"https://ada@a.example": "", "https://a.example/?x": "", "https://a.example?x=y": "", "https://a.example/#x": "",
	} {
		u, err := readURL(raw, false)
		if (err == nil) != (want != "") || err == nil && u.String() != want {
			t.Errorf("%q: %v, %v", raw, u, err)
		}
	}
	for _, raw := range []string{"", "https://", "https:///x", "http:a.example", "a.example", "//a.example", "ftp://a.example", "http://ada@a.example", "http://a.example?x=y", "http://a.example#x"} {
		if u, err := readURL(raw, true); err == nil {
			t.Errorf("%q, plain: %v", raw, u)
		}
	}
	if u, err := readURL("http://a.example", true); err != nil || u.String() != "http://a.example/auth/v1" {
		t.Error(u, err)
	}
}

// A missing folder is created for the owner only.
func TestFileStoreCreatesItsFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := FileStore{Path: dir + "/new/folder/session"}
	if err := f.Save(t.Context(), &Session{RefreshToken: "r"}); err != nil {
		t.Fatal(err)
	}
	if s, err := f.Load(t.Context()); err != nil || s.RefreshToken != "r" {
		t.Error(s, err)
	}
	if i, err := os.Stat(dir + "/new"); err != nil || i.Mode().Perm() != 0o700 {
		t.Error(i, err)
	}
}

// A session file that cannot be read or written is reported with its path, and leaves no
// other file.
func TestFileStoreTellsFailures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	corrupt := t.TempDir() + "/corrupt"
	if err := os.WriteFile(corrupt, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (FileStore{Path: corrupt}).Load(t.Context()); err == nil || !strings.Contains(err.Error(), corrupt) {
		t.Errorf("a corrupt file: %v", err)
	}
	if err := os.Mkdir(dir+"/session", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := (FileStore{Path: dir + "/session"}).Save(t.Context(), &Session{RefreshToken: "r"}); err == nil {
		t.Error("saved in place of a folder")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
}
