package auth

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/authmount/auth/internal/wire"
)

// bodyWait is how long a client may take to send a body.
const bodyWait = 10 * time.Second

// waitForBody bounds the time in which a client may send the body. The bound also
// covers the server's reads of a rest that the endpoint left. A shorter ReadTimeout of
// the server stays in force. Writers without deadlines, such as those of tests, have no
// bound.
func (a *Auth) waitForBody(w http.ResponseWriter, r *http.Request) {
	wait := a.cfg.bodyWait
	if srv, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && srv.ReadTimeout > 0 && srv.ReadTimeout <= wait {
		return
	}
	if hasBody(r) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(wait)) // fails for writers without deadlines
	}
}

// takeBody reads the whole body of a request, for the handlers to decode. It must come
// before all checks of the request: a client may delay the last byte, and the
// result of an earlier check could be out of date. After an error the deadline stays,
// because the server tries to read the rest.
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

// Request and response bodies. Package internal/wire defines their format; the
// functions here convert its errors.

// bodyFailed converts an error of package wire into the error for callers.
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

// decode reads a JSON object into the struct at v; it also reads a form where the
// endpoint accepts one. Absent fields and nulls leave zero values. wire.Unmarshal lists
// the refused input.
func decode(r *http.Request, v any) error {
	if t := transportOf(r.Context()); t != nil && t.form != nil {
		return t.form.decode(v)
	}
	return bodyFailed(wire.Decode(r, v))
}

// decodeOptional is decode for endpoints with an optional body.
func decodeOptional(r *http.Request, v any) error {
	err := decode(r, v)
	if errors.Is(err, wire.ErrNoBody) {
		return nil
	}
	return err
}

// isForm reports whether a page posted the request.
func isForm(r *http.Request) bool { return wire.IsForm(r) }

// readForm parses the bounded form of a page. It refuses forms from other sites,
// because they could sign a visitor in to the attacker's account.
func (a *Auth) readForm(r *http.Request) (url.Values, error) {
	if err := a.sameOrigin(r); err != nil {
		return nil, err
	}
	form, err := wire.ReadForm(r)
	return form, bodyFailed(err)
}

// acceptsByName reports whether Accept names a media type, wildcards excluded.
func acceptsByName(r *http.Request, mediaType string) bool { return wire.Accepts(r, mediaType) }

// writeJSON writes every JSON response body.
func writeJSON(w http.ResponseWriter, status int, v any) error {
	if t, ok := v.(Tokens); ok { // faster: encoding/json parses the output of a MarshalJSON again
		v = t.View()
	}
	if err := wire.Write(w, status, v); err != nil {
		return fail(CodeInternal, err)
	}
	return nil
}

// hasValue reports whether a field with a JSON value of its own is there and not empty.
func hasValue(v json.RawMessage) bool { return len(v) > 0 && string(v) != `""` && string(v) != "null" }
