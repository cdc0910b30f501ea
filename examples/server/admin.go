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
)

func newAdmin(ctx context.Context, a *auth.Auth, s settings) (*admin.Admin, error) {
	var o admin.Options
	if !s.adminMFA {
		o.RequireMFA = auth.Off
	}
	return admin.New(ctx, a, o)
}

// readSecretKeys reads keys, each "sk_…=auth.users.read,auth.users.ban".
func readSecretKeys(texts []string) ([]auth.SecretKey, error) {
	var keys []auth.SecretKey
	for _, one := range strings.Fields(strings.Join(texts, " ")) {
		key, scopes, ok := strings.Cut(one, "=")
		if !ok {
			return nil, errors.New("-secret-key: a key has to be followed by = and its scopes")
		}
		keys = append(keys, auth.SecretKey{Key: key, Scopes: list(scopes)})
	}
	return keys, nil
}

// adminPath is where the admin side is: below the path of the base URL.
func adminPath(s settings) string {
	if u, err := url.Parse(s.baseURL); err == nil && s.baseURL != "" {
		return u.Path + "/admin/"
	}
	return "/auth/v1/admin/"
}

// isTerminal tells whether somebody looks at what is written to a file.
func isTerminal(f *os.File) bool {
	i, err := f.Stat()
	return err == nil && i.Mode()&os.ModeCharDevice != 0
}

// printOwnerLink prints the link that makes the first owner, if there has been none. It
// is no line of the log: logs are kept, and read by others.
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

// firstOwner makes the account of an address owner, as soon as it has proved that.
type firstOwner struct {
	address string
	log     *slog.Logger
	admin   atomic.Pointer[admin.Admin] // nil: not yet, or no more
}

func (f *firstOwner) begin(ctx context.Context, adm *admin.Admin) {
	if f.address == "" {
		return
	}
	f.admin.Store(adm)
	f.grant(ctx)
}

// onEvent looks once more after whatever may have proved an address.
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
	_, err := adm.GrantByAddress(ctx, admin.System("-owner"), f.address, auth.RoleOwner)
	switch {
	case err == nil:
		f.admin.Store(nil)
		f.log.Info("there is an owner", "address", f.address)
	case !errors.Is(err, auth.CodeUserNotFound) && !errors.Is(err, auth.CodeEmailNotVerified):
		f.log.Error("no owner yet", "error", err)
	}
}
