package service_test

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
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// beside is another instance on a world's store, with its clock and signing keys.
func beside(w *harness.World, store auth.Store, opts ...auth.Option) *harness.World {
	w.T.Helper()
	o := &harness.World{T: w.T, Log: &harness.SyncBuffer{}}
	opts = append([]auth.Option{auth.WithClock(w.Clock.Now), w.SameKeys(), auth.WithLogger(slog.New(slog.NewTextHandler(o.Log, nil)))}, opts...)
	o.Env = authtest.NewOn(w.T, store, opts...)
	return o
}

func off(s auth.Settings) auth.Option { return auth.WithSettings(s) }

// A sign-in method that is switched off accepts no link or code from the time before.
func TestWhatIsSwitchedOffTakesNothingFromBefore(t *testing.T) {
	const ada = "ada@example.com"
	for name, c := range map[string]struct {
		settings auth.Settings
		try      func(w, off *harness.World) error
	}{
		"a magic link": {auth.Settings{MagicLink: auth.Off}, func(w, off *harness.World) error {
			_, err := off.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Token: w.MagicLink(ada, nil)})
			return err
		}},
		"a magic link that leads on": {auth.Settings{MagicLink: auth.Off}, func(w, off *harness.World) error {
			token := w.MagicLink(ada, map[string]any{"redirect_to": "https://app.test/", "code_challenge": harness.ChallengeOf(harness.Verifier)})
			off.Do("POST", "/magic-link/verify", map[string]any{"token": token}).Want(403, auth.CodeMethodDisabled)
			return auth.CodeMethodDisabled
		}},
		"an invitation": {auth.Settings{Password: auth.Off, MagicLink: auth.On}, func(w, off *harness.World) error {
			token := w.Invited(ada)
			off.Invited("bob@example.com") // so that it has a check of invitations
			_, err := off.AcceptInvitation(t.Context(), auth.AcceptInvitationParams{Token: token, Password: harness.GoodPassword})
			return err
		}},
		"an operator's link": {auth.Settings{Password: auth.Off, MagicLink: auth.On}, func(w, off *harness.World) error {
			kit := host.Of(off)
			change := kit.Change(t.Context(), harness.ByOperator())
			_, err := kit.Link(t.Context(), &change, host.LinkReset, w.Member(ada).User.ID, "", host.LinkMaker{})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t)
			o := beside(w, w.Store, off(c.settings))
			if err := c.try(w, o); !errors.Is(err, auth.CodeMethodDisabled) {
				t.Errorf("%v", err)
			}
			if u, err := w.Store.User(t.Context(), store.ByEmail(ada)); name != "an operator's link" && !errors.Is(err, store.ErrNotFound) {
				t.Errorf("made %+v, %v", u, err)
			}
		})
	}
}

// If a provider is removed during a sign-in, the callback signs no one in and says so.
func TestComingBackFromAProviderThatIsGone(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	v := w.NewVisitor(idp)
	to := v.Start("github", "redirect_to=https://app.test/&code_challenge="+harness.ChallengeOf(harness.Verifier))
	idp.SignsIn(harness.EvilGit)
	back := idp.Authorize(t, to)
	o := beside(w, w.Store, auth.WithProvider(idp.Google()))
	in := auth.OAuthCallback{Provider: "github", State: back.Get("state"), Code: back.Get("code")}
	for _, c := range v.Cookies {
		in.Browser = c.Value
	}
	if res, err := o.FinishOAuth(t.Context(), in); !errors.Is(err, auth.CodeUnknownProvider) || res == nil || !strings.Contains(res.RedirectURL, "error_code=unknown_provider") {
		t.Errorf("%+v, %v", res, err)
	}
}

// A browser that returns from a provider without a redirect sees a page that says it is signed in.
func TestBrowserIsShownThatItIsSignedIn(t *testing.T) {
	w, idp := harness.NewProviderWorld(t, auth.WithCookies(auth.CookieOptions{}))
	v := w.NewVisitor(idp)
	to := v.Start("github", "")
	idp.SignsIn(authtest.Person{Subject: "9", Email: "ada@example.com", EmailVerified: true})
	a := v.Do("GET", "/oauth/github/callback?"+idp.Authorize(t, to).Encode(), nil, harness.Browser).Want(200)
	if a.SetCookies()[harness.AccessCookie] == nil || !strings.Contains(strings.ToLower(string(a.Body)), "signed in") {
		t.Errorf("%s", a.Body)
	}
}

// An invitation that fails its check creates no account, even if a provider confirms the address.
func TestInvitationThatCannotBeJudged(t *testing.T) {
	w, idp := harness.NewProviderWorld(t)
	token, v := w.Invited("ada@example.com"), w.NewVisitor(idp)
	to := v.Start("github", "invitation="+token)
	host.Of(w).CheckInvitations(func(context.Context, host.Invitation) (host.Terms, error) {
		return host.Terms{}, auth.Reject(auth.CodeInvalidToken, "They left.")
	})
	idp.SignsIn(authtest.Person{Subject: "9", Email: "ada@example.com", EmailVerified: true})
	v.Back("github", idp.Authorize(t, to)).Want(400, auth.CodeInvalidToken)
	if u, err := w.Store.User(t.Context(), store.ByEmail("ada@example.com")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("made %+v, %v", u, err)
	}
	o := beside(w, w.Store) // without a check of invitations
	if _, err := o.AcceptInvitation(t.Context(), auth.AcceptInvitationParams{Token: token, Password: harness.GoodPassword}); !errors.Is(err, auth.CodeUnavailable) {
		t.Errorf("without the admin side: %v", err)
	}
}

// A magic link to an address that is another account's by now signs in to neither.
func TestMagicLinkToAnAddressThatMoved(t *testing.T) {
	w := harness.NewWorld(t)
	const ada = "ada@example.com"
	was, elsewhere := w.Member(ada).User.ID, "elsewhere@example.com"
	token := w.MagicLink(ada, nil)
	w.Patch(was, store.UserPatch{Email: &elsewhere})
	w.PostSignUp(ada)
	w.Do("POST", "/magic-link/verify", map[string]any{"token": token}).Want(400, auth.CodeInvalidToken)
}

// Another site's form cannot use the cookies that come with it: it opens no page, exchanges
// no code and ends no impersonation.
func TestOtherSitesDoNothingByCookies(t *testing.T) {
	w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}))
	access, refresh := w.InCookies("ada@example.com")
	from := harness.Header{Name: "Sec-Fetch-Site", Value: "cross-site"}
	called := false
	h := w.RequirePage(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	for _, jar := range []harness.Header{harness.Cookies(harness.RefreshCookie + "=" + refresh), harness.Cookies(harness.AccessCookie+"="+access, harness.RefreshCookie+"="+refresh)} {
		if a := w.Page(h, "POST", "https://auth.test/notes", jar, from); called || a.Status != http.StatusForbidden {
			t.Errorf("%v: let in %t, %d", jar, called, a.Status)
		}
	}
	eve := w.PostSignUp("eve@example.com")
	code := codeIn(t, actsAs(w, eve, w.Member("bob@example.com").User.ID))
	for _, jar := range []harness.Header{harness.Cookies(harness.RefreshCookie + "=" + refresh), harness.Cookies(harness.AccessCookie + "=" + access)} {
		w.Do("POST", "/exchange", map[string]any{"code": code}, jar, from).Want(403, auth.CodeCrossSiteRequest)
	}
	acting := w.PostExchange(code, "").Session() // which the refusals did not use up
	w.Do("POST", "/logout", nil, harness.Cookies(harness.AccessCookie+"="+acting.AccessToken), from).Want(403, auth.CodeCrossSiteRequest)
	w.Do("GET", "/me", nil, harness.Bearer(acting.AccessToken)).Want(200)
}

func codeIn(t *testing.T, to string) string {
	t.Helper()
	_, code, ok := strings.Cut(to, "?code=")
	if !ok {
		t.Fatalf("no code in %s", to)
	}
	return code
}

// An impersonation cannot be refreshed. It deletes the refresh cookie, by which the browser
// would return to another account.
func TestActingLeavesNoRefreshCookie(t *testing.T) {
	w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}))
	code := codeIn(t, actsAs(w, w.PostSignUp("eve@example.com"), w.Member("ada@example.com").User.ID))
	set := w.Do("POST", "/exchange", map[string]any{"code": code}, harness.Transport).Want(200).SetCookies()
	a, r := set[harness.AccessCookie], set[harness.RefreshCookie]
	if a == nil || a.Value == "" || r == nil || r.Value != "" || r.MaxAge >= 0 {
		t.Errorf("access %v, refresh %v", a, r)
	}
}

// Pages that accept only bearer tokens are a mistake, and the log reports it.
func TestPagesWithoutCookiesAreToldOf(t *testing.T) {
	for want, opts := range map[bool][]auth.Option{true: nil, false: {auth.WithCookies(auth.CookieOptions{})}} {
		w := harness.NewWorld(t, opts...)
		w.RequirePage(harness.Greeter)
		if got := strings.Contains(w.Log.String(), "RequirePage without WithCookies"); got != want {
			t.Errorf("told %t, want %t", got, want)
		}
	}
}

// Permissions that do not fit into a token are not granted where they cannot be read.
func TestPermissionsThatCannotBeRead(t *testing.T) {
	w := harness.NewWorld(t)
	ada := w.LoginAs(t, harness.AdaMail, authtest.Permissions(harness.PermissionClaims(60)...))
	tap := storetap.New(w.Store)
	o := beside(w, tap)
	tap.Reset(storetap.Hooks{Fault: func(_ context.Context, method string, _ int) storetap.Fault {
		if method == "Roles" {
			return storetap.FailsBefore
		}
		return storetap.NoFault
	}})
	if got := o.StatusOf(ada.AccessToken); got != http.StatusServiceUnavailable {
		t.Errorf("while it cannot: %d", got)
	}
	tap.Reset(storetap.Hooks{})
	if got := o.StatusOf(ada.AccessToken, auth.HasPermission(harness.PermissionClaims(60)[59])); got != http.StatusOK {
		t.Errorf("later: %d", got)
	}
}

// Metadata that JSON cannot express is refused as the caller's mistake.
func TestMetadataThatIsNoJSON(t *testing.T) {
	w := harness.NewWorld(t)
	res, err := w.SignUp(t.Context(), auth.SignUpParams{Email: harness.AdaMail, Password: harness.GoodPassword, UserMetadata: map[string]any{"x": math.NaN()}})
	if !errors.Is(err, auth.CodeValidationFailed) {
		t.Errorf("%+v, %v", res, err)
	}
}

// The form of a package built on Auth is a single form with each field once, except fields
// of several checkboxes.
func TestFormsOfRooms(t *testing.T) {
	kit := host.Of(harness.NewWorld(t))
	for body, c := range map[string]struct {
		kind string
		want error
	}{
		"a=1&b=2&b=3": {harness.Form.Value, nil},
		"a=1&a=2":     {harness.Form.Value, auth.CodeBadJSON},
		"a=%zz":       {harness.Form.Value, auth.CodeBadJSON},
		`{"a":"1"}`:   {"application/json", auth.CodeUnsupportedMediaType},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/room", strings.NewReader(body))
		r.Header.Set("Content-Type", c.kind)
		if got, err := kit.ReadForm(r, "b"); !errors.Is(err, c.want) || c.want == nil && (got.Get("a") != "1" || len(got["b"]) != 2) {
			t.Errorf("%s: %v, %v", body, got, err)
		}
	}
}

// actsAs starts an impersonation by a user with a role, and returns its redirect.
func actsAs(w *harness.World, actor harness.Session, id string) string {
	w.T.Helper()
	kit, ctx, now := host.Of(w), w.T.Context(), w.Clock.Now()
	edits(w, id)
	i := store.Impersonation{
		ID: kit.NewSessionID(), UserID: id, ActorID: actor.User.ID, ActorSessionID: w.ClaimsOf(actor).SessionID,
		CreatedAt: now, ExpiresAt: now.Add(auth.ImpersonationLife), Reason: "to see",
	}
	st, _ := store.Capability[store.AdminStore](w.Store)
	if err := st.BeginImpersonation(ctx, store.BeginImpersonation{Change: kit.Change(ctx, harness.ByOperator()), Impersonation: i}); err != nil {
		w.T.Fatal(err)
	}
	to, err := kit.ImpersonationURL(ctx, harness.ByOperator(), i.ID, "https://app.test/", "")
	if err != nil {
		w.T.Fatal(err)
	}
	return to
}

// edits gives a user a role, so that each of their tokens depends on the role's permissions.
func edits(w *harness.World, id string) { w.Patch(id, store.UserPatch{Roles: &[]string{"editor"}}) }
