package storetest_test

import (
	"context"
	"reflect"
	"time"

	"github.com/authmount/auth/store"
)

// Each of credentialMutants forgets one kind of credential when all are dropped, or that
// it has changed.
func credentialMutants() map[string]mutant {
	all := map[string]mutant{}
	for _, kind := range []string{"password", "address", "proof of the address", "number", "identities", "factors", "tokens", "later tokens", "sessions"} {
		all["dropping forgets: "+kind] = caught("credentials/all ways in are dropped but those named", func(b base) store.Store { return forgets{b, kind} })
	}
	for _, kind := range []string{"PasswordHash", "EmailVerifiedAt", "PhoneVerifiedAt", "Link"} {
		all["dropping takes what is named: "+kind] = caught("credentials/all ways in are dropped but those named", patched(func(p *store.UserPatch) {
			if p.DropCredentials {
				reflect.ValueOf(p).Elem().FieldByName(kind).SetZero()
			}
		}))
	}
	for i := range reflect.TypeFor[store.UserPatch]().NumField() {
		field := reflect.TypeFor[store.UserPatch]().Field(i).Name
		all["the credential revision is wrong: "+field] = caught("credentials/a patch raises the revisions that it has to", func(b base) store.Store { return miscounts{b, field, false} })
		all["the revision does not rise: "+field] = caught("credentials/a patch raises the revisions that it has to", func(b base) store.Store { return miscounts{b, field, true} })
	}
	all["empty patches raise the revision"] = caught("credentials/an empty patch raises nothing", func(b base) store.Store { return raisesAlways{b} })
	return all
}

// forgets drops credentials by a list, which lacks one kind.
type forgets struct {
	base
	kind string
}

func (s forgets) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	p := &c.Patch
	if !p.DropCredentials {
		return s.Store.UpdateUser(ctx, c)
	}
	u, err := s.User(ctx, store.ByID(c.UserID))
	if err != nil {
		return u, err
	}
	p.DropCredentials = false
	if p.PasswordHash == nil && s.kind != "password" {
		p.PasswordHash = new(string)
	}
	if p.Email == nil && p.EmailVerifiedAt == nil && s.kind != "address" {
		p.Email = new(string)
		if s.kind != "proof of the address" {
			p.EmailVerifiedAt = new(time.Time)
		}
	}
	if p.Phone == nil && p.PhoneVerifiedAt == nil && s.kind != "number" {
		p.Phone, p.PhoneVerifiedAt = new(string), new(time.Time)
	}
	p.DropFactors = s.kind != "factors"
	if s.kind != "tokens" {
		p.DropTokens = []store.Purpose{
			store.PurposeMagicLink, store.PurposeVerifyEmail, store.PurposeReset, store.PurposeExchange, store.PurposePhoneCode,
			store.PurposeMFA, store.PurposeEnroll, store.PurposePhoneChange, store.PurposeOAuth,
		}
		if s.kind != "later tokens" {
			p.DropTokens = append(p.DropTokens, "one that comes later")
		}
	}
	if s.kind != "sessions" {
		p.Revoke = &store.SessionFilter{}
	}
	for _, i := range u.Identities {
		if s.kind != "identities" && (p.Link == nil || p.Link.Subject != i.Subject) {
			unlink := store.UserPatch{Unlink: &store.UserKey{Provider: i.Provider, Subject: i.Subject}}
			if _, err := s.Store.UpdateUser(ctx, store.UpdateUser{Change: c.Change, UserID: c.UserID, Patch: unlink}); err != nil {
				return u, err
			}
		}
	}
	return s.Store.UpdateUser(ctx, c)
}

// miscounts counts a revision wrong for one member of a patch.
type miscounts struct {
	base
	field string
	plain bool // Revision, not CredentialRevision
}

func (s miscounts) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	before, err := s.User(ctx, store.ByID(c.UserID))
	if err != nil {
		return before, err
	}
	u, err := s.Store.UpdateUser(ctx, c)
	if err != nil || reflect.ValueOf(c.Patch).FieldByName(s.field).IsZero() {
		return u, err
	}
	switch {
	case s.plain:
		u.Revision = before.Revision
	case u.CredentialRevision > before.CredentialRevision:
		u.CredentialRevision = before.CredentialRevision
	default:
		u.CredentialRevision++
	}
	return u, nil
}

type raisesAlways struct{ base }

func (s raisesAlways) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	if c.Patch.Empty() {
		c.Patch.DropTokens = []store.Purpose{"none"}
	}
	return s.Store.UpdateUser(ctx, c)
}
