package admin

import (
	"context"
	"io"
	"reflect"
	"time"

	"github.com/authmount/auth/store"
)

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
