package auth

import (
	"context"
	"errors"
	"iter"

	"github.com/authmount/auth/store"
)

// importBatch is the number of users created in one step. With the most metadata they
// take about 15 MiB.
const importBatch = 500

// ImportResult is the result for one user.
type ImportResult struct {
	Index int    // position in the sequence, from 0
	ID    string // of the created user; otherwise empty
	Err   error  // an error of ImportUser; nil if the user was created
}

// ImportSummary counts the users that were created or refused, from the start of the
// sequence.
type ImportSummary struct{ Created, Refused int }

// ImportUsers is ImportUser for many users. It reads the sequence once, in batches of
// 500, and creates each batch in one step of the store (AdminStore). With
// Hooks.OnUserCreating, or a store without that step, it creates them one by one. A
// refused user does not affect the others. It calls each, unless nil, with every
// result, in order.
//
// It stops with CodeUnavailable if the store fails or ctx ends (errors.Is(err,
// context.Canceled)). The summary and each then show how far it came. The next 500
// users at most may or may not exist. Import them again: existing ones are refused with
// a *ConflictError. Concurrent calls are safe: a user in both is created once.
func (a *Auth) ImportUsers(ctx context.Context, users iter.Seq[ImportUserParams], each func(ImportResult)) (ImportSummary, error) {
	if each == nil {
		each = func(ImportResult) {}
	}
	im := &importRun{Auth: a, each: each, oneByOne: a.admin == nil || a.creating() != nil}
	for p := range users {
		if ctx.Err() != nil {
			return im.sum, storeFailed(ctx.Err())
		}
		if err := im.add(ctx, p); err != nil {
			return im.sum, err
		}
		if len(im.read) == importBatch {
			if err := im.flush(ctx); err != nil {
				return im.sum, err
			}
		}
	}
	err := im.flush(ctx)
	return im.sum, err
}

// importRun is the state of a call of ImportUsers.
type importRun struct {
	*Auth
	each     func(ImportResult)
	oneByOne bool
	sum      ImportSummary
	read     []importing // not created or refused yet
}

// importing is a user that was read; err is the reason to refuse it.
type importing struct {
	user store.NewUser
	err  error
}

// add reads a user. The error is a failure of the store.
func (im *importRun) add(ctx context.Context, p ImportUserParams) error {
	u, err := im.newImport(ctx, p)
	if err == nil {
		err = im.requireRolesExist(ctx, p.Roles)
	}
	if isStoreFailure(ctx, err) {
		return err
	}
	im.read = append(im.read, importing{u, err})
	return nil
}

// flush creates or refuses all users that were read.
func (im *importRun) flush(ctx context.Context) error {
	var changes []store.Change
	if !im.oneByOne {
		var err error
		if changes, err = im.createAll(ctx); err != nil {
			return err
		}
	}
	for i := range im.read {
		one := &im.read[i]
		switch {
		case one.err != nil:
		case im.oneByOne:
			_, one.err = im.importOne(ctx, one.user)
			if isStoreFailure(ctx, one.err) {
				return one.err
			}
		default:
			im.committed(ctx, changes[i], store.OutcomeDone, nil)
		}
		im.decided(one)
	}
	im.read = im.read[:0]
	return nil
}

// isStoreFailure reports whether err means that the store fails, not that a user is
// refused.
func isStoreFailure(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || errors.Is(err, CodeUnavailable))
}

// decided reports the result for the next user.
func (im *importRun) decided(one *importing) {
	r := ImportResult{Index: im.sum.Created + im.sum.Refused, Err: one.err}
	if one.err == nil {
		r.ID = one.user.User.ID
		im.sum.Created++
	} else {
		im.sum.Refused++
	}
	im.each(r)
}

// createAll creates the valid ones of the users that were read, in one step, and
// returns their changes.
func (im *importRun) createAll(ctx context.Context) ([]store.Change, error) {
	changes := make([]store.Change, len(im.read))
	var rows []store.ImportedRow
	var factors []Factor
	var of []int
	for i, one := range im.read {
		if one.err != nil {
			continue
		}
		changes[i] = im.newChange(ctx, ByApplication("").authority(), done(imported(one.user.User)))
		row := store.ImportedRow{User: one.user.User, PasswordHash: one.user.PasswordHash, Factors: one.user.Factors}
		for _, e := range changes[i].Events {
			row.Events = append(row.Events, e.Event)
		}
		rows, of, factors = append(rows, row), append(of, i), append(factors, row.Factors...)
	}
	if len(rows) == 0 {
		return changes, nil
	}
	if err := im.recordImportedRPID(ctx, factors); err != nil {
		return nil, err
	}
	results, err := im.admin.CreateUsers(ctx, store.CreateUsers{Change: im.newChange(ctx, ByApplication("").authority()), Users: rows})
	if err != nil {
		return nil, storeFailed(err)
	}
	for n, refused := range results {
		if refused != nil {
			im.read[of[n]].err = importRefused(refused)
		}
	}
	return changes, nil
}
