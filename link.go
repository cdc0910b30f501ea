package auth

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/internal/redirect"
	"github.com/authmount/auth/store"
)

// How long links and codes live.
const (
	magicLife    = 15 * time.Minute
	verifyLife   = 24 * time.Hour
	resetLife    = time.Hour
	exchangeLife = time.Minute
)

// linkData is what a link carries, kept beside its token in the store.
type linkData struct {
	Email      string `json:"email,omitempty"` // the address it was sent to, and proves; none: a decoy
	RedirectTo string `json:"redirect_to,omitempty"`
	Challenge  string `json:"challenge,omitempty"` // PKCE S256 (RFC 7636)
	Device     string `json:"device,omitempty"`    // verification: the user agent that signed up, as it said of itself
	AMR        []AMR  `json:"amr,omitempty"`       // exchange codes: the proof already given; notices: those of the session that they tell of

	// Of a notice: when Email was verified, in both orders, and the sequence of the session
	// that it reports; 0 if the token's own sequence is the session's.
	VerifiedAt       time.Time `json:"verified_at,omitzero"`
	VerifiedSequence int64     `json:"verified_sequence,omitempty"`
	Sequence         int64     `json:"sequence,omitempty"`

	Marks []stopMark `json:"marks,omitempty"` // of no link: see stopMark

	Identity   *Identity        `json:"identity,omitempty"`   // exchange codes: to link by the exchange
	SessionID  string           `json:"session_id,omitempty"` // exchange codes and new addresses: the session that asked, and has to be live still; notices: the session that they tell of
	By         provenBy         `json:"by,omitzero"`          // exchange, MFA and enrolment: what the proof already given rests on
	Acts       string           `json:"acts,omitempty"`       // exchange codes: the impersonation to go on in, in place of a proof
	Invitation *host.Invitation `json:"invitation,omitempty"` // of an invitation
	Maker      *host.LinkMaker  `json:"maker,omitempty"`      // of a link that an operator was given
	Opened     *opening         `json:"opened,omitempty"`     // exchange codes: the link to redeem, in place of a proof

	Remember *bool `json:"remember,omitempty"` // of a sign-in: whether the browser keeps its cookies, as it was said when it began
}

// newLink makes a single-use token; the caller says whose and about what it is.
func (a *Auth) newLink(p store.Purpose, life time.Duration, d linkData) (secret string, t store.Token) {
	data, err := json.Marshal(d)
	if err != nil {
		panic(err) // strings only
	}
	secret, hash := newLinkToken()
	now := a.now()
	return secret, store.Token{Purpose: p, Hash: hash, Data: data, CreatedAt: now, ExpiresAt: now.Add(life)}
}

// putToken stores a token in somebody's name, if what it rests on is still so.
// Errors: CodeInvalidToken if its user is gone, ErrStale, and those of storeFailed.
func (a *Auth) putToken(ctx context.Context, by Authority, t store.Token, still ...UserAt) error {
	return a.putChange(ctx, a.newChange(ctx, by), t, still)
}

func (a *Auth) putChange(ctx context.Context, c store.Change, t store.Token, still []UserAt) error {
	c.IfUsers = still
	return a.keepToken(ctx, store.PutToken{Change: c, Token: t})
}

func (a *Auth) keepToken(ctx context.Context, p store.PutToken) error {
	err := a.store.PutToken(ctx, p)
	if errors.Is(err, store.ErrStale) {
		return err
	}
	return linkFailed(err)
}

// linkPaths are the paths of the pages that links lead to.
func linkPaths(k Kind) string {
	switch k {
	case KindMagicLink:
		return "/magic-link/verify"
	case KindResetPassword, KindWelcome, KindAccountExists:
		return "/reset-password"
	case KindEmailChangeRequested, KindEmailChanged, KindNewDevice:
		return "/secure-account"
	case KindInvitation:
		return "/invitations/accept"
	default:
		return "/verify-email"
	}
}

// linkURL is built from the configured URL, never from a request's Host.
func (a *Auth) linkURL(k Kind, secret string) string {
	base, ok := a.cfg.links.URLs[k]
	if !ok && k == KindWelcome { // the same page, unless there is one of its own
		return a.linkURL(KindResetPassword, secret)
	}
	if !ok {
		base = a.publicURL().String() + linkPaths(k)
	}
	return withQuery(base, url.Values{"token": {secret}})
}

// sendLink mails a link about an address that may have no account. Either way
// it looks up, and stores a token with a message; without an account, and
// unless strangers are welcome, the token is not told to anybody and the
// message is a decoy. It goes to the address as stored, never as asked for.
func (a *Auth) sendLink(ctx context.Context, k Kind, p store.Purpose, life time.Duration, email string, d linkData, strangers bool) error {
	allowed, err := a.takeSend(ctx, atOwners, k, email)
	if err != nil {
		return err
	}
	return a.sendAllowedLink(ctx, allowed, k, p, life, email, d, strangers)
}

// sendAllowedLink is sendLink once its limits are drawn. KindWelcome is for those
// who have no password to change yet, and KindResetPassword for everybody else.
func (a *Auth) sendAllowedLink(ctx context.Context, allowed sendPermit, k Kind, p store.Purpose, life time.Duration, email string, d linkData, strangers bool) error {
	c, err := a.store.Credentials(ctx, store.ByEmail(email))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return storeFailed(err)
	}
	u := c.User
	if k == KindWelcome && !awaited(c) {
		k = KindResetPassword
	}
	to := u.Email
	if to == "" && strangers {
		to = email
	}
	d.Email = to
	secret, link := a.newLink(p, life, d)
	link.UserID, link.Subject = u.ID, store.EmailKey(email)
	message := outbox.Outgoing{Kind: k, To: to, Link: a.linkURL(k, secret), ExpiresIn: life, Permit: allowed}
	if p == store.PurposeMagicLink {
		message.Code = a.addCode(&link, secret, to, d.Challenge)
	}
	err = a.mailToken(ctx, byStranger("send"), link, message, u)
	if errors.Is(err, CodeInvalidToken) { // deleted since the look-up: nobody to write to
		return nil
	}
	return err
}

// peek reads a link without using it up. CodeInvalidToken if it is not live, or
// a decoy.
func (a *Auth) peek(ctx context.Context, p store.Purpose, secret string) (store.Token, linkData, error) {
	return a.peekHash(ctx, p, hashLinkToken(secret))
}

// peekHash is peek by what a token is kept as.
func (a *Auth) peekHash(ctx context.Context, p store.Purpose, hash []byte) (store.Token, linkData, error) {
	t, err := a.store.PeekToken(ctx, p, hash, a.now())
	if err != nil {
		return t, linkData{}, linkFailed(err)
	}
	d, err := readLink(t.Data)
	return t, d, err
}

// readLink reads what newLink kept.
func readLink(data []byte) (d linkData, err error) {
	if err := json.Unmarshal(data, &d); err != nil {
		return d, fail(CodeInternal, err)
	}
	return d, nil
}

// peekMailed is peek for links that were mailed: one without an address is a
// decoy.
func (a *Auth) peekMailed(ctx context.Context, p store.Purpose, secret string) (store.Token, linkData, error) {
	return a.peekMailedHash(ctx, p, hashLinkToken(secret))
}

func (a *Auth) peekMailedHash(ctx context.Context, p store.Purpose, hash []byte) (store.Token, linkData, error) {
	t, d, err := a.peekHash(ctx, p, hash)
	if err == nil && d.Email == "" {
		err = fail(CodeInvalidToken, errors.New("a decoy"))
	}
	return t, d, err
}

// linkFailed makes unknown, used, superseded and expired the same error.
func linkFailed(err error) error {
	return goneOr(CodeInvalidToken, err)
}

// redeem uses a mailed link up together with its effect, which decide works out
// from the user as they are; the redemption it returns is applied only if they
// still are so.
func (a *Auth) redeem(ctx context.Context, p store.Purpose, secret string, decide func(store.Token, linkData) (store.Redemption, error)) (linkData, User, error) {
	return a.redeemHash(ctx, p, hashLinkToken(secret), decide)
}

// redeemHash is redeem by what a token is kept as.
func (a *Auth) redeemHash(ctx context.Context, p store.Purpose, hash []byte, decide func(store.Token, linkData) (store.Redemption, error)) (linkData, User, error) {
	var d linkData
	u, err := change(func() (User, error) {
		t, data, err := a.peekMailedHash(ctx, p, hash)
		if err != nil {
			return User{}, err
		}
		d = data
		r, err := decide(t, d)
		if err != nil {
			return User{}, err
		}
		if err := a.stillMade(ctx, t, d, &r.Change); err != nil {
			return User{}, err
		}
		r.Purpose, r.Hash = p, hash
		_, u, err := a.store.RedeemToken(ctx, r)
		switch {
		case err == nil:
			a.committed(ctx, r.Change, store.OutcomeDone, about(u.ID))
			return u, nil
		case errors.Is(err, store.ErrStale), errors.Is(err, store.ErrConflict) && r.Create != nil:
			return u, store.ErrStale // changed, or signed up, meanwhile
		case errors.Is(err, store.ErrConflict):
			return u, fail(CodeUserAlreadyExists, err)
		}
		return u, linkFailed(err)
	})
	return d, u, err
}

// redeemWithin is redeemHash within a session. One that has ended meanwhile counts
// as none.
func (a *Auth) redeemWithin(ctx context.Context, p store.Purpose, hash []byte, within *Caller, decide func(store.Token, linkData) (store.Redemption, error)) (linkData, User, error) {
	d, u, err := a.redeemHash(ctx, p, hash, decide)
	if within.SessionID != "" && errors.Is(err, CodeSessionEnded) {
		*within = Caller{}
		d, u, err = a.redeemHash(ctx, p, hash, decide)
	}
	return d, u, err
}

// allowRedirect checks redirect_to against the allow-list. Empty is allowed and
// means no redirect.
func (a *Auth) allowRedirect(target string) error {
	if target == "" {
		return nil
	}
	if err := redirect.Check(target, a.redirects()); err != nil {
		return fail(CodeRedirectNotAllowed, notListed(target, a.settings.now.Load().redirects, err))
	}
	return nil
}

// withQuery adds parameters to an allowed redirect target.
func withQuery(target string, add url.Values) string { return redirect.WithQuery(target, add) }

// isLoopbackHost tells whether a URL's host is this machine.
func isLoopbackHost(host string) bool { return redirect.IsLoopback(host) }
