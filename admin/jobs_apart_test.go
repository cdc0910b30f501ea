package admin_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/store"
)

// patient is a store that has the first step of an import wait for the second one: until
// that is done, or for the given time.
type patient struct {
	auth.Store
	store.AdminStore
	most time.Duration

	fails string // the step without an answer at the first attempt
	lost  bool   // the step has its effect

	mu     sync.Mutex
	steps  int
	second chan struct{}
	once   *sync.Once      // closes second
	waited bool            // the second one arrived
	kept   []time.Duration // the lease given with the end of each chunk
}

func (s *patient) Unwrap() auth.Store { return s.Store }

// anew resets the steps.
func (s *patient) anew(most time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps, s.waited, s.most, s.second, s.once = 0, false, most, make(chan struct{}), &sync.Once{}
}

func (s *patient) CreateUsers(ctx context.Context, c store.CreateUsers) ([]error, error) {
	s.mu.Lock()
	_, step, _ := strings.Cut(c.Idempotency.Key, " ")
	s.steps++
	most, second := s.most, s.second
	s.mu.Unlock()
	switch step {
	case "chunk 0":
		select {
		case <-second:
			s.mu.Lock()
			s.waited = true
			s.mu.Unlock()
		case <-time.After(most):
		}
	case "chunk 1":
		s.once.Do(func() { close(second) })
	}
	s.mu.Lock()
	fails, lost := step == s.fails, s.lost
	if fails {
		s.fails = ""
	}
	s.mu.Unlock()
	if fails && lost {
		_, _ = s.AdminStore.CreateUsers(ctx, c)
	}
	if fails {
		return nil, errors.New("an outage")
	}
	return s.AdminStore.CreateUsers(ctx, c)
}

func (s *patient) FinishJobChunk(ctx context.Context, f store.FinishJobChunk) (store.Job, error) {
	s.mu.Lock()
	s.kept = append(s.kept, f.Until.Sub(f.Now))
	s.mu.Unlock()
	return s.AdminStore.FinishJobChunk(ctx, f)
}

// patience returns a patient store.
func patience(st auth.Store) *patient {
	admin, _ := store.Capability[store.AdminStore](st)
	return &patient{Store: st, AdminStore: admin}
}

// workedOffByOne completes a job with leases that do not end early.
func (o *office) workedOffByOne(jobID string) {
	o.t.Helper()
	o.until("the job is done", func() bool {
		admin.Work(o.t.Context(), o.adm)
		j, err := o.adm.Job(o.t.Context(), admin.System("test").Accepting(), jobID)
		return err == nil && j.State == store.JobDone
	})
}

// Chunks of an import that share nothing are done two at a time and reported in their
// order.
func TestChunksThatShareNothingAreDoneAtOnce(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		s := patience(store)
		o := newOffice(t, s)
		s.anew(time.Minute)
		const n = 5 * 500
		var rows strings.Builder
		for i := range n {
			fmt.Fprintf(&rows, "{\"email\":\"p%d@example.com\"}\n", i)
		}
		id, err := o.adm.ImportUsers(t.Context(), admin.System("test").Accepting(), admin.ImportUsersParams{}, strings.NewReader(rows.String()))
		if err != nil {
			t.Fatal(err)
		}
		o.workedOffByOne(id)
		if !s.waited || s.steps != 5 {
			t.Errorf("%d steps, and the first waited for the second: %v", s.steps, s.waited)
		}
		// Nobody takes the second of two chunks while it is being done.
		if lease := 15 * time.Second; !slices.Equal(s.kept, []time.Duration{lease, 0, lease, 0, 0}) {
			t.Errorf("the job is kept for %v", s.kept)
		}
		wantResults(t, o.done(id), slices.Repeat([]string{"done"}, n)...)
		if made := o.recordedIn(id)[auth.EventUserImported]; made != n {
			t.Errorf("%d rows of the audit log", made)
		}
	})
}

// If two rows of one import want the same value, the first gets it, in any chunks and with
// any other results.
func TestTheFirstRowHasWhatTwoWant(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		s := patience(store)
		o := newOffice(t, s)
		for what, row := range map[string]func(n int) string{
			"id": func(int) string { return `{"id":"` + strings.ToUpper(wanted) + `","email":"%s"}` },
			"email": func(n int) string {
				return `{"email":"` + []string{"Ädda", "äDda"}[n] + `@example.com","full_name":"%s"}`
			},
			"phone": func(n int) string {
				return `{"phone":"` + []string{"+4917612345678", "+49 176 1234 5678"}[n] + `","full_name":"%s"}`
			},
			"identity": func(int) string { return `{"email":"%s","identities":[{"provider":"github","subject":"7"}]}` },
		} {
			s.anew(300 * time.Millisecond)
			var rows strings.Builder
			for i := range 1000 {
				email := fmt.Sprintf("%s%d@example.com", what, i)
				if i%500 == 7 {
					fmt.Fprintf(&rows, row(i/500)+"\n", email)
				} else {
					fmt.Fprintf(&rows, "{\"email\":%q}\n", email)
				}
			}
			id, err := o.adm.ImportUsers(t.Context(), admin.System("test").Accepting(), admin.ImportUsersParams{}, strings.NewReader(rows.String()))
			if err != nil {
				t.Fatal(err)
			}
			o.workedOffByOne(id)
			want := slices.Repeat([]string{"done"}, 1000)
			want[507] = "failed user_already_exists " + what
			if what == "identity" {
				want[507] = "failed identity_already_exists identity"
			}
			wantResults(t, o.done(id), want...)
			if s.waited {
				t.Errorf("%s: chunks that share one are done at the same time", what)
			}
		}
	})
}

var wanted = uuid.NewString()

// If one of two concurrent chunks gets no answer, with its effect or without, and the
// other one does, each row is done once and reported in its place.
func TestOutageOfOneOfTwoChunks(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		s := patience(store)
		o := newOffice(t, s)
		for _, fails := range []string{"chunk 0", "chunk 1"} {
			for _, lost := range []bool{false, true} {
				s.anew(time.Minute)
				s.fails, s.lost = fails, lost
				const n = 3 * 500
				var rows strings.Builder
				for i := range n {
					fmt.Fprintf(&rows, "{\"email\":\"%s-%v-%d@example.com\"}\n", fails[6:], lost, i)
				}
				id, err := o.adm.ImportUsers(t.Context(), admin.System("test").Accepting(), admin.ImportUsersParams{}, strings.NewReader(rows.String()))
				if err != nil {
					t.Fatal(err)
				}
				o.workedOff(id)
				results := o.done(id)
				wantResults(t, results, slices.Repeat([]string{"done"}, n)...)
				for i, r := range results {
					if r["row"] != float64(i+1) {
						t.Fatalf("%s, lost %v: row %v at %d", fails, lost, r["row"], i)
					}
				}
				if made := o.recordedIn(id)[auth.EventUserImported]; made != n || !s.waited {
					t.Errorf("%s, lost %v: %d rows of the audit log, two at once: %v", fails, lost, made, s.waited)
				}
			}
		}
	})
}
