package admin

import (
	"net/http"
	"time"

	"github.com/authmount/auth/store"
)

var jobEndpoints = []endpoint{
	{opBulk, (*Admin).handleBulk},
	{opImportUsers, (*Admin).handleImportUsers},
	{opJob, (*Admin).handleJob},
	{opJobResults, (*Admin).handleJobResults},
}

func (m *Admin) handleJob(who Actor, w http.ResponseWriter, r *http.Request) error {
	j, err := m.Job(r.Context(), who, r.PathValue("id"))
	if err != nil {
		return err
	}
	var finished *time.Time
	if !j.Finished.IsZero() {
		finished = &j.Finished
	}
	return m.kit.WriteJSON(w, http.StatusOK, struct {
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
	}{j.ID, j.Kind, j.State, j.Rows, j.Counts.Done, j.Counts.Skipped, j.Counts.Failed, j.Created, finished, j.Expires})
}

func (m *Admin) handleJobResults(who Actor, w http.ResponseWriter, r *http.Request) error {
	out := &download{w: w, name: "results." + FormatNDJSON, media: mediaNDJSON}
	return m.finish(r, out, m.JobResults(r.Context(), who, r.PathValue("id"), out))
}
