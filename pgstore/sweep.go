package pgstore

import (
	"context"
	"time"

	"github.com/authmount/auth/store"
)

// lease is the time for which the instance that swept last remains the one that sweeps.
const lease = 3 * time.Minute

const takeLease = `insert into auth.leases as l (name, holder, until) values ('sweep', $1::uuid, $2::timestamptz + $3::interval)
	on conflict (name) do update set holder = excluded.holder, until = excluded.until
	where l.holder = excluded.holder or l.until <= $2::timestamptz`

// The rows to delete are found once, in a "with" part. Postgres may run a subquery (in
// …) for each row of the table, and then find others each time. $1 is the current time,
// $2 the limit.
const (
	//nolint:gosec // names of columns
	sweepTokens = `with over as (select purpose, hash from auth.tokens where expires_at <= $1::timestamptz limit $2::integer for update skip locked)
	delete from auth.tokens t using over where t.purpose = over.purpose and t.hash = over.hash`

	sweepSessions = `with over as (select id from auth.sessions where ends_on <= ($1::timestamptz at time zone 'UTC')::date and least(idle_until, expires_at) <= $1::timestamptz
		limit $2::integer for update skip locked)
	delete from auth.sessions s using over where s.id = over.id`

	sweepLimits = `with over as (select key from auth.limits where tat <= (extract(epoch from $1::timestamptz) * 1000000)::bigint * 1000 limit $2::integer for update skip locked)
	delete from auth.limits l using over where l.key = over.key`

	// By the database's clock, as the rows are.
	sweepRevocations = `with over as (select id from auth.revocations where at < now() - interval '25 hours' and $1::timestamptz is not null limit $2::integer for update skip locked)
	delete from auth.revocations r using over where r.id = over.id`

	sweepIdempotency = `with over as (select actor, route, key from auth.idempotency where expires_at <= $1::timestamptz limit $2::integer for update skip locked)
	delete from auth.idempotency i using over where i.actor = over.actor and i.route = over.route and i.key = over.key`

	sweepDevices = `with over as (select user_id, device from auth.devices where seen_on <= (($1::timestamptz - interval '9600 hours') at time zone 'UTC')::date
			and last_seen_at <= $1::timestamptz - interval '9600 hours'
		limit $2::integer for update skip locked)
	delete from auth.devices d using over where d.user_id = over.user_id and d.device = over.device`

	sweepCounts = `with over as (select metric, at, label from auth.counts where at < $1::timestamptz - interval '9600 hours' limit $2::integer for update skip locked)
	delete from auth.counts c using over where c.metric = over.metric and c.at = over.at and c.label = over.label`

	// Longer than a month, the longest period.
	sweepActive = `with over as (select since, period, user_id from auth.active where since < (($1::timestamptz - interval '960 hours') at time zone 'UTC')::date
		limit $2::integer for update skip locked)
	delete from auth.active a using over where a.since = over.since and a.period = over.period and a.user_id = over.user_id`

	sweepImpersonations = `with over as (select id from auth.impersonations where expires_at <= $1::timestamptz limit $2::integer for update skip locked)
	delete from auth.impersonations i using over where i.id = over.id`

	// A running job is not deleted, because it will end.
	sweepJobs = `with over as (select id from auth.jobs where expires_at <= $1::timestamptz and state <> 'running' limit $2::integer for update skip locked)
	delete from auth.jobs j using over where j.id = over.id`

	// Messages without a live token are found once they are due. They are not claimed,
	// so they remain due.
	sweepMessages = `with expired as (
		select id from auth.messages m where m.expires_at <= $1::timestamptz limit $2::integer for update skip locked
	), useless as (
		select id from auth.messages m where m.next_at <= $1::timestamptz and m.purpose <> ''
			and not exists (select from auth.tokens t where t.purpose = m.purpose and t.hash = m.hash and t.expires_at > $1::timestamptz)
		limit $2::integer for update skip locked
	), over as materialized (
		select id from expired union select id from useless limit $2::integer
	), noted as (
		update auth.message_log l set state = '` + string(store.MessageDropped) + `', updated_at = $1::timestamptz from over where l.id = over.id and l.state = '` + string(store.MessageQueued) + `'
	)
	delete from auth.messages m using over where m.id = over.id`

	// For store.MessageLogLife.
	sweepMessageLog = `with over as (select id from auth.message_log where created_at <= $1::timestamptz - interval '168 hours'
		order by created_at limit $2::integer for update skip locked)
	delete from auth.message_log l using over where l.id = over.id`
)

// Sweep deletes expired rows, up to limit, and skips rows that others have locked. Only
// the instance that holds the lease sweeps; the others return 0.
func (s *Store) Sweep(ctx context.Context, now time.Time, limit int) (int, error) {
	total := 0
	err := s.do(ctx, func(ctx context.Context, q querier) error {
		total = 0
		mine, err := s.sweeps(ctx, q, now)
		if err != nil || !mine {
			return err
		}
		for _, kind := range []string{sweepMessages, sweepMessageLog, sweepTokens, sweepSessions, sweepLimits, sweepIdempotency, sweepDevices, sweepRevocations, sweepCounts, sweepActive, sweepImpersonations, sweepJobs} {
			if limit <= total {
				return nil
			}
			tag, err := q.Exec(ctx, s.sql(kind), now, limit-total)
			if err != nil {
				return err
			}
			total += int(tag.RowsAffected())
		}
		return nil
	})
	return total, err
}

// sweeps reports whether this instance holds the lease of the sweep, or takes it.
func (s *Store) sweeps(ctx context.Context, q querier, now time.Time) (bool, error) {
	tag, err := q.Exec(ctx, s.sql(takeLease), s.holder, now, lease)
	return err == nil && tag.RowsAffected() > 0, err
}
