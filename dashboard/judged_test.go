package dashboard_test

import (
	"context"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
)

// A page reads its visitor's session once, and again when it takes longer than a second. A
// form that is sent reads it once more for its change, and so does each of them after a
// page view.
func TestVisitorsAreReadOncePerPage(t *testing.T) {
	t.Parallel()
	tap := storetap.New(memstore.New())
	o := newOffice(t, tap, admin.Options{})
	ids := o.ids()
	b := o.signedIn("owner@example.com")
	var reads atomic.Int32
	var slow string
	tap.Reset(storetap.Hooks{Before: func(_ context.Context, method string, _ int) {
		switch method {
		case "Session":
			reads.Add(1)
		case slow:
			o.Clock.Advance(2 * time.Second)
		}
	}})
	for at, want := range map[string]int32{"/": 1, "/users": 1, "/sessions": 1, "/audit": 1, "/roles": 1, "/settings": 1, "/users/{ada}": 1, "/users/{ada}?tab=timeline": 1} {
		reads.Store(0)
		b.get("/dashboard" + ids.Replace(at))
		b.want(http.StatusOK)
		if n := reads.Load(); n != want {
			t.Errorf("%s reads its visitor %d times, want %d", at, n, want)
		}
	}
	slow = "ListSessions"
	reads.Store(0)
	b.get("/dashboard/sessions")
	if n := reads.Load(); n < 2 {
		t.Errorf("a slow page reads its visitor %d times", n)
	}
	slow = ""
	b.get("/dashboard" + ids.Replace("/users/{ada}/ban"))
	reads.Store(0)
	b.post("/dashboard"+ids.Replace("/users/{ada}/ban"), url.Values{"reason": {"spam"}, "typed": {"ada@example.com"}})
	if n := reads.Load(); n < 3 { // the visit, the operation, the page that it leads to
		t.Errorf("a form and the page behind it read their visitor %d times", n)
	}
}

// A session that ends between the check of a visit and its change: nothing is done.
func TestFormsOfASessionThatEnds(t *testing.T) {
	t.Parallel()
	tap := storetap.New(memstore.New())
	o := newOffice(t, tap, admin.Options{})
	ids := o.ids()
	b := o.signedIn("owner@example.com")
	b.get("/dashboard" + ids.Replace("/users/{ada}/ban"))
	var gone atomic.Bool
	tap.Reset(storetap.Hooks{After: func(_ context.Context, method string, _ int, _ error) {
		if method == "Session" && gone.CompareAndSwap(false, true) {
			if _, err := o.adm.EndSessions(context.WithoutCancel(t.Context()), admin.System("test").Accepting(), o.owner.ID, "test"); err != nil {
				t.Error(err)
			}
		}
	}})
	b.post("/dashboard"+ids.Replace("/users/{ada}/ban"), url.Values{"reason": {"spam"}, "typed": {"ada@example.com"}})
	tap.Reset(storetap.Hooks{})
	if u, err := o.adm.User(t.Context(), admin.System("test").Accepting(), ids.Replace("{ada}")); err != nil || u.Banned(o.Clock.Now()) || !gone.Load() {
		t.Errorf("banned in the name of a session that had ended: %v, %v", u.BannedUntil, err)
	}
}
