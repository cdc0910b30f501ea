package admin

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

var (
	opExportUsers = operation{pattern: "GET /users/export", permission: PermUsersExport, stepUp: true, recorded: true, fails: []auth.Code{auth.CodeQueryTooBroad}}

	// opExportSecrets is required in addition to export a secret.
	opExportSecrets = operation{permission: PermCredentials, stepUp: true} // the strength against each account is checked row by row
)

// Fields of exported accounts that are exported only on request: the credentials.
const (
	FieldPasswordHash = "password_hash"
	FieldTOTPSecret   = "totp_secret" // base32, as auth.ImportUser takes it
	FieldUserHandle   = "user_handle" // of the passkeys
	FieldPasskeys     = "passkeys"    // a list of auth.PasskeyRecord; needs auth.WithPasskeys

	// fieldWithheld accompanies them: whether these fields of a row were withheld.
	fieldWithheld = "secrets_withheld"
)

// usersAtOnce is how many accounts an export reads at a time. Each page is checked and
// planned again.
const usersAtOnce = 1000

// ExportUsersParams pick the accounts and fields to export.
type ExportUsersParams struct {
	UserFilter

	Format string   `query:"format"` // FormatNDJSON if empty
	Fields []string `query:"fields"` // in this order; none: all except secrets
}

// onRequest returns the fields that are exported only on request.
func onRequest() []string {
	return []string{FieldPasswordHash, FieldTOTPSecret, FieldUserHandle, FieldPasskeys}
}

// secret reports whether Fields names a field of onRequest.
func (p *ExportUsersParams) secret() bool {
	return slices.ContainsFunc(onRequest(), func(f string) bool { return slices.Contains(p.Fields, f) })
}

// ExportUsers writes all accounts that match a filter, page by page, and so needs only a
// few megabytes of memory. FieldPasswordHash, FieldTOTPSecret, FieldUserHandle and
// FieldPasskeys are exported only if Fields names them, which also requires
// auth.credentials. They stay empty for the actor's own account and for accounts that the
// actor is not stronger than; the row reports that ("secrets_withheld"). This is checked for each row, and the actor's
// permissions are checked for each page. An account that changes during the export is
// written as it is when it is read.
//
// The export is recorded in the audit log before the first byte is written; if that
// fails, nothing is written. It ends when ctx or w does. Errors: CodeValidationFailed,
// CodeQueryTooBroad, those of every operation, and the error of w.
func (m *Admin) ExportUsers(ctx context.Context, who Actor, p ExportUsersParams, w io.Writer) error {
	q, err := m.cleanExport(&p)
	if err != nil {
		return err
	}
	_, err = carryOut(ctx, m, who, opExportUsers, "", auth.EventUsersExported, func(t *attempt) (struct{}, error) {
		if p.secret() {
			if err := m.allow(t.acting, opExportSecrets); err != nil {
				return struct{}{}, err
			}
		}
		t.changed("format", nil, p.Format)
		t.changed("fields", nil, p.Fields)
		for name, value := range filtersOfUsers(q) {
			t.changed(name, nil, value)
		}
		return struct{}{}, m.journal.AddEvents(ctx, []auth.Event{t.change.Events[0].Event})
	})
	if err != nil {
		return err
	}
	return m.writeUsersTo(ctx, who, p, q, w)
}

// cleanExport checks the parameters of an export, and fills in defaults.
func (m *Admin) cleanExport(p *ExportUsersParams) (q userSearch, err error) {
	if q, err = m.userSearch(p.UserFilter); err != nil {
		return q, err
	}
	if p.Format == "" {
		p.Format = FormatNDJSON
	}
	if !slices.Contains([]string{FormatNDJSON, FormatCSV}, p.Format) {
		return q, m.kit.Invalid("format", "has to be ndjson or csv")
	}
	if len(p.Fields) == 0 {
		p.Fields = exportedFields()
	}
	p.Fields = slices.Clone(p.Fields)
	known := append(exportedFields(), onRequest()...)
	for i, f := range p.Fields {
		if !slices.Contains(known, f) {
			return q, m.kit.Invalid("fields", "may be "+strings.Join(known, ", "))
		}
		if slices.Contains(p.Fields[:i], f) {
			return q, m.kit.Invalid("fields", "names one twice")
		}
		if f == FieldPasskeys && m.kit.PasskeyRPID() == "" {
			return q, m.kit.Invalid("fields", "names passkeys, which cannot be read: auth.WithPasskeys is missing")
		}
	}
	q.Limit = m.exportPage
	return q, m.kit.StoreError(q.Check())
}

// exportedPage is a page of accounts, or the error of reading it.
type exportedPage struct {
	users []store.UserRow
	more  *userSearch
	err   error
}

// exportedPage reads a page. more is the query for the next page; nil: this was the last.
func (m *Admin) exportedPage(ctx context.Context, p userSearch) (page exportedPage) {
	q, _, err := m.searchQuery(ctx, p)
	if err == nil {
		page.users, err = m.admin.ListUserRows(ctx, q)
	}
	if err != nil {
		page.err = m.kit.StoreError(err)
		return page
	}
	if n := len(page.users); n == q.Limit {
		q.After = q.Cursor(page.users[n-1].User)
		p.UserQuery, p.Search = q, ""
		page.more = &p
	}
	return page
}

// writeUsersTo writes page by page, and reads the next page at the same time. It never
// uses the store concurrently, because ctx may carry a transaction of the application.
func (m *Admin) writeUsersTo(ctx context.Context, who Actor, p ExportUsersParams, q userSearch, w io.Writer) error {
	fields := p.Fields
	if p.secret() {
		fields = append(slices.Clone(fields), fieldWithheld)
	}
	out := newUserWriter(fields, p.Format, w)
	if err := out.head(); err != nil {
		return err
	}
	ops := []operation{opExportUsers}
	if p.secret() {
		ops = append(ops, opExportSecrets)
	}
	page := m.exportedPage(ctx, q)
	var rows []exportedRow // of each page, one after the other
	for {
		if page.err != nil {
			return page.err
		}
		by, err := m.exporting(ctx, who, ops...) // after reading, so that a page is not written after the permission was lost
		if err != nil {
			return err
		}
		if rows, err = m.exportedRows(ctx, by, p, page.users, rows[:0]); err != nil {
			return err
		}
		next := make(chan exportedPage, 1)
		if page.more != nil {
			go func() { next <- m.exportedPage(ctx, *page.more) }()
		}
		err = out.page(rows)
		if page.more == nil {
			return err
		}
		if page = <-next; err != nil {
			return err
		}
	}
}

// exportedRows appends accounts as they are exported. It omits an account that it finds
// deleted.
func (m *Admin) exportedRows(ctx context.Context, by *acting, p ExportUsersParams, users []store.UserRow, rows []exportedRow) ([]exportedRow, error) {
	rows = slices.Grow(rows, len(users))
	for i := range users {
		u := &users[i]
		row := exportedRow{UserRow: u, status: m.status(&u.User)}
		if p.secret() {
			deleted, err := m.addSecrets(ctx, by, u.ID, &row, p.Fields)
			if err != nil {
				return nil, err
			}
			if deleted {
				continue
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// exporting checks for each page that the actor still has the permissions. Recent
// authentication that expires during the export is not required again.
func (m *Admin) exporting(ctx context.Context, who Actor, ops ...operation) (*acting, error) {
	a, err := m.resolve(ctx, who, ops[0])
	for _, op := range ops {
		if err == nil {
			err = m.allow(a, operation{permission: op.permission})
		}
	}
	return a, err
}

// addSecrets adds those of fields that are exported only on request, as far as the actor may
// export them, by the present permissions of the actor and of the account. deleted reports that the account no longer exists.
func (m *Admin) addSecrets(ctx context.Context, a *acting, id string, row *exportedRow, fields []string) (deleted bool, err error) {
	c, err := m.store.Credentials(ctx, store.ByID(id))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return true, nil
	case err != nil:
		return false, m.kit.StoreError(err)
	}
	row.withheld = a.own(id) || m.outranks(a, c.User, stronger) != nil
	if row.withheld {
		return false, nil
	}
	for _, f := range fields {
		switch f {
		case FieldPasswordHash:
			row.hash = c.PasswordHash
		case FieldTOTPSecret:
			row.totp, err = m.kit.TOTPSecret(ctx, id)
		case FieldUserHandle:
			row.handle = c.User.Handle
		case FieldPasskeys:
			row.passkeys, err = m.kit.PasskeyRecords(ctx, id)
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// filtersOfUsers returns the filters of a query for the audit log.
func filtersOfUsers(p userSearch) map[string]any {
	all := map[string]any{"q": p.Search, "id": p.ID, "email": p.Email, "phone": p.Phone, "provider": p.Provider, "subject": p.Subject, "prefix": p.Prefix, "domain": p.Domain, "role": p.Role, "sort": string(p.Sort)}
	for name, value := range all {
		if value == "" {
			delete(all, name)
		}
	}
	for name, flag := range map[string]*bool{"banned": p.Banned, "confirmed": p.Confirmed, "mfa": p.MFA, "password": p.Password} {
		if flag != nil {
			all[name] = *flag
		}
	}
	for name, at := range map[string]any{"created_from": timeOrNone(p.CreatedFrom), "created_to": timeOrNone(p.CreatedTo), "signed_in_from": timeOrNone(p.SignedInFrom), "signed_in_to": timeOrNone(p.SignedInTo)} {
		if at != nil {
			all[name] = at
		}
	}
	if len(p.IDs) > 0 {
		all["ids"] = p.IDs
	}
	if p.Waits || len(p.Waiting) > 0 {
		all["waiting"] = true
	}
	if len(p.Metadata) > 0 {
		all["metadata"] = p.Metadata
	}
	return all
}
