package auth_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
)

// The owner of an address that was given for an account once more gets a link that
// works, also where the store was away when it was asked for the account.
func TestOwnerOfATakenAddressGetsAGoodLink(t *testing.T) {
	tap := storetap.New(newStore(t))
	w := &world{t: t, log: &syncBuffer{}, Env: authtest.NewOn(t, tap, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))}
	auth.Retries(w.Auth, time.Millisecond)
	body := map[string]any{"email": adaMail, "password": goodPassword}
	w.do("POST", "/signup", body).want(200)
	var mu sync.Mutex
	var failed []string // the first of each call once the account was found to be there
	tap.Reset(storetap.Hooks{Fault: func(_ context.Context, method string, _ int) storetap.Fault {
		mu.Lock()
		defer mu.Unlock()
		if method == "CreateUser" {
			failed = []string{}
		} else if failed != nil && !slices.Contains(failed, method) {
			failed = append(failed, method)
			return storetap.FailsBefore
		}
		return storetap.NoFault
	}})
	w.do("POST", "/signup", body).want(200)
	token := w.linkToken(adaMail, auth.KindAccountExists)
	tap.Reset(storetap.Hooks{})
	if mu.Lock(); !slices.Equal(failed, []string{"Take", "User", "PutToken"}) {
		t.Errorf("failed: %v", failed)
	}
	mu.Unlock()
	w.do("POST", "/reset-password", map[string]any{"token": token, "new_password": "another horse battery"}).want(200)
	w.login(adaMail, "another horse battery").session()
}

// Whoever proved the password of an account whose address is not confirmed is sent the link
// again, also where the store was away for it.
func TestConfirmationIsSentAgainAfterAFault(t *testing.T) {
	tap := storetap.New(newStore(t))
	w := &world{t: t, log: &syncBuffer{}, Env: authtest.NewOn(t, tap, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))}
	auth.Retries(w.Auth, time.Millisecond)
	w.do("POST", "/signup", map[string]any{"email": adaMail, "password": goodPassword}).want(200)
	w.linkToken(adaMail, auth.KindVerifyEmail)
	w.Clock.Advance(10 * time.Minute)
	w.Inbox.Clear()
	var failed atomic.Bool
	tap.Reset(storetap.Hooks{Fault: func(_ context.Context, method string, _ int) storetap.Fault {
		if method == "PutToken" && !failed.Swap(true) {
			return storetap.FailsBefore
		}
		return storetap.NoFault
	}})
	w.do("POST", "/login", map[string]any{"email": adaMail, "password": goodPassword}).want(401)
	w.do("POST", "/verify-email", map[string]any{"token": w.linkToken(adaMail, auth.KindVerifyEmail)}).want(200)
	if tap.Reset(storetap.Hooks{}); !failed.Load() {
		t.Error("nothing failed")
	}
}

// A token above any that is issued is not even parsed.
func TestLongTokensAreRefused(t *testing.T) {
	w := newWorld(t)
	for n, good := range map[int]bool{8 << 10: true, 16 << 10: false} {
		token := w.MintToken(t, map[string]any{"x": strings.Repeat("x", n)})
		if _, err := w.Verify(token); (err == nil) != good {
			t.Errorf("%d bytes: %v", len(token), err)
		}
	}
}

// Permissions go where roles leave no room for them, and are named.
func TestPermissionsGiveWayToRoles(t *testing.T) {
	w := newWorld(t)
	roles := make([]string, 24)
	for i := range roles {
		roles[i] = "role-of-twenty-five-" + string(rune('a'+i)) + "-xyz"
	}
	ada := w.LoginAs(t, adaMail, authtest.Roles(roles...), authtest.Permissions(permitting(42)...))
	c, err := w.Verify(ada.AccessToken)
	if err != nil || len(ada.AccessToken) >= 3000 || strings.Join(c.Omitted, " ") != "app_metadata permissions" || len(c.Roles) != 25 {
		t.Errorf("%d bytes, %+v, %v", len(ada.AccessToken), c, err)
	}
}

// The inbox says by which methods it is read, and of what type its answers are.
func TestInboxHeaders(t *testing.T) {
	in := auth.NewInbox()
	for _, c := range []struct{ method, path, kind, allow string }{
		{"GET", "/dev/messages", "application/json; charset=utf-8", ""},
		{"GET", "/dev/inbox", "text/html; charset=utf-8", ""},
		{"POST", "/dev/inbox", "text/plain; charset=utf-8", "GET, HEAD"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, http.NoBody)
		r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1"
		rec := httptest.NewRecorder()
		in.ServeHTTP(rec, r)
		h := rec.Header()
		if h.Get("Content-Type") != c.kind || h.Get("Allow") != c.allow || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-store" || h.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s %s: %v", c.method, c.path, h)
		}
	}
}
