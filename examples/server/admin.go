package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync/atomic"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/examples/server/demo"
)

func newAdmin(ctx context.Context, a *auth.Auth, s settings) (*admin.Admin, error) {
	var o admin.Options
	if !s.adminMFA {
		o.RequireMFA = auth.Off
	}
	if s.demo {
		o.Permissions = demo.Permissions()
	}
	return admin.New(ctx, a, o)
}

// readSecretKeys parses keys of the form "sk_…=auth.users.read,auth.users.ban".
func readSecretKeys(texts []string) ([]auth.SecretKey, error) {
	var keys []auth.SecretKey
	for _, one := range strings.Fields(strings.Join(texts, " ")) {
		key, scopes, ok := strings.Cut(one, "=")
		if !ok {
			return nil, errors.New("-secret-key: a key must be followed by = and its scopes")
		}
		keys = append(keys, auth.SecretKey{Key: key, Scopes: list(scopes)})
	}
	return keys, nil
}

// adminPath returns the path of the admin endpoints: below the path of the base URL.
func adminPath(s settings) string {
	if u, err := url.Parse(s.baseURL); err == nil && s.baseURL != "" {
		return u.Path + "/admin/"
	}
	return "/auth/v1/admin/"
}

// isTerminal reports whether a file is a terminal.
func isTerminal(f *os.File) bool {
	i, err := f.Stat()
	return err == nil && i.Mode()&os.ModeCharDevice != 0
}

// printOwnerLink prints the link that makes the first owner, if there has been none. It
// is not logged, because logs are stored and read by others.
func printOwnerLink(ctx context.Context, adm *admin.Admin, to io.Writer) error {
	link, err := adm.FirstOwnerLink(ctx)
	switch {
	case errors.Is(err, auth.CodeRoleInUse):
		return nil
	case err != nil:
		return err
	}
	_, err = fmt.Fprintf(to, "\nThere is no owner yet. Whoever is signed in and opens this within 30 minutes becomes it:\n\n  %s\n\n", link)
	return err
}

// firstOwner makes the account of an email address owner as soon as the address is
// verified.
type firstOwner struct {
	address string
	log     *slog.Logger
	admin   atomic.Pointer[admin.Admin] // nil before the start and after the end
}

func (f *firstOwner) begin(ctx context.Context, adm *admin.Admin) {
	if f.address == "" {
		return
	}
	f.admin.Store(adm)
	f.grant(ctx)
}

// onEvent checks again after each event that may verify an address.
func (f *firstOwner) onEvent(ctx context.Context, e auth.Event) {
	switch e.Type {
	case auth.EventSignedUp, auth.EventSignedIn, auth.EventEmailVerified, auth.EventPasswordReset, auth.EventEmailChanged:
		f.grant(context.WithoutCancel(ctx))
	}
}

func (f *firstOwner) grant(ctx context.Context) {
	adm := f.admin.Load()
	if adm == nil {
		return
	}
	_, err := adm.GrantByAddress(ctx, admin.System("-owner").Accepting(), f.address, auth.RoleOwner)
	switch {
	case err == nil:
		f.admin.Store(nil)
		f.log.Info("there is an owner", "address", f.address)
	case !errors.Is(err, auth.CodeUserNotFound) && !errors.Is(err, auth.CodeEmailNotVerified):
		f.log.Error("no owner yet", "error", err)
	}
}
