package authclient

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/url"
	"time"
)

// Operations on many accounts, from the admin side.

// BulkParams are of Admin.Bulk.
type BulkParams struct {
	Action      string         `json:"action"`
	DryRun      bool           `json:"dry_run,omitempty"`
	Filter      map[string]any `json:"filter,omitempty"` // The filters of GET /admin/users, by name.
	IDs         []string       `json:"ids,omitempty"`
	Reason      string         `json:"reason,omitempty"`
	RedirectTo  string         `json:"redirect_to,omitempty"`
	Role        string         `json:"role,omitempty"`         // Of add_role and remove_role.
	SelectionID string         `json:"selection_id,omitempty"` // Of a dry run; only action goes with it.
	Type        string         `json:"type,omitempty"`         // Of send.
	Until       *time.Time     `json:"until,omitempty"`        // Of a ban; absent: for ever.
}

// BulkResult is what Admin.Bulk returns.
type BulkResult struct {
	Done        int         `json:"done"`
	DryRun      bool        `json:"dry_run"`
	ExpiresAt   *time.Time  `json:"expires_at"`
	Failed      int         `json:"failed"`
	Results     []RowResult `json:"results"`
	SelectionID *string     `json:"selection_id"`
	Skipped     int         `json:"skipped"`
	JobID       string      `json:"job_id"` // of what goes on behind the caller; empty: all of it was done
}

// RowResult is what came of one account.
type RowResult struct {
	ID      string `json:"id"`   // Of the account.
	Code    string `json:"code"` // Why it was not done, as of errors.
	Field   string `json:"field"`
	Message string `json:"message"`
	Result  string `json:"result"` // skipped: one may not do it to this account, or it was there.
	Row     int    `json:"row"`    // Of an import: the line, from 1.
}

// Bulk is POST /users/bulk: do something to many accounts. To those of ids, one after the
// other: one that may not be touched is skipped, and one that fails keeps no other from it.
// Or to those that a filter picks, up to 10,000: with dry_run first, which says of each
// what would come of it and returns a selection; with its id it is done behind the caller's
// back, to these accounts and no others. A filter needs a proof of the last 15 minutes, and
// one that picks everybody is for those who may do everything. Needs what the action's own
// operation needs, and its permission.
func (a *Admin) Bulk(ctx context.Context, p BulkParams, opts ...CallOption) (*BulkResult, error) {
	return run[BulkResult](ctx, a, a.prepared("POST", "/users/bulk", p, opts))
}

// ExportQuery picks what Admin.ExportUsers returns; what is empty picks nothing out.
type ExportQuery struct {
	CreatedFrom  time.Time         `query:"created_from"`
	CreatedTo    time.Time         `query:"created_to"` // Exclusive.
	Email        string            `query:"email"`      // The whole address, whatever its case.
	Fields       []string          `query:"fields"`     // Which, with commas between them: id, email, email_verified_at, phone, phone_verified_at, full_name, status, roles, mfa_enabled, identities, user_metadata, app_metadata, created_at, updated_at, last_sign_in_at, banned_until, password_hash, totp_secret. Absent: all but the last two.
	Format       Format            `query:"format"`     // ndjson: one object a line. csv: with a line of names, lists and objects as JSON; a cell that begins with =, +, -, @, a tab or a carriage return has an apostrophe before it. One of "ndjson", "csv".
	MFA          *bool             `query:"mfa"`
	Order        string            `query:"order"` // One of "asc", "desc".
	Phone        string            `query:"phone"`
	Provider     string            `query:"provider"` // There is an identity of it.
	Q            string            `query:"q"`        // An id, or a whole address or number that somebody has, or else what an address or name begins with; matched tells which.
	Role         string            `query:"role"`
	SignedInFrom time.Time         `query:"signed_in_from"`
	SignedInTo   time.Time         `query:"signed_in_to"` // Exclusive.
	Sort         string            `query:"sort"`         // One of "created_at", "last_sign_in_at", "email".
	Status       string            `query:"status"`       // invited: those of the unconfirmed who have no password, so that nothing but a link that is mailed lets them in; they are shown as unconfirmed. One of "active", "banned", "unconfirmed", "invited".
	Subject      string            `query:"subject"`      // With provider: this one.
	Metadata     map[string]string `query:"metadata."`    // Members of app_metadata.
}

// ExportUsers is GET /users/export: export accounts. All accounts that the filters of GET
// /admin/users pick, as they are when they are read. password_hash and totp_secret come
// only where fields names them, which needs auth.credentials, too; of accounts that one is
// not stronger than, and of one's own, they stay empty, and secrets_withheld is true. The
// export is in the audit log itself. A connection that breaks off means that the rest is
// missing. Needs a proof of the last 15 minutes. Permission: auth.users.export. The caller
// closes the stream; Rows reads it.
func (a *Admin) ExportUsers(ctx context.Context, q ExportQuery, opts ...CallOption) (io.ReadCloser, error) {
	k := a.prepared("GET", "/users/export", nil, opts)
	k.query = queryOf(q)
	return a.stream(ctx, k, q.Format.mediaType())
}

// Job is work that goes on by itself.
type Job struct {
	ID         string     `json:"id"`
	CreatedAt  time.Time  `json:"created_at"`
	Done       int        `json:"done"`
	ExpiresAt  time.Time  `json:"expires_at"` // Until then it can be begun, or its results can be read.
	Failed     int        `json:"failed"`
	FinishedAt *time.Time `json:"finished_at"`
	Kind       string     `json:"kind"`
	Rows       int        `json:"rows"`
	Skipped    int        `json:"skipped"`
	State      string     `json:"state"` // receiving: it is not begun.
}

// Job is GET /jobs/{id}: how far a job is. Goes on whatever becomes of the process that is
// at it, in the name and with the permissions of who began it, while they are signed in.
// The permission of what it does.
func (a *Admin) Job(ctx context.Context, id string, opts ...CallOption) (*Job, error) {
	return run[Job](ctx, a, a.prepared("GET", "/jobs/"+segment(id), nil, opts))
}

// JobResults is GET /jobs/{id}/results: what came of each row of a job. Of those that are
// done, in their order: an AdminRowResult a line. The permission of what it does.
func (a *Admin) JobResults(ctx context.Context, id string, opts ...CallOption) iter.Seq2[RowResult, error] {
	return func(yield func(RowResult, error) bool) {
		r, err := a.stream(ctx, a.prepared("GET", "/jobs/"+segment(id)+"/results", nil, opts), NDJSON.mediaType())
		if err != nil {
			yield(RowResult{}, err)
			return
		}
		Rows[RowResult](r)(yield)
	}
}

// ImportRow is one account of Admin.ImportUsers.
type ImportRow struct {
	ID              string               `json:"id,omitempty"` // Any UUID; absent: a new one.
	AppMetadata     map[string]any       `json:"app_metadata,omitempty"`
	BannedUntil     time.Time            `json:"banned_until,omitzero"`
	CreatedAt       time.Time            `json:"created_at,omitzero"`
	Email           string               `json:"email,omitempty"`
	EmailVerified   bool                 `json:"email_verified,omitempty"`
	EmailVerifiedAt time.Time            `json:"email_verified_at,omitzero"`
	FullName        string               `json:"full_name,omitempty"`
	Identities      []ImportRowIdentitie `json:"identities,omitempty"`
	LastSignInAt    time.Time            `json:"last_sign_in_at,omitzero"`
	PasswordHash    string               `json:"password_hash,omitempty"` // argon2id, bcrypt, scrypt or PBKDF2, see ValidPasswordHash.
	Phone           string               `json:"phone,omitempty"`
	PhoneVerified   bool                 `json:"phone_verified,omitempty"`
	PhoneVerifiedAt time.Time            `json:"phone_verified_at,omitzero"`
	Roles           []string             `json:"roles,omitempty"`
	TOTPSecret      string               `json:"totp_secret,omitempty"` // Base32; six digits, SHA-1, 30 seconds.
	UserMetadata    map[string]any       `json:"user_metadata,omitempty"`
}

// ImportRowIdentitie is a part of what the admin side answers.
type ImportRowIdentitie struct {
	CreatedAt    time.Time `json:"created_at,omitzero"`
	Email        string    `json:"email,omitempty"`
	LastSignInAt time.Time `json:"last_sign_in_at,omitzero"`
	Provider     string    `json:"provider"`
	Subject      string    `json:"subject"`
}

// ImportParams are of Admin.ImportUsers.
type ImportParams struct {
	// OnConflict says what becomes of a row whose account is there already: "error", the
	// default, "skip" or "update".
	OnConflict string
}

// ImportUsers is POST /users/import: import accounts. The rows are sent as they come, and
// never held in memory together; an error among them ends the request, and nothing is
// imported. It returns the id of a job, see Job and JobResults. Since rows can be read
// only once, it is not repeated by itself: call it again with the same IdempotencyKey.
// Permission: auth.users.import.
func (a *Admin) ImportUsers(ctx context.Context, rows iter.Seq2[ImportRow, error], p ImportParams, opts ...CallOption) (jobID string, err error) {
	r, w := io.Pipe()
	defer func() { _ = r.Close() }() // ends the writer, whatever became of the request
	var failed error
	written := make(chan struct{})
	go func() {
		defer close(written)
		failed = writeRows(w, rows)
		_ = w.CloseWithError(failed)
	}()
	jobID, err = a.ImportUsersFrom(ctx, r, p, opts...)
	_ = r.Close()
	<-written
	if failed != nil && !isClosed(failed) {
		return "", failed
	}
	return jobID, err
}

// ImportUsersFrom is ImportUsers of rows that are JSON lines already, as ExportUsers
// writes them.
func (a *Admin) ImportUsersFrom(ctx context.Context, lines io.Reader, p ImportParams, opts ...CallOption) (jobID string, err error) {
	k := a.prepared("POST", "/users/import", nil, opts)
	k.stream, k.mediaType, k.endless = lines, "application/x-ndjson", true
	if p.OnConflict != "" {
		k.query = url.Values{"on_conflict": {p.OnConflict}}
	}
	v, err := run[struct {
		JobID string `json:"job_id"`
	}](ctx, a, k)
	if err != nil {
		return "", err
	}
	return v.JobID, nil
}

func writeRows(w io.Writer, rows iter.Seq2[ImportRow, error]) error {
	e := json.NewEncoder(w)
	for row, err := range rows {
		if err == nil {
			err = e.Encode(row)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func isClosed(err error) bool { return errors.Is(err, io.ErrClosedPipe) }
