package authclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/authmount/auth"
)

const (
	maxErrorBody = 64 << 10
	maxBody      = 16 << 20 // of an answer that is read as a whole

	firstPause = 200 * time.Millisecond
	maxPause   = 10 * time.Second // a longer Retry-After is left to the caller
	callTime   = 30 * time.Second // the time limit of a call without a deadline
	checkTime  = 3 * time.Second  // the time limit of LiveSession

	clockWarning = time.Minute // tokens are valid for minutes
)

// repeat selects the errors after which a request may be sent again.
type repeat int

const (
	repeatRefused repeat = iota // only if it was certainly not carried out: no connection, 429, overloaded
	repeatAlways                // always, because a second execution does no harm
)

// call is one request of the wire.
type call struct {
	method, path string // relative to the base URL
	query        url.Values
	body         any       // marshalled, unless stream is set
	stream       io.Reader // sent as it is, once; nil: none
	mediaType    string
	header       http.Header
	bearer       string
	repeat       repeat
	endless      bool // no time limit for reading the answer
}

// wire sends calls to a server.
type wire struct {
	*config
	pause func(ctx context.Context, d time.Duration) error
	after func(d time.Duration, f func()) (stop func())

	clockLogged atomic.Bool
}

func newWire(c *config) *wire { return &wire{config: c, pause: pauseFor, after: callAfter} }

// callAfter calls a function later, unless stop is called first.
func callAfter(d time.Duration, f func()) (stop func()) {
	t := time.AfterFunc(d, f)
	return func() { t.Stop() }
}

// pauseFor waits, at most until the context ends.
func pauseFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// do sends a call and reads its answer into out, which may be nil. The error is an
// *Error.
func (w *wire) do(ctx context.Context, c call, out any) error {
	if _, bounded := ctx.Deadline(); !bounded && !c.endless {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callTime)
		defer cancel()
	}
	res, err := w.open(ctx, c)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if out == nil || res.StatusCode == http.StatusNoContent {
		_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxErrorBody)) // keeps the connection open
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxBody))
	if err != nil {
		return noAnswer(err)
	}
	if json.Unmarshal(body, out) != nil { // its error could quote the answer
		return &Error{Code: CodeBadResponse, Status: res.StatusCode, Message: "The answer does not come from this service.", RequestID: res.Header.Get("X-Request-Id")}
	}
	return nil
}

// open sends a call, with repetitions, and returns a successful answer. The caller
// closes its body.
func (w *wire) open(ctx context.Context, c call) (*http.Response, error) {
	if slices.ContainsFunc(strings.Split(c.path, "/")[1:], func(part string) bool { return part == "" || part == "." || part == ".." }) {
		// Proxies normalise paths, so the request would reach another operation.
		return nil, &Error{Code: auth.CodeValidationFailed, Message: "An id is empty or consists of dots."}
	}
	body, err := c.encoded()
	if err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		res, err := w.once(ctx, c, body)
		if err == nil {
			return res, nil
		}
		d, again := err.again(c.repeat, try)
		if !again || c.stream != nil || try >= w.retries || ctx.Err() != nil {
			return nil, err
		}
		if end, ok := ctx.Deadline(); ok && time.Until(end) < d {
			return nil, err // which is more precise than a timeout
		}
		if w.pause(ctx, d) != nil {
			return nil, err
		}
	}
}

// again returns the pause before a repetition, and whether the call may be repeated.
func (e *Error) again(r repeat, try int) (time.Duration, bool) {
	var op *net.OpError
	unsent := errors.As(e.cause, &op) && op.Op == "dial"
	switch {
	case e.Status == http.StatusTooManyRequests, e.Code == auth.CodeOverloaded, unsent:
	case r == repeatAlways && e.Temporary():
	default:
		return 0, false
	}
	if e.RetryAfter > 0 {
		return e.RetryAfter + jitter(firstPause), e.RetryAfter <= maxPause
	}
	return jitter(firstPause << try), true
}

// jitter returns a random time from d to 2d, so that clients do not return at the same
// time.
func jitter(d time.Duration) time.Duration { return d + rand.N(d) } //nolint:gosec // no secret

func (c call) encoded() ([]byte, error) {
	if c.body == nil {
		return nil, nil
	}
	b, err := json.Marshal(c.body)
	if err != nil {
		return nil, &Error{Code: auth.CodeValidationFailed, Message: "The parameters cannot be written as JSON.", cause: fmt.Errorf("%T: %w", c.body, errors.Unwrap(err))}
	}
	return b, nil
}

// once sends a call.
func (w *wire) once(ctx context.Context, c call, body []byte) (*http.Response, *Error) {
	u := *w.base
	u.Path, u.RawPath = "", ""
	var content io.Reader
	switch {
	case c.stream != nil:
		content = io.NopCloser(c.stream) // its owner closes it
	case body != nil:
		content = bytes.NewReader(body)
	}
	target := u.String() + w.base.EscapedPath() + c.path
	if len(c.query) > 0 {
		target += "?" + c.query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, c.method, target, content)
	if err != nil {
		return nil, &Error{Code: CodeNetwork, Message: "The request cannot be created.", cause: errors.New("malformed request")}
	}
	for name, values := range c.header {
		r.Header[name] = values
	}
	if r.Header.Get("Accept") == "" {
		r.Header.Set("Accept", "application/json")
	}
	r.Header.Set("User-Agent", "authmount-go")
	if content != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if c.mediaType != "" {
		r.Header.Set("Content-Type", c.mediaType)
	}
	if w.apiKey != "" && w.kind != forAdmin {
		r.Header.Set("apikey", w.apiKey)
	}
	if w.device != "" {
		r.Header.Set("X-Device-Id", w.device)
	}
	if c.bearer != "" {
		r.Header.Set("Authorization", "Bearer "+c.bearer)
	}
	res, err := w.http.Do(r)
	if err != nil {
		return nil, noAnswer(err)
	}
	w.compareClocks(ctx, res.Header)
	if res.StatusCode < 200 || res.StatusCode > 299 {
		defer func() { _ = res.Body.Close() }()
		return nil, refused(res)
	}
	return res, nil
}

// compareClocks logs once that this machine's clock differs from the server's: tokens are
// then refused as expired, or as issued in the future. A cache keeps the Date of an answer
// and adds its Age (RFC 9111, section 5.1).
func (w *wire) compareClocks(ctx context.Context, h http.Header) {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return
	}
	age, _ := strconv.Atoi(h.Get("Age"))
	server, here := date.Add(time.Duration(age)*time.Second), w.now()
	w.clocks.Heard(server.Sub(here), here)
	if here.Sub(server).Abs() > clockWarning && !w.clockLogged.Swap(true) {
		w.log.WarnContext(ctx, "authclient: the clocks of this machine and of the server differ, so tokens may be refused", "here", here.UTC(), "server", server.UTC())
	}
}

// segment escapes one part of a path.
func segment(s string) string { return url.PathEscape(s) }
