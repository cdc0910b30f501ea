// Package wire reads requests and writes responses: strict JSON, forms and the Accept
// header. Its importers map its errors to responses.
package wire

import (
	"errors"
	"fmt"
)

// Limits of request bodies, and of the headers that describe them.
const (
	MaxBody        = 64 << 10 // bytes
	MaxNesting     = 32       // objects and arrays within each other
	MaxContentType = 256      // bytes; a longer one is invalid
	MaxAccept      = 512      // bytes; a longer one is ignored, as if any type were accepted
)

// Errors of reading a body. Functions may wrap them; compare with errors.Is.
var (
	ErrTooLarge      = errors.New("the body is too large")
	ErrMediaType     = errors.New("the body is not application/json")
	ErrNoBody        = errors.New("no body")
	ErrNotUTF8       = errors.New("not UTF-8")
	ErrMalformed     = errors.New("malformed JSON")
	ErrTrailingData  = errors.New("text after the document")
	ErrNesting       = errors.New("nested too deeply")
	ErrDuplicateName = errors.New("duplicate name")
	ErrNotObject     = errors.New("not an object")
	ErrForm          = errors.New("malformed form")
	ErrUnknownName   = errors.New("unknown field")
)

// FieldError reports a member with a value of the wrong type. It does not quote the
// value, which may be a secret.
type FieldError struct{ Name string }

func (e *FieldError) Error() string { return fmt.Sprintf("field %q: wrong type", e.Name) }
