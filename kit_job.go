package auth

import (
	"context"
	"errors"

	"github.com/authmount/auth/store"
)

// What the admin side builds jobs on.

func (k kit) Behind(f func(ctx context.Context)) { k.a.background.Run(f) }

func (k kit) SealJob(jobID string, plain []byte) []byte {
	return k.a.keys.SealJob(plain, []byte(jobID))
}

func (k kit) OpenJob(jobID string, sealed []byte) ([]byte, error) {
	return k.a.keys.OpenJob(sealed, []byte(jobID))
}

func (k kit) ForJob(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestIDKey{}, id)
}

func (k kit) ImportsAtOnce() bool { return k.a.imports != nil && k.a.creating() == nil }

func (k kit) ImportAll(ctx context.Context, c store.CreateUsers) ([]error, error) {
	if !k.ImportsAtOnce() {
		return nil, errors.ErrUnsupported
	}
	return k.a.imports.CreateUsers(ctx, c)
}

func (k kit) WithHash(ctx context.Context, c *store.Change, u User, hash string, p *store.UserPatch) error {
	had, err := k.a.store.Credentials(ctx, store.ByID(u.ID))
	if err != nil || had.PasswordHash == hash {
		return err
	}
	chosen, err := k.a.choosePassword(ctx, PasswordChange{u, passwordByOperator}, newPassword{hash: hash}, nil)
	if err != nil {
		return err
	}
	setPassword(p, chosen)
	p.Revoke, p.DropDevices = &store.SessionFilter{}, true
	p.DropTokens = append(p.DropTokens, dyingWithPassword()...)
	k.a.tell(ctx, c, account{User: u}, EventPasswordChanged)
	return nil
}
