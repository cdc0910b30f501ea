package admin_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/apikey"
	"github.com/authmount/auth/store"
)

// A key is created, used, changed, rotated and revoked, on the wire.
func TestKeyOnTheWire(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		made := o.do(owner, "POST /keys", `{"name":" nightly ","environment":"test","scopes":["auth.users.read","auth.users.read"],"expires_at":"2026-02-02T00:00:00Z"}`).want(200)
		text, id := made.body["key"].(string), made.body["id"].(string)
		if parts, ok := apikey.Parse(text); !ok || parts != (apikey.Parts{Environment: "test", ID: id}) || made.header.Get("ETag") != `"0"` || made.body["name"] != "nightly" {
			t.Fatalf("%v, %+v", made.body, made.header)
		}
		use := func(text string, status int, code ...auth.Code) *answer {
			t.Helper()
			return o.do(bearing(text), "GET /me", "").want(status, code...)
		}
		me := use(text, 200)
		if a, _ := me.body["actor"].(map[string]any); a["kind"] != "key" || a["id"] != id || a["label"] != "nightly" || me.body["user"] != nil {
			t.Errorf("me is %v", me.body)
		}
		o.do(bearing(text), "POST /users/"+owner.User.ID+"/ban", `{"reason":"x"}`).want(403, auth.CodeMissingPermission)

		for _, body := range []string{`{"name":""}`, `{"name":"a\nb"}`, `{"scopes":[]}`, `{"scopes":["x"]}`, `{"cidrs":["192.0.2.1"]}`, `{"cidrs":["x"]}`, `{"expires_at":"2020-01-01T00:00:00Z"}`, `{"name":"` + strings.Repeat("x", 101) + `"}`} {
			o.do(owner, "PATCH /keys/"+id, body).want(422, auth.CodeValidationFailed)
		}
		for _, body := range []string{`{}`, `{"name":"x"}`, `{"name":"x","kind":"other","scopes":["auth.users.read"]}`, `{"name":"x","kind":"public","scopes":["auth.users.read"]}`, `{"name":"x","environment":"Live","scopes":["auth.users.read"]}`} {
			o.do(owner, "POST /keys", body).want(422, auth.CodeValidationFailed)
		}
		for _, body := range []string{`{"overlap":-1}`, `{"overlap":2592001}`, `{"overlap":9223372036854775807}`, `{"overlap":18446744074}`} {
			o.do(owner, "POST /keys/"+id+"/rotate", body).want(422, auth.CodeValidationFailed)
		}
		changed := o.do(owner, "PATCH /keys/"+id, `{"name":"weekly","expires_at":null,"cidrs":["192.0.2.7/24"]}`, `If-Match: "0"`).want(200)
		if changed.body["expires_at"] != nil || changed.body["revision"] != 1.0 || changed.body["cidrs"].([]any)[0] != "192.0.2.0/24" || changed.body["last_used_at"] == nil {
			t.Errorf("%v", changed.body)
		}
		o.do(owner, "PATCH /keys/"+id, `{"name":"late"}`, `If-Match: "0"`).want(412, auth.CodePreconditionFailed)

		for _, other := range []string{"'1'", "`1`", "1", `"+1"`, `"01"`, `""1""`, `"\x31"`, `W/"1"`} {
			o.do(owner, "PATCH /keys/"+id, `{"name":"late"}`, "If-Match: "+other).want(412, auth.CodePreconditionFailed)
		}
		rotated := o.do(owner, "POST /keys/"+id+"/rotate", `{"overlap":60}`, `If-Match: "1"`).want(200)
		next := rotated.body["key"].(string)
		use(text, 200)
		use(next, 200)
		o.Clock.Advance(time.Minute)
		use(text, 401, auth.CodeInvalidAPIKey)
		use(next, 200)
		last := o.do(owner, "POST /keys/"+id+"/rotate", "").want(200).body["key"].(string)
		use(next, 401, auth.CodeInvalidAPIKey)
		use(last, 200)

		o.do(owner, "DELETE /keys/"+id, `{"reason":"leaked"}`, `If-Match: "3"`).want(204)
		use(last, 401, auth.CodeInvalidAPIKey)
		for pattern, body := range map[string]string{"PATCH /keys/" + id: `{"name":"x"}`, "POST /keys/" + id + "/rotate": "", "DELETE /keys/" + id: "", "DELETE /keys/x": "", "DELETE /keys/" + owner.User.ID: ""} {
			o.do(owner, pattern, body).want(404, auth.CodeNotFound)
		}
	})
}

// The list reports for each key whether it can be used.
func TestKeyStatus(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		auditor := o.operator("auditor@example.com", admin.PermKeysRead)
		k, err := o.adm.CreateKey(t.Context(), admin.System("test").Accepting(), admin.CreateKeyParams{Name: "brief", Scopes: []string{admin.PermUsersRead}, ExpiresAt: o.Clock.Now().Add(time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		want := func(status string) {
			t.Helper()
			list, _ := o.do(auditor, "GET /keys", "").want(200).body["keys"].([]any)
			if got := list[0].(map[string]any)["status"]; got != status {
				t.Errorf("it is %v, want %s", got, status)
			}
		}
		want("live")
		o.Clock.Advance(time.Minute)
		want("expired")
		if err := o.revoke(t.Context(), k.ID); err != nil {
			t.Fatal(err)
		}
		want("revoked")
	})
}

// The list is read page by page, and strictly.
func TestListKeys(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		auditor := o.operator("auditor@example.com", admin.PermKeysRead)
		var want []string
		for range 5 {
			want = append([]string{o.key(admin.System("test").Accepting(), notes).ID}, want...)
			o.Clock.Advance(time.Second)
		}
		public, err := o.adm.CreateKey(t.Context(), admin.System("test").Accepting(), admin.CreateKeyParams{Name: "web", Public: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := o.revoke(t.Context(), want[0]); err != nil {
			t.Fatal(err)
		}
		list := func(query string) (ids []string) {
			t.Helper()
			cursor := ""
			for range 9 {
				a := o.do(auditor, "GET /keys?limit=2"+query+cursor, "").want(200)
				for _, k := range a.body["keys"].([]any) {
					if k.(map[string]any)["key"] != nil {
						t.Error("a list shows a key")
					}
					ids = append(ids, k.(map[string]any)["id"].(string))
				}
				next, ok := a.body["next_cursor"].(string)
				if !ok {
					return ids
				}
				cursor = "&cursor=" + next
			}
			t.Fatal("the list has no end")
			return nil
		}
		for query, ids := range map[string][]string{"": append([]string{public.ID}, want...), "&kind=secret": want, "&kind=public": {public.ID}, "&kind=secret&status=live": want[1:]} {
			if got := list(query); strings.Join(got, " ") != strings.Join(ids, " ") {
				t.Errorf("%q: %v, want %v", query, got, ids)
			}
		}
		for _, query := range []string{"kind=both", "status=dead", "limit=0", "cursor=x", "name=x", "kind=secret&kind=public"} {
			o.do(auditor, "GET /keys?"+query, "").want(422, auth.CodeValidationFailed)
		}
	})
}

// Keys have the same permissions in Go as on the wire, and only from their networks.
func TestKeyAsActor(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		k, err := o.adm.CreateKey(t.Context(), admin.System("test").Accepting(), admin.CreateKeyParams{Name: "job", Scopes: []string{"auth.users.*"}, Networks: []string{"192.0.2.0/24", "2001:db8::/32"}})
		if err != nil {
			t.Fatal(err)
		}
		who := admin.Key(k.Secret.Reveal())
		from := func(ip string) error {
			ctx := t.Context()
			if ip != "" {
				ctx = auth.ContextWithClient(ctx, auth.Client{IP: netip.MustParseAddr(ip)})
			}
			_, err := o.adm.ListUsers(ctx, who, admin.ListUsersParams{})
			return err
		}
		for _, ip := range []string{"192.0.2.1", "::ffff:192.0.2.1", "2001:db8::1"} {
			if err := from(ip); err != nil {
				t.Errorf("from %s: %v", ip, err)
			}
		}
		for _, ip := range []string{"", "192.0.3.1", "2001:db9::1"} {
			wantCode(t, from(ip), auth.CodeInvalidAPIKey)
		}
		for _, text := range []string{"", "sk_live_x", k.Secret.Reveal() + "0"} {
			_, err := o.adm.ListUsers(t.Context(), admin.Key(text), admin.ListUsersParams{})
			wantCode(t, err, auth.CodeInvalidAPIKey)
		}
		_, err = o.adm.ListUsers(t.Context(), admin.Actor{}, admin.ListUsersParams{})
		wantCode(t, err, auth.CodeSessionEnded)
	})
}

// A key's operations are in the audit log under its name, and so are its denied attempts.
// A key does not change its maker's own account.
func TestKeysAreRecorded(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		o.permit("banner", admin.PermUsersBan)
		maker := o.imported("maker@example.com", "banner")
		k := o.keyOf(maker.User, admin.PermUsersBan)
		ada := o.LoginAs(t, "ada@example.com")
		o.do(program(k), "POST /users/"+ada.User.ID+"/ban", `{"reason":"spam"}`).want(200)
		e := o.audit()[0]
		if e.Type != auth.EventUserBanned || e.Actor != (auth.Actor{Kind: store.ActorKey, ID: k.ID}) || e.Record.Actor != "a key" || e.Record.Target != "ada@example.com" {
			t.Errorf("%+v, %+v", e, e.Record)
		}
		o.do(program(k), "POST /users/"+maker.User.ID+"/ban", `{"reason":"spam"}`).want(403, auth.CodeTargetStronger)
		o.do(program(k), "POST /users/"+ada.User.ID+"/delete", `{"reason":"spam"}`).want(403, auth.CodeMissingPermission)
	})
}

// The keys of an option act, under a name that does not reveal them.
func TestKeysOfAnOption(t *testing.T) {
	const text = "sk_test_0123456789"
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st, auth.WithSecretKeys(auth.SecretKey{Key: text, Scopes: []string{"*"}}, auth.SecretKey{Key: "sk_test_reads_only", Scopes: []string{admin.PermUsersRead}}))
		ada := o.LoginAs(t, "ada@example.com")
		o.do(bearing("sk_test_reads_only"), "POST /users/"+ada.User.ID+"/ban", `{"reason":"spam"}`).want(403, auth.CodeMissingPermission)
		o.do(nil, "GET /users", "", "Apikey: "+text).want(200)
		o.do(bearing(text), "POST /users/"+ada.User.ID+"/ban", `{"reason":"spam"}`).want(200)
		if e := o.audit()[0]; e.Actor.Kind != store.ActorSystem || !strings.HasPrefix(e.Record.Actor, "secret key ") || strings.Contains(e.Record.Actor, text) {
			t.Errorf("%+v, %+v", e, e.Record)
		}
		o.do(bearing(text+"0"), "GET /users", "").want(401, auth.CodeInvalidAPIKey)
	})
	env := authtest.New(t, auth.WithSecretKeys(auth.SecretKey{Key: text, Scopes: []string{"auth.keys.write"}}))
	if _, err := admin.New(t.Context(), env.Auth, admin.Options{}); err == nil || !strings.Contains(err.Error(), "auth.keys.write") || strings.Contains(err.Error(), text) {
		t.Errorf("a key for keys: %v", err)
	}
}

// The age of keys, since their creation or rotation, is reported, with a warning for old
// ones; revoked and public keys have none.
func TestKeysAgeing(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.owner()
		make := func(body string) string {
			id, _ := o.do(owner, "POST /keys", body).want(200).body["id"].(string)
			o.Clock.Advance(time.Minute)
			return id
		}
		old := make(`{"name":"old","scopes":["auth.users.read"]}`)
		rotated := make(`{"name":"rotated","scopes":["auth.users.read"]}`)
		revoked := make(`{"name":"revoked","scopes":["auth.users.read"]}`)
		make(`{"name":"public","kind":"public"}`)
		ages := func() (list []string) {
			all, _ := o.do(owner, "GET /diagnostics", "").want(200).body["api_keys"].([]any)
			for _, k := range all {
				k, _ := k.(map[string]any)
				list = append(list, fmt.Sprint(k["name"], " ", k["ageing"]))
			}
			warned := 0.0
			for _, w := range o.do(owner, "GET /overview", "").want(200).body["warnings"].([]any) {
				if w, _ := w.(map[string]any); w["code"] == admin.WarnKeysAgeing {
					warned, _ = w["count"].(float64)
				}
			}
			return append(list, fmt.Sprint("warned of ", warned))
		}
		want := func(want ...string) {
			t.Helper()
			if got := ages(); !slices.Equal(got, want) {
				t.Errorf("%q, want %q", got, want)
			}
		}
		o.do(owner, "DELETE /keys/"+revoked, "").want(204)
		want("old false", "rotated false", "warned of 0")
		o.Clock.Advance(admin.KeyAgeing)
		owner = o.owner()
		o.do(owner, "POST /keys/"+rotated+"/rotate", `{"overlap":0}`).want(200)
		want("old true", "rotated false", "warned of 1")
		o.do(owner, "POST /keys/"+old+"/rotate", `{"overlap":0}`).want(200)
		want("rotated false", "old false", "warned of 0")
	})
}
