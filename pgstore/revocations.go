package pgstore

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth/store"
)

// The times of the feed of revocations.
const (
	reconnectAfter = 500 * time.Millisecond // doubled up to reconnectMost
	reconnectMost  = 5 * time.Second
	lookAnyway     = 15 * time.Second // without a notification
	pollEvery      = time.Second      // in a database without LISTEN
	beatEvery      = time.Second      // checks that the connection of LISTEN is alive
	// A connection that hangs is given up after this time without a byte. Together with
	// beatEvery it is the time until the feed begins anew.
	silentMost = 2 * time.Second
	// A transaction may commit later than others that began after it. So each read
	// overlaps the one before, and now and then a read goes back as far as an
	// application's transactions (InTx) may last.
	overlap     = time.Minute
	longest     = 15 * time.Minute
	longestLife = 25 * time.Hour // the longest life of access tokens, and a margin
	// The application's clock dates access tokens, the database's clock dates
	// revocations. Tokens are verified with the same tolerance.
	clocksDiffer = 30 * time.Second
)

// SQLSTATEs of a database that does not know LISTEN.
const (
	notSupported = "0A000" // feature_not_supported
	syntaxError  = "42601"
)

// WatchParams is the parameter of WatchRevocations.
type WatchParams struct {
	// Notify is called with each revocation, one call after the other, and may receive
	// the same one again. It should return quickly, because the next call waits for it.
	// Required; an Auth's Revoke.
	Notify func(store.Revocation)
	// Direct is a connection string of the database itself, as for Open, for stores
	// behind a pooler in transaction mode. Default: the pool's.
	Direct string
	// Logger receives errors. Default: slog.Default().
	Logger *slog.Logger
}

// WatchRevocations reports to an Auth every session that ends, every user who is banned
// or deleted, and every change of roles and their permissions, on any instance, within
// about a second. Require then refuses their access tokens at once, or requires newer
// ones:
//
//	go store.WatchRevocations(ctx, pgstore.WatchParams{Notify: a.Revoke})
//
// A session that has ended is reported with its own id and its user's id; a deleted user
// with the user's id alone; a ban or a change of roles with the revision that tokens must
// have. A ban by SQL that does not raise credential_revision is reported with the user's
// id alone: then tokens of the next 30 seconds are refused, too, even if the ban is lifted.
// It reports CaughtUp every second while the database answers.
//
// WatchRevocations listens on a connection of its own (LISTEN), or reads every second if
// the database has no LISTEN. A pooler in transaction mode does not support LISTEN; set
// Direct there. It gives up a connection that hangs for about three seconds, reconnects after
// failures, and reports missed revocations. It may miss the revocations of a transaction that takes
// longer than 15 minutes (InTx). It may be called several times at the same time.
//
// It returns ctx's error when ctx ends, context.Canceled when the store is closed, and
// logs and returns an error at once if Notify is missing or Direct cannot be parsed.
func (s *Store) WatchRevocations(ctx context.Context, p WatchParams) error {
	if p.Logger == nil {
		p.Logger = slog.Default()
	}
	pool, err := s.listenerConfig(p)
	if err != nil {
		// Logged, because a go statement discards the error.
		p.Logger.ErrorContext(ctx, "pgstore: there is no feed of revocations", "error", err)
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.open, cancel)()
	since := time.Now().Add(-longestLife)
	for wait := reconnectAfter; ctx.Err() == nil; wait = min(2*wait, reconnectMost) {
		err := s.listen(ctx, pool, &since, func(r store.Revocation) {
			wait = reconnectAfter
			p.Notify(r)
		})
		if ctx.Err() != nil {
			break
		}
		p.Logger.WarnContext(ctx, "pgstore: the feed of revocations broke off and begins anew", "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
	return ctx.Err()
}

// listenerConfig returns the configuration of the connection.
func (s *Store) listenerConfig(p WatchParams) (*pgxpool.Config, error) {
	if p.Notify == nil {
		return nil, errors.New("pgstore: WatchRevocations: Notify is missing")
	}
	pool := s.pool.Config()
	if p.Direct == "" {
		return pool, nil
	}
	var err error
	if pool.ConnConfig, err = pgx.ParseConfig(p.Direct); err != nil {
		return nil, errBadURL
	}
	return pool, nil
}

// listen follows the feed on one connection, until that fails.
func (s *Store) listen(ctx context.Context, pool *pgxpool.Config, since *time.Time, tell func(store.Revocation)) error {
	conn, wait, err := s.listener(ctx, pool)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	s.feeds.Add(1)
	defer s.feeds.Add(-1)
	far := time.Time{} // the time of the last read that went far back
	for {
		back, silence := overlap, silentMost
		if far.IsZero() {
			silence = s.timeout // the first read may be a long one, and nobody relies on the feed yet
		}
		if time.Since(far) >= lookAnyway {
			back, far = longest, time.Now()
		}
		if err := s.catchUp(ctx, conn, since, back, silence, tell); err != nil {
			return err
		}
		if err := s.rest(ctx, conn, wait, tell); err != nil {
			return err
		}
	}
}

// rest reports CaughtUp, and again every second while the connection is alive, until a
// notification arrives or the time of the next read has come.
func (s *Store) rest(ctx context.Context, conn *pgx.Conn, wait time.Duration, tell func(store.Revocation)) error {
	now, cancel := context.WithCancel(ctx)
	cancel() // ended at once, so that it does not wait
	for end := time.Now().Add(wait); ; {
		s.fedAt.Store(time.Now().UnixNano())
		tell(store.Revocation{CaughtUp: true, At: time.Now()})
		quiet, cancel := context.WithTimeout(ctx, min(wait, beatEvery))
		_, err := conn.WaitForNotification(quiet)
		cancel()
		if err != nil && (ctx.Err() != nil || quiet.Err() == nil) {
			return err
		}
		if err != nil && time.Now().Before(end) {
			beat, cancel := context.WithTimeout(ctx, silentMost)
			err = conn.Ping(beat)
			cancel()
			switch {
			case err != nil && ctx.Err() == nil && beat.Err() != nil:
				return errSilent
			case err != nil:
				return err
			}
			_, err = conn.WaitForNotification(now) // it may have arrived before the answer
		}
		if err != nil && time.Now().Before(end) {
			continue
		}
		for err == nil { // several may have arrived; one read covers all of them
			_, err = conn.WaitForNotification(now)
		}
		return nil
	}
}

// listener opens a connection as the pool does, and listens. It returns the longest time
// between two reads.
func (s *Store) listener(ctx context.Context, pool *pgxpool.Config) (*pgx.Conn, time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	cfg := pool.ConnConfig.Copy()
	if pool.BeforeConnect != nil { // BeforeConnect may supply short-lived passwords
		if err := pool.BeforeConnect(ctx, cfg); err != nil {
			return nil, 0, err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, 0, err
	}
	if pool.AfterConnect != nil {
		err = pool.AfterConnect(ctx, conn)
	}
	wait := lookAnyway
	if err == nil {
		_, err = conn.Exec(ctx, "listen "+s.schema+"_revoked") // the schema is a plain name
		var e *pgconn.PgError
		if errors.As(err, &e) && (e.Code == notSupported || e.Code == syntaxError) {
			wait, err = pollEvery, nil
		}
	}
	if err != nil {
		_ = conn.Close(ctx)
		return nil, 0, err
	}
	return conn, wait, nil
}

var errSilent = errors.New("the database does not answer")

const selectRevocations = `select coalesce(session_id::text, ''), coalesce(user_id::text, stale_user::text, ''), coalesce(stale_role, ''), coalesce(revision, 0),
		everybody_until is not null, coalesce(spared::text, ''), everybody_until, at from auth.revocations where at > $1::timestamptz order by at`

// catchUp reports the revocations since its last call, and some earlier ones again. It gives
// up if nothing arrives for the time of silence.
func (s *Store) catchUp(ctx context.Context, conn *pgx.Conn, since *time.Time, back, silence time.Duration, tell func(store.Revocation)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(silence, func() { cancel(errSilent) })
	defer silent.Stop()
	rows, err := conn.Query(ctx, s.sql(selectRevocations), since.Add(-back))
	if err != nil {
		return err
	}
	var r store.Revocation
	var everybody pgtype.Timestamptz // by the application's clock, as the sessions
	_, err = pgx.ForEachRow(rows, []any{&r.SessionID, &r.UserID, &r.Role, &r.Stale, &r.All, &r.Spared, &everybody, &r.At}, func() error {
		silent.Stop() // tell may wait
		defer silent.Reset(silentMost)
		if r.At.After(*since) {
			*since = r.At
		}
		r.At = r.At.Add(clocksDiffer)
		if r.All {
			r.At = at(everybody)
		}
		tell(r)
		return nil
	})
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return errSilent
	}
	return err
}
