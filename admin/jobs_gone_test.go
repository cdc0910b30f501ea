package admin_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/store"
)

// Rows that were done before the actor lost their rights are reported as done, although
// the end of the chunk was lost and the chunk is repeated without those rights.
func TestWhatWasDoneBeforeTheActorWentIsToldAsDone(t *testing.T) {
	goes := map[string]func(ctx context.Context, o *office, id string) error{
		"demoted": func(ctx context.Context, o *office, id string) error {
			_, err := o.adm.SetRoles(ctx, admin.System("test").Accepting(), admin.SetRolesParams{UserID: id})
			return err
		},
		"banned": func(ctx context.Context, o *office, id string) error {
			_, err := o.adm.BanUser(ctx, admin.System("test").Accepting(), admin.BanUserParams{UserID: id, Reason: "left"})
			return err
		},
		"deleted": func(ctx context.Context, o *office, id string) error {
			return o.adm.DeleteUser(ctx, admin.System("test").Accepting(), admin.DeleteUserParams{UserID: id, Reason: "left"})
		},
	}
	for name, hook := range map[string]func(context.Context, auth.User) error{"in one step": nil, "row by row": func(context.Context, auth.User) error { return nil }} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, store auth.Store) {
				s := forgets(store)
				o := newOffice(t, s, auth.WithHooks(auth.Hooks{OnUserCreating: hook}))
				for how, gone := range goes {
					clerk := o.operator(how+"clerk@example.com", admin.PermUsersImport, admin.PermUsersRead, admin.PermUsersWrite)
					o.imported(how + "there@example.com")
					var once sync.Once
					s.times.Store(1)
					s.meanwhile = func() {
						once.Do(func() {
							if err := gone(t.Context(), o, clerk.User.ID); err != nil {
								t.Error(err)
							}
						})
					}
					job, err := o.adm.ImportUsers(t.Context(), actor(clerk), admin.ImportUsersParams{OnConflict: admin.OnConflictUpdate}, strings.NewReader(fmt.Sprintf(
						"{\"email\":\"%[1]snew@example.com\"}\n{\"email\":\"%[1]sthere@example.com\",\"full_name\":\"There\"}", how)))
					if err != nil {
						t.Fatal(err)
					}
					o.workedOff(job)
					wantResults(t, o.done(job), "done", "done")
					if told := s.of(job); len(told) < 2 || len(slices.Compact(told)) != 1 {
						t.Errorf("%s: told\n%s", how, strings.Join(told, "\n"))
					}
				}
			})
		})
	}
}

// Of two concurrent chunks, the one that was done is reported as done, although the other
// one had an outage and its actor was gone at the retry.
func TestActorGoesAfterOneOfTwoChunks(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		s := patience(st)
		o := newOffice(t, s)
		clerk := o.operator("clerk@example.com", admin.PermUsersImport, admin.PermUsersRead, admin.PermUsersWrite)
		s.anew(time.Minute)
		s.fails = "chunk 0"
		var rows strings.Builder
		for i := range 1000 {
			fmt.Fprintf(&rows, "{\"email\":\"p%d@example.com\"}\n", i)
		}
		job, err := o.adm.ImportUsers(t.Context(), actor(clerk), admin.ImportUsersParams{}, strings.NewReader(rows.String()))
		if err != nil {
			t.Fatal(err)
		}
		o.until("the second chunk is made", func() bool {
			admin.Work(t.Context(), o.adm)
			_, err := st.User(t.Context(), store.ByEmail("p999@example.com"))
			return err == nil
		})
		if _, err := o.adm.SetRoles(t.Context(), admin.System("test").Accepting(), admin.SetRolesParams{UserID: clerk.User.ID}); err != nil {
			t.Fatal(err)
		}
		o.workedOff(job)
		want := append(slices.Repeat([]string{"failed not_admin"}, 500), slices.Repeat([]string{"done"}, 500)...)
		wantResults(t, o.done(job), want...)
		if made := o.recordedIn(job)[auth.EventUserImported]; made != 500 || !s.waited {
			t.Errorf("%d rows of the audit log, two at once: %v", made, s.waited)
		}
	})
}

// A phone number identifies its account in any spelling.
func TestRowsFindNumbersHoweverTheyAreSpelt(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		for conflicts, want := range map[string]string{
			admin.OnConflictSkip: "skipped user_already_exists phone", admin.OnConflictUpdate: "done", admin.OnConflictError: "failed user_already_exists phone",
		} {
			id, err := o.adm.ImportUsers(t.Context(), admin.System("test").Accepting(), admin.ImportUsersParams{OnConflict: conflicts}, strings.NewReader(
				`{"phone":"+4917612345610","phone_verified":true}`+"\n"+`{"phone":"+49 176 1234 5610","full_name":"`+conflicts+`"}`))
			if err != nil {
				t.Fatal(err)
			}
			o.workedOff(id)
			results := o.done(id)
			wantResults(t, results[1:], want)
		}
	})
}

// late is a store that runs a function before the second step of an import.
type late struct {
	*forgetful
	steps  atomic.Int32
	before func()
}

func (s *late) Unwrap() auth.Store { return s.forgetful }

func (s *late) CreateUsers(ctx context.Context, c store.CreateUsers) ([]error, error) {
	if s.steps.Add(1) == 2 {
		s.before()
	}
	return s.forgetful.CreateUsers(ctx, c)
}

// The actor goes right before a completed chunk is repeated.
func TestActorGoesBeforeWhatWasDoneIsDoneAgain(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		s := &late{forgetful: forgets(st)}
		o := newOffice(t, s)
		clerk := o.operator("clerk@example.com", admin.PermUsersImport, admin.PermUsersRead, admin.PermUsersWrite)
		s.times.Store(1)
		s.before = func() {
			if err := o.adm.DeleteUser(t.Context(), admin.System("test").Accepting(), admin.DeleteUserParams{UserID: clerk.User.ID, Reason: "left"}); err != nil {
				t.Error(err)
			}
		}
		job, err := o.adm.ImportUsers(t.Context(), actor(clerk), admin.ImportUsersParams{}, strings.NewReader(`{"email":"new@example.com"}`))
		if err != nil {
			t.Fatal(err)
		}
		o.workedOff(job)
		wantResults(t, o.done(job), "done")
		if s.steps.Load() < 2 {
			t.Error("it was not done again")
		}
	})
}
