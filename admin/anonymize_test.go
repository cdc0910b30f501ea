package admin_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

// dumped runs a test on stores with readable contents: each row of Postgres, and everything
// in the store in memory.
func dumped(t *testing.T, test func(t *testing.T, store auth.Store, dump func() string)) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		s := memstore.New()
		test(t, s, func() string {
			text, err := s.Dump(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		s, err := pgstore.Open(t.Context(), pgtest.Database(t), pgstore.AutoMigrate())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		test(t, s, func() string { return rows(t, s) })
	})
}

// rows are all rows of a schema's tables, as text.
func rows(t *testing.T, s *pgstore.Store) string {
	t.Helper()
	var all, tables string
	const list = `select string_agg(format('select %L || to_jsonb(t)::text as line from %s t', relname, oid::regclass), ' union all ')
		from pg_class where relkind = 'r' and relnamespace = 'auth'::regnamespace`
	if err := s.Pool().QueryRow(t.Context(), list).Scan(&tables); err != nil {
		t.Fatal(err)
	}
	if err := s.Pool().QueryRow(t.Context(), "select string_agg(line, E'\n') from ("+tables+") x").Scan(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// After a user is anonymized, nothing in the whole store identifies them, and nobody signs
// in to the account again.
func TestAnonymise(t *testing.T) {
	dumped(t, func(t *testing.T, st auth.Store, dump func() string) {
		idp := authtest.StartProvider(t)
		o := newOffice(t, st, auth.WithProvider(idp.Google()))
		idp.Now = o.Clock.Now
		code := admin.System("test").Accepting()
		o.permit("helper", admin.PermUsersWrite, admin.PermUsersBan)
		ada := o.LoginAs(t, "augusta@example.com", authtest.Roles("helper"), authtest.AAL2())
		id := ada.User.ID
		ctx := auth.ContextWithClient(t.Context(), auth.Client{IP: netip.MustParseAddr("192.0.2.77"), UserAgent: "Analytical Engine"})
		phone, now := "+4930777777", o.Clock.Now()
		name := "Lovelace"
		if _, err := st.UpdateUser(ctx, store.UpdateUser{Change: store.Change{Now: now, By: auth.Authority{System: "test"}}, UserID: id, Patch: store.UserPatch{
			Phone: &phone, PhoneVerifiedAt: &now, FullName: &name, UserMetadata: map[string]any{"city": "Ockham"}, AppMetadata: map[string]any{"crm": "Byron"},
		}}); err != nil {
			t.Fatal(err)
		}
		to, err := o.StartOAuth(ctx, auth.StartOAuthParams{Provider: "google", Browser: "b"})
		if err != nil {
			t.Fatal(err)
		}
		idp.SignsIn(authtest.Person{Subject: "sub-1815", Email: "augusta@example.com", EmailVerified: true})
		back := idp.Authorize(t, to)
		_, err = o.FinishOAuth(ctx, auth.OAuthCallback{Provider: "google", State: back.Get("state"), Code: back.Get("code"), Browser: "b"})
		wantCode(t, err, auth.CodeMFARequired)
		if _, err := o.Login(ctx, auth.LoginParams{Email: "augusta@example.com", Password: "wrong password"}); err == nil {
			t.Fatal("signed in")
		}
		if _, err := o.SendMagicLink(ctx, auth.SendMagicLinkParams{Email: "augusta@example.com"}); err != nil {
			t.Fatal(err)
		}
		o.LoginAs(t, "bob@example.com")
		notes := "a note"
		if _, err := o.adm.UpdateUser(ctx, actor(ada), admin.UpdateUserParams{UserID: id, Notes: &notes}); err != nil { // an operation on the own account
			t.Fatal(err)
		}
		boss := o.operator("boss@example.com", admin.PermUsersDelete, admin.PermUsersWrite, admin.PermUsersBan)
		o.invite(actor(boss), "augusta@example.com")
		for _, s := range []string{"augusta", "Lovelace", "30777777", "Ockham", "Byron", "sub-1815", "192.0.2.77", "Analytical"} {
			if !strings.Contains(dump(), s) {
				t.Errorf("%q is not there before", s)
			}
		}
		if _, err := o.adm.SetRoles(t.Context(), code, admin.SetRolesParams{UserID: id, Roles: []string{}}); err != nil {
			t.Fatal(err)
		}

		o.do(boss, "POST /users/"+id+"/anonymize", `{}`).want(422, auth.CodeValidationFailed)
		left := o.do(boss, "POST /users/"+id+"/anonymize", `{"reason":"asked for it"}`).want(200).body
		if left["id"] != id || left["email"] != nil || left["full_name"] != nil || left["status"] != "banned" {
			t.Errorf("left %v", left)
		}
		o.written() // waits for the pending events, the failed sign-in among them
		all := strings.ToLower(dump())
		for _, s := range []string{"augusta", "lovelace", "30777777", "ockham", "byron", "sub-1815", "192.0.2.77", "analytical"} {
			if at := strings.Index(all, s); at >= 0 {
				t.Errorf("%q is left: %s", s, all[max(0, at-300):min(len(all), at+100)])
			}
		}
		if !strings.Contains(all, "bob@example.com") {
			t.Error("others are gone")
		}
		if rows := o.audit(); rows[0].Type != auth.EventUserAnonymized || rows[0].Record.Target != id || rows[0].Record.Actor != "boss@example.com" {
			t.Errorf("recorded %+v", rows[0])
		}

		_, err = o.Refresh(t.Context(), auth.RefreshParams{RefreshToken: ada.RefreshToken})
		if err == nil {
			t.Error("still signed in")
		}
		for _, pattern := range []string{"POST /users/{id}/unban", "POST /users/{id}/ban", "POST /users/{id}/send"} {
			row := admin.Row{Pattern: pattern}
			o.try(o.LoginAs(t, fmt.Sprintf("owner%d@example.com", len(o.audit())), authtest.Roles(auth.RoleOwner), authtest.AAL2()), row, ada).want(404, auth.CodeUserNotFound)
		}
		made, err := o.SignUp(t.Context(), auth.SignUpParams{Email: "augusta@example.com", Password: password})
		if err != nil || made.User.ID == id {
			t.Errorf("the address is not free: %v", err)
		}
		o.Clock.Advance(time.Minute)
		o.do(o.operator("deleter@example.com", admin.PermUsersDelete), "POST /users/"+id+"/delete", `{"reason":"over"}`).want(204)
	})
}

// The record of an operator's acts outlives the anonymisation of the operator: who did it,
// and from where.
func TestAnonymiseAnOperator(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		mallory := o.operator("mallory@example.com", admin.PermUsersBan, admin.PermUsersWrite, admin.PermRolesWrite)
		bob := o.LoginAs(t, "bob@example.com")
		ctx := auth.ContextWithClient(t.Context(), auth.Client{IP: netip.MustParseAddr("192.0.2.77"), UserAgent: "Engine"})
		if _, err := o.adm.BanUser(ctx, actor(mallory), admin.BanUserParams{UserID: bob.User.ID, Reason: "spam"}); err != nil {
			t.Fatal(err)
		}
		if _, err := o.adm.CreateRole(ctx, actor(mallory), admin.CreateRoleParams{Name: "back-door"}); err != nil {
			t.Fatal(err)
		}
		notes := "a note"
		if _, err := o.adm.UpdateUser(ctx, actor(mallory), admin.UpdateUserParams{UserID: mallory.User.ID, Notes: &notes}); err != nil {
			t.Fatal(err)
		}
		o.do(o.operator("boss@example.com", "*"), "POST /users/"+mallory.User.ID+"/anonymize", `{"reason":"left"}`).want(200)
		kept := map[auth.EventType]bool{}
		for _, e := range o.audit() {
			if e.Record == nil || e.Actor.ID != mallory.User.ID {
				continue
			}
			named := e.Record.Actor == "mallory@example.com" && e.Client.UserAgent == "Engine" && e.Client.IP.String() == "192.0.2.77"
			if own := e.UserID == mallory.User.ID; named == own {
				t.Errorf("%s of %q: %+v %+v", e.Type, e.UserID, e.Record, e.Client)
			}
			kept[e.Type] = named
		}
		if !kept[auth.EventUserBanned] || len(kept) != 3 {
			t.Errorf("recorded %v", kept)
		}
	})
}
