package admin_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// twoJobs are two imports of four chunks each, which take turns.
type twoJobs struct {
	*office
	store *altering
	ids   []string
	reads []string // the chunks, in the order in which they are read
}

// inTurns starts them; before runs before each reported end of a chunk.
func inTurns(t *testing.T, before func(j *twoJobs)) *twoJobs {
	t.Helper()
	j := &twoJobs{store: alters(memstore.New())}
	tap := storetap.New(j.store)
	j.office = newOffice(t, tap)
	tap.Reset(ownWork{before: func(method string) {
		switch method {
		case "ClaimJob":
			j.Clock.Advance(time.Millisecond) // so that the turns have an order
		case "FinishJobChunk":
			before(j)
		}
	}}.hooks())
	j.store.set(nil, func(c *store.JobChunk) { j.reads = append(j.reads, fmt.Sprint(c.JobID, " ", c.N)) })
	for job := range 2 {
		var rows strings.Builder
		for i := range 4 * 200 {
			fmt.Fprintf(&rows, "{\"email\":\"p%d-%d@example.com\"}\n", job, i)
		}
		id, err := j.adm.ImportUsers(t.Context(), admin.System("test").Accepting(), admin.ImportUsersParams{OnConflict: admin.OnConflictUpdate}, strings.NewReader(rows.String()))
		if err != nil {
			t.Fatal(err)
		}
		j.ids = append(j.ids, id)
	}
	return j
}

// read returns the chunks that were read.
func (j *twoJobs) read() []string {
	j.store.mu.Lock()
	defer j.store.mu.Unlock()
	return slices.Clone(j.reads)
}

func (j *twoJobs) work() {
	j.t.Helper()
	admin.Work(context.WithValue(j.t.Context(), ownWorkKey{}, true), j.adm)
	j.store.set(nil, nil)
	for _, id := range j.ids {
		wantResults(j.t, j.done(id), slices.Repeat([]string{"done"}, 800)...)
	}
}

// The plan of one job is kept while the other job has its turn.
func TestJobsThatTakeTurnsReadEachChunkOnce(t *testing.T) {
	t.Parallel()
	j := inTurns(t, func(*twoJobs) {})
	j.work()
	read := j.read()
	if sorted := slices.Sorted(slices.Values(read)); len(read) != 8 || len(slices.Compact(sorted)) != 8 {
		t.Errorf("read are %q", read)
	}
}

// A plan of a job that another worker has taken over does not keep the next job from being
// planned while the chunk before it is done.
func TestPlansOfAJobThatIsGoneAreForgotten(t *testing.T) {
	t.Parallel()
	ends := 0
	j := inTurns(t, func(j *twoJobs) {
		switch ends++; ends {
		case 1:
			j.until("the first job is planned", func() bool { return len(j.read()) == 4 })
			j.Clock.Advance(time.Minute)
		case 2:
			j.until("the second job is planned", func() bool { return len(j.read()) == 8 })
		}
	})
	j.work()
	if ends != 8 {
		t.Errorf("%d chunks are done", ends)
	}
}
