package dashboard_test

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/dashboard"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
)

// A form that could not be drawn because a read failed, at any point, is not shown without
// the data. It shows its usual content, or that it does not work.
func TestFormsInAnOutage(t *testing.T) {
	t.Parallel()
	tap := storetap.New(memstore.New())
	o := newOffice(t, tap, admin.Options{})
	ids := o.ids()
	b := o.signedIn("owner@example.com")
	failed := 0
	for at, deed := range deeds {
		if deed.at == "" {
			continue
		}
		see := func(fails int32) (calls int32) {
			var n atomic.Int32
			tap.Reset(storetap.Hooks{Fault: func(context.Context, string, int) storetap.Fault {
				if n.Add(1) == fails {
					return storetap.FailsBefore
				}
				return storetap.NoFault
			}})
			defer tap.Reset(storetap.Hooks{})
			b.get("/dashboard" + ids.Replace(deed.at))
			return n.Load()
		}
		calls := see(0)
		b.want(http.StatusOK)
		healthy := b.text()
		for k := int32(1); k <= calls; k++ {
			see(k)
			switch {
			case b.status == http.StatusServiceUnavailable:
				failed++
			case b.status != http.StatusOK || b.text() != healthy:
				t.Errorf("%s with read %d of %d failing: %d at %s, %.300s", at, k, calls, b.status, b.at, b.text())
			}
		}
	}
	if failed < len(deeds) {
		t.Errorf("only %d failures are told", failed)
	}
}

// The reasons for a user's permissions are read beside the rest of their page: if that
// fails, the page is still shown, and says so.
func TestWhyInAnOutage(t *testing.T) {
	t.Parallel()
	tap := storetap.New(memstore.New())
	o := newOffice(t, tap, admin.Options{})
	ada := o.scene()
	b := o.signedIn("owner@example.com")
	at := "/dashboard/users/" + ada.ID + "?tab=roles&permission=notes.write"
	said := 0
	for fails := int32(0); fails < 40; fails++ {
		var n atomic.Int32
		tap.Reset(storetap.Hooks{Fault: func(context.Context, string, int) storetap.Fault {
			if n.Add(1) == fails {
				return storetap.FailsBefore
			}
			return storetap.NoFault
		}})
		b.get(at)
		tap.Reset(storetap.Hooks{})
		switch {
		case b.status == http.StatusServiceUnavailable:
		case b.status != http.StatusOK:
			t.Errorf("with read %d failing: %d %s", fails, b.status, b.text())
		case strings.Contains(b.text(), "Allowed, by: editor."):
			if fails > 0 && n.Load() < fails {
				fails = 40 // all calls were tried
			}
		default:
			said++
		}
	}
	if said == 0 {
		t.Error("it never says that it does not know")
	}
}

// A time that is entered is in UTC, as the form says.
func TestTimesThatAreEntered(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{})
	ada := o.scene()
	until := o.Clock.Now().UTC().Add(48 * time.Hour).Truncate(time.Minute)
	b := o.signedIn("owner@example.com")
	b.get("/dashboard/users/" + ada.ID + "/ban")
	form := b.form()
	form.Set("reason", "spam")
	form.Set("typed", "ada@example.com")
	form.Set("until", until.Format("2006-01-02T15:04"))
	b.post("/dashboard/users/"+ada.ID+"/ban", form)
	b.want(http.StatusOK)
	if u, err := o.adm.User(t.Context(), admin.System("test").Accepting(), ada.ID); err != nil || !u.BannedUntil.Equal(until) {
		t.Errorf("banned until %s, %v; want %s", u.BannedUntil, err, until)
	}
}

// The diagnostics report an undeclared proxy, although a page requests them.
func TestDiagnosticsTellOfProxies(t *testing.T) {
	t.Parallel()
	b := newOffice(t, nil, admin.Options{}).signedIn("owner@example.com")
	b.header.Set("X-Forwarded-For", "203.0.113.9")
	b.get("/dashboard/diagnostics")
	b.want(http.StatusOK, "X-Forwarded-For", "Headers of a proxy are ignored")
}

// A visitor who has to sign in again before a download is led back to a page, and not to
// the file's URL, which a browser cannot open.
func TestDownloadsOfASessionThatEnds(t *testing.T) {
	t.Parallel()
	tap := storetap.New(memstore.New())
	o := newOffice(t, tap, admin.Options{})
	b := o.signedIn("owner@example.com")
	var gone atomic.Bool
	tap.Reset(storetap.Hooks{After: func(_ context.Context, method string, _ int, _ error) {
		if method == "Session" && gone.CompareAndSwap(false, true) {
			if _, err := o.adm.EndSessions(context.WithoutCancel(t.Context()), admin.System("test").Accepting(), o.owner.ID, "test"); err != nil {
				t.Error(err)
			}
		}
	}})
	b.post("/dashboard/users/export", url.Values{})
	tap.Reset(storetap.Hooks{})
	if q := b.at.Query(); b.at.Path != "/dashboard/sign-in" || q.Get("return_to") != "/dashboard/" || strings.Contains(b.body, "owner@example.com") {
		t.Errorf("it leads to %s, %d", b.at, b.status)
	}
}

// New refuses to create a dashboard if its sign-in page would bypass the captcha.
func TestDashboardsWithoutASignIn(t *testing.T) {
	t.Parallel()
	e := authtest.New(t, auth.WithDevMode(), auth.WithBaseURL("http://localhost/auth/v1"), auth.WithCaptcha(auth.CaptchaOptions{Verifier: solved{}}))
	adm, err := admin.New(t.Context(), e.Auth, admin.Options{RequireMFA: auth.Off})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := dashboard.New(adm, dashboard.Options{}); err == nil || d != nil || !strings.Contains(err.Error(), "captcha") {
		t.Errorf("%v, %v", d, err)
	}
}

// solved is a captcha that accepts every answer.
type solved struct{}

func (solved) Verify(context.Context, string, netip.Addr) error { return nil }

// Only an account of the service becomes its first owner: a visitor admitted by the
// application's own login has none, and gets no confirmation.
func TestFirstOwnerWithoutAnAccount(t *testing.T) {
	t.Parallel()
	o := newOffice(t, nil, admin.Options{Authenticate: func(*http.Request) (admin.Identity, error) {
		return admin.Identity{ID: "eve", Permissions: []string{"auth.users.read"}}, nil
	}})
	b := o.browser()
	b.post("/dashboard/first-owner", url.Values{"token": {"x"}})
	if b.status != http.StatusUnauthorized || strings.Contains(b.text(), "You are the owner") {
		t.Errorf("%d %s", b.status, b.text())
	}
}
