package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/pgtest"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// An operator creates the first owner at a shell, by a verified email address or an id.
// The audit log names the command, and the last owner keeps the role.
func TestUserGrant(t *testing.T) {
	ctx, database := t.Context(), pgtest.Database(t)
	st, err := pgstore.Open(ctx, database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	if err := st.Migrate(ctx); err != nil {
		t.Fatal(err)
	}
	a, err := auth.New(ctx, st, auth.WithDevMode(), auth.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close(context.Background()) })
	adm, err := admin.New(ctx, a, admin.Options{})
	if err != nil {
		t.Fatal(err)
	}
	user := func(email string, proved bool) auth.User {
		u, err := a.ImportUser(ctx, auth.ImportUserParams{Email: email, EmailVerified: proved})
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	ada, eve := user("ada@example.com", true), user("eve@example.com", false)
	for _, c := range []struct {
		args string
		says string
		is   error // nil: success
	}{
		{"-now user grant ada@example.com owner", "ada@example.com (" + ada.ID + ") has the roles: owner", nil},
		{"user grant ADA@example.com support", "has the roles: owner, support\n", nil},
		{"user withdraw ada@example.com support", "has the roles: owner\n", nil},
		{"user withdraw ada@example.com owner", "", auth.CodeLastOwner},
		{"user grant eve@example.com owner", "", auth.CodeEmailNotVerified},
		{"user grant " + eve.ID + " owner", "has the roles: owner\nThe permissions of an operator among them wait", nil},
		{"user grant " + eve.ID + " support", "has the roles: owner, support", nil},
		{"user withdraw " + eve.ID + " owner", "has the roles: support", nil},
		{"user withdraw " + eve.ID + " support", "has the roles: none", nil},
		{"user grant " + eve.ID + " auditor", "has the roles: auditor", nil},
		{"user withdraw " + eve.ID + " auditor", "has the roles: none", nil},
		{"user grant nobody@example.com owner", "", auth.CodeUserNotFound},
		{"user withdraw nobody@example.com auditor", "", auth.CodeUserNotFound},
		{"user grant ada@example.com king", "", auth.CodeRoleNotFound},
	} {
		var out, problems strings.Builder
		err := run(ctx, append([]string{"-database", database}, strings.Fields(c.args)...), &out, &problems)
		if !errors.Is(err, c.is) || !strings.Contains(out.String(), c.says) {
			t.Errorf("%s: %v, %q", c.args, err, out.String())
		}
	}
	p, err := adm.AuditLog(ctx, admin.System("test").Accepting(), admin.AuditLogParams{EventFilter: admin.EventFilter{Actor: "authmount user grant", Outcome: store.EventDone}})
	if err != nil || len(p.Events) != 5 {
		t.Errorf("%d events, %v", len(p.Events), err)
	}
	for _, args := range []string{"", "user", "user grant ada@example.com", "user make ada@example.com owner", "role grant ada@example.com owner", "user grant a b c"} {
		var out, problems strings.Builder
		if err := run(ctx, append([]string{"-database", database}, strings.Fields(args)...), &out, &problems); err == nil || !strings.Contains(problems.String(), "usage:") {
			t.Errorf("%q: %v, %q", args, err, problems.String())
		}
	}
}
