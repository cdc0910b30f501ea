package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/internal/pgtest"
)

// suite is a package's compiled tests.
type suite struct {
	dir      string // the package, relative to the module
	binary   string
	postgres bool // needs a database
	flows    bool // runs the root's scenarios on Postgres
	tests    []test
}

// test is one test function, with its duration and the mutants that it reaches.
type test struct {
	name  string
	took  time.Duration
	meets map[int]bool
	fails bool // fails without a mutant, too
}

func (s *suite) String() string {
	if s.flows {
		return s.dir + " on Postgres"
	}
	return s.dir
}

// textual matches tests that compare the text of statements. They fail for every change of
// a statement and verify no behaviour.
const textual = "^TestStatementsAsSent"

// onPostgres runs the scenarios of the flows on pgstore. TestOnOtherStores is
// excluded, because it runs all of them itself.
const (
	onPostgres = "AUTH_TEST_STORE=postgres"
	allAtOnce  = "TestOnOtherStores"
)

// flows returns the folders with the tests of the flows: the root and internal/tests.
func (w *workshop) flows() []string {
	dirs := []string{"."}
	below, _ := filepath.Glob(filepath.Join(w.root, "internal", "tests", "*"))
	for _, dir := range below {
		dirs = append(dirs, path.Join("internal/tests", filepath.Base(dir)))
	}
	return dirs
}

// judge runs tests on each mutant until one fails.
func (w *workshop) judge(ctx context.Context, sample []*mutant) error {
	together := slices.DeleteFunc(slices.Clone(sample), func(m *mutant) bool { return m.alone })
	overlay, _, err := w.overlay("all", together)
	if err != nil {
		return err
	}
	dirs := packages(sample)
	for _, dir := range append(w.flows(), "memstore") {
		if here, _ := filepath.Glob(filepath.Join(w.root, dir, "*_test.go")); len(here) > 0 {
			dirs = append(dirs, "./"+dir)
		}
	}
	slices.Sort(dirs)
	suites, err := w.compile(ctx, "all", overlay, slices.Compact(dirs))
	if err != nil {
		return err
	}
	bench := &bench{w: w}
	if slices.ContainsFunc(suites, func(s *suite) bool { return s.postgres }) {
		db, err := pgtest.Start("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=300")
		if err != nil {
			return err
		}
		defer db.Remove()
		bench.db = db.URL
	}
	if err := bench.measure(ctx, suites); err != nil {
		return err
	}
	var done atomic.Int32
	return w.each(len(sample), func(i int) error {
		m := sample[i]
		if err := bench.kill(ctx, m, suites); err != nil {
			return err
		}
		verdict := "killed by " + m.killer
		if m.killer == "" {
			verdict = "SURVIVED\n" + m.key()
		}
		_, _ = fmt.Fprintf(w.out, "%d/%d %s: %s\n", done.Add(1), len(sample), m.place(), verdict)
		return nil
	})
}

// each calls f for 0 to n-1, as many at once as there are jobs.
func (w *workshop) each(n int, f func(int) error) error {
	var next atomic.Int32
	var wg sync.WaitGroup
	errs := make(chan error, w.jobs)
	for range w.jobs {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := f(i); err != nil {
					next.Store(int32(n)) //nolint:gosec // thousands
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}

// compile builds the tests of packages.
func (w *workshop) compile(ctx context.Context, name, overlay string, dirs []string) ([]*suite, error) {
	var suites []*suite
	for _, dir := range dirs {
		binary := filepath.Join(w.tmp, name, strings.ReplaceAll(dir, "/", "_")+".test")
		out, err := w.goTool(ctx, "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary, dir)
		if err != nil {
			return nil, fmt.Errorf("go test -c %s: %w\n%s", dir, err, out)
		}
		if _, err := os.Stat(binary); err != nil {
			continue // the package has no tests
		}
		suites = append(suites, &suite{dir: path.Clean(dir), binary: binary, postgres: path.Clean(dir) == "pgstore"})
		if slices.Contains(w.flows(), path.Clean(dir)) && slices.Contains(dirs, "./pgstore") {
			suites = append(suites, &suite{dir: path.Clean(dir), binary: binary, postgres: true, flows: true})
		}
	}
	return suites, nil
}

// bench runs test binaries.
type bench struct {
	w  *workshop
	db string // URL for the superuser
	n  atomic.Int32
}

// measure records the duration of each test and the mutants that it reaches.
func (b *bench) measure(ctx context.Context, suites []*suite) error {
	type job struct {
		s *suite
		t *test
	}
	var jobs []job
	for _, s := range suites {
		out, err := exec.CommandContext(ctx, s.binary, "-test.list", "^(Test|Example|Fuzz)").Output() //nolint:gosec // built above
		if err != nil {
			return err
		}
		for name := range strings.Lines(string(out)) {
			if name = strings.TrimSpace(name); b.w.tests.MatchString(name) && !b.w.skip.MatchString(name) && name != allAtOnce && !strings.HasPrefix(name, textual[1:]) {
				s.tests = append(s.tests, test{name: name})
			}
		}
		if s.flows { // they would take longer one by one than all mutants together
			continue
		}
		for i := range s.tests {
			jobs = append(jobs, job{s, &s.tests[i]})
		}
	}
	_, _ = fmt.Fprintf(b.w.out, "running %d tests without a mutant\n", len(jobs))
	return b.w.each(len(jobs), func(i int) error {
		s, t := jobs[i].s, jobs[i].t
		notes := filepath.Join(b.w.tmp, "notes", strconv.Itoa(i))
		if err := write(notes, ""); err != nil {
			return err
		}
		began := time.Now()
		failed, out, err := b.run(ctx, s, []string{t.name}, 10*time.Minute, envReached+"="+notes)
		if err != nil {
			return err
		}
		t.took, t.fails, t.meets = time.Since(began), failed != "", map[int]bool{}
		if t.fails {
			_, _ = fmt.Fprintf(b.w.out, "left out, since it fails without a mutant: %s in %s\n%s\n", t.name, s, out)
		}
		raw, err := os.ReadFile(notes) //nolint:gosec // of our own
		if err != nil {
			return err
		}
		for id := range strings.FieldsSeq(string(raw)) {
			n, err := strconv.Atoi(id)
			if err != nil {
				return err
			}
			t.meets[n] = true
		}
		return nil
	})
}

// rounds are the time limits for the tests of one run. Most mutants fail in the first.
func rounds() []time.Duration {
	return []time.Duration{2 * time.Second, 10 * time.Second, time.Hour}
}

// kill runs the tests that reach a mutant, quick ones first.
func (b *bench) kill(ctx context.Context, m *mutant, suites []*suite) error {
	if m.alone {
		var err error
		if suites, err = b.alone(ctx, m, suites); err != nil {
			return err
		}
	}
	for _, s := range suites {
		if m.killer == "" && !s.flows {
			if err := b.killWith(ctx, m, s); err != nil {
				return err
			}
		}
	}
	if m.killer == "" && m.dir() == "pgstore" {
		for _, s := range suites {
			if s.flows && m.killer == "" {
				if err := b.killWith(ctx, m, s); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// alone builds suites in which one mutant replaces the code, its own package's suite
// first.
func (b *bench) alone(ctx context.Context, m *mutant, suites []*suite) ([]*suite, error) {
	overlay, err := b.w.overlayAlone(m)
	if err != nil {
		return nil, err
	}
	dirs := []string{"./" + m.dir()}
	for _, dir := range b.w.flows() {
		if m.dir() != "memstore" && m.dir() != dir {
			dirs = append(dirs, "./"+dir)
		}
	}
	built, err := b.w.compile(ctx, filepath.Join("alone", strconv.Itoa(m.id)), overlay, dirs)
	for _, s := range built {
		for _, of := range suites {
			if of.dir == s.dir && of.flows == s.flows {
				s.tests = of.tests
			}
		}
	}
	return built, err
}

// killWith runs the tests of one suite.
func (b *bench) killWith(ctx context.Context, m *mutant, s *suite) error {
	var meet []test
	for _, t := range s.tests {
		if !t.fails && (m.alone || s.flows || t.meets[m.id]) {
			meet = append(meet, t)
		}
	}
	slices.SortStableFunc(meet, func(a, b test) int { return int(a.took - b.took) })
	on := envMutant + "=" + strconv.Itoa(m.id)
	for _, most := range rounds() {
		var names []string
		var sum time.Duration
		for len(meet) > 0 && (len(names) == 0 || sum+meet[0].took <= most) {
			names, sum, meet = append(names, meet[0].name), sum+meet[0].took, meet[1:]
		}
		for len(names) > 0 {
			failed, _, err := b.run(ctx, s, names, 2*time.Minute+5*sum, on)
			if err != nil {
				return err
			}
			if failed == "" {
				break
			}
			// The test must fail again alone, because flaky tests kill nothing.
			name, _, _ := strings.Cut(failed, "/")
			again := failed
			if slices.Contains(names, name) {
				if again, _, err = b.run(ctx, s, []string{name}, 2*time.Minute+5*sum, on); err != nil {
					return err
				}
			}
			if again != "" {
				m.killer = failed + " in " + s.String()
				return nil
			}
			names = slices.DeleteFunc(names, func(n string) bool { return n == name })
		}
	}
	return nil
}

var failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^(panic: .*|fatal error: .*)`)

// run runs tests and returns the failed one, or "".
func (b *bench) run(ctx context.Context, s *suite, names []string, limit time.Duration, env ...string) (failed, output string, err error) {
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, limit+time.Minute)
	defer cancel()
	if s.postgres {
		url, drop, err := b.database(ctx)
		if err != nil {
			return "", "", err
		}
		defer drop()
		env = append(env, pgtest.EnvURL+"="+url)
	}
	if s.flows {
		env = append(env, onPostgres)
	}
	cmd := exec.CommandContext(ctx, s.binary, "-test.failfast", "-test.timeout="+limit.String(), "-test.run=^("+strings.Join(names, "|")+")$") //nolint:gosec // built above
	cmd.Dir = filepath.Join(b.w.root, filepath.FromSlash(s.dir))
	cmd.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err == nil {
		return "", "", nil
	}
	if err := whole.Err(); err != nil {
		return "", "", err // whoever interrupts kills no mutant
	}
	if at := failedTest.FindStringSubmatch(out.String()); at != nil {
		return at[1] + at[2], out.String(), nil
	}
	return "the run", out.String(), nil
}

// database creates a database for one run.
func (b *bench) database(ctx context.Context) (url string, drop func(), err error) {
	conn, err := pgx.Connect(ctx, b.db)
	if err != nil {
		return "", nil, err
	}
	name := fmt.Sprintf("mutants_%d", b.n.Add(1))
	if _, err := conn.Exec(ctx, "create database "+name); err != nil {
		return "", nil, err
	}
	return pgtest.InDatabase(conn.Config(), name), func() {
		_, _ = conn.Exec(context.WithoutCancel(ctx), "drop database if exists "+name+" with (force)")
		_ = conn.Close(context.WithoutCancel(ctx))
	}, nil
}
