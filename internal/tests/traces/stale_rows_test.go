package traces_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// What is decided about an account that changes meanwhile, in something that has nothing
// to do with it, is decided anew: whoever asked is answered as if nothing had been, and
// the account ends up the same. Where its ways in change, it may be refused as what it
// rested on is gone, and never as if the service were at fault. Found by the conditions of
// each change that a row's request makes.
func TestWhatIsDecidedMeanwhileIsDecidedAnew(t *testing.T) {
	t.Parallel()
	rows := harness.HostileRows()
	maps.Copy(rows, map[string][]harness.Row{"kit first owner": kitFirstOwner()})
	maps.Copy(rows, pageRows())
	seen := map[bool]int{}
	for _, pattern := range slices.Sorted(maps.Keys(rows)) {
		for _, r := range rows[pattern] {
			w := harness.NewHostileWorld(t, r)
			ref, whole, waysIn := stale(w, r, 0, false)
			for k := 1; k <= whole+waysIn; k++ {
				if pattern == "kit first owner" { // of which there is one
					w = harness.NewHostileWorld(t, r)
				}
				ways, nth := k > whole, k
				if ways {
					nth -= whole
				}
				p, _, _ := stale(w, r, nth, ways)
				got, want := harness.ResultOf(p.Answer())+", "+p.AccountText(p.Is), harness.ResultOf(ref.Answer())+", "+ref.AccountText(ref.Is)
				seen[ways]++
				fault := p.Answer().Status >= 500 || strings.Contains(got, "internal") || strings.Contains(got, "unavailable")
				if fault || !ways && got != want {
					t.Errorf("%s %s by %s, change %d, of ways in: %t: %s\nundisturbed %s", pattern, r.Name, r.Kind, nth, ways, got, want)
				}
			}
		}
	}
	if seen[false] < 12 || seen[true] < 12 {
		t.Errorf("only so many changes rest on anything: %v", seen)
	}
}

// stale plays a row whose account changes right before the k-th of the changes that rest
// on it as a whole, or on its ways in, and counts both.
func stale(w *harness.HostileWorld, r harness.Row, k int, waysIn bool) (p *harness.Played, whole, ways int) {
	w.T.Helper()
	p = w.Play(harness.Trial{Row: r, Spoil: harness.Sabotage{Edit: func(_ string, c *store.Change) {
		for _, u := range c.IfUsers {
			if u.Revision != nil {
				if whole++; whole == k && !waysIn {
					meanwhile(w, u.ID, false)
				}
			}
			if u.CredentialRevision != nil {
				if ways++; ways == k && waysIn {
					meanwhile(w, u.ID, true)
				}
			}
		}
	}}})
	return p, whole, ways
}

// meanwhile has an account change in what no request is about; to the store, its roles
// that are written as they are is a change of its ways in.
func meanwhile(w *harness.HostileWorld, userID string, waysIn bool) {
	w.T.Helper()
	u, err := w.Tap.Inner().User(w.T.Context(), store.ByID(userID))
	if err != nil {
		w.T.Error(err)
		return
	}
	notes := "somebody was here"
	p := store.UserPatch{Notes: &notes}
	if waysIn {
		p.Roles = &u.Roles
	}
	c := store.Change{Now: w.Clock.Now(), By: auth.Authority{System: "meanwhile"}}
	if _, err := w.Tap.Inner().UpdateUser(w.T.Context(), store.UpdateUser{Change: c, UserID: userID, Patch: p}); err != nil {
		w.T.Error(err)
	}
}
