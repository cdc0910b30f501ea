package admin_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// linkBrowser is a browser that opens links: it keeps cookies, follows redirects and
// presses the buttons of pages.
type linkBrowser struct {
	o       *office
	cookies map[string]string
	urls    []string // every URL that it requested or was redirected to
	at      string   // the current page's URL
	status  int
	body    string
}

func (o *office) browser() *linkBrowser {
	return &linkBrowser{o: o, cookies: map[string]string{}}
}

func (b *linkBrowser) request(method, target string, form url.Values) {
	b.o.t.Helper()
	b.urls = append(b.urls, target)
	u, err := url.Parse(target)
	b.o.must(err)
	if u.Host != "" && u.Host != "auth.test" { // the application's own page
		b.at, b.status, b.body = target, http.StatusOK, ""
		return
	}
	r := httptest.NewRequestWithContext(b.o.t.Context(), method, u.RequestURI(), strings.NewReader(form.Encode()))
	r.Header.Set("Accept", "text/html,*/*")
	r.Header.Set("User-Agent", "Mozilla/5.0")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	w := b.send(r)
	b.at, b.status, b.body = target, w.Code, w.Body.String()
	if w.Code == http.StatusSeeOther || w.Code == http.StatusFound {
		b.request(http.MethodGet, w.Header().Get("Location"), nil)
	}
}

// send sends a request with the browser's cookies.
func (b *linkBrowser) send(r *http.Request) *httptest.ResponseRecorder {
	for name, value := range b.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value}) //nolint:gosec // of a request
	}
	w := httptest.NewRecorder()
	if strings.HasPrefix(r.URL.Path, "/auth/v1/admin/") {
		b.o.mux.ServeHTTP(w, r)
	} else {
		b.o.Handler().ServeHTTP(w, r)
	}
	for _, c := range w.Result().Cookies() {
		if !c.HttpOnly || !c.Secure {
			b.o.t.Errorf("the cookie %s can be read", c.Name)
		}
		if b.cookies[c.Name] = c.Value; c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		}
	}
	return w
}

// json posts JSON, as a page's script does.
func (b *linkBrowser) json(path, body string) map[string]any {
	b.o.t.Helper()
	r := httptest.NewRequestWithContext(b.o.t.Context(), http.MethodPost, "/auth/v1"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Session-Transport", "cookie")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	v := map[string]any{}
	_ = json.Unmarshal(b.send(r).Body.Bytes(), &v)
	return v
}

func (b *linkBrowser) open(link string) { b.o.t.Helper(); b.request(http.MethodGet, link, nil) }

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)

// press sends the page's form with fields, as names and values.
func (b *linkBrowser) press(fields ...string) {
	b.o.t.Helper()
	if !strings.Contains(b.body, `<form method="post" action="?">`) {
		b.o.t.Fatalf("no form at %s: %d %s", b.at, b.status, b.body)
	}
	form := url.Values{}
	for _, m := range hiddenField.FindAllStringSubmatch(b.body, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	for pair := range slices.Chunk(fields, 2) {
		form.Set(pair[0], pair[1])
	}
	at, _, _ := strings.Cut(b.at, "?")
	b.request(http.MethodPost, at, form)
}

// shows fails the test unless the page has the status and the text.
func (b *linkBrowser) shows(status int, text string) {
	b.o.t.Helper()
	if b.status != status || !strings.Contains(b.body, text) {
		b.o.t.Fatalf("%s shows %d instead of %d and %q: %s", b.at, b.status, status, text, b.body)
	}
}

// signedIn returns the browser's claims, and fails the test without a live session.
func (b *linkBrowser) signedIn() *auth.Claims {
	b.o.t.Helper()
	var c *auth.Claims
	for name, value := range b.cookies {
		if strings.HasSuffix(name, "-access") {
			var err error
			c, err = b.o.Verify(value)
			b.o.must(err)
		}
	}
	if c == nil {
		b.o.t.Fatalf("%s does not sign the browser in: %d %s", b.at, b.status, b.body)
	}
	return c
}

// noSecretsIn fails the test if a URL has a secret other than the link's token.
func (b *linkBrowser) noSecretsIn(link string) {
	b.o.t.Helper()
	u, err := url.Parse(link)
	b.o.must(err)
	for _, at := range b.urls {
		seen, err := url.Parse(at)
		b.o.must(err)
		for name, values := range seen.Query() {
			if name != "token" || values[0] != u.Query().Get("token") {
				b.o.t.Errorf("a URL has %s: %s", name, at)
			}
		}
	}
}

// enrols sets up the second factor on the page.
func (b *linkBrowser) enrols() (secret string) {
	b.o.t.Helper()
	b.shows(200, "Set up a second factor")
	b.press("do", "begin")
	b.shows(200, "data:image/png;base64,")
	return hiddenField.FindStringSubmatch(b.body)[2]
}

func (o *office) appCode(secret string) string {
	o.t.Helper()
	c, err := totp.GenerateCode(secret, o.Clock.Now())
	o.must(err)
	return c
}

// withFactor creates an account with an authenticator app.
func (o *office) withFactor(email string) (who *authtest.SignedIn, secret string, recovery []string) {
	o.t.Helper()
	who = o.LoginAs(o.t, email)
	secret, recovery = o.enrolled(auth.Caller{UserID: who.User.ID, SessionID: who.SessionID})
	return who, secret, recovery
}

// enrolled sets up an authenticator app.
func (o *office) enrolled(by auth.Caller) (secret string, recovery []string) {
	o.t.Helper()
	set, err := o.SetupTOTP(o.t.Context(), auth.SetupTOTPParams{Caller: by})
	o.must(err)
	done, err := o.EnableTOTP(o.t.Context(), auth.EnableTOTPParams{Caller: by, TOTPCode: o.appCode(set.Secret)})
	o.must(err)
	o.Clock.Advance(time.Minute)
	return set.Secret, done.RecoveryCodes
}

func inCookies(more ...auth.Option) []auth.Option {
	return append([]auth.Option{auth.WithCookies(auth.CookieOptions{})}, more...)
}

var editorsNeedFactor = auth.WithSettings(auth.Settings{MFARequiredFor: []string{"editor"}})

// An invitation to a role that requires a second factor sets it up, and signs in.
func TestInvitationToARoleWithFactorEnrols(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o, boss := withRole(t, st, inCookies(editorsNeedFactor)...)
		for _, to := range []string{"", "https://app.test/in"} {
			email := "ada" + strings.TrimPrefix(to, "https://app.test/") + "@example.com"
			_, err := o.adm.Invite(t.Context(), actor(boss), admin.InviteParams{Email: email, Roles: []string{"editor"}, RedirectTo: to})
			o.must(err)
			b, link := o.browser(), o.Mail(t, email, auth.KindInvitation).Link
			b.open(link)
			b.press("password", password)
			b.shows(200, "Set up a second factor")
			b.open(b.at) // reloaded
			secret := b.enrols()
			b.press("do", "enable", "code", "000000")
			b.shows(422, "data:image/png;base64,")
			if again := hiddenField.FindStringSubmatch(b.body)[2]; again != secret {
				t.Fatal("a wrong code changes the key")
			}
			b.press("do", "enable", "code", o.appCode(secret))
			b.shows(200, "recovery codes")
			if next := `href="` + to + `"`; to != "" && !strings.Contains(b.body, next) {
				t.Errorf("the page does not lead to %s: %s", to, b.body)
			}
			if c := b.signedIn(); c.AAL != store.LevelAAL2 || !slices.Contains(c.Roles, "editor") {
				t.Errorf("signed in with %s, %v", c.AAL, c.Roles)
			}
			b.noSecretsIn(link)
			b.open("https://auth.test/auth/v1/magic-link/verify") // back in the history
			b.shows(200, "You are signed in")
		}
	})
}

// A magic link without a challenge asks for the second factor of its account, whoever
// requested it.
func TestMagicLinkAsksForFactor(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st, inCookies()...)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		ada, secret, recovery := o.withFactor("ada@example.com")
		owner = o.renewed(owner)
		sends := map[string]func(to string){
			"by JSON": func(to string) {
				o.must(ignored(o.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: "ada@example.com", RedirectTo: to})))
			},
			"by an operator": func(to string) {
				body := `{"type":"magic_link","redirect_to":"` + to + `"}`
				if to == "" {
					body = `{"type":"magic_link"}`
				}
				o.do(owner, "POST /users/"+ada.User.ID+"/send", body).want(202)
			},
		}
		for name, send := range sends {
			for _, to := range []string{"", "https://app.test/in"} {
				for _, with := range []string{"app", "recovery code"} {
					o.Clock.Advance(2 * time.Minute)
					owner = o.renewed(owner)
					seen := o.sent("ada@example.com", auth.KindMagicLink)
					send(to)
					for o.sent("ada@example.com", auth.KindMagicLink) == seen {
						o.settled()
					}
					b, link := o.browser(), o.Mail(t, "ada@example.com", auth.KindMagicLink).Link
					b.open(link)
					b.press()
					b.shows(200, "authenticator app")
					b.press("code", "000000")
					b.shows(422, `role="alert"`)
					b.press("code", "")
					b.shows(422, `role="alert"`)
					b.open(b.at) // reloaded
					b.shows(200, "authenticator app")
					code, method := o.appCode(secret), "totp"
					if with != "app" {
						code, method, recovery = strings.ToUpper(recovery[0]), "recovery_code", recovery[1:]
					}
					b.press("code", code)
					switch {
					case with != "app": // a redirect would not show how many are left
						b.shows(200, fmt.Sprintf("Recovery codes left: %d of 10.", len(recovery)))
						if to != "" && !strings.Contains(b.body, `class="go" href="`+to+`"`) {
							t.Errorf("%s: the page does not lead on: %s", name, b.body)
						}
					case to != "" && b.at != to:
						t.Errorf("%s: the browser is at %s", name, b.at)
					case to == "":
						b.shows(200, "You are signed in")
					}
					c := b.signedIn()
					if c.UserID != ada.User.ID || c.AAL != store.LevelAAL2 || !slices.ContainsFunc(c.AMR, func(m auth.AMR) bool { return m.Method == method }) {
						t.Errorf("%s: signed in %s with %v", name, c.AAL, c.AMR)
					}
					b.noSecretsIn(link)
				}
			}
		}
	})
}

func ignored[T any](_ T, err error) error { return err }

// The page ends with the token of the sign-in: five wrong codes, or five minutes. Another
// browser cannot continue, and another site cannot post to it.
func TestLinkFactorEnds(t *testing.T) {
	t.Parallel()
	o := newOffice(t, memstore.New(), inCookies()...)
	_, secret, _ := o.withFactor("ada@example.com")
	opened := func() *linkBrowser {
		o.Clock.Advance(10 * time.Minute)
		seen := o.sent("ada@example.com", auth.KindMagicLink)
		o.must(ignored(o.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: "ada@example.com"})))
		for o.sent("ada@example.com", auth.KindMagicLink) == seen {
			o.settled()
		}
		b := o.browser()
		b.open(o.Mail(t, "ada@example.com", auth.KindMagicLink).Link)
		b.press()
		b.shows(200, "authenticator app")
		return b
	}
	b := opened()
	for range 5 {
		b.press("code", "000000")
		b.shows(422, `role="alert"`)
	}
	b.press("code", o.appCode(secret))
	b.shows(429, `role="alert"`)

	late := opened()
	o.Clock.Advance(6 * time.Minute)
	late.press("code", o.appCode(secret))
	late.shows(400, "Something went wrong")

	b = opened()
	other := o.browser()
	other.at, other.body = b.at, b.body
	other.press("code", o.appCode(secret))
	other.shows(400, "Something went wrong")
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/auth/v1/magic-link/verify", strings.NewReader("code="+o.appCode(secret)))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if w := b.send(r); w.Code != 403 {
		t.Errorf("another site's form: %d %s", w.Code, w.Body)
	}
	b.press("code", o.appCode(secret))
	b.shows(200, "You are signed in")
}

// Where devices can be trusted, the page offers it, with the time. The next link in this
// browser then signs in without the factor; other browsers are asked. A recovery code makes no
// device trusted.
func TestLinkFactorTrustsDevice(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		for days, text := range map[int]string{0: "", 1: "do not ask again for a day", 30: "do not ask again for 30 days"} {
			email := fmt.Sprintf("ada%d@example.com", days)
			o := newOffice(t, st, inCookies(auth.WithMFA(auth.MFAOptions{TrustDevices: time.Duration(days) * 24 * time.Hour}))...)
			_, secret, recovery := o.withFactor(email)
			opens := func(b *linkBrowser) {
				t.Helper()
				o.Clock.Advance(2 * time.Minute)
				seen := o.sent(email, auth.KindMagicLink)
				o.must(ignored(o.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: email})))
				for o.sent(email, auth.KindMagicLink) == seen {
					o.settled()
				}
				b.open(o.Mail(t, email, auth.KindMagicLink).Link)
				b.press()
			}
			b := o.browser()
			opens(b)
			b.shows(200, "authenticator app")
			if offered := strings.Contains(b.body, `name="trust_device"`); offered != (days > 0) || !strings.Contains(b.body, text) {
				t.Errorf("%d days: %s", days, b.body)
			}
			b.press("code", "000000", "trust_device", "1")
			b.shows(422, `role="alert"`)
			if ticked := strings.Contains(b.body, `value="1" checked`); ticked != (days > 0) {
				t.Errorf("%d days: ticked %v", days, ticked)
			}
			b.press("code", recovery[0], "trust_device", "1")
			b.shows(200, "You are signed in")
			opens(b)
			b.shows(200, "authenticator app")
			b.press("code", o.appCode(secret))
			b.shows(200, "You are signed in")
			opens(b)
			b.shows(200, "authenticator app") // the box was not ticked
			o.Clock.Advance(time.Minute)
			b.press("code", o.appCode(secret), "trust_device", "1")
			b.shows(200, "You are signed in")
			opens(b)
			if days == 0 {
				b.shows(200, "authenticator app")
			} else {
				b.shows(200, "You are signed in")
			}
			other := o.browser()
			opens(other)
			other.shows(200, "authenticator app")
		}
	})
}

// The first owner's link asks a session without the second factor of its account for it.
func TestFirstOwnerShowsFactor(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st, inCookies(auth.WithMFA(auth.MFAOptions{TrustDevices: 24 * time.Hour}))...)
		ada, secret, _ := o.withFactor("ada@example.com")
		b := o.browser()
		login := `{"email":"ada@example.com","password":"` + authtest.Password + `"}`
		waits := b.json("/login", login)
		b.json("/2fa/verify", `{"mfa_token":"`+waits["mfa_token"].(string)+`","totp_code":"`+o.appCode(secret)+`","trust_device":true}`)
		b.json("/logout", "")
		b.json("/login", login)
		before := b.signedIn()
		if before.AAL != store.LevelAAL1 {
			t.Fatalf("the session has %s", before.AAL)
		}
		o.Clock.Advance(time.Minute)
		link, err := o.adm.FirstOwnerLink(t.Context())
		o.must(err)
		b.open(link)
		b.press()
		b.shows(200, "authenticator app")
		b.press("code", "000000")
		b.shows(422, `role="alert"`)
		b.press("code", o.appCode(secret))
		b.shows(200, "Become the owner")
		if c := b.signedIn(); c.AAL != store.LevelAAL2 || c.SessionID != before.SessionID {
			t.Errorf("the session %s has %s", c.SessionID, c.AAL)
		}
		b.press()
		b.shows(200, "You are the owner")
		if u := o.read(ada.User.ID); !slices.Contains(u.Roles, auth.RoleOwner) || !u.MFAEnabled {
			t.Errorf("the owner has %v", u.Roles)
		}
		b.noSecretsIn(link)
	})
}

// The acceptance of an operator's permissions ends with the second factor: that of the
// account, or one that is set up then. It does not matter whether the holder accepts with a
// password or a provider.
func TestAcceptanceEndsWithFactor(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		idp := authtest.StartProvider(t)
		o := newOffice(t, st, inCookies(auth.WithProvider(idp.OIDC("acme")), auth.WithSettings(auth.Settings{MFARequiredFor: []string{"support"}}))...)
		o.permit("support", admin.PermUsersRead)
		idp.Now = o.Clock.Now
		for _, c := range []struct {
			name, to         string
			enrolled, linked bool
		}{{"password", "", false, false}, {"factor", "", true, false}, {"provider", "", false, true}, {"back", "https://app.test/in", false, true}} {
			email := c.name + "@example.com"
			var secret string
			if c.enrolled {
				_, secret, _ = o.withFactor(email)
			} else {
				o.LoginAs(t, email)
			}
			_, err := o.adm.Invite(t.Context(), admin.System("test"), admin.InviteParams{Email: email, Roles: []string{"support"}, RedirectTo: c.to})
			o.must(err)
			b, link := o.browser(), o.Mail(t, email, auth.KindInvitation).Link
			b.open(link)
			b.shows(200, "reset your account first")
			switch {
			case c.linked:
				u, err := url.Parse(hrefTo(b.body, "/oauth/acme?"))
				o.must(err)
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, u.RequestURI(), nil)
				idp.SignsIn(authtest.Person{Subject: c.name, Email: email, EmailVerified: true})
				back := idp.Authorize(t, b.send(r).Header().Get("Location"))
				b.request(http.MethodGet, "https://auth.test/auth/v1/oauth/acme/callback?"+back.Encode(), nil)
				b.urls = nil // the provider's code is in one
			case c.enrolled:
				b.press("password", password, "totp_code", "000000")
				b.shows(422, `role="alert"`)
				b.press("password", password, "totp_code", o.appCode(secret))
				b.shows(200, "recovery codes")
				o.knowsCodes(email, codesIn(b.body))
			default:
				b.press("password", password)
			}
			if !c.enrolled {
				key := b.enrols()
				b.press("do", "enable", "code", o.appCode(key))
				b.shows(200, "recovery codes")
				if c.to != "" && !strings.Contains(b.body, `href="`+c.to+`"`) {
					t.Errorf("%s: the page does not lead to %s: %s", c.name, c.to, b.body)
				}
			}
			if got := b.signedIn(); got.AAL != store.LevelAAL2 || !slices.Contains(got.Roles, "support") {
				t.Errorf("%s: signed in with %s, %v", c.name, got.AAL, got.Roles)
			}
			b.noSecretsIn(link)
		}
	})
}

// codesIn returns the recovery codes on a page.
func codesIn(page string) []string {
	var list []string
	for _, found := range regexp.MustCompile(`<li><code>([a-z0-9]{5}-[a-z0-9]{5})</code>`).FindAllStringSubmatch(page, -1) {
		list = append(list, found[1])
	}
	return list
}

// knowsCodes checks that an account has these recovery codes and no others.
func (o *office) knowsCodes(email string, codes []string) {
	o.t.Helper()
	u, err := o.Store.User(o.t.Context(), store.ByEmail(email))
	o.must(err)
	left, err := host.Of(o).Factors().Factors(o.t.Context(), u.ID)
	o.must(err)
	if len(codes) != 10 || left.RecoveryLeft != 10 {
		o.t.Fatalf("%d recovery codes are shown and %d are stored", len(codes), left.RecoveryLeft)
	}
	_, err = o.Login(o.t.Context(), auth.LoginParams{Email: email, Password: password})
	var waits *auth.Error
	if !errors.As(err, &waits) || waits.MFAToken == "" {
		o.t.Fatal(err)
	}
	_, err = o.VerifyMFA(o.t.Context(), auth.VerifyMFAParams{MFAToken: waits.MFAToken, RecoveryCode: codes[0]})
	o.must(err)
}

func hrefTo(page, path string) string {
	for _, part := range strings.Split(page, `href="`)[1:] {
		if at, _, _ := strings.Cut(part, `"`); strings.Contains(at, path) {
			return cmp.Or(html.UnescapeString(at), "/")
		}
	}
	return "/"
}

// An invitation that is accepted within a session which waits for its second factor goes on
// after it.
func TestInvitationInASessionThatWaits(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o, boss := withRole(t, st, inCookies()...)
		o.LoginAs(t, "ada@example.com")
		b := o.browser()
		b.json("/login", `{"email":"ada@example.com","password":"`+authtest.Password+`"}`)
		before := b.signedIn()
		_, err := o.adm.SetSettings(t.Context(), admin.System("test").Accepting(), admin.SetSettingsParams{Set: map[string]any{"mfa_required": true}})
		o.must(err)
		_, _ = o.invite(actor(boss), "ada@example.com", "editor")
		link := o.Mail(t, "ada@example.com", auth.KindInvitation).Link
		b.open(link)
		b.press()
		secret := b.enrols()
		b.press("do", "enable", "code", o.appCode(secret))
		b.shows(200, "recovery codes")
		b.open(hrefTo(b.body, "/invitations/accept"))
		b.press()
		b.shows(200, "You are signed in")
		if c := b.signedIn(); c.SessionID != before.SessionID || !slices.Contains(c.Roles, "editor") {
			t.Errorf("the session %s has %v", c.SessionID, c.Roles)
		}
		b.noSecretsIn(link)
	})
}
