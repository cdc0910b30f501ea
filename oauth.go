package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/authmount/auth/provider"
	"github.com/authmount/auth/store"
)

// oauthLife limits how long a user may take at the provider.
const oauthLife = 10 * time.Minute

const methodOAuth = "oauth"

// oauthState is the state of a sign-in at a provider until the callback. The store has
// it under the hash of the state parameter, which the callback consumes (RFC 9700,
// sections 4.7 and 4.4).
type oauthState struct {
	Provider   string `json:"provider"`
	RedirectTo string `json:"redirect_to,omitempty"`
	Challenge  string `json:"challenge,omitempty"` // of the application's own PKCE
	Browser    []byte `json:"browser,omitempty"`   // SHA-256 of the secret in the browser
	Unbound    bool   `json:"unbound,omitempty"`   // another browser may complete it, and only gets a code; Challenge and RedirectTo are set
	Verifier   string `json:"verifier,omitempty"`  // PKCE towards the provider (RFC 7636); none with NoPKCE
	Nonce      string `json:"nonce,omitempty"`     // OpenID Connect Core 1.0, section 3.1.2.1
	SessionID  string `json:"session_id,omitempty"`
	Remember   *bool  `json:"remember,omitempty"`
	Invitation []byte `json:"invitation,omitempty"` // the hash of the token of an invitation to accept
	Code       string `json:"code,omitempty"`       // StartOAuthParams.ConfirmationCode
}

// StartOAuthParams are the parameters of StartOAuth.
type StartOAuthParams struct {
	Provider      string
	RedirectTo    string   // on the allow-list; empty: the callback returns the session
	CodeChallenge string   // PKCE S256 between the application and /exchange; required with RedirectTo, unless sessions are in cookies
	Scopes        []string // in addition to the provider's
	LoginHint     string   // passed on
	Prompt        string   // passed on: "none", "login", "consent", "select_account"
	Remember      *bool    // whether the browser keeps the session cookies, see [Remember]; nil: as [Auth.SetCookies] has it
	Invitation    string   // the token of an invitation to accept by this sign-in; empty: none

	// ConfirmationCode is the code that the page of the confirmation link shows, or the code
	// in the mail, if confirmation is required and the identity's account is not confirmed
	// yet. The sign-in confirms it. For every other account it is ignored.
	ConfirmationCode string

	// Browser is a secret of the browser that starts the sign-in. The callback has to
	// present it. Without it, CodeChallenge and RedirectTo are required: the browser
	// that returns then gets a code, which only the holder of the verifier can
	// exchange.
	Browser string
	// Remote accepts a callback without the secret even if Browser is set, provided
	// that CodeChallenge and RedirectTo are set.
	Remote bool
}

// StartOAuth returns the provider's URL to send the browser to. Errors:
// CodeUnknownProvider, CodeMethodDisabled, CodeRedirectNotAllowed,
// CodeValidationFailed, CodeProviderError, CodeRateLimited.
func (a *Auth) StartOAuth(ctx context.Context, in StartOAuthParams) (string, error) {
	return a.startOAuth(ctx, in, Caller{})
}

// startOAuth starts a sign-in or, with a session, the linking of an identity to its
// user.
func (a *Auth) startOAuth(ctx context.Context, in StartOAuthParams, linkTo Caller) (string, error) {
	p, err := a.provider(ctx, in.Provider)
	if err != nil {
		return "", err
	}
	if err := a.checkStartOAuthParams(&in); err != nil {
		return "", err
	}
	if err := a.take(ctx, a.perIP(ctx, a.cfg.limits.OAuthPerIP, "oauth")...); err != nil {
		return "", err
	}
	e, err := p.reach(ctx)
	if err != nil {
		return "", fail(CodeProviderError, fmt.Errorf("%s: %w", p.Name, err))
	}
	st := oauthState{
		Provider: p.Name, RedirectTo: in.RedirectTo, Challenge: in.CodeChallenge,
		Browser:  hashBrowser(in.Browser),
		Unbound:  (in.Remote || in.Browser == "") && in.RedirectTo != "", // the challenge is there then
		Remember: in.Remember, Code: in.ConfirmationCode,
	}
	if in.Invitation != "" {
		st.Invitation = hashLinkToken(in.Invitation)
	}
	if !p.NoPKCE {
		st.Verifier = oauth2.GenerateVerifier()
	}
	if p.OpenID && !p.NoNonce {
		st.Nonce = oauth2.GenerateVerifier()
	}
	authority := byFlow("oauth")
	if linkTo.UserID != "" {
		authority, st.SessionID = linkTo.authority(), linkTo.SessionID
	}
	data, err := json.Marshal(st)
	if err != nil {
		return "", fail(CodeInternal, err)
	}
	secret, hash := newLinkToken()
	now := a.now()
	t := store.Token{Purpose: store.PurposeOAuth, Hash: hash, UserID: linkTo.UserID, Data: data, CreatedAt: now, ExpiresAt: now.Add(oauthLife)}
	if err := a.store.PutToken(ctx, store.PutToken{Change: a.newChange(ctx, authority), Token: t}); err != nil {
		return "", goneOr(CodeSessionEnded, err)
	}
	return p.authURL(e, secret, st, in)
}

// reach returns the endpoints within the provider's timeout.
func (p *oauthClient) reach(ctx context.Context) (endpoints, error) {
	ctx, cancel := p.bounded(ctx)
	defer cancel()
	return p.endpoints(ctx)
}

// authURL returns the URL of the authorization request (RFC 6749, section 4.1.1).
func (p *oauthClient) authURL(e endpoints, state string, st oauthState, in StartOAuthParams) (string, error) {
	scopes := slices.Clone(p.Scopes)
	for _, s := range in.Scopes {
		if !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	var opts []oauth2.AuthCodeOption
	if st.Verifier != "" {
		opts = append(opts, oauth2.S256ChallengeOption(st.Verifier))
	}
	add := func(name, value string) {
		if value != "" {
			opts = append(opts, oauth2.SetAuthURLParam(name, value))
		}
	}
	for name, value := range p.AuthParams {
		add(name, value)
	}
	if p.FormPost {
		add("response_mode", "form_post")
	}
	add("nonce", st.Nonce)
	add("login_hint", in.LoginHint)
	add("prompt", in.Prompt)
	cfg := oauth2.Config{ClientID: p.ClientID, RedirectURL: p.callback, Scopes: scopes, Endpoint: oauth2.Endpoint{AuthURL: e.auth}}
	return cfg.AuthCodeURL(state, opts...), nil
}

var prompts = []string{"", "none", "login", "consent", "select_account"}

// checkStartOAuthParams refuses parameters that are not safe to pass to a provider.
func (a *Auth) checkStartOAuthParams(in *StartOAuthParams) error {
	if err := a.allowRedirect(in.RedirectTo); err != nil {
		return err
	}
	switch {
	case in.CodeChallenge != "" && !validChallenge(in.CodeChallenge):
		return invalid("code_challenge", "is not an S256 challenge")
	case in.Remote && in.CodeChallenge == "":
		return invalid("code_challenge", "is required")
	case in.Browser == "" && (in.CodeChallenge == "" || in.RedirectTo == ""):
		return invalid("code_challenge", "is required, with a redirect, where no browser is named")
	case in.CodeChallenge == "" && !a.endsAtCallback(oauthState{RedirectTo: in.RedirectTo}):
		return invalid("code_challenge", "is required, because the redirect carries a code that another browser could be made to redeem")
	case len(in.LoginHint) > 320 || strings.ContainsFunc(in.LoginHint, func(r rune) bool { return r < 0x20 || r == 0x7f }):
		return invalid("login_hint", "is too long or has control characters")
	case !slices.Contains(prompts, in.Prompt):
		return invalid("prompt", "is none of none, login, consent and select_account")
	case len(in.ConfirmationCode) > 32:
		return invalid("confirmation_code", "is too long")
	case len(in.Scopes) > 20:
		return invalid("scopes", "are too many")
	}
	for _, s := range in.Scopes {
		if s == "" || len(s) > 256 || strings.ContainsFunc(s, func(r rune) bool { return r < 0x21 || r > 0x7e || r == '"' || r == '\\' }) {
			return invalid("scopes", "has one that is no scope") // RFC 6749, section 3.3
		}
	}
	return nil
}

func hashBrowser(secret string) []byte {
	if secret == "" {
		return nil
	}
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}

// OAuthCallback are the parameters of a provider's redirect back to the callback.
type OAuthCallback struct {
	Provider string
	State    string
	Code     string
	Error    string // in place of Code
	Issuer   string // iss (RFC 9207), if there was one
	User     string // some providers send it with the code, see provider.Provider.NameOf
	Browser  string // as in StartOAuthParams
}

// LogValue keeps code and state out of the log.
func (c OAuthCallback) LogValue() slog.Value {
	return slog.GroupValue(slog.String("provider", c.Provider), slog.String("code", redacted), slog.String("error", errorToken(c.Error)))
}

// OAuthResult is the result of a sign-in at a provider.
type OAuthResult struct {
	// RedirectURL is the browser's next location: with ?code= for /exchange, or with
	// ?error= if FinishOAuth failed. It is empty without redirect_to.
	RedirectURL string
	// Tokens are set if there is no RedirectURL, or if cookies carry the session.
	Tokens *Tokens

	returnTo string // RedirectURL without the result
}

// FinishOAuth completes a sign-in at a provider. The state is valid once, in the
// browser that started the sign-in. If there is an error and a redirect can report it
// to the application, the result is set, too. Errors: CodeBadOAuthState,
// CodeOAuthDenied, CodeProviderError, CodeUnknownProvider, CodeMethodDisabled, those of
// the linking rules, CodeAccountExists, CodeIdentityAlreadyExists, CodeSignupDisabled,
// CodeEmailNotVerified, CodeInvalidCode and CodeRateLimited (of ConfirmationCode), and those of
// any sign-in, CodeUserBanned, CodeMFARequired, CodeMFAEnrollmentRequired.
func (a *Auth) FinishOAuth(ctx context.Context, c OAuthCallback) (*OAuthResult, error) {
	st, linkTo, bound, err := a.useState(ctx, c)
	if err != nil {
		return nil, err
	}
	res, err := a.finishOAuth(ctx, c, st, linkTo, bound)
	var e *Error
	if errors.As(err, &e) && !bound { // another browser's callback must not confirm a sign-up later
		e.signUp = ""
	}
	if err != nil && st.RedirectTo != "" {
		res = &OAuthResult{RedirectURL: withQuery(st.RedirectTo, errorQuery(err)), returnTo: st.RedirectTo}
	}
	if err != nil && linkTo == "" {
		a.oauthFailed(ctx, st.Provider, err)
	}
	return res, err
}

// oauthFailed emits the event of a failed sign-in. A sign-in that waits for its second
// factor has not failed.
func (a *Auth) oauthFailed(ctx context.Context, name string, err error) {
	if !errors.Is(err, CodeMFARequired) && !errors.Is(err, CodeMFAEnrollmentRequired) {
		a.emit(ctx, Event{Type: EventSignInFailed, Method: methodOAuth, Provider: name, Err: err})
	}
}

// errorQuery returns the query that reports an error in a redirect (RFC 6749, section
// 4.1.2.1), together with the error's own code.
func errorQuery(err error) url.Values {
	var e *Error
	if !errors.As(err, &e) {
		e = fail(CodeInternal, err)
	}
	name := "access_denied"
	if e.Status >= http.StatusInternalServerError {
		name = "server_error"
	}
	return url.Values{"error": {name}, "error_code": {string(e.Code)}, "error_description": {e.Message}}
}

// useState reads the sign-in of a state parameter and consumes the state. A state that
// is presented wrongly is not consumed, so that nobody can disturb another user's
// sign-in.
func (a *Auth) useState(ctx context.Context, c OAuthCallback) (st oauthState, linkTo string, bound bool, err error) {
	bad := func(reason string) error { return fail(CodeBadOAuthState, errors.New(reason)) }
	hash, now := hashLinkToken(c.State), a.now()
	t, err := a.store.PeekToken(ctx, store.PurposeOAuth, hash, now)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return st, "", false, bad("unknown, used or expired")
	case err != nil:
		return st, "", false, storeFailed(err)
	}
	if err := json.Unmarshal(t.Data, &st); err != nil {
		return st, "", false, fail(CodeInternal, err)
	}
	bound = st.Browser != nil && subtle.ConstantTimeCompare(st.Browser, hashBrowser(c.Browser)) == 1
	switch {
	case st.Provider != c.Provider:
		return st, "", false, bad("of another provider")
	case !bound && !st.Unbound:
		return st, "", false, bad("of another browser")
	}
	_, _, err = a.store.RedeemToken(ctx, store.Redemption{Change: a.newChange(ctx, byAuthentication()), Purpose: store.PurposeOAuth, Hash: hash})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return st, "", false, bad("used meanwhile")
	case err != nil:
		return st, "", false, storeFailed(err)
	}
	return st, t.UserID, bound, nil
}

// finishOAuth is FinishOAuth after the check of the state.
func (a *Auth) finishOAuth(ctx context.Context, c OAuthCallback, st oauthState, linkTo string, bound bool) (*OAuthResult, error) {
	p, err := a.provider(ctx, c.Provider)
	if err != nil {
		return nil, err
	}
	profile, token, err := p.identify(ctx, c, st)
	var refusal *Error // the user's own, or one of a Profile function
	if errors.As(err, &refusal) {
		return nil, refusal
	}
	if err != nil {
		return nil, fail(CodeProviderError, fmt.Errorf("%s: %w", p.Name, err))
	}
	if p.NameOf != nil && profile.FullName == "" {
		profile.FullName, _ = cleanName(p.NameOf(c.User)) // unsigned: only a name
	}
	if linkTo != "" {
		return a.finishLinking(ctx, p, profile, token, st, Caller{UserID: linkTo, SessionID: st.SessionID}, bound)
	}
	u, accepts, err := a.userOfSignIn(ctx, p, profile, st)
	if err != nil {
		return nil, err
	}
	a.deliverProviderToken(ctx, u, p, profile, token)
	return a.completeOAuth(ctx, u, st, linkData{By: byIdentity(u, p.Name, profile.Subject), Accepts: accepts})
}

// identify checks the callback and returns the profile at the provider.
func (p *oauthClient) identify(ctx context.Context, c OAuthCallback, st oauthState) (provider.Profile, *oauth2.Token, error) {
	ctx, cancel := p.bounded(ctx)
	defer cancel()
	e, err := p.endpoints(ctx)
	if err == nil {
		err = p.checkCallback(e, c)
	}
	if err != nil {
		return provider.Profile{}, nil, err
	}
	return p.redeem(ctx, e, c.Code, st)
}

// denied returns the errors of a callback that are not the provider's fault: the user
// cancelled, or prompt=none needs the user (OpenID Connect Core 1.0, section 3.1.2.6).
func denied() []string {
	return []string{"access_denied", "login_required", "consent_required", "interaction_required", "account_selection_required"}
}

// checkCallback checks the parameters of a callback other than the state.
func (p *oauthClient) checkCallback(e endpoints, c OAuthCallback) error {
	// The response must not come from another server (RFC 9207). If each tenant has an
	// issuer, the ID token is checked instead.
	perTenant := strings.Contains(e.issuer, "{tenant}")
	if (c.Issuer != "" && e.issuer != "" && c.Issuer != e.issuer && !perTenant) || (c.Issuer == "" && e.namesIssuer) {
		return errors.New("the callback names another issuer or no issuer")
	}
	switch {
	case slices.Contains(denied(), c.Error) || slices.Contains(p.DeniedBy, c.Error):
		return fail(CodeOAuthDenied, fmt.Errorf("%s: %s", p.Name, c.Error))
	case c.Error != "":
		return fmt.Errorf("error %q", errorToken(c.Error))
	case c.Code == "" || len(c.Code) > 4096:
		return errors.New("the callback has no code")
	}
	return nil
}

// endsAtCallback reports whether the callback itself returns the session: without a
// redirect or, if the application sent no challenge, in cookie mode.
func (a *Auth) endsAtCallback(st oauthState) bool {
	return st.RedirectTo == "" || (a.cfg.cookies != nil && st.Challenge == "")
}

// completeOAuth returns the result for an authenticated user: a session, or a redirect
// with a code. The exchange of the code asks for the second factor. After an invitation the
// callback asks for it, because the link's page started the sign-in without a challenge.
func (a *Auth) completeOAuth(ctx context.Context, u User, st oauthState, d linkData) (*OAuthResult, error) {
	if a.endsAtCallback(st) {
		tokens, err := a.completeSignIn(ctx, signIn{user: u, by: d.By, accepts: d.Accepts, amr: a.newAMR(methodOAuth), gone: CodeBadOAuthState, remember: st.Remember})
		secondFactor := errors.Is(err, CodeMFARequired) || errors.Is(err, CodeMFAEnrollmentRequired)
		if err == nil {
			return &OAuthResult{RedirectURL: st.RedirectTo, Tokens: tokens}, nil
		}
		if st.RedirectTo == "" || !secondFactor || st.Invitation != nil {
			return nil, err
		}
	}
	return a.redirectWith(ctx, u, st, d)
}

// redirectWith returns the redirect with a code. The exchange of the code may link an
// identity.
func (a *Auth) redirectWith(ctx context.Context, u User, st oauthState, d linkData) (*OAuthResult, error) {
	d.Challenge, d.Remember = st.Challenge, st.Remember
	code, err := a.exchangeCode(ctx, u, d, methodOAuth, CodeBadOAuthState)
	if err != nil {
		return nil, err
	}
	return &OAuthResult{RedirectURL: withQuery(st.RedirectTo, url.Values{"code": {code}})}, nil
}
