package auth_test

import (
	"maps"
	"slices"
	"strings"
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
			ref, n := newHostileWorld(t, r).stale(r, 0, false)
			for k := 1; k <= n; k++ {
				p, _ := newHostileWorld(t, r).stale(r, k, false)
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

// What is decided about the ways into an account that change meanwhile is decided anew,
// or refused as what it rested on is gone: never as if the service were at fault.
func TestWhatIsDecidedOfWaysInIsDecidedAnewOrRefused(t *testing.T) {
	t.Parallel()
	rows := hostileRows()
	maps.Copy(rows, pageRows())
	seen := map[string]bool{}
	for _, pattern := range slices.Sorted(maps.Keys(rows)) {
		for _, r := range rows[pattern] {
			w := newHostileWorld(t, r)
			ref, n := w.stale(r, 0, true)
			for k := 1; k <= n; k++ {
				p, _ := w.stale(r, k, true)
				got := resultOf(p.answer())
				seen[pattern] = true
				if p.answer().status >= 500 || strings.Contains(got, "internal") || strings.Contains(got, "unavailable") {
					t.Errorf("%s %s by %s, change %d: %s\nundisturbed %s", pattern, r.name, r.kind, k, got, resultOf(ref.answer()))
				}
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d routes decide anything", len(seen))
	}
}

// stale plays a row whose account changes right before the k-th of the changes that rest
// on it as a whole, or on its ways in, and counts those.
func (w *hostileWorld) stale(r row, k int, waysIn bool) (p *played, n int) {
	w.t.Helper()
	p = w.play(trial{row: r, spoil: sabotage{edit: func(_ string, c *auth.Change) {
		at := slices.IndexFunc(c.IfUsers, func(u auth.UserAt) bool { return waysIn && u.CredentialRevision != nil || !waysIn && u.Revision != nil })
		if at < 0 {
			return
		}
		if n++; n == k {
			w.meanwhile(c.IfUsers[at].ID, waysIn)
		}
	}}})
	return p, n
}

// meanwhile has an account change in what no request is about; to the store, its roles
// that are written as they are is a change of its ways in.
func (w *hostileWorld) meanwhile(userID string, waysIn bool) {
	w.t.Helper()
	u, err := w.tap.Inner().User(w.t.Context(), auth.ByID(userID))
	if err != nil {
		w.t.Error(err)
		return
	}
	notes := "somebody was here"
	p := auth.UserPatch{Notes: &notes}
	if waysIn {
		p.Roles = &u.Roles
	}
	c := auth.Change{Now: w.Clock.Now(), By: auth.Authority{System: "meanwhile"}}
	if _, err := w.tap.Inner().UpdateUser(w.t.Context(), auth.UpdateUser{Change: c, UserID: userID, Patch: p}); err != nil {
		w.t.Error(err)
	}
}
