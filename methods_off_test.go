package auth_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// beside is another instance on a world's store, with its clock and signing keys.
func (w *world) beside(store auth.Store, opts ...auth.Option) *world {
	w.t.Helper()
	o := &world{t: w.t, log: &syncBuffer{}}
	opts = append([]auth.Option{auth.WithClock(w.Clock.Now), w.SameKeys(), auth.WithLogger(slog.New(slog.NewTextHandler(o.log, nil)))}, opts...)
	o.Env = authtest.NewOn(w.t, store, opts...)
	return o
}

func off(s auth.Settings) auth.Option { return auth.WithSettings(s) }

// A way in that is switched off takes nothing any more that was given out while it was on.
func TestWhatIsSwitchedOffTakesNothingFromBefore(t *testing.T) {
	const ada = "ada@example.com"
	for name, c := range map[string]struct {
		settings auth.Settings
		try      func(w, off *world) error
	}{
		"a magic link": {auth.Settings{MagicLink: auth.Off}, func(w, off *world) error {
			_, err := off.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Token: w.magicLink(ada, nil)})
			return err
		}},
		"a magic link that leads on": {auth.Settings{MagicLink: auth.Off}, func(w, off *world) error {
			token := w.magicLink(ada, map[string]any{"redirect_to": "https://app.test/", "code_challenge": challengeOf(verifier)})
			off.do("GET", "/magic-link/verify?token="+token, nil).want(403, auth.CodeMethodDisabled)
			return auth.CodeMethodDisabled
		}},
		"an invitation": {auth.Settings{Password: auth.Off, MagicLink: auth.On}, func(w, off *world) error {
			token := w.invited(ada)
			off.invited("bob@example.com") // so that it knows who judges
			_, err := off.AcceptInvitation(t.Context(), auth.AcceptInvitationParams{Token: token, Password: goodPassword})
			return err
		}},
		"an operator's link": {auth.Settings{Password: auth.Off, MagicLink: auth.On}, func(w, off *world) error {
			kit := host.Of(off)
			change := kit.Change(t.Context(), byOperator())
			_, err := kit.Link(t.Context(), &change, host.LinkReset, w.member(ada).User.ID, "")
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			o := w.beside(w.Store, off(c.settings))
			if err := c.try(w, o); !errors.Is(err, auth.CodeMethodDisabled) {
				t.Errorf("%v", err)
			}
			if u, err := w.Store.User(t.Context(), store.ByEmail(ada)); name != "an operator's link" && !errors.Is(err, store.ErrNotFound) {
				t.Errorf("made %+v, %v", u, err)
			}
		})
	}
}

// A provider that is there no more when somebody comes back signs nobody in, and says so.
func TestComingBackFromAProviderThatIsGone(t *testing.T) {
	w, idp := providerWorld(t)
	v := w.visitor(idp)
	to := v.start("github", "redirect_to=https://app.test/&code_challenge="+challengeOf(verifier))
	idp.SignsIn(evilGit)
	back := idp.Authorize(t, to)
	o := w.beside(w.Store, auth.WithProvider(idp.Google()))
	in := auth.OAuthCallback{Provider: "github", State: back.Get("state"), Code: back.Get("code")}
	for _, c := range v.cookies {
		in.Browser = c.Value
	}
	if res, err := o.FinishOAuth(t.Context(), in); !errors.Is(err, auth.CodeUnknownProvider) || res == nil || !strings.Contains(res.RedirectURL, "error_code=unknown_provider") {
		t.Errorf("%+v, %v", res, err)
	}
}

// A browser that comes back from a provider to no page of the application's is shown that
// it is signed in.
func TestBrowserIsShownThatItIsSignedIn(t *testing.T) {
	w, idp := providerWorld(t, auth.WithCookies(auth.CookieOptions{}))
	v := w.visitor(idp)
	to := v.start("github", "")
	idp.SignsIn(authtest.Person{Subject: "9", Email: "ada@example.com", EmailVerified: true})
	a := v.do("GET", "/oauth/github/callback?"+idp.Authorize(t, to).Encode(), nil, browser).want(200)
	if a.set()[accessCookie] == nil || !strings.Contains(strings.ToLower(string(a.body)), "signed in") {
		t.Errorf("%s", a.body)
	}
}

// An invitation whose inviter cannot be judged makes no account at a provider's word.
func TestInvitationThatCannotBeJudged(t *testing.T) {
	w, idp := providerWorld(t)
	token, v := w.invited("ada@example.com"), w.visitor(idp)
	to := v.start("github", "invitation="+token)
	host.Of(w).JudgeInvitations(func(context.Context, host.Invitation) (host.Terms, error) {
		return host.Terms{}, auth.Reject(auth.CodeInvalidToken, "They left.")
	})
	idp.SignsIn(authtest.Person{Subject: "9", Email: "ada@example.com", EmailVerified: true})
	v.back("github", idp.Authorize(t, to)).want(400, auth.CodeInvalidToken)
	if u, err := w.Store.User(t.Context(), store.ByEmail("ada@example.com")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("made %+v, %v", u, err)
	}
	o := w.beside(w.Store) // where nobody judges
	if _, err := o.AcceptInvitation(t.Context(), auth.AcceptInvitationParams{Token: token, Password: goodPassword}); !errors.Is(err, auth.CodeUnavailable) {
		t.Errorf("without the admin side: %v", err)
	}
}

// A magic link to an address that is another account's by now signs in to neither.
func TestMagicLinkToAnAddressThatMoved(t *testing.T) {
	w := newWorld(t)
	const ada = "ada@example.com"
	was, elsewhere := w.member(ada).User.ID, "elsewhere@example.com"
	token := w.magicLink(ada, nil)
	w.patch(was, store.UserPatch{Email: &elsewhere})
	w.signUp(ada)
	w.do("POST", "/magic-link/verify", map[string]any{"token": token}).want(400, auth.CodeInvalidToken)
}

// Another site's form neither opens a page by the cookies that come with it, nor trades a
// code beside them, nor ends what somebody does in another's place.
func TestOtherSitesDoNothingByCookies(t *testing.T) {
	w := newWorld(t, auth.WithCookies(auth.CookieOptions{}))
	access, refresh := w.inCookies("ada@example.com")
	from := header{"Sec-Fetch-Site", "cross-site"}
	called := false
	h := w.RequirePage(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	for _, jar := range []header{cookies(refreshCookie + "=" + refresh), cookies(accessCookie+"="+access, refreshCookie+"="+refresh)} {
		if a := w.page(h, "POST", "https://auth.test/notes", jar, from); called || a.status != http.StatusForbidden {
			t.Errorf("%v: let in %t, %d", jar, called, a.status)
		}
	}
	eve := w.signUp("eve@example.com")
	code := codeIn(t, w.actsAs(eve, w.member("bob@example.com").User.ID))
	for _, jar := range []header{cookies(refreshCookie + "=" + refresh), cookies(accessCookie + "=" + access)} {
		w.do("POST", "/exchange", map[string]any{"code": code}, jar, from).want(403, auth.CodeCrossSiteRequest)
	}
	acting := w.exchange(code, "").session() // which the refusals did not use up
	w.do("POST", "/logout", nil, cookies(accessCookie+"="+acting.AccessToken), from).want(403, auth.CodeCrossSiteRequest)
	w.do("GET", "/me", nil, bearer(acting.AccessToken)).want(200)
}

func codeIn(t *testing.T, to string) string {
	t.Helper()
	_, code, ok := strings.Cut(to, "?code=")
	if !ok {
		t.Fatalf("no code in %s", to)
	}
	return code
}

// Acting as somebody, which nothing renews, takes the cookie away by which the browser
// would come back as somebody else.
func TestActingLeavesNoRefreshCookie(t *testing.T) {
	w := newWorld(t, auth.WithCookies(auth.CookieOptions{}))
	code := codeIn(t, w.actsAs(w.signUp("eve@example.com"), w.member("ada@example.com").User.ID))
	set := w.do("POST", "/exchange", map[string]any{"code": code}, transport).want(200).set()
	a, r := set[accessCookie], set[refreshCookie]
	if a == nil || a.Value == "" || r == nil || r.Value != "" || r.MaxAge >= 0 {
		t.Errorf("access %v, refresh %v", a, r)
	}
}

// Pages that only bearer tokens open are a mistake, of which the log tells.
func TestPagesWithoutCookiesAreToldOf(t *testing.T) {
	for want, opts := range map[bool][]auth.Option{true: nil, false: {auth.WithCookies(auth.CookieOptions{})}} {
		w := newWorld(t, opts...)
		w.RequirePage(greets)
		if got := strings.Contains(w.log.String(), "RequirePage without WithCookies"); got != want {
			t.Errorf("told %t, want %t", got, want)
		}
	}
}

// Permissions that a token has no room for are no permissions where they cannot be read.
func TestPermissionsThatCannotBeRead(t *testing.T) {
	w := newWorld(t)
	ada := w.LoginAs(t, adaMail, authtest.Permissions(permitting(60)...))
	tap := storetap.New(w.Store)
	o := w.beside(tap)
	tap.Reset(storetap.Hooks{Fault: func(_ context.Context, method string, _ int) storetap.Fault {
		if method == "Roles" {
			return storetap.FailsBefore
		}
		return storetap.NoFault
	}})
	if got := o.lets(ada.AccessToken); got != http.StatusServiceUnavailable {
		t.Errorf("while it cannot: %d", got)
	}
	tap.Reset(storetap.Hooks{})
	if got := o.lets(ada.AccessToken, auth.HasPermission(permitting(60)[59])); got != http.StatusOK {
		t.Errorf("later: %d", got)
	}
}

// Metadata that no JSON can say is refused as the caller's mistake.
func TestMetadataThatIsNoJSON(t *testing.T) {
	w := newWorld(t)
	res, err := w.SignUp(t.Context(), auth.SignUpParams{Email: adaMail, Password: goodPassword, UserMetadata: map[string]any{"x": math.NaN()}})
	if !errors.Is(err, auth.CodeValidationFailed) {
		t.Errorf("%+v, %v", res, err)
	}
}

// A room's form is one, and says each thing once but for what is of several boxes.
func TestFormsOfRooms(t *testing.T) {
	kit := host.Of(newWorld(t))
	for body, c := range map[string]struct {
		kind string
		want error
	}{
		"a=1&b=2&b=3": {form.value, nil},
		"a=1&a=2":     {form.value, auth.CodeBadJSON},
		"a=%zz":       {form.value, auth.CodeBadJSON},
		`{"a":"1"}`:   {"application/json", auth.CodeUnsupportedMediaType},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/room", strings.NewReader(body))
		r.Header.Set("Content-Type", c.kind)
		if got, err := kit.ReadForm(r, "b"); !errors.Is(err, c.want) || c.want == nil && (got.Get("a") != "1" || len(got["b"]) != 2) {
			t.Errorf("%s: %v, %v", body, got, err)
		}
	}
}
