package auth_test

import (
	"context"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/storetap"
)

// Each mailed link's page says so when the store fails at any of its calls, and
// opens when it does not any more.
func TestLinkPagesInAnOutage(t *testing.T) {
	for path, ask := range map[string]struct {
		at   string
		kind auth.Kind
	}{
		"/reset-password":    {"/forgot-password", auth.KindResetPassword},
		"/magic-link/verify": {"/magic-link/send", auth.KindMagicLink},
	} {
		t.Run(path, func(t *testing.T) {
			w, tap, _ := tapped(t)
			w.signUp("ada@example.com")
			w.do("POST", ask.at, map[string]any{"email": "ada@example.com"}).want(200)
			page := path + "?token=" + w.linkToken("ada@example.com", ask.kind)
			w.do("GET", page, nil, browser)
			var names []string // of the calls, of which a later page may need fewer
			tap.Reset(storetap.Hooks{Before: func(_ context.Context, name string, _ int) { names = append(names, name) }})
			w.do("GET", page, nil, browser).want(200)
			for i := range names {
				tap.Reset(storetap.Hooks{Fault: func(_ context.Context, _ string, n int) storetap.Fault {
					if n == i+1 {
						return storetap.FailsBefore
					}
					return storetap.NoFault
				}})
				if a := w.do("GET", page, nil, browser).want(503); !strings.Contains(string(a.body), "<html") {
					t.Errorf("without %s: %q", names[i], a.body)
				}
			}
			tap.Reset(storetap.Hooks{})
			w.do("GET", page, nil, browser).want(200)
		})
	}
}
