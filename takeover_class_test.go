package auth_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// The class: somebody acts on an account, and between two store calls of theirs
// it becomes another's. TestTakeoverClass runs every route that needs a session
// or redeems something as the one who loses the account, lets each way of losing
// it happen before each of the request's store calls, and looks for anything
// that is left to them.

// act is how the account is lost in the middle of a request.
type act string

const (
	byProvider  act = "provider"   // its owner comes with an identity that vouches for the address
	byMagicLink act = "magic link" // its owner comes with a link
	byReset     act = "reset"      // its owner chooses a new password
	byCode      act = "phone code" // its owner comes with a code
	signedOut   act = "signed out" // every session of it ends
	banned      act = "banned"
	deleted     act = "deleted"
)

// takesOver tells whether an act gives an account that nobody had proved to its
// owner.
func (a act) takesOver() bool {
	return a == byProvider || a == byMagicLink || a == byReset || a == byCode
}

// kind is who is on the account before.
type kind string

const (
	onNothing  kind = "nobody"    // there is no account yet
	onAddress  kind = "squatter"  // signed up with the owner's address and a password
	onNumber   kind = "caller"    // the same with the owner's number
	onIdentity kind = "lookalike" // signed up by an identity that claims the owner's address
	onStolen   kind = "thief"     // on the owner's own, proved account, with what was stolen
)

// acts are the ways of losing an account that concern a kind.
func (k kind) acts() []act {
	return map[kind][]act{
		onNothing:  {byProvider, byMagicLink, banned, deleted},
		onAddress:  {byProvider, byMagicLink, byReset, signedOut, banned, deleted},
		onNumber:   {byCode, signedOut, banned, deleted},
		onIdentity: {byProvider, byMagicLink, byReset, signedOut, banned, deleted},
		onStolen:   {byReset, signedOut, banned, deleted},
	}[k]
}

// row is one request of somebody who is to lose the account.
type row struct {
	name    string
	kind    kind
	session bool           // it rests on a session alone, so that signing out ends it
	confirm bool           // under Settings.RequireConfirmation
	except  map[act]string // acts that rightly change nothing, and why
	prepare func(s *scene) (request func() *answer)
}

// acts are those that a row is run with.
func (r row) acts() []act {
	return slices.DeleteFunc(r.kind.acts(), func(a act) bool {
		_, spared := r.except[a]
		return spared || (a == signedOut && !r.session)
	})
}

// call is a change that a request made or tried to make.
type call struct {
	method string
	change store.Change
	late   bool // after the act
	err    error
}

// edit changes what a change is conditional on; see TestTakeoverClassBites.
type edit func(method string, c *store.Change)

// harmless says why a change may come about after the account was lost. Empty: it
// may not.
func (c call) harmless(account string, a act) string {
	uses := c.change.By.Proof && (c.method == "RedeemToken" || c.method == "TryCode")
	switch {
	case c.method == "PutToken" && c.change.By.System == "send":
		return "whoever asks gets a link or code sent to whose the address is"
	case c.method == "PutToken" && c.change.By.System == "account exists":
		return "the message goes to the account's own address"
	case c.method == "PutToken" && c.change.By.System == "oauth":
		return "a sign-in that begins is nobody's yet"
	case c.method == "PutToken" && c.change.By.System == "application":
		return "a login that is refused mails the account's own address"
	case c.method == "CreateUser":
		return "it makes another account"
	case uses && len(c.change.IfUsers) == 0:
		return "it uses a state or code up without an effect, or makes another account"
	case uses && (a == banned || a == signedOut):
		return "a proof of its own is used up; an effect on the account is seen there"
	case !c.about(account):
		return "it is about another account"
	}
	return ""
}

// about tells whether a change may be about an account.
func (c call) about(account string) bool {
	if s := c.change.By.Session; s != nil {
		return s.UserID == account
	}
	return len(c.change.IfUsers) == 0 ||
		slices.ContainsFunc(c.change.IfUsers, func(u auth.UserAt) bool { return u.ID == "" || u.ID == account })
}

// record is what a request did to the store.
type record struct {
	calls   []call
	n       int
	reached bool // the act took place
}

// run makes a row's request with an act before its k-th store call (0: without),
// and returns what it did.
func (s *scene) run(request func() *answer, a act, k int, edit edit) record {
	var rec record
	var current *call
	s.start = s.look(s.t.Context())
	s.tap.Reset(storetap.Hooks{
		Before: func(ctx context.Context, _ string, n int) {
			current = nil
			if n == k {
				rec.reached = true
				s.lose(ctx, a)
			}
		},
		Edit: func(method string, c *store.Change) {
			current = &call{method: method, change: *c, late: rec.reached}
			if edit != nil {
				edit(method, c)
			}
		},
		After: func(_ context.Context, _ string, _ int, err error) {
			if current != nil {
				current.err = err
				rec.calls = append(rec.calls, *current)
			}
		},
	})
	request() // what it hands out, the person keeps
	rec.n = s.tap.Calls()
	s.tap.Reset(storetap.Hooks{})
	return rec
}

// outcome is the end of one run.
type outcome struct {
	hit        bool // the account was lost by the act
	violations []string
}

// try runs one window of a row.
func (w *classWorld) try(r row, a act, k int, edit edit) outcome {
	s := w.scene(r)
	request := r.prepare(s)
	rec := s.run(request, a, k, edit)
	if !s.lost {
		return outcome{}
	}
	o := outcome{hit: true}
	for _, c := range rec.calls {
		if c.late && c.err == nil && c.harmless(s.id, a) == "" {
			o.violations = append(o.violations, fmt.Sprintf("%s came about after the act, by %s", c.method, authority(c.change.By)))
		}
	}
	o.violations = append(o.violations, s.leftovers(a)...)
	return o
}

// windows is how many store calls a row makes if nobody disturbs it, and which
// changes.
func (w *classWorld) windows(r row) record {
	s := w.scene(r)
	rec := s.run(r.prepare(s), "", 0, nil)
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
func sample(t *testing.T) func(t *testing.T, acts []act, n int) ([]act, []int) {
	t.Helper()
	all := func(_ *testing.T, acts []act, n int) ([]act, []int) {
		ks := make([]int, n)
		for i := range ks {
			ks[i] = i + 1
		}
		return acts, ks
	}
	if os.Getenv(onPostgres) == "" || wholly() {
		return all
	}
	seed := drawSeed(t)
	return func(t *testing.T, acts []act, n int) ([]act, []int) {
		t.Helper()
		rnd := sampler(t, seed)
		return []act{acts[rnd.IntN(len(acts))]}, []int{1 + rnd.IntN(n)}
	}
}

// Every route is in the table or exempt with a reason; a new one fails until it
// is.
func TestTakeoverClassIsWhole(t *testing.T) {
	t.Parallel()
	routes := auth.Routes(newWorld(t).Auth)
	table := classTable()
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
	for _, pattern := range slices.Sorted(maps.Keys(classTable())) {
		for _, r := range classTable()[pattern] {
			acts := r.acts()
			t.Run(pattern+" "+r.name+" by "+string(r.kind), func(t *testing.T) {
				t.Parallel()
				w := newClassWorld(t, r)
				n := w.windows(r).n
				if n == 0 {
					t.Fatal("it asks the store nothing")
				}
				chosen, ks := pick(t, acts, n)
				for _, a := range chosen {
					hits := 0
					for _, k := range ks {
						o := w.try(r, a, k, nil)
						if o.hit {
							hits++
						}
						for _, v := range o.violations {
							t.Errorf("%s before call %d of %d: %s", a, k, n, v)
						}
					}
					if hits == 0 && len(ks) == n && r.kind != onNothing {
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

// mutants are those that a change can be made into: without each condition, and
// without all.
func (c call) mutants() []mutant {
	var list []mutant
	by := ""
	if c.change.By.Session != nil || c.change.By.Token != nil {
		by = authority(c.change.By)
		list = append(list, mutant{c.method, by})
	}
	if len(c.change.IfUsers) > 0 {
		list = append(list, mutant{c.method, "users"})
		if by != "" {
			list = append(list, mutant{c.method, by + " users"})
		}
	}
	return list
}

// A condition that is dropped is found: the test above would have failed.
func TestTakeoverClassBites(t *testing.T) {
	if os.Getenv(onPostgres) != "" {
		return // about the test, not about the store
	}
	t.Parallel()
	var mu sync.Mutex
	found, made := map[mutant]string{}, map[mutant]bool{}
	masked, seed := classMasked(), drawSeed(t)
	t.Run("mutants", func(t *testing.T) {
		for pattern, rows := range classTable() {
			for _, r := range rows {
				t.Run(pattern+" "+r.name+" by "+string(r.kind), func(t *testing.T) {
					t.Parallel()
					w := newClassWorld(t, r)
					rec := w.windows(r)
					open := map[mutant]bool{}
					rnd := sampler(t, seed)
					mu.Lock()
					for _, c := range rec.calls {
						for _, m := range c.mutants() {
							made[m] = true
							open[m] = found[m] == ""
							if _, listed := masked[m]; listed && !wholly() {
								open[m] = open[m] && rnd.IntN(maskedSample) == 0
							}
						}
					}
					mu.Unlock()
					for m := range open {
						if !open[m] {
							continue
						}
						if v := w.bite(r, rec.n, m); v != "" {
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

// maskedSample is in how many rows one of the mutants is tried that no row is to
// notice, unless -all is given: they are tried to the end.
const maskedSample = 16

// bite returns the first violation that a mutant leads to.
func (w *classWorld) bite(r row, n int, m mutant) string {
	for _, a := range r.acts() {
		for k := 1; k <= n; k++ {
			if o := w.try(r, a, k, m.edit); len(o.violations) > 0 {
				return o.violations[0]
			}
		}
	}
	return ""
}
