package pgstore_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth"
	"github.com/authmount/auth/pgstore/rls"
	"github.com/authmount/auth/store"
)

// auth.authorize agrees with Claims.HasPermission for every pair of a held and a wanted
// permission.
func TestAuthorizeAgreesWithHasPermission(t *testing.T) {
	s := openDatabase(t)
	names := []string{"", "*", ".*", ".", "notes", "notes.", "notes.*", "notes.write", "notes.writer", "notes:write", "notes*", "Notes.write", "notes.a.b", "notes.a.*", "note_.*", "%.*", "no%.write", "auth.*", "a\\.*", "'"}
	for _, held := range append(names, "tags.read notes.*", "") {
		claims := &auth.Claims{UserID: uuid.NewString(), Permissions: strings.Fields(held)}
		err := rls.AsUser(t.Context(), s.Pool(), claims, func(tx pgx.Tx) error {
			for _, wanted := range names {
				var got *bool
				if err := tx.QueryRow(t.Context(), "select auth.authorize($1)", wanted).Scan(&got); err != nil {
					return err
				}
				if got == nil || *got != claims.HasPermission(wanted) {
					t.Errorf("held %q, asked %q: %v", held, wanted, got)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// Without a user there are no permissions. Permissions that a token left out come from its
// roles in the present table, not from the token.
func TestAuthorizeByTheTableOfRoles(t *testing.T) {
	s := openDatabase(t)
	put := func(permissions ...string) {
		t.Helper()
		if _, err := s.PutRole(t.Context(), store.PutRole{Change: byTest(), Role: store.RolePermissions{Name: "editor", Permissions: permissions}}); err != nil {
			t.Fatal(err)
		}
	}
	may := func(claims *auth.Claims, permission *string) (ok bool) {
		t.Helper()
		err := rls.AsUser(t.Context(), s.Pool(), claims, func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), "select auth.authorize($1)", permission).Scan(&ok)
		})
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	editor := func(omitted ...string) *auth.Claims {
		return &auth.Claims{UserID: uuid.NewString(), Roles: []string{"editor"}, Omitted: omitted, Custom: map[string]any{"permissions": []string{"*"}}}
	}
	write := ptr("notes.write")
	put("notes.*")
	for name, test := range map[string]struct {
		claims *auth.Claims
		asked  *string
		want   bool
	}{
		"nobody":                       {nil, write, false},
		"left out":                     {editor("permissions"), write, true},
		"left out, and asked for more": {editor("permissions"), ptr("tags.write"), false},
		"something else was left out":  {editor("app_metadata"), write, false},
		"nothing was left out":         {editor(), write, false},
		"an owner's were left out":     {&auth.Claims{UserID: uuid.NewString(), Roles: []string{store.RoleOwner}, Omitted: []string{"permissions"}}, ptr("anything"), true},
		"an owner's were not":          {&auth.Claims{UserID: uuid.NewString(), Roles: []string{store.RoleOwner}}, ptr("anything"), false},
		"a role that is not there":     {&auth.Claims{UserID: uuid.NewString(), Roles: []string{"other"}, Omitted: []string{"permissions"}}, write, false},
		"no permission":                {&auth.Claims{UserID: uuid.NewString(), Permissions: []string{"notes.write"}}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := may(test.claims, test.asked); got != test.want {
				t.Errorf("%t", got)
			}
		})
	}
	put("tags.write")
	if may(editor("permissions"), write) {
		t.Error("the table permits it no more")
	}
}
