package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// createAll creates the accounts of a chunk in one step. A row that conflicts with an
// account stays undecided, unless OnConflict is OnConflictError.
func (im *importing) createAll(ctx context.Context, part string) error {
	ctx = im.onlyOnce(ctx, part, true)
	list, err := carryOut(ctx, im.Admin, im.who, opImportRows, "", auth.EventUserImported, func(t *attempt) (*[]rowResult, error) {
		results := append([]rowResult(nil), im.results...)
		err := im.create(ctx, t, results)
		return &results, err
	})
	switch {
	case outage(ctx, err):
		return err
	case err != nil:
		return im.refuseAll(ctx, err)
	case list == nil: // it was done before, by a process that ended then
		if err := im.recall(ctx); err != nil {
			return err
		}
		return im.createAll(ctx, part+" again") // rows that were not created are checked again
	}
	im.results = *list
	return nil
}

// refuseAll marks all undecided rows as refused, except those that an earlier attempt
// finished. Each such row has its own idempotency key or event.
func (im *importing) refuseAll(ctx context.Context, why error) error {
	if !im.kit.HasBulkImport() {
		if err := im.recall(ctx); err != nil {
			return err
		}
	}
	for i := range im.results {
		if im.results[i].Result != "" {
			continue
		}
		done, err := im.wasUpdated(ctx, i)
		if err != nil {
			return err
		}
		if !done {
			im.results[i] = im.results[i].withReason(why)
		}
	}
	return nil
}

// create is one attempt at createAll.
func (im *importing) create(ctx context.Context, t *attempt, results []rowResult) error {
	of, changes := make([]int, 0, len(im.rows)), make([]store.Change, 0, len(im.rows))
	c := store.CreateUsers{Users: make([]store.ImportedRow, 0, len(im.rows))}
	refused := false
	for i, r := range im.rows {
		if results[i].Result != "" {
			continue
		}
		err := im.mayWriteFields(t, fieldsOfNew(r.params()))
		if err == nil {
			err = im.mayAccept(t, im.params.Accepted)
		}
		if err == nil && r.chosen {
			exists, used := im.neverUsed(ctx, r.ID)
			if err = used; errors.Is(used, store.ErrConflict) {
				if err := im.recallRow(ctx, i, &results[i]); err != nil {
					return err
				}
				if exists || results[i].Result != "" {
					continue // this row created it before, or it conflicts with an existing account
				}
			}
		}
		if outage(ctx, err) {
			return err
		}
		if err != nil {
			results[i], refused = results[i].withReason(err), true
			continue
		}
		change := im.recordRow(ctx, t, i)
		u := im.users[i]
		of, changes = append(of, i), append(changes, change)
		c.Users = append(c.Users, store.ImportedRow{User: u.User, PasswordHash: u.PasswordHash, Factors: u.Factors, Events: []auth.Event{change.Events[0].Event}})
	}
	t.change.Events = make([]store.OutcomeEvent, 0, len(of))
	if refused { // an earlier attempt may have created rows that are refused now
		if err := im.wasDone(ctx, t.acting); err != nil {
			return err
		}
	}
	if len(of) == 0 {
		return nil
	}
	if err := im.noteImport(ctx, t); err != nil {
		return err
	}
	if err := im.recordRPID(ctx, of); err != nil {
		return err
	}
	c.Change = t.change
	errs, err := im.kit.ImportAll(ctx, c)
	if errors.Is(err, errors.ErrUnsupported) {
		errs, err = im.createEach(ctx, t, of, changes)
	}
	if err != nil {
		return err
	}
	for n, i := range of {
		switch {
		case errs[n] == nil:
			results[i].Result, results[i].ID = resultDone, im.rows[i].ID
			t.change.Events = append(t.change.Events, changes[n].Events...)
		case !errors.Is(errs[n], store.ErrConflict), im.params.OnConflict == OnConflictError, ofPasskeys(errs[n]):
			results[i] = results[i].withReason(im.kit.DuplicateError(errs[n]))
		}
	}
	return nil
}

// recordRPID stores the RP ID of the service before the passkeys of rows are.
func (im *importing) recordRPID(ctx context.Context, rows []int) error {
	var factors []auth.Factor
	for _, i := range rows {
		factors = append(factors, im.users[i].Factors...)
	}
	return im.kit.RecordImportedRPID(ctx, factors)
}

// ofPasskeys reports whether another account has the user handle or a passkey of a row. That
// account is not the row's: OnConflict does not apply.
func ofPasskeys(err error) bool {
	var taken *store.ConflictError
	return errors.As(err, &taken) && (taken.Field == "handle" || taken.Field == "factor")
}

// createEach creates accounts one after the other, for applications with hooks.
func (im *importing) createEach(ctx context.Context, t *attempt, of []int, changes []store.Change) ([]error, error) {
	errs := make([]error, len(of))
	for n, i := range of {
		c := changes[n]
		c.IfRoles, c.IfUsers = t.change.IfRoles, t.change.IfUsers
		if once := t.change.Idempotency; once != nil {
			key := *once
			key.Key += fmt.Sprint(" ", i)
			c.Idempotency = &key
		}
		_, err := im.store.CreateUser(ctx, store.CreateUser{Change: c, NewUser: im.users[i]})
		var again *store.RepeatedError
		switch {
		case errors.As(err, &again): // an earlier attempt created it
		case errors.Is(err, store.ErrStale), outage(ctx, err) && !errors.Is(err, store.ErrConflict):
			return nil, err
		default:
			errs[n] = err
		}
	}
	return errs, nil
}

// recordRow returns the change of a row, for its event.
func (im *importing) recordRow(ctx context.Context, t *attempt, i int) store.Change {
	own := &attempt{acting: t.acting, record: im.recordOf(ctx, t.acting, opImportUsers)}
	own.record.Target = labelOf(im.users[i].User)
	own.changed("row", nil, im.results[i].Row)
	own.recordCreated(im.users[i])
	return im.kit.ChangeOf(ctx, t.by, auth.User{}, store.OutcomeEvent{On: store.OutcomeDone, Event: auth.Event{Type: auth.EventUserImported, UserID: im.users[i].User.ID, Record: own.record}})
}

// rowOf returns the row number in an import event, which stores return in different
// types.
func rowOf(e auth.Event) int {
	if e.Record == nil {
		return 0
	}
	switch n := e.Record.Changes["row"].After.(type) {
	case int:
		return n
	case float64:
		return int(n)
	}
	return 0
}

// recall marks the rows that were created, by the audit log: each has an event that was
// written in the same step.
func (im *importing) recall(ctx context.Context) error {
	for i := range im.rows {
		if im.results[i].Result != "" {
			continue
		}
		if err := im.recallRow(ctx, i, &im.results[i]); err != nil {
			return err
		}
	}
	return nil
}

func (im *importing) recallRow(ctx context.Context, i int, r *rowResult) error {
	list, err := im.journal.Events(ctx, store.EventQuery{Involving: im.rows[i].ID, RequestID: im.job.ID, Type: string(auth.EventUserImported), Limit: maxPage})
	if err != nil {
		return im.kit.StoreError(err)
	}
	for _, e := range list {
		if rowOf(e) == r.Row {
			r.Result, r.ID = resultDone, im.rows[i].ID
		}
	}
	return nil
}
