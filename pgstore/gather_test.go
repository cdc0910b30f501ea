package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth"
	"github.com/authmount/auth/pgstore"
)

// sent tells of statements as they leave.
type sent struct {
	part string
	c    chan struct{}
}

func (s *sent) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if strings.Contains(q.SQL, s.part) {
		s.c <- struct{}{}
	}
	return ctx
}

func (*sent) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// crowd is a store whose statements are watched, with users who have a session
// each.
type crowd struct {
	*pgstore.Store
	sent     chan struct{}
	now      time.Time
	sessions []auth.Session
}

func newCrowd(t *testing.T, n int, part string, opts ...pgstore.Option) *crowd {
	t.Helper()
	ctx := t.Context()
	c := &crowd{sent: make(chan struct{}, 1000), now: time.Now().UTC().Truncate(time.Microsecond)}
	c.Store = openTraced(t, &sent{part: part, c: c.sent}, opts...)
	if _, err := c.Pool().Exec(ctx, `create table public.broken (id uuid);
		create function public.claims(user_id uuid) returns jsonb language plpgsql as $$
		begin
			if exists (select from public.broken where id = user_id) then raise 'no claims'; end if;
			return jsonb_build_object('of', user_id);
		end $$`); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		u := auth.User{ID: uuid.NewString(), FullName: fmt.Sprint("User ", i), Roles: []string{fmt.Sprint("r", i)}, CreatedAt: c.now, UpdatedAt: c.now}
		s := auth.Session{ID: uuid.NewString(), UserID: u.ID, AAL: auth.LevelAAL1, CreatedAt: c.now, RotatedAt: c.now, IdleUntil: c.now.Add(time.Hour)}
		if _, err := c.CreateUser(ctx, auth.NewUser{User: u, Session: &s}); err != nil {
			t.Fatal(err)
		}
		c.sessions = append(c.sessions, s)
	}
	return c
}

// lock holds what a statement locks until the returned function is called.
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

func (c *crowd) advance(ctx context.Context, i int, counter uint32) (auth.Session, auth.User, error) {
	return c.AdvanceSession(ctx, auth.Advance{SessionID: c.sessions[i].ID, Counter: counter, Now: c.now.Add(time.Minute), Grace: 10 * time.Second,
		IdleUntil: c.now.Add(2 * time.Hour), IP: fmt.Sprint("192.0.2.", i), UserAgent: fmt.Sprint("agent ", i)})
}

// Reads that have to wait go out together: everybody gets their own answer, and
// one that is cancelled neither waits nor takes others along.
func TestSessionReadsShareStatements(t *testing.T) {
	ctx := t.Context()
	const callers = 40
	c := newCrowd(t, callers, "join auth.users u on u.id = s.user_id")
	unlock := c.lock(t, "lock table auth.sessions in access exclusive mode")
	first, cancel := context.WithCancel(ctx)
	over := make(chan error)
	go func() {
		_, _, err := c.Session(first, c.sessions[0].ID, c.now)
		over <- err
	}()
	<-c.sent
	cancel()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled read: %v", err)
	}
	holder := make(chan error)
	go func() { // somebody waits for the lock, and the others for them
		_, _, err := c.Session(ctx, c.sessions[0].ID, c.now)
		holder <- err
	}()
	<-c.sent
	pause(10 * time.Millisecond) // nobody waits when patience ends
	var wg sync.WaitGroup
	users := make([]auth.User, callers)
	for i, s := range c.sessions {
		wg.Go(func() {
			sess, u, err := c.Session(ctx, s.ID, c.now)
			if err != nil || sess.ID != s.ID || u.ID != s.UserID || u.FullName != fmt.Sprint("User ", i) || len(u.Roles) != 1 || u.Roles[0] != fmt.Sprint("r", i) {
				t.Errorf("session %d: %+v of %+v, %v", i, sess, u, err)
			}
			users[i] = u
		})
	}
	for range 3 { // the same one, several times
		wg.Go(func() {
			_, u, err := c.Session(ctx, c.sessions[0].ID, c.now)
			if err != nil || u.FullName != "User 0" {
				t.Errorf("session 0 again: %+v, %v", u, err)
			}
			u.Roles[0] = "changed by its owner"
		})
	}
	for _, id := range []string{uuid.NewString(), "no id"} {
		wg.Go(func() {
			if _, _, err := c.Session(ctx, id, c.now); !errors.Is(err, auth.ErrNotFound) {
				t.Errorf("session %q: %v", id, err)
			}
		})
	}
	wg.Go(func() {
		gone, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		if _, _, err := c.Session(gone, c.sessions[0].ID, c.now); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a read that is given up: %v", err)
		}
	})
	<-c.sent // the next do not wait for long
	pause(50 * time.Millisecond)
	unlock()
	wg.Wait()
	if err := <-holder; err != nil {
		t.Error(err)
	}
	if users[0].Roles[0] != "r0" {
		t.Error("two callers share what they were given")
	}
	if n := len(c.sent); n > callers/2 {
		t.Errorf("%d reads took %d statements and more", callers, n)
	}
}

// Refreshes share statements, and nothing else: each has its own outcome, and
// the one whose row is locked waits alone.
func TestRefreshesShareStatements(t *testing.T) {
	ctx := t.Context()
	const callers, locked, future, reused, late, ended, banned, twice = 40, 1, 2, 3, 4, 5, 6, 7
	c := newCrowd(t, callers, "update auth.sessions s set\n\t\t\tcounter")
	for i, n := range map[int]uint32{reused: 3, late: 1} {
		for counter := range n {
			if _, _, err := c.advance(ctx, i, counter); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := c.RevokeSessions(ctx, c.sessions[ended].UserID, auth.SessionFilter{}, c.now); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Pool().Exec(ctx, "update auth.users set banned_until = 'infinity' where id = $1", c.sessions[banned].UserID); err != nil {
		t.Fatal(err)
	}
	unlock := c.lock(t, "select from auth.sessions where id = any($1) for update", []string{c.sessions[0].ID, c.sessions[locked].ID})
	var blocked sync.WaitGroup
	wait := func(i int) {
		if s, _, err := c.advance(ctx, i, 0); err != nil || s.Counter != 1 {
			t.Errorf("session %d: counter %d, %v", i, s.Counter, err)
		}
	}
	for len(c.sent) > 0 {
		<-c.sent
	}
	blocked.Go(func() { wait(0) })
	<-c.sent
	blocked.Go(func() { wait(locked) }) // in company of the others
	var wg sync.WaitGroup
	for i := 2; i < callers; i++ {
		want, counter := error(nil), uint32(1)
		presented := uint32(0)
		switch i {
		case future:
			presented, want = 5, auth.ErrSessionEnded
		case reused:
			want = auth.ErrReused
		case late:
			counter = 1
		case ended:
			want = auth.ErrSessionEnded
		case banned:
			want = auth.ErrBanned
		}
		wg.Go(func() {
			s, u, err := c.advance(ctx, i, presented)
			if !errors.Is(err, want) || want == nil && (s.Counter != counter || s.ID != c.sessions[i].ID || u.ID != s.UserID || s.IP != fmt.Sprint("192.0.2.", i) || s.UserAgent != fmt.Sprint("agent ", i)) {
				t.Errorf("session %d: %+v of %+v, %v, want %v", i, s, u, err, want)
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
	wg.Go(func() {
		_, _, err := c.AdvanceSession(ctx, auth.Advance{SessionID: uuid.NewString(), Now: c.now, IdleUntil: c.now.Add(time.Hour)})
		if !errors.Is(err, auth.ErrNotFound) {
			t.Errorf("an unknown session: %v", err)
		}
	})
	wg.Wait() // while two rows are locked
	unlock()
	blocked.Wait()
	if n := len(c.sent); n > callers/2 {
		t.Errorf("%d refreshes took %d statements", callers, n)
	}
	var counters []int64
	rows, err := c.Pool().Query(ctx, "select distinct counter from auth.sessions where revoked_at is null order by counter")
	if err == nil {
		counters, err = pgx.CollectRows(rows, pgx.RowTo[int64])
	}
	if err != nil || fmt.Sprint(counters) != "[0 1]" { // 0: the future one, and that of the banned user
		t.Errorf("counters %v, %v", counters, err)
	}
}

// A claims function that fails for one user fails for that user.
func TestRefreshesShareNoFailure(t *testing.T) {
	ctx := t.Context()
	const callers, broken = 20, 7
	c := newCrowd(t, callers, "update auth.sessions s set\n\t\t\tcounter", pgstore.ClaimsFunction("public.claims"))
	if _, err := c.Pool().Exec(ctx, "insert into public.broken values ($1)", c.sessions[broken].UserID); err != nil {
		t.Fatal(err)
	}
	unlock := c.lock(t, "select from auth.sessions where id = $1 for update", c.sessions[0].ID)
	var wg sync.WaitGroup
	refresh := func(i int) {
		_, u, err := c.advance(ctx, i, 0)
		if i == broken {
			if err == nil || !strings.Contains(err.Error(), "no claims") {
				t.Errorf("the broken one: %v", err)
			}
		} else if err != nil || u.Claims["of"] != c.sessions[i].UserID {
			t.Errorf("session %d: claims %v, %v", i, u.Claims, err)
		}
	}
	wg.Go(func() { refresh(0) })
	<-c.sent
	for i := 1; i < callers; i++ {
		wg.Go(func() { refresh(i) })
	}
	pause(50 * time.Millisecond)
	unlock()
	wg.Wait()
	var moved int
	if err := c.Pool().QueryRow(ctx, "select count(*) from auth.sessions where counter = 1").Scan(&moved); err != nil || moved != callers-1 {
		t.Errorf("%d sessions were moved on, %v", moved, err)
	}
}

// However slow the database is, a few connections are left to everything else;
// and who has given up waiting is not served.
func TestRefreshesLeaveConnections(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second) // less than a call's own
	defer cancel()
	const callers = 12
	c := newCrowd(t, callers+1, "update auth.sessions s set\n\t\t\tcounter")
	unlock := c.lock(t, "lock table auth.sessions in access exclusive mode")
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			if s, _, err := c.advance(ctx, i, 0); err != nil || s.Counter != 1 {
				t.Errorf("session %d: counter %d, %v", i, s.Counter, err)
			}
		})
		if i < 2 { // so that each of the first leaves alone
			pause(3 * time.Millisecond) // more than patience
		}
	}
	for range 3 { // all there may be
		<-c.sent
	}
	gone, giveUp := context.WithCancel(ctx)
	over := make(chan error)
	go func() {
		_, _, err := c.advance(gone, callers, 0)
		over <- err
	}()
	pause(20 * time.Millisecond)
	giveUp()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("one who gave up: %v", err)
	}
	if n := len(c.sent); n > 0 {
		t.Errorf("%d statements under way on 6 connections", 3+n)
	}
	unlock()
	wg.Wait()
	if s, _, err := c.Session(ctx, c.sessions[callers].ID, c.now); err != nil || s.Counter != 0 {
		t.Errorf("the session of the one who gave up: counter %d, %v", s.Counter, err)
	}
	if s, _, err := c.advance(ctx, callers, 0); err != nil || s.Counter != 1 {
		t.Errorf("and when they ask again: counter %d, %v", s.Counter, err)
	}
}

// One who waits for a statement that does not end has one sent of their own.
func TestRefreshWaitsNotForLong(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	c := newCrowd(t, 2, "update auth.sessions s set\n\t\t\tcounter")
	unlock := c.lock(t, "select from auth.sessions where id = $1 for update", c.sessions[0].ID)
	var wg sync.WaitGroup
	for counter := range uint32(10) { // now and then it comes before the other's patience ends
		blocked, cancel := context.WithCancel(ctx)
		wg.Go(func() { _, _, _ = c.advance(blocked, 0, 0) })
		<-c.sent
		if s, _, err := c.advance(ctx, 1, counter); err != nil || s.Counter != counter+1 {
			t.Errorf("counter %d, %v", s.Counter, err)
		}
		<-c.sent
		cancel()
		wg.Wait()
	}
	unlock()
}
