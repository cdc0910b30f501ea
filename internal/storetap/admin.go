package storetap

import (
	"context"
	"time"

	"github.com/authmount/auth"
)

// The capabilities that the admin side rests on.

// forAdmin adds them to a chain.
func (t *Tap) forAdmin(end *link, inner auth.Store) {
	if c, ok := auth.Capability[auth.AnonymizeStore](inner); ok {
		end.next = &anonymizer{*end, t, c}
	}
	if c, ok := auth.Capability[auth.FirstOwnerStore](inner); ok {
		end.next = &firstOwner{*end, t, c}
	}
	if c, ok := auth.Capability[auth.InvitationStore](inner); ok {
		end.next = &invitations{*end, t, c}
	}
	if c, ok := auth.Capability[auth.JobStore](inner); ok {
		end.next = &jobs{*end, t, c}
	}
	if c, ok := auth.Capability[auth.MessageLogStore](inner); ok {
		end.next = &messageLog{*end, t, c}
	}
}

type messageLog struct {
	link
	tap   *Tap
	inner auth.MessageLogStore
}

func (s *messageLog) ListMessages(ctx context.Context, q auth.MessageQuery) (list []auth.MessageRecord, err error) {
	defer s.tap.enter(&ctx, "ListMessages", nil)(&err, &list)
	return s.inner.ListMessages(ctx, q)
}

func (s *messageLog) FailedMessage(ctx context.Context, id string, now time.Time) (m auth.SealedMessage, err error) {
	defer s.tap.enter(&ctx, "FailedMessage", nil)(&err, &m)
	return s.inner.FailedMessage(ctx, id, now)
}

func (s *messageLog) RetryMessage(ctx context.Context, c auth.RetryMessage) (err error) {
	defer s.tap.enter(&ctx, "RetryMessage", &c.Change)(&err)
	return s.inner.RetryMessage(ctx, c)
}

type firstOwner struct {
	link
	tap   *Tap
	inner auth.FirstOwnerStore
}

func (s *firstOwner) EverOwned(ctx context.Context) (owned bool, err error) {
	defer s.tap.enter(&ctx, "EverOwned", nil)(&err, &owned)
	return s.inner.EverOwned(ctx)
}

type invitations struct {
	link
	tap   *Tap
	inner auth.InvitationStore
}

func (s *invitations) ListInvitations(ctx context.Context, q auth.InvitationQuery) (list []auth.Token, err error) {
	defer s.tap.enter(&ctx, "ListInvitations", nil)(&err, &list)
	return s.inner.ListInvitations(ctx, q)
}

type anonymizer struct {
	link
	tap   *Tap
	inner auth.AnonymizeStore
}

func (s *anonymizer) AnonymizeUser(ctx context.Context, c auth.AnonymizeUser) (u auth.User, err error) {
	defer s.tap.enter(&ctx, "AnonymizeUser", &c.Change)(&err, &u)
	return s.inner.AnonymizeUser(ctx, c)
}
