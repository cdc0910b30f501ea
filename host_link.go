package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// Links and codes that operators create or send: the same as those of the flows.

func (k kit) CheckLinks(check func(ctx context.Context, maker host.LinkMaker, u User) (host.Terms, error)) {
	k.a.makers.Store(&check)
}

// requireMaker adds to a redemption the conditions under which the link's creator may
// still use it. A process without the admin API cannot check them, so it refuses the
// link.
func (a *Auth) requireMaker(ctx context.Context, t store.Token, d linkData, c *store.Change) error {
	if d.Maker == nil {
		return nil
	}
	check := a.makers.Load()
	if check == nil {
		return fail(CodeUnavailable, errors.New("links of operators work only in a process that called admin.New"))
	}
	u, err := a.store.User(ctx, store.ByID(t.UserID))
	if err != nil {
		return linkFailed(err)
	}
	terms, err := (*check)(ctx, *d.Maker, u)
	if err != nil {
		return err
	}
	applyTerms(c, terms)
	return nil
}

// recordMaker records the link's creator in the link.
func recordMaker(t *store.Token, maker host.LinkMaker) error {
	d, err := readLink(t.Data)
	if err == nil {
		d.Maker = &maker
		t.Data, err = json.Marshal(d)
	}
	return err
}

func (k kit) Link(ctx context.Context, c *store.Change, t host.LinkType, userID, redirectTo string, maker host.LinkMaker) (host.CreatedLink, error) {
	if t == host.LinkCode {
		return host.CreatedLink{}, invalid("type", "has no link")
	}
	token, o, u, err := k.a.operatorsLink(ctx, t, userID, redirectTo)
	if err != nil {
		return host.CreatedLink{}, err
	}
	maker.By, maker.CredentialRevision = actorOf(c.By, Event{}), u.CredentialRevision
	if err := recordMaker(&token, maker); err != nil {
		return host.CreatedLink{}, err
	}
	token.Code, token.CodeExpiresAt, token.MaxAttempts = nil, time.Time{}, 0
	if err := k.a.store.PutToken(ctx, store.PutToken{Change: *c, Token: token}); err != nil {
		return host.CreatedLink{}, err
	}
	return host.CreatedLink{URL: o.Link, ExpiresAt: token.ExpiresAt}, nil
}

func (k kit) SendLink(ctx context.Context, c *store.Change, send *host.Send, t host.LinkType, userID, redirectTo string) (string, error) {
	a := k.a
	token, o, u, err := a.operatorsLink(ctx, t, userID, redirectTo)
	if err != nil {
		return "", err
	}
	if o.Permit, err = drawSend(ctx, a, send, o.Kind, o.To); err != nil {
		return "", err
	}
	before := len(c.Messages)
	a.enclose(ctx, c, o, u, &token)
	if len(c.Messages) == before {
		return "", fail(CodeInternal, errors.New("the message is not part of the change"))
	}
	id := c.Messages[before].ID
	if c.Idempotency != nil {
		c.Idempotency.Result = []byte(strconv.Quote(id)) // JSON, as packages built on Auth store it
	}
	return id, a.store.PutToken(ctx, store.PutToken{Change: *c, Token: token})
}

// operatorsLink creates a link or code for a user, and the message that carries it.
func (a *Auth) operatorsLink(ctx context.Context, t host.LinkType, userID, redirectTo string) (store.Token, outbox.Outgoing, User, error) {
	c, err := a.store.Credentials(ctx, store.ByID(userID))
	if err != nil {
		return store.Token{}, outbox.Outgoing{}, User{}, goneOr(CodeUserNotFound, err)
	}
	u := c.User
	if err := a.mayHaveLink(ctx, t, c); err != nil {
		return store.Token{}, outbox.Outgoing{}, u, err
	}
	if err := a.allowRedirect(redirectTo); err != nil {
		return store.Token{}, outbox.Outgoing{}, u, err
	}
	d := linkData{Email: u.Email, RedirectTo: redirectTo}
	switch t {
	case host.LinkCode:
		code, token := a.newPhoneCode(store.PurposePhoneCode, u.Phone)
		token.UserID = u.ID
		return token, a.phoneMessage(sendPermit{}, u.Phone, code), u, nil
	case host.LinkVerify:
		token, o := a.newVerification(KindVerifyEmail, u, d)
		return token, o, u, nil
	case host.LinkInvite:
		token, o := a.newWelcome(u, redirectTo)
		return token, o, u, nil
	}
	kind, purpose, life := KindResetPassword, store.PurposeReset, resetLife
	if t == host.LinkMagicLink {
		kind, purpose, life = KindMagicLink, store.PurposeMagicLink, magicLife
	}
	secret, token := a.newLink(purpose, life, d)
	token.UserID, token.Subject = u.ID, store.EmailKey(u.Email)
	o := outbox.Outgoing{Kind: kind, To: u.Email, Link: a.linkURL(kind, secret), ExpiresIn: life}
	if t == host.LinkMagicLink {
		o.Code = a.addCode(&token, secret, u.Email, "")
	}
	return token, o, u, nil
}

// mayHaveLink returns an error unless a link or code of type t makes sense for the
// account.
func (a *Auth) mayHaveLink(ctx context.Context, t host.LinkType, c store.Credentials) error {
	u, settings := c.User, a.Settings(ctx)
	off := false
	switch t {
	case host.LinkVerify:
	case host.LinkReset, host.LinkInvite:
		off = !settings.Password.On()
	case host.LinkMagicLink:
		off = !settings.MagicLink.On()
	case host.LinkCode:
		off = !a.phoneOn(ctx)
	default:
		return invalid("type", "has to be verify, reset, magic_link, invite or code")
	}
	switch {
	case u.Banned(a.now()):
		return fail(CodeUserBanned, nil)
	case off:
		return fail(CodeMethodDisabled, nil)
	case t == host.LinkCode && u.Phone == "":
		return invalid("type", "needs an account with a phone number")
	case t != host.LinkCode && u.Email == "":
		return invalid("type", "needs an account with an e-mail address")
	case t == host.LinkVerify && u.EmailVerified():
		return invalid("type", "needs an address that is not confirmed yet")
	case t == host.LinkInvite && c.PasswordHash != "":
		return invalid("type", "needs an account without a password")
	}
	return nil
}

// Methods for invitations of the admin API.

// Lifetimes of invitations.
const (
	invitationLife     = 7 * 24 * time.Hour
	leastInvitation    = 5 * time.Minute
	mostInvitationLife = 30 * 24 * time.Hour
)

// drawSend counts an operator's message by its kind and recipient. It does not use
// the limit on messages that strangers request.
func drawSend(ctx context.Context, a *Auth, s *host.Send, k Kind, to string) (sendPermit, error) {
	permit, ok := s.Private.(sendPermit)
	if !ok {
		p, err := a.takeUnrequested(ctx, atOperator, k, to)
		if err == nil && countedAs(k) == KindPhoneCode {
			p, err = a.spendSMS(ctx, to, true) // strangers cannot request it, so no part of the budget is closed to it
		}
		if err != nil {
			return p, err
		}
		permit, s.Private = p, p
	}
	return permit, nil
}

func (k kit) CheckInvitations(check func(context.Context, host.Invitation) (host.Terms, error)) {
	k.a.inviters.Store(&check)
}

func (k kit) CheckInvitation(inv host.Invitation, life time.Duration) (host.Invitation, error) {
	address := inv.Phone
	if address == "" {
		email, err := requiredEmail(inv.Email)
		if err != nil {
			return inv, invalid("email", err.Error())
		}
		inv.Email, address = email, email
	}
	if err := checkMetadata(inv.Metadata); err != nil {
		return inv, invalid("metadata", err.Error())
	}
	if err := checkLocale(inv.Locale); err != nil {
		return inv, err
	}
	if life == 0 {
		life = invitationLife
	}
	if life < leastInvitation || life > mostInvitationLife {
		return inv, invalid("expires_in", "has to be from 300 to 2592000 seconds")
	}
	inv.ID, inv.Roles, inv.Metadata = invitationID(address), rolesWith(nil, inv.Roles), orEmptyMap(inv.Metadata)
	inv.SentAt = k.a.now()
	inv.ExpiresAt = inv.SentAt.Add(life)
	if inv.CreatedAt.IsZero() {
		inv.CreatedAt = inv.SentAt
	}
	return inv, k.a.allowRedirect(inv.RedirectTo)
}

func (k kit) Invite(ctx context.Context, c *store.Change, send *host.Send, inv host.Invitation, seen []byte) error {
	a := k.a
	inv.Shown = false
	permit, err := drawSend(ctx, a, send, KindInvitation, inv.Email)
	if err != nil {
		return err
	}
	t, link := a.newInvitation(inv)
	a.enclose(ctx, c, outbox.Outgoing{Kind: KindInvitation, Given: inv.Roles, Factor: a.mfaRequired(ctx, User{Email: inv.Email, Roles: rolesWith(inv.Roles, send.Roles)}), To: inv.Email, Link: link, ExpiresIn: inv.ExpiresAt.Sub(inv.SentAt), Roles: send.Roles, By: send.By, Permit: permit}, User{UserMetadata: withLocale(nil, inv.Locale)}, &t)
	return a.store.PutToken(ctx, store.PutToken{Change: *c, Token: t, Supersedes: &seen})
}

func (k kit) ShowInvitation(ctx context.Context, c store.Change, inv host.Invitation, seen []byte) (host.CreatedLink, error) {
	inv.Shown = true
	t, link := k.a.newInvitation(inv)
	return host.CreatedLink{URL: link, ExpiresAt: inv.ExpiresAt}, k.a.store.PutToken(ctx, store.PutToken{Change: c, Token: t, Supersedes: &seen})
}

// newInvitation returns the token of an invitation and its link.
func (a *Auth) newInvitation(inv host.Invitation) (store.Token, string) {
	secret, t := a.newLink(store.PurposeInvitation, inv.ExpiresAt.Sub(inv.SentAt), linkData{Email: inv.Email, RedirectTo: inv.RedirectTo, Invitation: &inv})
	t.Subject, t.CreatedAt, t.ExpiresAt = inv.ID, inv.SentAt, inv.ExpiresAt
	return t, a.linkURL(KindInvitation, secret)
}

func (k kit) WithdrawInvitation(ctx context.Context, c store.Change, hash []byte) error {
	_, _, err := k.a.store.RedeemToken(ctx, store.Redemption{Change: c, Purpose: store.PurposeInvitation, Hash: hash})
	return err
}

func (k kit) Invitations(ctx context.Context, id string, after *store.InvitationCursor, limit int) (list []host.Invitation, hashes [][]byte, next *store.InvitationCursor, err error) {
	if k.a.admin == nil {
		return nil, nil, nil, fail(CodeInternal, lacks[store.AdminStore]())
	}
	tokens, err := k.a.admin.ListInvitations(ctx, store.InvitationQuery{Subject: id, Now: k.a.now(), After: after, Limit: limit})
	if err != nil {
		return nil, nil, nil, storeFailed(err)
	}
	for _, t := range tokens {
		var d linkData
		if err := json.Unmarshal(t.Data, &d); err != nil || d.Invitation == nil {
			return nil, nil, nil, fail(CodeInternal, errors.Join(errors.New("the invitation has no sealed content"), err))
		}
		list, hashes = append(list, *d.Invitation), append(hashes, slices.Clone(t.Hash))
	}
	if len(tokens) == limit {
		last := tokens[limit-1].Cursor()
		next = &last
	}
	return list, hashes, next, nil
}

func (k kit) RetryMessage(ctx context.Context, c *store.Change, send *host.Send, id string) error {
	a := k.a
	if a.journal == nil {
		return fail(CodeInternal, lacks[store.Journal]())
	}
	m, err := a.journal.FailedMessage(ctx, id, c.Now)
	if err != nil {
		return err
	}
	o, err := a.openMessage(m)
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrNotFound, err) // sealed with a secret that is no longer configured
	}
	if _, err := drawSend(ctx, a, send, o.Kind, o.To); err != nil {
		return err
	}
	return a.journal.RetryMessage(ctx, store.RetryMessage{Change: *c, ID: id})
}

func (k kit) SendDue() { k.a.outbox.Wake() }
