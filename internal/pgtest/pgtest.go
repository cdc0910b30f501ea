// Package pgtest gives tests a real Postgres: the one in AUTH_TEST_DATABASE_URL, or a
// temporary cluster of the installed Postgres. It never skips a test: without either, the
// test fails and explains how to install Postgres.
package pgtest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// EnvURL names a Postgres to use instead of a temporary cluster. Its user must be allowed
// to create databases and roles.
const EnvURL = "AUTH_TEST_DATABASE_URL"

// EnvBin names the folder with the Postgres binaries. The default is the newest installed
// Postgres.
const EnvBin = "AUTH_TEST_POSTGRES_BIN"

// Server is a Postgres that a test started.
type Server struct {
	URL string // URL of the database postgres, as superuser
	Dir string // data folder

	bin  string
	port string
	as   *syscall.Credential // nil: the current user
	cmd  *exec.Cmd
	log  *serverLog
	mu   sync.Mutex
}

var shared struct {
	once sync.Once
	url  string
	srv  *Server
	err  error
}

// URL returns the connection string of a Postgres that all tests of a process share.
func URL(tb testing.TB) string {
	tb.Helper()
	shared.once.Do(func() {
		if shared.url = os.Getenv(EnvURL); shared.url != "" {
			return
		}
		// These tests do not need durability. All other settings are the defaults, so
		// that tests that need more locks or connections fail.
		if shared.srv, shared.err = Start("fsync=off", "synchronous_commit=off", "full_page_writes=off"); shared.err == nil {
			shared.url = shared.srv.URL
		}
	})
	if shared.err != nil {
		tb.Fatal(shared.err)
	}
	return shared.url
}

// Main runs the tests of a package and then stops the shared server.
func Main(m *testing.M) int {
	code := m.Run()
	for _, f := range atEnd.list {
		f()
	}
	if shared.srv != nil {
		shared.srv.Remove()
	}
	return code
}

var atEnd struct {
	sync.Mutex
	list []func()
}

// AtEnd makes Main call f after all tests of a package.
func AtEnd(f func()) {
	atEnd.Lock()
	defer atEnd.Unlock()
	atEnd.list = append(atEnd.list, f)
}

var databases struct {
	sync.Mutex
	n int
}

// Database creates an empty database and drops it when the test ends.
func Database(tb testing.TB) string {
	tb.Helper()
	base := URL(tb)
	databases.Lock()
	databases.n++
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), databases.n)
	databases.Unlock()
	if err := run(base, "create database "+name); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := run(base, "drop database if exists "+name+" with (force)"); err != nil {
			tb.Error(err)
		}
	})
	cfg, err := pgx.ParseConfig(base)
	if err != nil {
		tb.Fatal(err)
	}
	return InDatabase(cfg, name)
}

// Role creates a role that can only log in, and drops it with its privileges in the
// database of url when the test ends. It returns the role's name and connection string.
func Role(tb testing.TB, url string) (name, as string) {
	tb.Helper()
	databases.Lock()
	databases.n++
	name = fmt.Sprintf("role_%d_%d", os.Getpid(), databases.n)
	databases.Unlock()
	if err := run(url, "create role "+name+" login password 'secret'"); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := run(url, "drop owned by "+name+"; drop role "+name); err != nil {
			tb.Error(err)
		}
	})
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		tb.Fatal(err)
	}
	cfg.User, cfg.Password = name, "secret"
	return name, InDatabase(cfg, cfg.Database)
}

// run runs statements without parameters.
func run(url, sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, sql)
	return err
}

// InDatabase returns the connection string of another database on the same server.
func InDatabase(cfg *pgx.ConnConfig, name string) string {
	tls := "disable"
	if cfg.TLSConfig != nil {
		tls = "prefer"
	}
	password := strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(cfg.Password)
	return fmt.Sprintf("host=%s port=%d user=%s password='%s' dbname=%s sslmode=%s", cfg.Host, cfg.Port, cfg.User, password, name, tls)
}

// Find returns the folder of the Postgres binaries: EnvBin, or that of the newest
// installed Postgres.
func Find() (string, error) {
	if dir := os.Getenv(EnvBin); dir != "" {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil { //nolint:gosec // named by the developer
			return "", fmt.Errorf("%s: %w", EnvBin, err)
		}
		return dir, nil
	}
	var found []string
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin", "/usr/local/pgsql/bin"} {
		dirs, _ := filepath.Glob(pattern)
		found = append(found, dirs...)
	}
	sortNewestFirst(found)
	if initdb, err := exec.LookPath("initdb"); err == nil {
		found = append(found, filepath.Dir(initdb))
	}
	for _, dir := range found {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("the tests need Postgres: install it (Debian: apt-get install postgresql; macOS: brew install postgresql), or set " + EnvURL)
}

// sortNewestFirst sorts folders by the version in their names. A folder without a version,
// such as Homebrew's, counts as the newest.
func sortNewestFirst(dirs []string) {
	version := regexp.MustCompile(`[0-9]+(\.[0-9]+)?`)
	of := func(dir string) float64 {
		v, err := strconv.ParseFloat(version.FindString(dir), 64)
		if err != nil {
			return math.MaxFloat64
		}
		return v
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return cmp.Compare(of(b), of(a)) })
}

// Start creates a cluster in a temporary folder and runs it on a free loopback port, with
// settings such as "fsync=off".
func Start(settings ...string) (*Server, error) {
	bin, err := Find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pgtest")
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin, Dir: filepath.Join(dir, "data"), log: &serverLog{}}
	if err = s.chooseUser(dir); err == nil {
		var out []byte
		if out, err = s.command("initdb", "-D", s.Dir, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync").CombinedOutput(); err != nil {
			err = fmt.Errorf("initdb: %w\n%s", err, out)
		}
	}
	if err == nil {
		err = s.Run(settings...)
	}
	if err != nil {
		s.Remove()
		return nil, err
	}
	return s, nil
}

// serverLog is the output of a server. Processes of a stopped server may still write
// while the next server does.
type serverLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *serverLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *serverLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// chooseUser selects another user if the test runs as root, because Postgres refuses to
// run as root.
func (s *Server) chooseUser(dir string) error {
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		s.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return os.Chown(dir, int(uid), int(gid))
	}
	return errors.New("pgtest: Postgres does not run as root, and there is no user postgres or nobody")
}

// command returns a command of Postgres as the right user.
func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...) //nolint:gosec,noctx // outlives any one test
	cmd.Dir = filepath.Dir(s.Dir)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = sysProcAttr(s.as)
	return cmd
}

// Command returns a command for other programs of Postgres, such as pg_basebackup.
func (s *Server) Command(name string, args ...string) *exec.Cmd { return s.command(name, args...) }

// Clone returns another data folder next to this one, to run as a second server.
func (s *Server) Clone(name string) *Server {
	return &Server{bin: s.bin, Dir: filepath.Join(filepath.Dir(s.Dir), name), as: s.as, log: &serverLog{}}
}

// Run starts the server on its previous port, or on a free one, and waits until it
// responds.
func (s *Server) Run(settings ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.port == "" {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // only finds a port
		if err != nil {
			return err
		}
		_, s.port, _ = net.SplitHostPort(l.Addr().String())
		_ = l.Close()
	}
	args := []string{"-D", s.Dir, "-p", s.port, "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="}
	for _, set := range settings {
		args = append(args, "-c", set)
	}
	s.cmd = s.command("postgres", args...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	// On Linux, a server stops with the thread that started it, so that no test run leaves
	// one behind. The thread is locked.
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		started <- s.cmd.Start()
		_ = s.cmd.Wait()
	}()
	if err := <-started; err != nil {
		return err
	}
	s.URL = "host=127.0.0.1 port=" + s.port + " user=postgres dbname=postgres sslmode=disable"
	return s.waitUntilReady(30 * time.Second)
}

// waitUntilReady waits until the server responds.
func (s *Server) waitUntilReady(patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.URL)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("pgtest: Postgres does not respond: %w\n%s", err, s.log)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Port returns the loopback port.
func (s *Server) Port() string { return s.port }

// Signal sends a signal to the server: SIGINT stops it at once, SIGQUIT without a
// checkpoint, SIGKILL kills it.
func (s *Server) Signal(sig syscall.Signal) error { return s.cmd.Process.Signal(sig) }

// Stop stops the server with a signal and waits for its end.
func (s *Server) Stop(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	_ = s.Signal(sig)
	// Children of a killed server use its folder for a moment.
	for range 500 {
		if s.cmd.Process.Signal(syscall.Signal(0)) != nil {
			break
		}
		time.Sleep(10 * time.Millisecond) //nolint:forbidigo // waits for a process, not for a clock
	}
	if sig == syscall.SIGKILL {
		_ = os.Remove(filepath.Join(s.Dir, "postmaster.pid"))
	}
}

// Remove stops the server and deletes its data.
func (s *Server) Remove() {
	s.Stop(syscall.SIGINT)
	_ = os.RemoveAll(filepath.Dir(s.Dir))
}
