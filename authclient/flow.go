package authclient

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/authmount/auth"
)

// Flow is a sign-in, or the linking of an identity, that continues elsewhere: at a
// provider, or in a mailbox. Several flows may be under way at the same time. Each has
// its own verifier (PKCE S256, RFC 7636) and can be completed once.
type Flow struct {
	URL       string // the page to open in the user's browser; empty after SendOTP
	RequestID string // set by SendOTP

	c            *Client
	linking      bool
	email, phone string

	mu       sync.Mutex
	verifier string
}

func newFlow(c *Client) *Flow {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return &Flow{c: c, verifier: base64.RawURLEncoding.EncodeToString(b)}
}

// challenge adds the parameters that bind the flow to its verifier.
func (f *Flow) challenge(to map[string]any) {
	sum := sha256.Sum256([]byte(f.verifier))
	to["code_challenge"], to["code_challenge_method"] = base64.RawURLEncoding.EncodeToString(sum[:]), "S256"
}

// OAuthParams are the parameters of a sign-in at a provider.
type OAuthParams struct {
	Provider   string
	RedirectTo string   // required: the page to which the browser returns; on the server's allow-list
	Scopes     []string // additional scopes
	LoginHint  string
	Prompt     string // "none", "login", "consent", "select_account"
	Invitation string // token of an invitation that the sign-in accepts

	ConfirmationCode string // as in PasswordParams
}

// SignInWithOAuth starts a sign-in at a provider. Open Flow.URL in a browser, and pass
// the URL to which the browser returns to Flow.Complete. Errors:
// auth.CodeUnknownProvider, CodeRedirectNotAllowed, CodeMethodDisabled.
func (c *Client) SignInWithOAuth(ctx context.Context, p OAuthParams) (*Flow, error) {
	f := newFlow(c)
	params := map[string]any{}
	f.challenge(params)
	q := url.Values{"redirect_to": {p.RedirectTo}}
	for name, v := range params {
		q.Set(name, v.(string))
	}
	for name, v := range map[string]string{"scopes": strings.Join(p.Scopes, " "), "login_hint": p.LoginHint, "prompt": p.Prompt, "invitation": p.Invitation, "confirmation_code": p.ConfirmationCode} {
		if v != "" {
			q.Set(name, v)
		}
	}
	var w urlWire
	if err := c.wire.do(ctx, call{method: http.MethodGet, path: "/oauth/" + segment(p.Provider), query: q, repeat: repeatAlways}, &w); err != nil {
		return nil, err
	}
	f.URL = w.URL
	return f, nil
}

type urlWire struct {
	URL string `json:"url"`
}

// LinkIdentity starts to link an identity at a provider to the account. Open Flow.URL
// in a browser; Flow.Complete creates the link. It requires an authentication within
// the last 15 minutes, see Confirm. Errors: auth.CodeReauthNeeded,
// CodeEmailNotVerified, CodeIdentityAlreadyExists.
func (c *Client) LinkIdentity(ctx context.Context, p OAuthParams) (*Flow, error) {
	f := newFlow(c)
	f.linking = true
	body := map[string]any{"redirect_to": p.RedirectTo}
	f.challenge(body)
	if p.Prompt != "" {
		body["prompt"] = p.Prompt
	}
	if len(p.Scopes) > 0 {
		body["scopes"] = p.Scopes
	}
	var w urlWire
	if err := c.as(ctx, call{method: http.MethodPost, path: "/me/identities/" + segment(p.Provider), body: body}, &w); err != nil {
		return nil, err
	}
	f.URL = w.URL
	return f, nil
}

// Complete signs in with the code in the URL to which the browser returned, or in its
// query. A flow can be completed once, successfully or not. Errors: the server's error
// in the redirect, such as auth.CodeOAuthDenied; CodeForeignURL if there is neither
// code nor error; CodeUsed; those of Client.Exchange.
func (f *Flow) Complete(ctx context.Context, redirected string) (*Session, error) {
	_, query, found := strings.Cut(redirected, "?")
	if !found {
		query = redirected
	}
	query, _, _ = strings.Cut(query, "#")
	q, err := url.ParseQuery(query)
	switch {
	case err != nil, q.Get("code") == "" && q.Get("error") == "":
		return nil, &Error{Code: CodeForeignURL, Message: "This URL has neither a code nor an error."}
	case q.Get("code") == "":
		return nil, &Error{Code: codeOr(q.Get("error_code"), auth.CodeOAuthDenied), Message: q.Get("error_description")}
	}
	verifier, err := f.take()
	if err != nil {
		return nil, err
	}
	k := call{path: "/exchange", body: map[string]string{"code": q.Get("code"), "code_verifier": verifier}}
	if f.linking { // as the user who started the flow
		token, err := f.c.Token(ctx)
		if err != nil {
			return nil, err
		}
		k.bearer = token
	}
	return f.c.signIn(ctx, k)
}

func codeOr(text string, otherwise auth.Code) auth.Code {
	if text == "" {
		return otherwise
	}
	return auth.Code(text)
}

// take returns the verifier once, because a code is invalid after the first attempt.
func (f *Flow) take() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.verifier == "" {
		return "", &Error{Code: CodeUsed, Message: "This sign-in was already completed. Start again."}
	}
	v := f.verifier
	f.verifier = ""
	return v, nil
}

// Verify signs in with the code that SendOTP had sent. After a wrong code it may be
// called again, within the server's limits. Errors: auth.CodeInvalidCode; those of a
// sign-in.
func (f *Flow) Verify(ctx context.Context, code string) (*Session, error) {
	f.mu.Lock()
	verifier := f.verifier
	f.mu.Unlock()
	p := VerifyOTPParams{Email: f.email, Phone: f.phone, Code: code, RequestID: f.RequestID}
	if f.phone == "" {
		p.CodeVerifier = verifier
	}
	return f.c.VerifyOTP(ctx, p)
}
