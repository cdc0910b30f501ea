package storetap

import (
	"context"

	"github.com/authmount/auth"
)

// The capabilities that the admin side rests on.

// forAdmin adds them to a chain.
func (t *Tap) forAdmin(end *link, inner auth.Store) {
	if c, ok := auth.Capability[auth.AnonymizeStore](inner); ok {
		end.next = &anonymizer{*end, t, c}
	}
	if c, ok := auth.Capability[auth.InvitationStore](inner); ok {
		end.next = &invitations{*end, t, c}
	}
	if c, ok := auth.Capability[auth.JobStore](inner); ok {
		end.next = &jobs{*end, t, c}
	}
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
