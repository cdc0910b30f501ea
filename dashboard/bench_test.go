package dashboard_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/dashboard"
)

// The cost of a screen without that of its operations: memory answers those at once.
func BenchmarkScreens(b *testing.B) {
	e := authtest.New(b, auth.WithRateLimits(auth.RateLimits{Off: true}))
	adm, err := admin.New(b.Context(), e.Auth, admin.Options{RequireMFA: auth.Off})
	if err != nil {
		b.Fatal(err)
	}
	d, err := dashboard.New(adm, dashboard.Options{})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 60 {
		e.LoginAs(b, fmt.Sprintf("ada%d@example.com", i), authtest.Roles("support"))
	}
	owner := e.LoginAs(b, "owner@example.com", authtest.Roles(auth.RoleOwner))
	for _, at := range []string{"/", "/users", "/sessions", "/audit", "/roles", "/keys", "/settings", "/users/" + owner.User.ID} {
		b.Run(at, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/dashboard"+at, nil)
				r.AddCookie(&http.Cookie{Name: "__Host-authmount-admin-access", Value: owner.AccessToken}) //nolint:gosec // of a request, not set
				w := httptest.NewRecorder()
				d.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatalf("%d %s", w.Code, w.Header().Get("Location"))
				}
			}
		})
	}
}
