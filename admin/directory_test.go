package admin_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// people are accounts that differ in what lists are picked by.
func (o *office) people() *authtest.SignedIn {
	o.t.Helper()
	ada := o.LoginAs(o.t, "ada@example.com", authtest.AppMetadata(map[string]any{"plan": "pro", "seats": 3.0}))
	o.Clock.Advance(time.Hour)
	bob := o.LoginAs(o.t, "bob@example.com", authtest.AppMetadata(map[string]any{"plan": "free"}), authtest.Roles("editor"))
	name, number, until := "Ada Lovelace", "+4930123456", o.Clock.Now().Add(time.Hour)
	o.patch(ada.User.ID, store.UserPatch{FullName: &name, Phone: &number})
	o.link(ada)
	o.arm(ada)
	o.patch(bob.User.ID, store.UserPatch{BannedUntil: &until})
	if _, err := o.ImportUser(o.t.Context(), auth.ImportUserParams{Email: "carol@example.com"}); err != nil {
		o.t.Fatal(err)
	}
	return ada
}

// emails are those of a page.
func emails(a *answer) string {
	list, _ := a.body["users"].([]any)
	var all []string
	for _, u := range list {
		u, _ := u.(map[string]any)
		all = append(all, strings.TrimSuffix(fmt.Sprint(u["email"]), "@example.com"))
	}
	return strings.Join(all, " ")
}

// Each filter of the list picks by what it names, filters combine, and a search says
// what it was taken for.
func TestListUsers(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		ada := o.people()
		begun := o.Clock.Now()
		reader := o.operator("reader@example.com", admin.PermUsersRead)
		for query, want := range map[string]string{
			"":                                    "reader carol bob ada",
			"order=asc":                           "ada bob carol reader",
			"sort=email&order=asc":                "ada bob carol reader",
			"q=" + ada.User.ID:                    "id: ada",
			"q=" + strings.ToUpper(ada.User.ID):   "id: ada",
			"q=ADA@example.com":                   "email: ada",
			"q=ada@example.co":                    "prefix: ada",
			"q=%2B49+30+123456":                   "phone: ada",
			"q=%2B4930123":                        "prefix: ",
			"q=ada+l":                             "prefix: ada",
			"q=b":                                 "prefix: bob",
			"q=b&status=active":                   "prefix: ",
			"q=" + ada.User.ID + "&status=banned": "id: ",
			"ids=" + ada.User.ID + "," + reader.User.ID: "reader ada",
			"email=Ada@Example.com":                     "ada",
			"phone=%2B4930123456":                       "ada",
			"provider=github":                           "ada",
			"provider=github&subject=" + ada.User.ID:    "ada",
			"provider=github&subject=1":                 "",
			"role=editor":                               "bob",
			"status=active":                             "reader ada",
			"status=banned":                             "bob",
			"status=unconfirmed":                        "carol",
			"mfa=true":                                  "reader ada",
			"mfa=false&status=banned":                   "bob",
			"metadata.plan=pro":                         "ada",
			"metadata.plan=pro&metadata.seats=3":        "ada",
			"metadata.plan=free&metadata.seats=3":       "",
			"created_to=" + begun.Format(time.RFC3339):  "ada",
			"signed_in_from=" + begun.Format(time.RFC3339) + "&sort=last_sign_in_at&order=asc": "bob reader",
		} {
			a := o.do(reader, "GET /users?"+query, "").want(200)
			got := emails(a)
			if m := a.body["matched"]; m != nil {
				got = fmt.Sprint(m, ": ", got)
			}
			if got != want {
				t.Errorf("%s: %q, want %q", query, got, want)
			}
			if next, there := a.body["next_cursor"]; !there || next != nil || a.body["count"] != nil {
				t.Errorf("%s: %v", query, a.body)
			}
		}
		a := o.do(reader, "GET /users?count=estimate&limit=1", "").want(200)
		if got := fmt.Sprint(a.body["count"]); got != "map[exact:true users:4]" {
			t.Errorf("count %s", got)
		}
	})
}

// A query that nobody knows, that cannot be, or that goes on with another list, is an
// error, not a longer list.
func TestListUsersRefuses(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		o.people()
		reader := o.operator("reader@example.com", admin.PermUsersRead)
		long := strings.Repeat("x", 600)
		var eleven []string
		for i := range 11 {
			eleven = append(eleven, fmt.Sprintf("metadata.m%d=1", i))
		}
		for _, query := range []string{
			"state=active", "status=gone", "mfa=yes", "sort=name", "order=up", "limit=0", "limit=x", "count=exact", "role=a&role=b", "created_from=yesterday",
			"ids=1", "ids=" + strings.Repeat("00000000-0000-7000-8000-000000000000,", 200) + "00000000-0000-7000-8000-000000000001", "email=ada", "phone=1", "subject=1", "q=" + long, "q=%00", "role=%00", "role=%FF", "provider=" + long, "metadata.=1", "metadata.a=%00", "metadata.a=" + long, strings.Join(eleven, "&"), "cursor=x", "q=%zz",
		} {
			o.do(reader, "GET /users?"+query, "").want(422, auth.CodeValidationFailed)
		}
		first := o.do(reader, "GET /users?limit=2&sort=email", "").want(200)
		cursor, _ := first.body["next_cursor"].(string)
		if cursor == "" {
			t.Fatalf("%v", first.body)
		}
		for _, other := range []string{"", "sort=created_at", "sort=email&order=asc", "sort=email&mfa=true", "sort=email&metadata.plan=pro"} {
			o.do(reader, "GET /users?limit=2&"+other+"&cursor="+cursor, "").want(422, auth.CodeValidationFailed)
		}
		roles := o.do(o.operator("auditor@example.com", admin.PermAuditRead), "GET /audit-logs?limit=1", "").want(200)
		foreign, _ := roles.body["next_cursor"].(string)
		o.do(reader, "GET /users?cursor="+url.QueryEscape(foreign), "").want(422, auth.CodeValidationFailed)
		second := o.do(reader, "GET /users?limit=5&sort=email&count=estimate&cursor="+cursor, "").want(200)
		if got := emails(first) + " " + emails(second); got != "reader carol bob auditor ada" && got != "reader carol bob ada" {
			t.Errorf("pages %q", got)
		}
	})
}

// One account is found by exactly one of its values.
func TestLookupUser(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		ada := o.people()
		reader := o.operator("reader@example.com", admin.PermUsersRead)
		for _, query := range []string{"email=ADA@example.com", "phone=%2B4930123456", "provider=github&subject=" + ada.User.ID} {
			if a := o.do(reader, "GET /users/lookup?"+query, "").want(200); a.body["id"] != ada.User.ID || a.body["has_password"] != true {
				t.Errorf("%s: %v", query, a.body)
			}
		}
		for _, query := range []string{"email=ad@example.com", "phone=%2B4930123457", "provider=github&subject=x"} {
			o.do(reader, "GET /users/lookup?"+query, "").want(404, auth.CodeUserNotFound)
		}
		for _, query := range []string{"", "email=ada", "provider=github", "subject=x", "email=ada@example.com&phone=%2B4930123456", "id=" + ada.User.ID, "email=ada@example.com&email=bob@example.com"} {
			o.do(reader, "GET /users/lookup?"+query, "").want(422, auth.CodeValidationFailed)
		}
		// Code may name an id, but that alone, too.
		if a, err := o.adm.LookupUser(t.Context(), admin.System("test"), store.ByID(ada.User.ID)); err != nil || a.ID != ada.User.ID {
			t.Errorf("by id: %+v, %v", a, err)
		}
		_, err := o.adm.LookupUser(t.Context(), admin.System("test"), store.UserKey{ID: ada.User.ID, Email: "bob@example.com"})
		wantCode(t, err, auth.CodeValidationFailed)
	})
}

// broad is a store that finds every list too broad.
type broad struct {
	auth.Store
	store.AdminStore
}

func (s broad) Unwrap() auth.Store { return s.Store }

func (broad) ListUsers(context.Context, store.UserQuery) ([]auth.User, error) {
	return nil, fmt.Errorf("ended: %w", store.ErrTooBroad)
}

// Filters that would read too much together are told so.
func TestQueryTooBroad(t *testing.T) {
	t.Parallel()
	store := memstore.New()
	o := newOffice(t, broad{store, store})
	o.do(o.operator("reader@example.com", admin.PermUsersRead), "GET /users", "").want(422, auth.CodeQueryTooBroad)
}

// What is kept of a request under its key tells nobody the password that it sets:
// services with other secrets keep something else of the same request.
func TestKeysKeepNoPasswords(t *testing.T) {
	t.Parallel()
	var kept []string
	for range 2 {
		store := memstore.New()
		o := newOffice(t, watched{store, &kept})
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
		o.do(owner, "POST /users", `{"email":"ada@example.com","password":"a phrase of four words"}`, "Idempotency-Key: once").want(201)
	}
	if len(kept) != 2 || kept[0] == kept[1] || slices.Contains(kept, "") {
		t.Errorf("kept %q", kept)
	}
}

// watched is a store that tells what is kept of requests.
type watched struct {
	*memstore.Store
	kept *[]string
}

func (s watched) CreateUser(ctx context.Context, c store.CreateUser) (auth.User, error) {
	if c.Idempotency != nil {
		*s.kept = append(*s.kept, string(c.Idempotency.RequestHash))
	}
	return s.Store.CreateUser(ctx, c)
}
