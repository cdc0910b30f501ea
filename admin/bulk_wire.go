package admin

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// bulkBody is BulkParams on the wire. Its filter has the names of GET /users.
type bulkBody struct {
	Action      BulkAction     `json:"action"`
	IDs         []string       `json:"ids" is:"id"`
	Filter      map[string]any `json:"filter"`
	SelectionID string         `json:"selection_id" is:"id"`
	DryRun      bool           `json:"dry_run"`
	Reason      string         `json:"reason"`
	Until       time.Time      `json:"until"`
	Role        string         `json:"role"`
	Type        LinkType       `json:"type"`
	RedirectTo  string         `json:"redirect_to"`
}

func (m *Admin) bulk(ctx context.Context, who Actor, p bulkBody) (BulkResult, error) {
	b := BulkParams{Action: p.Action, UserIDs: p.IDs, SelectionID: p.SelectionID, DryRun: p.DryRun, BulkDetails: BulkDetails{Reason: p.Reason, Until: p.Until.UTC(), Role: p.Role, Type: p.Type, RedirectTo: p.RedirectTo}}
	if p.Filter != nil {
		filter, err := m.filterOf(p.Filter)
		if err != nil {
			return BulkResult{}, err
		}
		b.Filter = &filter
	}
	return m.Bulk(ctx, who, b)
}

func (r BulkResult) reply(*Admin) reply {
	if r.JobID != "" {
		return startedJob(r.JobID)
	}
	out := bulkView{Results: []rowResult{}, Done: r.Counts.Done, Skipped: r.Counts.Skipped, Failed: r.Counts.Failed, DryRun: r.dry, SelectionID: optional(r.SelectionID), ExpiresAt: orNever(r.ExpiresAt)}
	if b := r.Budget; b != nil {
		out.Budget = &budgetView{b.Left, b.LeftRecent, optional(string(b.Code))}
	}
	for _, i := range r.Items {
		out.Results = append(out.Results, rowResult{ID: i.ID, Result: i.Result, Code: i.Code, Field: i.Field, Message: i.Message})
	}
	return reply{body: out}
}

type bulkView struct {
	Results     []rowResult `json:"results"`
	Done        int         `json:"done"`
	Skipped     int         `json:"skipped"`
	Failed      int         `json:"failed"`
	DryRun      bool        `json:"dry_run"`
	SelectionID *string     `json:"selection_id"`
	ExpiresAt   *time.Time  `json:"expires_at"`
	Budget      *budgetView `json:"budget"`
}

type budgetView struct {
	Left       *int    `json:"left"`
	LeftRecent *int    `json:"left_recent"`
	Code       *string `json:"code"`
}

// startedJob answers with the id of a background job.
func startedJob(id string) reply {
	return reply{status: http.StatusAccepted, body: map[string]string{"job_id": id}}
}

// filterOf reads an object with the filters of GET /users.
func (m *Admin) filterOf(given map[string]any) (f UserFilter, err error) {
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
			return f, m.kit.Invalid("filter", "has to be an object of texts, numbers, true and false")
		}
	}
	if err := m.query(query, &f); err != nil {
		return f, err
	}
	_, err = m.userSearch(f)
	return f, err
}
