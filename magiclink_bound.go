package auth

import (
	"context"
	"errors"
	"net/url"

	"github.com/authmount/auth/store"
)

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
