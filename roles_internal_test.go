package auth

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/authmount/auth/internal/token"
	"github.com/authmount/auth/store"
)

// roleReads is a table of roles that counts reads.
type roleReads struct {
	store.ProjectStore
	reads int
	table store.RoleTable
	err   error
}

func (s *roleReads) Roles(context.Context) (store.RoleTable, error) { s.reads++; return s.table, s.err }

// Roles are read again after a second or after a reported change. While they cannot be
// read, the cached roles are used for up to a minute.
func TestRolesAreKnownForASecond(t *testing.T) {
	table := func(revision int64, permission string) store.RoleTable {
		return store.RoleTable{Revision: revision, Roles: []store.RolePermissions{{Name: "editor", Permissions: []string{permission}}}}
	}
	for name, c := range map[string]struct {
		after time.Duration
		told  int64 // the revision that Revoke reported
		next  store.RoleTable
		err   error
		reads int    // in addition to the first
		want  string // "": an error
	}{
		"at once":                       {0, 0, table(2, "new"), nil, 0, "old"},
		"within the second":             {time.Second - 1, 0, table(2, "new"), nil, 0, "old"},
		"after it":                      {time.Second, 0, table(2, "new"), nil, 1, "new"},
		"after it, unchanged":           {time.Second, 0, table(1, "old"), nil, 1, "old"},
		"once a change was told of":     {0, 2, table(2, "new"), nil, 1, "new"},
		"once an older one was":         {0, 1, table(2, "new"), nil, 0, "old"},
		"while it cannot be read":       {time.Minute - 1, 0, table(2, "new"), errors.New("away"), 1, "old"},
		"while a change cannot be read": {0, 2, table(2, "new"), errors.New("away"), 1, "old"},
		"when it cannot be for long":    {time.Minute, 0, table(2, "new"), errors.New("away"), 1, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := &roleReads{table: table(1, "old")}
			a := &Auth{project: store, roleTable: &roleTable{reading: make(chan struct{}, 1)}, revoked: &token.Revocations{}}
			if p, revision, err := permissionsNow(t, a, "editor"); err != nil || revision != 1 || !slices.Equal(p, []string{"old"}) {
				t.Fatalf("%v at %d, %v", p, revision, err)
			}
			<-time.After(c.after) // the synctest clock
			store.table, store.err = c.next, c.err
			a.revoked.RaiseRoles(c.told)
			p, revision, err := permissionsNow(t, a, "editor", "nobody knows")
			switch {
			case store.reads != 1+c.reads:
				t.Errorf("%s: read %d times", name, store.reads)
			case c.want == "" && !errors.Is(err, CodeUnavailable):
				t.Errorf("%s: %v, %v", name, p, err)
			case c.want != "" && (err != nil || !slices.Equal(p, []string{c.want}) || revision != map[string]int64{"old": 1, "new": 2}[c.want]):
				t.Errorf("%s: %v at %d, %v", name, p, revision, err)
			}
		})
	}
}

// While one caller reads the roles, others use cached roles that are less than a minute
// old and not known to be stale. Otherwise they wait until their context ends.
func TestOneReadsTheRoles(t *testing.T) {
	for name, c := range map[string]struct {
		known  *knownRoles
		age    time.Duration
		told   int64
		leaves bool
		waits  bool
		want   int64 // the revision; 0: an error
	}{
		"a little old":                 {&knownRoles{revision: 1}, 2 * time.Second, 0, false, false, 1},
		"too old":                      {&knownRoles{revision: 1}, time.Minute, 0, false, true, 2},
		"a change was told of":         {&knownRoles{revision: 1}, 2 * time.Second, 2, false, true, 2},
		"nothing is known":             {nil, 0, 0, false, true, 2},
		"nothing is known, and leaves": {nil, 0, 0, true, true, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			store := &roleReads{table: store.RoleTable{Revision: 2}}
			a := &Auth{project: store, roleTable: &roleTable{reading: make(chan struct{}, 1)}, revoked: &token.Revocations{}}
			if c.known != nil {
				c.known.at = time.Now()
				a.roleTable.known.Store(c.known)
			}
			<-time.After(c.age) // the synctest clock
			a.revoked.RaiseRoles(c.told)
			a.roleTable.reading <- struct{}{} // another caller
			done := make(chan struct{})
			var got *knownRoles
			var err error
			go func() { defer close(done); got, err = a.rolePermissions(ctx) }()
			synctest.Wait()
			select {
			case <-done:
				if c.waits {
					t.Errorf("%s: nobody waits", name)
				}
			default:
				if !c.waits {
					t.Errorf("%s: it waits", name)
				}
			}
			if c.leaves {
				leave()
				synctest.Wait()
			}
			if c.waits && !c.leaves { // the reader has cached it, so that it is not read again
				a.roleTable.known.Store(&knownRoles{at: time.Now(), revision: 2})
			}
			<-a.roleTable.reading
			<-done
			if store.reads != 0 {
				t.Errorf("%s: read %d times more", name, store.reads)
			}
			if c.want == 0 && (!errors.Is(err, CodeUnavailable) || got != nil) || c.want != 0 && (err != nil || got.revision != c.want) {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			if len(a.roleTable.reading) != 0 {
				t.Errorf("%s: nobody can read any more", name)
			}
		})
	}
	for _, roles := range [][]string{{RoleOwner}, nil, {"editor"}} {
		p, revision, err := permissionsNow(t, &Auth{}, roles...)
		if err != nil || revision != 0 || len(p) != min(len(roles), 1) && roles[0] == RoleOwner || len(p) == 1 && p[0] != permissionAll {
			t.Errorf("of a store without roles, %v: %v at %d, %v", roles, p, revision, err)
		}
	}
}

func permissionsNow(t *testing.T, a *Auth, roles ...string) ([]string, int64, error) {
	known, err := a.rolePermissions(t.Context())
	if err != nil {
		return nil, 0, err
	}
	return known.permissionsOf(roles), known.revision, nil
}
