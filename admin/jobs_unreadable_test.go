package admin_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// altering is a store that alters the jobs that were put into it.
type altering struct {
	auth.Store
	store.AdminStore

	mu   sync.Mutex
	job  func(j *store.Job)
	read func(c *store.JobChunk)
	told []string // the results of chunks
}

func alters(s auth.Store) *altering {
	jobs, _ := store.Capability[store.AdminStore](s)
	return &altering{Store: s, AdminStore: jobs}
}

func (s *altering) Unwrap() auth.Store { return s.Store }

// set has jobs and chunks altered as they are read; nil: not altered.
func (s *altering) set(job func(j *store.Job), read func(c *store.JobChunk)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.job, s.read = job, read
}

func (s *altering) ClaimJob(ctx context.Context, c store.ClaimJob) (store.Job, error) {
	j, err := s.AdminStore.ClaimJob(ctx, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.job != nil && err == nil {
		s.job(&j)
	}
	return j, err
}

func (s *altering) JobChunk(ctx context.Context, id string, n int) (store.JobChunk, error) {
	c, err := s.AdminStore.JobChunk(ctx, id, n)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.read != nil && err == nil {
		s.read(&c)
	}
	return c, err
}

func (s *altering) FinishJobChunk(ctx context.Context, f store.FinishJobChunk) (store.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, string(f.Output))
	return s.AdminStore.FinishJobChunk(ctx, f)
}

func (s *altering) ends() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.told)
}

// alteredOffice is an office on an altering store, in which nothing may panic.
func alteredOffice(t *testing.T) (*altering, *office) {
	t.Helper()
	s, said := alters(memstore.New()), &lines{}
	t.Cleanup(func() {
		if strings.Contains(said.String(), "panic") {
			t.Error("what nobody can read ends in a panic")
		}
	})
	return s, newOffice(t, s, auth.WithLogger(slog.New(slog.NewTextHandler(said, nil))))
}

// noParameters is a store with unreadable selections.
type noParameters struct{ *altering }

func (s noParameters) Job(ctx context.Context, id string, now time.Time) (store.Job, error) {
	j, err := s.AdminStore.Job(ctx, id, now)
	j.Params = []byte("{")
	return j, err
}

// A selection that no retry can make readable is not reported as an outage, because the
// caller would come again.
func TestSelectionThatCannotBeRead(t *testing.T) {
	t.Parallel()
	o := newOffice(t, noParameters{alters(memstore.New())})
	o.crowd("many", 2)
	by := admin.System("test").Accepting()
	_, err := o.adm.Bulk(t.Context(), by, admin.BulkParams{Action: admin.BulkBan, SelectionID: o.selected(by, admin.BulkBan, "many")})
	wantCode(t, err, auth.CodeInternal)
}

// A job that no retry can repair, such as one sealed under a lost secret, fails with a
// result for each of its rows. It neither hangs nor counts as done.
func TestJobsThatCannotBeReadFail(t *testing.T) {
	t.Parallel()
	imports := func(o *office, by admin.Actor) string {
		id, err := o.adm.ImportUsers(o.t.Context(), by, admin.ImportUsersParams{}, strings.NewReader(`{"email":"a@example.com"}`+"\n"+`{"email":"b@example.com"}`))
		if err != nil {
			o.t.Fatal(err)
		}
		return id
	}
	bans := func(o *office, by admin.Actor) string {
		o.crowd("many", 2)
		return o.started(by, admin.BulkBan, o.selected(by, admin.BulkBan, "many"))
	}
	for name, c := range map[string]struct {
		begin func(o *office, by admin.Actor) string
		job   func(j *store.Job)
		read  func(c *store.JobChunk)
	}{
		"rows sealed under another secret": {imports, nil, func(c *store.JobChunk) { c.Input = []byte("sealed elsewhere") }},
		"no parameters of an import":       {imports, func(j *store.Job) { j.Params = []byte("{") }, nil},
		"no parameters of many":            {bans, func(j *store.Job) { j.Params = []byte("{") }, nil},
		"an action that is none":           {bans, func(j *store.Job) { j.Params = []byte(`{"action":"praise"}`) }, nil},
		"an actor who is none":             {imports, func(j *store.Job) { j.Actor = []byte("{") }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, o := alteredOffice(t)
			s.set(c.job, c.read)
			id := c.begin(o, admin.System("test").Accepting())
			o.workedOff(id)
			wantResults(t, o.done(id), "failed internal", "failed internal")
			for _, email := range []string{"a@example.com", "many0@example.com"} {
				if u, err := s.User(t.Context(), store.ByEmail(email)); err == nil && (email[0] == 'a' || u.Banned(o.Clock.Now())) {
					t.Errorf("something was done to %s", email)
				}
			}
		})
	}
}

// A job of a kind that only another version of the service knows waits for that version,
// and rows that another worker has done are not repeated. If no worker comes, its rows
// have failed.
func TestJobsWaitForWhoeverKnowsThem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		job  func(j *store.Job)
		read func(c *store.JobChunk)
	}{
		"of another kind":        {func(j *store.Job) { j.Kind = "later" }, nil},
		"whose rows are done":    {nil, func(c *store.JobChunk) { c.Input = nil }},
		"of another kind, alone": {func(j *store.Job) { j.Kind, j.ExpiresAt = "later", j.CreatedAt }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, o := alteredOffice(t)
			s.set(c.job, c.read)
			id, err := o.adm.ImportUsers(t.Context(), admin.System("test").Accepting(), admin.ImportUsersParams{}, strings.NewReader(`{"email":"a@example.com"}`))
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, "alone") {
				o.workedOff(id)
				wantResults(t, o.done(id), "failed internal")
				return
			}
			for range 3 {
				o.Clock.Advance(time.Minute)
				admin.Work(t.Context(), o.adm)
			}
			if told := s.ends(); len(told) > 0 {
				t.Errorf("told %q", told)
			}
			s.set(nil, nil)
			o.workedOff(id)
			wantResults(t, o.done(id), "done")
		})
	}
}

// A job by a key of the options ends with the key.
func TestJobsEndWithTheKeyOfTheOptions(t *testing.T) {
	t.Parallel()
	const text = "sk_test_0123456789abcdefghij"
	tap := storetap.New(memstore.New())
	secret := auth.WithSecret([]byte("two instances' secret of 32 byte"))
	before := newOffice(t, tap, secret, auth.WithSecretKeys(auth.SecretKey{Key: text, Scopes: []string{admin.PermUsersImport, admin.PermUsersRead}}))
	w := ownWork{}
	tap.Reset(w.hooks())
	id, err := before.adm.ImportUsers(t.Context(), admin.Key(text), admin.ImportUsersParams{}, strings.NewReader(`{"email":"a@example.com"}`))
	if err != nil {
		t.Fatal(err)
	}
	wantResults(t, w.works(newOffice(t, tap, secret), id), "failed invalid_api_key")
}
