package dashboard_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/dashboard"
)

// Every route answers an unsupported method with the supported ones.
func TestEveryRouteNamesItsMethods(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	ids, tried := o.ids(), 0
	for at, methods := range dashboard.Routes() {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
			if slices.Contains(methods, method) {
				continue
			}
			r, err := http.NewRequestWithContext(t.Context(), method, o.url+"/dashboard"+ids.Replace(strings.TrimSuffix(at, "{$}")), nil)
			if err != nil {
				t.Fatal(err)
			}
			a, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			_ = a.Body.Close()
			tried++
			if allow := a.Header.Get("Allow"); a.StatusCode != http.StatusMethodNotAllowed || allow != strings.Join(methods, ", ") {
				t.Errorf("%s %s: %d, Allow %q, and it takes %v", method, at, a.StatusCode, allow, methods)
			}
		}
	}
	if tried < 50 {
		t.Errorf("only %d requests", tried)
	}
}
