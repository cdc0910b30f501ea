package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
)

// variant is a use of an operation that reads more of the store than its example does. It
// is set up again for each call that fails.
type variant func(o *office, ctx context.Context, owner, ada *authtest.SignedIn, k int) func() error

// asked is a variant that is a request, which must not answer with a 5xx other than 503.
func asked(pattern, body string, headers ...string) variant {
	return func(o *office, _ context.Context, owner, ada *authtest.SignedIn, k int) func() error {
		fill := strings.NewReplacer("$ada", ada.User.ID, "$kk", fmt.Sprintf("%02d", k), "$k", fmt.Sprint(k), "$deploy", o.deploy).Replace
		return func() error {
			a := o.do(owner, fill(pattern), fill(body), headers...)
			if a.status < 400 {
				return nil
			}
			return &auth.Error{Status: a.status, Code: auth.Code(fmt.Sprint(a.body["code"])), Message: fmt.Sprint(a.body["message"])}
		}
	}
}

var variants = map[string]variant{
	"accounts, counted":              asked("GET /users?count=estimate", ""),
	"accounts, by a whole address":   asked("GET /users?q=ada@example.com", ""),
	"accounts, by a whole number":    asked("GET /users?q=%2B4930123456", ""),
	"accounts, by an id":             asked("GET /users?q=$ada", ""),
	"accounts, by a prefix":          asked("GET /users?q=ad", ""),
	"accounts, by a domain":          asked("GET /users?q=@example.com", ""),
	"an account, by an address":      asked("GET /users/lookup?email=ada@example.com", ""),
	"an account of a chosen id":      asked("POST /users", `{"id":"01a1fb4c-2b13-7a71-806e-0000000000$kk","email":"new$k@example.com"}`),
	"an account with everything":     asked("POST /users", `{"email":"new$k@example.com","password":"a phrase of four words","roles":["writer"],"notes":"x","send":"verify"}`),
	"an account that is invited":     asked("POST /users", `{"email":"new$k@example.com","send":"invite"}`),
	"an account's new address":       asked("PATCH /users/$ada", `{"email":"new$k@example.com","email_verified":true}`),
	"an account's new number":        asked("PATCH /users/$ada", `{"phone":"+49305550$k"}`),
	"a password that is removed":     asked("POST /users/$ada/password", `{"password":null}`),
	"a role that is tried":           asked("POST /roles?", `{"name":"r$k","dry_run":true}`),
	"a link by an address":           asked("POST /links", `{"type":"reset","email":"ada@example.com"}`),
	"an invitation with roles":       asked("POST /invitations", `{"email":"new$k@example.com","roles":["writer"]}`),
	"sessions of some, once":         asked("POST /sessions/revoke", `{"user_ids":["$ada"],"before":"2027-01-01T00:00:00Z"}`, "Idempotency-Key: once"),
	"a ban, once":                    asked("POST /users/$ada/ban", `{"reason":"x"}`, "Idempotency-Key: once"),
	"a key's text, once":             asked("POST /keys/$deploy/rotate", `{"overlap":60}`, "Idempotency-Key: once$k"),
	"a message of the owner's, once": asked("POST /settings/test-mail", "", "Idempotency-Key: once$k"),
	"figures of a week":              asked("GET /overview?period=7d", ""),

	"who has a role, by a page": func(o *office, ctx context.Context, owner, _ *authtest.SignedIn, _ int) func() error {
		return func() error {
			_, err := o.adm.RoleUsers(ctx, actor(owner), admin.RoleUsersParams{Name: auth.RoleOwner, Limit: 1})
			return err
		}
	},
	"a role by an address": func(o *office, ctx context.Context, _, _ *authtest.SignedIn, _ int) func() error {
		return func() error {
			_, err := o.adm.GrantByAddress(ctx, admin.System("test").Accepting(), "ada@example.com", role)
			return err
		}
	},
	"an export with secrets": func(o *office, ctx context.Context, owner, _ *authtest.SignedIn, _ int) func() error {
		o.adm.ExportPage(2)
		return func() error {
			var text strings.Builder
			err := o.adm.ExportUsers(ctx, actor(owner), admin.ExportUsersParams{Fields: []string{"id", admin.FieldPasswordHash, admin.FieldTOTPSecret}}, &text)
			if n := strings.Count(text.String(), "\n"); err != nil && n%2 != 0 {
				return fmt.Errorf("%d rows, and then %w", n, errors.New(err.Error()))
			}
			return err
		}
	},
	"results of several chunks": func(o *office, ctx context.Context, owner, _ *authtest.SignedIn, k int) func() error {
		if k == 1 {
			id, err := o.adm.ImportUsers(o.t.Context(), admin.System("test").Accepting(), admin.ImportUsersParams{}, strings.NewReader(strings.Repeat("{}\n", 1_100)))
			if err != nil {
				o.t.Fatal(err)
			}
			o.done(id)
			o.job = id
		}
		return func() error { return o.adm.JobResults(ctx, actor(owner), o.job, io.Discard) }
	},
	"sessions at an address":    ending(admin.RevokeSessionsParams{IP: "192.0.2.7"}),
	"sessions before a time":    ending(admin.RevokeSessionsParams{Before: time.Date(2026, 1, 2, 3, 4, 30, 0, time.UTC)}),
	"everybody's, part by part": ending(admin.RevokeSessionsParams{All: true}),
	"an impersonation that a browser goes on with": func(o *office, ctx context.Context, owner, ada *authtest.SignedIn, _ int) func() error {
		return func() error {
			_, err := o.adm.Impersonate(ctx, actor(owner), admin.ImpersonateParams{UserID: ada.User.ID, Reason: "x", RedirectTo: "https://app.test/", CodeChallenge: oauth2.S256ChallengeFromVerifier(actVerifier)})
			return err
		}
	},
}

// ending is a variant that revokes sessions, two at a time if it concerns all accounts.
func ending(p admin.RevokeSessionsParams) variant {
	return func(o *office, ctx context.Context, owner, ada *authtest.SignedIn, k int) func() error {
		o.adm.EndsAtOnce(2)
		for i := range 3 {
			from := auth.ContextWithClient(o.t.Context(), auth.Client{IP: netip.MustParseAddr("192.0.2.7")})
			if _, err := o.Login(from, auth.LoginParams{Email: fmt.Sprintf("user%d@example.com", i), Password: authtest.Password}); err != nil {
				o.t.Fatal(err)
			}
		}
		return func() error {
			_, err := o.adm.RevokeSessions(ctx, actor(owner), p)
			return err
		}
	}
}

// If any call of the store fails during a variant, that is reported, and the variant can
// be repeated.
func TestVariantsInOutages(t *testing.T) {
	t.Parallel()
	for name := range variants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOffice(t, storetap.New(memstore.New()), auth.WithRedirectURLs("https://app.test/*"))
			o.mark = func(ctx context.Context) context.Context { return context.WithValue(ctx, ledgerKey{}, true) }
			o.permit(role)
			o.newDeploy()
			owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
			ada := o.LoginAs(t, "ada@example.com", authtest.AAL2())
			o.hasPhone(ada, "+4930123456")
			for n := range 3 {
				o.LoginAs(t, fmt.Sprintf("user%d@example.com", n))
			}
			o.Clock.Advance(time.Minute)
			o.restsOn(func(k int) func() error { return variants[name](o, o.mark(t.Context()), owner, ada, k) })
		})
	}
}
