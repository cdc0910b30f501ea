package admin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// ownWork completes jobs in the goroutine of the test, and no other worker gets one.
type ownWork struct {
	before func(method string)                // runs before each of its calls of the store; may be nil
	fails  func(method string) storetap.Fault // like before, for faults
}

type ownWorkKey struct{}

func (w ownWork) hooks() storetap.Hooks {
	return storetap.Hooks{
		Background: true,
		Skip: func(ctx context.Context, method string) bool {
			return ctx.Value(ownWorkKey{}) == nil && method != "ClaimJob"
		},
		Before: func(ctx context.Context, method string, _ int) {
			if w.before != nil && ctx.Value(ownWorkKey{}) != nil {
				w.before(method)
			}
		},
		Fault: func(ctx context.Context, method string, _ int) storetap.Fault {
			switch {
			case ctx.Value(ownWorkKey{}) == nil:
				return storetap.FailsBefore
			case w.fails != nil:
				return w.fails(method)
			}
			return storetap.NoFault
		},
	}
}

// works completes a job in spite of failures, and returns the results of its rows.
func (w ownWork) works(o *office, id string) []map[string]any {
	o.t.Helper()
	ctx := context.WithValue(o.t.Context(), ownWorkKey{}, true)
	for range 10 {
		o.Clock.Advance(time.Minute) // so that leases expire
		admin.Work(ctx, o.adm)
		if j, err := o.adm.Job(o.t.Context(), admin.System("test").Accepting(), id); err == nil && j.State == store.JobDone {
			return o.done(id)
		}
	}
	o.t.Fatal("the job is not done")
	return nil
}

// If any call of the store fails while a job is done or repeated, also after its actor has
// lost their permissions, each row's result is the same as without the failure.
func TestOutagesWithinImports(t *testing.T) {
	t.Parallel()
	for how, hook := range map[string]func(context.Context, auth.User) error{"in one step": nil, "row by row": func(context.Context, auth.User) error { return nil }} {
		for _, conflicts := range []string{admin.OnConflictError, admin.OnConflictSkip, admin.OnConflictUpdate} {
			for when, of := range map[string]struct{ lost, goes, key bool }{"at first": {}, "again": {lost: true}, "without the actor": {lost: true, goes: true}, "by a key": {key: true}, "by a key, again": {lost: true, key: true}} {
				t.Run(how+" "+conflicts+" "+when, func(t *testing.T) {
					t.Parallel()
					tap := storetap.New(memstore.New())
					o := newOffice(t, tap, auth.WithHooks(auth.Hooks{OnUserCreating: hook}), auth.WithoutBackground()) // another worker could claim the job first
					var want []string
					for k := 0; ; k++ {
						got, failed := o.importedThrough(tap, k, conflicts, of.lost, of.goes, of.key)
						if k == 0 {
							want = got
							continue
						}
						if !slices.Equal(got, want) {
							t.Errorf("call %d, %s, fails:\n%s\nwant\n%s", k, failed, strings.Join(got, "\n"), strings.Join(want, "\n"))
						}
						if failed == "" {
							break
						}
					}
				})
			}
		}
	}
}

// importedThrough imports rows of every kind although the k-th call of the store fails
// while they are done or, if their end is lost, repeated. It returns each row's result and
// the failed call.
func (o *office) importedThrough(tap *storetap.Tap, k int, conflicts string, lost, goes, key bool) (told []string, failed string) {
	o.t.Helper()
	tap.Reset(storetap.Hooks{})
	at := fmt.Sprintf("%d@example.com", k)
	clerk := o.operator("clerk"+at, admin.PermUsersImport, admin.PermUsersRead, admin.PermUsersWrite)
	who := actor(clerk)
	if key {
		who = admin.Key(o.keyOf(clerk.User, admin.PermUsersImport, admin.PermUsersRead, admin.PermUsersWrite).Secret.Reveal())
	}
	o.imported("there" + at)
	gone := o.imported("gone" + at).User.ID
	if err := o.adm.DeleteUser(o.t.Context(), admin.System("test").Accepting(), admin.DeleteUserParams{UserID: gone, Reason: "left"}); err != nil {
		o.t.Fatal(err)
	}
	calls := 0
	w := ownWork{fails: func(method string) storetap.Fault {
		switch {
		case lost && method == "FinishJobChunk":
			lost = false
			if goes {
				o.patch(clerk.User.ID, store.UserPatch{Roles: &[]string{}})
			}
			return storetap.FailsBefore
		case lost:
			return storetap.NoFault
		}
		if calls++; calls == k {
			failed = method
			return storetap.FailsBefore
		}
		return storetap.NoFault
	}}
	tap.Reset(w.hooks())
	id, err := o.adm.ImportUsers(o.t.Context(), who, admin.ImportUsersParams{OnConflict: conflicts}, strings.NewReader(fmt.Sprintf(`
		{"email":"one%[1]s"}
		{"email":"there%[1]s","full_name":"There"}
		{"email":"barred%[1]s","banned_until":"2999-01-01T00:00:00Z"}
		{"id":"%[2]s","email":"two%[1]s"}
		{"id":"%[3]s","email":"gone%[1]s"}
		{"email":"one%[1]s","full_name":"One"}`, at, uuid.NewString(), gone)))
	if err != nil {
		o.t.Fatal(err)
	}
	for _, r := range w.works(o, id) {
		told = append(told, fmt.Sprint(r["row"], r["result"], r["code"], r["field"], r["id"] != nil))
	}
	return told, failed
}

// A service that stops, or loses its store, at one account of many leaves the rest to be
// done, and does not report it as failed.
func TestEndWithinManyLeavesTheRest(t *testing.T) {
	t.Parallel()
	for _, ends := range []bool{false, true} {
		tap := storetap.New(memstore.New())
		o := newOffice(t, tap, auth.WithoutBackground())
		for k, happened := 1, true; happened; k++ {
			tap.Reset(storetap.Hooks{})
			word := fmt.Sprint("many", k, "x")
			ids := o.crowd(word, 3)
			calls := 0
			happened = false
			ctx, end := context.WithCancel(context.WithValue(t.Context(), ownWorkKey{}, true))
			w := ownWork{fails: func(string) storetap.Fault {
				calls++
				switch {
				case calls != k:
					return storetap.NoFault
				case ends:
					end()
				}
				happened = true
				return storetap.FailsBefore
			}}
			by := admin.System("test").Accepting()
			id := o.selected(by, admin.BulkBan, word)
			tap.Reset(w.hooks())
			job := o.started(by, admin.BulkBan, id)
			admin.Work(ctx, o.adm)
			end()
			wantResults(t, w.works(o, job), "done", "done", "done")
			for _, i := range ids {
				if !o.banned(i) {
					t.Errorf("call %d: somebody is left", k)
				}
			}
		}
	}
}

// If any call of the store fails, an operation on many accounts reports each account's
// result, for actors with and without the permission.
func TestOutagesWithinManyOfActors(t *testing.T) {
	t.Parallel()
	scopes := []string{admin.PermUsersRead, admin.PermUsersBan}
	for name, c := range map[string]struct {
		actor func(o *office) (by admin.Actor, goes func())
		want  string
	}{
		"a key": {func(o *office) (admin.Actor, func()) {
			return admin.Key(o.key(admin.System("test").Accepting(), scopes...).Secret.Reveal()), func() {}
		}, "done"},
		"a key that is revoked": {func(o *office) (admin.Actor, func()) {
			k := o.key(admin.System("test").Accepting(), scopes...)
			return admin.Key(k.Secret.Reveal()), func() {
				if err := o.revoke(o.t.Context(), k.ID); err != nil {
					o.t.Error(err)
				}
			}
		}, "failed invalid_api_key"},
		"somebody who is demoted": {func(o *office) (admin.Actor, func()) {
			clerk := o.operator(fmt.Sprintf("clerk%d@example.com", o.Clock.Now().Unix()), scopes...)
			return actor(clerk), func() { o.patch(clerk.User.ID, store.UserPatch{Roles: &[]string{}}) }
		}, "failed not_admin"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tap := storetap.New(memstore.New())
			o := newOffice(t, tap, auth.WithoutBackground())
			o.imported("ada@example.com") // otherwise it would be all accounts
			for k, failed := 1, "?"; failed != ""; k++ {
				tap.Reset(storetap.Hooks{})
				word := fmt.Sprint("many", k, "x")
				ids := o.crowd(word, 2)
				by, goes := c.actor(o)
				id := o.selected(by, admin.BulkBan, word)
				calls := 0
				failed = ""
				w := ownWork{fails: func(method string) storetap.Fault {
					if calls++; calls != k {
						return storetap.NoFault
					}
					failed = method
					return storetap.FailsBefore
				}}
				tap.Reset(w.hooks())
				job := o.started(by, admin.BulkBan, id)
				goes()
				wantResults(t, w.works(o, job), c.want, c.want)
				for _, i := range ids {
					if o.banned(i) != (c.want == "done") {
						t.Errorf("call %d, %s, fails: banned %t", k, failed, o.banned(i))
					}
				}
			}
		})
	}
}

// selected does a dry run for the accounts that match a word, and returns the selection.
func (o *office) selected(who admin.Actor, action admin.BulkAction, word string) (id string) {
	o.t.Helper()
	res, err := o.adm.Bulk(o.t.Context(), who, admin.BulkParams{Action: action, DryRun: true, Filter: &admin.UserFilter{Search: word}, BulkDetails: admin.BulkDetails{Reason: "x"}})
	if err != nil {
		o.t.Fatal(err)
	}
	return res.SelectionID
}

// started starts a job for a selection.
func (o *office) started(who admin.Actor, action admin.BulkAction, selection string) (job string) {
	o.t.Helper()
	res, err := o.adm.Bulk(o.t.Context(), who, admin.BulkParams{Action: action, SelectionID: selection})
	if err != nil {
		o.t.Fatal(err)
	}
	return res.JobID
}

// If the caller leaves midway, the remaining accounts are not reported as failed for good.
func TestLeavingWithinManyIsNoFault(t *testing.T) {
	t.Parallel()
	tap := storetap.New(memstore.New())
	o := newOffice(t, tap, auth.WithoutBackground())
	ids := o.crowd("many", 3)
	for k := 1; k < 8; k++ {
		ctx, leave := context.WithCancel(t.Context())
		tap.Reset(storetap.Hooks{Before: func(_ context.Context, _ string, n int) {
			if n == k {
				leave()
			}
		}})
		res, err := o.adm.Bulk(ctx, admin.System("test").Accepting(), admin.BulkParams{Action: admin.BulkUnban, UserIDs: ids})
		leave()
		tap.Reset(storetap.Hooks{})
		for _, i := range res.Items {
			if i.Result != "done" && i.Code != auth.CodeUnavailable {
				t.Errorf("left at call %d: %+v", k, i)
			}
		}
		if len(res.Items) != 3 && !errors.Is(err, auth.CodeUnavailable) {
			t.Errorf("left at call %d: %v", k, err)
		}
	}
}
