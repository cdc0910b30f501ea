package dashboard_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// clocked is a store with a clock.
type clocked struct {
	auth.Store
	store.AdminStore
	now func() time.Time
}

func (s *clocked) Unwrap() auth.Store { return s.Store }

func (s *clocked) Diagnose(ctx context.Context) (store.StoreDiagnosis, error) {
	d, err := s.AdminStore.Diagnose(ctx)
	d.Now = s.now()
	return d, err
}

// The overview and the diagnostics warn of clocks that differ, with both times, and of no
// difference of a few seconds.
func TestClockWarnings(t *testing.T) {
	t.Parallel()
	m := memstore.New()
	st := &clocked{Store: m, AdminStore: m}
	ahead := 4 * time.Second
	var o *office
	st.now = func() time.Time {
		if o == nil {
			return time.Time{}
		}
		return o.Clock.Now().Add(ahead)
	}
	o = newOffice(t, st, admin.Options{})
	b := o.signedIn("owner@example.com")
	pages := func(want ...string) {
		t.Helper()
		for _, page := range []string{"/dashboard/", "/dashboard/diagnostics"} {
			b.get(page)
			b.want(http.StatusOK, want...)
			if len(want) == 0 && (strings.Contains(b.body, "Clocks differ") || strings.Contains(b.body, "because clocks differ")) {
				t.Errorf("%s warns", page)
			}
		}
	}
	pages()
	ahead = 7 * time.Second
	pages("Clocks differ.", o.Clock.Now().Format(time.RFC3339), o.Clock.Now().Add(ahead).Format(time.RFC3339))

	ahead = 0
	issuer := authtest.NewOn(t, m, auth.WithBaseURL(o.url+"/auth/v1"), auth.WithDevMode(), o.SameKeys(), auth.WithClock(func() time.Time { return o.Clock.Now().Add(2 * time.Minute) }))
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	issuer.LoginAs(t, "ada@example.com").Sign(r)
	w := httptest.NewRecorder()
	o.Require(http.NotFoundHandler()).ServeHTTP(w, r)
	if w.Code != http.StatusUnauthorized {
		t.Fatalf("status %d", w.Code)
	}
	pages("because clocks differ", o.Clock.Now().Format(time.RFC3339), o.Clock.Now().Add(2*time.Minute).Format(time.RFC3339))
	o.Clock.Advance(time.Hour)
	b = o.signedIn("owner@example.com")
	pages()
}
