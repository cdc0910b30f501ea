package admin

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// exportedRow is an exported account.
type exportedRow struct {
	*store.UserRow

	status     string
	hash, totp string
	handle     string
	passkeys   []auth.PasskeyRecord
	withheld   bool // the fields of onRequest were withheld
}

// exportedField is a field of exported accounts: a text or a time, which is null if it is
// empty, or any other JSON.
type exportedField struct {
	name  string
	text  func(r *exportedRow) string
	time  func(r *exportedRow) time.Time
	value func(to []byte, r *exportedRow) ([]byte, error)
}

// allExported are all fields, in the order of the export; the last ones are exported only
// on request.
var allExported = []exportedField{
	{name: "id", text: func(r *exportedRow) string { return r.ID }},
	{name: "email", text: func(r *exportedRow) string { return r.Email }},
	{name: "email_verified_at", time: func(r *exportedRow) time.Time { return r.EmailVerifiedAt }},
	{name: "phone", text: func(r *exportedRow) string { return r.Phone }},
	{name: "phone_verified_at", time: func(r *exportedRow) time.Time { return r.PhoneVerifiedAt }},
	{name: "full_name", text: func(r *exportedRow) string { return r.FullName }},
	{name: "status", text: func(r *exportedRow) string { return r.status }},
	{name: "roles", value: func(to []byte, r *exportedRow) ([]byte, error) { return appendTexts(to, r.Roles), nil }},
	{name: "mfa_enabled", value: func(to []byte, r *exportedRow) ([]byte, error) { return appendFlag(to, r.MFAEnabled), nil }},
	{name: "identities", value: func(to []byte, r *exportedRow) ([]byte, error) { return appendIdentities(to, r.Identities) }},
	{name: "user_metadata", value: func(to []byte, r *exportedRow) ([]byte, error) { return appendStored(to, r.UserMetadataJSON), nil }},
	{name: "app_metadata", value: func(to []byte, r *exportedRow) ([]byte, error) { return appendStored(to, r.AppMetadataJSON), nil }},
	{name: "created_at", time: func(r *exportedRow) time.Time { return r.CreatedAt }},
	{name: "updated_at", time: func(r *exportedRow) time.Time { return r.UpdatedAt }},
	{name: "last_sign_in_at", time: func(r *exportedRow) time.Time { return r.LastSignInAt }},
	{name: "banned_until", time: func(r *exportedRow) time.Time { return r.BannedUntil }},
	{name: FieldPasswordHash, text: func(r *exportedRow) string { return r.hash }},
	{name: FieldTOTPSecret, text: func(r *exportedRow) string { return r.totp }},
	{name: FieldUserHandle, text: func(r *exportedRow) string { return r.handle }},
	{name: FieldPasskeys, value: appendPasskeys},
	{name: fieldWithheld, value: func(to []byte, r *exportedRow) ([]byte, error) { return appendFlag(to, r.withheld), nil }},
}

// exportedFields returns the columns of an export without those of onRequest.
func exportedFields() []string {
	var names []string
	for _, f := range allExported {
		if f.name == FieldPasswordHash {
			break
		}
		names = append(names, f.name)
	}
	return names
}

// userWriter writes accounts as NDJSON or as a table.
type userWriter struct {
	fields []exportedField
	before [][]byte // the text before each value of an object
	table  bool
	line   []byte
	cell   []byte
	to     *bufio.Writer
}

func newUserWriter(names []string, format string, w io.Writer) *userWriter {
	o := &userWriter{to: bufio.NewWriterSize(w, 64<<10), table: format == FormatCSV}
	for i, name := range names {
		at := slices.IndexFunc(allExported, func(f exportedField) bool { return f.name == name })
		o.fields = append(o.fields, allExported[at])
		o.before = append(o.before, []byte(`,"`+name+`":`))
		if i == 0 {
			o.before[i][0] = '{'
		}
	}
	return o
}

// head writes the names of a table's columns.
func (o *userWriter) head() error {
	if !o.table {
		return nil
	}
	o.line = o.line[:0]
	for _, f := range o.fields {
		o.line = append(append(o.line, f.name...), ',')
	}
	return o.end("\n")
}

// end completes the line with the text end and writes it. In a table it replaces the last
// comma.
func (o *userWriter) end(with string) error {
	if o.table {
		o.line = o.line[:len(o.line)-1]
	}
	_, err := o.to.Write(append(o.line, with...))
	return err
}

// row writes an account as an object.
func (o *userWriter) row(r *exportedRow) error {
	o.line = o.line[:0]
	for i := range o.fields {
		o.line = append(o.line, o.before[i]...)
		var err error
		switch f := &o.fields[i]; {
		case f.text != nil:
			o.line = appendText(o.line, f.text(r))
		case f.time != nil:
			if t := f.time(r); t.IsZero() {
				o.line = append(o.line, "null"...)
			} else {
				o.line = append(appendTime(append(o.line, '"'), t), '"')
			}
		default:
			o.line, err = f.value(o.line, r)
		}
		if err != nil {
			return err
		}
	}
	return o.end("}\n")
}

// cells writes an account as a line of a table, with formulas made harmless, texts
// without JSON quotes, and nothing for null.
func (o *userWriter) cells(r *exportedRow) error {
	o.line = o.line[:0]
	for i := range o.fields {
		switch f := &o.fields[i]; {
		case f.text != nil:
			o.line = appendCell(o.line, escapeFormulas(f.text(r)))
		case f.time != nil:
			if t := f.time(r); !t.IsZero() {
				o.line = appendTime(o.line, t)
			}
		default:
			var err error
			if o.cell, err = f.value(o.cell[:0], r); err != nil {
				return err
			}
			if suspicious(o.cell) {
				o.line = appendCell(o.line, escapeFormulasJSON(string(o.cell)))
			} else {
				o.line = appendCell(o.line, o.cell)
			}
		}
		o.line = append(o.line, ',')
	}
	return o.end("\n")
}

// page writes accounts, and flushes them.
func (o *userWriter) page(rows []exportedRow) error {
	write := o.row
	if o.table {
		write = o.cells
	}
	for i := range rows {
		if err := write(&rows[i]); err != nil {
			return err
		}
	}
	return o.to.Flush()
}

// appendTime appends a time in the form of the wire.
func appendTime(to []byte, t time.Time) []byte {
	return t.UTC().Truncate(time.Microsecond).AppendFormat(to, time.RFC3339Nano)
}

// appendIdentities appends identities in the form of the wire.
func appendIdentities(to []byte, list []auth.Identity) ([]byte, error) {
	if len(list) == 0 {
		return append(to, "[]"...), nil
	}
	text, err := json.Marshal(auth.ViewOf(auth.User{Identities: list}).Identities)
	return append(to, text...), err
}

// appendPasskeys appends the passkeys of an account in the form of the wire.
func appendPasskeys(to []byte, r *exportedRow) ([]byte, error) {
	if len(r.passkeys) == 0 {
		return append(to, "[]"...), nil
	}
	text, err := json.Marshal(r.passkeys)
	return append(to, text...), err
}
