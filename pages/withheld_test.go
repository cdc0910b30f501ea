package pages_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/browsertest"
	"github.com/authmount/auth/pages"
	"github.com/authmount/auth/store"
)

var accountantsNeedFactor = auth.WithSettings(auth.Settings{MFARequiredFor: []string{"accountant"}})

// withBooks adds a page for accountants at /books. give makes a user one.
func (s *site) withBooks(t *testing.T) (give func(email string)) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	adm, err := admin.New(t.Context(), s.Auth, admin.Options{})
	must(err)
	must(adm.EnsureRole(t.Context(), admin.System("test"), admin.CreateRoleParams{Name: "accountant"}))
	mux := http.NewServeMux()
	mux.Handle("GET /books", s.RequirePage(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "<h1>the books</h1>")
	}), auth.HasRole("accountant")))
	mux.Handle("/", s.handler)
	s.handler = mux
	return func(email string) {
		t.Helper()
		u, err := s.Store.User(t.Context(), store.ByEmail(email))
		must(err)
		_, err = adm.SetRoles(t.Context(), admin.System("test"), admin.SetRolesParams{UserID: u.ID, Roles: []string{"accountant"}})
		must(err)
	}
}

// A page for a role that the second factor withholds leads to the factor and back, also if
// the sign-in is too old to set one up. Nothing changes for others.
func TestWithheldRoleLeadsToFactorAndBack(t *testing.T) {
	for name, age := range map[string]time.Duration{"recent": 0, "old": time.Hour} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, pages.Options{}, accountantsNeedFactor)
			give := s.withBooks(t)
			b := s.browser(t)
			b.signIn(address)
			b.open("/books").want(t, 403, "/books", "No access")
			give(address)
			s.Clock.Advance(age)
			if got := b.open("/account/").want(t, 200, "/account/", "Your account").text(); !strings.Contains(got, "needs a second factor: accountant. Set it up") {
				t.Errorf("the account does not show it: %s", got)
			}
			b.open("/books")
			if age > 0 {
				b.page.want(t, 200, "/account/sign-in", "Sign in again")
				b.submit("login", address, "password", password)
			}
			b.page.want(t, 200, map[bool]string{false: "/account/second-factor", true: "/account/sign-in/enrol"}[age > 0], "Set up a second factor")
			b.submit("do", "begin")
			secret := attr(b.page.input("secret"), "value")
			b.submit("do", "enable", "code", code(t, s, secret))
			var next string
			for _, a := range b.page.all("a") {
				if attr(a, "href") == "/books" {
					next = "/books"
				}
			}
			b.open(next).want(t, 200, "/books", "the books")
			if got := b.open("/account/").text(); strings.Contains(got, "needs a second factor") {
				t.Errorf("the account shows it still: %s", got)
			}
			other := s.browser(t)
			other.signIn("dave@example.com")
			other.open("/books").want(t, 403, "/books", "No access")
			if got := other.open("/account/").text(); strings.Contains(got, "accountant") {
				t.Errorf("another account shows %s", got)
			}
		})
	}
}

func TestWithheldRoleInBrowser(t *testing.T) {
	s := serveSite(t, accountantsNeedFactor)
	give := s.withBooks(t)
	s.LoginAs(t, address)
	s.open("/account/sign-in")
	s.do(browsertest.Type("#login", address), browsertest.Type("#password", password+kb.Enter))
	s.at("/notes")
	give(address)
	s.open("/books")
	s.at("/account/second-factor")
	s.do(browsertest.Click("main form button"))
	s.do(browsertest.Until(`document.querySelector('img.qr')?.naturalWidth > 0`))
	s.do(browsertest.Type("#code", code(t, s.site, s.value("input[name=secret]"))+kb.Enter))
	s.do(browsertest.Until(`document.querySelectorAll('.codes li').length === 10`))
	s.do(browsertest.Click("a[href='/books']"))
	s.at("/books")
	s.do(browsertest.Until(`document.body.textContent.includes('the books')`))
}

// An account that waits for an acceptance learns on its page what to do, and why it cannot
// set up a second factor before.
func TestWaitingAccountIsTold(t *testing.T) {
	s := newSite(t, pages.Options{})
	s.withBooks(t)
	b := s.browser(t)
	b.signIn(address)
	if got := b.open("/account/").text(); strings.Contains(got, "Permissions wait") {
		t.Errorf("an ordinary account is told: %s", got)
	}
	u, err := s.Store.User(t.Context(), store.ByEmail(address))
	if err != nil {
		t.Fatal(err)
	}
	patch := store.UserPatch{Roles: &[]string{auth.RoleOwner}}
	if _, err := s.Store.UpdateUser(t.Context(), store.UpdateUser{Change: store.Change{Now: s.Clock.Now(), By: auth.Authority{System: "test"}}, UserID: u.ID, Patch: patch}); err != nil {
		t.Fatal(err)
	}
	if got := b.open("/account/").want(t, 200, "/account/", "Your account").text(); !strings.Contains(got, "Permissions wait for you to accept them. Open the link that was sent to "+address) {
		t.Errorf("the account says %s", got)
	}
	b.open("/account/second-factor")
	b.submit("do", "begin")
	if got := b.page.text(); !strings.Contains(got, "permissions that wait to be accepted") {
		t.Errorf("the second factor says %s", got)
	}
}
