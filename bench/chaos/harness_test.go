//go:build faults

package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/internal/pgtest"
)

var program string // the server binary, built once

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "chaos")
	if err == nil {
		defer func() { _ = os.RemoveAll(dir) }()
		program = filepath.Join(dir, "server")
		var out []byte
		if out, err = exec.CommandContext(context.Background(), "go", "build", "-o", program, "../../examples/server").CombinedOutput(); err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return pgtest.Main(m)
}

// patience limits a request: pgstore's timeout of 10 s for one call, and hashing.
const patience = 13 * time.Second

var client = &http.Client{
	Timeout:       20 * time.Second,
	Transport:     &http.Transport{MaxIdleConnsPerHost: 100},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// process is a program that stops with the test at the latest.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	mu   sync.Mutex
	log  []string // the last lines
}

// spawn starts a program; ready, if not nil, matches the line that reports readiness.
func spawn(t *testing.T, cmd *exec.Cmd, ready *regexp.Regexp) (*process, []string) {
	t.Helper()
	cmd.SysProcAttr = withUs(cmd.SysProcAttr)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	started, found := make(chan error, 1), make(chan []string, 1)
	go func() {
		runtime.LockOSThread() // the process stops with this thread
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			p.keep(lines.Text())
			if m := ready.FindStringSubmatch(lines.Text()); m != nil && len(found) == 0 {
				found <- m
			}
		}
		_ = cmd.Wait()
		close(p.done)
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill(syscall.SIGKILL)
		if t.Failed() {
			t.Logf("%s, last lines:\n%s", filepath.Base(cmd.Path), strings.Join(p.tail(), "\n"))
		}
	})
	select {
	case m := <-found:
		return p, m
	case <-p.done:
	case <-time.After(30 * time.Second):
	}
	t.Fatalf("%s does not start:\n%s", filepath.Base(cmd.Path), strings.Join(p.tail(), "\n"))
	return nil, nil
}

func (p *process) keep(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, line)
	if len(p.log) > 40 {
		p.log = p.log[1:]
	}
}

func (p *process) tail() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string{}, p.log...)
}

// kill sends a signal and waits for the end of the process.
func (p *process) kill(sig syscall.Signal) {
	_ = p.cmd.Process.Signal(sig)
	<-p.done
}

// server is one of the servers under test.
type server struct {
	url, addr string
	args      []string
	inflight  atomic.Int32
	p         *process
}

// The servers of a test are one service with the same secret and public URL.
const secret = "a-secret-that-all-servers-of-a-test-share"

var listening = regexp.MustCompile(`msg=listening addr=(127\.0\.0\.1:\d+)`)

// serve starts a server on a database: the URL of Postgres, or sqlite: and the path of a file.
func serve(t *testing.T, database string, args ...string) *server {
	t.Helper()
	s := &server{addr: "127.0.0.1:0", args: append([]string{
		"-secret", secret, "-base-url", "http://localhost:8080/auth/v1", "-dev-inbox", "-redirect-urls", "https://app.example/*",
		"-trusted-proxies", "127.0.0.1/32",
	}, args...)}
	if path, ok := strings.CutPrefix(database, "sqlite:"); ok {
		s.args = append(s.args, "-file", path)
	} else {
		s.args = append(s.args, "-database-url", database)
	}
	s.start(t)
	return s
}

// start starts the server on its previous port.
func (s *server) start(t *testing.T) {
	t.Helper()
	p, m := spawn(t, exec.CommandContext(context.Background(), program, append([]string{"-addr", s.addr}, s.args...)...), listening)
	s.p = p
	if s.url == "" {
		s.addr, s.url = m[1], "http://"+m[1]
	}
}

// alive fails the test if the server has stopped.
func (s *server) alive(t *testing.T) {
	t.Helper()
	select {
	case <-s.p.done:
		t.Errorf("server %s has ended", s.addr)
	default:
	}
}

// reply is a response or an error.
type reply struct {
	err    error
	status int
	header http.Header
	code   string // error code
	body   struct {
		AccessToken  string `json:"access_token"`
		RefreshToken string `json:"refresh_token"`
		SessionID    string `json:"session_id"`
		User         struct {
			ID string `json:"id"`
		} `json:"user"`
	}
	raw  []byte
	took time.Duration
}

func (r reply) String() string {
	if r.err != nil {
		return r.err.Error()
	}
	return fmt.Sprintf("%d %s", r.status, r.raw)
}

// field returns a member of a response as JSON.
func (r reply) field(name string) []byte {
	var all map[string]json.RawMessage
	_ = json.Unmarshal(r.raw, &all)
	return all[name]
}

type obj map[string]any

// call sends a request below the mount, with a body if there is one, and headers in
// pairs.
func (s *server) call(method, path string, body obj, headers ...string) (r reply) {
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return reply{err: err}
		}
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, s.url+"/auth/v1"+path, in)
	if err != nil {
		return reply{err: err}
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return s.send(req, headers...)
}

// send sends a request with headers in pairs.
func (s *server) send(req *http.Request, headers ...string) (r reply) {
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	s.inflight.Add(1)
	defer s.inflight.Add(-1)
	began := time.Now()
	defer func() { r.took = time.Since(began) }()
	res, err := client.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer func() { _ = res.Body.Close() }()
	r.status, r.header = res.StatusCode, res.Header
	if r.raw, err = io.ReadAll(res.Body); err != nil {
		return reply{err: err}
	}
	if r.status >= 400 {
		var e struct{ Code string }
		_ = json.Unmarshal(r.raw, &e)
		r.code = e.Code
	} else if len(r.raw) > 0 {
		_ = json.Unmarshal(r.raw, &r.body)
	}
	return r
}

// must is call for requests that must succeed.
func (s *server) must(t *testing.T, want int, method, path string, body obj, headers ...string) reply {
	t.Helper()
	r := s.call(method, path, body, headers...)
	if r.status != want {
		t.Fatalf("%s %s: %v, want %d", method, path, r, want)
	}
	return r
}

// refused checks that a request returns an error.
func (s *server) refused(t *testing.T, status int, code, method, path string, body obj, headers ...string) {
	t.Helper()
	if r := s.call(method, path, body, headers...); r.status != status || r.code != code {
		t.Errorf("%s %s: %v, want %d %s", method, path, r, status, code)
	}
}

func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

// message is a message in the server's inbox.
type message struct{ To, Link, Code string }

// token returns the token in the message's link.
func (m message) token() string {
	_, token, _ := strings.Cut(m.Link, "token=")
	return token
}

// messages lists the inbox, newest last.
func (s *server) messages(t *testing.T) []message {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/dev/messages", nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var list []message
	if err := json.NewDecoder(res.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	return list
}

// message waits for a message to a recipient; about is a part of its link, or empty for a
// message with a code.
func (s *server) message(t *testing.T, to, about string) (found message) {
	t.Helper()
	eventually(t, 20*time.Second, "message to "+to, func() bool {
		for _, m := range s.messages(t) {
			if m.To == to && strings.Contains(m.Link, about) && (about != "" || m.Code != "") {
				found = m
			}
		}
		return found.To != ""
	})
	return found
}

// eventually waits for a condition, and fails the test after a while.
func eventually(t *testing.T, patience time.Duration, what string, holds func() bool) {
	t.Helper()
	end := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
		pause(20 * time.Millisecond)
	}
}

// pause waits in real time, because there is no clock to move.
func pause(d time.Duration) { <-time.After(d) }

// each runs f for 0 … n-1, at most width at a time.
func each(n, width int, f func(i int)) {
	var wg sync.WaitGroup
	turn := make(chan struct{}, width)
	for i := range n {
		turn <- struct{}{}
		wg.Go(func() {
			defer func() { <-turn }()
			f(i)
		})
	}
	wg.Wait()
}

// postgres starts a cluster with fsync on, and removes it when the test ends.
func postgres(t *testing.T, settings ...string) *pgtest.Server {
	t.Helper()
	pg, err := pgtest.Start(append([]string{"max_connections=100"}, settings...)...)
	if pg != nil {
		t.Cleanup(pg.Remove)
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := ask[string](t, pg.URL, "show fsync"); got != "on" {
		t.Fatalf("fsync is %s", got)
	}
	return pg
}

// ask runs a statement that returns one value.
func ask[T any](t *testing.T, url, sql string, args ...any) (v T) {
	t.Helper()
	if err := try(url, func(ctx context.Context, c *pgx.Conn) error { return c.QueryRow(ctx, sql, args...).Scan(&v) }); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// execute runs statements.
func execute(t *testing.T, url string, statements ...string) {
	t.Helper()
	err := try(url, func(ctx context.Context, c *pgx.Conn) error {
		for _, sql := range statements {
			if _, err := c.Exec(ctx, sql); err != nil {
				return fmt.Errorf("%s: %w", sql, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func try(url string, f func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return errors.Join(f(ctx, c), c.Close(ctx))
}

// unavailable checks the response during an outage.
func unavailable(r reply) error {
	after, err := strconv.Atoi(r.header.Get("Retry-After"))
	if r.status != http.StatusServiceUnavailable || r.code != "unavailable" || err != nil || after < 1 {
		return fmt.Errorf("%v (Retry-After %q), want 503 unavailable with Retry-After", r, r.header.Get("Retry-After"))
	}
	return nil
}
