package storetest_test

import (
	"context"
	"reflect"
	"slices"

	"github.com/authmount/auth/store"
	"github.com/authmount/auth/storetest"
)

// Each of fieldMutants drops one member, and answers as if it had stored it: every member
// of a new user that the store does not set itself, and every one of a patch.
func fieldMutants() map[string]mutant {
	all := map[string]mutant{}
	for i := range reflect.TypeFor[store.User]().NumField() {
		if name := reflect.TypeFor[store.User]().Field(i).Name; !slices.Contains(storetest.Owned(), name) {
			all["a new user loses "+name] = caught("fields/every member of a new user is kept", func(b base) store.Store { return dropsMember{b, name} })
		}
	}
	acts := map[string]string{
		"Unlink":          "patches/identities are linked, renewed and unlinked",
		"Revoke":          "patches/a patch revokes sessions and drops tokens",
		"DropTokens":      "patches/a patch revokes sessions and drops tokens",
		"DropFactors":     "credentials/a patch raises the revisions that it has to",
		"DropDevices":     "devices/devices are forgotten by themselves, too",
		"RevokeKeys":      "keys/keys with a text of a session, or of a later one, are revoked",
		"DropCredentials": "credentials/all ways in are dropped but those named",
		"KeepFactors":     "acceptance/an acceptance keeps the factors that it names",
		"Accept":          "acceptance/an acceptance has the sequence of its patch and no end",
		"AcceptedUntil":   "acceptance/a list names the accounts that wait",
	}
	for i := range reflect.TypeFor[store.UserPatch]().NumField() {
		name := reflect.TypeFor[store.UserPatch]().Field(i).Name
		check, ok := acts[name]
		if !ok {
			check = "fields/every member of a patch is applied"
		}
		all["a patch loses "+name] = caught(check, patched(func(p *store.UserPatch) { reflect.ValueOf(p).Elem().FieldByName(name).SetZero() }))
	}
	return all
}

type dropsMember struct {
	base
	name string
}

func (s dropsMember) CreateUser(ctx context.Context, c store.CreateUser) (store.User, error) {
	given := c.User
	reflect.ValueOf(&c.User).Elem().FieldByName(s.name).SetZero()
	u, err := s.Store.CreateUser(ctx, c)
	reflect.ValueOf(&u).Elem().FieldByName(s.name).Set(reflect.ValueOf(given).FieldByName(s.name))
	return u, err
}
