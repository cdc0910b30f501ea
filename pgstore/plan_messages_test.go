package pgstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/store"
)

// Lists of messages find their rows by indexes, at any depth. So do the statements that
// end and sweep messages.
func TestPlansOfMessages(t *testing.T) {
	planner := &pgtest.Planner{}
	st := openTraced(t, planner)
	ctx := t.Context()
	exec(t, st.Pool(), `
		insert into auth.message_log (id, kind, channel, shown, user_id, recipient, state, created_at, updated_at)
			select gen_random_uuid(), (array['magic_link', 'reset_password', 'new_device', 'phone_code', ''])[1 + g % 5], 'email', '', md5((g / 20)::text)::uuid, md5(g::text),
				case when g % 1001 = 0 then 'queued' when g % 999 = 0 then 'failed' when g % 997 = 0 then 'dropped' else 'sent' end, now() - g * interval '30 seconds', now()
			from generate_series(1, 20000) g;
		insert into auth.messages (id, body, created_at, next_at, expires_at)
			select gen_random_uuid(), '', now(), now() + interval '1 day', now() + interval '2 days' from generate_series(1, 20000) g;
		analyze`)
	now := time.Now()
	id := uuid.NewString()
	list := func(q store.MessageQuery) func() error {
		return func() error {
			q.Limit = 50
			_, err := st.ListMessages(ctx, q)
			return err
		}
	}
	finish := func(f store.FinishMessage) func() error {
		return func() error {
			f.ID, f.At = id, now
			return st.FinishMessage(ctx, f)
		}
	}
	for name, c := range map[string]struct {
		run   func() error
		index string
	}{
		"all":       {list(store.MessageQuery{}), "message_log_created_at_idx"},
		"deep":      {list(store.MessageQuery{After: &store.MessageCursor{Time: now.Add(-100 * time.Hour), ID: id}}), "message_log_created_at_idx"},
		"of a time": {list(store.MessageQuery{From: now.Add(-5 * time.Hour), To: now.Add(-4 * time.Hour)}), "message_log_created_at_idx"},
		"queued":    {list(store.MessageQuery{State: store.MessageQueued}), "message_log_state_idx"},
		"failed":    {list(store.MessageQuery{State: store.MessageFailed, From: now.Add(-100 * time.Hour)}), "message_log_state_idx"},
		"sent":      {list(store.MessageQuery{State: store.MessageSent}), "message_log_"},
		"of a kind": {list(store.MessageQuery{Kind: store.KindNewDevice}), "message_log_kind_idx"},
		"unheard":   {list(store.MessageQuery{Kind: store.KindWelcome}), "message_log_kind_idx"},
		"of a user": {list(store.MessageQuery{UserID: id}), "message_log_user_id_idx"},
		"one":       {list(store.MessageQuery{ID: id}), "message_log_pkey"},

		"retry":   {func() error { _, err := st.FailedMessage(ctx, id, now); _ = err; return nil }, "messages_pkey"},
		"sent it": {finish(store.FinishMessage{State: store.MessageSent}), "message_log_pkey"},
		"keep":    {finish(store.FinishMessage{State: store.MessageFailed, KeepUntil: now}), "message_log_pkey"},
		"put off": {finish(store.FinishMessage{State: store.MessageQueued, RetryAt: now}), "message_log_pkey"},
		"forget":  {finish(store.FinishMessage{}), "message_log_pkey"},
	} {
		plans, err := planner.Explain(c.run)
		if err != nil || len(plans) != 1 {
			t.Fatalf("%s: %d statements, %v", name, len(plans), err)
		}
		if plan := fmt.Sprint(plans[0]); !strings.Contains(plan, c.index) || strings.Contains(plan, "Seq Scan message") || strings.Contains(plan, "Sort") && name != "one" {
			t.Errorf("%s: %s", name, plan)
		}
	}
	plans, err := planner.Explain(func() error { _, err := st.Sweep(ctx, now, 100); return err })
	if err != nil {
		t.Fatal(err)
	}
	swept := false
	for _, p := range plans {
		if plan := fmt.Sprint(p); strings.Contains(plan, "message_log_created_at_idx") {
			swept = true
		}
	}
	if !swept {
		t.Errorf("no sweep of messages by their age: %v", plans)
	}
}
