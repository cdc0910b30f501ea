package admin

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"io"
	"slices"
	"time"

	"github.com/authmount/auth"
)

// exportedRow is an account as it is exported.
type exportedRow struct {
	userView

	hash, totp *string
	withheld   bool // the secrets were
}

// exportedField is a field of exported accounts: a text, an instant, a flag, each of
// which may be null, or anything else that is JSON.
type exportedField struct {
	name string
	of   func(r *exportedRow) any
}

// allExported are all fields, in the order in which they are exported; the last ones
// only where they are named.
var allExported = []exportedField{
	{"id", func(r *exportedRow) any { return &r.ID }},
	{"email", func(r *exportedRow) any { return r.Email }},
	{"email_verified_at", func(r *exportedRow) any { return r.EmailVerifiedAt }},
	{"phone", func(r *exportedRow) any { return r.Phone }},
	{"phone_verified_at", func(r *exportedRow) any { return r.PhoneVerifiedAt }},
	{"full_name", func(r *exportedRow) any { return r.FullName }},
	{"status", func(r *exportedRow) any { return &r.Status }},
	{"roles", func(r *exportedRow) any { return r.Roles }},
	{"mfa_enabled", func(r *exportedRow) any { return r.MFAEnabled }},
	{"identities", func(r *exportedRow) any { return r.Identities }},
	{"user_metadata", func(r *exportedRow) any { return r.UserMetadata }},
	{"app_metadata", func(r *exportedRow) any { return r.AppMetadata }},
	{"created_at", func(r *exportedRow) any { return &r.CreatedAt }},
	{"updated_at", func(r *exportedRow) any { return &r.UpdatedAt }},
	{"last_sign_in_at", func(r *exportedRow) any { return r.LastSignInAt }},
	{"banned_until", func(r *exportedRow) any { return r.BannedUntil }},
	{FieldPasswordHash, func(r *exportedRow) any { return r.hash }},
	{FieldTOTPSecret, func(r *exportedRow) any { return r.totp }},
	{fieldWithheld, func(r *exportedRow) any { return r.withheld }},
}

// exportedFields are the columns of an export without secrets.
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
	before [][]byte // what an object has in front of each value
	table  *csv.Writer
	cells  []string
	line   []byte
	to     *bufio.Writer
}

func newUserWriter(names []string, format string, w io.Writer) *userWriter {
	o := &userWriter{to: bufio.NewWriterSize(w, 64<<10)}
	if format == FormatCSV {
		o.table = csv.NewWriter(o.to)
	}
	for i, name := range names {
		at := slices.IndexFunc(allExported, func(f exportedField) bool { return f.name == name })
		o.fields = append(o.fields, allExported[at])
		o.before = append(o.before, []byte(`,"`+name+`":`))
		if i == 0 {
			o.before[i][0] = '{'
		}
	}
	o.cells = make([]string, len(names))
	return o
}

// head writes the names of a table's columns.
func (o *userWriter) head() error {
	if o.table == nil {
		return nil
	}
	for i, f := range o.fields {
		o.cells[i] = f.name
	}
	return o.table.Write(o.cells)
}

// row writes an account.
func (o *userWriter) row(r *exportedRow) error {
	o.line = o.line[:0]
	for i, f := range o.fields {
		v := f.of(r)
		if o.table != nil {
			text, err := cellOf(v)
			if err != nil {
				return err
			}
			o.cells[i] = text
			continue
		}
		o.line = append(o.line, o.before[i]...)
		var err error
		if o.line, err = appendJSON(o.line, v); err != nil {
			return err
		}
	}
	if o.table != nil {
		return o.table.Write(o.cells)
	}
	_, err := o.to.Write(append(o.line, '}', '\n'))
	return err
}

// page writes accounts, and passes them on.
func (o *userWriter) page(rows []exportedRow) error {
	for i := range rows {
		if err := o.row(&rows[i]); err != nil {
			return err
		}
	}
	if o.table != nil {
		if o.table.Flush(); o.table.Error() != nil {
			return o.table.Error()
		}
	}
	return o.to.Flush()
}

// cellOf is a value as people write it in a table, and harmless: texts without quotes,
// nothing for null.
func cellOf(v any) (string, error) {
	switch v := v.(type) {
	case *string:
		if v == nil {
			return "", nil
		}
		return harmless(*v), nil
	case *time.Time:
		if v == nil {
			return "", nil
		}
		return v.Format(time.RFC3339Nano), nil
	}
	text, err := appendJSON(nil, v)
	return harmlessJSON(string(text)), err
}

// appendJSON appends a value as encoding/json writes it. Most are texts that need no
// escapes, instants, and nothing; none is a nil map or slice.
func appendJSON(to []byte, v any) ([]byte, error) {
	switch v := v.(type) {
	case *string:
		if v != nil && isPlain(*v) {
			return append(append(append(to, '"'), *v...), '"'), nil
		}
	case *time.Time:
		if v != nil {
			return append(v.AppendFormat(append(to, '"'), time.RFC3339Nano), '"'), nil
		}
	case bool:
		if v {
			return append(to, "true"...), nil
		}
		return append(to, "false"...), nil
	case map[string]any:
		if len(v) == 0 {
			return append(to, "{}"...), nil
		}
	case []auth.IdentityView:
		if len(v) == 0 {
			return append(to, "[]"...), nil
		}
	case []string:
		if len(v) == 0 {
			return append(to, "[]"...), nil
		}
	}
	text, err := json.Marshal(v)
	return append(to, text...), err
}

// isPlain tells whether a text is the same in JSON.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}
