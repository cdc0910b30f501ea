package auth

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// What the admin side builds invitations on.

// How long invitations live.
const (
	invitationLife     = 7 * 24 * time.Hour
	leastInvitation    = 5 * time.Minute
	mostInvitationLife = 30 * 24 * time.Hour
)

// drawSend draws for a message that an operator sends: by its kind and whom it goes to,
// apart from what strangers ask for.
func drawSend(ctx context.Context, a *Auth, s *host.Send, k Kind, to string) (sendPermit, error) {
	drawn, ok := s.Private.(sendPermit)
	if !ok {
		p, err := a.takeUnasked(ctx, atOffice, k, to)
		if err == nil && countedAs(k) == KindPhoneCode {
			p, err = a.spendSMS(ctx, to)
		}
		if err != nil {
			return p, err
		}
		drawn, s.Private = p, p
	}
	return drawn, nil
}

func (k kit) JudgeInvitations(judge func(context.Context, host.Invitation) (host.Terms, error)) {
	k.a.inviters.Store(&judge)
}

func (k kit) CleanInvitation(inv host.Invitation, life time.Duration) (host.Invitation, error) {
	email, err := requiredEmail(inv.Email)
	if err != nil {
		return inv, invalid("email", err.Error())
	}
	if err := checkMetadata(inv.Metadata); err != nil {
		return inv, invalid("metadata", err.Error())
	}
	if life == 0 {
		life = invitationLife
	}
	if life < leastInvitation || life > mostInvitationLife {
		return inv, invalid("expires_in", "has to be from 300 to 2592000 seconds")
	}
	inv.ID, inv.Email, inv.Roles, inv.Metadata = invitationID(email), email, rolesWith(nil, inv.Roles), orEmptyMap(inv.Metadata)
	inv.SentAt = k.a.now()
	inv.ExpiresAt = inv.SentAt.Add(life)
	if inv.CreatedAt.IsZero() {
		inv.CreatedAt = inv.SentAt
	}
	return inv, k.a.allowRedirect(inv.RedirectTo)
}

func (k kit) Invite(ctx context.Context, c *store.Change, send *host.Send, inv host.Invitation, seen []byte) error {
	a := k.a
	permit, err := drawSend(ctx, a, send, KindInvitation, inv.Email)
	if err != nil {
		return err
	}
	life := inv.ExpiresAt.Sub(inv.SentAt)
	secret, t := a.newLink(store.PurposeInvitation, life, linkData{Email: inv.Email, RedirectTo: inv.RedirectTo, Invitation: &inv})
	t.Subject, t.CreatedAt, t.ExpiresAt = inv.ID, inv.SentAt, inv.ExpiresAt
	a.enclose(ctx, c, outbox.Outgoing{Kind: KindInvitation, To: inv.Email, Link: a.linkURL(KindInvitation, secret), ExpiresIn: life, Permit: permit}, User{}, &t)
	return a.store.PutToken(ctx, store.PutToken{Change: *c, Token: t, Supersedes: &seen})
}

func (k kit) WithdrawInvitation(ctx context.Context, c store.Change, hash []byte) error {
	_, _, err := k.a.store.RedeemToken(ctx, store.Redemption{Change: c, Purpose: store.PurposeInvitation, Hash: hash})
	return err
}

func (k kit) Invitations(ctx context.Context, id string, after *store.InvitationCursor, limit int) (list []host.Invitation, hashes [][]byte, next *store.InvitationCursor, err error) {
	s, ok := store.Capability[store.InvitationStore](k.a.store)
	if !ok {
		return nil, nil, nil, fail(CodeInternal, errors.New("the store is no store.InvitationStore"))
	}
	tokens, err := s.ListInvitations(ctx, store.InvitationQuery{Subject: id, Now: k.a.now(), After: after, Limit: limit})
	if err != nil {
		return nil, nil, nil, storeFailed(err)
	}
	for _, t := range tokens {
		var d linkData
		if err := json.Unmarshal(t.Data, &d); err != nil || d.Invitation == nil {
			return nil, nil, nil, fail(CodeInternal, errors.Join(errors.New("an invitation without particulars"), err))
		}
		list, hashes = append(list, *d.Invitation), append(hashes, slices.Clone(t.Hash))
	}
	if len(tokens) == limit {
		last := tokens[limit-1].Cursor()
		next = &last
	}
	return list, hashes, next, nil
}
