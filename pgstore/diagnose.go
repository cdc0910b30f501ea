package pgstore

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/authmount/auth/store"
)

// diagnose counts up to 10,000 waiting messages, and finds the oldest of those that it
// counts.
const diagnose = `select clock_timestamp(), (select max(v.version) from auth.schema_version v), count(m.*), min(m.created_at)
	from (select m.created_at from auth.messages m where not m.failed order by m.next_at limit 10000) m`

// Diagnose reports the state of the store.
func (s *Store) Diagnose(ctx context.Context) (store.StoreDiagnosis, error) {
	var d store.StoreDiagnosis
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		var now, oldest pgtype.Timestamptz
		err := q.QueryRow(ctx, s.sql(diagnose)).Scan(&now, &d.Schema, &d.Waiting, &oldest)
		d.Now, d.Oldest = at(now), at(oldest)
		return err
	})
	if err != nil {
		return store.StoreDiagnosis{}, err
	}
	d.Feeds = int(s.feeds.Load())
	if n := s.fedAt.Load(); n > 0 {
		d.FeedAt = time.Unix(0, n).UTC()
	}
	return d, nil
}
