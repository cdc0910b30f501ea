package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// BulkAction is the operation to carry out on each of many accounts.
type BulkAction string

// The actions. Each is the operation of that name.
const (
	BulkBan            BulkAction = "ban"
	BulkUnban          BulkAction = "unban"
	BulkDelete         BulkAction = "delete"
	BulkAnonymize      BulkAction = "anonymize"
	BulkRevokeSessions BulkAction = "revoke_sessions"
	BulkAddRole        BulkAction = "add_role"
	BulkRemoveRole     BulkAction = "remove_role"
	BulkSend           BulkAction = "send"
)

const (
	maxBulk      = 1000   // accounts in UserIDs
	maxSelection = 10_000 // accounts that a filter matches
)

// BulkParams name an action and its accounts: those of UserIDs, of Filter, or of the
// selection that a dry run of a filter returned.
type BulkParams struct {
	Action      BulkAction
	UserIDs     []string // up to 1000
	Filter      *UserFilter
	SelectionID string // only together with Action
	DryRun      bool

	BulkDetails
}

// BulkDetails are the parameters of the actions.
type BulkDetails struct {
	Reason     string    `json:"reason,omitempty"`
	Until      time.Time `json:"until,omitzero"`        // of a ban
	Role       string    `json:"role,omitempty"`        // of add_role and remove_role
	Type       LinkType  `json:"type,omitempty"`        // of send
	RedirectTo string    `json:"redirect_to,omitempty"` // of send
}

// BulkItem is the result of one account.
type BulkItem struct {
	ID     string
	Result string // "done", "skipped" (the actor may not), "failed"
	Code   auth.Code
	Field  string

	Message string // the reason that it was not done
}

// BulkResult is the result of an action on many accounts.
type BulkResult struct {
	Items  []BulkItem // the first 1000
	Counts store.JobCounts

	// SelectionID is set after a dry run of a filter. Until ExpiresAt a request with it
	// carries out the action on the same accounts.
	SelectionID string
	ExpiresAt   time.Time

	JobID string // of a selection: the job that carries it out, see Job

	// Budget is set by a dry run of an action that counts against hourly budgets: all but
	// unban, add_role and remove_role.
	Budget *Budget

	dry bool // nothing was changed
}

// bulkAction is the implementation of an action.
type bulkAction struct {
	name  BulkAction
	op    operation
	check func(m *Admin, t *attempt, d BulkDetails) error // in addition to op; may be nil
	do    func(ctx context.Context, m *Admin, who Actor, id string, d BulkDetails) error
}

func bulkActions() []bulkAction {
	gives := func(m *Admin, t *attempt, d BulkDetails) error { return m.mayAssign(t, with(t.target.Roles, d.Role)) }
	takes := func(m *Admin, t *attempt, d BulkDetails) error {
		return m.mayAssign(t, without(t.target.Roles, d.Role))
	}
	return []bulkAction{
		{BulkBan, opBanUser, nil, func(ctx context.Context, m *Admin, who Actor, id string, d BulkDetails) error {
			_, err := m.BanUser(ctx, who, BanUserParams{UserID: id, Until: d.Until, Reason: d.Reason})
			return err
		}},
		{BulkUnban, opUnbanUser, nil, func(ctx context.Context, m *Admin, who Actor, id string, d BulkDetails) error {
			_, err := m.UnbanUser(ctx, who, UnbanUserParams{UserID: id, Reason: d.Reason})
			return err
		}},
		{BulkDelete, opDeleteUser, nil, func(ctx context.Context, m *Admin, who Actor, id string, d BulkDetails) error {
			return m.DeleteUser(ctx, who, DeleteUserParams{UserID: id, Reason: d.Reason})
		}},
		{BulkAnonymize, opAnonymize, nil, func(ctx context.Context, m *Admin, who Actor, id string, d BulkDetails) error {
			_, err := m.AnonymizeUser(ctx, who, AnonymizeUserParams{UserID: id, Reason: d.Reason})
			return err
		}},
		{BulkRevokeSessions, opEndSessions, nil, func(ctx context.Context, m *Admin, who Actor, id string, d BulkDetails) error {
			_, err := m.EndSessions(ctx, who, id, d.Reason)
			return err
		}},
		{BulkAddRole, opGrant, gives, func(ctx context.Context, m *Admin, who Actor, id string, d BulkDetails) error {
			_, err := m.grant(ctx, who, id, d.Role, roleChange{reason: d.Reason, many: true})
			return err
		}},
		{BulkRemoveRole, opWithdraw, takes, func(ctx context.Context, m *Admin, who Actor, id string, d BulkDetails) error {
			_, err := m.withdraw(ctx, who, id, d.Role, d.Reason, nil)
			return err
		}},
		{BulkSend, opSend, nil, func(ctx context.Context, m *Admin, who Actor, id string, d BulkDetails) error {
			_, err := m.Send(ctx, who, SendParams{UserID: id, Type: d.Type, RedirectTo: d.RedirectTo})
			return err
		}},
	}
}

func bulkActionOf(name BulkAction) (bulkAction, bool) {
	all := bulkActions()
	i := slices.IndexFunc(all, func(b bulkAction) bool { return b.name == name })
	if i < 0 {
		return bulkAction{}, false
	}
	return all[i], true
}

var (
	opBulk = operation{pattern: "POST /users/bulk", fails: []auth.Code{auth.CodeMissingPermission, auth.CodeReauthNeeded, auth.CodeNotFound, auth.CodeRoleNotFound, auth.CodeQueryTooBroad, auth.CodeRateLimited}}

	bulkJob = jobKind{name: "bulk", permission: func(params []byte) string {
		var p bulkJobParams
		if err := json.Unmarshal(params, &p); err != nil {
			return permAll
		}
		b, _ := bulkActionOf(p.Action)
		return b.op.permission
	}, plan: planBulk}
)

// bulkJobParams are the parameters of a dry run that a selection stores.
type bulkJobParams struct {
	Action BulkAction `json:"action"`
	All    bool       `json:"all"` // the filter matched every account
	BulkDetails
}

// Bulk carries out an action on many accounts, one by one, by the rules and with the
// permission of the operation that Action names. It skips an account that is too strong
// for the actor, and continues after an account that fails. A filter needs a dry run
// first (DryRun). The dry run returns the results to expect, and a selection of up to
// 10,000 accounts. With the selection a job carries out the action in the background, on
// exactly these accounts. A filter requires recent authentication (15 minutes) of people,
// and one that matches every account also requires the permission "*". Errors:
// CodeValidationFailed, CodeQueryTooBroad, CodeNotFound (no such selection), those of
// every operation.
func (m *Admin) Bulk(ctx context.Context, who Actor, p BulkParams) (BulkResult, error) {
	b, ok := bulkActionOf(p.Action)
	if !ok {
		return BulkResult{}, m.kit.Invalid("action", "has to be ban, unban, delete, anonymize, revoke_sessions, add_role, remove_role or send")
	}
	a, err := m.reader(ctx, who, opBulk)
	if err != nil {
		return BulkResult{}, err
	}
	if err := m.allow(a, b.op); err != nil {
		return BulkResult{}, m.denied(ctx, &attempt{acting: a, record: m.recordOf(ctx, a, opBulk)}, err)
	}
	if err := m.checkBulk(ctx, a, p); err != nil {
		return BulkResult{}, err
	}
	switch p.Until = p.Until.UTC(); { // a job stores it as JSON, which has no year beyond 9999 and not every zone
	case p.Action != BulkBan:
		p.Until = time.Time{}
	case p.Until.After(forever):
		p.Until = forever
	}
	switch {
	case p.SelectionID != "":
		return m.startSelection(ctx, who, b, p.SelectionID)
	case p.Filter != nil:
		return m.selectFor(ctx, who, a, b, p)
	}
	ids := each(p.UserIDs)
	list, err := m.doToEach(ctx, who, b, p, ids)
	if len(list) == 0 {
		return BulkResult{}, err
	}
	res := bulkResult(failRest(list, ids, err))
	if res.dry = p.DryRun; !res.dry {
		return res, nil
	}
	return m.withBudget(ctx, a, b, res)
}

// withBudget adds to the result of a dry run what the actor's budgets allow, if the action
// counts against them.
func (m *Admin) withBudget(ctx context.Context, a *acting, b bulkAction, res BulkResult) (_ BulkResult, err error) {
	if !slices.Contains([]BulkAction{BulkUnban, BulkAddRole, BulkRemoveRole}, b.name) {
		res.Budget, err = m.budgetLeft(ctx, a, res.SelectionID != "", res.Counts.Done)
	}
	return res, err
}

// each returns ids in their order, without duplicates.
func each(ids []string) (list []string) {
	seen := map[string]bool{}
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			list = append(list, id)
		}
	}
	return list
}

// Requirements, in addition to those of the action, for all accounts that a filter
// matches, and for all accounts of the service.
var (
	onMany      = operation{stepUp: true}
	onEverybody = operation{permission: permAll, stepUp: true}
)

// checkBulk checks the parameters of a request.
func (m *Admin) checkBulk(ctx context.Context, a *acting, p BulkParams) error {
	named := 0
	for _, given := range []bool{len(p.UserIDs) > 0, p.Filter != nil, p.SelectionID != ""} {
		if given {
			named++
		}
	}
	switch {
	case named != 1:
		return m.kit.Invalid("ids", "or filter, or selection_id, is required: one of them")
	case len(p.UserIDs) > maxBulk:
		return m.kit.Invalid("ids", fmt.Sprintf("are more than %d", maxBulk))
	case p.SelectionID != "" && (p.DryRun || p.BulkDetails != BulkDetails{}):
		return m.kit.Invalid("selection_id", "can be combined only with action; its dry run set the rest")
	case p.Filter != nil && !p.DryRun:
		return m.kit.Invalid("filter", "needs a dry run first: send it with dry_run, and then the selection_id of the answer")
	case p.Filter != nil:
		need := onMany
		if p.Filter.picksAll() {
			need = onEverybody
		}
		if err := m.allow(a, need); err != nil {
			return m.denied(ctx, &attempt{acting: a, record: m.recordOf(ctx, a, opBulk)}, err)
		}
	case p.SelectionID != "":
		return nil
	}
	if len(p.Reason) > maxReason {
		return m.kit.Invalid("reason", "is too long")
	}
	switch p.Action {
	case BulkBan, BulkDelete, BulkAnonymize:
		if err := m.reason(p.Reason); err != nil {
			return err
		}
		_, err := m.bannedUntil(p.Until)
		return err
	case BulkAddRole, BulkRemoveRole:
		switch {
		case p.Role == "":
			return m.kit.Invalid("role", "is required")
		case p.Role != auth.RoleOwner && find(a.roles, p.Role).Name == "" && p.Action == BulkAddRole:
			return noRole(p.Role)
		}
	case BulkSend:
		if p.Reason != "" {
			return m.kit.Invalid("reason", "cannot be combined with send")
		}
		if !slices.Contains([]LinkType{LinkVerify, LinkReset, LinkMagicLink, LinkCode, LinkInvite, LinkAccept}, p.Type) {
			return m.kit.Invalid("type", "has to be verify, reset, magic_link, invite, accept or code")
		}
	}
	return nil
}

// picksAll reports whether a filter matches every account.
func (f UserFilter) picksAll() bool {
	f.Sort, f.Order, f.Search = "", "", strings.TrimSpace(f.Search)
	if len(f.Metadata) == 0 {
		f.Metadata = nil
	}
	return reflect.DeepEqual(f, UserFilter{})
}

// doToEach carries out an action on accounts, or checks it in a dry run. It stops at an
// error that is an outage, or that would also fail the remaining accounts. It skips the
// actor's own account.
func (m *Admin) doToEach(ctx context.Context, who Actor, b bulkAction, p BulkParams, ids []string) ([]rowResult, error) {
	ctx = context.WithValue(ctx, withinKey{}, opBulk.pattern)
	list := make([]rowResult, 0, len(ids))
	a, err := m.resolve(ctx, who, opBulk)
	if err != nil {
		return list, err
	}
	for _, id := range ids {
		var err error
		switch {
		case a.own(id):
			err = auth.Reject(auth.CodeTargetStronger, "You cannot do this to your own account.")
		case p.DryRun:
			err = m.checkAction(ctx, who, b, p.BulkDetails, id)
		default:
			_, err = careful(m, func() (none struct{}, err error) { return none, b.do(m.onceFor(ctx, id), m, who, id, p.BulkDetails) })
		}
		r := rowResult{ID: id, Result: resultDone}
		switch {
		case ctx.Err() != nil:
			return list, m.kit.StoreError(ctx.Err())
		case stopsAll(err):
			return list, err
		case err != nil:
			r = r.withReason(err)
		}
		list = append(list, r)
	}
	return list, nil
}

// failRest adds a failed result for each remaining account after an error.
func failRest(list []rowResult, ids []string, err error) []rowResult {
	for _, id := range ids[len(list):] {
		list = append(list, rowResult{ID: id}.withReason(err))
	}
	return list
}

// stopsAll reports whether an error keeps the actor from the remaining accounts, too.
func stopsAll(err error) bool {
	var e *auth.Error
	if errors.As(err, &e) && e.Fields["Idempotency-Key"] != "" {
		return true
	}
	for _, code := range []auth.Code{auth.CodeSessionEnded, auth.CodeUserBanned, auth.CodeInvalidAPIKey, auth.CodeNotAdmin, auth.CodeMissingPermission, auth.CodeInsufficientAAL, auth.CodeReauthNeeded, auth.CodeUnavailable} {
		if errors.Is(err, code) {
			return true
		}
	}
	return false
}

// checkAction checks the requirements of an action, and changes nothing.
func (m *Admin) checkAction(ctx context.Context, who Actor, b bulkAction, d BulkDetails, id string) error {
	t, err := m.begin(ctx, who, b.op, id, auth.EventAdminDenied)
	if err == nil && b.check != nil {
		err = b.check(m, t, d)
	}
	return err
}

// bulkResult converts a list of results for Bulk.
func bulkResult(list []rowResult) BulkResult {
	res := BulkResult{Items: []BulkItem{}, Counts: tally(list)}
	for _, r := range list[:min(len(list), maxBulk)] {
		res.Items = append(res.Items, BulkItem{r.ID, r.Result, r.Code, r.Field, r.Message})
	}
	return res
}
