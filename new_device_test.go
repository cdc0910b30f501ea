package auth_test

import (
	"go/ast"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

const firefoxOnLinux = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

// signInDoor leads to a sign-in to Ada's account, which go makes, from the client
// that the headers tell of.
type signInDoor func(w *world, idp *authtest.Provider, s session) (open func(h ...header) *answer)

// mfaTokenOf is the token of a sign-in that was held up.
func (w *world) mfaTokenOf(code auth.Code) string {
	w.t.Helper()
	return decodeAs[struct {
		MFAToken string `json:"mfa_token"`
	}](w.do("POST", "/login", credentials(adas, goodPassword), onDevice(laptop)).want(403, code)).MFAToken
}

func signInDoors() map[string]signInDoor {
	posts := func(path string, body func(w *world, idp *authtest.Provider, s session) map[string]any) signInDoor {
		return func(w *world, idp *authtest.Provider, s session) func(h ...header) *answer {
			b := body(w, idp, s)
			return func(h ...header) *answer { return w.do("POST", path, b, h...) }
		}
	}
	comesBack := func(provider string) signInDoor {
		return func(w *world, idp *authtest.Provider, s session) func(h ...header) *answer {
			v := w.visitor(idp)
			to := v.start(provider, "")
			idp.SignsIn(ada)
			with := idp.Authorize(w.t, to).Encode()
			return func(h ...header) *answer {
				if provider == "apple" {
					return v.do("POST", "/oauth/apple/callback", with, append(h, form)...)
				}
				return v.do("GET", "/oauth/"+provider+"/callback?"+with, nil, h...)
			}
		}
	}
	return map[string]signInDoor{
		"POST /signup":             nil, // makes the account's first session
		"POST /invitations/accept": nil, // likewise, or goes on in a session that there is
		"POST /login": posts("/login", func(*world, *authtest.Provider, session) map[string]any {
			return credentials(adas, goodPassword)
		}),
		"POST /exchange": posts("/exchange", func(w *world, _ *authtest.Provider, _ session) map[string]any {
			token := w.magicLink(adas, map[string]any{"redirect_to": "https://app.test/in"})
			to := w.do("POST", "/magic-link/verify", "token="+token, form, browser).location()
			return map[string]any{"code": to.Query().Get("code")}
		}),
		"GET /oauth/{provider}/callback":  comesBack("google"),
		"POST /oauth/{provider}/callback": comesBack("apple"),
		"POST /oauth/{provider}/id-token": posts("/oauth/google/id-token", func(_ *world, idp *authtest.Provider, _ session) map[string]any {
			return map[string]any{"id_token": idp.IDToken("google", ada, "")}
		}),
		"GET /magic-link/verify": func(w *world, _ *authtest.Provider, _ session) func(h ...header) *answer {
			token := w.magicLink(adas, nil)
			return func(h ...header) *answer {
				return w.do("GET", "/magic-link/verify?token="+token, nil, append(h, header{"Accept", "application/json"})...)
			}
		},
		"POST /magic-link/verify": posts("/magic-link/verify", func(w *world, _ *authtest.Provider, _ session) map[string]any {
			return map[string]any{"token": w.magicLink(adas, nil)}
		}),
		"POST /otp/verify": posts("/otp/verify", func(w *world, _ *authtest.Provider, _ session) map[string]any {
			return map[string]any{"phone": number, "otp": w.phoneCode(number)}
		}),
		"POST /2fa/verify": posts("/2fa/verify", func(w *world, _ *authtest.Provider, s session) map[string]any {
			e := w.enrol(s.AccessToken)
			return map[string]any{"mfa_token": w.mfaTokenOf(auth.CodeMFARequired), "totp_code": w.code(e.secret, 0)}
		}),
		"POST /2fa/verify-and-enable": func(w *world, _ *authtest.Provider, s session) func(h ...header) *answer {
			w.patch(s.User.ID, store.UserPatch{AppMetadata: map[string]any{"mfa_required": true}})
			token := bearer(w.mfaTokenOf(auth.CodeMFAEnrollmentRequired))
			setup := decodeAs[struct{ Secret string }](w.do("POST", "/2fa/setup-totp", nil, token).want(200))
			return func(h ...header) *answer {
				return w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.code(setup.Secret, 0)}, append(h, token)...)
			}
		},
	}
}

// deviceWorld has Ada, who signed up on her laptop, proved address and number, and
// has accounts at providers.
func deviceWorld(t *testing.T, opts ...auth.Option) (*world, *authtest.Provider, session) {
	t.Helper()
	w, idp := providerWorld(t, opts...)
	s := w.do("POST", "/signup", map[string]any{"email": adas, "password": goodPassword, "full_name": "Ada"}, onDevice(laptop)).session()
	w.do("POST", "/verify-email", map[string]any{"token": w.linkToken(adas, auth.KindVerifyEmail)}, bearer(s.AccessToken)).want(200)
	phone, at := number, w.Clock.Now()
	w.patch(s.User.ID, store.UserPatch{Phone: &phone, PhoneVerifiedAt: &at})
	for _, provider := range []string{"google", "apple"} {
		w.patch(s.User.ID, store.UserPatch{Link: &auth.Identity{ID: auth.NewID(w.Auth), Provider: provider, Subject: ada.Subject, CreatedAt: at, LastSignInAt: at}})
	}
	return w, idp, s
}

// Whichever way leads in, a sign-in on a device that the account was not seen on
// is told, with time, address and device, and one on a device of the owner's is
// not. The ways come from the route table.
func TestEveryWayInTellsOfNewDevices(t *testing.T) {
	doors := signInDoors()
	w := newWorld(t)
	for _, pattern := range auth.SignInRoutes(w.Auth) {
		if _, ok := doors[pattern]; !ok {
			t.Errorf("%s is in no table: how does one sign in there?", pattern)
		}
		delete(doors, pattern)
	}
	for pattern := range doors {
		t.Errorf("%s is no way in", pattern)
	}
	doors = signInDoors()
	for pattern, prepare := range doors {
		if prepare == nil {
			continue
		}
		for name, device := range map[string][]header{"another": {onDevice(mobile)}, "none": nil, "hers": {onDevice(laptop)}} {
			t.Run(pattern+" on "+name, func(t *testing.T) {
				t.Parallel()
				w, idp, s := deviceWorld(t)
				open := prepare(w, idp, s)
				w.fired()
				w.Clock.Advance(time.Second)
				at := w.Clock.Now()
				open(append(device, header{"User-Agent", firefoxOnLinux})...).want(200)
				told := slices.Contains(w.fired(), auth.EventNewDevice)
				if told == (name == "hers") {
					t.Fatalf("told: %v", told)
				}
				if !told {
					return
				}
				m := w.Mail(t, adas, auth.KindNewDevice)
				if !containsAll(m.Text, "Hello Ada", "Firefox on Linux", "192.0.2.1", at.UTC().Format("2006-01-02 15:04 UTC"), m.Link) || w.stopToken(adas, auth.KindNewDevice) == "" {
					t.Errorf("message %s", m.Text)
				}
				list, err := w.Store.Sessions(t.Context(), s.User.ID, w.Clock.Now())
				if err != nil {
					t.Fatal(err)
				}
				before := len(list)
				w.do("POST", "/secure-account", map[string]any{"token": w.stopToken(adas, auth.KindNewDevice)}).want(200)
				list, err = w.Store.Sessions(t.Context(), s.User.ID, w.Clock.Now())
				if err != nil || len(list) != before-1 || slices.ContainsFunc(list, func(s auth.Session) bool { return s.CreatedAt.Equal(at) }) {
					t.Errorf("%d sessions are left of %d, %v", len(list), before, err)
				}
			})
		}
	}
}

func containsAll(s string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(s, p) })
}

// Sessions of accounts that were there before are made in one place, which tells
// of new devices: whatever flow somebody adds, it leads there.
func TestOneDoorForSessions(t *testing.T) {
	set, files := sources(t)
	found := map[string]int{}
	for name, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || len(lit.Elts) == 0 {
				return true
			}
			id, ok := lit.Type.(*ast.Ident)
			if !ok {
				return true
			}
			found[id.Name]++
			switch id.Name {
			case "NewDevice":
				if name != "new_device.go" {
					t.Errorf("%s says what is recorded of new devices", set.Position(lit.Pos()))
				}
			case "CreateSession", "EnableFactor":
				if !slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool {
					kv, ok := e.(*ast.KeyValueExpr)
					if !ok {
						return false
					}
					key, ok := kv.Key.(*ast.Ident)
					value, isIdent := kv.Value.(*ast.Ident)
					return ok && isIdent && key.Name == "OnNewDevice" && value.Name == "on"
				}) {
					t.Errorf("%s makes a session past makeSession", set.Position(lit.Pos()))
				}
			}
			return true
		})
	}
	for _, name := range []string{"NewDevice", "CreateSession", "EnableFactor"} {
		if found[name] == 0 {
			t.Errorf("%s is nowhere: this test looks for the wrong thing", name)
		}
	}
}

// The first session of an account is not told, nor any of one that never said
// which device it is on.
func TestFirstSessionsAreNoNews(t *testing.T) {
	w := newWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	w.do("POST", "/signup", credentials(adas, goodPassword), onDevice(laptop)).want(200)
	w.do("POST", "/verify-email", map[string]any{"token": w.linkToken(adas, auth.KindVerifyEmail)}).want(200)
	w.do("POST", "/login", credentials(adas, goodPassword), onDevice(mobile)).want(200)
	w.do("POST", "/magic-link/verify", map[string]any{"token": w.magicLink("new@example.com", nil)}, onDevice(mobile)).want(200)
	for range 3 {
		w.do("POST", "/magic-link/verify", map[string]any{"token": w.askByMail("program@example.com", nil).token}).want(200)
		w.Clock.Advance(2 * time.Minute)
	}
	if list := w.fired(); slices.Contains(list, auth.EventNewDevice) {
		t.Errorf("events %v", list)
	}
	w.do("POST", "/login", credentials(adas, goodPassword), onDevice(laptop)).want(200)
	if list := w.fired(); !slices.Contains(list, auth.EventNewDevice) {
		t.Errorf("events %v", list)
	}
}

// Whoever stops a session by the notice has what it began stopped, and the device
// forgotten; the link works for a week, once, and never by being looked at.
func TestThatWasNotMe(t *testing.T) {
	thiefs := func(t *testing.T) (*world, session, session, string) {
		w, _, own := deviceWorld(t)
		thief := w.do("POST", "/login", credentials(adas, goodPassword), onDevice(mobile)).session()
		return w, own, thief, w.stopToken(adas, auth.KindNewDevice)
	}
	t.Run("what it began", func(t *testing.T) {
		w, own, thief, token := thiefs(t)
		w.Clock.Advance(time.Minute)
		w.do("PATCH", "/me", map[string]any{"email": "thief@example.com"}, bearer(thief.AccessToken)).want(200)
		link := w.linkToken("thief@example.com", auth.KindChangeEmail)
		w.enrolSilently(thief.AccessToken)
		for range 2 {
			w.do("GET", "/secure-account?token="+url.QueryEscape(token), nil, browser).want(200)
			w.do("HEAD", "/secure-account?token="+url.QueryEscape(token), nil, browser).want(200)
		}
		if !w.alive(thief.AccessToken) {
			t.Fatal("looking at the page ended the session")
		}
		a := w.do("POST", "/secure-account", "token="+url.QueryEscape(token), form, browser).want(200)
		if w.alive(thief.AccessToken) {
			t.Errorf("the session lives: %s", a.body)
		}
		w.do("GET", "/verify-email?token="+link, nil).want(400, auth.CodeInvalidToken)
		u, err := w.Store.User(t.Context(), store.ByID(own.User.ID))
		if err != nil || u.MFAEnabled {
			t.Errorf("the thief's second factor is left: %v, %v", u.MFAEnabled, err)
		}
		w.do("POST", "/secure-account", map[string]any{"token": token}).want(400, auth.CodeInvalidToken)
		w.fired()
		w.do("POST", "/magic-link/verify", map[string]any{"token": w.magicLink(adas, nil)}, onDevice(mobile)).want(200)
		if !slices.Contains(w.fired(), auth.EventNewDevice) {
			t.Error("the thief's device is known")
		}
		reset := w.linkToken(adas, auth.KindResetPassword)
		w.do("POST", "/reset-password", map[string]any{"token": reset, "new_password": "the owner's horse battery"}).want(200)
	})
	t.Run("for a week", func(t *testing.T) {
		for left, want := range map[time.Duration]int{time.Second: 200, 0: 400} {
			w, _, _, token := thiefs(t)
			w.Clock.Advance(7*24*time.Hour - left)
			w.do("POST", "/secure-account", map[string]any{"token": token}).want(want)
		}
	})
	t.Run("after a change of address", func(t *testing.T) {
		w, _, thief, token := thiefs(t)
		w.Clock.Advance(time.Minute)
		w.do("PATCH", "/me", map[string]any{"email": "thief@example.com"}, bearer(thief.AccessToken)).want(200)
		w.do("POST", "/verify-email", map[string]any{"token": w.linkToken("thief@example.com", auth.KindChangeEmail)}).want(200)
		w.do("POST", "/secure-account", map[string]any{"token": token}).want(200)
		if u, err := w.Store.User(t.Context(), store.ByEmail(adas)); err != nil || u.ID != thief.User.ID || w.alive(thief.AccessToken) {
			t.Errorf("the account is at %q, %v", u.Email, err)
		}
	})
}

// enrolSilently sets a second factor up and leaves the clock as it is.
func (w *world) enrolSilently(access string) {
	w.t.Helper()
	setup := decodeAs[struct{ Secret string }](w.do("POST", "/2fa/setup-totp", nil, bearer(access)).want(200))
	w.do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.code(setup.Secret, 0)}, bearer(access)).want(200)
}

// To an address that nobody has proved go no name and no link, and few notices; to
// one that is proved as many as other notices. The sign-in comes about all the same.
func TestNewDeviceNoticesAreLimited(t *testing.T) {
	for name, most := range map[string]int{"unproved": 2, "proved": 3} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, auth.WithRateLimits(auth.RateLimits{
				NoticesUnproved: auth.Rate{Burst: 2, Per: time.Hour}, NoticesPerAddress: auth.Rate{Burst: 3, Per: time.Hour}, SignInsPerAccount: noLimit,
			}))
			s := w.do("POST", "/signup", map[string]any{"email": adas, "password": goodPassword, "full_name": "Ada"}, onDevice(laptop)).session()
			if name == "proved" {
				w.do("POST", "/verify-email", map[string]any{"token": w.linkToken(adas, auth.KindVerifyEmail)}, bearer(s.AccessToken)).want(200)
			}
			for i := range 5 {
				w.do("POST", "/login", credentials(adas, goodPassword), onDevice(mobile+string(rune('a'+i)))).want(200)
			}
			w.do("POST", "/login", credentials(adas, goodPassword), onDevice(laptop)).want(200) // draws nothing
			n := 0
			list := w.sent(adas)
			for _, k := range list {
				if k == auth.KindNewDevice {
					n++
				}
			}
			if n != most {
				t.Errorf("sent %v", list)
			}
			m := w.Mail(t, adas, auth.KindNewDevice)
			if strings.Contains(m.Text, "Ada") != (name == "proved") || (m.Link != "") != (name == "proved") {
				t.Errorf("message %q", m.Text)
			}
			if name == "unproved" && strings.Contains(m.HTML, "href") {
				t.Errorf("a link without address: %s", m.HTML)
			}
		})
	}
}

// In cookies the browser is recognised by the cookie that its first sign-in left.
func TestNewBrowserIsTold(t *testing.T) {
	w := newWorld(t, auth.WithCookies(auth.CookieOptions{}))
	first := w.do("POST", "/signup", credentials(adas, goodPassword), transport).want(200)
	var jar []string
	for _, c := range (&http.Response{Header: first.header}).Cookies() {
		if strings.HasSuffix(c.Name, "-device") {
			jar = append(jar, c.Name+"="+c.Value)
		}
	}
	w.fired()
	w.do("POST", "/login", credentials(adas, goodPassword), transport, header{"Cookie", strings.Join(jar, "; ")}).want(200)
	w.wantEvents(auth.EventSignedIn)
	w.do("POST", "/login", credentials(adas, goodPassword), transport).want(200)
	w.wantEvents(auth.EventSignedIn, auth.EventNewDevice)
	if !strings.Contains(w.Mail(t, adas, auth.KindNewDevice).Subject, "sign-in") {
		t.Error("another message")
	}
}
