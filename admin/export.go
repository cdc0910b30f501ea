package admin

import (
	"context"
	"net/http"
	"reflect"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

var (
	opExportUser = operation{pattern: "GET /users/{id}/export", permission: PermUsersExport, against: managing, stepUp: true, self: true, recorded: true}

	opAnonymize = operation{bodyless: true, pattern: "POST /users/{id}/anonymize", permission: PermUsersDelete, against: managing, fails: []auth.Code{auth.CodeLastOwner, auth.CodePreconditionFailed}}

	personEndpoints = []endpoint{{opExportUser, reflect.TypeFor[none](), (*Admin).handleExportUser}, op(opAnonymize, (*Admin).AnonymizeUser)}
)

// ExportUser reads everything that is held about an account, for its owner: what they
// could export themselves (auth.Export), the rows of the audit log about them among it.
// Who else acted is left out. That it was exported is recorded before anything is
// read. Errors: CodeUserNotFound, CodeTargetStronger.
func (m *Admin) ExportUser(ctx context.Context, who Actor, userID string) (*auth.Export, error) {
	return carryOut(ctx, m, who, opExportUser, userID, auth.EventUserExported, func(t *turn) (*auth.Export, error) {
		if _, err := m.store.UpdateUser(ctx, store.UpdateUser{Change: t.change, UserID: t.target.ID}); err != nil {
			return nil, err
		}
		e, err := m.kit.Export(ctx, t.target.ID)
		export, _ := e.(*auth.Export)
		return export, err
	})
}

func (m *Admin) handleExportUser(who Actor, w http.ResponseWriter, r *http.Request) error {
	e, err := m.ExportUser(r.Context(), who, r.PathValue("id"))
	if err != nil {
		return err
	}
	return m.kit.WriteExport(w, r, e)
}

// AnonymizeUserParams make an account nobody's.
type AnonymizeUserParams struct {
	UserID   string `path:"id"`
	Reason   string `json:"reason"` // required; it stays in the audit log, so that it has to name nobody
	Revision *int64 `header:"If-Match"`
}

// AnonymizeUser removes whatever tells who an account was of, for good, and keeps its
// id, so that what the application keeps by it holds: name, addresses, metadata,
// identities, ways in, sessions, tokens and messages that wait go, and in the audit log
// the id takes the place of what people called them; addresses and user agents of the
// account's own doings go from there, too, but for a failed sign-in of the second before
// that another instance has still to record. Nobody signs in to it any more, and besides
// being deleted nothing can be done to it: CodeUserNotFound. It cannot be undone. What
// the application keeps of the person is the application's to remove, see
// auth.EventUserAnonymized. Errors as for BanUser.
func (m *Admin) AnonymizeUser(ctx context.Context, who Actor, p AnonymizeUserParams) (auth.User, error) {
	if err := m.reason(p.Reason); err != nil {
		return auth.User{}, err
	}
	return carryOut(ctx, m, who, opAnonymize, p.UserID, auth.EventUserAnonymized, func(t *turn) (auth.User, error) {
		if err := m.at(t, p.Revision); err != nil {
			return auth.User{}, err
		}
		t.keepReason(p.Reason)
		t.record.Target = t.target.ID
		return m.kit.Anonymize(ctx, t.change, t.target, t.target.ID)
	})
}
