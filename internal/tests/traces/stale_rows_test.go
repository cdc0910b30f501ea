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

// A decision about an account is repeated if the account changes meanwhile. After an
// unrelated change, the answer and the account are as without it. After a change of its
// credentials, the request may be refused because they are gone, but never with a server
// fault. The conditions of each change in a row's request define the cases.
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
				if pattern == "kit first owner" { // a world has only one
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

// stale plays a row and changes its account right before the k-th change that depends on the
// whole account, or on its credentials. It counts both kinds.
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

// meanwhile changes a member of an account that no request uses. With waysIn it also writes
// the roles unchanged, which the store treats as a change of credentials.
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
