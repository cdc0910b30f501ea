package authclient

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/authmount/auth"
)

func newAdminClient(tb testing.TB, s *service) *Admin {
	tb.Helper()
	a, err := NewAdmin(s.url, secretKey)
	if err != nil {
		tb.Fatal(err)
	}
	a.wire.now = s.clock.Now
	quick(a.wire, s.clock)
	return a
}

func accounts(n int) iter.Seq2[ImportRow, error] {
	return func(yield func(ImportRow, error) bool) {
		for i := range n {
			if !yield(ImportRow{Email: fmt.Sprintf("user%03d@example.com", i), EmailVerified: true}, nil) {
				return
			}
		}
	}
}

// Lists continue to their end, and stop when the caller does; imports and exports stream.
func TestAdminListsImportsAndExports(t *testing.T) {
	t.Parallel()
	s := newService(t)
	a := newAdminClient(t, s)
	id, err := a.ImportUsers(t.Context(), accounts(120), ImportParams{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		job, err := a.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if job.State == "done" {
			break
		}
	}
	n := 0
	for row, err := range a.JobResults(t.Context(), id) {
		if err != nil || row.Result != "done" {
			t.Fatal(row, err)
		}
		n++
	}
	if n != 120 {
		t.Error(n, "results")
	}
	seen := map[string]bool{}
	for u, err := range a.Users(t.Context(), UserQuery{Limit: 25}) {
		if err != nil {
			t.Fatal(err)
		}
		seen[u.ID] = true
	}
	if pages := s.count("GET /admin/users"); len(seen) != 120 || pages != 5 {
		t.Error(len(seen), "accounts on", pages, "pages")
	}
	for _, err := range a.Users(t.Context(), UserQuery{Limit: 25}) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	if pages := s.count("GET /admin/users"); pages != 6 {
		t.Error("read on after the caller had stopped:", pages)
	}
	stream, err := a.ExportUsers(t.Context(), ExportQuery{Format: NDJSON})
	if err != nil {
		t.Fatal(err)
	}
	n = 0
	for u, err := range Rows[map[string]any](stream) {
		if err != nil || u["id"] == nil {
			t.Fatal(u, err)
		}
		n++
	}
	if n != 120 {
		t.Error(n, "exported")
	}
	broken := errors.New("the source failed")
	if _, err := a.ImportUsers(t.Context(), func(yield func(ImportRow, error) bool) {
		_ = yield(ImportRow{Email: "late@example.com"}, nil) && yield(ImportRow{}, broken)
	}, ImportParams{}); !errors.Is(err, broken) {
		t.Error(err)
	}
	if _, err := a.LookupUser(t.Context(), UserLookup{Email: "late@example.com"}); !errors.Is(err, auth.CodeUserNotFound) {
		t.Error("half an import:", err)
	}
}

// An export that is cut off does not look complete.
func TestExportThatIsCutOff(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "{\"id\":\"1\"}\n{\"id\":")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer srv.Close()
	a, err := NewAdmin(srv.URL, secretKey)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := a.ExportUsers(t.Context(), ExportQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var last error
	for _, err := range Rows[map[string]any](stream) {
		last = err
	}
	if last == nil {
		t.Error("it looks whole")
	}
}

// A POST without an answer is repeated with its Idempotency-Key, and done once; a
// concurrent change is not overwritten.
func TestAdminChangesOnce(t *testing.T) {
	t.Parallel()
	s := newService(t)
	a := newAdminClient(t, s)
	var lost atomic.Bool
	var mu sync.Mutex
	keys := map[string]int{}
	s.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.Method == http.MethodPost {
			mu.Lock()
			keys[r.Header.Get("Idempotency-Key")]++
			mu.Unlock()
			if !lost.Swap(true) {
				next.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			}
		}
		next.ServeHTTP(w, r)
	})
	u, err := a.CreateUser(t.Context(), CreateUserParams{Email: "ada@example.com", EmailVerified: true})
	if err != nil || len(keys) != 1 || keys[""] != 0 {
		t.Fatal(u, err, keys)
	}
	n := 0
	for _, err := range a.Users(t.Context(), UserQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 1 {
		t.Error(n, "accounts")
	}
	if _, err := a.UpdateUser(t.Context(), u.ID, UpdateUserChanges{FullName: Set("Ada")}, IfRevision(u.Revision)); err != nil {
		t.Fatal(err)
	}
	if _, err := a.UpdateUser(t.Context(), u.ID, UpdateUserChanges{FullName: Null[string]()}, IfRevision(u.Revision)); !errors.Is(err, auth.CodePreconditionFailed) {
		t.Error(err)
	}
	if v, err := a.UpdateUser(t.Context(), u.ID, UpdateUserChanges{FullName: Null[string]()}); err != nil || v.FullName != nil {
		t.Error(v, err)
	}
	if v, err := a.BanUser(t.Context(), u.ID, BanParams{Reason: "spam"}); err != nil || v.Status != "banned" {
		t.Error(v, err)
	}
	if _, err := a.User(t.Context(), "../me"); err == nil || s.count("GET /admin/me") != 0 {
		t.Error("an id that leads elsewhere", err)
	}
	dry, err := a.Bulk(t.Context(), BulkParams{Action: "unban", IDs: []string{u.ID}, DryRun: true})
	if err != nil || !dry.DryRun || dry.Done != 1 {
		t.Error(dry, err)
	}
}

// An import that is refused before its rows are read fails with the refusal, and not with
// the results of the rows.
func TestImportRefusedEarly(t *testing.T) {
	t.Parallel()
	s := newService(t)
	a := newAdminClient(t, s)
	s.set(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"code":"missing_permission"}`)
	})
	if id, err := a.ImportUsers(t.Context(), accounts(100_000), ImportParams{}); !errors.Is(err, auth.CodeMissingPermission) || id != "" {
		t.Error(id, err)
	}
}

// An import without an answer is requested again with the same key: it is the same job, no
// account is created twice, and the rows of another import are refused.
func TestImportOnce(t *testing.T) {
	t.Parallel()
	s := newService(t)
	a := newAdminClient(t, s)
	var lost atomic.Bool
	done := make(chan string, 1)
	s.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if r.URL.Path == "/auth/v1/admin/users/import" && !lost.Swap(true) {
			rec := httptest.NewRecorder()
			next.ServeHTTP(rec, r)
			done <- rec.Body.String()
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
	once := IdempotencyKey("import-1")
	if id, err := a.ImportUsers(t.Context(), accounts(30), ImportParams{}, once); !errors.Is(err, CodeNetwork) || id != "" {
		t.Fatal(id, err)
	}
	first := <-done
	if n := s.count("POST /admin/users/import"); n != 1 {
		t.Error("rows that can be read only once were sent", n, "times")
	}
	id, err := a.ImportUsers(t.Context(), accounts(30), ImportParams{}, once)
	if err != nil || id == "" || !strings.Contains(first, id) {
		t.Fatal(id, err, first)
	}
	for state := ""; state != "done"; {
		job, err := a.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if state = job.State; state == "done" && (job.Done != 30 || job.Failed+job.Skipped != 0) {
			t.Errorf("%+v", job)
		}
	}
	n := 0
	for _, err := range a.Users(t.Context(), UserQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 30 {
		t.Error(n, "accounts")
	}
	var e *Error
	if _, err := a.ImportUsers(t.Context(), accounts(31), ImportParams{}, once); !errors.As(err, &e) || e.Fields["Idempotency-Key"] == "" {
		t.Error("another import under the same key:", err)
	}
}

// Keys are accepted only by the constructors they are for.
func TestKeysAreNotMixedUp(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]func() error{
		"public key for admin":  func() error { _, err := NewAdmin("https://a.example", "pk_x"); return err },
		"secret key for people": func() error { _, err := NewClient("https://a.example", WithAPIKey("sk_x")); return err },
		"plain http":            func() error { _, err := NewClient("http://a.example"); return err },
		"no URL":                func() error { _, err := NewClient("a.example"); return err },
		"user in the URL":       func() error { _, err := NewClient("https://u:p@a.example"); return err },
		"option of another":     func() error { _, err := NewAdmin("https://a.example", "sk_x", WithAudience("a")); return err },
		"nil option":            func() error { _, err := NewClient("https://a.example", nil); return err },
	} {
		if err := f(); err == nil || strings.Contains(err.Error(), "u:p") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
