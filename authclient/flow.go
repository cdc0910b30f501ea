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

// Flow is a sign-in, or the linking of an identity, that goes on elsewhere: at a
// provider, or in a mailbox. Several may be under way at once; each has a verifier of its
// own (PKCE S256, RFC 7636) and is completed once.
type Flow struct {
	URL       string // where to send the person, in a browser; empty after SendOTP
	RequestID string // of SendOTP

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

// challenge adds what binds the flow to its verifier.
func (f *Flow) challenge(to map[string]any) {
	sum := sha256.Sum256([]byte(f.verifier))
	to["code_challenge"], to["code_challenge_method"] = base64.RawURLEncoding.EncodeToString(sum[:]), "S256"
}

// OAuthParams are of a sign-in at a provider.
type OAuthParams struct {
	Provider   string
	RedirectTo string   // required: where the browser comes back to; on the server's allow-list
	Scopes     []string // beyond what signing in needs
	LoginHint  string
	Prompt     string // "none", "login", "consent", "select_account"
	Invitation string // token of an invitation to accept by it
}

// SignInWithOAuth begins a sign-in at a provider: send a browser to Flow.URL, and give
// the URL that it comes back to, to Flow.Complete. Errors: auth.CodeUnknownProvider,
// CodeRedirectNotAllowed, CodeMethodDisabled.
func (c *Client) SignInWithOAuth(ctx context.Context, p OAuthParams) (*Flow, error) {
	f := newFlow(c)
	params := map[string]any{}
	f.challenge(params)
	q := url.Values{"redirect_to": {p.RedirectTo}}
	for name, v := range params {
		q.Set(name, v.(string))
	}
	for name, v := range map[string]string{"scopes": strings.Join(p.Scopes, " "), "login_hint": p.LoginHint, "prompt": p.Prompt, "invitation": p.Invitation} {
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

// LinkIdentity begins to link an identity at a provider to the account: send a browser to
// Flow.URL; Flow.Complete makes the link. It needs a proof of the last 15 minutes, see
// Confirm. Errors: auth.CodeReauthNeeded, CodeEmailNotVerified, CodeIdentityAlreadyExists.
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

// Complete takes the URL that the browser came back to, or its query, and signs in with
// the code in it. A flow is completed once, whatever comes of it. Errors: what the server
// said in the redirect, such as auth.CodeOAuthDenied; CodeForeignURL if there is neither
// code nor error in it; CodeUsed; those of Client.Exchange.
func (f *Flow) Complete(ctx context.Context, redirected string) (*Session, error) {
	_, query, found := strings.Cut(redirected, "?")
	if !found {
		query = redirected
	}
	query, _, _ = strings.Cut(query, "#")
	q, err := url.ParseQuery(query)
	switch {
	case err != nil, q.Get("code") == "" && q.Get("error") == "":
		return nil, &Error{Code: CodeForeignURL, Message: "This address brings neither a code nor an error."}
	case q.Get("code") == "":
		return nil, &Error{Code: codeOr(q.Get("error_code"), auth.CodeOAuthDenied), Message: q.Get("error_description")}
	}
	verifier, err := f.take()
	if err != nil {
		return nil, err
	}
	k := call{path: "/exchange", body: map[string]string{"code": q.Get("code"), "code_verifier": verifier}}
	if f.linking { // in the name of who asked for it
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

// take takes the verifier out: a code dies with the first try.
func (f *Flow) take() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.verifier == "" {
		return "", &Error{Code: CodeUsed, Message: "This sign-in was completed before. Begin anew."}
	}
	v := f.verifier
	f.verifier = ""
	return v, nil
}

// Verify signs in with the code that SendOTP had sent. A wrong one may be tried again,
// within the server's limits. Errors: auth.CodeInvalidCode; those of a sign-in.
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
