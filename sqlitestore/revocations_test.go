package sqlitestore_test

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/sqlitestore"
	"github.com/authmount/auth/store"
)

// feed has the reports of a store's feed.
type feed struct{ told chan store.Revocation }

// follow watches a store until the test ends, and passes on its reports.
func follow(t *testing.T, s *sqlitestore.Store, also ...func(store.Revocation)) *feed {
	t.Helper()
	f := &feed{told: make(chan store.Revocation, 10000)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.WatchRevocations(ctx, sqlitestore.WatchParams{Logger: slog.New(slog.DiscardHandler), Notify: func(r store.Revocation) {
			for _, tell := range also {
				tell(r)
			}
			select {
			case f.told <- r:
			case <-ctx.Done():
			}
		}})
	}()
	t.Cleanup(func() { cancel(); <-done })
	f.await(t, "the start", func(r store.Revocation) bool { return r.CaughtUp })
	return f
}

// await waits for a report.
func (f *feed) await(t *testing.T, what string, is func(store.Revocation) bool) store.Revocation {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		select {
		case r := <-f.told:
			if is(r) {
				return r
			}
		case <-deadline:
			t.Fatalf("%s was not reported", what)
		}
	}
}

// all returns the reports until the feed has caught up.
func (f *feed) all(t *testing.T) (list []store.Revocation) {
	t.Helper()
	begun := time.Now()
	f.await(t, "the end", func(r store.Revocation) bool {
		if !r.CaughtUp {
			list = append(list, r)
		}
		return r.CaughtUp && r.At.After(begun)
	})
	return list
}

// Each change is reported as its kind requires, and changes that end no token are not
// reported.
func TestRevocationsTell(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.db")
	s, watcher := open(t, path), open(t, path)
	f := follow(t, watcher)
	signUp := func(roles ...string) (string, store.Session) {
		t.Helper()
		c := newUser("")
		c.User.Roles = roles
		sess := newSession(c.User.ID)
		c.Session = &sess
		_, err := s.CreateUser(t.Context(), c)
		ok(t, err)
		return c.User.ID, sess
	}
	patch := func(id string, p store.UserPatch) error {
		_, err := s.UpdateUser(t.Context(), store.UpdateUser{Change: byTest(), UserID: id, Patch: p})
		return err
	}
	bySQL := func(query string, args ...any) error {
		return s.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, query, args...)
			return err
		})
	}
	role := func(permissions ...string) error {
		_, err := s.PutRole(t.Context(), store.PutRole{Change: byTest(), Role: store.RolePermissions{Name: "editor", Permissions: permissions}})
		return err
	}
	ada, adas := signUp()
	bob, bobs := signUp("a", "b")
	eve, eves := signUp()
	_, reused := signUp()
	_, kept := signUp()
	acting := store.Impersonation{ID: uuid.NewString(), UserID: ada, ActorID: bob, ActorSessionID: bobs.ID, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
	until, name := now.Add(time.Hour), "Bob"
	order, err := s.SessionOrder(t.Context())
	ok(t, err)
	began := time.Now().Truncate(time.Microsecond)
	for _, step := range []struct {
		what string
		do   func() error
		want []store.Revocation // without times
	}{
		{"a sign-up", func() error { signUp("a"); return nil }, nil},
		{"a name", func() error { return patch(bob, store.UserPatch{FullName: &name}) }, nil},
		{"an address", func() error { email := "bob@example.com"; return patch(bob, store.UserPatch{Email: &email}) }, nil},
		{"an impersonation that ends", func() error {
			ok(t, s.BeginImpersonation(t.Context(), store.BeginImpersonation{Change: byTest(), Impersonation: acting}))
			return s.EndImpersonation(t.Context(), store.EndImpersonation{Change: byTest(), ID: acting.ID})
		}, []store.Revocation{{SessionID: acting.ID, UserID: ada}}},
		{"a logout", func() error {
			_, err := s.RevokeSessions(t.Context(), store.RevokeSessions{Change: byTest(), UserID: ada})
			return err
		}, []store.Revocation{{SessionID: adas.ID, UserID: ada}}},
		{"a reused refresh token", func() error {
			for range 2 {
				_, _, err = s.AdvanceSession(t.Context(), store.Advance{Change: byTest(), SessionID: reused.ID, IdleUntil: now.Add(time.Hour)})
			}
			if !errors.Is(err, store.ErrReused) {
				t.Error(err)
			}
			return nil
		}, []store.Revocation{{SessionID: reused.ID, UserID: reused.UserID}}},
		{"roles of a user", func() error { return patch(bob, store.UserPatch{Roles: &[]string{"c"}}) },
			[]store.Revocation{{UserID: bob, Stale: 2}, {UserID: bob, Stale: 2}, {UserID: bob, Stale: 2}}},
		{"an acceptance", func() error { return patch(bob, store.UserPatch{Accept: true}) }, []store.Revocation{{UserID: bob, Stale: 3}}},
		{"a ban", func() error { return patch(bob, store.UserPatch{BannedUntil: &until}) }, []store.Revocation{{UserID: bob, Stale: 4}}},
		{"the end of a ban", func() error { return patch(bob, store.UserPatch{BannedUntil: &time.Time{}}) }, nil},
		{"a ban by SQL", func() error {
			return bySQL("update auth_users set banned_until = ? where id = ?", until.UnixMicro(), bob)
		}, []store.Revocation{{UserID: bob}}},
		{"a new role", func() error { return role() }, []store.Revocation{{Role: "editor", Stale: 1}}},
		{"permissions of a role", func() error { return role("notes.read") }, []store.Revocation{{Role: "editor", Stale: 2}}},
		{"a role as it was", func() error { return role("notes.read") }, nil},
		{"a deleted role", func() error {
			_, err := s.DeleteRole(t.Context(), store.DeleteRole{Change: byTest(), Name: "editor"})
			return err
		}, []store.Revocation{{Role: "editor", Stale: 4}}},
		{"a deleted user", func() error { return s.DeleteUser(t.Context(), store.DeleteUser{Change: byTest(), UserID: eve}) },
			[]store.Revocation{{SessionID: eves.ID, UserID: eve}, {UserID: eve}}},
		{"an undone change", func() error {
			_ = s.InTx(t.Context(), func(ctx context.Context, _ *sql.Tx) error {
				_, err := s.RevokeSessions(ctx, store.RevokeSessions{Change: byTest(), UserID: kept.UserID})
				return errors.Join(err, errUndo)
			})
			return nil
		}, nil},
		{"all sessions", func() error {
			_, err := s.EndEverySession(t.Context(), store.EndEverySession{Change: byTest(), Until: order, At: now, Except: kept.ID, Limit: 10})
			return err
		}, []store.Revocation{{All: true, Spared: kept.ID, At: now}}},
	} {
		ok(t, step.do())
		got := f.all(t)
		for i, r := range got {
			if r.All {
				continue
			}
			if r.At.Before(began) || r.At.After(time.Now().Add(time.Minute)) {
				t.Errorf("%s: at %s", step.what, r.At)
			}
			got[i].At = time.Time{}
		}
		if len(got) != len(step.want) {
			t.Errorf("%s: %+v, want %+v", step.what, got, step.want)
			continue
		}
		for i, r := range got {
			if r != step.want[i] {
				t.Errorf("%s: %+v, want %+v", step.what, r, step.want[i])
			}
		}
	}
}

// A feed that starts later reports what it missed, in more than one page, and so does one
// whose file was replaced by an earlier copy. Old rows are swept.
func TestRevocationsCatchUp(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "auth.db"))
	bySQL := func(query string, args ...any) {
		t.Helper()
		ok(t, s.InTx(t.Context(), func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, query, args...)
			return err
		}))
	}
	bySQL("with recursive n (i) as (select 1 union all select i + 1 from n where i < 2500) insert into auth_revocations (session_id) select i from n")
	told := make(chan store.Revocation, 10000)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	f := &feed{told}
	go func() {
		_ = s.WatchRevocations(ctx, sqlitestore.WatchParams{Notify: func(r store.Revocation) { told <- r }})
	}()
	if n := len(f.all(t)); n != 2500 {
		t.Errorf("%d reports, want 2500", n)
	}
	bySQL("delete from auth_revocations where n > 100")
	bySQL("update sqlite_sequence set seq = 100 where name = 'auth_revocations'")
	bySQL("insert into auth_revocations (session_id) values ('new')")
	f.await(t, "a revocation with a lower number", func(r store.Revocation) bool { return r.SessionID == "new" })

	bySQL("update auth_revocations set at = ? where n <= 100", time.Now().Add(-25*time.Hour-time.Minute).UnixMicro())
	_, err := s.Sweep(t.Context(), now, 1000)
	ok(t, err)
	if n := count(t, s, "auth_revocations"); n != 1 {
		t.Errorf("%d rows are left, want 1", n)
	}
	bySQL("insert into auth_revocations (session_id) values ('last')")
	f.await(t, "a revocation after a sweep", func(r store.Revocation) bool { return r.SessionID == "last" })
}

// A revocation in one process reaches the others, without a read at each request; so do
// roles, and settings without the feed.
func TestRevocationsReachOtherProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.db")
	secret, clock := auth.WithSecret([]byte("a secret of more than thirty-two bytes")), auth.WithClock(time.Now)
	first, second := open(t, path), open(t, path)
	one := authtest.NewOn(t, first, secret, clock)
	two := authtest.NewOn(t, second, secret, clock, one.SameKeys())
	f := follow(t, second, two.Revoke)
	adm, err := admin.New(t.Context(), one.Auth, admin.Options{Permissions: []admin.Permission{{Name: "notes.write"}}})
	ok(t, err)
	code := admin.System("test").Accepting()
	_, err = adm.CreateRole(t.Context(), code, admin.CreateRoleParams{Name: "editor"})
	ok(t, err)
	ada, bob, eve := one.LoginAs(t, "ada@example.com"), one.LoginAs(t, "bob@example.com"), one.LoginAs(t, "eve@example.com")
	for _, s := range []*authtest.SignedIn{ada, bob, eve} {
		if _, err := two.Verify(s.AccessToken); err != nil {
			t.Fatal(err)
		}
	}
	ok(t, one.Logout(t.Context(), auth.LogoutParams{Caller: auth.Caller{UserID: ada.User.ID, SessionID: ada.SessionID}}))
	f.await(t, "a logout", func(r store.Revocation) bool { return r.SessionID == ada.SessionID })
	if _, err := two.Verify(ada.AccessToken); !errors.Is(err, auth.CodeSessionEnded) {
		t.Errorf("after the logout: %v", err)
	}
	if _, err := two.Verify(bob.AccessToken); err != nil {
		t.Errorf("another user: %v", err)
	}
	_, err = adm.Grant(t.Context(), code, admin.GrantParams{UserID: bob.User.ID, Role: "editor"})
	ok(t, err)
	f.await(t, "a role", func(r store.Revocation) bool { return r.UserID == bob.User.ID && r.Stale > 0 })
	if _, err := two.Verify(bob.AccessToken); !errors.Is(err, auth.CodeTokenStale) {
		t.Errorf("after the change of roles: %v", err)
	}
	_, err = adm.SetSettings(t.Context(), code, admin.SetSettingsParams{Set: map[string]any{"signup_enabled": false}})
	ok(t, err)
	tick, deadline := time.NewTicker(5*time.Millisecond), time.After(20*time.Second)
	defer tick.Stop()
	for two.Settings(t.Context()).SignUp.On() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("a setting of the other instance is not in force")
		}
	}
	results := another(t, path).do(t, order{"end", []string{eve.User.ID}}) // a process of its own
	equalCounts(t, "the other process", results(), map[string]int{"done": 1})
	f.await(t, "the end of a session in another process", func(r store.Revocation) bool { return r.SessionID == eve.SessionID })
	if _, err := two.Verify(eve.AccessToken); !errors.Is(err, auth.CodeSessionEnded) {
		t.Errorf("after the end in another process: %v", err)
	}
}

// The file can be closed, or the context end, and a feed without Notify does not fail unnoticed.
func TestRevocationsEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "auth.db")
	s, err := sqlitestore.Open(path)
	ok(t, err)
	watch := func(ctx context.Context) (chan struct{}, chan error) {
		began, done := make(chan struct{}, 1), make(chan error, 1)
		go func() {
			done <- s.WatchRevocations(ctx, sqlitestore.WatchParams{Notify: func(store.Revocation) {
				select {
				case began <- struct{}{}:
				default:
				}
			}})
		}()
		return began, done
	}
	ctx, cancel := context.WithCancel(t.Context())
	began, done := watch(ctx)
	<-began
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	began, done = watch(t.Context())
	<-began
	ok(t, s.Close())
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("closed: %v", err)
	}
	_, done = watch(t.Context())
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("closed before: %v", err)
	}
	var logged strings.Builder
	err = s.WatchRevocations(t.Context(), sqlitestore.WatchParams{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	if err == nil || !strings.Contains(err.Error(), "Notify is missing") || !strings.Contains(logged.String(), "there is no feed of revocations") {
		t.Errorf("%v, logged %q", err, logged.String())
	}
}
