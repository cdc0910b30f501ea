package admin_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/store"
)

// forgetful is a store that loses the end of each chunk of a job some times before it
// keeps it, like a crash of the store or a process that ends before it reports.
type forgetful struct {
	auth.Store
	store.AdminStore
	times atomic.Int64

	meanwhile func() // runs after each lost one; may be nil

	mu   sync.Mutex
	told map[string][]string // the results of each chunk, every time
}

func forgets(s auth.Store) *forgetful {
	jobs, _ := store.Capability[store.AdminStore](s)
	return &forgetful{Store: s, AdminStore: jobs, told: map[string][]string{}}
}

func (s *forgetful) Unwrap() auth.Store { return s.Store }

func (s *forgetful) FinishJobChunk(ctx context.Context, f store.FinishJobChunk) (store.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := fmt.Sprint(f.JobID, f.N)
	s.told[of] = append(s.told[of], fmt.Sprintf("%s%+v", f.Output, f.Counts))
	n := len(s.told[of])
	if n <= int(s.times.Load()) {
		if s.meanwhile != nil {
			s.meanwhile()
		}
		return store.Job{}, errors.New("the store has crashed")
	}
	return s.AdminStore.FinishJobChunk(ctx, f)
}

// of returns the results of the first chunk of a job.
func (s *forgetful) of(jobID string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told[jobID+"0"])
}

// A chunk that is repeated reports the same result of each row every time: created, in
// conflict or refused. None of its effects happens twice.
func TestChunkThatIsDoneAgainTellsTheSame(t *testing.T) {
	for name, row := range map[string]struct {
		hook func(context.Context, auth.User) error
		eve  string // her row's result, whether the application refuses her or not
	}{
		"in one step":  {nil, "done"},
		"row by row":   {func(context.Context, auth.User) error { return nil }, "done"},
		"with refusal": {func(context.Context, auth.User) error { return nil }, "failed signup_disabled"},
	} {
		if name == "with refusal" {
			row.hook = func(_ context.Context, u auth.User) error {
				if strings.HasPrefix(u.Email, "eve") {
					return auth.Reject(auth.CodeSignupDisabled, "Nobody called so.")
				}
				return nil
			}
		}
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, store auth.Store) {
				s := forgets(store)
				o := newOffice(t, s, auth.WithHooks(auth.Hooks{OnUserCreating: row.hook}))
				for conflicts, there := range map[string]string{
					admin.OnConflictError: "failed user_already_exists email", admin.OnConflictSkip: "skipped user_already_exists email", admin.OnConflictUpdate: "done",
				} {
					want := []string{"done", there, "failed missing_permission", row.eve, "done", "failed user_already_exists id", "failed validation_failed email", there}
					var once map[auth.EventType]int
					for times := range 3 {
						s.times.Store(int64(times))
						what := fmt.Sprintf("%s, %s, %d times", name, conflicts, times)
						id := o.importsAll(fmt.Sprintf("%s%d@example.com", conflicts, times), conflicts)
						wantResults(t, o.done(id), want...)
						told := s.of(id)
						if len(told) <= times || len(slices.Compact(slices.Clone(told))) != 1 {
							t.Errorf("%s: told\n%s", what, strings.Join(told, "\n"))
						}
						made := o.recordedIn(id)
						if times == 0 {
							once = made
						}
						if !maps.Equal(made, once) || made[auth.EventUserImported] < 2 {
							t.Errorf("%s: recorded %v, want %v", what, made, once)
						}
					}
				}
			})
		})
	}
}

// importsAll imports rows of every kind, and completes them. For some the actor may not
// write a field, or their id is taken.
func (o *office) importsAll(at, conflicts string) (jobID string) {
	o.t.Helper()
	clerk := o.operator("clerk"+at, admin.PermUsersImport, admin.PermUsersRead, admin.PermUsersWrite)
	o.imported("there" + at)
	gone := o.imported("gone" + at).User.ID
	if err := o.adm.DeleteUser(o.t.Context(), admin.System("test").Accepting(), admin.DeleteUserParams{UserID: gone, Reason: "left"}); err != nil {
		o.t.Fatal(err)
	}
	jobID, err := o.adm.ImportUsers(o.t.Context(), actor(clerk), admin.ImportUsersParams{OnConflict: conflicts}, strings.NewReader(fmt.Sprintf(`
		{"email":"one%[1]s"}
		{"email":"there%[1]s","full_name":"There"}
		{"email":"barred%[1]s","banned_until":"2999-01-01T00:00:00Z"}
		{"email":"eve%[1]s"}
		{"id":"%[2]s","email":"two%[1]s"}
		{"id":"%[3]s","email":"gone%[1]s"}
		{"email":"nobody"}
		{"email":"one%[1]s","full_name":"One"}`, at, uuid.NewString(), gone)))
	if err != nil {
		o.t.Fatal(err)
	}
	o.workedOff(jobID)
	return jobID
}

// workedOff completes a job with leases that end at once.
func (o *office) workedOff(jobID string) {
	o.t.Helper()
	o.until("the job is done", func() bool {
		o.Clock.Advance(time.Minute)
		admin.Work(o.t.Context(), o.adm)
		j, err := o.adm.Job(o.t.Context(), admin.System("test").Accepting(), jobID)
		return err == nil && j.State == store.JobDone
	})
}

// recordedIn counts the events of a job in the audit log, by type.
func (o *office) recordedIn(jobID string) map[auth.EventType]int {
	o.t.Helper()
	made := map[auth.EventType]int{}
	for _, e := range o.audit() {
		if e.Record.RequestID == jobID {
			made[e.Type]++
		}
	}
	return made
}

// Rows that a chunk created are reported as created when the chunk is repeated, even if
// the accounts are gone since, and their ids are not used again.
func TestChunkThatIsDoneAgainTellsOfWhatIsGone(t *testing.T) {
	for name, hook := range map[string]func(context.Context, auth.User) error{"in one step": nil, "row by row": func(context.Context, auth.User) error { return nil }} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, st auth.Store) {
				s := forgets(st)
				o := newOffice(t, s, auth.WithHooks(auth.Hooks{OnUserCreating: hook}))
				for i, row := range []string{`{"id":"%s","email":"ada@example.com"}`, `{"email":"ada@example.com"}`} {
					id := uuid.NewString()
					var left sync.Once
					s.times.Store(1)
					s.meanwhile = func() {
						left.Do(func() {
							u, err := st.User(t.Context(), store.ByEmail("ada@example.com"))
							if err == nil {
								err = o.adm.DeleteUser(t.Context(), admin.System("test").Accepting(), admin.DeleteUserParams{UserID: u.ID, Reason: "left"})
							}
							if err != nil {
								t.Error(err)
							}
						})
					}
					if i == 0 {
						row = fmt.Sprintf(row, id)
					}
					job, err := o.adm.ImportUsers(t.Context(), admin.System("test").Accepting(), admin.ImportUsersParams{}, strings.NewReader(row))
					if err != nil {
						t.Fatal(err)
					}
					o.workedOff(job)
					wantResults(t, o.done(job), "done")
					if _, err := st.User(t.Context(), store.ByEmail("ada@example.com")); !errors.Is(err, store.ErrNotFound) || o.recordedIn(job)[auth.EventUserImported] != 1 {
						t.Errorf("%s: %v, %v", row, err, o.recordedIn(job))
					}
				}
			})
		})
	}
}

// A chunk is planned while the one before is done, and still respects that one's results,
// however often it is repeated: a value of an earlier chunk's row is taken.
func TestChunksPlannedAheadFollowEachOther(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		s := forgets(store)
		o := newOffice(t, s)
		for times := range 2 {
			s.times.Store(int64(times))
			var rows strings.Builder
			const n = 4 * 500
			for i := range n { // the second half has the first half's values
				fmt.Fprintf(&rows, "{\"email\":\"p%d-%d@example.com\"}\n", i%(n/2), times)
			}
			id, err := o.adm.ImportUsers(t.Context(), admin.System("test").Accepting(), admin.ImportUsersParams{OnConflict: admin.OnConflictSkip}, strings.NewReader(rows.String()))
			if err != nil {
				t.Fatal(err)
			}
			o.workedOff(id)
			for i, r := range o.done(id) {
				want := "done"
				if i >= n/2 {
					want = "skipped"
				}
				if r["result"] != want || r["row"] != float64(i+1) {
					t.Fatalf("row %d: %v", i+1, r)
				}
			}
			if made := o.recordedIn(id)[auth.EventUserImported]; made != n/2 {
				t.Errorf("%d rows of the audit log", made)
			}
		}
	})
}
