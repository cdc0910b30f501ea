package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// selectFor checks an action on the accounts that a filter matches, and stores their ids.
func (m *Admin) selectFor(ctx context.Context, who Actor, a *acting, b bulkAction, p BulkParams) (BulkResult, error) {
	ids, err := m.pick(ctx, who, *p.Filter)
	if err != nil {
		return BulkResult{}, err
	}
	all, err := m.isEverybody(ctx, *p.Filter, len(ids))
	if err == nil && all {
		err = m.allow(a, onEverybody)
	}
	if err != nil {
		return BulkResult{}, m.denied(ctx, &attempt{acting: a, record: m.recordOf(ctx, a, opBulk)}, err)
	}
	list, err := m.doToEach(ctx, who, b, p, ids)
	if err != nil {
		return BulkResult{}, err
	}
	j, err := m.receive(ctx, a, bulkJob.name, bulkJobParams{p.Action, all, p.BulkDetails})
	if err != nil {
		return BulkResult{}, err
	}
	for part := range slices.Chunk(ids, chunkRows) {
		if err := m.addRows(ctx, &j, len(part), part); err != nil {
			return BulkResult{}, err
		}
	}
	res := bulkResult(list)
	res.SelectionID, res.ExpiresAt, res.dry = j.ID, j.ExpiresAt, p.DryRun
	return m.withBudget(ctx, a, b, res)
}

// isEverybody reports whether a filter matched all accounts, or would.
func (m *Admin) isEverybody(ctx context.Context, f UserFilter, picked int) (bool, error) {
	n, err := m.admin.CountUsers(ctx, store.UserQuery{Now: m.kit.Now()})
	return f.picksAll() || n.Exact && int64(picked) >= n.N, m.storeError(err)
}

// pick lists the accounts that a filter matches. Errors: CodeQueryTooBroad.
func (m *Admin) pick(ctx context.Context, who Actor, f UserFilter) ([]string, error) {
	var ids []string
	p, err := m.userSearch(f)
	if err != nil {
		return nil, err
	}
	p.Limit = maxPage
	for {
		page, err := m.pageOfUsers(ctx, who, p)
		if err != nil {
			return nil, err
		}
		for _, u := range page.Users {
			ids = append(ids, u.ID)
		}
		switch {
		case len(ids) > maxSelection:
			return nil, auth.Reject(auth.CodeQueryTooBroad, fmt.Sprintf("More than %d accounts match.", maxSelection))
		case page.next == nil:
			return ids, nil
		}
		p = userSearch{UserQuery: *page.next}
	}
}

// startSelection starts the action that a dry run checked.
func (m *Admin) startSelection(ctx context.Context, who Actor, b bulkAction, id string) (BulkResult, error) {
	jobID, err := carryOut(ctx, m, who, opBulk, "", auth.EventJobStarted, func(t *attempt) (string, error) {
		if err := m.allow(t.acting, b.op); err != nil {
			return "", err
		}
		j, err := m.admin.Job(ctx, id, m.kit.Now())
		var made jobActor
		var p bulkJobParams
		if err == nil && j.Kind == bulkJob.name {
			if err := errors.Join(json.Unmarshal(j.Actor, &made), json.Unmarshal(j.Params, &p)); err != nil {
				return "", m.fail(auth.CodeInternal, err) // another attempt will not help
			}
		}
		switch {
		case errors.Is(err, store.ErrNotFound), err == nil && (j.Kind != bulkJob.name || !made.same(t.forJob()) || j.State != store.JobReceiving):
			return "", auth.Reject(auth.CodeNotFound, "You have no such selection, or it was used or has expired.")
		case err != nil:
			return "", err
		case p.Action != b.name:
			return "", m.kit.Invalid("action", "differs from the action of the dry run")
		}
		need := onMany
		if p.All {
			need = onEverybody
		}
		if err := m.allow(t.acting, need); err != nil {
			return "", err
		}
		t.keepReason(p.Reason)
		t.changed("action", nil, p.Action)
		return m.start(ctx, t, j)
	})
	m.wakeWorker()
	return BulkResult{JobID: jobID}, err
}

func planBulk(_ context.Context, m *Admin, _ store.Job, input []byte) (chunkWork, error) {
	return chunkWork{do: func(ctx context.Context, who Actor, j store.Job) ([]rowResult, error) {
		return doBulk(ctx, m, who, j, input)
	}}, nil
}

// doBulk carries out a chunk of a selection.
func doBulk(ctx context.Context, m *Admin, who Actor, j store.Job, input []byte) ([]rowResult, error) {
	var p bulkJobParams
	var ids []string
	if err := errors.Join(json.Unmarshal(j.Params, &p), json.Unmarshal(input, &ids)); err != nil {
		return nil, m.fail(auth.CodeInternal, err) // another attempt will not help
	}
	b, ok := bulkActionOf(p.Action)
	if !ok {
		return nil, m.fail(auth.CodeInternal, errors.New("an unknown action"))
	}
	ctx = context.WithValue(ctx, requestKey{}, &once{route: opBulk.pattern, key: j.ID, hash: []byte(j.ID), life: jobKept, job: true})
	list, err := m.doToEach(ctx, who, b, BulkParams{BulkDetails: p.BulkDetails}, ids)
	if outage(ctx, err) {
		return nil, err
	}
	return failRest(list, ids, err), nil
}
