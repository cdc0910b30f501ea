package dashboard_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/authmount/auth/admin"
)

// Whatever a page leads to is there, by GET, and changes nothing.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	o.scene()
	b := o.signedIn("owner@example.com")
	seen, queue := map[string]bool{}, []string{"/dashboard/"}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if plain, _, _ := strings.Cut(at, "#"); seen[plain] || strings.Contains(plain, "cursor=") && len(seen) > 400 {
			continue
		}
		seen[at] = true
		if len(seen) > 600 {
			break
		}
		b.get(at)
		if b.status != http.StatusOK {
			t.Errorf("%s is %d: %.300s", at, b.status, b.text())
			continue
		}
		if !strings.Contains(b.got.Get("Content-Security-Policy"), "default-src 'none'") || b.got.Get("Cache-Control") != "no-store" {
			t.Errorf("%s has the headers %v", at, b.got)
		}
		b.harmless()
		queue = append(queue, b.links()...)
	}
	t.Logf("%d pages", len(seen))
	if len(seen) < 60 {
		t.Errorf("only %d pages were found: %v", len(seen), seen)
	}
}
