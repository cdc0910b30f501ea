package admin

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/authmount/auth"
)

var (
	opExportUsers = operation{pattern: "GET /users/export", permission: PermUsersExport, stepUp: true, recorded: true, fails: []auth.Code{auth.CodeQueryTooBroad}}

	// What naming a secret asks for, besides.
	opExportSecrets = operation{permission: PermCredentials, stepUp: true} // of whom, is judged row by row
)

// Fields of exported accounts that are named to be exported at all.
const (
	FieldPasswordHash = "password_hash"
	FieldTOTPSecret   = "totp_secret" // base32, as auth.ImportUser takes it

	// fieldWithheld comes with them: whether the secrets of a row were held back.
	fieldWithheld = "secrets_withheld"
)

// exportedFields are the columns of an export without secrets.
func exportedFields() []string {
	return []string{"id", "email", "email_verified_at", "phone", "phone_verified_at", "full_name", "status", "roles", "mfa_enabled",
		"identities", "user_metadata", "app_metadata", "created_at", "updated_at", "last_sign_in_at", "banned_until"}
}

// ExportUsersParams pick what to export.
type ExportUsersParams struct {
	ListUsersParams // Limit, After and Count do not count

	Format string   // FormatNDJSON if empty
	Fields []string // in this order; none: all but secrets

}

// secrets are the secrets that are named.
func (p *ExportUsersParams) secrets() (hash, totp bool) {
	return slices.Contains(p.Fields, FieldPasswordHash), slices.Contains(p.Fields, FieldTOTPSecret)
}

// ExportUsers writes all accounts that a query picks, page by page, and so in a few
// hundred kilobytes of memory. FieldPasswordHash and FieldTOTPSecret are exported only
// where Fields names them, which needs auth.credentials, too; of accounts that the actor
// is not stronger than, and of the actor's own, they stay empty, and the row says so
// ("secrets_withheld"). That is judged for each row, and what the actor may do anew for
// each page. Accounts that change while it goes on come as they are when they are read.
//
// The export is in the audit log before the first byte is written: if that cannot be,
// nothing is. It ends when ctx or w does. Errors: CodeValidationFailed,
// CodeQueryTooBroad, those of every operation, and what w returned.
func (m *Admin) ExportUsers(ctx context.Context, who Actor, p ExportUsersParams, w io.Writer) error {
	if err := m.cleanExport(&p); err != nil {
		return err
	}
	_, err := carryOut(ctx, m, who, opExportUsers, "", auth.EventUsersExported, func(t *turn) (struct{}, error) {
		if hash, totp := p.secrets(); hash || totp {
			if err := m.allow(t.acting, opExportSecrets); err != nil {
				return struct{}{}, err
			}
		}
		t.changed("format", nil, p.Format)
		t.changed("fields", nil, p.Fields)
		for name, value := range filtersOfUsers(p.ListUsersParams) {
			t.changed(name, nil, value)
		}
		return struct{}{}, m.events.AddEvents(ctx, []auth.Event{t.change.Events[0].Event})
	})
	if err != nil {
		return err
	}
	return m.writeUsersTo(ctx, who, p, w)
}

// cleanExport judges what is to be exported, and fills in what follows from it.
func (m *Admin) cleanExport(p *ExportUsersParams) error {
	if p.Format == "" {
		p.Format = FormatNDJSON
	}
	if !slices.Contains([]string{FormatNDJSON, FormatCSV}, p.Format) {
		return m.kit.Invalid("format", "has to be ndjson or csv")
	}
	if len(p.Fields) == 0 {
		p.Fields = exportedFields()
	}
	p.Fields = slices.Clone(p.Fields)
	known := append(exportedFields(), FieldPasswordHash, FieldTOTPSecret)
	for i, f := range p.Fields {
		if !slices.Contains(known, f) {
			return m.kit.Invalid("fields", "may be "+strings.Join(known, ", "))
		}
		if slices.Contains(p.Fields[:i], f) {
			return m.kit.Invalid("fields", "names one twice")
		}
	}
	p.Limit, p.After, p.Count = maxPage, nil, false
	if p.Now.IsZero() {
		p.Now = m.kit.Now()
	}
	return p.Check()
}

// writeUsersTo writes page by page.
func (m *Admin) writeUsersTo(ctx context.Context, who Actor, p ExportUsersParams, w io.Writer) error {
	out := &userWriter{fields: p.Fields, csv: p.Format == FormatCSV, to: bufio.NewWriterSize(w, 64<<10)}
	hash, totp := p.secrets()
	if hash || totp {
		out.fields = append(slices.Clone(p.Fields), fieldWithheld)
	}
	if err := out.head(); err != nil {
		return err
	}
	for {
		a, err := m.exporting(ctx, who, hash || totp)
		if err != nil {
			return err
		}
		page, err := m.listUsers(ctx, p.ListUsersParams)
		if err != nil {
			return err
		}
		for _, u := range page.Users {
			row := m.exported(u)
			if hash || totp {
				gone, err := m.addSecrets(ctx, a, u.ID, row, hash, totp)
				if err != nil {
					return err
				}
				if gone {
					continue
				}
			}
			if err := out.row(row); err != nil {
				return err
			}
		}
		if err := out.to.Flush(); err != nil || page.Next == nil {
			return err
		}
		p.UserQuery, p.Search = *page.Next, ""
	}
}

// exporting judges whether the actor may still export: a proof that has become too old
// meanwhile is none too few.
func (m *Admin) exporting(ctx context.Context, who Actor, secrets bool) (*acting, error) {
	a, err := m.resolve(ctx, who)
	if err == nil {
		err = m.allow(a, operation{permission: opExportUsers.permission})
	}
	if err == nil && secrets {
		err = m.allow(a, operation{permission: opExportSecrets.permission})
	}
	return a, err
}

// exported is an account, by the names of its fields.
func (m *Admin) exported(u auth.User) map[string]any {
	v := m.view(u)
	return map[string]any{
		"id": v.ID, "email": v.Email, "email_verified_at": v.EmailVerifiedAt, "phone": v.Phone, "phone_verified_at": v.PhoneVerifiedAt,
		"full_name": v.FullName, "status": v.Status, "roles": v.Roles, "mfa_enabled": v.MFAEnabled, "identities": v.Identities,
		"user_metadata": v.UserMetadata, "app_metadata": v.AppMetadata, "created_at": v.CreatedAt, "updated_at": v.UpdatedAt,
		"last_sign_in_at": v.LastSignInAt, "banned_until": v.BannedUntil,
	}
}

// addSecrets adds the secrets that the actor may take along, as they and whoever has
// them are now. gone: there is no such account any more.
func (m *Admin) addSecrets(ctx context.Context, a *acting, id string, row map[string]any, hash, totp bool) (gone bool, err error) {
	c, err := m.store.Credentials(ctx, auth.ByID(id))
	switch {
	case errors.Is(err, auth.ErrNotFound):
		return true, nil
	case err != nil:
		return false, m.kit.StoreError(err)
	}
	withheld := a.own(id) || m.outranks(a, c.User, stronger) != nil
	row[FieldPasswordHash], row[FieldTOTPSecret], row[fieldWithheld] = nil, nil, withheld
	if withheld {
		return false, nil
	}
	if hash {
		row[FieldPasswordHash] = optional(c.PasswordHash)
	}
	if totp {
		secret, err := m.kit.TOTPSecret(ctx, id)
		if err != nil {
			return false, err
		}
		row[FieldTOTPSecret] = optional(secret)
	}
	return false, nil
}

// userWriter writes accounts as NDJSON or as a table.
type userWriter struct {
	fields []string
	csv    bool
	to     *bufio.Writer
}

func (o *userWriter) head() error {
	if !o.csv {
		return nil
	}
	return o.cells(o.fields)
}

func (o *userWriter) cells(row []string) error {
	w := csv.NewWriter(o.to)
	if err := w.Write(row); err != nil {
		return err
	}
	w.Flush()
	return w.Error()
}

// row writes the fields that are asked for, in their order.
func (o *userWriter) row(of map[string]any) error {
	texts := make([]string, len(o.fields))
	for i, f := range o.fields {
		text, err := json.Marshal(of[f])
		if err != nil {
			return err
		}
		texts[i] = string(text)
	}
	if !o.csv {
		for i, f := range o.fields {
			texts[i] = fmt.Sprintf("%q:%s", f, texts[i])
		}
		_, err := o.to.WriteString("{" + strings.Join(texts, ",") + "}\n")
		return err
	}
	for i, text := range texts {
		texts[i] = harmless(cell(text))
	}
	return o.cells(texts)
}

// cell is a value of JSON as people write it in a table: texts without quotes, nothing
// for null.
func cell(text string) string {
	var s string
	switch {
	case text == "null":
		return ""
	case json.Unmarshal([]byte(text), &s) == nil:
		return s
	}
	return text
}

// filtersOfUsers are the filters of a query, as the audit log has them.
func filtersOfUsers(p ListUsersParams) map[string]any {
	all := map[string]any{"q": p.Search, "id": p.ID, "email": p.Email, "phone": p.Phone, "provider": p.Provider, "subject": p.Subject, "prefix": p.Prefix, "role": p.Role, "sort": string(p.Sort)}
	for name, value := range all {
		if value == "" {
			delete(all, name)
		}
	}
	for name, flag := range map[string]*bool{"banned": p.Banned, "confirmed": p.Confirmed, "mfa": p.MFA} {
		if flag != nil {
			all[name] = *flag
		}
	}
	for name, at := range map[string]any{"created_from": timeOrNone(p.CreatedFrom), "created_to": timeOrNone(p.CreatedTo), "signed_in_from": timeOrNone(p.SignedInFrom), "signed_in_to": timeOrNone(p.SignedInTo)} {
		if at != nil {
			all[name] = at
		}
	}
	if len(p.Metadata) > 0 {
		all["metadata"] = p.Metadata
	}
	return all
}
