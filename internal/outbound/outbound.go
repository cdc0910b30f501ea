// Package outbound sends requests to other services within limits of size and destination;
// the context limits the time. Its errors contain nothing from a response, because a
// response may echo a secret.
package outbound

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

const (
	maxBody   = 1 << 20 // most bytes of a response's body
	maxHeader = 64 << 10
)

// Errors of responses.
var (
	ErrTooLarge  = errors.New("the response is larger than 1 MiB")
	ErrMalformed = errors.New("malformed HTTP response")
)

// NewClient returns a client with its own connections. It follows no redirects, because
// they could send secrets to another destination. The context of each request limits its
// time.
func NewClient() *http.Client {
	transport := http.DefaultTransport
	if t, ok := transport.(*http.Transport); ok {
		t = t.Clone()
		t.MaxResponseHeaderBytes = maxHeader
		transport = t
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Request is an HTTP request with its whole body.
type Request struct {
	Method string // default GET
	URL    string
	Header http.Header
	Body   []byte
}

// Response is an HTTP response with its whole body.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends a request and reads the response with any status. An error contains the host
// and path, never the query.
func Do(ctx context.Context, client *http.Client, in Request) (*Response, error) {
	if err := CheckURL(in.URL); err != nil {
		return nil, fmt.Errorf("the URL %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, in.Method, in.URL, bytes.NewReader(in.Body))
	if err != nil {
		return nil, errors.New("malformed request")
	}
	for name, values := range in.Header {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	where := r.URL.Host + r.URL.Path
	res, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, Cause(err))
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", where, Cause(err))
	case len(body) > maxBody:
		return nil, fmt.Errorf("%s: %w", where, ErrTooLarge)
	}
	return &Response{Status: res.StatusCode, Header: res.Header, Body: body}, nil
}

// GetJSON reads a public JSON document.
func GetJSON(ctx context.Context, client *http.Client, rawURL string, v any) error {
	res, err := Do(ctx, client, Request{URL: rawURL, Header: http.Header{"Accept": {"application/json"}}})
	if err != nil {
		return err
	}
	if res.Status != http.StatusOK {
		return fmt.Errorf("status %d", res.Status)
	}
	return DecodeJSON(res.Body, v)
}

// DecodeJSON is json.Unmarshal with errors that quote nothing of the document.
func DecodeJSON(body []byte, v any) error {
	err := json.Unmarshal(body, v)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return fmt.Errorf("malformed JSON at byte %d", syntax.Offset)
	case errors.As(err, &kind):
		return fmt.Errorf("a value of the wrong type at byte %d", kind.Offset)
	}
	return errors.New("unexpected JSON")
}

// Cause returns the part of an HTTP client's error that contains neither the URL, which
// may have secrets, nor data from the service. For other errors it returns ErrMalformed.
func Cause(err error) error {
	var op *net.OpError
	var cert *tls.CertificateVerificationError
	for _, known := range []error{context.DeadlineExceeded, context.Canceled, io.ErrUnexpectedEOF, io.EOF} {
		if errors.Is(err, known) {
			return known
		}
	}
	switch {
	case errors.As(err, &op):
		return op
	case errors.As(err, &cert):
		return cert
	}
	return ErrMalformed
}

// CheckURL rejects URLs that would send secrets unencrypted. http is allowed for loopback
// hosts, for tests and development.
func CheckURL(raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.User != nil {
		return errors.New("is not an absolute URL")
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())) {
		return errors.New("is not https")
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	ip, _ := netip.ParseAddr(host) // the zero address is not loopback
	return ip.IsLoopback()
}
