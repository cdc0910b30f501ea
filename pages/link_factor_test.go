package pages_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"golang.org/x/net/html"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/browsertest"
	"github.com/authmount/auth/pages"
	"github.com/authmount/auth/store"
)

// Links that sign in where they are opened continue with the second factor, or set it up, in
// the look of the pages.
func TestLinksAskForFactorInBrowser(t *testing.T) {
	const factorPage = "/auth/v1/magic-link/verify"
	s := serveSite(t, auth.WithSettings(auth.Settings{MFARequiredFor: []string{"editor", "support"}}), auth.WithMFA(auth.MFAOptions{TrustDevices: 24 * time.Hour}))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	adm, err := admin.New(t.Context(), s.Auth, admin.Options{})
	must(err)
	mux := http.NewServeMux()
	mux.Handle("/auth/v1/admin/", adm.Handler())
	mux.Handle("/", s.handler)
	s.handler = mux
	operator := admin.System("test").Accepting()
	for role, permissions := range map[string][]string{"editor": {}, "support": {admin.PermUsersRead}} {
		must(adm.EnsureRole(t.Context(), operator, admin.CreateRoleParams{Name: role, Permissions: permissions}))
	}
	invited := func(email, role string) string {
		_, err := adm.Invite(t.Context(), operator, admin.InviteParams{Email: email, Roles: []string{role}})
		must(err)
		return s.Mail(t, email, auth.KindInvitation).Link[len(s.url):]
	}
	button := browsertest.Click("main form button")
	next := func(js string) { t.Helper(); s.do(browsertest.Until(`document.readyState === 'complete' && ` + js)) }
	enrols := func() (secret string) {
		t.Helper()
		s.at(factorPage)
		s.do(chromedp.Reload(), button)
		next(`document.querySelector('img.qr')?.naturalWidth > 0`)
		secret = s.value("input[name=secret]")
		s.do(browsertest.Type("#code", "000000"+kb.Enter))
		next(`document.getElementById('problem') && document.querySelector('img.qr')?.naturalWidth > 0`)
		s.do(browsertest.Type("#code", code(t, s.site, secret)+kb.Enter))
		next(`document.querySelectorAll('.codes li').length === 10`)
		s.do(browsertest.Click("a.go"))
		s.at("/notes")
		return secret
	}
	signsOut := func() {
		t.Helper()
		s.open("/account/")
		s.at("/account/")
		s.do(browsertest.Click("form[action$='/sign-out'] button"))
		s.at("/account/signed-out")
	}

	s.open(invited(address, "editor"))
	s.do(browsertest.Type("#password", password+kb.Enter))
	secret := enrols()
	u, err := s.Store.User(t.Context(), store.ByEmail(address))
	must(err)
	signsOut()

	for _, send := range []func() error{
		func() error {
			_, err := s.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: address})
			return err
		},
		func() error {
			_, err := adm.Send(t.Context(), operator, admin.SendParams{UserID: u.ID, Type: "magic_link"})
			return err
		},
	} {
		s.Clock.Advance(2 * time.Minute)
		s.Inbox.Clear()
		must(send())
		s.open(s.Mail(t, address, auth.KindMagicLink).Link[len(s.url):])
		s.do(button)
		next(`document.activeElement.id === 'code'`)
		s.do(chromedp.Reload())
		next(`document.activeElement.id === 'code'`)
		s.do(browsertest.Type("#code", code(t, s.site, secret)+kb.Enter))
		next(`document.body.textContent.includes('You are signed in')`)
		signsOut()
	}

	// A trusted device has a session without the factor.
	signsIn := func() {
		t.Helper()
		s.open("/account/sign-in")
		s.at("/account/sign-in")
		s.do(browsertest.Type("#login", address), browsertest.Type("#password", password+kb.Enter))
	}
	s.Clock.Advance(2 * time.Minute)
	signsIn()
	s.at("/account/sign-in/second")
	s.do(browsertest.Click("input[name=trust_device]"), browsertest.Type("#code", code(t, s.site, secret)+kb.Enter))
	s.at("/notes")
	signsOut()
	signsIn()
	s.at("/notes")
	link, err := adm.FirstOwnerLink(t.Context())
	must(err)
	s.Clock.Advance(2 * time.Minute)
	s.open(link[len(s.url):])
	s.do(button)
	s.at(factorPage)
	s.do(browsertest.Type("#code", code(t, s.site, secret)+kb.Enter))
	s.at("/auth/v1/admin/first-owner")
	s.do(button)
	next(`document.body.textContent.includes('You are the owner')`)

	// The acceptance of an operator's permissions, by an account without a factor.
	s.LoginAs(t, "ben@example.com")
	s.open(invited("ben@example.com", "support"))
	s.do(browsertest.Type("#password", "another-Passphrase-8"+kb.Enter))
	enrols()
	got, err := s.Store.User(t.Context(), store.ByEmail("ben@example.com"))
	must(err)
	if !got.MFAEnabled || len(got.Roles) != 1 {
		t.Errorf("ben has %v", got.Roles)
	}
}

// An invitation for an existing account leads to sign-in and back to itself, also below a path
// that a proxy strips.
func TestInvitationLeadsBackAfterSignIn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		public string
		opts   []auth.Option
	}{
		"plain":    {"", nil},
		"stripped": {"/app", []auth.Option{auth.WithBaseURL("https://app.test/app/auth/v1"), auth.WithPrefix("/auth/v1")}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, pages.Options{}, c.opts...)
			adm, err := admin.New(t.Context(), s.Auth, admin.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ada := s.LoginAs(t, address)
			if _, err := adm.Invite(t.Context(), admin.System("test").Accepting(), admin.InviteParams{Email: ada.User.Email}); err != nil {
				t.Fatal(err)
			}
			link, err := url.Parse(s.Mail(t, ada.User.Email, auth.KindInvitation).Link)
			if err != nil {
				t.Fatal(err)
			}
			inner := s.handler
			s.handler = inner
			if c.public != "" {
				s.handler = http.StripPrefix(c.public, inner)
			}
			b := s.browser(t)
			p := b.open(link.RequestURI()).want(t, 200, c.public+"/auth/v1/invitations/accept", "You are invited to Notes")
			to := ""
			for _, a := range p.all("a") {
				if href := attr(a, "href"); strings.Contains(href, "/sign-in") {
					to = href
				}
			}
			if !strings.Contains(p.text(), "then you come back to this invitation") || to == "" {
				t.Fatalf("%s %s", to, p.text())
			}
			b.open(to).want(t, 200, c.public+"/account/sign-in", "")
			p = b.submit("login", address, "password", authtest.Password).want(t, 200, c.public+"/auth/v1/invitations/accept", "You are invited to Notes")
			if p.url.Query().Get("token") != link.Query().Get("token") {
				t.Errorf("back at %s", p.url)
			}
			b.submit("token", link.Query().Get("token"))
			if b.page.heading() != "You are signed in" {
				t.Errorf("%s", b.page.text())
			}
		})
	}
}

// The link for the first owner, opened without a session, says what it does, and leads back to
// itself after a sign-up.
func TestFirstOwnerLinkLeadsBackAfterSignUp(t *testing.T) {
	t.Parallel()
	s := newSite(t, pages.Options{})
	adm, err := admin.New(t.Context(), s.Auth, admin.Options{RequireMFA: auth.Off})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/auth/v1/admin/", adm.Handler())
	mux.Handle("/", s.handler)
	s.handler = mux
	link, err := adm.FirstOwnerLink(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := s.browser(t)
	p := b.open(link)
	if !strings.Contains(p.text(), "makes one account the owner") {
		t.Error(p.text())
	}
	signIn := p.all("a")[slices.IndexFunc(p.all("a"), func(n *html.Node) bool { return attr(n, "class") == "go" })]
	b.open(attr(signIn, "href")).want(t, 200, "/account/sign-in", "")
	signUp := b.page.all("a")[slices.IndexFunc(b.page.all("a"), func(n *html.Node) bool { return strings.HasPrefix(attr(n, "href"), "/account/sign-up?") })]
	b.open(attr(signUp, "href"))
	b.submit("email", address, "password", password)
	b.submit("code", s.Mail(t, address, auth.KindVerifyEmail).Code).want(t, 200, "/auth/v1/admin/first-owner", "")
	if p := b.submit(); !strings.Contains(p.text(), "You are the owner") {
		t.Error(p.text())
	}
}

// A member of staff without a password accepts permissions of an operator at the provider of
// the page, which goes on to ask for the second factor. Identity and factor stay.
func TestStaffAcceptAtProviderWithFactor(t *testing.T) {
	t.Parallel()
	idp := authtest.StartProvider(t)
	s := newSite(t, pages.Options{}, auth.WithProvider(idp.OIDC("acme")))
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	adm, err := admin.New(t.Context(), s.Auth, admin.Options{})
	must(err)
	who := authtest.Person{Subject: "ada", Email: address, EmailVerified: true}
	b := s.browser(t)
	b.open("/account/sign-in/with/acme")
	b.atProvider(idp, who)
	b.open("/account/second-factor")
	secret, _ := enrol(t, b)
	u, err := s.Store.User(t.Context(), store.ByEmail(address))
	must(err)
	operator := admin.System("test")
	must(adm.EnsureRole(t.Context(), operator, admin.CreateRoleParams{Name: "support", Permissions: []string{admin.PermUsersRead}}))
	_, err = adm.Grant(t.Context(), operator, admin.GrantParams{UserID: u.ID, Role: "support"})
	must(err)
	_, err = adm.Send(t.Context(), operator, admin.SendParams{UserID: u.ID, Type: admin.LinkAccept})
	must(err)
	link, err := url.Parse(s.Mail(t, address, auth.KindInvitation).Link)
	must(err)
	s.Clock.Advance(time.Minute)

	b = s.browser(t)
	to := ""
	for _, a := range b.open(link.RequestURI()).want(t, 200, "/auth/v1/invitations/accept", "You are invited to Notes").all("a") {
		if href := attr(a, "href"); strings.Contains(href, "/oauth/acme") {
			to = href
		}
	}
	if to == "" {
		t.Fatalf("no provider on the page: %s", b.page.text())
	}
	b.open(to)
	b.atProvider(idp, who).want(t, 200, "/auth/v1/magic-link/verify", "Second factor")
	if strings.Contains(b.page.text(), "recovery code") {
		t.Errorf("asks for a code that is not taken: %s", b.page.text())
	}
	b.submit("code", "000000").want(t, 422, "/auth/v1/magic-link/verify", "Second factor")
	b.submit("code", code(t, s, secret)).want(t, 200, "/auth/v1/magic-link/verify", "Your recovery codes")
	b.open("/account/").want(t, 200, "/account/", "")
	got, err := s.Store.User(t.Context(), store.ByEmail(address))
	must(err)
	if !got.MFAEnabled || len(got.Identities) != 1 || got.AcceptedSequence == 0 {
		t.Errorf("afterwards: %+v", got)
	}
}
