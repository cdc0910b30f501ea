package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/store"
)

// listInvitations is in the order of tokens_invitations_idx.
const listInvitations = `select ` + tokenColumns + ` from auth.tokens t
	where t.purpose = '` + string(store.PurposeInvitation) + `' and t.subject <> '' and t.expires_at > $1::timestamptz
		and ($2::timestamptz is null or (t.created_at, t.subject collate "C") < ($2::timestamptz, $3::text))
	order by t.created_at desc, t.subject collate "C" desc limit $4::integer`

const selectInvitation = `select ` + tokenColumns + ` from auth.tokens t
	where t.purpose = '` + string(store.PurposeInvitation) + `' and t.subject = $2::text and t.subject <> '' and t.expires_at > $1::timestamptz`

// ListInvitations lists the live invitations.
func (s *Store) ListInvitations(ctx context.Context, q store.InvitationQuery) ([]store.Token, error) {
	sql, args := listInvitations, []any{q.Now, nil, "", q.Limit}
	if q.After != nil {
		args[1], args[2] = q.After.CreatedAt, q.After.Subject
	}
	if q.Subject != "" {
		sql, args = selectInvitation, []any{q.Now, q.Subject}
	}
	var list []store.Token
	err := s.do(ctx, func(ctx context.Context, on querier) error {
		rows, err := on.Query(ctx, s.sql(sql), args...)
		if err == nil {
			list, err = pgx.CollectRows(rows, tokenOf)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}
