package pgstore_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

// After a crash of the database, the stored position of a job may be one chunk behind if
// all rows of that chunk were done: the chunk is repeated. Rows that were not done, and
// the end of a job, are durable, because readers may count on them.
func TestWhatACrashForgetsOfJobs(t *testing.T) {
	settings := []string{"fsync=off", "wal_writer_delay=10s"} // so nothing else writes out transactions that did not wait for their commit
	srv, err := pgtest.Start(settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Remove)
	s := unmigrated(t, srv.URL, pgstore.AutoMigrate())
	aJob := func(chunks int) string {
		j := store.Job{ID: uuid.NewString(), Kind: "x", State: store.JobReceiving, Actor: []byte("{}"), Params: []byte("{}"), CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
		done(t, s.PutJob(t.Context(), j))
		for n := range chunks {
			done(t, s.AddJobChunk(t.Context(), store.JobChunk{JobID: j.ID, N: n, Rows: 2, Input: []byte("in")}))
		}
		_, err := s.StartJob(t.Context(), store.StartJob{Change: store.Change{Now: now, By: store.Authority{System: "test"}}, ID: j.ID, ExpiresAt: now.Add(time.Hour)})
		done(t, err)
		return j.ID
	}
	finish := func(id string, n int, counts store.JobCounts) {
		t.Helper()
		_, err := s.FinishJobChunk(t.Context(), store.FinishJobChunk{JobID: id, N: n, Output: []byte("out"), Counts: counts, Now: now, Until: now})
		done(t, err)
	}
	crash := func() {
		t.Helper()
		srv.Stop(syscall.SIGQUIT)
		if err := srv.Run(settings...); err != nil {
			t.Fatal(err)
		}
		s.Pool().Reset() // its connections are broken
	}
	for what, row := range map[string]struct {
		chunks int
		counts store.JobCounts
		least  int // the minimal number of finished chunks after the crash
	}{
		"all rows were done":    {2, store.JobCounts{Done: 2}, 0},
		"a row was skipped":     {2, store.JobCounts{Done: 1, Skipped: 1}, 1},
		"a row failed":          {2, store.JobCounts{Done: 1, Failed: 1}, 1},
		"it was the last chunk": {1, store.JobCounts{Done: 2}, 1},
	} {
		id := aJob(row.chunks)
		_, err := s.ClaimJob(t.Context(), store.ClaimJob{Now: now, Until: now.Add(time.Minute)})
		done(t, err)
		finish(id, 0, row.counts)
		crash()
		j, err := s.Job(t.Context(), id, now)
		done(t, err)
		c, err := s.JobChunk(t.Context(), id, 0)
		done(t, err)
		switch j.Next {
		case 0: // lost completely
			if j.State != store.JobRunning || j.Counts != (store.JobCounts{}) || string(c.Input)+string(c.Output) != "in" {
				t.Errorf("%s: %+v %+v", what, j, c)
			}
		case 1: // stored completely
			if fmt.Sprint(j.State == store.JobDone) != fmt.Sprint(row.chunks == 1) || j.Counts != row.counts || string(c.Input)+string(c.Output) != "out" {
				t.Errorf("%s: %+v %+v", what, j, c)
			}
		}
		if j.Next < row.least {
			t.Errorf("%s: the end of the chunk is forgotten", what)
		}
		for n := j.Next; n < j.Chunks; n++ { // the job continues from there
			finish(id, n, store.JobCounts{Done: 2})
		}
	}
}
