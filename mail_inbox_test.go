package auth_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/authmount/auth"
)

func TestInbox(t *testing.T) {
	in := auth.NewInbox()
	get := func(method, target, host string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
		r.Host = host
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
	// DNS rebinding, exposure by accident, and what else is not for it.
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
