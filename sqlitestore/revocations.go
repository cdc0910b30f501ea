package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"time"

	"github.com/authmount/auth/store"
)

// The times of the feed of revocations.
const (
	lookEvery   = 200 * time.Millisecond
	beatEvery   = time.Second            // the interval of CaughtUp
	lookMost    = 2 * time.Second        // a read that takes longer has failed
	againAfter  = 500 * time.Millisecond // after a failed read; doubled up to againMost
	againMost   = 5 * time.Second
	lookPage    = 1000
	longestLife = 25 * time.Hour // the longest life of access tokens, and a margin
	// A process may issue an access token for a user whom another one has just deleted.
	tokensOnTheWay = 30 * time.Second
)

// WatchParams is the parameter of WatchRevocations.
type WatchParams struct {
	// Notify is called with each revocation, one call after the other, and may receive
	// the same one again. It should return quickly, because the next call waits for it.
	// Required; an Auth's Revoke.
	Notify func(store.Revocation)
	// Logger receives errors. Default: slog.Default().
	Logger *slog.Logger
}

// WatchRevocations reports to an Auth every session that ends, every user who is banned
// or deleted, and every change of roles and their permissions, in any process that shares
// the file, in less than a second. Require then refuses their access tokens at once, or
// requires newer ones:
//
//	go store.WatchRevocations(ctx, sqlitestore.WatchParams{Notify: a.Revoke})
//
// A session that has ended is reported with its own id and its user's id; a deleted user
// with the user's id alone; a ban or a change of roles with the revision that tokens must
// have. Changes by SQL are reported, too. A ban by SQL that does not raise
// credential_revision is reported with the user's id alone: then tokens of the next 30
// seconds are refused, too, even if the ban is lifted. It reports CaughtUp every second
// while the file can be read.
//
// It reads the newest rows of one table every 200 milliseconds, on a connection of its own,
// or on the application's handle. After a failure it reads again and reports missed
// revocations. It may be called several times at the same time.
//
// It returns ctx's error when ctx ends, context.Canceled when the store is closed, and
// logs and returns an error at once if Notify is missing.
func (s *Store) WatchRevocations(ctx context.Context, p WatchParams) error {
	if p.Logger == nil {
		p.Logger = slog.Default()
	}
	if p.Notify == nil {
		err := errors.New("auth: sqlite: WatchRevocations: Notify is missing")
		// Logged, because a go statement discards the error.
		p.Logger.ErrorContext(ctx, "sqlitestore: there is no feed of revocations", "error", err)
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.open, cancel)()
	db := s.reader
	if s.file != nil {
		db = sql.OpenDB(s.file) // lists of operators may occupy the readers for seconds
		db.SetMaxOpenConns(1)
		defer db.Close() //nolint:errcheck // it was only read
	}
	f := &feed{db: db, tell: p.Notify}
	pause := againAfter
	for next := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(next):
		}
		err := f.catchUp(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			p.Logger.WarnContext(ctx, "sqlitestore: the feed of revocations broke off and begins anew", "error", err)
			next, pause = pause, min(2*pause, againMost)
		default:
			next, pause = lookEvery, againAfter
		}
	}
}

// feed is the state of WatchRevocations.
type feed struct {
	db   *sql.DB
	tell func(store.Revocation)

	last int64     // the last row that was reported
	beat time.Time // of the last CaughtUp
}

// A row is new if its number is higher. If all numbers are lower, a copy from earlier has
// replaced the rows, and all of them are reported.
const selectRevocations = `select n, session_id, user_id, role, stale, everybody_until is not null, spared, coalesce(everybody_until, at) from auth_revocations
	where n > iif((select coalesce(max(n), 0) from auth_revocations) < ?1, 0, ?1) order by n limit ?2`

// catchUp reports the revocations since the last one.
func (f *feed) catchUp(ctx context.Context) error {
	for {
		begun := time.Now()
		page, err := f.page(ctx)
		if err != nil {
			return err
		}
		for _, r := range page {
			f.tell(r.Revocation)
			f.last = r.n
		}
		if len(page) == lookPage {
			continue
		}
		if len(page) > 0 || begun.Sub(f.beat) >= beatEvery {
			f.beat = begun
			f.tell(store.Revocation{CaughtUp: true, At: begun})
		}
		return nil
	}
}

// numbered is a row of auth_revocations.
type numbered struct {
	store.Revocation

	n int64
}

// page reads the next revocations.
func (f *feed) page(ctx context.Context) ([]numbered, error) {
	ctx, cancel := context.WithTimeout(ctx, lookMost)
	defer cancel()
	t := &tx{ctx: ctx, on: f.db}
	page := list(t, func(scan row) (r numbered) {
		scan(&r.n, &r.SessionID, &r.UserID, &r.Role, &r.Stale, &r.All, &r.Spared, at{&r.At})
		if !r.All {
			r.At = r.At.Add(tokensOnTheWay)
		}
		return r
	}, selectRevocations, f.last, lookPage)
	return page, t.err
}
