package admin_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// A store that fails at any call of an operation is told of: no operation takes an
// error for an empty list, or goes on without what it could not read. Which calls there
// are is written down: one more costs everybody, and one less is something that is not
// asked any more. -update writes it.
func TestOutagesAreToldAndCallsWrittenDown(t *testing.T) {
	t.Parallel()
	rows := slices.DeleteFunc(admin.Table(), func(row admin.Row) bool { // their results tell of each row
		return row.Pattern == "POST /users/import" || row.Pattern == "POST /users/bulk"
	})
	texts := make([]string, len(rows))
	t.Run("rows", func(t *testing.T) {
		for i, row := range rows {
			t.Run(row.Pattern, func(t *testing.T) {
				t.Parallel()
				texts[i] = "> " + row.Pattern + "\n" + strings.Join(callsOf(t, row), "\n") + "\n"
			})
		}
	})
	if !t.Failed() {
		asWrittenDown(t, "calls", strings.Join(texts, ""))
	}
}

// callsOf has each call of the store that the example of an operation makes fail in turn,
// and returns which they are.
func callsOf(t *testing.T, row admin.Row) []string {
	t.Helper()
	tap := storetap.New(memstore.New())
	o, _ := newScene(t, tap)
	owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
	o.hasPhone(owner, "+4930123456")
	o.Clock.Advance(time.Minute) // the gap between two messages
	for k := 1; k < 40; k++ {
		target := o.LoginAs(t, fmt.Sprintf("try%d@example.com", k)) // some are done to although that is not known in time
		o.arm(target)
		var mu sync.Mutex
		var calls []string
		failed := ""
		o.sending = func() {
			tap.Reset(storetap.Hooks{Fault: func(_ context.Context, method string, n int) storetap.Fault {
				mu.Lock()
				defer mu.Unlock()
				calls = append(calls, method)
				if n != k {
					return storetap.NoFault
				}
				failed = method
				return storetap.FailsBefore
			}, Draws: func(draws []store.Draw) []store.Draw { // what those that failed drew is left
				draws = slices.Clone(draws)
				for i := range draws {
					draws[i].Key = fmt.Sprint("try ", k, draws[i].Key)
				}
				return draws
			}})
		}
		a := o.try(owner, row, target)
		tap.Reset(storetap.Hooks{})
		o.sending = nil
		mu.Lock()
		switch {
		case failed == "":
			defer mu.Unlock()
			a.want(examples[row.Pattern].status)
			return calls
		case failed == "Take": // a notice goes out all the same where its limit cannot be drawn
		case a.status != 503 || a.body["code"] != string(auth.CodeUnavailable):
			t.Errorf("%d %v where the call %d, %s, fails", a.status, a.body, k, failed)
		}
		mu.Unlock()
	}
	t.Error("it makes more calls than are looked at")
	return nil
}

// asWrittenDown compares a text with a file below testdata.
func asWrittenDown(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	compareLedgers(t, string(want), got)
}
