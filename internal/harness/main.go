package harness

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/pgstores"
	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/sqlitestore"
)

// Update is the flag -update: write golden files instead of comparing them.
var Update = flag.Bool("update", false, "write what is compared: api.txt, the document, traces")

// onStore is the environment variable that names the store of the scenarios; by default they
// run in memory.
const onStore = "AUTH_TEST_STORE"

// otherStores are the values of onStore.
var otherStores = []string{"postgres", "sqlite"}

// OnAnotherStore reports whether this is a further run of the scenarios, not in memory.
func OnAnotherStore() bool { return os.Getenv(onStore) != "" }

// Main is the TestMain of a package of black-box tests. It declares their flags: tests of
// a long table run a sample of it, unless -all is set; -seed repeats a sample.
func Main(m *testing.M) {
	declareFlags()
	skip := flagged[string]("test.skip")
	if !OnAnotherStore() && flagged[string]("test.run") == "" && (skip == "" || !regexp.MustCompile(skip).MatchString("TestOnOtherStores")) && flagged[string]("test.list") == "" {
		furtherRuns() // early, in parallel to the slower tests
	}
	os.Exit(pgtest.Main(m))
}

// MainOnMemory is Main for a package that has no further runs.
func MainOnMemory(m *testing.M) {
	declareFlags()
	os.Exit(pgtest.Main(m))
}

func declareFlags() {
	flag.Bool("all", false, "run what the tests would otherwise draw a sample of")
	flag.Uint64("seed", 0, "draw the sample of an earlier run (0: another one)")
	flag.Parse()
}

// All reports whether -all is set.
func All() bool { return flagged[bool]("all") }

// flagged returns the value of a flag that Main declared.
func flagged[T any](name string) T {
	return flag.Lookup(name).Value.(flag.Getter).Get().(T)
}

// DrawSeed returns the seed of a test's sample and logs it for -seed.
func DrawSeed(t *testing.T) uint64 {
	t.Helper()
	seed := flagged[uint64]("seed")
	for seed == 0 {
		seed = rand.Uint64() //nolint:gosec // picks a sample
	}
	t.Logf("a sample; again with -seed %d, the whole with -all", seed)
	return seed
}

// Sampler returns a test's own random source, because tests run in parallel.
func Sampler(t *testing.T, seed uint64) *rand.Rand {
	t.Helper()
	name := fnv.New64a()
	_, _ = name.Write([]byte(t.Name()))
	return rand.New(rand.NewPCG(seed, name.Sum64())) //nolint:gosec // a sample, not a secret
}

// NewStore returns the scenarios' store: in memory or, in further runs, on another one.
func NewStore(tb testing.TB) auth.Store {
	tb.Helper()
	switch os.Getenv(onStore) {
	case "":
		return memstore.New()
	case "postgres":
		return pgstores.New(tb)
	}
	s, err := sqlitestore.Open(filepath.Join(tb.TempDir(), "auth.db"))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() })
	return s
}

// NewEnv is authtest.New on NewStore.
func NewEnv(tb testing.TB, opts ...auth.Option) *authtest.Env {
	tb.Helper()
	return authtest.NewOn(tb, NewStore(tb), opts...)
}

// OnOtherStores runs all scenarios of a package again on a real Postgres and on SQLite, in
// processes of their own. At least atLeast tests have to pass in each.
func OnOtherStores(t *testing.T, atLeast int) {
	t.Helper()
	if OnAnotherStore() {
		return
	}
	t.Parallel()
	for i, again := range furtherRuns() {
		t.Run(otherStores[i], func(t *testing.T) {
			t.Parallel()
			<-again.over
			out, passed := again.out.String(), 0
			for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
				if strings.HasPrefix(lines.Text(), "--- PASS") {
					passed++
				}
			}
			if again.err != nil || passed < atLeast {
				t.Errorf("%v, %d tests passed\n%s", again.err, passed, failures(out))
			}
		})
	}
}

// furtherRun is a run of this package's tests in another process.
type furtherRun struct {
	over chan struct{} // closed at the end
	out  bytes.Buffer  // readable after over is closed
	err  error
}

// furtherRuns starts the runs on otherStores.
var furtherRuns = sync.OnceValue(func() (runs []*furtherRun) {
	left := flagged[time.Duration]("test.timeout")
	if left > 0 {
		left -= time.Minute // time to report a test that hangs
	}
	for _, name := range otherStores {
		r := &furtherRun{over: make(chan struct{})}
		runs = append(runs, r)
		cmd := exec.Command(os.Args[0], "-test.v", fmt.Sprintf("-test.timeout=%s", left), "-test.skip="+flagged[string]("test.skip"),
			fmt.Sprintf("-all=%v", All()), fmt.Sprintf("-seed=%d", flagged[uint64]("seed")))
		cmd.Env = append(os.Environ(), onStore+"="+name)
		cmd.Stdout, cmd.Stderr = &r.out, &r.out
		go func() {
			defer close(r.over)
			r.err = cmd.Run()
		}()
	}
	return runs
})

// failures returns the lines of a run's output that report failures.
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
