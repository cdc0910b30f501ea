package sqlitestore_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/sqlitestore"
	"github.com/authmount/auth/store"
)

// order is a line of work for another process. The answer is a line with the number of
// calls by result.
type order struct {
	Task string
	IDs  []string
}

// otherFile is the environment variable with the file of another process.
const otherFile = "AUTH_TEST_SQLITE_FILE"

// TestOtherProcess is no test, but the other process.
func TestOtherProcess(t *testing.T) {
	path := os.Getenv(otherFile)
	if path == "" {
		return
	}
	s := open(t, path)
	out := json.NewEncoder(os.Stdout)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var o order
		ok(t, json.Unmarshal(lines.Bytes(), &o))
		ok(t, out.Encode(o.work(t.Context(), s)))
	}
}

// process is another process that has the file open.
type process struct {
	in  io.WriteCloser
	out *bufio.Scanner
}

// another starts a process, which ends with the test.
func another(t *testing.T, path string) *process {
	t.Helper()
	cmd := exec.CommandContext(context.Background(), os.Args[0], "-test.run=^TestOtherProcess$") //nolint:gosec // this program
	cmd.Env = append(os.Environ(), otherFile+"="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	ok(t, err)
	out, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the other process: %v", err)
		}
	})
	return &process{in, bufio.NewScanner(out)}
}

// do has the process work, and returns a function that waits for its results.
func (p *process) do(t *testing.T, o order) (results func() map[string]int) {
	t.Helper()
	line, err := json.Marshal(o)
	ok(t, err)
	_, err = fmt.Fprintf(p.in, "%s\n", line)
	ok(t, err)
	return func() (counts map[string]int) {
		t.Helper()
		if !p.out.Scan() {
			t.Fatalf("the other process has ended: %v", p.out.Err())
		}
		ok(t, json.Unmarshal(p.out.Bytes(), &counts))
		return counts
	}
}

// both has the process and this one work at the same time, and adds up the results.
func (p *process) both(t *testing.T, s *sqlitestore.Store, theirs, ours order) map[string]int {
	t.Helper()
	results := p.do(t, theirs)
	sum := ours.work(t.Context(), s)
	for result, n := range results() {
		sum[result] += n
	}
	return sum
}

// work makes four calls at a time, one for each id.
func (o order) work(ctx context.Context, s *sqlitestore.Store) map[string]int {
	counts := map[string]int{}
	var mu sync.Mutex
	var wait sync.WaitGroup
	ids := make(chan string)
	for range 4 {
		wait.Go(func() {
			for id := range ids {
				result := o.call(ctx, s, id)
				mu.Lock()
				counts[result]++
				mu.Unlock()
			}
		})
	}
	for _, id := range o.IDs {
		ids <- id
	}
	close(ids)
	wait.Wait()
	return counts
}

func (o order) call(ctx context.Context, s *sqlitestore.Store, id string) string {
	var err error
	switch o.Task {
	case "redeem":
		_, _, err = s.RedeemToken(ctx, store.Redemption{Change: byTest(), Purpose: store.PurposeReset, Hash: []byte(id)})
	case "guess":
		_, _, err = s.RedeemCode(ctx, store.CodeAttempt{Change: byTest(), Purpose: store.PurposePhoneCode, Subject: "+49301", Hash: []byte(id)})
	case "refresh":
		_, _, err = s.AdvanceSession(ctx, store.Advance{Change: byTest(), SessionID: id, IdleUntil: now.Add(time.Hour)})
	case "draw":
		var d store.Decision
		d, err = s.Take(ctx, []store.Draw{{Key: id, Rate: store.Rate{Burst: 7, Per: time.Hour}, Cost: 1}}, now)
		if err == nil && !d.Allowed {
			return "limited"
		}
	case "demote":
		none := []string{}
		c := store.UpdateUser{Change: byTest(), UserID: id, Patch: store.UserPatch{Roles: &none}}
		c.KeepOwner = true
		_, err = s.UpdateUser(ctx, c)
	case "end":
		_, err = s.RevokeSessions(ctx, store.RevokeSessions{Change: byTest(), UserID: id})
	}
	if err == nil {
		return "done"
	}
	for _, known := range []error{store.ErrNotFound, store.ErrWrongCode, store.ErrTooManyAttempts, store.ErrReused, store.ErrSessionEnded, store.ErrLastOwner} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	return "unexpected: " + err.Error()
}

func equalCounts(t *testing.T, what string, got, want map[string]int) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// Two processes work at the same time. Each single-use token is redeemed once, a code has
// its attempts once, each refresh token one successor, a limit its burst once, and one of
// two owners who are both demoted stays.
func TestTwoProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.db")
	s := open(t, path)
	other := another(t, path)
	const n = 20

	tokens := order{Task: "redeem"}
	for i := range n {
		tokens.IDs = append(tokens.IDs, fmt.Sprint("token ", i))
		ok(t, s.PutToken(t.Context(), store.PutToken{Change: byTest(), Token: store.Token{Purpose: store.PurposeReset, Hash: []byte(tokens.IDs[i]), CreatedAt: now, ExpiresAt: now.Add(time.Hour)}}))
	}
	equalCounts(t, "tokens", other.both(t, s, tokens, tokens), map[string]int{"done": n, store.ErrNotFound.Error(): n})

	code := store.Token{Purpose: store.PurposePhoneCode, Hash: []byte("right"), Subject: "+49301", CreatedAt: now, ExpiresAt: now.Add(time.Hour), MaxAttempts: 5}
	ok(t, s.PutToken(t.Context(), store.PutToken{Change: byTest(), Token: code}))
	guesses := order{Task: "guess", IDs: tokens.IDs}
	equalCounts(t, "codes", other.both(t, s, guesses, guesses), map[string]int{store.ErrWrongCode.Error(): 5, store.ErrTooManyAttempts.Error(): 2*n - 5})

	c := newUser("ada@example.com")
	_, err := s.CreateUser(t.Context(), c)
	ok(t, err)
	sessions := order{Task: "refresh"}
	for range n {
		sess := newSession(c.User.ID)
		_, err := s.CreateSession(t.Context(), store.CreateSession{Change: byTest(), NewSession: store.NewSession{Session: sess}})
		ok(t, err)
		sessions.IDs = append(sessions.IDs, sess.ID)
	}
	equalCounts(t, "refresh tokens", other.both(t, s, sessions, sessions), map[string]int{"done": n, store.ErrReused.Error(): n})

	draws := order{Task: "draw"}
	for range n {
		draws.IDs = append(draws.IDs, "one limit")
	}
	equalCounts(t, "limits", other.both(t, s, draws, draws), map[string]int{"done": 7, "limited": 2*n - 7})

	owners := []string{owner(t, s), owner(t, s)}
	for range n {
		equalCounts(t, "owners", other.both(t, s, order{"demote", owners[:1]}, order{"demote", owners[1:]}), map[string]int{"done": 1, store.ErrLastOwner.Error(): 1})
		for _, id := range owners {
			promote(t, s, id)
		}
	}
}

func newSession(userID string) store.Session {
	return store.Session{ID: uuid.NewString(), UserID: userID, AAL: store.LevelAAL1, CreatedAt: now, LastActiveAt: now, RotatedAt: now, IdleUntil: now.Add(time.Hour)}
}

// owner returns the id of a new owner who accepted.
func owner(t *testing.T, s *sqlitestore.Store) string {
	t.Helper()
	c := newUser("")
	_, err := s.CreateUser(t.Context(), c)
	ok(t, err)
	promote(t, s, c.User.ID)
	return c.User.ID
}

func promote(t *testing.T, s *sqlitestore.Store, id string) {
	t.Helper()
	_, err := s.UpdateUser(t.Context(), store.UpdateUser{Change: byTest(), UserID: id, Patch: store.UserPatch{Roles: &[]string{store.RoleOwner}, Accept: true}})
	ok(t, err)
}
