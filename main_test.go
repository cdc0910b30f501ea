package auth_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/pgstore"
)

// onPostgres makes the scenarios of this package run on pgstore.
const onPostgres = "AUTH_TEST_ON_POSTGRES"

// TestMain declares the flags of this package's tests. Those that try everything
// in a long table run a sample of it, unless -all is given; -seed repeats one.
func TestMain(m *testing.M) {
	flag.Bool("all", false, "run what the tests would otherwise draw a sample of")
	flag.Uint64("seed", 0, "draw the sample of an earlier run (0: another one)")
	os.Exit(pgtest.Main(m))
}

// wholly tells whether -all was given.
func wholly() bool { return flagged[bool]("all") }

// flagged is the value of a flag that TestMain declared.
func flagged[T any](name string) T {
	return flag.Lookup(name).Value.(flag.Getter).Get().(T)
}

// drawSeed is the seed of a test's sample, which is printed for -seed.
func drawSeed(t *testing.T) uint64 {
	t.Helper()
	seed := flagged[uint64]("seed")
	for seed == 0 {
		seed = rand.Uint64() //nolint:gosec // picks a sample
	}
	t.Logf("a sample; again with -seed %d, the whole with -all", seed)
	return seed
}

// sampler is a source of choices for a test, its own since tests are parallel.
func sampler(t *testing.T, seed uint64) *rand.Rand {
	t.Helper()
	name := fnv.New64a()
	_, _ = name.Write([]byte(t.Name()))
	return rand.New(rand.NewPCG(seed, name.Sum64())) //nolint:gosec // a sample, not a secret
}

// newStore is what the scenarios run on: memory or, in a process of its own,
// Postgres.
func newStore(tb testing.TB) auth.Store {
	tb.Helper()
	if os.Getenv(onPostgres) != "" {
		return newPostgres(tb)
	}
	return memstore.New()
}

// newEnv is authtest.New on newStore.
func newEnv(tb testing.TB, opts ...auth.Option) *authtest.Env {
	tb.Helper()
	return authtest.NewOn(tb, newStore(tb), opts...)
}

var postgres struct {
	once    sync.Once
	pool    *pgxpool.Pool
	err     error
	schemas atomic.Int32
}

// newPostgres is a store in a schema of its own.
func newPostgres(tb testing.TB) auth.Store {
	tb.Helper()
	url := pgtest.URL(tb)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	postgres.once.Do(func() {
		cfg, err := pgxpool.ParseConfig(url)
		if err != nil {
			postgres.err = err
			return
		}
		cfg.MaxConns = 20
		postgres.pool, postgres.err = pgxpool.NewWithConfig(context.Background(), cfg)
	})
	if postgres.err != nil {
		tb.Fatal(postgres.err)
	}
	schema := fmt.Sprintf("http_%d", postgres.schemas.Add(1))
	s, err := pgstore.New(postgres.pool, pgstore.WithSchema(schema))
	if err == nil {
		err = s.Migrate(ctx)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if _, err := postgres.pool.Exec(ctx, "drop schema "+schema+" cascade"); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// TestEverythingOnPostgres runs all scenarios of this package again, unchanged,
// on a real Postgres, in a process of its own.
func TestEverythingOnPostgres(t *testing.T) {
	if os.Getenv(onPostgres) != "" {
		return
	}
	t.Parallel()
	left := time.Duration(0) // no timeout, as here
	if end, ok := t.Deadline(); ok {
		left = time.Until(end) - time.Minute // it says where it hangs, while there is time to tell
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", fmt.Sprintf("-test.timeout=%s", left), //nolint:gosec // this very binary
		fmt.Sprintf("-all=%v", wholly()), fmt.Sprintf("-seed=%d", flagged[uint64]("seed")))
	cmd.Env = append(os.Environ(), onPostgres+"=1")
	out, err := cmd.CombinedOutput()
	passed := 0
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "--- PASS") {
			passed++
		}
	}
	if err != nil || passed < 150 {
		t.Errorf("%v, %d tests passed\n%s", err, passed, failures(string(out)))
	}
}

// failures are the lines of a run's output that tell what failed.
func failures(out string) string {
	var b strings.Builder
	keep := 0
	for line := range strings.Lines(out) {
		if strings.Contains(line, "--- FAIL") || strings.Contains(line, "panic:") || strings.Contains(line, "DATA RACE") {
			keep = 15
		}
		if keep > 0 {
			b.WriteString(line)
			keep--
		}
	}
	return b.String()
}
