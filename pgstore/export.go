package pgstore

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth/store"
)

// heldBy returns the statement for the data held about a user ($1) at a time ($2).
func heldBy(user, now string) string {
	return strings.NewReplacer("$1", user, "$2", now).Replace(`select 'device', d.device collate "C", '' collate "C", ''::bytea, d.first_seen_at, d.last_seen_at, d.sequence, d.added_by from auth.devices d
	where d.user_id = $1 and d.device <> '` + forgotten + `' and d.last_seen_at > $2::timestamptz - interval '9600 hours'
	union all select 'token', t.purpose, t.subject, t.data, t.created_at, t.expires_at, 0, 0 from auth.tokens t where t.user_id = $1 and t.expires_at > $2::timestamptz
	union all select 'message', '', '', ''::bytea, m.created_at, m.expires_at, 0, 0 from auth.messages m where m.user_id = $1 and m.expires_at > $2::timestamptz
	order by 1, 5, 6, 2, 3`)
}

var selectHeld = heldBy("$1::uuid", "$2")

// heldOfKey holds the same statement for each condition that finds a user. Its
// parameters are the condition's values without the device, then the time.
var heldOfKey = func() map[string]string {
	all := map[string]string{}
	for condition, now := range map[string]string{byID: "$2", byEmail: "$2", byPhone: "$2", byHandle: "$2", byIdentity: "$3"} {
		all[condition] = `with u as (select u.id from auth.users u where ` + strings.NewReplacer("$2", "$1", "$3", "$2").Replace(condition) + `) ` + heldBy("(select u.id from u)", now)
	}
	return all
}()

// UserRecords lists the devices, tokens and messages stored about a user.
func (s *Store) UserRecords(ctx context.Context, userID string, now time.Time) (store.UserRecords, error) {
	id, ok := canonical(userID)
	if !ok {
		return store.UserRecords{}, ctx.Err()
	}
	var h store.UserRecords
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		rows, err := q.Query(ctx, s.sql(selectHeld), id, now)
		if err == nil {
			h, err = heldOf(rows)
		}
		return err
	})
	return h, err
}

func heldOf(rows pgx.Rows) (h store.UserRecords, err error) {
	var kind, name, subject string
	var data []byte
	var from, to pgtype.Timestamptz
	var by store.Origin
	_, err = pgx.ForEachRow(rows, []any{&kind, &name, &subject, &data, &from, &to, &by.Sequence, &by.AddedBy}, func() error {
		switch kind {
		case "device":
			h.Devices = append(h.Devices, store.DeviceRecord{Device: name, FirstSeenAt: at(from), LastSeenAt: at(to), Origin: by})
		case "token":
			h.Pending = append(h.Pending, store.TokenRecord{Purpose: store.Purpose(name), Subject: subject, Data: data, CreatedAt: at(from), ExpiresAt: at(to)})
		case "message":
			h.Messages = append(h.Messages, store.PendingMessage{CreatedAt: at(from), ExpiresAt: at(to)})
		}
		return nil
	})
	return h, err
}

// Account returns a user with the password hash and the data of UserRecords, in one round
// trip.
func (s *Store) Account(ctx context.Context, key store.UserKey, now time.Time) (store.Credentials, store.UserRecords, error) {
	condition, args := where(key)
	if condition == "" {
		return store.Credentials{}, store.UserRecords{}, cmp.Or(ctx.Err(), store.ErrNotFound)
	}
	var c store.Credentials
	var h store.UserRecords
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		batch := &pgx.Batch{}
		batch.Queue(s.sql(credentials+condition), args...).QueryRow(func(row pgx.Row) (err error) {
			c, err = credentialsOf(row)
			return err
		})
		batch.Queue(s.sql(heldOfKey[condition]), append(args[1:], now)...).Query(func(rows pgx.Rows) (err error) {
			h, err = heldOf(rows)
			return err
		})
		return q.SendBatch(ctx, batch).Close()
	})
	if err != nil {
		return store.Credentials{}, store.UserRecords{}, err
	}
	return c, h, nil
}
