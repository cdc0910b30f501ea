package auth

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"github.com/authmount/auth/store"
)

// Passkeys move between services as PasskeyRecord, in exports and imports. Their user handle
// comes along, because a sign-in finds the account by it.

// handleSize is the size of a user handle, in bytes.
const handleSize = 32

// passkeyRecords returns the enabled passkeys among factors.
func (a *Auth) passkeyRecords(list []Factor) (records []PasskeyRecord, err error) {
	if a.cfg.passkeys == nil {
		return records, nil
	}
	for _, f := range passkeysOf(list) {
		r, err := a.cfg.passkeys.Record(storedPasskey(f))
		if err != nil {
			return nil, fail(CodeInternal, fmt.Errorf("the passkey %s of user %s: %w", f.ID, f.UserID, err))
		}
		r.Name, r.SecondFactor, r.CreatedAt, r.LastUsedAt = f.Label, f.Required, wireTime(f.CreatedAt), optionalTime(f.LastUsedAt)
		records = append(records, r)
	}
	return records, nil
}

func (k kit) PasskeyRecords(ctx context.Context, userID string) ([]PasskeyRecord, error) {
	if k.a.factors == nil {
		return nil, nil
	}
	all, err := k.a.factors.Factors(ctx, userID)
	if err != nil {
		return nil, storeFailed(err)
	}
	return k.a.passkeyRecords(all.List)
}

// importHandle checks the user handle of an import. A shorter one could be guessed, and
// another form of the same handle would not be found.
func importHandle(p *ImportUserParams, u *User, _ time.Time) error {
	if p.UserHandle == "" {
		if len(p.Passkeys) > 0 {
			return invalid("user_handle", "is required with passkeys")
		}
		return nil
	}
	b, err := base64.RawURLEncoding.DecodeString(p.UserHandle)
	if err != nil || len(b) != handleSize || base64.RawURLEncoding.EncodeToString(b) != p.UserHandle {
		return invalid("user_handle", "is not 32 bytes in base64url without padding")
	}
	u.Handle = p.UserHandle
	return nil
}

// importPasskeys returns the passkeys of an import as factors.
func (a *Auth) importPasskeys(p ImportUserParams, u User) (list []Factor, err error) {
	switch {
	case len(p.Passkeys) == 0:
		return nil, nil
	case a.cfg.passkeys == nil:
		return nil, invalid("passkeys", "cannot be checked: WithPasskeys is missing")
	case len(p.Passkeys) > maxPasskeys:
		return nil, invalid("passkeys", fmt.Sprintf("are more than %d", maxPasskeys))
	}
	seen := map[string]bool{}
	own, _ := a.cfg.passkeys.RPID() // a passkey of another one cannot be shown, so no sign-in asks for it
	for i, r := range p.Passkeys {
		k, err := a.cfg.passkeys.Import(r)
		var wrong *store.InvalidError
		switch {
		case errors.As(err, &wrong):
			return nil, invalidPasskey(i, wrong.Field, wrong.Problem)
		case err != nil:
			return nil, fail(CodeInternal, err)
		case seen[r.CredentialID]:
			return nil, invalidPasskey(i, "credential_id", "is one that the account has twice")
		}
		seen[r.CredentialID] = true
		label, err := passkeyName(r.Name)
		if err != nil {
			return nil, invalidPasskey(i, "name", "is too long or has characters that cannot be printed")
		}
		f := Factor{
			ID: a.newID(), UserID: u.ID, Kind: store.FactorPasskey, Several: true, Required: r.SecondFactor && r.RPID == own, Credential: k.ID, Secret: k.Record, State: k.State,
			Label: cmp.Or(label, a.cfg.passkeys.Describe(k).Authenticator, "Passkey"), CreatedAt: cmp.Or(r.CreatedAt, u.CreatedAt),
		}
		if r.LastUsedAt != nil {
			f.LastUsedAt = *r.LastUsedAt
		}
		list = append(list, f)
	}
	return list, nil
}

// invalidPasskey names a field of one of the passkeys of an import, counted from 1.
func invalidPasskey(i int, field, problem string) error {
	return invalid("passkeys", fmt.Sprintf("number %d: %s %s", i+1, field, problem))
}

// recordImportedRPID is recordRPID for the first import of a passkey that belongs to this
// service's RP ID.
func (a *Auth) recordImportedRPID(ctx context.Context, factors []Factor) error {
	for _, f := range factors {
		if f.Kind != store.FactorPasskey {
			continue
		}
		r, err := a.cfg.passkeys.Record(storedPasskey(f))
		if err != nil {
			return fail(CodeInternal, err)
		}
		if id, _ := a.cfg.passkeys.RPID(); r.RPID == id {
			return a.recordRPID(ctx)
		}
	}
	return nil
}

func (k kit) RecordImportedRPID(ctx context.Context, factors []Factor) error {
	return k.a.recordImportedRPID(ctx, factors)
}
