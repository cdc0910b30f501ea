package auth_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// The audit log keeps events for the time that WithAuditLog sets, 90 days by default. Old
// events are deleted in small batches.
func TestAuditRetention(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		opts  []auth.Option
		after map[time.Duration]int // events left of three
	}{
		"by default": {nil, map[time.Duration]int{89 * day: 3, 91 * day: 0}},
		"two days":   {[]auth.Option{auth.WithAuditLog(auth.AuditOptions{Retention: 2 * day})}, map[time.Duration]int{1 * day: 3, 3 * day: 0}},
		"for ever":   {[]auth.Option{auth.WithAuditLog(auth.AuditOptions{Retention: -1})}, map[time.Duration]int{9999 * day: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			for after, want := range c.after {
				env := authtest.New(t, c.opts...)
				st, _ := store.Capability[store.Journal](env.Store)
				var list []auth.Event
				for range 3 {
					list = append(list, auth.Event{ID: uuid.NewString(), Type: auth.EventSignInFailed, At: env.Clock.Now()})
				}
				if err := st.AddEvents(t.Context(), list); err != nil {
					t.Fatal(err)
				}
				env.Clock.Advance(after)
				swept := 0
				for range 3 {
					n, err := auth.SweepEvents(t.Context(), env.Auth, 2)
					if err != nil || n > 2 {
						t.Fatalf("%d, %v", n, err)
					}
					swept += n
				}
				stored, err := st.Events(t.Context(), store.EventQuery{})
				if err != nil || len(stored) != want || swept != 3-want {
					t.Errorf("after %s %d are left and %d swept, want %d left: %v", after, len(stored), swept, want, err)
				}
			}
		})
	}
	_, err := auth.New(t.Context(), memstore.New(), auth.WithDevMode(), auth.WithAuditLog(auth.AuditOptions{Retention: time.Hour}))
	if err == nil || !strings.Contains(err.Error(), "WithAuditLog") {
		t.Errorf("an hour: %v", err)
	}
}

// Stores reject a change with an event that requires a notice, if the change does not name
// the account.
func TestNoticesCannotBeForgotten(t *testing.T) {
	for _, e := range harness.EventTypes(t) {
		_, hasNotice := harness.NoticeOf(e)
		u := auth.User{ID: "01a1fb4c-2b13-7a71-806e-d67843451400", Email: "ada@example.com", EmailVerifiedAt: time.Now()}
		env := harness.NewEnv(t)
		forgotten, whole := auth.NewChange(env.Auth, auth.User{}, e), auth.NewChange(env.Auth, u, e)
		if err := forgotten.Check(); (err != nil) != hasNotice {
			t.Errorf("%s of nobody: %v", e, err)
		}
		if err := whole.Check(); err != nil || (len(whole.Messages) == 1) != hasNotice {
			t.Errorf("%s: %d messages, %v", e, len(whole.Messages), err)
		}
		u.Email = ""
		if c := auth.NewChange(env.Auth, u, e); c.Check() != nil || len(c.Messages) != 0 {
			t.Errorf("%s without an address: %d messages", e, len(c.Messages))
		}
	}
}
