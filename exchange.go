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

// exchangeCode makes the single-use code that a redirect carries in place of
// tokens. gone is the error if the user has changed since they were read, and was found
// not to be banned.
func (a *Auth) exchangeCode(ctx context.Context, u User, d linkData, method string, gone Code) (string, error) {
	secret, code := a.newLink(store.PurposeExchange, exchangeLife, linkData{Challenge: d.Challenge, AMR: a.proof(method), Identity: d.Identity, SessionID: d.SessionID, By: d.By, Remember: d.Remember})
	code.UserID = u.ID
	authority := byProof()
	if d.SessionID != "" { // a linking, in the name of who asked for it
		authority = Caller{UserID: u.ID, SessionID: d.SessionID}.authority()
	}
	err := a.putToken(ctx, authority, code, credentialsStill(u))
	if errors.Is(err, store.ErrStale) || errors.Is(err, CodeInvalidToken) || errors.Is(err, CodeSessionEnded) {
		return "", fail(gone, err) // changed hands meanwhile
	}
	return secret, err
}

// ExchangeParams trade the code that a redirect carried for tokens.
type ExchangeParams struct {
	Code         string
	CodeVerifier string
}

// Exchange trades the code that a redirect carried for tokens. Where the flow
// began with a code challenge, the verifier must match it (RFC 7636); the code
// is used up by the first try, right or wrong. A magic link that was asked for with
// a challenge is used up here and not where it is opened, and only with the right
// verifier. Errors: CodeInvalidCode, CodeBadCodeVerifier, CodeUserBanned,
// CodeMFARequired, CodeMFAEnrollmentRequired, CodeIdentityAlreadyExists and
// CodeEmailNotVerified where the exchange links an identity, and for such links
// those of VerifyMagicLink.
func (a *Auth) Exchange(ctx context.Context, p ExchangeParams) (*Tokens, error) {
	t, u, err := a.store.RedeemToken(ctx, store.Redemption{Change: a.newChange(ctx, byProof()), Purpose: store.PurposeExchange, Hash: hashLinkToken(p.Code)})
	if errors.Is(err, store.ErrNotFound) {
		return nil, fail(CodeInvalidCode, err)
	}
	if err != nil {
		return nil, storeFailed(err)
	}
	var d linkData
	if err := json.Unmarshal(t.Data, &d); err != nil || len(d.AMR) == 0 && d.Opened == nil && d.Acts == "" {
		return nil, fail(CodeInternal, errors.New("exchange code without proof"))
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
		d.By = provenBy{Provider: d.Identity.Provider, Subject: d.Identity.Subject}
	}
	if !d.By.holds(store.Credentials{User: u}) {
		return nil, fail(CodeInvalidCode, errors.New("what the proof rested on is gone"))
	}
	return a.completeSignIn(ctx, signIn{user: u, by: d.By, amr: d.AMR, gone: CodeInvalidCode, remember: d.Remember})
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
	if err := a.besideCookies(r); err != nil {
		return err
	}
	tokens, err := a.Exchange(r.Context(), ExchangeParams(p))
	if err != nil {
		return err
	}
	return a.writeTokens(w, r, tokens)
}

// validChallenge tells whether s is the base64url of a SHA-256 hash.
func validChallenge(s string) bool {
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	return err == nil && len(b) == sha256.Size
}

// challengeOf is the S256 challenge of a verifier, or "" of none.
func challengeOf(verifier string) string {
	if verifier == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// checkVerifier compares a verifier with the challenge of its flow. A verifier
// without a challenge is refused too: it hints at a mix-up of flows (RFC 9700,
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

// checkChallengeMethod refuses what would silently be no PKCE, or another one.
func checkChallengeMethod(method, challenge string) error {
	switch {
	case method != "" && method != "S256":
		return invalid("code_challenge_method", "is not S256")
	case method != "" && challenge == "":
		return invalid("code_challenge", "is required with code_challenge_method")
	}
	return nil
}

// A magic link that was asked for with a code challenge is not spent where it is
// opened, since whoever opens it may be somebody else, or a machine: it leads on with
// a code that refers to it, and the exchange redeems the link itself, with the
// verifier. A wrong one ends that code, and another opening makes another.

// opening is a bound link that was opened: in which session, and by whom, which is
// who an account that it makes is counted for.
type opening struct {
	Link   []byte `json:"link"` // hash
	Within Caller `json:"within"`
	By     Client `json:"by"`
}

// redirectBound returns where the browser goes on to from a bound link, with a code
// that is good for as long as the link is, at most for exchangeLife. Errors:
// CodeInvalidToken if the link is over by now, CodeUserBanned.
func (a *Auth) redirectBound(ctx context.Context, link store.Token, d linkData, within Caller) (string, error) {
	if !a.Settings(ctx).MagicLink.On() {
		return "", fail(CodeMethodDisabled, nil)
	}
	secret, code := a.newLink(store.PurposeExchange, exchangeLife, linkData{Opened: &opening{Link: link.Hash, Within: within, By: clientFrom(ctx)}})
	code.UserID = link.UserID
	while := Authority{Token: &store.TokenRef{Purpose: store.PurposeMagicLink, Hash: link.Hash}}
	if err := a.putToken(ctx, while, code); err != nil {
		return "", err
	}
	return withQuery(d.RedirectTo, url.Values{"code": {secret}}), nil
}

// exchangeOpened redeems the link that a code refers to, and signs in.
func (a *Auth) exchangeOpened(ctx context.Context, o opening, verifier string) (*Tokens, error) {
	m, err := a.useMagicLink(ContextWithClient(ctx, o.By), o.Link, verifier, o.Within)
	switch {
	case errors.Is(err, CodeInvalidToken):
		return nil, fail(CodeInvalidCode, err)
	case err != nil:
		return nil, err
	}
	return a.completeSignIn(ctx, signIn{user: m.user, by: provenBy{Email: m.Email}, amr: a.proof(methodMagicLink), gone: CodeInvalidCode, remember: m.Remember})
}
