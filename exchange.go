package auth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/authmount/auth/store"
)

// exchangeCode creates the single-use code that a redirect carries instead of tokens.
// It returns gone if the user has changed since they were read and found not to be
// banned.
func (a *Auth) exchangeCode(ctx context.Context, u User, d linkData, method string, gone Code) (string, error) {
	secret, code := a.newLink(store.PurposeExchange, exchangeLife, linkData{Challenge: d.Challenge, AMR: a.newAMR(method), Identity: d.Identity, SessionID: d.SessionID, By: d.By, Accepts: d.Accepts, Remember: d.Remember})
	code.UserID = u.ID
	authority := byAuthentication()
	if d.SessionID != "" { // linking acts under the session that requested it
		authority = Caller{UserID: u.ID, SessionID: d.SessionID}.authority()
	}
	err := a.putToken(ctx, authority, code, ifCredentialsUnchanged(u))
	if errors.Is(err, store.ErrStale) || errors.Is(err, CodeInvalidToken) || errors.Is(err, CodeSessionEnded) {
		return "", fail(gone, err) // the account changed meanwhile
	}
	return secret, err
}

// ExchangeParams are the parameters of Exchange.
type ExchangeParams struct {
	Code         string
	CodeVerifier string
}

// Exchange trades the code that a redirect carried for tokens. If the flow started
// with a code challenge, the verifier must match it (RFC 7636). The first attempt uses
// up the code, right or wrong. A magic link that was requested with a challenge is used
// up here instead of where it is opened, and only with the right verifier. Errors:
// CodeInvalidCode, CodeBadCodeVerifier, CodeUserBanned, CodeMFARequired,
// CodeMFAEnrollmentRequired; CodeIdentityAlreadyExists and CodeEmailNotVerified if the
// exchange links an identity; those of VerifyMagicLink for such a link.
func (a *Auth) Exchange(ctx context.Context, p ExchangeParams) (*Tokens, error) {
	t, u, err := a.store.RedeemToken(ctx, store.Redemption{Change: a.newChange(ctx, byAuthentication()), Purpose: store.PurposeExchange, Hash: hashLinkToken(p.Code)})
	if errors.Is(err, store.ErrNotFound) {
		return nil, fail(CodeInvalidCode, err)
	}
	if err != nil {
		return nil, storeFailed(err)
	}
	var d linkData
	if err := json.Unmarshal(t.Data, &d); err != nil || len(d.AMR) == 0 && d.Opened == nil && d.Acts == "" {
		return nil, fail(CodeInternal, errors.New("exchange code without an authentication method"))
	}
	if d.Opened != nil {
		return a.exchangeOpened(ctx, *d.Opened, p.CodeVerifier)
	}
	if err := checkVerifier(d.Challenge, p.CodeVerifier); err != nil {
		return nil, err
	}
	if d.Acts != "" {
		return a.exchangeImpersonation(ctx, d.Acts)
	}
	if d.Identity != nil {
		if u, err = a.linkIdentity(ctx, Caller{UserID: u.ID, SessionID: d.SessionID}, CodeInvalidCode, *d.Identity); err != nil {
			return nil, err
		}
		d.By = credentialRef{Provider: d.Identity.Provider, Subject: d.Identity.Subject}
	}
	if !d.By.isCurrent(store.Credentials{User: u}) {
		return nil, fail(CodeInvalidCode, errors.New("the credential of this sign-in was removed"))
	}
	return a.completeSignIn(ctx, signIn{user: u, by: d.By, accepts: d.Accepts, amr: d.AMR, gone: CodeInvalidCode, remember: d.Remember})
}

func (a *Auth) handleExchange(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Code         string `json:"code"`
		CodeVerifier string `json:"code_verifier"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	if p.Code == "" {
		return invalid("code", "is required")
	}
	if err := a.noteSessionCookies(r); err != nil {
		return err
	}
	tokens, err := a.Exchange(r.Context(), ExchangeParams(p))
	if err != nil {
		return err
	}
	return a.writeTokens(w, r, tokens)
}

// validChallenge reports whether s is the base64url of a SHA-256 hash.
func validChallenge(s string) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return err == nil && len(b) == sha256.Size
}

// challengeOf returns the S256 challenge of a verifier, or "" for none.
func challengeOf(verifier string) string {
	if verifier == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// checkVerifier compares a verifier with the challenge of its flow. It also refuses a
// verifier without a challenge, because that hints at a mix-up of flows (RFC 9700,
// 2.1.1).
func checkVerifier(challenge, verifier string) error {
	switch {
	case challenge == "" && verifier == "":
		return nil
	case challenge == "" || len(verifier) < 43 || len(verifier) > 128 || strings.ContainsFunc(verifier, notUnreserved):
	case subtle.ConstantTimeCompare([]byte(challenge), []byte(challengeOf(verifier))) == 1:
		return nil
	}
	return fail(CodeBadCodeVerifier, nil)
}

func notUnreserved(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-._~", r)
}

// checkChallengeMethod refuses a method other than S256, and a method without a
// challenge, instead of silently using no PKCE.
func checkChallengeMethod(method, challenge string) error {
	switch {
	case method != "" && method != "S256":
		return invalid("code_challenge_method", "is not S256")
	case method != "" && challenge == "":
		return invalid("code_challenge", "is required with code_challenge_method")
	}
	return nil
}

// A magic link that was requested with a code challenge is not used up where it is
// opened, because a stranger or a machine may open it. It redirects with a code that
// refers to it, and the exchange redeems the link itself with the verifier. A wrong
// verifier uses up that code; opening the link again creates another.

// opening is a bound link that was opened, with the session and client that opened
// it. A new account counts against that client.
type opening struct {
	Link   []byte `json:"link"` // hash
	Within Caller `json:"within"`
	By     Client `json:"by"`
}

// redirectBound returns the URL to which a bound link redirects, with a code. The code
// is valid as long as the link, at most for exchangeLife. Errors: CodeInvalidToken (the
// link is not valid any more), CodeUserBanned, CodeMethodDisabled.
func (a *Auth) redirectBound(ctx context.Context, link store.Token, d linkData, within Caller) (string, error) {
	if err := a.requireLinks(ctx); err != nil {
		return "", err
	}
	secret, code := a.newLink(store.PurposeExchange, exchangeLife, linkData{Opened: &opening{Link: link.Hash, Within: within, By: clientFrom(ctx)}})
	code.UserID = link.UserID
	while := Authority{Token: &store.TokenRef{Purpose: store.PurposeMagicLink, Hash: link.Hash}}
	if err := a.putToken(ctx, while, code); err != nil {
		return "", err
	}
	return withQuery(d.RedirectTo, url.Values{"code": {secret}}), nil
}

// exchangeOpened redeems the link to which a code refers, and signs the user in.
func (a *Auth) exchangeOpened(ctx context.Context, o opening, verifier string) (*Tokens, error) {
	m, err := a.useMagicLink(ContextWithClient(ctx, o.By), o.Link, verifier, o.Within)
	switch {
	case errors.Is(err, CodeInvalidToken):
		return nil, fail(CodeInvalidCode, err)
	case err != nil:
		return nil, err
	}
	return a.completeSignIn(ctx, signIn{user: m.user, by: credentialRef{Email: m.Email}, amr: a.newAMR(methodMagicLink), gone: CodeInvalidCode, remember: m.Remember})
}
