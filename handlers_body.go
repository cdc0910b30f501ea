package auth

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/authmount/auth/internal/wire"
)

// bodyWait is how long a client may take to send a body.
const bodyWait = 10 * time.Second

// waitForBody bounds how long a request's body is waited for, whoever reads it:
// the endpoint, or the server, which reads what an endpoint has left. A server's
// own ReadTimeout stays where it is shorter. Writers without deadlines, such as
// those of tests, work without.
func (a *Auth) waitForBody(w http.ResponseWriter, r *http.Request) {
	wait := a.cfg.bodyWait
	if srv, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && srv.ReadTimeout > 0 && srv.ReadTimeout <= wait {
		return
	}
	if hasBody(r) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(wait)) // see above
	}
}

// takeBody reads a request's whole body, for the handlers to decode. It comes
// before anything else about the request is judged: a client may let any time pass
// before it sends the last byte, and what was judged would be true no longer.
// After an error the deadline stays, for the server's attempt to read the rest.
func (a *Auth) takeBody(w http.ResponseWriter, r *http.Request) error {
	if !hasBody(r) {
		return nil
	}
	body, err := readBody(r)
	if err != nil {
		if r.ProtoMajor == 1 {
			w.Header().Set("Connection", "close")
		}
		return err
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // everything has been read
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

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
