package admin_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// Settings, and the tests of their providers and senders.
func TestLedgerOfSettings(t *testing.T) {
	scenes(t, "settings", admin.Options{}, func(l *ledger) {
		l.crew()
		l.signIn("eye", authtest.Permissions(admin.PermSettingsRead, admin.PermStatsRead), authtest.AAL2())
		l.hasPhone(l.who["owner"], "+4930123456")
		l.play("eye", "GET /settings", "")
		for _, body := range []string{
			`{}`, `{"magic_link_enabled":true,"sender_name":"Notes"}`, `{"magic_link_enabled":null}`, `{"magic_link_enabled":1}`, `{"none":true}`, `{"sender_name":1}`, `{"session_idle_timeout":3600,"session_lifetime":7200}`, `{"cors_origins":["https://two.test"]}`, `{"cors_origins":["x"]}`,
			`{"password_enabled":false,"magic_link_enabled":false,"oauth_enabled":false,"phone_enabled":false}`, `[]`,
		} {
			l.play("owner", "PATCH /settings", body)
		}
		l.play("owner", "PATCH /settings", `{"sender_name":"x"}`, `If-Match: "0"`)
		l.play("owner", "PATCH /settings", `{"sender_name":"x"}`, `If-Match: "4"`)
		l.play("eye", "PATCH /settings", `{"sender_name":"x"}`)
		l.play("eye", "GET /settings", "")
		l.once("owner", "POST /settings/test-mail", "")
		l.once("owner", "POST /settings/test-sms", "")
		l.Clock.Advance(time.Minute)
		l.post.refuse("owner@example.com", func(auth.Message) error { return auth.Permanent(fmt.Errorf("550 no such user")) })
		l.once("owner", "POST /settings/test-mail", "")
		l.once("owner", "POST /settings/test-provider/"+theProvider, "")
		l.play("owner", "POST /settings/test-provider/none", "")
		for _, what := range []string{"test-mail", "test-sms", "test-provider/" + theProvider} {
			l.play("eye", "POST /settings/"+what, "")
		}
		l.made("robot", "owner", "POST /keys", `{"name":"robot","scopes":["auth.settings.*"]}`)
	})
}

// Statistics over time, by each of their parameters.
func TestLedgerOfStats(t *testing.T) {
	scenes(t, "stats", admin.Options{}, func(l *ledger) {
		l.crew()
		l.signIn("eye", authtest.Permissions(admin.PermStatsRead), authtest.AAL2())
		l.written()
		stats, _ := store.Capability[store.ProjectStore](l.behind())
		now := l.Clock.Now()
		var all store.AddCounts
		for i, metric := range store.Metrics() {
			for ago, n := range map[time.Duration]int64{0: 1, 2 * time.Hour: 10, 23 * time.Hour: 100, 25 * time.Hour: 1000, 6 * 24 * time.Hour: 10_000, 13 * 24 * time.Hour: 100_000, 45 * 24 * time.Hour: 1_000_000, 100 * 24 * time.Hour: 10_000_000} {
				if metric != store.MetricActiveUsers {
					all.Counts = append(all.Counts, store.Count{Metric: metric, Label: fmt.Sprint("label", i%2), At: now.Add(-ago), N: n * int64(i+1)})
				}
			}
		}
		for ago := range 12 {
			all.Active = append(all.Active, store.Activity{UserID: uuid.NewString(), At: now.AddDate(0, 0, -ago)})
		}
		if err := stats.AddCounts(t.Context(), all); err != nil {
			t.Fatal(err)
		}
		l.play("eye", "GET /stats", "")
		for _, query := range []string{
			"metrics=sign_ins", "metrics=sign_ins,sign_ups", "metrics=none", "metrics=", "interval=day", "interval=hour", "interval=week", "from=2026-01-01T00:00:00Z&metrics=sign_ins", "from=2025-12-25T00:00:00Z&metrics=sign_ups", "to=2025-12-28T00:00:00Z&metrics=sign_ins", "to=2025-12-28T00:30:00Z&interval=day&metrics=active_users",
			"from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z", "from=x", "to=x", "from=2020-01-01T00:00:00Z&interval=hour", "from=2020-01-01T00:00:00Z", "to=9999-12-31T23:59:59Z", "from=0001-01-01T00:00:00%2B01:00&to=0001-01-01T10:00:00Z", "colour=red",
		} {
			l.play("eye", "GET /stats?"+query, "")
		}
		for _, query := range []string{"", "?period=24h", "?period=7d", "?period=30d", "?period=90d", "?period=1h", "?period=", "?colour=red"} {
			l.play("eye", "GET /overview"+query, "")
		}
		l.play("clerk", "GET /stats", "")
		l.play("clerk", "GET /overview", "")
		l.play("owner", "POST /users/$ada/ban", `{"reason":"x"}`)
		l.made("old", "owner", "POST /keys", `{"name":"old","scopes":["auth.users.read"]}`)
		l.Clock.Advance(admin.KeyAgeing)
		l.signIn("owner")
		l.play("owner", "GET /overview", "")
		l.Clock.Advance(time.Hour)
		l.play("owner", "GET /overview", "")
	})
}

// A request that is repeated under the same key is done once, and answered as before.
func TestLedgerOfRepetitions(t *testing.T) {
	scenes(t, "repetitions", admin.Options{}, func(l *ledger) {
		l.crew()
		l.signIn("raw", authtest.Unverified())
		const key = "Idempotency-Key: "
		twice := func(name, pattern, body string) {
			for _, headers := range [][]string{{key + name}, {key + name}, {key + name, `If-Match: *`}} {
				l.once("owner", pattern, body, headers...)
			}
			l.once("clerk", pattern, body, key+name)
		}
		twice("made", "POST /users", `{"email":"new@example.com"}`)
		l.once("owner", "POST /users", `{"email":"other@example.com"}`, key+"made")
		l.once("owner", "POST /roles", `{"name":"other"}`, key+"made")
		twice("role", "POST /roles", `{"name":"editor","permissions":["notes.write"]}`)
		twice("key", "POST /keys", `{"name":"robot","scopes":["auth.users.read"]}`)
		twice("ban", "POST /users/$ada/ban", `{"reason":"x"}`)
		twice("unban", "POST /users/$ada/unban", `{"reason":"x"}`)
		twice("unlock", "POST /users/$ada/unlock", "")
		twice("grant", "POST /users/$ada/roles/writer", "")
		twice("send", "POST /users/$ada/send", `{"type":"reset"}`)
		twice("link", "POST /links", `{"type":"reset","user_id":"$raw"}`)
		twice("invite", "POST /invitations", `{"email":"guest@example.com"}`)
		twice("sessions", "POST /sessions/revoke", `{"user_ids":["$ada","$raw"],"reason":"x"}`)
		twice("bulk", "POST /users/bulk", `{"action":"ban","ids":["$ada","$raw"],"reason":"x"}`)
		twice("mail", "POST /settings/test-mail", "")
		twice("provider", "POST /settings/test-provider/"+theProvider, "")
		twice("act", "POST /users/$ada/impersonate", `{"reason":"x"}`)
		twice("delete", "POST /users/$raw/delete", `{"reason":"x"}`)
		twice("all", "POST /sessions/revoke", `{"all":true}`)
		for _, wrong := range []string{"", "two words", "ü", string(make([]byte, 256))} {
			l.once("owner", "POST /roles", `{"name":"none","dry_run":true}`, key+wrong)
		}
		l.once("owner", "PATCH /users/$ada", `{"full_name":"x"}`, key+"patch")
		l.once("owner", "PATCH /users/$ada", `{"full_name":"y"}`, key+"patch")
		l.Clock.Advance(24 * time.Hour)
		l.signIn("owner")
		l.once("owner", "POST /users", `{"email":"late@example.com"}`, key+"made")
	})
}
