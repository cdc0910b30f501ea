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

// Admin calls the operations of the admin API that a secret key, "sk_…", may call. It is
// safe for concurrent use, and needs no closing. The key's scopes limit its operations;
// the comment of each method names the permission. SetRoles and others that give or take
// the role editor also need the scope "role/editor".
//
// Every POST has an Idempotency-Key, so that a call without an answer can be repeated
// without a second effect; see IdempotencyKey to choose the key. Methods that list
// follow cursors:
//
//	for u, err := range c.Users(ctx, authclient.UserQuery{Role: "editor"}) {
//		if err != nil {
//			return err
//		}
//		…
//	}
type Admin struct{ wire *wire }

// NewAdmin returns a client of the admin API of the project at a URL. If the URL is a
// bare origin, /auth/v1 is added. NewAdmin sends no request. Use the key on servers
// only.
func NewAdmin(url, key string, opts ...Option) (*Admin, error) {
	c, err := newConfig(forAdmin, url, opts)
	if err == nil && !strings.HasPrefix(key, "sk_") {
		err = errors.New("authclient.NewAdmin: the key is not a secret key, sk_…")
	}
	if err != nil {
		return nil, err
	}
	c.apiKey = key
	return &Admin{newWire(c)}, nil
}

// CallOption configures one call of an Admin.
type CallOption func(*call)

// IfRevision makes an operation fail with auth.CodePreconditionFailed if its object no
// longer has the revision that was read. The server also refuses it for operations that
// do not support revisions.
func IfRevision(revision int64) CallOption {
	return func(c *call) { c.header.Set("If-Match", strconv.Quote(strconv.FormatInt(revision, 10))) }
}

// IdempotencyKey sets the key of a POST. All calls with the same key within 24 hours
// take effect once, also if they come from several processes. The default is a random
// key for each call. The server refuses the same key with another body, and the
// repetition of a call that returned a secret: auth.CodeIdempotencyReplayed.
func IdempotencyKey(key string) CallOption {
	return func(c *call) {
		if c.method == http.MethodPost {
			c.header.Set("Idempotency-Key", key)
		}
	}
}

// prepared returns the call of an operation.
func (a *Admin) prepared(method, path string, body any, opts []CallOption) call {
	k := call{method: method, path: "/admin" + path, body: body, bearer: a.wire.apiKey, header: http.Header{}, repeat: repeatAlways}
	if method == http.MethodPost {
		k.header.Set("Idempotency-Key", rand.Text())
	}
	for _, o := range opts {
		o(&k)
	}
	if method == http.MethodDelete || method == http.MethodPatch && k.header.Get("If-Match") != "" {
		k.repeat = repeatRefused // if the first call took effect, its repetition would fail
	}
	return k
}

// run sends a call and returns its result.
func run[T any](ctx context.Context, a *Admin, k call) (*T, error) {
	v := new(T)
	err := a.wire.do(ctx, k, v)
	return orNil(v, err)
}

// all iterates over the rows of all pages.
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
			if next == nil || *next == "" || *next == *at(&q) { // a server that repeats a cursor would cause an endless loop
				return
			}
			*at(&q) = *next
		}
	}
}

// stream opens an answer that is read in parts. The caller closes it.
func (a *Admin) stream(ctx context.Context, k call, mediaType string) (io.ReadCloser, error) {
	k.endless = true
	k.header.Set("Accept", mediaType)
	res, err := a.wire.open(ctx, k)
	if err != nil {
		return nil, err
	}
	return res.Body, nil
}

// rowsOf sends a call and reads the JSON lines of its response.
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

// Format is the format of an export.
type Format string

// The formats.
const (
	NDJSON Format = "ndjson" // one JSON object per line
	CSV    Format = "csv"    // with a header row
)

func (f Format) mediaType() string {
	if f == CSV {
		return "text/csv"
	}
	return "application/x-ndjson"
}

// Rows reads a stream of JSON lines, such as that of ExportUsers with NDJSON, and
// closes it at the end. It returns an error for a truncated stream.
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

// streamCause returns an error's cause without quotes from the stream.
func streamCause(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) {
		return errors.New("malformed JSON")
	}
	return noAnswer(err).cause
}

// Change is a member of a PATCH. Its zero value leaves the member unchanged.
type Change[T any] struct {
	given bool
	value *T
}

// Set returns a change to a value.
func Set[T any](v T) Change[T] { return Change[T]{true, &v} }

// Null returns a change that deletes the value, or restores the default.
func Null[T any]() Change[T] { return Change[T]{given: true} }

// IsZero reports whether nothing is to be changed.
func (c Change[T]) IsZero() bool { return !c.given }

// MarshalJSON writes the value, or null.
func (c Change[T]) MarshalJSON() ([]byte, error) { return json.Marshal(c.value) }

// queryOf returns the parameters of a query struct, named by its field tags. Empty
// fields are left out.
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

// reasonBody returns the body of operations that take only a reason for the audit log.
func reasonBody(reason string) any {
	return struct {
		Reason string `json:"reason,omitempty"`
	}{reason}
}

// ImportParams are the parameters of Admin.ImportUsers.
type ImportParams struct {
	// OnConflict selects the action for a row with an existing account: "error", the
	// default, "skip" or "update".
	OnConflict string
}

// ImportUsers is POST /users/import: import accounts. The rows are streamed, and
// never in memory together; an error among them aborts the request, and nothing is
// imported. It returns the id of a job, see Job and JobResults. It is not repeated
// automatically, because rows can be read only once: call it again with the same
// IdempotencyKey.
// Permission: auth.users.import.
func (a *Admin) ImportUsers(ctx context.Context, rows iter.Seq2[ImportRow, error], p ImportParams, opts ...CallOption) (jobID string, err error) {
	r, w := io.Pipe()
	defer func() { _ = r.Close() }() // ends the writer in all cases
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
