package auth_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// What is decided about an account that changes meanwhile, in something that has nothing
// to do with it, is decided anew: whoever asked is answered as if nothing had been, and
// the account ends up the same. Where its ways in change, it may be refused as what it
// rested on is gone, and never as if the service were at fault. Found by the conditions of
// each change that a row's request makes.
func TestWhatIsDecidedMeanwhileIsDecidedAnew(t *testing.T) {
	t.Parallel()
	rows := hostileRows()
	maps.Copy(rows, map[string][]row{"kit first owner": kitFirstOwner()})
	maps.Copy(rows, pageRows())
	seen := map[bool]int{}
	for _, pattern := range slices.Sorted(maps.Keys(rows)) {
		for _, r := range rows[pattern] {
			w := newHostileWorld(t, r)
			ref, whole, waysIn := w.stale(r, 0, false)
			for k := 1; k <= whole+waysIn; k++ {
				if pattern == "kit first owner" { // of which there is one
					w = newHostileWorld(t, r)
				}
				ways, nth := k > whole, k
				if ways {
					nth -= whole
				}
				p, _, _ := w.stale(r, nth, ways)
				got, want := resultOf(p.answer())+", "+p.account(p.is), resultOf(ref.answer())+", "+ref.account(ref.is)
				seen[ways]++
				fault := p.answer().status >= 500 || strings.Contains(got, "internal") || strings.Contains(got, "unavailable")
				if fault || !ways && got != want {
					t.Errorf("%s %s by %s, change %d, of ways in: %t: %s\nundisturbed %s", pattern, r.name, r.kind, nth, ways, got, want)
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
func (w *hostileWorld) stale(r row, k int, waysIn bool) (p *played, whole, ways int) {
	w.t.Helper()
	p = w.play(trial{row: r, spoil: sabotage{edit: func(_ string, c *store.Change) {
		for _, u := range c.IfUsers {
			if u.Revision != nil {
				if whole++; whole == k && !waysIn {
					w.meanwhile(u.ID, false)
				}
			}
			if u.CredentialRevision != nil {
				if ways++; ways == k && waysIn {
					w.meanwhile(u.ID, true)
				}
			}
		}
	}}})
	return p, whole, ways
}

// meanwhile has an account change in what no request is about; to the store, its roles
// that are written as they are is a change of its ways in.
func (w *hostileWorld) meanwhile(userID string, waysIn bool) {
	w.t.Helper()
	u, err := w.tap.Inner().User(w.t.Context(), store.ByID(userID))
	if err != nil {
		w.t.Error(err)
		return
	}
	notes := "somebody was here"
	p := store.UserPatch{Notes: &notes}
	if waysIn {
		p.Roles = &u.Roles
	}
	c := store.Change{Now: w.Clock.Now(), By: auth.Authority{System: "meanwhile"}}
	if _, err := w.tap.Inner().UpdateUser(w.t.Context(), store.UpdateUser{Change: c, UserID: userID, Patch: p}); err != nil {
		w.t.Error(err)
	}
}
