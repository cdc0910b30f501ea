package memstore

import (
	"context"
	"slices"

	"github.com/authmount/auth/store"
)

// ListInvitations returns a page of invitations. It scans all tokens, because memory is for tests and small services.
func (s *Store) ListInvitations(ctx context.Context, q store.InvitationQuery) ([]store.Token, error) {
	unlock, err := s.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	now := utc(q.Now)
	list := []store.Token{}
	for _, t := range s.tokens {
		picked := t.Purpose == store.PurposeInvitation && t.Subject != "" && (q.Subject == "" || t.Subject == q.Subject) && now.Before(t.ExpiresAt)
		if picked && (q.After == nil || t.Cursor().Compare(*q.After) > 0) {
			list = append(list, *t)
		}
	}
	slices.SortFunc(list, func(a, b store.Token) int { return a.Cursor().Compare(b.Cursor()) })
	list = slices.Clip(list[:min(len(list), q.Limit)])
	for i := range list {
		list[i] = copyToken(list[i])
	}
	return list, nil
}
