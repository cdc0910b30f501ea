package admin

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/wire"
	"github.com/authmount/auth/store"
)

// Values of ImportUsersParams.OnConflict: how to treat an account that exists.
const (
	OnConflictError  = "error"  // the row fails
	OnConflictSkip   = "skip"   // the row is skipped
	OnConflictUpdate = "update" // the fields of the row are changed
)

const (
	maxImportLine = 256 << 10 // bytes
	maxImportRows = 1_000_000
	maxImportSize = 4 << 30 // bytes of all lines, an int64
	chunkBytes    = 1 << 20 // approximate size of a chunk
	chunksAtOnce  = 10      // most chunks stored in one call; fewer if they have chunkBytes together
	importedRows  = 500     // rows of a chunk that creates accounts in one step; any other has chunkRows
)

var (
	opImportUsers = operation{pattern: "POST /users/import", permission: PermUsersImport, also: PermUsersRead, stepUp: true, streams: true, fails: []auth.Code{auth.CodeUnsupportedMediaType, auth.CodeBadJSON, auth.CodeRateLimited}}

	// opImportRows creates the accounts of an import, or updates one.
	opImportRows = operation{pattern: opImportUsers.pattern, permission: PermUsersImport, also: PermUsersRead, against: managing}

	importJob = jobKind{name: "import", permission: func([]byte) string { return PermUsersImport }, also: PermUsersRead, plan: planImport}
)

// ImportUsersParams are the options of an import.
type ImportUsersParams struct {
	// OnConflict applies to a row if an account has its id, email address, phone number
	// or identity: OnConflictError if empty.
	OnConflict string `json:"on_conflict" query:"on_conflict"`

	// Accepted lets the roles of new accounts take effect at once, see
	// auth.ImportUserParams. It needs code of the application, or a person with "*".
	Accepted bool `json:"accepted" query:"accepted"`
}

// importLine is a stored row. ID is for its new account; an id in the row replaces it.
type importLine struct {
	Row  int             `json:"row"`
	ID   string          `json:"id"`
	Data json.RawMessage `json:"data"`
}

// ImportUsers imports accounts, one JSON object a line with the fields of
// auth.ImportUserParams as the API document names them. A job creates them in the
// background. ImportUsers returns the id of the job once the last line was read; before
// that, and after an error, nothing is created. A row that fails does not stop the
// others; GET /jobs/{id}/results reports each. Rows with a hash, an identity, a TOTP
// secret, passkeys, a user handle or a verified contact also need auth.credentials, rows with roles
// auth.roles.assign and the permissions of the roles, and banned ones auth.users.ban. All
// need auth.users.read, because the results report which accounts exist. No
// message is sent, except the notices of changes by OnConflictUpdate. Lines have up to
// 256 KiB, there are up to a million, and 4 GiB in all. Errors: CodeValidationFailed,
// CodeBadJSON (the upload ended early), CodeRateLimited (above 120 an hour), those of every
// operation.
func (m *Admin) ImportUsers(ctx context.Context, who Actor, p ImportUsersParams, rows io.Reader) (string, error) {
	switch p.OnConflict {
	case "":
		p.OnConflict = OnConflictError
	case OnConflictError, OnConflictSkip, OnConflictUpdate:
	default:
		return "", m.kit.Invalid("on_conflict", "has to be error, skip or update")
	}
	a, err := m.reader(ctx, who, opImportUsers)
	if err != nil {
		return "", err
	}
	if err := m.mayAccept(&attempt{acting: a}, p.Accepted); err != nil {
		return "", err
	}
	j, err := m.receive(ctx, a, importJob.name, p)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	if err := m.receiveRows(ctx, who, &j, p, io.TeeReader(rows, sum)); err != nil {
		return "", err
	}
	if o, _ := ctx.Value(requestKey{}).(*once); o != nil {
		o.read(m, sum.Sum(nil))
	}
	id, err := carryOut(ctx, m, who, opImportUsers, "", auth.EventJobStarted, func(t *attempt) (string, error) {
		t.changed("on_conflict", nil, p.OnConflict)
		return m.start(ctx, t, j)
	})
	m.wakeWorker()
	return id, err
}

// receiveRows stores the rows of an import, sealed.
func (m *Admin) receiveRows(ctx context.Context, who Actor, j *store.Job, p ImportUsersParams, rows io.Reader) error {
	lines := bufio.NewScanner(rows)
	lines.Buffer(nil, maxImportLine)
	var chunk []importLine
	var sealed []store.JobChunk // not stored yet
	size, waiting, most := 0, 0, chunkRows
	if m.kit.HasBulkImport() && p.OnConflict != OnConflictUpdate { // updates are a step each
		most = importedRows
	}
	seal := func() error {
		if len(chunk) == 0 {
			return nil
		}
		c, err := m.chunkOf(j, len(chunk), chunk)
		sealed, waiting = append(sealed, c), waiting+size
		chunk, size = chunk[:0], 0
		return err
	}
	flush := func() error {
		if len(sealed) == 0 {
			return nil
		}
		if _, err := m.reader(ctx, who, opImportUsers); err != nil {
			return err
		}
		err := m.admin.AddJobChunk(ctx, sealed...)
		sealed, waiting = nil, 0
		return m.storeError(err)
	}
	n, all := 0, int64(0)
	for lines.Scan() {
		n++
		all += int64(len(lines.Bytes()))
		line := bytes.TrimSpace(lines.Bytes())
		switch {
		case all > m.importSize:
			return m.kit.Invalid("rows", fmt.Sprintf("have more than %d bytes", m.importSize))
		case n > 2*m.importRows:
			return m.kit.Invalid("rows", "have too many empty lines")
		case len(line) == 0:
			continue
		case line[0] != '{' || !json.Valid(line):
			return m.kit.Invalid("rows", fmt.Sprintf("have no JSON object in line %d; write each object on one line of its own (curl: --data-binary)", n))
		case j.Rows+len(chunk) == m.importRows:
			return m.kit.Invalid("rows", fmt.Sprintf("are more than %d", m.importRows))
		}
		size += len(line)
		if chunk = append(chunk, importLine{n, m.kit.NewID(), bytes.Clone(line)}); len(chunk) == most || size > chunkBytes {
			if err := seal(); err != nil {
				return err
			}
		}
		if len(sealed) == chunksAtOnce || waiting > chunkBytes {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return m.kit.Invalid("rows", fmt.Sprintf("have more than %d bytes in line %d", maxImportLine, n+1))
	case err != nil:
		return m.fail(auth.CodeBadJSON, err)
	}
	if err := seal(); err != nil {
		return err
	}
	if err := flush(); err != nil {
		return err
	}
	if j.Rows == 0 {
		return m.kit.Invalid("rows", "are missing")
	}
	return nil
}

// importRow holds the decoded fields of a row.
type importRow struct {
	ID              string               `json:"id"`
	Email           string               `json:"email"`
	EmailVerified   bool                 `json:"email_verified"`
	EmailVerifiedAt time.Time            `json:"email_verified_at"`
	Phone           string               `json:"phone"`
	PhoneVerified   bool                 `json:"phone_verified"`
	PhoneVerifiedAt time.Time            `json:"phone_verified_at"`
	FullName        string               `json:"full_name"`
	PasswordHash    string               `json:"password_hash"`
	TOTPSecret      string               `json:"totp_secret"`
	UserHandle      string               `json:"user_handle"`
	Passkeys        []auth.PasskeyRecord `json:"passkeys"`
	Identities      []importIdentity     `json:"identities"`
	UserMetadata    map[string]any       `json:"user_metadata"`
	AppMetadata     map[string]any       `json:"app_metadata"`
	Roles           []string             `json:"roles"`
	BannedUntil     time.Time            `json:"banned_until"`
	CreatedAt       time.Time            `json:"created_at"`
	LastSignInAt    time.Time            `json:"last_sign_in_at"`

	chosen bool // the caller chose the id
}

type importIdentity struct {
	Provider     string    `json:"provider"`
	Subject      string    `json:"subject"`
	Email        string    `json:"email"`
	CreatedAt    time.Time `json:"created_at"`
	LastSignInAt time.Time `json:"last_sign_in_at"`
}

func (r importRow) params() host.ImportUser {
	p := host.ImportUser{
		ID: r.ID, Email: r.Email, EmailVerified: r.EmailVerified, EmailVerifiedAt: r.EmailVerifiedAt, Phone: r.Phone, PhoneVerified: r.PhoneVerified, PhoneVerifiedAt: r.PhoneVerifiedAt,
		FullName: r.FullName, PasswordHash: r.PasswordHash, TOTPSecret: r.TOTPSecret, UserHandle: r.UserHandle, Passkeys: r.Passkeys, UserMetadata: r.UserMetadata, AppMetadata: r.AppMetadata, Roles: r.Roles,
		BannedUntil: r.BannedUntil, CreatedAt: r.CreatedAt, LastSignInAt: r.LastSignInAt,
	}
	for _, i := range r.Identities {
		p.Identities = append(p.Identities, auth.Identity{Provider: i.Provider, Subject: i.Subject, Email: i.Email, CreatedAt: i.CreatedAt, LastSignInAt: i.LastSignInAt})
	}
	return p
}

// importing is the work on one chunk of an import.
type importing struct {
	*Admin
	who     Actor
	job     store.Job
	params  ImportUsersParams
	rows    []importRow
	users   []store.NewUser
	results []rowResult // those with a Result are final
}

// planImport checks each row of a chunk by itself.
func planImport(ctx context.Context, m *Admin, j store.Job, input []byte) (chunkWork, error) {
	im := &importing{Admin: m}
	var lines []importLine
	if err := errors.Join(json.Unmarshal(j.Params, &im.params), json.Unmarshal(input, &lines)); err != nil {
		return chunkWork{}, m.fail(auth.CodeInternal, err) // another attempt will not help
	}
	im.rows, im.users, im.results = make([]importRow, len(lines)), make([]store.NewUser, len(lines)), make([]rowResult, len(lines))
	for i, line := range lines {
		im.parse(ctx, i, line)
	}
	return chunkWork{do: im.do, uniqueValues: im.uniqueValues()}, nil
}

// uniqueValues returns the values of the rows that must be unique among accounts. It
// returns nil (any value) if accounts are updated or a hook decides.
func (im *importing) uniqueValues() map[string]bool {
	if !im.kit.HasBulkImport() || im.params.OnConflict == OnConflictUpdate {
		return nil
	}
	all := map[string]bool{}
	for i, r := range im.rows {
		if im.results[i].Result != "" {
			continue
		}
		u := im.users[i].User
		if r.chosen {
			all["id "+r.ID] = true
		}
		if u.Email != "" {
			all["email "+store.EmailKey(u.Email)] = true
		}
		if u.Phone != "" {
			all["phone "+u.Phone] = true
		}
		if r.UserHandle != "" {
			all["handle "+u.Handle] = true
		}
		for _, f := range im.users[i].Factors {
			if len(f.Credential) > 0 {
				all["passkey "+string(f.Credential)] = true
			}
		}
		for _, id := range u.Identities {
			all["identity "+id.Provider+" "+id.Subject] = true
		}
	}
	return all
}

// do creates the accounts of the chunk, and handles those that exist.
func (im *importing) do(ctx context.Context, who Actor, j store.Job) ([]rowResult, error) {
	im.who, im.job = who, j
	if err := im.createAll(ctx, fmt.Sprint("chunk ", im.job.Next)); err != nil {
		return nil, err
	}
	for i := range im.rows {
		if im.results[i].Result != "" {
			continue
		}
		if err := im.conflicting(ctx, i); err != nil {
			return nil, err
		}
	}
	return im.results, nil
}

// parse checks a row by itself.
func (im *importing) parse(ctx context.Context, i int, line importLine) {
	r := &im.rows[i]
	im.results[i] = rowResult{Row: line.Row}
	if err := im.read(line.Data, r); err != nil {
		im.results[i] = im.results[i].withReason(err)
		return
	}
	r.ID, r.chosen = strings.ToLower(r.ID), r.ID != ""
	if !r.chosen {
		r.ID = line.ID
	}
	p := r.params()
	p.Accepted = im.params.Accepted
	nu, err := im.kit.NewAccount(ctx, &host.NewAccount{ImportUser: p, Imported: true})
	if err != nil {
		im.results[i] = im.results[i].withReason(err)
		return
	}
	im.users[i] = nu
}

// read decodes a row strictly, because the value of an unknown field would be lost.
func (m *Admin) read(data []byte, r *importRow) error {
	var wrong *wire.FieldError
	unknown, err := wire.UnmarshalKnown(data, r)
	switch {
	case errors.As(err, &wrong):
		return m.kit.Invalid(wrong.Name, "has the wrong type")
	case err != nil:
		return m.fail(auth.CodeBadJSON, err)
	case len(unknown) > 0:
		name := unknown[0]
		return m.kit.Invalid(strings.ToValidUTF8(name[:min(len(name), 64)], "?"), "is no field of accounts")
	}
	return nil
}

// onlyOnce returns a context in which a part of the job is done once; see once.asks.
func (im *importing) onlyOnce(ctx context.Context, part string, asks bool) context.Context {
	return context.WithValue(ctx, requestKey{}, &once{route: opImportUsers.pattern, key: im.job.ID + " " + part, hash: []byte(im.job.ID), life: jobKept, job: true, asks: asks})
}

const mediaNDJSON = "application/x-ndjson"

// uploadPause is the longest wait for a part of an upload.
const uploadPause = 30 * time.Second

// upload is a body that is read as a stream. Each read fails after uploadPause.
type upload struct {
	io.Reader
	c *http.ResponseController
}

func (u upload) Read(b []byte) (int, error) {
	if err := u.c.SetReadDeadline(time.Now().Add(uploadPause)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return 0, err
	}
	return u.Reader.Read(b)
}

func (m *Admin) handleImportUsers(who Actor, w http.ResponseWriter, r *http.Request) error {
	var p ImportUsersParams
	if err := m.query(r.URL.Query(), &p); err != nil {
		return err
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains([]string{mediaNDJSON, "application/ndjson", "application/jsonl"}, media) {
		return auth.Reject(auth.CodeUnsupportedMediaType, "Send one JSON object a line as application/x-ndjson.")
	}
	id, err := m.ImportUsers(r.Context(), who, p, upload{r.Body, http.NewResponseController(w)})
	if err != nil {
		if r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close") // do not wait for the rest of the body
		}
		return err
	}
	a := startedJob(id)
	return m.kit.WriteJSON(w, a.status, a.body)
}
