package auth

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// browserCookie returns the name of the cookie with a browser's secret. A provider that
// posts its callback needs another cookie, because the post comes from the provider's
// own site.
func (a *Auth) browserCookie(p *oauthClient) string {
	if p.FormPost {
		return a.cookieNamed("oauth-post")
	}
	return a.cookieNamed("oauth")
}

// bindBrowser returns the cookie with the browser's secret, to be set once a sign-in
// has started. One secret serves all sign-ins of a browser, so that tabs do not disturb
// each other and cookies do not accumulate.
func (a *Auth) bindBrowser(r *http.Request, p *oauthClient) *http.Cookie {
	secret := a.browserSecret(r, p)
	if secret == "" {
		secret, _ = newLinkToken()
	}
	c := &http.Cookie{ //nolint:gosec // Secure wherever the base URL is https; http is for loopback only
		Name: a.browserCookie(p), Value: secret, Path: "/", MaxAge: int(oauthLife / time.Second),
		HttpOnly: true, Secure: a.cfg.baseURL.Scheme == "https", SameSite: http.SameSiteLaxMode,
	}
	if p.FormPost && c.Secure {
		c.SameSite = http.SameSiteNoneMode
	}
	return c
}

// browserSecret returns the browser's secret, or "" if there is no well-formed one.
func (a *Auth) browserSecret(r *http.Request, p *oauthClient) string {
	c := soleCookie(r, a.browserCookie(p))
	if c == nil {
		return ""
	}
	if b, err := base64.RawURLEncoding.DecodeString(c.Value); err != nil || len(b) != 32 {
		return ""
	}
	return c.Value
}

// handleOAuthStart is GET /oauth/{provider}: a redirect to the provider, or its
// URL as JSON for a script that sends the browser there itself.
func (a *Auth) handleOAuthStart(w http.ResponseWriter, r *http.Request) error {
	q := r.URL.Query()
	in := StartOAuthParams{
		Provider: r.PathValue("provider"), RedirectTo: q.Get("redirect_to"), CodeChallenge: q.Get("code_challenge"),
		Scopes:     strings.FieldsFunc(q.Get("scopes"), func(r rune) bool { return r == ' ' || r == ',' }),
		Invitation: q.Get("invitation"), LoginHint: q.Get("login_hint"), Prompt: q.Get("prompt"), Remote: acceptsByName(r, "application/json"),
		ConfirmationCode: q.Get("confirmation_code"),
	}
	p, err := a.provider(r.Context(), in.Provider)
	if err != nil || r.Method == http.MethodHead {
		return err
	}
	if err := checkChallengeMethod(q.Get("code_challenge_method"), in.CodeChallenge); err != nil {
		return err
	}
	if in.Remember, err = rememberField(q); err != nil {
		return invalid(fieldRemember, "is neither true nor false")
	}
	cookie := a.bindBrowser(r, p)
	in.Browser = cookie.Value
	to, err := a.StartOAuth(r.Context(), in)
	if err != nil {
		return err
	}
	http.SetCookie(w, cookie)
	if in.Remote {
		return writeJSON(w, http.StatusOK, map[string]string{"url": to})
	}
	h := w.Header()
	h.Set("Location", to)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	w.WriteHeader(http.StatusFound)
	return nil
}

// handleOAuthCallback is GET or POST /oauth/{provider}/callback. An error is a page in
// a browser, and JSON for a program.
func (a *Auth) handleOAuthCallback(w http.ResponseWriter, r *http.Request) error {
	err := a.finishCallback(w, r)
	if err != nil && !fromProgram(r) {
		return a.showProblemOn(w, r, err, page{})
	}
	return err
}

func (a *Auth) finishCallback(w http.ResponseWriter, r *http.Request) error {
	p, err := a.provider(r.Context(), r.PathValue("provider"))
	if err != nil || r.Method == http.MethodHead {
		return err
	}
	c, err := readCallback(r)
	if err != nil {
		return err
	}
	c.Provider, c.Browser = p.Name, a.browserSecret(r, p)
	res, err := a.FinishOAuth(r.Context(), c)
	var e *Error
	if errors.As(err, &e) && e.signUp != "" && a.cfg.cookies != nil {
		a.setSignUp(w, r, e.signUp)
	}
	to := ""
	if res != nil {
		to = res.returnTo
	}
	switch {
	case err != nil && !fromProgram(r) && a.awaitsFactor(w, err, waitingSignIn{To: to}):
		return a.goToFactor(w)
	case err != nil && res == nil:
		return err
	case err != nil:
		_ = a.logged(r, err)
		return seeOther(w, res.RedirectURL)
	case res.Tokens == nil:
		return seeOther(w, res.RedirectURL)
	case a.cfg.cookies == nil || (res.RedirectURL == "" && fromScript(r)):
		return a.writeTokens(w, r, res.Tokens)
	}
	a.setCookies(w, r, res.Tokens, nil)
	switch {
	case res.RedirectURL != "":
		return seeOther(w, res.RedirectURL)
	case acceptsByName(r, "text/html"):
		return a.showDone(w, r, page{Done: doneSignedIn}, "")
	}
	signedIn := *res.Tokens
	signedIn.AccessToken, signedIn.RefreshToken = "", ""
	return writeJSON(w, http.StatusOK, signedIn)
}

// fromScript reports whether a request comes from a program that accepts JSON by name
// and keeps no cookies, and not from a browser that returns from a provider.
func fromScript(r *http.Request) bool {
	return acceptsByName(r, "application/json") && !acceptsByName(r, "text/html")
}

// readCallback reads the parameters from the query or from the posted form, never from
// both. It refuses a parameter that occurs twice (RFC 6749, section 3.1).
func readCallback(r *http.Request) (OAuthCallback, error) {
	values := r.URL.Query()
	if r.Method == http.MethodPost {
		if !isForm(r) {
			return OAuthCallback{}, fail(CodeUnsupportedMediaType, nil)
		}
		body, err := readBody(r)
		if err != nil {
			return OAuthCallback{}, err
		}
		if values, err = url.ParseQuery(string(body)); err != nil {
			return OAuthCallback{}, fail(CodeBadOAuthState, errors.New("malformed form"))
		}
	}
	for _, name := range []string{"state", "code", "error", "iss"} {
		if len(values[name]) > 1 {
			return OAuthCallback{}, fail(CodeBadOAuthState, fmt.Errorf("%s appears twice", name))
		}
	}
	return OAuthCallback{
		State: values.Get("state"), Code: values.Get("code"), Error: values.Get("error"), Issuer: values.Get("iss"), User: values.Get("user"),
	}, nil
}
