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

// ReadBody reads a bounded body and its media type, lower-cased and without
// parameters; "" if the header cannot be read. A body that is absent or empty is
// nil. Errors: ErrTooLarge, and whatever reading returned.
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

// Decode reads a JSON body into the struct that v points to, as Unmarshal does.
// Errors: ErrNoBody, ErrMediaType, and those of ReadBody and Unmarshal.
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

// IsForm tells whether a request was posted by a page.
func IsForm(r *http.Request) bool {
	return mediaTypeOf(r) == "application/x-www-form-urlencoded"
}

// ReadForm reads a page's post; no body is an empty form. Errors: ErrForm, and
// those of ReadBody.
func ReadForm(r *http.Request) (url.Values, error) {
	body, _, err := ReadBody(r)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, ErrForm // not the cause: it repeats a value, which may be a secret
	}
	return form, nil
}

// Accepts tells whether Accept names a media type (RFC 9110, 12.5.1); a
// wildcard is no name, nor is anything in a header beyond MaxAccept, and a weight
// of zero means no.
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
