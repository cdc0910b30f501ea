package auth

import (
	"errors"
	"net/http"
	"net/url"

	"github.com/authmount/auth/internal/wire"
)

// Bodies in and out. What they look like is known to internal/wire; here its
// errors get their codes.

// bodyFailed is the error for callers of what was wrong with a body.
func bodyFailed(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, wire.ErrTooLarge):
		return fail(CodeBodyTooLarge, err)
	case errors.Is(err, wire.ErrMediaType):
		return fail(CodeUnsupportedMediaType, err)
	case errors.Is(err, wire.ErrForm):
		return fail(CodeInvalidToken, err) // only the pages of links post forms
	}
	return fail(CodeBadJSON, err)
}

// readBody reads a bounded body; no body is nil.
func readBody(r *http.Request) ([]byte, error) {
	body, _, err := wire.ReadBody(r)
	return body, bodyFailed(err)
}

// decode reads a JSON object, or a form where the endpoint takes one, into the struct that v points to. Absent fields
// and nulls leave zero values. See wire.Unmarshal for what is refused.
func decode(r *http.Request, v any) error {
	if t := transportOf(r.Context()); t != nil && t.form != nil {
		return t.form.decode(v)
	}
	return bodyFailed(wire.Decode(r, v))
}

// decodeOptional is decode for endpoints whose body may be absent.
func decodeOptional(r *http.Request, v any) error {
	err := decode(r, v)
	if errors.Is(err, wire.ErrNoBody) {
		return nil
	}
	return err
}

// isForm tells whether a request was posted by a page.
func isForm(r *http.Request) bool { return wire.IsForm(r) }

// readForm parses a page's bounded post. It comes from the page itself or not
// at all: another site's form could sign a visitor in to an account of its own.
func (a *Auth) readForm(r *http.Request) (url.Values, error) {
	if err := a.sameOrigin(r); err != nil {
		return nil, err
	}
	form, err := wire.ReadForm(r)
	return form, bodyFailed(err)
}

// acceptsByName tells whether Accept names a media type, wildcards aside.
func acceptsByName(r *http.Request, mediaType string) bool { return wire.Accepts(r, mediaType) }

// writeJSON is the one way a JSON body is written.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	if t, ok := v.(Tokens); ok { // encoding/json goes over what a MarshalJSON wrote once more
		v = t.View()
	}
	if err := wire.Write(w, status, v); err != nil {
		return fail(CodeInternal, err)
	}
	return nil
}
