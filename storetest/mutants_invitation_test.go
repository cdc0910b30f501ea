package storetest_test

import (
	"context"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// invitationMutants are stores with faulty lists of tokens.
func invitationMutants() map[string]mutant {
	const page, one = "invitations/live tokens of a purpose are listed, newest first, by page", "invitations/the token about a subject is found whole, superseded and used ones are not"
	listing := func(edit func(q *store.InvitationQuery, list []store.Token) []store.Token) func(base) store.Store {
		return func(b base) store.Store { return inviteder{b, capability[store.AdminStore](b), edit} }
	}
	return map[string]mutant{
		"pages of tokens overlap": caught(page, listing(func(q *store.InvitationQuery, l []store.Token) []store.Token { q.After = nil; return l })),
		"tokens come oldest first": caught(page, listing(func(_ *store.InvitationQuery, l []store.Token) []store.Token {
			slices.Reverse(l)
			return l
		})),
		"tokens that are over are listed": caught(page, listing(func(q *store.InvitationQuery, l []store.Token) []store.Token {
			q.Now = q.Now.Add(-24 * time.Hour)
			return l
		})),
		"a token is listed about anything": caught(one, listing(func(q *store.InvitationQuery, l []store.Token) []store.Token { q.Subject = ""; return l })),
		"listed tokens have no data": caught(one, listing(func(_ *store.InvitationQuery, l []store.Token) []store.Token {
			for i := range l {
				l[i].Data = nil
			}
			return l
		})),
	}
}

// inviteder alters the query for tokens, or its result.
type inviteder struct {
	base
	store.AdminStore
	edit func(*store.InvitationQuery, []store.Token) []store.Token
}

func (s inviteder) ListInvitations(ctx context.Context, q store.InvitationQuery) ([]store.Token, error) {
	s.edit(&q, nil)
	list, err := s.AdminStore.ListInvitations(ctx, q)
	return s.edit(&q, list), err
}
