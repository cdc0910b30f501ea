package auth

import (
	"context"
	"errors"
	"iter"

	"github.com/authmount/auth/store"
)

// importBatch is how many users are created in one step. With the most metadata
// that each may have they make about 15 MiB.
const importBatch = 500

// ImportResult is what became of one of many users.
type ImportResult struct {
	Index int    // its place in the sequence, from 0
	ID    string // of the user who was created; empty otherwise
	Err   error  // why not, as of ImportUser; nil if the user was created
}

// ImportSummary is how far an import came: of the sequence's users, that many
// from its beginning were created or refused. What it counts as created is there.
type ImportSummary struct{ Created, Refused int }

// ImportUsers is ImportUser for many. It reads the sequence once, holds 500
// users at a time, and creates those in one step of the store (AdminStore) unless
// Hooks.OnUserCreating is used; with that, or a store that cannot, it takes one
// after the other. A user who is refused hinders no other. each, unless it is nil,
// is told of every user, in their order, once that has been decided.
//
// It stops with CodeUnavailable when the store does not answer or ctx ends
// (errors.Is(err, context.Canceled)): the summary and each tell how far it came.
// Of at most 500 users after that it is not known; import them again, and
// those who are there are refused with a *ConflictError. Calls at the same time
// are safe: a user who is in both is created once.
func (a *Auth) ImportUsers(ctx context.Context, users iter.Seq[ImportUserParams], each func(ImportResult)) (ImportSummary, error) {
	if each == nil {
		each = func(ImportResult) {}
	}
	im := &importRun{Auth: a, each: each, oneByOne: a.admin == nil || a.creating() != nil}
	for p := range users {
		if ctx.Err() != nil {
			return im.sum, storeFailed(ctx.Err())
		}
		im.add(p)
		if len(im.read) == importBatch {
			if err := im.flush(ctx); err != nil {
				return im.sum, err
			}
		}
	}
	err := im.flush(ctx)
	return im.sum, err
}

// importRun is a call of ImportUsers.
type importRun struct {
	*Auth
	each     func(ImportResult)
	oneByOne bool
	sum      ImportSummary
	read     []importing // not decided yet
}

// importing is a user who was read; err is why it cannot be created.
type importing struct {
	user store.NewUser
	err  error
}

func (im *importRun) add(p ImportUserParams) {
	u, err := im.newImport(p)
	im.read = append(im.read, importing{u, err})
}

// flush decides about all that were read.
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
			if stopped(ctx, one.err) {
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

// stopped tells a store that does not answer from a user who is refused.
func stopped(ctx context.Context, err error) bool {
	return err != nil && (ctx.Err() != nil || errors.Is(err, CodeUnavailable))
}

// decided tells what became of the next user.
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

// createAll creates those of the users that were read who can be created, in one
// step, and returns what was recorded of each.
func (im *importRun) createAll(ctx context.Context) ([]store.Change, error) {
	changes := make([]store.Change, len(im.read))
	var rows []store.ImportedRow
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
		rows, of = append(rows, row), append(of, i)
	}
	if len(rows) == 0 {
		return changes, nil
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
