package admin

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// strength is the part of a target's permissions that the actor has to hold, too.
type strength int

const (
	anybody   strength = iota // none: there is no target, or the operation only reads
	managing                  // Authmount's own permissions and privileged ones
	stronger                  // all permissions, and at least one more: the operation gives a way to sign in as the target
	atLeastAs                 // all permissions: the operation changes them
)

// operation is one row of the table of operations. It lists the requirements for every
// actor, over HTTP and in Go.
type operation struct {
	pattern    string   // below /admin
	permission string   // empty: any admin
	also       string   // a second permission that it needs; empty: none
	against    strength // required against the target
	adds       bool     // it may add or replace a sign-in method of the target, see mayAdd
	stepUp     bool     // it needs recent authentication (15 minutes) of a person
	byName     bool     // a key needs its permission among its scopes by name, not by a pattern
	self       bool     // an actor may do it to the actor's own account
	skips      bool     // it has several targets, and skips those that are too strong
	recorded   bool     // it only reads, but is recorded in the audit log like a change
	streams    bool     // its body is read as a stream
	secret     bool     // it returns a secret, which a repeated request does not get again
	bodyless   bool     // its body is optional
	spends     bool     // it always counts against the hourly budget of accounts; others count by their changes (see updateTarget)
	strict     bool     // it rejects a query string, although it takes no query parameter
	created    int      // the status of its answer; 0: 200, or 204 without a body

	fails []auth.Code // further error codes
}

// reads reports whether the operation changes nothing.
func (o operation) reads() bool { return strings.HasPrefix(o.pattern, "GET ") && !o.recorded }

// revisable reports whether the operation changes something that exists, so that a
// request may name the revision that it saw.
func (o operation) revisable() bool {
	method, _, _ := strings.Cut(o.pattern, " ")
	return slices.Contains([]string{http.MethodPatch, http.MethodPut, http.MethodDelete}, method)
}

// forKeys reports whether a secret key can have the permission of the operation.
func (o operation) forKeys() bool { return !slices.Contains(notForKeys(), o.permission) }

// allow checks the requirements of an operation for an actor. Errors: CodeNotAdmin,
// CodeMissingPermission, CodeInsufficientAAL, CodeReauthNeeded.
func (m *Admin) allow(a *acting, op operation) error {
	switch {
	case a.system():
		return nil
	case !m.permissions.admits(a.permissions):
		return m.fail(auth.CodeNotAdmin, nil)
	case op.permission != "" && !a.may(op.permission):
		return m.missing(a, op.permission)
	case op.also != "" && !a.may(op.also):
		return m.missing(a, op.also)
	case a.key != nil: // a program cannot authenticate again, so its creator must have meant this operation
		if op.byName && !slices.Contains(a.key.Scopes, op.permission) {
			return m.missing(a, op.permission)
		}
		return nil
	case m.factorMissing(a):
		return m.fail(auth.CodeInsufficientAAL, nil)
	case op.stepUp && !a.inJob && !m.recentlyAuthenticated(a):
		return m.fail(auth.CodeReauthNeeded, nil)
	}
	return nil
}

// noteAllowed records that the actor of a request may do its operation.
func noteAllowed(ctx context.Context) {
	if allowed, ok := ctx.Value(allowedKey{}).(*atomic.Bool); ok {
		allowed.Store(true)
	}
}

// factorMissing reports whether the actor has to show a second factor first. Where
// everybody needs one, a session that showed a factor is refused once the account has
// none.
func (m *Admin) factorMissing(a *acting) bool {
	has := a.user == nil || a.user.MFAEnabled
	needed := m.requireMFA || a.user != nil && has
	return needed && (a.aal() != store.LevelAAL2 || !has)
}

// missing is the error for a permission that the actor lacks, or for a scope of its key.
func (m *Admin) missing(a *acting, permission string) error {
	err := m.fail(auth.CodeMissingPermission, nil)
	err.Permission = permission
	switch {
	case a.key == nil:
	case slices.Contains(notForKeys(), permission):
		err.Message = "No key may have the permission " + permission + "."
	case !a.may(permission) && grants(m.permissions.forKeys(a.key.Scopes), permission):
		err.Message = "The creator of the key lacks the permission " + permission + "."
	default:
		err.Message = "The key lacks the scope " + permission + "."
	}
	return err
}

// outranks checks that the actor has the required strength against the target. Errors:
// CodeTargetStronger.
func (m *Admin) outranks(a *acting, target auth.User, against strength) error {
	if a.system() || a.is(target.ID) {
		return nil
	}
	theirs := m.strengthIn(a.roles, target.Roles)
	enough := true
	switch against {
	case managing:
		enough = covers(a.permissions, m.permissions.managing(theirs))
	case stronger:
		enough = covers(a.permissions, theirs) && (grants(a.permissions, permAll) || !covers(theirs, a.permissions))
	case atLeastAs:
		enough = covers(a.permissions, theirs)
	}
	if !enough {
		return m.fail(auth.CodeTargetStronger, nil)
	}
	return nil
}

// mayAdd checks whether the actor may add or replace sign-in methods of the target. Once
// its holder has accepted permissions of an operator, only people with "*" may, besides the
// holder, because nobody else may sign in with these permissions. Errors:
// CodeTargetStronger.
func (m *Admin) mayAdd(a *acting, target auth.User, op operation) error {
	if op.adds && target.Accepted(m.kit.Now()) && !a.system() && !a.is(target.ID) && (a.key != nil || !a.may(permAll)) {
		return m.fail(auth.CodeTargetStronger, nil)
	}
	return nil
}

// attempt is one attempt at an operation that changes something.
type attempt struct {
	*acting
	target auth.User    // zero: there is no target account
	change store.Change // passed to the store
	record *store.Record
	ended  []string     // the sessions that it revoked, for the hooks; filled in from the store
	dry    bool         // it was only checked: nothing was changed
	spent  []store.Draw // counted against the budgets of the actor, for a refund
}

// attempts limits how often an operation is decided again.
const attempts = 20

// carryOut runs every operation that changes something. It reads the actor and the target
// account (targetID, which may be empty), checks the requirements of the operation, and
// calls do. do decides and calls the store with the attempt's change, which contains all of
// these checks as conditions, and the row of the audit log. If a condition no longer
// holds (store.ErrStale), carryOut reads and decides again.
func carryOut[T any](ctx context.Context, m *Admin, who Actor, op operation, targetID string, what auth.EventType, do func(t *attempt) (T, error)) (T, error) {
	var none T
	for range attempts {
		var v T
		t, err := m.begin(ctx, who, op, targetID, what)
		if err == nil && op.spends {
			err = m.spend(ctx, t)
		}
		if err == nil {
			if v, err = do(t); err != nil || t.dry {
				m.refund(ctx, t)
			}
		}
		var refused *auth.Error
		var again *store.RepeatedError
		switch {
		case err == nil:
			if !t.dry {
				m.kit.Committed(ctx, t.change, func(e *auth.Event) { e.SessionIDs = t.ended })
			}
			return v, nil
		case errors.As(err, &again):
			return repeated[T](ctx, m, op, targetID, again)
		case errors.As(err, &refused): // also if it wraps one of the errors below
		case errors.Is(err, store.ErrStale), errors.Is(err, store.ErrKeyEnded): // a key that has changed may still be valid
			continue
		default:
			err = m.failed(err)
		}
		if !outage(ctx, err) {
			switch done := m.wasDoneInJob(ctx); {
			case errors.As(done, &again):
				return repeated[T](ctx, m, op, targetID, again)
			case done != nil:
				return none, m.failed(done)
			}
		}
		if refused != nil {
			err = m.denied(ctx, t, err)
		}
		return none, err
	}
	return none, m.kit.Busy(store.ErrStale)
}

// withinKey is the context key for the pattern of the outer operation.
type withinKey struct{}

// recordOf returns a new row of the audit log.
func (m *Admin) recordOf(ctx context.Context, a *acting, op operation) *store.Record {
	r := &store.Record{Actor: a.label, Operation: op.pattern}
	r.RequestID, r.ServerID = m.kit.RequestIDs(ctx)
	if within, ok := ctx.Value(withinKey{}).(string); ok {
		r.Operation = within
	}
	return r
}

// begin reads the actor and the target, and checks the requirements of an operation.
func (m *Admin) begin(ctx context.Context, who Actor, op operation, targetID string, what auth.EventType) (*attempt, error) {
	a, err := m.resolve(ctx, who, op)
	if err != nil {
		return nil, err
	}
	t := &attempt{acting: a, record: m.recordOf(ctx, a, op)}
	if err := m.allow(a, op); err != nil {
		return t, err
	}
	noteAllowed(ctx)
	if o, _ := ctx.Value(requestKey{}).(*once); o == nil || !o.asks {
		if err := m.wasDone(ctx, a); err != nil {
			return t, err
		}
	}
	if targetID != "" {
		t.target, err = m.store.User(ctx, store.ByID(targetID))
		if err != nil {
			return t, m.notFound(err)
		}
		targetID = t.target.ID // an id may be written in more than one form
		if t.target.Anonymized() && op.permission != PermUsersDelete {
			return t, m.fail(auth.CodeUserNotFound, nil) // the account has no owner any more, and gets none again
		}
		t.record.Target = labelOf(t.target)
		if a.own(targetID) && !op.self {
			return t, auth.Reject(auth.CodeTargetStronger, "You cannot do this to your own account.")
		}
		if err := m.outranks(a, t.target, op.against); err != nil {
			return t, err
		}
		if err := m.mayAdd(a, t.target, op); err != nil {
			return t, err
		}
	}
	t.change = m.kit.ChangeOf(ctx, a.by, t.target, store.OutcomeEvent{On: store.OutcomeDone, Event: auth.Event{Type: what, UserID: t.target.ID, Record: t.record}})
	t.change.IfRoles = &a.roles.Revision
	t.change.KeepOwner = slices.Contains(t.target.Roles, auth.RoleOwner) && t.target.Accepted(t.change.Now) // the last owner is protected by every change
	t.change.Idempotency = m.idempotency(ctx, a)
	if a.user != nil {
		t.change.IfUsers = append(t.change.IfUsers, auth.UserAt{ID: a.user.ID, CredentialRevision: &a.user.CredentialRevision})
	}
	if a.creator != nil {
		t.change.IfUsers = append(t.change.IfUsers, auth.UserAt{ID: a.creator.ID, CredentialRevision: &a.creator.CredentialRevision, Banned: ptr(false)})
	}
	if targetID != "" && !a.own(targetID) {
		t.change.IfUsers = append(t.change.IfUsers, auth.UserAt{ID: t.target.ID, CredentialRevision: &t.target.CredentialRevision})
	}
	return t, nil
}

// at adds the condition that the target still has the revision that the caller saw.
// Errors: CodePreconditionFailed.
func (m *Admin) at(t *attempt, revision *int64) error {
	if revision == nil {
		return nil
	}
	if *revision != t.target.Revision {
		return m.fail(auth.CodePreconditionFailed, nil)
	}
	t.change.IfUsers = append(t.change.IfUsers, auth.UserAt{ID: t.target.ID, Revision: revision})
	return nil
}

// setReason stores the reason that the actor gave, if any. Errors: CodeValidationFailed.
func (m *Admin) setReason(t *attempt, reason string) error {
	if len(reason) > maxReason {
		return m.kit.Invalid("reason", "is too long")
	}
	t.keepReason(reason)
	return nil
}

// keepReason stores a reason that was already checked.
func (t *attempt) keepReason(reason string) { t.change.Events[0].Event.Reason = reason }

// changed records the change of a field in the audit log.
func (t *attempt) changed(field string, before, after any) {
	if t.record.Changes == nil {
		t.record.Changes = map[string]store.FieldChange{}
	}
	t.record.Changes[field] = store.FieldChange{Before: before, After: after}
}

// unchanged drops the row of the audit log if the operation changes nothing: otherwise its
// repetitions would fill the log, and in memory push out all other rows. It reports whether
// there is nothing to write. A change with an Idempotency-Key is written all the same,
// because it stores the key.
func (t *attempt) unchanged(same bool) (skip bool) {
	if !same || len(t.change.Events) != 1 { // with others, such as of a verified address, it has an effect
		return false
	}
	t.change.Events = nil
	return t.change.Idempotency == nil
}

// failed converts an error of the store into the error for callers.
func (m *Admin) failed(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return m.notFound(err)
	}
	return m.kit.StoreError(err)
}

func (m *Admin) notFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return m.fail(auth.CodeUserNotFound, err)
	}
	return m.kit.StoreError(err)
}

// denied records in the background that an operation was refused, because a refusal does
// not depend on the audit log.
func (m *Admin) denied(ctx context.Context, t *attempt, err error) error {
	if t == nil {
		return err
	}
	var refused *auth.Error
	if errors.As(err, &refused) && refused.Status < 500 {
		t.record.Denied = true
		m.kit.Emit(ctx, t.by, auth.Event{Type: auth.EventAdminDenied, UserID: t.target.ID, Err: err, Record: t.record})
	}
	return err
}

// defaultPage and maxPage are the numbers of rows in a page of a list.
const (
	defaultPage = 50
	maxPage     = 200
)

func pageSize(n int) int {
	if n <= 0 {
		return defaultPage
	}
	return min(n, maxPage)
}
