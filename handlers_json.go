package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Limits of request bodies.
const (
	maxBody    = 64 << 10
	maxNesting = 32
)

// readBody reads a bounded body and its media type; no body is nil.
func readBody(r *http.Request) (body []byte, mediaType string, err error) {
	if r.Body == nil {
		return nil, "", nil
	}
	body, err = io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, "", fail(CodeBadJSON, fmt.Errorf("read body: %w", err))
	case len(body) > maxBody:
		return nil, "", fail(CodeBodyTooLarge, nil)
	case len(body) == 0:
		return nil, "", nil
	}
	mediaType, _, err = mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return body, "", nil //nolint:nilerr // an unreadable type is an unsupported one
	}
	return body, mediaType, nil
}

// decode reads a JSON object into the struct that v points to. Absent fields
// and nulls leave zero values. See decodeJSON for what is refused.
func decode(r *http.Request, v any) error {
	body, mediaType, err := readBody(r)
	if err != nil {
		return err
	}
	if body == nil {
		return fail(CodeBadJSON, errors.New("no body"))
	}
	if mediaType != "application/json" {
		return fail(CodeUnsupportedMediaType, nil)
	}
	if err := decodeJSON(body, v); err != nil {
		return fail(CodeBadJSON, err)
	}
	return nil
}

// decodeOptional is decode for endpoints whose body may be absent.
func decodeOptional(r *http.Request, v any) error {
	body, mediaType, err := readBody(r)
	if err != nil || body == nil {
		return err
	}
	if mediaType != "application/json" {
		return fail(CodeUnsupportedMediaType, nil)
	}
	if err := decodeJSON(body, v); err != nil {
		return fail(CodeBadJSON, err)
	}
	return nil
}

// decodeJSON is stricter than encoding/json, because two parsers that read one
// body differently are a hole: names match exactly, a name that comes twice,
// text after the object, invalid UTF-8 and deep nesting are errors. Unknown
// names are ignored.
func decodeJSON(body []byte, v any) error {
	if !utf8.Valid(body) {
		return errors.New("not UTF-8")
	}
	if err := checkJSON(body); err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return err
	}
	if fields == nil {
		return errors.New("not an object")
	}
	rv := reflect.ValueOf(v).Elem()
	for i := range rv.NumField() {
		name, _, _ := strings.Cut(rv.Type().Field(i).Tag.Get("json"), ",")
		raw, ok := fields[name]
		if !ok || name == "" {
			continue
		}
		if err := json.Unmarshal(raw, rv.Field(i).Addr().Interface()); err != nil {
			return fmt.Errorf("field %q: wrong type", name) // not the value: it may be a secret
		}
	}
	return nil
}

// checkJSON walks the tokens of a document and finds duplicate names, deep
// nesting and trailing data.
func checkJSON(body []byte) error {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber()
	if err := checkValue(dec, 0); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("text after the document")
	}
	return nil
}

func checkValue(dec *json.Decoder, depth int) error {
	tok, err := dec.Token()
	if err != nil {
		return errors.New("malformed")
	}
	open, ok := tok.(json.Delim)
	if !ok {
		return nil
	}
	if depth++; depth > maxNesting {
		return errors.New("nested too deeply")
	}
	seen := map[string]bool{}
	for dec.More() {
		if open == '{' {
			name, err := dec.Token()
			if err != nil {
				return errors.New("malformed")
			}
			s, _ := name.(string)
			if seen[s] {
				return errors.New("duplicate name")
			}
			seen[s] = true
		}
		if err := checkValue(dec, depth); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil { // the closing delimiter
		return errors.New("malformed")
	}
	return nil
}

var buffers = sync.Pool{New: func() any {
	b := make([]byte, 0, 2<<10)
	return &b
}}

// writeJSON is the one way a JSON body is written.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	buf := buffers.Get().(*[]byte) //nolint:forcetypeassert // nothing else is put there
	defer buffers.Put(buf)
	b, err := appendEncoded((*buf)[:0], v)
	if err != nil {
		return fail(CodeInternal, fmt.Errorf("encode response: %w", err))
	}
	if cap(b) <= 16<<10 { // a rare long one is not kept
		*buf = b
	}
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	if h.Get("Cache-Control") == "" {
		h.Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	_, _ = w.Write(append(b, '\n')) //nolint:gosec // JSON, marked as such; a client that has gone needs no answer
	return nil
}

// The JSON forms of the wire's objects.

// MarshalJSON writes the User object.
func (u User) MarshalJSON() ([]byte, error) { return u.appendJSON(make([]byte, 0, 1<<10)) }

// MarshalJSON writes an identity; the times and the address may be null.
func (i Identity) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		ID           string    `json:"id"`
		Provider     string    `json:"provider"`
		Subject      string    `json:"subject"`
		Email        any       `json:"email"`
		CreatedAt    time.Time `json:"created_at"`
		LastSignInAt any       `json:"last_sign_in_at"`
	}{i.ID, i.Provider, i.Subject, nullable(i.Email), wireTime(i.CreatedAt), nullableTime(i.LastSignInAt)})
}

// MarshalJSON writes the wire's Session object.
func (t Tokens) MarshalJSON() ([]byte, error) { return t.appendJSON(make([]byte, 0, 2<<10)) }

func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func wireTime(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

func nullableTime(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return wireTime(t)
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

func orEmptyMap(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}
