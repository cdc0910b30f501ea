package authclient

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/token"
	"github.com/authmount/auth/store"
)

const (
	feedSilence   = 6 * time.Second        // after the server's last word from its database
	streamSilence = 3 * time.Second        // the server sends a message every second
	feedPause     = 100 * time.Millisecond // after a failure; doubled up to feedMost
	feedMost      = 3 * time.Second
	pollEvery     = 400 * time.Millisecond
	streamAgain   = time.Second // between two attempts at a stream while polling works; doubled up to streamMost
	streamMost    = time.Minute
	refusedAgain  = time.Minute // between two lines about a refusal
	maxEvent      = 4 << 20
	maxRevocation = 100_000 // of memory, about 30 MB
)

// feed follows the server's revocations for a verifier.
type feed struct {
	wire       *wire
	add        func(store.Revocation)
	shorten    func(time.Duration)
	failClosed bool
	cancel     context.CancelFunc
	done       chan struct{}
	first      chan struct{} // closed when it is current for the first time
	failed     chan error    // a failure at the start
	late       bool          // the start does not fail

	position string // of the goroutine that follows

	lapse *time.Timer // reports the outage when the last message has become too old

	mu      sync.Mutex
	heard   time.Time // the last time at which the server knew everything
	err     error     // the last failure
	outage  bool      // logged
	refused time.Time // when the log last said that the server refuses the request
	started bool
}

// follow starts the feed of WithRevocations, and waits until it is current.
func (v *Verifier) follow(ctx context.Context) error {
	c := *v.wire.config
	h := *c.http
	h.Timeout = 0 // a stream has no end
	c.http = &h
	running, cancel := context.WithCancel(context.Background())
	v.revoked.Limit(maxRevocation)
	f := newFeed(&c, v.revoked, cancel)
	v.feed = f
	go f.run(running)
	err := f.wait(ctx)
	if err == nil || c.late {
		return nil
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		err = ctx.Err()
	}
	v.Close()
	return fmt.Errorf("authclient.NewVerifier: WithRevocations: %w%s", err, advice(err))
}

func newFeed(c *config, revoked *token.Revocations, cancel context.CancelFunc) *feed {
	f := &feed{wire: newWire(c), add: revoked.Add, shorten: revoked.ShortenLife, failClosed: c.feed.FailClosed, late: c.late, cancel: cancel, done: make(chan struct{}), first: make(chan struct{}), failed: make(chan error, 1)}
	f.lapse = time.AfterFunc(time.Hour, f.report)
	f.lapse.Stop() // until there is a message
	return f
}

// wait waits until the feed is current, or returns why it is not: the first failure that
// will not pass, or with WithLateStart any.
func (f *feed) wait(ctx context.Context) error {
	for {
		select {
		case <-f.first:
			return nil
		case err := <-f.failed:
			if f.late || refusal(err) {
				return err
			}
		case <-ctx.Done():
			return f.state()
		}
	}
}

// advice returns what to do about a failure at the start.
func advice(err error) string {
	switch {
	case errors.Is(err, auth.CodeNotAdmin), errors.Is(err, auth.CodeMissingPermission):
		return " (the scopes of the key of WithSecretKey lack auth.revocations.read)"
	case errors.Is(err, auth.CodeNotFound):
		return " (the server serves no /admin/revocations: mount the Handler of package admin there)"
	case errors.Is(err, auth.CodeRevocationsUnavailable):
		return " (the server does not run the WatchRevocations of its store)"
	case errors.Is(err, auth.CodeInvalidAPIKey):
		return " (the key of WithSecretKey is wrong, expired or revoked, or is bound to other networks: create one with the scope auth.revocations.read)"
	}
	return ""
}

// Close ends the feed of WithRevocations. Verifiers without it need no Close. It may be
// called again.
func (v *Verifier) Close() {
	if v.feed != nil {
		v.feed.cancel()
		<-v.feed.done
		v.feed.lapse.Stop()
	}
}

// RevocationsError returns nil while the verifier knows all revocations, and otherwise the
// reason. Without WithRevocations it is nil. It is for health checks and metrics.
func (v *Verifier) RevocationsError() error {
	if v.feed == nil {
		return nil
	}
	return v.feed.state()
}

// revocationsKnown returns the error of WithRevocations with FailClosed.
func (v *Verifier) revocationsKnown() error {
	if v.feed == nil || !v.feed.failClosed || v.feed.state() == nil {
		return nil
	}
	e := auth.Reject(auth.CodeRevocationsUnavailable, "")
	e.RetryAfter = time.Second
	return loggedError{e}
}

var errSilent = errors.New("the server sends nothing")

// state returns nil while the feed is current.
func (f *feed) state() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stateLocked()
}

// stateLocked is state for a caller that holds the lock.
func (f *feed) stateLocked() error {
	switch {
	case !f.heard.IsZero() && time.Since(f.heard) < feedSilence:
		return nil
	case f.err == nil:
		return errSilent
	}
	return f.err
}

// run follows the feed until ctx ends.
func (f *feed) run(ctx context.Context) {
	defer close(f.done)
	var poll time.Time // until then
	again, pause := streamAgain, feedPause
	for ctx.Err() == nil {
		polls := time.Now().Before(poll)
		heard, err := f.once(ctx, polls)
		if ctx.Err() != nil {
			return
		}
		switch {
		case polls && err == nil:
			pause = pollEvery
		case heard:
			again, pause = streamAgain, feedPause
		case !polls && !refusal(err): // a proxy may hold back the stream, or the server has too many
			poll, again = time.Now().Add(again), min(2*again, streamMost)
		default: // an outage says nothing about streams
			poll, again = time.Time{}, streamAgain
			pause = min(2*pause, feedMost)
		}
		f.note(err)
		if pauseFor(ctx, jitter(pause/2)) != nil {
			return
		}
	}
}

// refusal reports whether the server will refuse the same request again.
func refusal(err error) bool {
	var e *Error
	return errors.As(err, &e) && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden || e.Status == http.StatusNotFound)
}

// note stores a failure, and logs the start of an outage.
func (f *feed) note(err error) {
	if err == nil {
		return
	}
	f.mu.Lock()
	f.err = err
	if refusal(err) {
		f.heard = time.Time{}
	}
	starting := !f.started
	f.mu.Unlock()
	if starting {
		select {
		case f.failed <- err:
		default:
		}
	}
	if !starting || f.late { // otherwise NewVerifier returns the error
		f.report()
	}
}

// report logs the start of an outage. A refusal lasts until somebody acts, so it is logged
// again every minute.
func (f *feed) report() {
	f.mu.Lock()
	err := f.stateLocked()
	refused := err != nil && refusal(err)
	if err == nil || f.outage && !refused || refused && !f.refused.IsZero() && time.Since(f.refused) < refusedAgain {
		f.mu.Unlock()
		return
	}
	f.outage = true
	level := slog.LevelWarn
	if refused {
		level, f.refused = slog.LevelError, time.Now()
	}
	f.mu.Unlock()
	effect := "revoked access tokens are accepted until they expire"
	if f.failClosed {
		effect = "all access tokens are refused"
	}
	f.wire.log.Log(context.Background(), level, "authclient: the feed of revocations is down: "+effect+advice(err), "error", err)
}

// apply adds the revocations of a message, which was created at a time or later.
func (f *feed) apply(p *RevocationPage, at time.Time) {
	f.shorten(time.Duration(p.TokenLifetime) * time.Second)
	for _, r := range p.Revocations {
		f.add(store.Revocation{SessionID: value(r.SessionID), UserID: value(r.UserID), All: r.All, Spared: value(r.SparedSessionID), At: r.At, Role: value(r.Role), Stale: int64(r.StaleBelow)})
	}
	f.position = p.Position
	if !p.Current {
		return
	}
	f.mu.Lock()
	// The server's clock may differ, so it sends the age.
	f.heard = at.Add(-time.Duration(max(0, p.AgeMs)) * time.Millisecond)
	f.lapse.Reset(time.Until(f.heard.Add(feedSilence)))
	f.err, f.refused = nil, time.Time{}
	again := f.outage
	f.outage = false
	if !f.started {
		f.started = true
		close(f.first)
	}
	f.mu.Unlock()
	if again {
		f.wire.log.Info("authclient: the feed of revocations is back")
	}
}

// once follows one stream until it ends, or reads the feed once. heard reports whether
// there was a message.
func (f *feed) once(ctx context.Context, poll bool) (heard bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(streamSilence, func() { cancel(errSilent) })
	defer silent.Stop()
	c := call{method: http.MethodGet, path: "/admin/revocations", bearer: f.wire.secretKey, endless: true, header: http.Header{}}
	if f.position != "" {
		c.query = url.Values{"after": {f.position}}
	}
	if !poll {
		c.header.Set("Accept", "text/event-stream")
	}
	asked := time.Now()
	res, err := f.wire.open(ctx, c)
	if err == nil {
		defer func() { _ = res.Body.Close() }()
		err = f.read(res, asked, func() {
			heard = true
			silent.Reset(streamSilence)
		})
	}
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, errSilent) {
		err = errSilent
	}
	return heard, err
}

// read applies the messages of an answer to a request of a time, and calls heard after each.
func (f *feed) read(res *http.Response, asked time.Time, heard func()) error {
	message := func(b []byte, at time.Time) error {
		var p RevocationPage
		if json.Unmarshal(b, &p) != nil || p.Position == "" {
			return &Error{Code: CodeBadResponse, Status: res.StatusCode, Message: "The answer does not come from this service."}
		}
		f.apply(&p, at)
		heard()
		return nil
	}
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		b, err := io.ReadAll(io.LimitReader(res.Body, maxEvent))
		if err != nil {
			return noAnswer(err)
		}
		return message(b, asked)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
			if err := message(data, time.Now()); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return noAnswer(err)
	}
	return noAnswer(io.ErrUnexpectedEOF)
}

// value returns the text that p points to, or "".
func value(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}
