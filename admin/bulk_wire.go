package admin

import (
	"net/http"
	"net/url"
	"strconv"
	"time"
)

func (m *Admin) handleBulk(who Actor, w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Action      BulkAction     `json:"action"`
		IDs         []string       `json:"ids"`
		Filter      map[string]any `json:"filter"`
		SelectionID string         `json:"selection_id"`
		DryRun      bool           `json:"dry_run"`
		Reason      string         `json:"reason"`
		Until       *time.Time     `json:"until"`
		Role        string         `json:"role"`
		Type        LinkType       `json:"type"`
		RedirectTo  string         `json:"redirect_to"`
	}
	if err := m.kit.Decode(r, &p); err != nil {
		return err
	}
	b := BulkParams{Action: p.Action, UserIDs: p.IDs, SelectionID: p.SelectionID, DryRun: p.DryRun, BulkDetails: BulkDetails{Reason: p.Reason, Role: p.Role, Type: p.Type, RedirectTo: p.RedirectTo}}
	if p.Until != nil {
		b.Until = p.Until.UTC()
	}
	if p.Filter != nil {
		filter, err := m.filterOf(p.Filter)
		if err != nil {
			return err
		}
		b.Filter = &filter
	}
	res, err := m.Bulk(r.Context(), who, b)
	if err != nil {
		return err
	}
	if res.JobID != "" {
		return m.writeJobID(w, res.JobID)
	}
	out := bulkView{Results: []rowResult{}, Done: res.Counts.Done, Skipped: res.Counts.Skipped, Failed: res.Counts.Failed, DryRun: p.DryRun, SelectionID: optional(res.SelectionID)}
	for _, i := range res.Items {
		out.Results = append(out.Results, rowResult{ID: i.ID, Result: i.Result, Code: i.Code, Field: i.Field, Message: i.Message})
	}
	if !res.ExpiresAt.IsZero() {
		out.ExpiresAt = &res.ExpiresAt
	}
	return m.kit.WriteJSON(w, http.StatusOK, out)
}

type bulkView struct {
	Results     []rowResult `json:"results"`
	Done        int         `json:"done"`
	Skipped     int         `json:"skipped"`
	Failed      int         `json:"failed"`
	DryRun      bool        `json:"dry_run"`
	SelectionID *string     `json:"selection_id"`
	ExpiresAt   *time.Time  `json:"expires_at"`
}

// writeJobID answers that something is being done behind the caller's back.
func (m *Admin) writeJobID(w http.ResponseWriter, id string) error {
	return m.kit.WriteJSON(w, http.StatusAccepted, map[string]string{"job_id": id})
}

// filterOf reads the filters of GET /users from an object of their names.
func (m *Admin) filterOf(given map[string]any) (ListUsersParams, error) {
	query := url.Values{}
	for name, v := range given {
		switch v := v.(type) {
		case string:
			query.Set(name, v)
		case bool:
			query.Set(name, strconv.FormatBool(v))
		case float64:
			query.Set(name, strconv.FormatFloat(v, 'f', -1, 64))
		default:
			return ListUsersParams{}, m.kit.Invalid("filter", "has to be an object of texts, numbers, true and false")
		}
	}
	v := &values{m: m, from: query, seen: map[string]bool{}}
	p := v.userFilters()
	return p, v.done()
}
