package wire

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// ReadBody reads a body of limited size and its media type, in lower case and without
// parameters; "" if the header is invalid. The body is nil if it is absent or empty.
// Errors: ErrTooLarge, and errors of reading.
func ReadBody(r *http.Request) (body []byte, mediaType string, err error) {
	if r.Body == nil {
		return nil, "", nil
	}
	body, err = io.ReadAll(io.LimitReader(r.Body, MaxBody+1))
	switch {
	case err != nil:
		return nil, "", fmt.Errorf("read body: %w", err)
	case len(body) > MaxBody:
		return nil, "", ErrTooLarge
	case len(body) == 0:
		return nil, "", nil
	}
	return body, mediaTypeOf(r), nil
}

func mediaTypeOf(r *http.Request) string {
	contentType := r.Header.Get("Content-Type")
	if len(contentType) > MaxContentType {
		return ""
	}
	t, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return ""
	}
	return t
}

// Decode reads a JSON body into the struct that v points to, as Unmarshal does. Errors:
// ErrNoBody, ErrMediaType, and those of ReadBody and Unmarshal.
func Decode(r *http.Request, v any) error {
	body, mediaType, err := ReadBody(r)
	switch {
	case err != nil:
		return err
	case body == nil:
		return ErrNoBody
	case mediaType != "application/json":
		return ErrMediaType
	}
	return Unmarshal(body, v)
}

// IsForm reports whether a request is a form post.
func IsForm(r *http.Request) bool {
	return mediaTypeOf(r) == "application/x-www-form-urlencoded"
}

// ReadForm reads a form post. An absent body is an empty form. Errors: ErrForm, and those
// of ReadBody.
func ReadForm(r *http.Request) (url.Values, error) {
	body, _, err := ReadBody(r)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, ErrForm // the cause would quote a value, which may be a secret
	}
	return form, nil
}

// Accepts reports whether Accept names a media type (RFC 9110, section 12.5.1). Wildcards
// and headers longer than MaxAccept do not count, and a weight of zero means no.
func Accepts(r *http.Request, mediaType string) bool {
	length := 0
	for _, field := range r.Header.Values("Accept") {
		length += len(field)
	}
	if length > MaxAccept {
		return false
	}
	for _, part := range strings.Split(strings.Join(r.Header.Values("Accept"), ","), ",") {
		t, params, err := mime.ParseMediaType(part)
		if err != nil || t != mediaType {
			continue
		}
		if q, err := strconv.ParseFloat(params["q"], 64); err == nil && q == 0 {
			continue
		}
		return true
	}
	return false
}
