package auth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// The audit log goes back as far as WithAuditLog says, 90 days by default, and is
// deleted in small batches.
func TestAuditRetention(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		opts  []auth.Option
		after map[time.Duration]int // how many of three are left
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
				kept, err := st.Events(t.Context(), store.EventQuery{})
				if err != nil || len(kept) != want || swept != 3-want {
					t.Errorf("after %s %d are left and %d swept, want %d left: %v", after, len(kept), swept, want, err)
				}
			}
		})
	}
	_, err := auth.New(t.Context(), memstore.New(), auth.WithDevMode(), auth.WithAuditLog(auth.AuditOptions{Retention: time.Hour}))
	if err == nil || !strings.Contains(err.Error(), "WithAuditLog") {
		t.Errorf("an hour: %v", err)
	}
}

// A test message that takes the place of another is the only one waited for.
func TestOneTestMessageIsAwaited(t *testing.T) {
	w := harness.NewWorld(t)
	kit, ctx := host.Of(w), t.Context()
	u, err := w.Store.User(ctx, store.ByID(w.Member("ada@example.com").User.ID))
	if err != nil {
		t.Fatal(err)
	}
	test, err := kit.PermitTest(ctx, u, auth.ChannelEmail)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the change of the first did not come about
		c := kit.Change(ctx, auth.Authority{System: "test"})
		test.Add(ctx, &c)
		if n := auth.AwaitedMessages(w.Auth); n != 1 || len(c.Messages) != 1 {
			t.Errorf("%d awaited, %d enclosed", n, len(c.Messages))
		}
	}
	if test.Forget(); auth.AwaitedMessages(w.Auth) != 0 {
		t.Error("awaited still")
	}
}

// What fails on the way leaves no whole document.
func TestExportCutShort(t *testing.T) {
	w, tap, _ := harness.NewTappedWorld(t)
	s := w.PostSignUp("ada@example.com")
	e, err := w.Export(t.Context(), auth.ExportParams{Caller: auth.ByApplication(s.User.ID)})
	if err != nil {
		t.Fatal(err)
	}
	auth.EndlessEvents(e)
	tap.Reset(storetap.Hooks{Before: func(ctx context.Context, method string, _ int) {
		if method != "Events" {
			t.Errorf("it calls %s", method)
		}
	}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if err := e.Write(ctx, &out); err == nil || json.Valid(out.Bytes()) {
		t.Errorf("error %v, %d bytes", err, out.Len())
	}
}

// A change whose event calls for a notice, and which does not say whose account it
// is, is taken by no store.
func TestNoticesCannotBeForgotten(t *testing.T) {
	for _, e := range harness.EventTypes(t) {
		_, told := harness.NoticeOf(e)
		u := auth.User{ID: "01a1fb4c-2b13-7a71-806e-d67843451400", Email: "ada@example.com", EmailVerifiedAt: time.Now()}
		env := harness.NewEnv(t)
		forgotten, whole := auth.NewChange(env.Auth, auth.User{}, e), auth.NewChange(env.Auth, u, e)
		if err := forgotten.Check(); (err != nil) != told {
			t.Errorf("%s of nobody: %v", e, err)
		}
		if err := whole.Check(); err != nil || (len(whole.Messages) == 1) != told {
			t.Errorf("%s: %d messages, %v", e, len(whole.Messages), err)
		}
		u.Email = ""
		if c := auth.NewChange(env.Auth, u, e); c.Check() != nil || len(c.Messages) != 0 {
			t.Errorf("%s without an address: %d messages", e, len(c.Messages))
		}
	}
}

// hangingRoles is a store whose table of roles cannot be read any more.
type hangingRoles struct {
	auth.Store
	store.ProjectStore
	hang atomic.Bool
}

func (h *hangingRoles) Roles(ctx context.Context) (store.RoleTable, error) {
	if h.hang.Load() {
		<-ctx.Done()
		return store.RoleTable{}, ctx.Err()
	}
	return h.ProjectStore.Roles(ctx)
}

// Somebody whose read of the roles hangs holds nobody else up: they are given what
// was known a moment ago.
func TestHangingRolesHoldNobodyUp(t *testing.T) {
	inner := memstore.New()
	store := &hangingRoles{Store: inner, ProjectStore: inner}
	w := &harness.World{T: t, Log: &harness.SyncBuffer{}, Env: authtest.NewOn(t, store)}
	ada := w.LoginAs(t, "ada@example.com", authtest.Roles("editor"))
	store.hang.Store(true)
	auth.ForgetRoles(w.Auth)
	stuck, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _, _ = w.Login(stuck, auth.LoginParams{Email: "ada@example.com", Password: authtest.Password}) })
	for !auth.RolesAreRead(w.Auth) {
		runtime.Gosched()
	}
	// What operators are shown rests on nothing that old.
	short, done := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer done()
	if table, err := host.Of(w).Roles(short); err == nil {
		t.Errorf("a table that is too old serves operators: %+v", table)
	}
	if _, err := w.Refresh(t.Context(), auth.RefreshParams{RefreshToken: ada.RefreshToken}); err != nil {
		t.Errorf("refresh beside it: %v", err)
	}
	cancel()
	wg.Wait()
}
