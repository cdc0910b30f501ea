package mail_test

import (
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/testsecret"
	"github.com/authmount/auth/memstore"
)

func TestInbox(t *testing.T) {
	in := auth.NewInbox()
	get := func(method, target, host string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
		r.Host, r.RemoteAddr = host, "127.0.0.1:1"
		rec := httptest.NewRecorder()
		in.ServeHTTP(rec, r)
		return rec
	}
	if body := get("GET", "/dev/messages", "localhost:8080").Body.String(); strings.TrimSpace(body) != "[]" {
		t.Errorf("empty inbox: %q", body)
	}
	for i := range 201 {
		m := auth.Message{ID: fmt.Sprint(i), Channel: auth.ChannelEmail, To: "ada@example.com", Subject: "<b>bold</b>", Text: "<script>alert(1)</script>", Link: "https://auth.test/?a=1&b=2"}
		if err := in.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	var list []map[string]any
	if err := json.Unmarshal(get("GET", "/dev/messages", "127.0.0.1:8080").Body.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 200 || list[0]["id"] != "1" || list[199]["id"] != "200" || list[0]["code"] != nil || list[0]["link"] != "https://auth.test/?a=1&b=2" {
		t.Errorf("%d messages, %v", len(list), list[0])
	}
	page := get("GET", "/dev/inbox", "[::1]:8080")
	if body := page.Body.String(); page.Code != 200 || strings.Contains(body, "<script>") || strings.Contains(body, "<b>") || !strings.Contains(body, `href="https://auth.test/?a=1&amp;b=2"`) {
		t.Errorf("page %d %s", page.Code, body)
	}
	// The inbox displays mails in a frame that runs no scripts.
	if err := in.Send(t.Context(), auth.Message{Kind: auth.KindMagicLink, Channel: auth.ChannelEmail, Subject: "Look", HTML: `<html><head></head><body><p class="x">A &amp; "B"</p><script>alert(1)</script></body></html>`}); err != nil {
		t.Fatal(err)
	}
	page = get("GET", "/dev/inbox", "localhost")
	frame := regexp.MustCompile(`<iframe title="Look" sandbox="allow-top-navigation-by-user-activation" srcdoc="([^"]*)"></iframe>`).FindStringSubmatch(page.Body.String())
	if len(frame) != 2 || html.UnescapeString(frame[1]) != `<html><head><base target="_top"></head><body><p class="x">A &amp; "B"</p><script>alert(1)</script></body></html>` {
		t.Errorf("frame %q in %s", frame, page.Body)
	}
	if !strings.Contains(page.Header().Get("Content-Security-Policy"), "default-src 'none'") || !strings.Contains(page.Body.String(), `<a href="/">`) {
		t.Errorf("%v %s", page.Header(), page.Body)
	}
	if body := get("GET", "/dev/messages", "localhost").Body.String(); !strings.Contains(body, `"kind":"magic_link"`) {
		t.Errorf("no kind: %s", body)
	}
	// DNS rebinding, accidental exposure and other requests that are not for the inbox.
	for _, c := range []struct {
		method, target, host string
		want                 int
	}{
		{"GET", "/dev/messages", "evil.test", http.StatusForbidden},
		{"GET", "/dev/inbox", "192.0.2.1:8080", http.StatusForbidden},
		{"GET", "/dev/inbox", "localhost.evil.test", http.StatusForbidden},
		{"POST", "/dev/messages", "localhost", http.StatusMethodNotAllowed},
		{"GET", "/dev/other", "localhost", http.StatusNotFound},
	} {
		if got := get(c.method, c.target, c.host).Code; got != c.want {
			t.Errorf("%s %s at %s: %d", c.method, c.target, c.host, got)
		}
	}
}

// The inbox is not shown through a proxy or to another machine, because its reader can sign
// in as any user.
func TestInboxIsForThisMachine(t *testing.T) {
	in := auth.NewInbox()
	for name, c := range map[string]struct {
		remote, host string
		with         []harness.Header
		want         int
	}{
		"this machine":          {"127.0.0.1:1", "localhost:8080", nil, 200},
		"by IPv6":               {"[::1]:1", "[::1]:8080", nil, 200},
		"by mapped IPv4":        {"[::ffff:127.0.0.1]:1", "127.0.0.1", nil, 200},
		"another machine":       {"192.0.2.1:1", "localhost:8080", nil, 403},
		"the local network":     {"10.0.0.2:1", "localhost", nil, 403},
		"a socket":              {"@", "localhost", nil, 403},
		"no address":            {"", "localhost", nil, 403},
		"another host":          {"127.0.0.1:1", "app.test", nil, 403},
		"past a proxy":          {"127.0.0.1:1", "localhost", []harness.Header{{Name: "X-Forwarded-For", Value: "127.0.0.1"}}, 403},
		"past a proxy by name":  {"127.0.0.1:1", "localhost", []harness.Header{{Name: "X-Forwarded-Host", Value: "app.test"}}, 403},
		"past a standard proxy": {"127.0.0.1:1", "localhost", []harness.Header{{Name: "Forwarded", Value: "for=127.0.0.1"}}, 403},
		"past one that says so": {"127.0.0.1:1", "localhost", []harness.Header{{Name: "Via", Value: "1.1 proxy"}}, 403},
		"past nginx":            {"127.0.0.1:1", "localhost", []harness.Header{{Name: "X-Real-IP", Value: "127.0.0.1"}}, 403},
	} {
		for _, path := range []string{"/dev/messages", "/dev/inbox"} {
			r := httptest.NewRequestWithContext(t.Context(), "GET", path, nil)
			r.Host, r.RemoteAddr = c.host, c.remote
			for _, h := range c.with {
				r.Header.Set(h.Name, h.Value)
			}
			rec := httptest.NewRecorder()
			if in.ServeHTTP(rec, r); rec.Code != c.want {
				t.Errorf("%s: %s answers %d, want %d", name, path, rec.Code, c.want)
			}
		}
	}
}

// New accepts an inbox on loopback only, even one that the application created.
func TestInboxOffLoopback(t *testing.T) {
	inbox := auth.NewInbox()
	secret := auth.WithSecret(testsecret.Of("s"))
	for name, opts := range map[string][]auth.Option{
		"dev mode":   {auth.WithDevMode()},
		"mailer":     {secret, auth.WithMailer(inbox)},
		"SMS sender": {secret, auth.WithMailer(harness.NoMail{}), auth.WithSMSSender(inbox)},
	} {
		for _, base := range []string{"https://auth.test/auth/v1", "https://localhost/auth/v1", "http://auth.test/auth/v1", "http://192.0.2.1/auth/v1"} {
			_, err := auth.New(t.Context(), memstore.New(), append(opts, auth.WithBaseURL(base))...)
			want := "an Inbox, also the one of WithDevMode, works only over http on a loopback host"
			if strings.HasPrefix(base, "http:") {
				want = "http on a host that is not loopback"
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s on %s: %v", name, base, err)
			}
		}
		a, err := auth.New(t.Context(), memstore.New(), append(opts, auth.WithDevMode(), auth.WithBaseURL("http://127.0.0.1:8080/auth/v1"))...)
		if err != nil {
			t.Fatalf("%s on loopback: %v", name, err)
		}
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
