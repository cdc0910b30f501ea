package storetest_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
	"github.com/authmount/auth/storetest"
)

// A suite that never fails shows nothing. A mutant is a store with one fault, and each of
// the named checks has to notice it.
type mutant struct {
	broken func(store.Store) store.Store
	caught []string
}

// base is a store with the optional interfaces of another one.
type base struct{ store.Store }

func (b base) Unwrap() store.Store { return b.Store }

func mutants() map[string]mutant {
	all := map[string]mutant{}
	for _, group := range []map[string]mutant{changeMutants(), userMutants(), credentialMutants(), sessionMutants(), tokenMutants(), factorMutants(), factorUpdateMutants(), recordMutants(), fieldMutants(), deviceMutants(), newDeviceMutants(), importMutants(), rotationMutants(), replayMutants(), proofMutants(), exportMutants(), trustMutants(), settingsMutants(), directoryMutants(), impersonationMutants(), sessionListMutants(), invitationMutants(), anonymizeMutants(), jobMutants(), messageMutants(), nobodyMutants(), sequenceMutants(), completionMutants(), tieMutants()} {
		maps.Copy(all, group)
	}
	return all
}

// namesCall matches a failure: the call, the result and the wanted result.
var namesCall = regexp.MustCompile(`\.go:\d+: (before any call: \w+\(\)|[A-Z]\w+\(…\)( after \w+\(…\))?: .*)( = .+, want .+| differs:\n|: what was \(-\) and is \(\+\))`)

const mutantEnv = "STORETEST_MUTANT"

// TestSuiteBites runs checks on every mutant, each in a process of its own, because they
// are meant to fail there. A check of a race that passes by chance runs again.
func TestSuiteBites(t *testing.T) {
	t.Parallel()
	for name, m := range mutants() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out []byte
			for missed, round := m.caught, 0; len(missed) > 0; round++ {
				if round == 3 {
					t.Fatalf("%q did not notice:\n%s", missed, out)
				}
				missed, out = unnoticed(t, name, missed)
			}
		})
	}
}

// unnoticed runs checks on a mutant and returns those that pass, with the output.
func unnoticed(t *testing.T, name string, checks []string) (missed []string, all []byte) {
	for group, run := range groups(checks) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMutant$/^"+group+"$/^("+run+")$") //nolint:gosec // this very binary
		cmd.Env = append(os.Environ(), mutantEnv+"="+name)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		for _, check := range checks {
			want := "--- FAIL: TestMutant/" + strings.ReplaceAll(check, " ", "_") + " ("
			if !strings.HasPrefix(check, group+"/") {
				continue
			}
			_, told, failed := bytes.Cut(out, []byte(want))
			if !failed {
				missed = append(missed, check)
				continue
			}
			told, _, _ = bytes.Cut(told, []byte("\n        --- ")) // the next check
			if !namesCall.Match(told) {
				t.Errorf("%q fails without the call, what came and what was wanted:\n%s", check, told)
			}
		}
		all = append(all, out...)
	}
	return missed, all
}

// groups are the checks to run, as expressions, by group.
func groups(caught []string) map[string]string {
	all := map[string]string{}
	for _, c := range caught {
		parts := strings.SplitN(c, "/", 3)
		run := regexp.QuoteMeta(strings.ReplaceAll(parts[1], " ", "_"))
		if all[parts[0]] != "" {
			run = all[parts[0]] + "|" + run
		}
		all[parts[0]] = run
	}
	return all
}

// TestMutant is the process that TestSuiteBites runs; by itself it does nothing.
func TestMutant(t *testing.T) {
	m, ok := mutants()[os.Getenv(mutantEnv)]
	if !ok {
		return
	}
	storetest.Run(t, func(*testing.T) store.Store { return m.broken(memstore.New()) })
}

func TestMemstore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) store.Store { return memstore.New() })
}

// pause lets other goroutines run between two halves of a step that should be atomic, long
// enough on a busy machine, too.
func pause() { <-time.After(5 * time.Millisecond) }
