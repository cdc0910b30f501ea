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

	opAnonymize = operation{spends: true, byName: true, bodyless: true, pattern: "POST /users/{id}/anonymize", permission: PermUsersDelete, against: managing, stepUp: true, fails: []auth.Code{auth.CodeLastOwner, auth.CodePreconditionFailed}}

	personEndpoints = []endpoint{{opExportUser, reflect.TypeFor[none](), (*Admin).handleExportUser}, op(opAnonymize, (*Admin).AnonymizeUser)}
)

// ExportUser reads all data about an account, for its owner: the same as the owner's own
// export (auth.Export), including the rows of the audit log about the account. It omits
// other actors. The export is recorded before anything is read. Errors: CodeUserNotFound,
// CodeTargetStronger.
func (m *Admin) ExportUser(ctx context.Context, who Actor, userID string) (*auth.Export, error) {
	return carryOut(ctx, m, who, opExportUser, userID, auth.EventUserExported, func(t *attempt) (*auth.Export, error) {
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

// AnonymizeUserParams anonymize an account.
type AnonymizeUserParams struct {
	UserID   string `path:"id"`
	Reason   string `json:"reason"` // required; it stays in the audit log, so it must not name anybody
	Revision *int64 `header:"If-Match"`
}

// AnonymizeUser removes all personal data of an account permanently, and keeps its id, so
// that the application's references stay valid. It deletes the name, email address, phone
// number, metadata, identities, credentials, sessions, tokens and waiting messages. In
// the audit log the id replaces the account's labels. The IP addresses and user agents of
// the account's own events are deleted, too, except for a failed sign-in of the last
// second that another instance has not recorded yet. Rows about operations that the user
// carried out on other accounts, or on the service, keep the user's name and client,
// because they are the record of an operator's acts. Nobody can sign in to the account
// any more, and every operation except deletion fails with CodeUserNotFound. It cannot be
// undone. The application has to remove its own data about the person, see
// auth.EventUserAnonymized. Errors as for BanUser.
func (m *Admin) AnonymizeUser(ctx context.Context, who Actor, p AnonymizeUserParams) (auth.User, error) {
	if err := m.reason(p.Reason); err != nil {
		return auth.User{}, err
	}
	return carryOut(ctx, m, who, opAnonymize, p.UserID, auth.EventUserAnonymized, func(t *attempt) (auth.User, error) {
		if err := m.at(t, p.Revision); err != nil {
			return auth.User{}, err
		}
		t.keepReason(p.Reason)
		t.record.Target = t.target.ID
		t.unchanged(t.target.Anonymized())
		return m.kit.Anonymize(ctx, t.change, t.target, t.target.ID)
	})
}
