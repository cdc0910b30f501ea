package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

var (
	opJob        = operation{pattern: "GET /jobs/{id}", fails: []auth.Code{auth.CodeNotFound, auth.CodeMissingPermission}}
	opJobResults = operation{pattern: "GET /jobs/{id}/results", fails: []auth.Code{auth.CodeNotFound, auth.CodeMissingPermission}}
)

// Timing and size of jobs.
const (
	jobLease = 15 * time.Second // how long a claim lasts: until then only one worker runs the job
	jobPoll  = 5 * time.Second  // how often every process looks for an unclaimed job

	jobWait = time.Hour          // how long a job may receive rows, or a selection may be used
	jobKept = 7 * 24 * time.Hour // how long the results can be read

	// chunkRows is the number of rows between two checks that the job may continue.
	chunkRows = 200
)

// jobKind is one kind of job.
type jobKind struct {
	name       string
	permission func(params []byte) string // of the operation that the job carries out
	also       string                     // a further permission; see operation.also

	// plan checks a chunk by itself and changes nothing. It may run before the earlier
	// chunks are done.
	plan func(ctx context.Context, m *Admin, j store.Job, input []byte) (chunkWork, error)
}

// chunkWork is the work of one chunk.
type chunkWork struct {
	// do carries out the chunk once and returns one result per row. After an error caused
	// by an outage the chunk is attempted again.
	do func(ctx context.Context, who Actor, j store.Job) ([]rowResult, error)

	// uniqueValues are the values that do may create or conflict with; nil: unknown.
	uniqueValues map[string]bool
}

// independentOf reports whether two chunks may run at the same time. They may if they share
// no unique value, because their order then makes no difference.
func (c chunkWork) independentOf(other chunkWork) bool {
	if c.uniqueValues == nil || other.uniqueValues == nil {
		return false
	}
	for key := range c.uniqueValues {
		if other.uniqueValues[key] {
			return false
		}
	}
	return true
}

func jobKinds() []jobKind { return []jobKind{importJob, bulkJob} }

func kindOf(j store.Job) (jobKind, bool) {
	for _, k := range jobKinds() {
		if k.name == j.Kind {
			return k, true
		}
	}
	return jobKind{}, false
}

// Results of a row.
const (
	resultDone    = "done"
	resultSkipped = "skipped" // the account exists (OnConflictSkip), or is too strong for the actor
	resultFailed  = "failed"
)

// rowResult is the result of one row of a job, or of a bulk operation. It is a line of
// the answer to GET /jobs/{id}/results.
type rowResult struct {
	Row     int       `json:"row,omitempty"` // of an import: the line, from 1
	ID      string    `json:"id,omitempty"`  // of the account
	Result  string    `json:"result"`
	Code    auth.Code `json:"code,omitempty"` // the reason that it was not done
	Field   string    `json:"field,omitempty"`
	Message string    `json:"message,omitempty"`
}

// withReason fills in the reason that a row was not done. A target that is too strong for
// the actor is skipped.
func (r rowResult) withReason(err error) rowResult {
	var e *auth.Error
	if !errors.As(err, &e) {
		e = &auth.Error{Code: auth.CodeInternal}
	}
	r.Result, r.Code, r.Message = resultFailed, e.Code, e.Message
	if errors.Is(err, auth.CodeTargetStronger) {
		r.Result = resultSkipped
	}
	for field, problem := range e.Fields {
		r.Field, r.Message = field, problem
	}
	var taken *store.ConflictError
	if errors.As(err, &taken) {
		r.Field = taken.Field
	}
	return r
}

// tally counts results by kind.
func tally(list []rowResult) (n store.JobCounts) {
	for _, r := range list {
		switch r.Result {
		case resultDone:
			n.Done++
		case resultSkipped:
			n.Skipped++
		default:
			n.Failed++
		}
	}
	return n
}

// outage reports whether an error is a failure of the store, after which a row may be
// attempted again, and not a refusal.
func outage(ctx context.Context, err error) bool {
	var e *auth.Error
	return err != nil && (ctx.Err() != nil || !errors.As(err, &e) || e.Status >= 500 && e.Code != auth.CodeInternal)
}

// Job is work that runs in the background: an import, or an operation on many accounts.
// It runs with the authority of the actor who started it. The actor's permissions are
// checked at every step: when the actor signs out or loses them, the remaining rows fail.
type Job struct {
	ID      string
	Kind    string // "import", "bulk"
	State   store.JobState
	Rows    int // in all
	Counts  store.JobCounts
	Created time.Time

	Finished time.Time // zero: not yet
	Expires  time.Time // end of the time in which the results can be read, if the job has run
}

// Job returns the progress of a job. It requires the permission of the operation that the
// job carries out. Errors: CodeNotFound, CodeMissingPermission.
func (m *Admin) Job(ctx context.Context, who Actor, id string) (Job, error) {
	j, err := m.mayReadJob(ctx, who, opJob, id)
	return Job{j.ID, j.Kind, j.State, j.Rows, j.Counts, j.CreatedAt, j.FinishedAt, j.ExpiresAt}, err
}

// JobResults writes the results of the rows that are finished, in their order, one JSON
// object a line. Errors as for Job, and the error of w.
func (m *Admin) JobResults(ctx context.Context, who Actor, id string, w io.Writer) error {
	j, err := m.mayReadJob(ctx, who, opJobResults, id)
	if err != nil {
		return err
	}
	for n := range j.Next {
		c, err := m.admin.JobChunk(ctx, j.ID, n)
		if err != nil {
			return m.kit.StoreError(err)
		}
		if n > 0 { // a slow reader may have lost the permission
			if _, err := m.mayReadJob(ctx, who, opJobResults, id); err != nil {
				return err
			}
		}
		if _, err := w.Write(c.Output); err != nil {
			return err
		}
	}
	return nil
}

func (m *Admin) mayReadJob(ctx context.Context, who Actor, op operation, id string) (store.Job, error) {
	a, err := m.reader(ctx, who, op)
	if err != nil {
		return store.Job{}, err
	}
	j, err := m.admin.Job(ctx, id, m.kit.Now())
	k, known := kindOf(j)
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && !known:
		return store.Job{}, m.fail(auth.CodeNotFound, err)
	case err != nil:
		return store.Job{}, m.kit.StoreError(err)
	}
	for _, p := range []string{k.permission(j.Params), k.also} {
		if p != "" && !a.may(p) {
			return store.Job{}, m.denied(ctx, &attempt{acting: a, record: m.recordOf(ctx, a, op)}, m.missing(a, p))
		}
	}
	return j, nil
}

// jobActor is the actor of a job, as it is stored with the job.
type jobActor struct {
	Kind    store.ActorKind `json:"kind"`
	ID      string          `json:"id,omitempty"`      // of the user, or of the key
	Session string          `json:"session,omitempty"` // of the user
	Name    string          `json:"name,omitempty"`    // of a key of the options, or of code of the application
	At      int64           `json:"at,omitempty"`      // the revision of the key: rotation of the key ends the job, too

	External *Identity `json:"external,omitempty"` // as the application reported it when the job started
}

func (a *acting) forJob() jobActor {
	switch {
	case a.user != nil:
		return jobActor{Kind: store.ActorUser, ID: a.user.ID, Session: a.session.ID}
	case a.key != nil:
		return jobActor{Kind: store.ActorKey, ID: a.key.ID, Name: a.key.Name, At: a.key.Revision}
	case a.external != nil:
		return jobActor{Kind: store.ActorExternal, External: a.external}
	}
	return jobActor{Kind: store.ActorSystem, Name: a.by.System}
}

// same reports whether two are the same actor. The stored permissions of an External actor
// must be equal, too, because only the application knows them.
func (a jobActor) same(o jobActor) bool {
	if (a.External == nil) != (o.External == nil) || a.External != nil && !a.External.same(*o.External) {
		return false
	}
	a.External, o.External = nil, nil
	return a == o
}

// actor returns the actor who continues a job. Recent authentication was checked when the
// job started.
func (a jobActor) actor() Actor {
	switch a.Kind {
	case store.ActorUser:
		return Actor{caller: auth.Caller{UserID: a.ID, SessionID: a.Session}, inJob: true}
	case store.ActorKey:
		return Actor{keyID: a.ID, keyName: a.Name, keyAt: a.At, inJob: true}
	case store.ActorExternal:
		return Actor{external: a.External, inJob: true}
	}
	return Actor{system: a.Name, inJob: true}
}

// jobRate limits how many jobs an actor may create, started or not, because waiting jobs
// take storage.
var jobRate = auth.Rate{Burst: 120, Per: time.Hour}

// receive adds a job without rows for an actor. Rows are added later, and the job does
// nothing until it is started. Errors: CodeRateLimited.
func (m *Admin) receive(ctx context.Context, a *acting, kind string, params any) (store.Job, error) {
	if !a.system() {
		if err := m.kit.CheckLimits(ctx, m.kit.Draw(jobRate, "admin_jobs", a.name(), 1)); err != nil {
			return store.Job{}, err
		}
	}
	now := m.kit.Now()
	j := store.Job{ID: m.kit.NewID(), Kind: kind, State: store.JobReceiving, CreatedAt: now, ExpiresAt: now.Add(jobWait)}
	var err error
	if j.Actor, err = json.Marshal(a.forJob()); err == nil {
		j.Params, err = json.Marshal(params)
	}
	if err != nil {
		return j, m.fail(auth.CodeInternal, err)
	}
	return j, m.storeError(m.admin.PutJob(ctx, j))
}

// addRows adds a chunk to a job that is still receiving rows.
func (m *Admin) addRows(ctx context.Context, j *store.Job, rows int, input any) error {
	c, err := m.chunkOf(j, rows, input)
	if err != nil {
		return err
	}
	return m.storeError(m.admin.AddJobChunk(ctx, c))
}

// chunkOf returns the next chunk of a job that is still receiving rows, sealed, and
// counts its rows in j.
func (m *Admin) chunkOf(j *store.Job, rows int, input any) (store.JobChunk, error) {
	plain, err := json.Marshal(input)
	if err != nil {
		return store.JobChunk{}, m.fail(auth.CodeInternal, err)
	}
	c := store.JobChunk{JobID: j.ID, N: j.Chunks, Rows: rows, Input: m.kit.SealJob(j.ID, plain)}
	j.Chunks, j.Rows = j.Chunks+1, j.Rows+rows
	return c, nil
}

func (m *Admin) storeError(err error) error {
	if err == nil {
		return nil
	}
	return m.kit.StoreError(err)
}

// start starts a job, as a part of the operation that requested it.
func (m *Admin) start(ctx context.Context, t *attempt, j store.Job) (string, error) {
	t.change.Events[0].Event.Method = j.Kind
	t.record.Target = j.ID
	t.changed("rows", nil, j.Rows)
	if err := t.keep(j.ID); err != nil {
		return "", err
	}
	_, err := m.admin.StartJob(ctx, store.StartJob{Change: t.change, ID: j.ID, ExpiresAt: t.change.Now.Add(jobKept)})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", m.fail(auth.CodeNotFound, err)
	case err != nil:
		return "", err
	}
	return j.ID, nil
}

func (m *Admin) wakeWorker() {
	select {
	case m.wake <- struct{}{}:
	default: // it is awake
	}
}

var jobEndpoints = []endpoint{
	op(opBulk, (*Admin).bulk),
	{opImportUsers, reflect.TypeFor[none](), (*Admin).handleImportUsers},
	op(opJob, byID((*Admin).Job)),
	export(opJobResults, "results", func(idOnly) string { return FormatNDJSON }, func(m *Admin, ctx context.Context, who Actor, p idOnly, w io.Writer) error {
		return m.JobResults(ctx, who, p.ID, w)
	}),
}

func (j Job) reply(*Admin) reply {
	return reply{body: struct {
		ID         string         `json:"id"`
		Kind       string         `json:"kind"`
		State      store.JobState `json:"state"`
		Rows       int            `json:"rows"`
		Done       int            `json:"done"`
		Skipped    int            `json:"skipped"`
		Failed     int            `json:"failed"`
		CreatedAt  time.Time      `json:"created_at"`
		FinishedAt *time.Time     `json:"finished_at"`
		ExpiresAt  time.Time      `json:"expires_at"`
	}{j.ID, j.Kind, j.State, j.Rows, j.Counts.Done, j.Counts.Skipped, j.Counts.Failed, j.Created, orNever(j.Finished), j.Expires}}
}
