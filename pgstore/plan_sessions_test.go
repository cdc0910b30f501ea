package pgstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/store"
)

// Lists of all users' sessions find their rows by indexes, at any depth.
func TestPlansOfSessionLists(t *testing.T) {
	planner := &pgtest.Planner{}
	st := openTraced(t, planner)
	ctx := t.Context()
	ada := signUp(t, st)
	exec(t, st.Pool(), population)
	exec(t, st.Pool(), "update auth.sessions set ip = '10.0.' || (random() * 250)::int || '.' || (random() * 250)::int, created_at = now() - random() * interval '30 days'")
	exec(t, st.Pool(), "analyze auth.sessions")
	now := time.Now()
	for name, list := range map[string]struct {
		q     store.SessionQuery
		index string
	}{
		"all":        {store.SessionQuery{}, "sessions_live_idx"},
		"deep":       {store.SessionQuery{After: &store.SessionCursor{Time: now.Add(-15 * 24 * time.Hour), ID: ada.ID}}, "sessions_live_idx"},
		"at address": {store.SessionQuery{IP: "10.0.7.7"}, "sessions_live_ip_idx"},
		"of a user":  {store.SessionQuery{UserID: ada.UserID}, "sessions_user_id_idx"},
	} {
		list.q.Limit, list.q.Now = 50, now
		plans, err := planner.Explain(func() error { _, err := st.ListSessions(ctx, list.q); return err })
		if err != nil || len(plans) != 1 {
			t.Fatalf("%s: %d statements, %v", name, len(plans), err)
		}
		if plan := fmt.Sprint(plans[0]); !strings.Contains(plan, list.index) || strings.Contains(plan, "Seq Scan") {
			t.Errorf("%s: %s", name, plan)
		}
	}
}
