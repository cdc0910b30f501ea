package admin_test

import (
	"encoding/json"
	"fmt"
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

// What each field of a row, alone, makes of an account that is there and of a new one, and
// what it asks for, is written down: by an owner, by somebody who may import and no more,
// and by somebody whom the account is too strong for. -update writes it.
func TestRowsOfOneFieldAsWrittenDown(t *testing.T) {
	t.Parallel()
	fields := []string{
		`"email_verified":true`, `"email_verified":false`, `"email_verified_at":"2020-01-01T00:00:00Z"`, `"phone_verified":true`, `"phone_verified":false`, `"phone_verified_at":"2020-01-01T00:00:00Z"`, `"phone":"+49302220"`,
		`"full_name":"Ada"`, `"user_metadata":{"a":1}`, `"app_metadata":{"a":1}`, `"roles":["writer"]`, `"banned_until":"2030-01-01T00:00:00Z"`, `"banned_until":"2020-01-01T00:00:00Z"`,
		`"password_hash":"$2y$10$abcdefghijklmnopqrstuuRVDvmMCGwCgYV8WNh4b4/GTI1eW9v7G"`, `"totp_secret":"JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"`, `"identities":[{"provider":"github","subject":"7"}]`,
		`"created_at":"2020-01-01T00:00:00Z"`, `"last_sign_in_at":"2020-01-01T00:00:00Z"`,
	}
	texts := make([]string, len(fields))
	t.Run("rows", func(t *testing.T) {
		for i, field := range fields {
			t.Run(field, func(t *testing.T) {
				t.Parallel()
				o := newOffice(t, memstore.New())
				o.permit(role)
				owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner), authtest.AAL2())
				text := "> " + field + "\n"
				for n, c := range []struct {
					name        string
					who         *authtest.SignedIn
					permissions []string // of the account
				}{
					{"owner", owner, nil},
					{"mover", o.operator("mover@example.com", admin.PermUsersImport), nil},
					{"clerk", o.operator("clerk@example.com", admin.PermUsersImport, admin.PermUsersWrite, admin.PermUsersBan, admin.PermCredentials, admin.PermRolesAssign), []string{admin.PermStatsRead}},
				} {
					email := "of-" + c.name + "@example.com"
					roles := []string{}
					if c.permissions != nil {
						o.permit("strong", c.permissions...)
						roles = append(roles, "strong")
					}
					u, err := o.ImportUser(t.Context(), auth.ImportUserParams{Email: email, Phone: fmt.Sprint("+4930111", n), Roles: roles})
					if err != nil {
						t.Fatal(err)
					}
					for _, at := range []string{email, "new-" + email} {
						before := o.shown(u.ID)
						o.Clock.Advance(time.Second)
						phone := fmt.Sprintf(`,"phone":"%s"`, u.Phone)
						switch {
						case strings.Contains(field, `"phone":`), at == email && !strings.Contains(field, "phone"):
							phone = ""
						case at != email:
							phone = fmt.Sprintf(`,"phone":"+4930333%d"`, n)
						}
						results := o.imports(c.who, "?on_conflict=update", `{"email":"`+at+`"`+phone+`,`+field+`}`)
						delete(results[0], "id")
						said, err := json.Marshal(results[0])
						if err != nil {
							t.Fatal(err)
						}
						text += strings.TrimPrefix(at, "of-") + ": " + string(said) + "\n"
						if at == email {
							text += differing(before, o.shown(u.ID))
							continue
						}
						if made, err := o.Store.User(t.Context(), store.ByEmail(at)); err == nil {
							text += differing(map[string]any{}, o.shown(made.ID))
						}
					}
				}
				texts[i] = anyID.ReplaceAllString(text, "<id>")
			})
		}
	})
	asWrittenDown(t, "rows", strings.Join(texts, ""))
}

// shown is an account as an operator sees it.
func (o *office) shown(id string) map[string]any {
	o.t.Helper()
	a, err := o.adm.User(o.t.Context(), admin.System("test"), id)
	if err != nil {
		o.t.Fatal(err)
	}
	raw, err := json.Marshal(struct {
		auth.UserView
		BannedUntil time.Time
		Password    bool
		Factors     int
	}{auth.ViewOf(a.User), a.BannedUntil, a.HasPassword, len(a.Factors)})
	v := map[string]any{}
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	if err != nil {
		o.t.Fatal(err)
	}
	return v
}

// differing are the members of two values that are not the same.
func differing(before, after map[string]any) string {
	var lines []string
	for name, v := range after {
		if name == "updated_at" || fmt.Sprint(v) == fmt.Sprint(before[name]) || len(before) == 0 && (v == nil || v == false || name == "id" || fmt.Sprint(v) == "[]" || fmt.Sprint(v) == "map[]" || fmt.Sprint(v) == "0" || strings.HasPrefix(fmt.Sprint(v), "0001-")) {
			continue
		}
		lines = append(lines, fmt.Sprintf("  %s: %v\n", name, v))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
