// Command mutants makes small changes to the code, one at a time, and runs the tests that
// reach them. A change that no test detects is a survivor.
//
//	go run -C tools/mutants . [-n 150] [-seed N] [-only REGEXP] [-run REGEXP] [-skip REGEXP] [-j N]
//
// Mutants are a random sample from the files that matter to security (see matters), which
// excludes examples, benchmarks, generators and test helpers. The source tree is never
// changed: a build overlay compiles all mutants into the test binaries. Each is a copy of
// its function that an environment variable selects, so that one build contains them all.
// Mutants outside functions get their own build. A survivor is a question for a review,
// not a failure: some mutants change nothing that matters.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	n := flags.Int("n", 150, "how many mutants; 0 for all")
	seed := flags.Uint64("seed", rand.Uint64(), "of the sample; random unless it is given") //nolint:gosec // no secret
	only := flags.String("only", "", "only mutants of which this matches: file function - what was there + what is there instead")
	tests := flags.String("run", "", "only tests whose name matches this")
	skip := flags.String("skip", "^$", "no tests whose name matches this")
	report := flags.String("report", filepath.Join(os.TempDir(), "mutants.txt"), "survivors are appended to this file")
	jobs := flags.Int("j", runtime.NumCPU(), "how many tests run at a time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	match, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	pool, err := candidates(root, match)
	if err != nil {
		return err
	}
	found := len(pool)
	rnd := rand.New(rand.NewPCG(*seed, 0)) //nolint:gosec // a sample, no secret
	rnd.Shuffle(len(pool), func(i, j int) { pool[i], pool[j] = pool[j], pool[i] })
	w, err := newWorkshop(root, *jobs, out)
	if err != nil {
		return err
	}
	defer w.close()
	if w.tests, err = regexp.Compile(*tests); err != nil {
		return err
	}
	if w.skip, err = regexp.Compile(*skip); err != nil {
		return err
	}
	began := time.Now()
	sample, err := w.sample(ctx, pool, *n)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "seed %d: %d mutants of %d\n", *seed, len(sample), found)
	if err := w.judge(ctx, sample); err != nil {
		return err
	}
	return conclude(out, *report, *seed, sample, time.Since(began))
}

// conclude prints the counts and appends the survivors to the report.
func conclude(out io.Writer, report string, seed uint64, sample []*mutant, took time.Duration) error {
	var left strings.Builder
	killed, survived := 0, 0
	slices.SortFunc(sample, func(a, b *mutant) int { return strings.Compare(a.place(), b.place()) })
	for _, m := range sample {
		if m.killer != "" {
			killed++
			continue
		}
		survived++
		fmt.Fprintf(&left, "%s\n%s\n", m.place(), m.key())
	}
	rate := 100.0
	if killed+survived > 0 {
		rate = 100 * float64(killed) / float64(killed+survived)
	}
	sum := fmt.Sprintf("seed %d: %d killed, %d survived: %.1f %%; %s", seed, killed, survived, rate, took.Round(time.Second))
	_, _ = fmt.Fprintf(out, "\n%s%s\n", left.String(), sum)
	f, err := os.OpenFile(report, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) //nolint:gosec // whoever runs this names it
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s\n%s\n", sum, left.String())
	if errClose := f.Close(); err == nil {
		err = errClose
	}
	_, _ = fmt.Fprintf(out, "appended to %s\n", report)
	return err
}
