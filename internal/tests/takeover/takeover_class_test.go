package takeover_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// classMasked are the conditions that other conditions back up, so that a flow without them
// would do no harm.
func classMasked() map[mutant]string {
	const ends = "the session ends with the account's credentials"
	const raised = "the store checks the session that it raises"
	return map[mutant]string{
		{"EnableFactor", "users"}:              ends,
		{"UpdateFactor", "users"}:              ends,
		{"RedeemToken", "users"}:               "the link, and the session that it moves an address for, end with the account's credentials",
		{"UseRecoveryCode", "users"}:           "the session and the token end with the account's credentials",
		{"UseRecoveryCode", "session"}:         raised,
		{"UseRecoveryCode", "session users"}:   raised,
		{"UseFactor", "users"}:                 "the factor goes with the account's credentials",
		{"RemoveFactor", "users"}:              ends,
		{"AddAuthentication", "session"}:       "AddAuthentication asks of the session itself",
		{"AddAuthentication", "users"}:         "the session ends with the account's credentials",
		{"AddAuthentication", "session users"}: "AddAuthentication asks of the session itself, which ends with the account's credentials",
		{"DeleteUser", "users"}:                "the session ends with the account's credentials",
		{"PutFactor", "users"}:                 "the session and the token end with the account's credentials",
		{"PutFactor", "token"}:                 "the account's credentials change whenever the token dies",
		{"RedeemCode", "users"}:                "the session ends with the account's credentials; a sign-in's code makes its own takeover",
	}
}

func newClassWorld(t *testing.T, r harness.Row, more ...auth.Option) *harness.ClassWorld {
	t.Helper()
	return harness.NewClassWorldOn(t, harness.NewStore(t), r, more...)
}

// classExempt are the routes during which no account can be lost.
func classExempt() map[string]string {
	return map[string]string{
		"GET /oauth/{provider}":                 "begins a sign-in that is nobody's yet",
		"POST /passkeys/sign-in/begin":          "names no account, and stores nothing",
		"POST /magic-link/send":                 "anybody may ask, and the link goes to the address",
		"POST /otp/send":                        "anybody may ask, and the code goes to the number",
		"POST /forgot-password":                 "anybody may ask, and the link goes to the address",
		"GET /reset-password":                   "shows a form; the link is used by the post",
		"GET /secure-account":                   "shows a page; the link is used by the post",
		"GET /invitations/accept":               "shows a page; the link is used by the post",
		"POST /secure-account":                  "takes ways in away and makes none; it rests on the mailbox that a notice went to, and on purpose outlives whatever happens to the account",
		"GET /settings":                         "is about no account",
		"GET /.well-known/jwks.json":            "is about no account",
		"GET /pages/passkey.js":                 "is about no account",
		"GET /.well-known/openid-configuration": "is about no account",
		"GET /openapi.json":                     "is about no account",
		"GET /healthz":                          "is about no account",
	}
}

// harmless returns the reason why a change may succeed after the account was lost. Empty: it
// may not.
func harmless(c harness.Call, account string, a harness.Act) string {
	uses := c.Change.By.Proof && (c.Method == "RedeemToken" || c.Method == "RedeemCode")
	switch {
	case c.Method == "PutToken" && c.Change.By.System == "send":
		return "whoever asks gets a link or code sent to whose the address is"
	case c.Method == "PutToken" && c.Change.By.System == "account exists":
		return "the message goes to the account's own address"
	case c.Method == "PutToken" && c.Change.By.System == "sign-up with a taken name":
		return "no attempt matches the code"
	case c.Method == "PutToken" && (c.Change.By.System == "passkey removed" || c.Change.By.System == "first passkey"):
		return "it is about a passkey or the service, and helps nobody in"
	case c.Method == "PutToken" && c.Change.By.System == "oauth":
		return "a sign-in that begins is nobody's yet"
	case c.Method == "PutToken" && c.Change.By.System == "application":
		return "a login that is refused mails the account's own address"
	case c.Method == "CreateUser":
		return "it makes another account"
	case uses && len(c.Change.IfUsers) == 0:
		return "it uses a state or code up without an effect, or makes another account"
	case uses && (a == harness.Banned || a == harness.SignedOut):
		return "a proof of its own is used up; an effect on the account is seen there"
	case !about(c, account):
		return "it is about another account"
	}
	return ""
}

// about reports whether a change may affect an account.
func about(c harness.Call, account string) bool {
	if s := c.Change.By.Session; s != nil {
		return s.UserID == account
	}
	return len(c.Change.IfUsers) == 0 ||
		slices.ContainsFunc(c.Change.IfUsers, func(u auth.UserAt) bool { return u.ID == "" || u.ID == account })
}

// record has the store calls of a request.
type record struct {
	calls   []harness.Call
	n       int
	reached bool // the act took place
}

// run makes a row's request with an act before its k-th store call (0: without), and returns
// its store calls.
func run(s *harness.Scene, request func() *harness.Answer, a harness.Act, k int, edit harness.Edit) record {
	var rec record
	var current *harness.Call
	s.Start = s.Look(s.T.Context())
	s.Tap.Reset(storetap.Hooks{
		Before: func(ctx context.Context, _ string, n int) {
			current = nil
			if n == k {
				rec.reached = true
				s.Lose(ctx, a)
			}
		},
		Edit: func(method string, c *store.Change) {
			current = &harness.Call{Method: method, Change: *c, Late: rec.reached}
			if edit != nil {
				edit(method, c)
			}
		},
		After: func(_ context.Context, _ string, _ int, err error) {
			if current != nil {
				current.Err = err
				rec.calls = append(rec.calls, *current)
			}
		},
	})
	request() // the person keeps its answer
	rec.n = s.Tap.Calls()
	s.Tap.Reset(storetap.Hooks{})
	return rec
}

// outcome is the end of one run.
type outcome struct {
	hit        bool // the account was lost by the act
	violations []string
}

// try runs one act of a row at one store call.
func try(w *harness.ClassWorld, r harness.Row, a harness.Act, k int, edit harness.Edit) outcome {
	s := w.NewScene(r)
	request := r.Prepare(s)
	rec := run(s, request, a, k, edit)
	if !s.Lost {
		return outcome{}
	}
	o := outcome{hit: true}
	for _, c := range rec.calls {
		if c.Late && c.Err == nil && harmless(c, s.Id, a) == "" {
			o.violations = append(o.violations, fmt.Sprintf("%s came about after the act, by %s", c.Method, authority(c.Change.By)))
		}
	}
	o.violations = append(o.violations, s.Leftovers(a)...)
	return o
}

// windows records the store calls and changes that a row makes without a disturbance.
func windows(w *harness.ClassWorld, r harness.Row) record {
	s := w.NewScene(r)
	rec := run(s, r.Prepare(s), "", 0, nil)
	return rec
}

func authority(by auth.Authority) string {
	switch {
	case by.Session != nil:
		return "session"
	case by.Token != nil:
		return "token"
	case by.Proof:
		return "proof"
	case by.System != "":
		return "system " + strconv.Quote(by.System)
	}
	return "nobody"
}

// sample picks one of the windows, by a seed that is printed, where all of them
// would take too long.
func sample(t *testing.T) func(t *testing.T, acts []harness.Act, n int) ([]harness.Act, []int) {
	t.Helper()
	all := func(_ *testing.T, acts []harness.Act, n int) ([]harness.Act, []int) {
		ks := make([]int, n)
		for i := range ks {
			ks[i] = i + 1
		}
		return acts, ks
	}
	if !harness.OnAnotherStore() || harness.All() {
		return all
	}
	seed := harness.DrawSeed(t)
	return func(t *testing.T, acts []harness.Act, n int) ([]harness.Act, []int) {
		t.Helper()
		rnd := harness.Sampler(t, seed)
		return []harness.Act{acts[rnd.IntN(len(acts))]}, []int{1 + rnd.IntN(n)}
	}
}

// Every route is in the table or exempt with a reason; a new one fails until it
// is.
func TestTakeoverClassIsWhole(t *testing.T) {
	t.Parallel()
	routes := harness.Routes(harness.NewWorld(t).Auth)
	table := harness.ClassTable()
	for _, pattern := range routes {
		switch rows, exempt := table[pattern], classExempt()[pattern]; {
		case len(rows) == 0 && exempt == "":
			t.Errorf("%s is neither in the table nor exempt: what happens if the account is lost in the middle of it?", pattern)
		case len(rows) > 0 && exempt != "":
			t.Errorf("%s is in the table and exempt", pattern)
		}
	}
	for _, pattern := range slices.Concat(slices.Collect(maps.Keys(table)), slices.Collect(maps.Keys(classExempt()))) {
		if !slices.Contains(routes, pattern) {
			t.Errorf("%s is no route", pattern)
		}
	}
}

func TestTakeoverClass(t *testing.T) {
	t.Parallel()
	pick := sample(t)
	for _, pattern := range slices.Sorted(maps.Keys(harness.ClassTable())) {
		for _, r := range harness.ClassTable()[pattern] {
			acts := r.Acts()
			t.Run(pattern+" "+r.Name+" by "+string(r.Kind), func(t *testing.T) {
				t.Parallel()
				w := newClassWorld(t, r)
				n := windows(w, r).n
				if n == 0 {
					t.Fatal("it asks the store nothing")
				}
				chosen, ks := pick(t, acts, n)
				for _, a := range chosen {
					hits := 0
					for _, k := range ks {
						o := try(w, r, a, k, nil)
						if o.hit {
							hits++
						}
						for _, v := range o.violations {
							t.Errorf("%s before call %d of %d: %s", a, k, n, v)
						}
					}
					if hits == 0 && len(ks) == n && r.Kind != harness.OnNothing {
						t.Errorf("%s never took place", a)
					}
				}
			})
		}
	}
}

// mutant is a condition that a flow might forget.
type mutant struct {
	method  string
	dropped string // "session", "token", "users", or two of them
}

func (m mutant) edit(method string, c *store.Change) {
	if method != m.method {
		return
	}
	if (c.By.Session != nil && strings.Contains(m.dropped, "session")) || (c.By.Token != nil && strings.Contains(m.dropped, "token")) {
		c.By = auth.Authority{System: "a mutant"}
	}
	if strings.Contains(m.dropped, "users") {
		c.IfUsers = nil
	}
}

// mutants returns the mutants of a change: without each condition, and without all.
func mutants(c harness.Call) []mutant {
	var list []mutant
	by := ""
	if c.Change.By.Session != nil || c.Change.By.Token != nil {
		by = authority(c.Change.By)
		list = append(list, mutant{c.Method, by})
	}
	if len(c.Change.IfUsers) > 0 {
		list = append(list, mutant{c.Method, "users"})
		if by != "" {
			list = append(list, mutant{c.Method, by + " users"})
		}
	}
	return list
}

// A condition that is dropped is found: the test above would have failed.
func TestTakeoverClassBites(t *testing.T) {
	if harness.OnAnotherStore() {
		return // about the test, not about the store
	}
	t.Parallel()
	var mu sync.Mutex
	found, made := map[mutant]string{}, map[mutant]bool{}
	masked, seed := classMasked(), harness.DrawSeed(t)
	t.Run("mutants", func(t *testing.T) {
		for pattern, rows := range harness.ClassTable() {
			for _, r := range rows {
				t.Run(pattern+" "+r.Name+" by "+string(r.Kind), func(t *testing.T) {
					t.Parallel()
					w := newClassWorld(t, r)
					rec := windows(w, r)
					open := map[mutant]bool{}
					rnd := harness.Sampler(t, seed)
					mu.Lock()
					for _, c := range rec.calls {
						for _, m := range mutants(c) {
							made[m] = true
							open[m] = found[m] == ""
							if _, listed := masked[m]; listed && !harness.All() {
								open[m] = open[m] && rnd.IntN(maskedSample) == 0
							}
						}
					}
					mu.Unlock()
					for m := range open {
						if !open[m] {
							continue
						}
						if v := bite(w, r, rec.n, m); v != "" {
							mu.Lock()
							found[m] = v
							mu.Unlock()
						}
					}
				})
			}
		}
	})
	for m := range made {
		reason, listed := masked[m]
		switch {
		case found[m] == "" && !listed:
			t.Errorf("%s without %s goes unnoticed", m.method, m.dropped)
		case found[m] != "" && listed:
			t.Errorf("%s without %s is noticed (%s), though it is listed: %s", m.method, m.dropped, found[m], reason)
		}
	}
	for m := range masked {
		if !made[m] {
			t.Errorf("%s without %s is listed, but no row makes such a change", m.method, m.dropped)
		}
	}
}

// maskedSample is the number of rows that are tested with a mutant that no row should
// notice. With -all, all rows are.
const maskedSample = 16

// bite returns the first violation that a mutant leads to.
func bite(w *harness.ClassWorld, r harness.Row, n int, m mutant) string {
	for _, a := range r.Acts() {
		for k := 1; k <= n; k++ {
			if o := try(w, r, a, k, m.edit); len(o.violations) > 0 {
				return o.violations[0]
			}
		}
	}
	return ""
}
