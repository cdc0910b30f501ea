package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/internal/gather"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

// sent records statements as they leave, and the number of calls that share each.
type sent struct {
	part    string
	c       chan struct{}
	callers atomic.Int64 // of shared statements
}

func (s *sent) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if strings.Contains(q.SQL, s.part) {
		s.callers.Add(int64(len(gather.Callers(ctx))))
		s.c <- struct{}{}
	}
	return ctx
}

func (*sent) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// The texts that distinguish the statements of reads and of refreshes.
const (
	aRead    = "join auth.users u on u.id = s.user_id"
	aRefresh = "for no key update of s skip locked"
	aDraw    = "auth.limits"
)

// crowd is a store with recorded statements, and users who have a session each.
type crowd struct {
	*pgstore.Store
	*sent
	now      time.Time
	sessions []store.Session
}

func newCrowd(t *testing.T, n int, part string, opts ...pgstore.Option) *crowd {
	t.Helper()
	tracer := &sent{part: part, c: make(chan struct{}, 1000)}
	c := &crowd{Store: openTraced(t, tracer, opts...), sent: tracer, now: time.Now().UTC().Truncate(time.Microsecond)}
	exec(t, c.Pool(), "create table public.broken (id uuid)")
	exec(t, c.Pool(), `create function public.claims(user_id uuid) returns jsonb language plpgsql as $$
		begin
			if exists (select from public.broken where id = user_id) then raise 'no claims'; end if;
			return jsonb_build_object('of', user_id);
		end $$`)
	for i := range n {
		u := store.User{ID: uuid.NewString(), FullName: fmt.Sprint("User ", i), Roles: []string{fmt.Sprint("r", i)}, CreatedAt: c.now, UpdatedAt: c.now}
		s := store.Session{ID: uuid.NewString(), UserID: u.ID, AAL: store.LevelAAL1, CreatedAt: c.now, RotatedAt: c.now, LastActiveAt: c.now, IdleUntil: c.now.Add(time.Hour)}
		if _, err := c.CreateUser(t.Context(), store.CreateUser{Change: byTest(), NewUser: store.NewUser{User: u, Session: &s}}); err != nil {
			t.Fatal(err)
		}
		c.sessions = append(c.sessions, s)
	}
	c.forget()
	return c
}

// forget drops the statements recorded until now.
func (c *crowd) forget() {
	for len(c.c) > 0 {
		<-c.c
	}
	c.callers.Store(0)
}

// lock holds a statement's locks until the returned function is called.
func (c *crowd) lock(t *testing.T, sql string, args ...any) (unlock func()) {
	t.Helper()
	tx, err := c.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	if _, err := tx.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func (c *crowd) advance(ctx context.Context, i int, counter uint32) (store.Session, store.User, error) {
	change := store.Change{Now: c.now.Add(time.Minute), By: store.Authority{Proof: true}}
	return c.AdvanceSession(ctx, store.Advance{Change: change, SessionID: c.sessions[i].ID, Counter: counter, Grace: 10 * time.Second,
		IdleUntil: c.now.Add(2 * time.Hour), IP: fmt.Sprint("192.0.2.", i), UserAgent: fmt.Sprint("agent ", i)})
}

// shared checks that calls were sent together, and that their traces are linked.
func (c *crowd) shared(t *testing.T, calls int) {
	t.Helper()
	if n := len(c.c); n > calls/2 {
		t.Errorf("%d calls took %d statements and more", calls, n)
	}
	if n := int(c.callers.Load()); n < calls/2 || n > calls {
		t.Errorf("%d of %d calls are led to", n, calls)
	}
}

// Reads that have to wait are sent together: each caller gets their own result, and a
// canceled one neither waits nor cancels others.
func TestSessionReadsShareStatements(t *testing.T) {
	ctx := t.Context()
	const callers = 40
	c := newCrowd(t, callers, aRead)
	unlock := c.lock(t, "lock table auth.sessions in access exclusive mode")
	first, cancel := context.WithCancel(ctx)
	over := make(chan error)
	go func() {
		_, _, err := c.Session(first, c.sessions[0].ID, c.now)
		over <- err
	}()
	<-c.c
	cancel()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled read: %v", err)
	}
	var wg, come sync.WaitGroup
	users := make([]store.User, callers)
	call := func(f func()) {
		come.Add(1)
		wg.Go(func() { come.Done(); f() })
	}
	for i, s := range c.sessions {
		call(func() {
			sess, u, err := c.Session(ctx, s.ID, c.now)
			if err != nil || sess.ID != s.ID || u.ID != s.UserID || u.FullName != fmt.Sprint("User ", i) || len(u.Roles) != 1 || u.Roles[0] != fmt.Sprint("r", i) {
				t.Errorf("session %d: %+v of %+v, %v", i, sess, u, err)
			}
			users[i] = u
		})
	}
	for range 3 { // the same one, several times
		call(func() {
			_, u, err := c.Session(ctx, c.sessions[0].ID, c.now)
			if err != nil || u.FullName != "User 0" {
				t.Errorf("session 0 again: %+v, %v", u, err)
				return
			}
			u.Roles[0] = "changed by its owner"
		})
	}
	for _, id := range []string{uuid.NewString(), "no id"} {
		call(func() {
			if _, _, err := c.Session(ctx, id, c.now); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("session %q: %v", id, err)
			}
		})
	}
	gone, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if _, _, err := c.Session(gone, c.sessions[0].ID, c.now); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a read that is given up: %v", err)
	}
	come.Wait()
	unlock()
	wg.Wait()
	if users[0].Roles[0] != "r0" {
		t.Error("two callers share what they were given")
	}
	c.shared(t, callers+4)
}

// Refreshes share statements, and nothing else: each has its own outcome, and one with a
// locked row waits alone.
func TestRefreshesShareStatements(t *testing.T) {
	ctx := t.Context()
	const callers, locked, future, reused, late, ended, banned, twice = 40, 1, 2, 3, 4, 5, 6, 7
	c := newCrowd(t, callers, aRefresh)
	for i, n := range map[int]uint32{reused: 3, late: 1} {
		for counter := range n {
			if _, _, err := c.advance(ctx, i, counter); err != nil {
				t.Fatal(err)
			}
		}
	}
	end(t, c.Store, c.sessions[ended].UserID)
	exec(t, c.Pool(), "update auth.users set banned_until = 'infinity' where id = $1", c.sessions[banned].UserID)
	unlockRow := c.lock(t, "select from auth.sessions where id = $1 for update", c.sessions[locked].ID)
	c.forget()
	var blocked sync.WaitGroup
	blocked.Go(func() {
		if s, _, err := c.advance(ctx, locked, 0); err != nil || s.Counter != 1 {
			t.Errorf("the one that is locked: counter %d, %v", s.Counter, err)
		}
	})
	<-c.c // skips that one
	var wg sync.WaitGroup
	for i := range callers {
		if i == locked {
			continue
		}
		want, counter, presented := error(nil), uint32(1), uint32(0)
		switch i {
		case future:
			presented, want = 5, store.ErrSessionEnded
		case reused:
			want = store.ErrReused
		case ended:
			want = store.ErrSessionEnded
		case banned:
			want = store.ErrBanned
		}
		wg.Go(func() {
			s, u, err := c.advance(ctx, i, presented)
			if !errors.Is(err, want) || want == nil && (s.Counter != counter || s.ID != c.sessions[i].ID || u.ID != s.UserID || s.IP != fmt.Sprint("192.0.2.", i) || s.UserAgent != fmt.Sprint("agent ", i)) {
				t.Errorf("session %d: counter %d of %q, %v, want %v", i, s.Counter, u.FullName, err, want)
			}
		})
	}
	for range 3 {
		wg.Go(func() {
			if s, _, err := c.advance(ctx, twice, 0); err != nil || s.Counter != 1 {
				t.Errorf("the same refresh again: counter %d, %v", s.Counter, err)
			}
		})
	}
	wg.Wait() // while a row is locked
	unlockRow()
	blocked.Wait()
	var counters []int64
	rows, err := c.Pool().Query(ctx, "select distinct counter from auth.sessions where revoked_at is null order by counter")
	if err == nil {
		counters, err = pgx.CollectRows(rows, pgx.RowTo[int64])
	}
	if err != nil || fmt.Sprint(counters) != "[0 1]" { // 0: the future session, and the banned user's
		t.Errorf("counters %v, %v", counters, err)
	}
}

// A claims function that fails for one user fails for that user only.
func TestRefreshesShareNoFailure(t *testing.T) {
	ctx := t.Context()
	const callers, broken = 20, 7
	c := newCrowd(t, callers, aRefresh, pgstore.WithClaimsFunction("public.claims"))
	exec(t, c.Pool(), "insert into public.broken values ($1)", c.sessions[broken].UserID)
	unlock := c.lock(t, "lock table auth.sessions in access exclusive mode")
	var wg, come sync.WaitGroup
	come.Add(callers)
	for i := range callers {
		wg.Go(func() {
			come.Done()
			_, u, err := c.advance(ctx, i, 0)
			if i == broken {
				if err == nil || !strings.Contains(err.Error(), "no claims") {
					t.Errorf("the broken one: %v", err)
				}
			} else if err != nil || u.Claims["of"] != c.sessions[i].UserID {
				t.Errorf("session %d: claims %v, %v", i, u.Claims, err)
			}
		})
	}
	come.Wait()
	<-c.c
	unlock()
	wg.Wait()
	if moved := count(t, c.Pool(), "select count(*) from auth.sessions where counter = 1"); moved != callers-1 {
		t.Errorf("%d sessions were moved on", moved)
	}
	if c.callers.Load() == 0 {
		t.Error("nothing was shared")
	}
}

// However slow the database is, a few connections remain for everything else.
func TestSharingLeavesConnections(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second) // shorter than a call's own timeout
	defer cancel()
	const callers = 30
	c := newCrowd(t, callers, aRefresh)
	unlock := c.lock(t, "lock table auth.sessions in access exclusive mode")
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			if s, _, err := c.advance(ctx, i, 0); err != nil || s.Counter != 1 {
				t.Errorf("session %d: counter %d, %v", i, s.Counter, err)
			}
		})
		if i < 3 { // each of the first leaves alone
			<-c.c
		}
	}
	exec(t, c.Pool(), "select pg_sleep(0.05)") // longer than patience
	if n := len(c.c); n != 0 {
		t.Errorf("%d statements more than half of 6 connections", n)
	}
	unlock()
	wg.Wait()
	c.shared(t, callers)
}

// Draws from limits share statements, and nothing else: each is decided by its own bucket,
// and the one with a locked bucket waits alone.
func TestDrawsShareStatements(t *testing.T) {
	ctx := t.Context()
	const callers, locked, empty = 40, 1, 2
	c := newCrowd(t, 1, aDraw)
	rate := store.Rate{Burst: 5, Per: time.Hour}
	take := func(i, cost int) (store.Decision, error) {
		return c.Take(ctx, []store.Draw{{Key: fmt.Sprint("key ", i), Rate: rate, Cost: cost}}, c.now)
	}
	for i := range callers / 2 { // the first draw from the other half
		cost := 1
		if i == empty {
			cost = 5
		}
		if _, err := take(i, cost); err != nil {
			t.Fatal(err)
		}
	}
	unlockRow := c.lock(t, "select from auth.limits where key = $1 for update", fmt.Sprint("key ", locked))
	unlock := c.lock(t, "lock table auth.limits in share mode")
	c.forget()
	var wg, come sync.WaitGroup
	call := func(f func()) {
		come.Add(1)
		wg.Go(func() { come.Done(); f() })
	}
	var blocked sync.WaitGroup
	for i := range callers {
		left := 4
		switch {
		case i == empty:
			left = 0
		case i < callers/2:
			left = 3
		}
		check := func() {
			d, err := take(i, 1)
			if err != nil || d.Allowed != (i != empty) || d.Remaining[0] != left {
				t.Errorf("draw %d: %+v, %v, want %d left", i, d, err, left)
			}
		}
		if i == locked {
			blocked.Go(check)
			continue
		}
		call(check)
	}
	var allowed atomic.Int64
	for range 8 { // from one bucket without draws
		call(func() {
			d, err := take(callers, 1)
			if err != nil {
				t.Error(err)
			}
			if d.Allowed {
				allowed.Add(1)
			}
		})
	}
	come.Wait()
	<-c.c
	unlock()
	wg.Wait() // while a bucket is locked
	if allowed.Load() != int64(rate.Burst) {
		t.Errorf("%d of 8 draws were allowed", allowed.Load())
	}
	if c.callers.Load() < callers/2 {
		t.Errorf("%d draws shared a statement", c.callers.Load())
	}
	unlockRow()
	blocked.Wait()
}
