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

// Lifetimes of links and codes.
const (
	magicLife    = 15 * time.Minute
	verifyLife   = 24 * time.Hour
	resetLife    = time.Hour
	exchangeLife = time.Minute
)

// linkData is the data of a link, stored with its token.
type linkData struct {
	Email      string `json:"email,omitempty"` // the email address to which it was sent and which it verifies; "": a decoy
	RedirectTo string `json:"redirect_to,omitempty"`
	Challenge  string `json:"challenge,omitempty"` // PKCE S256 (RFC 7636)
	Device     string `json:"device,omitempty"`    // verification: the user agent that signed up
	Refuses    string `json:"refuses,omitempty"`   // of a refusal: the account that requested the address
	Refused    string `json:"refused,omitempty"`   // of a refusal: that address
	AMR        []AMR  `json:"amr,omitempty"`       // exchange codes: the authentication so far; notices: that of the reported session

	// Of a notice: the time and the sequence at which Email was verified, and the sequence
	// of the reported session; 0 if that is the token's own.
	VerifiedAt       time.Time `json:"verified_at,omitzero"`
	VerifiedSequence int64     `json:"verified_sequence,omitempty"`
	Sequence         int64     `json:"sequence,omitempty"`
	Joined           int64     `json:"joined,omitempty"` // of the identity that joined the account in the reported sign-in

	Marks    []recoveryMark     `json:"marks,omitempty"`    // not for links: see recoveryMark
	Reported []reportedSessions `json:"reported,omitempty"` // not for links: see reportedSessions

	Identity   *Identity        `json:"identity,omitempty"`   // exchange codes: the identity to link
	SessionID  string           `json:"session_id,omitempty"` // exchange codes and new addresses: the requesting session, which must still be live; MFA and enrolment: the session to raise; notices: the reported session
	By         credentialRef    `json:"by,omitzero"`          // exchange, MFA and enrolment: the credential that was used
	Accepts    []byte           `json:"accepts,omitempty"`    // exchange and MFA: the hash of the invitation that the sign-in accepts with a second factor
	Acts       string           `json:"acts,omitempty"`       // exchange codes: the impersonation to continue in, instead of an authentication
	Invitation *host.Invitation `json:"invitation,omitempty"` // of an invitation
	Maker      *host.LinkMaker  `json:"maker,omitempty"`      // of a link that an operator created
	Welcome    bool             `json:"welcome,omitempty"`    // of a link that the application or an operator sent to a new account
	Opened     *opening         `json:"opened,omitempty"`     // exchange codes: the link to redeem, instead of an authentication

	RPID        string `json:"rp_id,omitempty"`        // not of a link: see recordRPID
	RemovedFrom string `json:"removed_from,omitempty"` // not of a link: the account that had a passkey, see recordRemoved

	Remember *bool `json:"remember,omitempty"` // of a sign-in: the remember choice at its start
}

// newLink returns a single-use token. The caller sets its user and subject.
func (a *Auth) newLink(p store.Purpose, life time.Duration, d linkData) (secret string, t store.Token) {
	data, err := json.Marshal(d)
	if err != nil {
		panic(err) // strings only
	}
	secret, hash := newLinkToken()
	now := a.now()
	return secret, store.Token{Purpose: p, Hash: hash, Data: data, CreatedAt: now, ExpiresAt: now.Add(life)}
}

// putToken stores a token under an authority, if the conditions still hold. Errors:
// CodeInvalidToken (its user does not exist any more), ErrStale, those of storeFailed.
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

// linkPaths returns the path of the page that a link opens.
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

// linkURL uses the configured URL, never a request's Host.
func (a *Auth) linkURL(k Kind, secret string) string {
	base, ok := a.cfg.links.URLs[k]
	if !ok && k == KindWelcome { // the same page, unless a separate one is configured
		return a.linkURL(KindResetPassword, secret)
	}
	if !ok {
		base = a.publicURL().String() + linkPaths(k)
	}
	return withQuery(base, url.Values{"token": {secret}})
}

// sendLink mails a link to an email address that may have no account. In both cases it
// reads the account, and stores a token and a message. Without an account, and unless
// unknownToo is set, nobody receives the token and the message is a decoy. An existing
// account gets the message at its stored address, not at the requested spelling.
//
// Known devices of an account that has verified the address have limits and a subject of
// their own. Strangers' requests therefore neither refuse nor replace the owner's. subject is
// that of the token.
func (a *Auth) sendLink(ctx context.Context, k Kind, p store.Purpose, life time.Duration, email string, d linkData, unknownToo bool) (subject string, err error) {
	c, err := a.store.Credentials(ctx, onThisDevice(ctx, store.ByEmail(email)))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return "", storeFailed(err)
	}
	source, subject := atOwners, store.EmailKey(email)
	if c.User.EmailVerified() && deviceOf(ctx, c) != "" {
		source, subject = atKnownDevice, ofKnownDevice(subject)
	}
	allowed, err := a.takeSend(ctx, source, k, email)
	if err != nil {
		return "", err
	}
	if p == store.PurposeMagicLink && !c.User.EmailVerified() && hasHolder(c.User) {
		c = store.Credentials{} // the mailbox's reader may be another person, who gets an account of their own
	}
	if p == store.PurposeMagicLink {
		switch takes, err := a.takesLink(ctx, c); {
		case err != nil:
			return "", err
		case !takes:
			c, unknownToo = store.Credentials{}, false
		}
	}
	return subject, a.sendAllowedLink(ctx, allowed, c, subject, k, p, life, email, d, unknownToo)
}

// ofKnownDevice is the subject of tokens for an email address that a known device of its
// account requested.
func ofKnownDevice(key string) string { return "known " + key }

// sendAllowedLink is sendLink after its limits. c is the account that has the address, if any.
// KindWelcome is only for users without a password; it becomes KindResetPassword for all others.
func (a *Auth) sendAllowedLink(ctx context.Context, allowed sendPermit, c store.Credentials, subject string, k Kind, p store.Purpose, life time.Duration, email string, d linkData, unknownToo bool) error {
	u := c.User
	if k == KindWelcome && !awaitsPassword(c) {
		k = KindResetPassword
	}
	to := u.Email
	if to == "" && unknownToo {
		to = email
	}
	d.Email = to
	secret, link := a.newLink(p, life, d)
	link.UserID, link.Subject = u.ID, subject
	message := outbox.Outgoing{Kind: k, To: to, Link: a.linkURL(k, secret), ExpiresIn: life, Permit: allowed}
	if p == store.PurposeMagicLink {
		message.Code = a.addCode(&link, secret, to, d.Challenge)
	}
	err := a.mailToken(ctx, byFlow("send"), link, message, u)
	if errors.Is(err, CodeInvalidToken) { // deleted since the read: no recipient
		return nil
	}
	return err
}

// peek reads a link without using it up. Errors: CodeInvalidToken (not valid any more).
func (a *Auth) peek(ctx context.Context, p store.Purpose, secret string) (store.Token, linkData, error) {
	return a.peekHash(ctx, p, hashLinkToken(secret))
}

// peekHash is peek by the stored hash.
func (a *Auth) peekHash(ctx context.Context, p store.Purpose, hash []byte) (store.Token, linkData, error) {
	t, err := a.store.PeekToken(ctx, p, hash, a.now())
	if err != nil {
		return t, linkData{}, linkFailed(err)
	}
	d, err := readLink(t.Data)
	return t, d, err
}

// readLink decodes the data that newLink stored.
func readLink(data []byte) (d linkData, err error) {
	if err := json.Unmarshal(data, &d); err != nil {
		return d, fail(CodeInternal, err)
	}
	return d, nil
}

// peekMailed is peek for mailed links. It refuses those without an address, because they
// are decoys.
func (a *Auth) peekMailed(ctx context.Context, p store.Purpose, secret string) (store.Token, linkData, error) {
	return a.peekMailedHash(ctx, p, hashLinkToken(secret))
}

func (a *Auth) peekMailedHash(ctx context.Context, p store.Purpose, hash []byte) (store.Token, linkData, error) {
	t, d, err := a.peekHash(ctx, p, hash)
	if err == nil && d.Email == "" && (d.Invitation == nil || d.Invitation.Phone == "") {
		err = fail(CodeInvalidToken, errors.New("a decoy"))
	}
	return t, d, err
}

// linkFailed returns the same error for unknown, used, superseded and expired links.
func linkFailed(err error) error {
	return goneOr(CodeInvalidToken, err)
}

// redeem uses up a mailed link together with its effect. decide computes the effect from
// the current user, and the redemption is applied only if the user has not changed.
func (a *Auth) redeem(ctx context.Context, p store.Purpose, secret string, decide func(store.Token, linkData) (store.Redemption, error)) (linkData, User, error) {
	return a.redeemHash(ctx, p, hashLinkToken(secret), decide)
}

// redeemHash is redeem by the stored hash.
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
		if err := a.requireMaker(ctx, t, d, &r.Change); err != nil {
			return User{}, err
		}
		r.Purpose, r.Hash = p, hash
		_, u, err := a.store.RedeemToken(ctx, r)
		switch {
		case err == nil:
			a.committed(ctx, r.Change, store.OutcomeDone, about(u.ID))
			return u, nil
		case errors.Is(err, store.ErrStale), errors.Is(err, store.ErrConflict) && r.Create != nil:
			return u, store.ErrStale // changed or signed up meanwhile
		case errors.Is(err, store.ErrConflict):
			return u, fail(CodeUserAlreadyExists, err)
		}
		return u, linkFailed(err)
	})
	return d, u, err
}

// redeemWithin is redeemHash within a session. If the session has ended meanwhile, it
// continues without one.
func (a *Auth) redeemWithin(ctx context.Context, p store.Purpose, hash []byte, within *Caller, decide func(store.Token, linkData) (store.Redemption, error)) (linkData, User, error) {
	d, u, err := a.redeemHash(ctx, p, hash, decide)
	if within.SessionID != "" && errors.Is(err, CodeSessionEnded) {
		*within = Caller{}
		d, u, err = a.redeemHash(ctx, p, hash, decide)
	}
	return d, u, err
}

// allowRedirect checks redirect_to against the allow-list. "" is allowed and means no
// redirect.
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

// isLoopbackHost reports whether a URL's host is this machine.
func isLoopbackHost(host string) bool { return redirect.IsLoopback(host) }
