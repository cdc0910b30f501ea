package auth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// How long links and codes live.
const (
	magicLife    = 15 * time.Minute
	verifyLife   = 24 * time.Hour
	resetLife    = time.Hour
	exchangeLife = time.Minute
)

// linkMode says when a link is completed by being opened.
type linkMode int

const (
	confirmLinks linkMode = iota // by anything but a browser
	directLinks                  // always
	strictLinks                  // only by clients that ask for JSON by name
)

// linkData is what a link carries, kept beside its token in the store.
type linkData struct {
	Email      string `json:"email,omitempty"` // the address it was sent to, and proves
	RedirectTo string `json:"redirect_to,omitempty"`
	Challenge  string `json:"challenge,omitempty"` // PKCE S256 (RFC 7636)
	CreateUser bool   `json:"create_user,omitempty"`
	Verifies   string `json:"verifies,omitempty"` // phone codes: the account whose sign-up sent it
	AMR        []AMR  `json:"amr,omitempty"`      // exchange codes: the proof already given

	Identity  *Identity `json:"identity,omitempty"`   // exchange codes: to link by the exchange
	SessionID string    `json:"session_id,omitempty"` // exchange codes: whose session asked to link
	By        provenBy  `json:"by,omitzero"`          // exchange, MFA and enrolment: what the proof already given rests on
}

// newLink makes a single-use token; the caller says whose and about what it is.
func (a *Auth) newLink(p Purpose, life time.Duration, d linkData) (secret string, t Token) {
	data, err := json.Marshal(d)
	if err != nil {
		panic(err) // strings only
	}
	secret, hash := newLinkToken()
	now := a.now()
	return secret, Token{Purpose: p, Hash: hash, Data: data, CreatedAt: now, ExpiresAt: now.Add(life)}
}

// paths of the pages that links lead to.
var linkPaths = map[Kind]string{
	KindMagicLink:     "/magic-link/verify",
	KindVerifyEmail:   "/verify-email",
	KindChangeEmail:   "/verify-email",
	KindResetPassword: "/reset-password",
}

// linkURL is built from the configured URL, never from a request's Host.
func (a *Auth) linkURL(k Kind, secret string) string {
	base, ok := a.cfg.linkURLs[k]
	if !ok {
		base = a.cfg.baseURL.String() + linkPaths[k]
	}
	return withQuery(base, url.Values{"token": {secret}})
}

// sendMail queues a message in the language its reader prefers.
func (a *Auth) sendMail(ctx context.Context, o outgoing, u User) {
	o.Locale = preferredLocale(ctx, u)
	o.IP = clientFrom(ctx).ipString()
	a.outbox.send(ctx, o)
}

// sendDraws are the limits on messages of a kind to an address.
func (a *Auth) sendDraws(k Kind, address string) []Draw {
	to := string(k) + " " + EmailKey(address)
	return []Draw{
		a.draw(a.cfg.limits.SendGap, "send-gap", to, 1),
		a.draw(a.cfg.limits.SendPerAddress, "send", to, 1),
	}
}

// takeSend draws for a message that somebody asked for. It comes before any
// look-up, so that unknown addresses count the same.
func (a *Auth) takeSend(ctx context.Context, k Kind, address string) error {
	draws := append(a.sendDraws(k, address), a.perIP(ctx, a.cfg.limits.SendPerIP, "send-ip", 1))
	_, err := a.take(ctx, draws...)
	return err
}

// MagicLinkParams ask for a link to sign in with.
type MagicLinkParams struct {
	Email         string
	RedirectTo    string
	CodeChallenge string // PKCE S256: the sign-in can only be completed with the verifier
	NoCreate      bool   // do not create an account for an unknown address
}

// SendMagicLink mails a link to sign in with. The answer is the same whether or
// not there is an account; without one, the link creates it when it is used,
// unless NoCreate is set or sign-up is switched off.
func (a *Auth) SendMagicLink(ctx context.Context, p MagicLinkParams) error {
	if a.cfg.settings.MagicLinkDisabled {
		return fail(CodeMethodDisabled, nil)
	}
	email, err := requiredEmail(p.Email)
	if err != nil {
		return invalid("email", err.Error())
	}
	if p.CodeChallenge != "" && !validChallenge(p.CodeChallenge) {
		return invalid("code_challenge", "is not an S256 challenge")
	}
	if err := a.allowRedirect(p.RedirectTo); err != nil {
		return err
	}
	data := linkData{RedirectTo: p.RedirectTo, Challenge: p.CodeChallenge, CreateUser: !p.NoCreate && !a.cfg.settings.SignupDisabled}
	return a.sendLink(ctx, KindMagicLink, PurposeMagicLink, magicLife, email, data, data.CreateUser)
}

// SendPasswordReset mails a link to choose a new password with. The answer is
// the same whether or not there is an account.
func (a *Auth) SendPasswordReset(ctx context.Context, email, redirectTo string) error {
	if a.cfg.settings.PasswordDisabled {
		return fail(CodeMethodDisabled, nil)
	}
	email, err := requiredEmail(email)
	if err != nil {
		return invalid("email", err.Error())
	}
	if err := a.allowRedirect(redirectTo); err != nil {
		return err
	}
	return a.sendLink(ctx, KindResetPassword, PurposeReset, resetLife, email, linkData{RedirectTo: redirectTo}, false)
}

// sendLink mails a link about an address that may have no account. Either way
// it looks up, stores a token and queues a message; without an account, and
// unless strangers are welcome, the token is not told to anybody and the
// message is a decoy. It goes to the address as stored, never as asked for.
func (a *Auth) sendLink(ctx context.Context, k Kind, p Purpose, life time.Duration, email string, d linkData, strangers bool) error {
	if err := a.takeSend(ctx, k, email); err != nil {
		return err
	}
	u, err := a.store.User(ctx, ByEmail(email))
	if err != nil && !errors.Is(err, ErrNotFound) {
		return storeFailed(err)
	}
	to := u.Email
	if to == "" && strangers {
		to = email
	}
	d.Email = to
	secret, link := a.newLink(p, life, d)
	link.UserID, link.Subject = u.ID, EmailKey(email)
	err = a.store.PutToken(ctx, link)
	if errors.Is(err, ErrNotFound) { // deleted since the look-up: a stranger again
		to, err = "", nil
	}
	if err != nil {
		return storeFailed(err)
	}
	a.sendMail(ctx, outgoing{Kind: k, To: to, Name: u.FullName, Link: a.linkURL(k, secret), ExpiresIn: life}, u)
	return nil
}

func (a *Auth) handleMagicLinkSend(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Email               string `json:"email"`
		RedirectTo          string `json:"redirect_to"`
		CodeChallenge       string `json:"code_challenge"`
		CodeChallengeMethod string `json:"code_challenge_method"`
		CreateUser          *bool  `json:"create_user"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	if p.CodeChallengeMethod != "" && p.CodeChallengeMethod != "S256" {
		return invalid("code_challenge_method", "is not S256")
	}
	err := a.SendMagicLink(r.Context(), MagicLinkParams{
		Email: p.Email, RedirectTo: p.RedirectTo, CodeChallenge: p.CodeChallenge,
		NoCreate: p.CreateUser != nil && !*p.CreateUser,
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

func (a *Auth) handleForgotPassword(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Email      string `json:"email"`
		RedirectTo string `json:"redirect_to"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	if err := a.SendPasswordReset(r.Context(), p.Email, p.RedirectTo); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

// peek reads a link without using it up. CodeInvalidToken if it is not live.
func (a *Auth) peek(ctx context.Context, p Purpose, secret string) (Token, linkData, error) {
	var d linkData
	if secret == "" {
		return Token{}, d, fail(CodeInvalidToken, errors.New("no token"))
	}
	t, err := a.store.PeekToken(ctx, p, hashLinkToken(secret), a.now())
	if err != nil {
		return t, d, linkFailed(err)
	}
	if err := json.Unmarshal(t.Data, &d); err != nil {
		return t, d, fail(CodeInternal, err)
	}
	return t, d, nil
}

// linkFailed makes unknown, used, superseded and expired the same error.
func linkFailed(err error) error {
	if errors.Is(err, ErrNotFound) {
		return fail(CodeInvalidToken, err)
	}
	return storeFailed(err)
}

// attempts bounds how often a redemption is judged anew because the user
// changed between the look and the leap.
const attempts = 20

// redeem uses a link up together with its effect, which is worked out from the
// user as they are and applied only if they still are so.
func (a *Auth) redeem(ctx context.Context, p Purpose, secret string, effect func(Token, linkData) (Redemption, error)) (linkData, User, error) {
	for range attempts {
		t, d, err := a.peek(ctx, p, secret)
		if err != nil {
			return d, User{}, err
		}
		r, err := effect(t, d)
		if err != nil {
			return d, User{}, err
		}
		r.Purpose, r.Hash, r.Now = p, t.Hash, a.now()
		_, u, err := a.store.RedeemToken(ctx, r)
		if errors.Is(err, ErrStale) || (errors.Is(err, ErrConflict) && r.Create != nil) {
			continue // changed, or signed up, meanwhile
		}
		if errors.Is(err, ErrConflict) {
			return d, u, fail(CodeUserAlreadyExists, err)
		}
		if err != nil {
			return d, u, linkFailed(err)
		}
		return d, u, nil
	}
	return linkData{}, User{}, retryAfter(CodeUnavailable, time.Second, ErrStale)
}

// useMagicLink uses a magic link up: it creates the account, or proves the
// address of the one there is. Holding the mailbox outranks whatever was set up
// without proving it: a password or session made before the address was ever
// confirmed goes, and so do phone number and identities (no pre-hijack).
func (a *Auth) useMagicLink(ctx context.Context, secret string) (linkData, User, error) {
	if a.cfg.settings.MagicLinkDisabled {
		return linkData{}, User{}, fail(CodeMethodDisabled, nil)
	}
	var created, takenOver bool
	d, u, err := a.redeem(ctx, PurposeMagicLink, secret, func(t Token, d linkData) (Redemption, error) {
		created, takenOver = false, false
		if d.Email == "" {
			return Redemption{}, fail(CodeInvalidToken, errors.New("no such account"))
		}
		u, err := a.store.User(ctx, ByEmail(d.Email))
		switch {
		case errors.Is(err, ErrNotFound):
			if !d.CreateUser || t.UserID != "" || a.cfg.settings.SignupDisabled {
				return Redemption{}, fail(CodeInvalidToken, errors.New("no such account"))
			}
			created = true
			return a.createByMagicLink(ctx, d)
		case err != nil:
			return Redemption{}, storeFailed(err)
		case t.UserID != "" && t.UserID != u.ID:
			return Redemption{}, fail(CodeInvalidToken, errors.New("the address has moved to another account"))
		case u.Banned(a.now()):
			return Redemption{}, fail(CodeUserBanned, nil)
		}
		patch := UserPatch{}
		if !u.EmailVerified {
			takenOver = true
			yes, none := true, ""
			patch = UserPatch{
				IfRevision: &u.Revision, EmailVerified: &yes, PasswordHash: &none,
				Revoke: &SessionFilter{}, RemoveFactor: !u.MFAEnabled,
			}
			dropSideDoors(&patch)
		}
		return Redemption{UserID: u.ID, Patch: &patch}, nil
	})
	if err != nil {
		return d, u, err
	}
	switch {
	case created:
		a.emit(ctx, Event{Type: EventSignedUp, UserID: u.ID, Method: methodMagicLink})
	case takenOver:
		a.emit(ctx, Event{Type: EventPasswordRemoved, UserID: u.ID})
		a.emit(ctx, Event{Type: EventEmailVerified, UserID: u.ID})
	}
	return d, u, nil
}

// pendingSignIns are the tokens that stand for a proof already given. They die
// with what the proof rested on.
var pendingSignIns = []Purpose{PurposeReset, PurposeMagicLink, PurposeExchange, PurposeMFA, PurposeEnroll}

// pendingChanges are the tokens that would change the account later on.
var pendingChanges = []Purpose{PurposeVerifyEmail, PurposePhoneChange, PurposeOAuth}

// dropSideDoors takes number and identities away from an account whose address
// was never proved until now: they would be ways in for whoever set the account
// up. An enabled second factor stays, since no first one may do away with it.
func dropSideDoors(p *UserPatch) {
	no, none := false, ""
	p.Phone, p.PhoneVerified = &none, &no
	p.DropIdentities = true
	p.DropTokens = slices.Concat(pendingSignIns, pendingChanges, []Purpose{PurposePhoneCode})
}

func (a *Auth) createByMagicLink(ctx context.Context, d linkData) (Redemption, error) {
	if err := a.beforeSignUp(ctx, SignUpAttempt{Email: d.Email, Method: methodMagicLink}); err != nil {
		return Redemption{}, err
	}
	now := a.now()
	return Redemption{Create: &NewUser{Creating: a.creating(), User: User{
		ID: a.newID(), Email: d.Email, EmailVerified: true, UserMetadata: map[string]any{}, CreatedAt: now, UpdatedAt: now,
	}}}, nil
}

// VerifyMagicLink signs in with the token of a magic link. A link that was asked
// for with a code challenge needs its verifier; a wrong one uses the link up.
// Errors: CodeInvalidToken, CodeBadCodeVerifier, CodeUserBanned.
func (a *Auth) VerifyMagicLink(ctx context.Context, token, codeVerifier string) (*Tokens, error) {
	d, u, err := a.useMagicLink(ctx, token)
	if err != nil {
		return nil, err
	}
	if err := checkVerifier(d.Challenge, codeVerifier); err != nil {
		return nil, err
	}
	return a.completeSignIn(ctx, signIn{user: u, by: provenBy{Email: d.Email}, amr: a.proof(methodMagicLink), gone: CodeInvalidToken})
}
