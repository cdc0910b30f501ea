package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

// Sizes and goal of imports and exports, compared with bare COPYs of the same rows.
const (
	transferRows = 20_000 // rows of an import
	transferGoal = 0.5    // required fraction of a bare COPY's speed
)

// transfers runs imports, exports and their COPYs.
type transfers struct {
	*bench
	auth *auth.Auth
	adm  *admin.Admin
	pool *pgxpool.Pool
	who  admin.Actor
	next int            // makes the addresses of each import unique
	told map[string]any // the details of an import's row in the audit log
}

// measureTransfers compares imports and exports with COPY.
func (b *bench) measureTransfers(ctx context.Context) error {
	pool, err := b.office(ctx)
	if err != nil {
		return err
	}
	defer pool.Close()
	store, err := pgstore.New(pool)
	if err != nil {
		return err
	}
	t := &transfers{bench: b, pool: pool, who: admin.System("bench").Accepting()}
	if t.auth, err = newAuth(ctx, store, config{hash: "bcrypt"}); err != nil {
		return err
	}
	defer func() { _ = t.auth.Close(ctx) }()
	if t.adm, err = admin.New(ctx, t.auth, admin.Options{RequireMFA: auth.Off}); err != nil {
		return err
	}
	b.printf("\n%d rows a turn beside %d accounts, %d rounds; rows a second\n\n| | rows/s | of COPY | memory | goal |\n|---|---|---|---|---|\n", transferRows, adminUsers, b.rounds)
	if _, err := t.importByJob(ctx); err != nil {
		return err
	}
	if err := pool.QueryRow(ctx, `select data from auth.events where type = 'user.imported' order by at desc limit 1`).Scan(&t.told); err != nil {
		return err
	}
	if err := t.report(ctx, t.copyIn, map[string]func(context.Context) (int, error){"import (Go)": t.importInGo, "import by a job": t.importByJob, "bare COPY of the accounts alone": t.copyAccounts}); err != nil {
		return err
	}
	return t.report(ctx, t.copyOut, map[string]func(context.Context) (int, error){"export as NDJSON": t.export(admin.FormatNDJSON), "export as CSV": t.export(admin.FormatCSV)})
}

// report alternates between contenders and a COPY.
func (t *transfers) report(ctx context.Context, bare func(context.Context) (int, error), ours map[string]func(context.Context) (int, error)) error {
	names := slices.Sorted(func(yield func(string) bool) {
		for name := range ours {
			if !yield(name) {
				return
			}
		}
	})
	speed, most := map[string][]float64{}, map[string]uint64{}
	for range t.rounds {
		for _, name := range append(names, "COPY") {
			turn := bare
			if name != "COPY" {
				turn = ours[name]
			}
			memory := watchMemory()
			began := time.Now()
			n, err := turn(ctx)
			speed[name] = append(speed[name], float64(n)/time.Since(began).Seconds())
			most[name] = max(most[name], memory())
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	for _, name := range names {
		ratios := all(t.rounds, func(i int) float64 { return speed[name][i] / speed["COPY"][i] })
		t.printf("| %s | %.0f | %.2f (%.2f–%.2f) | %d MiB more | ≥ %.1f |\n", name, median(speed[name]), median(ratios), slices.Min(ratios), slices.Max(ratios), most[name]>>20, transferGoal)
	}
	t.printf("| bare COPY | %.0f | | %d MiB more | |\n", median(speed["COPY"]), most["COPY"]>>20)
	return nil
}

// watchMemory returns a function that reports the largest growth of the heap so far.
func watchMemory() func() uint64 {
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	before, stop := heap(), make(chan struct{})
	var most atomic.Uint64
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			most.Store(max(most.Load(), heap()))
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-done
		return max(most.Load(), before) - before
	}
}

// people returns the rows of an import.
func (t *transfers) people() iter.Seq[auth.ImportUserParams] {
	t.next++
	round := t.next
	return func(yield func(auth.ImportUserParams) bool) {
		for i := range transferRows {
			if !yield(auth.ImportUserParams{
				Email: fmt.Sprintf("new%d-%d@example.com", round, i), EmailVerified: true, FullName: fmt.Sprintf("Person %d", i),
				UserMetadata: map[string]any{"locale": "en"}, AppMetadata: map[string]any{"plan": "free"},
			}) {
				return
			}
		}
	}
}

func (t *transfers) importInGo(ctx context.Context) (int, error) {
	sum, err := t.auth.ImportUsers(ctx, t.people(), nil)
	return sum.Created, err
}

func (t *transfers) importByJob(ctx context.Context) (int, error) {
	lines, feed := io.Pipe()
	go func() {
		e := json.NewEncoder(feed)
		for p := range t.people() {
			if err := e.Encode(map[string]any{"email": p.Email, "email_verified": true, "full_name": p.FullName, "user_metadata": p.UserMetadata, "app_metadata": p.AppMetadata}); err != nil {
				break
			}
		}
		_ = feed.Close()
	}()
	id, err := t.adm.ImportUsers(ctx, t.who, admin.ImportUsersParams{}, lines)
	if err != nil {
		return 0, err
	}
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		j, err := t.adm.Job(ctx, t.who, id)
		if err != nil || j.State == store.JobDone {
			return j.Counts.Done, err
		}
		<-tick.C
	}
}

// copyIn makes a bare COPY of such rows into the same tables, with their indexes and
// triggers: the accounts and their rows in the audit log.
func (t *transfers) copyIn(ctx context.Context) (int, error) {
	n, err := t.copyAccounts(ctx)
	if err != nil {
		return n, err
	}
	var rows [][]any
	for range n {
		now := time.Now()
		rows = append(rows, []any{uuid.Must(uuid.NewV7()), "user.imported", now, uuid.Must(uuid.NewV7()), t.told})
	}
	_, err = t.pool.CopyFrom(ctx, pgx.Identifier{"auth", "events"}, []string{"id", "type", "at", "user_id", "data"}, pgx.CopyFromRows(rows))
	return n, err
}

func (t *transfers) copyAccounts(ctx context.Context) (int, error) {
	var rows [][]any
	now := time.Now()
	for p := range t.people() {
		rows = append(rows, []any{uuid.Must(uuid.NewV7()), p.Email, p.Email, now, p.FullName, p.FullName, p.UserMetadata, p.AppMetadata, []string{}, "", now, now})
	}
	n, err := t.pool.CopyFrom(ctx, pgx.Identifier{"auth", "users"},
		[]string{"id", "email", "email_key", "email_verified_at", "full_name", "name_key", "user_metadata", "app_metadata", "roles", "password_hash", "created_at", "updated_at"}, pgx.CopyFromRows(rows))
	if err != nil {
		return int(n), err
	}
	var words [][]any
	for _, row := range rows {
		for _, word := range store.NameWords(row[4].(string)) { //nolint:forcetypeassert // above
			words = append(words, []any{row[0], word})
		}
	}
	_, err = t.pool.CopyFrom(ctx, pgx.Identifier{"auth", "user_words"}, []string{"user_id", "word"}, pgx.CopyFromRows(words))
	return int(n), err
}

func (t *transfers) export(format string) func(context.Context) (int, error) {
	return func(ctx context.Context) (int, error) {
		var n lines
		err := t.adm.ExportUsers(ctx, t.who, admin.ExportUsersParams{Format: format}, &n)
		return int(n), err
	}
}

// lines counts the lines written to it.
type lines int

func (l *lines) Write(b []byte) (int, error) {
	for _, c := range b {
		if c == '\n' {
			*l++
		}
	}
	return len(b), nil
}

func (t *transfers) copyOut(ctx context.Context) (int, error) {
	conn, err := t.pool.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	var n lines
	_, err = conn.Conn().PgConn().CopyTo(ctx, &n, `copy (select u.* from auth.users u order by u.created_at desc, u.id desc) to stdout`)
	return int(n), err
}
