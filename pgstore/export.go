package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth"
)

const selectHeld = `select 'device', d.device, '', ''::bytea, d.first_seen_at, d.last_seen_at from auth.devices d
	where d.user_id = $1::uuid and d.device <> '` + forgotten + `' and d.last_seen_at > $2::timestamptz - interval '9600 hours'
	union all select 'token', t.purpose, t.subject, t.data, t.created_at, t.expires_at from auth.tokens t where t.user_id = $1::uuid and t.expires_at > $2::timestamptz
	union all select 'message', '', '', ''::bytea, m.created_at, m.expires_at from auth.messages m where m.user_id = $1::uuid and m.expires_at > $2::timestamptz
	order by 1, 5, 6, 2`

// Held lists what is kept about a user.
func (s *Store) Held(ctx context.Context, userID string, now time.Time) (auth.Held, error) {
	id, ok := canonical(userID)
	if !ok {
		return auth.Held{}, ctx.Err()
	}
	var h auth.Held
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		h = auth.Held{}
		rows, err := q.Query(ctx, s.sql(selectHeld), id, now)
		if err != nil {
			return err
		}
		var kind, name, subject string
		var data []byte
		var from, to pgtype.Timestamptz
		_, err = pgx.ForEachRow(rows, []any{&kind, &name, &subject, &data, &from, &to}, func() error {
			switch kind {
			case "device":
				h.Devices = append(h.Devices, auth.HeldDevice{Device: name, FirstSeenAt: at(from), LastSeenAt: at(to)})
			case "token":
				h.Pending = append(h.Pending, auth.HeldToken{Purpose: auth.Purpose(name), Subject: subject, Data: data, CreatedAt: at(from), ExpiresAt: at(to)})
			case "message":
				h.Messages = append(h.Messages, auth.HeldMessage{CreatedAt: at(from), ExpiresAt: at(to)})
			}
			return nil
		})
		return err
	})
	return h, err
}
