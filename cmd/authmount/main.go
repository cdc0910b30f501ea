// Authmount gives and withdraws roles in the database of a service, for operators at a
// shell:
//
//	authmount -now user grant ada@example.com owner
//	authmount user withdraw ada@example.com owner
//
// An email address must be verified; an id names any account. Changes are recorded in the
// audit log and follow the rules of package admin: the last owner keeps the role. The
// database is given by -database or by the PG… environment variables.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

const usage = `usage: authmount [-database url] [-now] user grant <address or id> <role>
       authmount [-database url] user withdraw <address or id> <role>
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "authmount:", err)
		}
		os.Exit(1)
	}
}

// run runs the command in args.
func run(ctx context.Context, args []string, out, problems io.Writer) error {
	fs := flag.NewFlagSet("authmount", flag.ContinueOnError)
	fs.SetOutput(problems)
	fs.Usage = func() {
		_, _ = io.WriteString(problems, usage)
		fs.PrintDefaults()
	}
	database := fs.String("database", os.Getenv("AUTH_DATABASE"), "connection string (AUTH_DATABASE); default: the PG… environment variables")
	now := fs.Bool("now", false, "let permissions of operators take effect without the holder's acceptance; every sign-in method that the account has gets them, so first check that they are the holder's")
	if err := fs.Parse(args); err != nil {
		return err
	}
	a := fs.Args()
	if len(a) != 4 || a[0] != "user" || a[1] != "grant" && a[1] != "withdraw" {
		fs.Usage()
		return errors.New("unknown command")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	store, err := pgstore.Open(ctx, *database)
	if err != nil {
		return err
	}
	defer store.Close()
	service, err := auth.New(ctx, store, auth.WithDevMode(), auth.WithoutBackground(), auth.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	u, waits, err := assign(ctx, service, *now, a[1], a[2], a[3])
	if err := errors.Join(err, service.Close(ctx)); err != nil {
		return err
	}
	roles := strings.Join(slices.Sorted(slices.Values(u.Roles)), ", ")
	if roles == "" {
		roles = "none"
	}
	if waits { // the command has no mailer
		roles += "\nThe permissions of an operator among them wait for the holder. Send the link to accept from the dashboard, or by POST /admin/users/{id}/send with {\"type\":\"accept\"}; or use -now."
	}
	_, err = fmt.Fprintf(out, "%s (%s) has the roles: %s\n", u.Email, u.ID, roles)
	return err
}

// assign gives a role to an account or withdraws it. It reports whether the account waits
// for its holder's acceptance.
func assign(ctx context.Context, service *auth.Auth, now bool, action, account, role string) (u auth.User, waits bool, err error) {
	adm, err := admin.New(ctx, service, admin.Options{})
	if err != nil {
		return u, false, err
	}
	by := admin.System("authmount user " + action)
	if now {
		by = by.Accepting()
	}
	isID := uuid.Validate(account) == nil
	switch {
	case action == "grant" && isID:
		u, err = adm.Grant(ctx, by, admin.GrantParams{UserID: account, Role: role})
	case action == "grant":
		u, err = adm.GrantByAddress(ctx, by, account, role)
	case isID:
		u, err = adm.Withdraw(ctx, by, account, role)
	default:
		found, missing := adm.LookupUser(ctx, by, store.ByEmail(account))
		if missing != nil {
			return u, false, missing
		}
		u, err = adm.Withdraw(ctx, by, found.ID, role)
	}
	if err != nil {
		return u, false, err
	}
	p, err := adm.ListUsers(ctx, by, admin.ListUsersParams{UserFilter: admin.UserFilter{IDs: []string{u.ID}, Status: "waiting"}})
	return u, len(p.Users) > 0, err
}
