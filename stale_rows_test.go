package auth_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/authmount/auth"
)

// What is decided about an account that changes meanwhile, in something that has nothing
// to do with it, is decided anew: whoever asked is answered as if nothing had been, and
// the account ends up the same. Found by the conditions of each change that a row's
// request makes.
func TestWhatIsDecidedMeanwhileIsDecidedAnew(t *testing.T) {
	t.Parallel()
	rows := hostileRows()
	maps.Copy(rows, map[string][]row{"kit first owner": kitFirstOwner()})
	maps.Copy(rows, pageRows())
	seen := map[string]bool{}
	for _, pattern := range slices.Sorted(maps.Keys(rows)) {
		for _, r := range rows[pattern] {
			ref, n := newHostileWorld(t, r).stale(r, 0)
			for k := 1; k <= n; k++ {
				p, _ := newHostileWorld(t, r).stale(r, k)
				got, want := resultOf(p.answer())+", "+p.account(p.is), resultOf(ref.answer())+", "+ref.account(ref.is)
				name := pattern + " " + r.name
				if seen[name] = true; got != want {
					t.Errorf("%s by %s, change %d: %s\nundisturbed %s", name, r.kind, k, got, want)
				}
			}
		}
	}
	if len(seen) < 12 {
		t.Errorf("only %d rows decide anything", len(seen))
	}
}

// stale plays a row whose account changes right before the k-th of the changes that rest
// on it as a whole, and counts those.
func (w *hostileWorld) stale(r row, k int) (p *played, n int) {
	w.t.Helper()
	p = w.play(trial{row: r, spoil: sabotage{edit: func(_ string, c *auth.Change) {
		at := slices.IndexFunc(c.IfUsers, func(u auth.UserAt) bool { return u.Revision != nil })
		if at < 0 {
			return
		}
		if n++; n == k {
			w.meanwhile(c.IfUsers[at].ID)
		}
	}}})
	return p, n
}

// meanwhile has an account change in what no request is about.
func (w *hostileWorld) meanwhile(userID string) {
	w.t.Helper()
	c := auth.Change{Now: w.Clock.Now(), By: auth.Authority{System: "meanwhile"}}
	notes := "somebody was here"
	if _, err := w.tap.Inner().UpdateUser(w.t.Context(), auth.UpdateUser{Change: c, UserID: userID, Patch: auth.UserPatch{Notes: &notes}}); err != nil {
		w.t.Error(err)
	}
}
