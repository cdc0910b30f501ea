package storetap

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// The capabilities that the admin side rests on.

// forAdmin adds them to a chain.
func (t *Tap) forAdmin(end *link, inner store.Store) {
	if c, ok := store.Capability[store.AnonymizeStore](inner); ok {
		end.next = &anonymizer{*end, t, c}
	}
	if c, ok := store.Capability[store.FirstOwnerStore](inner); ok {
		end.next = &firstOwner{*end, t, c}
	}
	if c, ok := store.Capability[store.InvitationStore](inner); ok {
		end.next = &invitations{*end, t, c}
	}
	if c, ok := store.Capability[store.JobStore](inner); ok {
		end.next = &jobs{*end, t, c}
	}
	if c, ok := store.Capability[store.MessageLogStore](inner); ok {
		end.next = &messageLog{*end, t, c}
	}
}

type messageLog struct {
	link
	tap   *Tap
	inner store.MessageLogStore
}

func (s *messageLog) ListMessages(ctx context.Context, q store.MessageQuery) (list []store.MessageRecord, err error) {
	defer s.tap.enter(&ctx, "ListMessages", nil)(&err, &list)
	return s.inner.ListMessages(ctx, q)
}

func (s *messageLog) FailedMessage(ctx context.Context, id string, now time.Time) (m store.SealedMessage, err error) {
	defer s.tap.enter(&ctx, "FailedMessage", nil)(&err, &m)
	return s.inner.FailedMessage(ctx, id, now)
}

func (s *messageLog) RetryMessage(ctx context.Context, c store.RetryMessage) (err error) {
	defer s.tap.enter(&ctx, "RetryMessage", &c.Change)(&err)
	return s.inner.RetryMessage(ctx, c)
}

type firstOwner struct {
	link
	tap   *Tap
	inner store.FirstOwnerStore
}

func (s *firstOwner) EverOwned(ctx context.Context) (owned bool, err error) {
	defer s.tap.enter(&ctx, "EverOwned", nil)(&err, &owned)
	return s.inner.EverOwned(ctx)
}

type invitations struct {
	link
	tap   *Tap
	inner store.InvitationStore
}

func (s *invitations) ListInvitations(ctx context.Context, q store.InvitationQuery) (list []store.Token, err error) {
	defer s.tap.enter(&ctx, "ListInvitations", nil)(&err, &list)
	return s.inner.ListInvitations(ctx, q)
}

type anonymizer struct {
	link
	tap   *Tap
	inner store.AnonymizeStore
}

func (s *anonymizer) AnonymizeUser(ctx context.Context, c store.AnonymizeUser) (u store.User, err error) {
	defer s.tap.enter(&ctx, "AnonymizeUser", &c.Change)(&err, &u)
	return s.inner.AnonymizeUser(ctx, c)
}
