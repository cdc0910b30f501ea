package authclient

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// Admin carries out the operations of the admin side as a program with a secret key,
// "sk_…": every one there is. It is safe for concurrent use, and needs no closing. What a
// key may do, its scopes say; the comment of each method names the permission.
//
// Every POST carries an Idempotency-Key, so that one whose answer was lost is repeated
// without being done twice; see IdempotencyKey for one of your own. Methods that list
// follow cursors:
//
//	for u, err := range c.Users(ctx, authclient.UserQuery{Role: "editor"}) {
//		if err != nil {
//			return err
//		}
//		…
//	}
type Admin struct{ wire *wire }

// NewAdmin makes a client of the admin side of the project at a URL, to which /auth/v1
// is added if it is a bare origin. It contacts nobody. The key belongs on servers only.
func NewAdmin(url, key string, opts ...Option) (*Admin, error) {
	c, err := newConfig(forAdmin, url, opts)
	if err == nil && !strings.HasPrefix(key, "sk_") {
		err = errors.New("authclient.NewAdmin: this is no secret key, sk_…")
	}
	if err != nil {
		return nil, err
	}
	c.apiKey = key
	return &Admin{newWire(c)}, nil
}

// CallOption is for one call of an Admin.
type CallOption func(*call)

// IfRevision has an operation carried out only if what it changes still has the revision
// that was read. Otherwise: auth.CodePreconditionFailed. The server refuses it, too,
// where an operation knows no revisions.
func IfRevision(revision int64) CallOption {
	return func(c *call) { c.header.Set("If-Match", strconv.Quote(strconv.FormatInt(revision, 10))) }
}

// IdempotencyKey has a POST done once however often it is called with this key within 24
// hours, also by another process. The default is a random one for each call. The same
// key with another body is refused; the repetition of what returned a secret is, too:
// auth.CodeIdempotencyReplayed.
func IdempotencyKey(key string) CallOption {
	return func(c *call) {
		if c.method == http.MethodPost {
			c.header.Set("Idempotency-Key", key)
		}
	}
}

// prepared is a call of an operation.
func (a *Admin) prepared(method, path string, body any, opts []CallOption) call {
	k := call{method: method, path: "/admin" + path, body: body, bearer: a.wire.apiKey, header: http.Header{}, repeat: repeatAlways}
	if method == http.MethodPost {
		k.header.Set("Idempotency-Key", rand.Text())
	}
	for _, o := range opts {
		o(&k)
	}
	if method == http.MethodDelete || method == http.MethodPatch && k.header.Get("If-Match") != "" {
		k.repeat = repeatRefused // done before, its repetition would look like a failure
	}
	return k
}

// run sends a call and returns what the answer holds.
func run[T any](ctx context.Context, a *Admin, k call) (*T, error) {
	v := new(T)
	err := a.wire.do(ctx, k, v)
	return orNil(v, err)
}

// all follows cursors from page to page.
func all[Q, T any](ctx context.Context, q Q, at func(*Q) *string, page func(context.Context, Q) ([]T, *string, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		q := q
		for {
			rows, next, err := page(ctx, q)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
			if next == nil || *next == "" || *next == *at(&q) { // a server that names the same page again would have no end
				return
			}
			*at(&q) = *next
		}
	}
}

// stream opens an answer that is read bit by bit; the caller closes it.
func (a *Admin) stream(ctx context.Context, k call, mediaType string) (io.ReadCloser, error) {
	k.endless = true
	k.header.Set("Accept", mediaType)
	res, err := a.wire.open(ctx, k)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// rowsOf opens an answer of JSON lines and reads it to the end.
func rowsOf[T any](ctx context.Context, a *Admin, k call) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		r, err := a.stream(ctx, k, NDJSON.mediaType())
		if err != nil {
			var none T
			yield(none, err)
			return
		}
		Rows[T](r)(yield)
	}
}

// Format is of an export.
type Format string

// The formats.
const (
	NDJSON Format = "ndjson" // one JSON object to a line
	CSV    Format = "csv"    // with a head
)

func (f Format) mediaType() string {
	if f == CSV {
		return "text/csv"
	}
	return "application/x-ndjson"
}

// Rows reads a stream of JSON lines, such as ExportUsers with NDJSON returns, and closes
// it at the end. A stream that was cut off ends with an error.
func Rows[T any](r io.ReadCloser) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		defer func() { _ = r.Close() }()
		d := json.NewDecoder(r)
		for {
			var v T
			err := d.Decode(&v)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				var none T
				yield(none, &Error{Code: CodeBadResponse, Message: "The stream was cut off.", cause: streamCause(err)})
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

// streamCause leaves out of an error what it may quote of the stream.
func streamCause(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) {
		return errors.New("malformed JSON")
	}
	return noAnswer(err).cause
}

// Change is a member of a PATCH: its zero value leaves what there is.
type Change[T any] struct {
	given bool
	value *T
}

// Set changes to a value.
func Set[T any](v T) Change[T] { return Change[T]{true, &v} }

// Null removes what there is, or goes back to the default.
func Null[T any]() Change[T] { return Change[T]{given: true} }

// IsZero tells whether nothing is to be changed.
func (c Change[T]) IsZero() bool { return !c.given }

// MarshalJSON writes the value, or null.
func (c Change[T]) MarshalJSON() ([]byte, error) { return json.Marshal(c.value) }

// queryOf writes a query struct, whose fields name their parameters; empty ones are left
// out.
func queryOf(q any) url.Values {
	out := url.Values{}
	v := reflect.ValueOf(q)
	for i := range v.NumField() {
		name, f := v.Type().Field(i).Tag.Get("query"), v.Field(i)
		if name == "" || f.IsZero() {
			continue
		}
		switch x := f.Interface().(type) {
		case string:
			out.Set(name, x)
		case []string:
			out.Set(name, strings.Join(x, ","))
		case int:
			out.Set(name, strconv.Itoa(x))
		case *bool:
			out.Set(name, strconv.FormatBool(*x))
		case time.Time:
			out.Set(name, x.UTC().Format(time.RFC3339Nano))
		case map[string]string:
			for k, v := range x {
				out.Set(name+k, v)
			}
		default:
			if f.Kind() == reflect.String {
				out.Set(name, f.String())
			}
		}
	}
	return out
}

// reasonBody is what operations take that ask for nothing but a reason, which is for the
// audit log.
func reasonBody(reason string) any {
	return struct {
		Reason string `json:"reason,omitempty"`
	}{reason}
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
