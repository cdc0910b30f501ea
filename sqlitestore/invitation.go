package sqlitestore

import (
	"context"

	"github.com/authmount/auth/store"
)

// ListInvitations returns a page of invitations, newest first.
func (s *Store) ListInvitations(ctx context.Context, q store.InvitationQuery) ([]store.Token, error) {
	b := &query{sql: selectTokens + ` where t.purpose = 'invitation' and t.subject <> ''`}
	b.where(`t.expires_at > ?`, micros(q.Now))
	b.same(`t.subject`, q.Subject)
	if q.After != nil {
		b.where(`(t.created_at, t.subject) < (?, ?)`, micros(q.After.CreatedAt), q.After.Subject)
	}
	b.end(` order by t.created_at desc, t.subject desc limit ?`, q.Limit)
	return listed(ctx, s, b, scanToken)
}
