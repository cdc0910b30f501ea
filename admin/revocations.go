package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/token"
)

var (
	opRevocations = operation{pattern: "GET /revocations", permission: PermRevocationsRead, fails: []auth.Code{auth.CodeRevocationsUnavailable}}

	revocationEndpoints = []endpoint{followed(op(opRevocations, (*Admin).Revocations))}
)

const (
	// RevocationsHeartbeat is the longest time between two messages of a stream.
	RevocationsHeartbeat = time.Second

	mediaEvents    = "text/event-stream"
	maxPageRevoked = 1000 // revocations of an answer
	recheckCaller  = 5 * time.Second
	slowReader     = 10 * time.Second // how long a reader may take for one message
)

// RevocationsParams name a place in the feed of revocations.
type RevocationsParams struct {
	After string `query:"after"` // RevocationPage.Position of any instance; empty or unknown: all that still matter
}

// Revocation has the fields of store.Revocation.
type Revocation struct {
	SessionID *string   `json:"session_id"`
	UserID    *string   `json:"user_id"`
	All       bool      `json:"all"`
	Spared    *string   `json:"spared_session_id"`
	At        time.Time `json:"at"`
	Role      *string   `json:"role"`
	Stale     int64     `json:"stale_below"`
}

// RevocationPage is a part of the feed of revocations.
type RevocationPage struct {
	Revocations   []Revocation `json:"revocations"`
	Position      string       `json:"position"`       // for the next part
	Current       bool         `json:"current"`        // there are no more now
	Age           int64        `json:"age_ms"`         // how long ago the instance last heard from the database, in milliseconds: there may be more since
	TokenLifetime int          `json:"token_lifetime"` // of access tokens in seconds: a revocation matters for so long
}

// Revocations returns the revocations after a position, for services without the database,
// see Verifier of package authclient. Some may be repeated. Over HTTP it is also a stream of
// server-sent events. Errors: CodeRevocationsUnavailable if no feed of this process, such as
// the store's WatchRevocations, reports those of other instances.
func (m *Admin) Revocations(ctx context.Context, who Actor, p RevocationsParams) (RevocationPage, error) {
	page, _, err := m.revocationsAfter(ctx, who, p.After)
	return page, err
}

// revocationsAfter returns a page and a channel that is closed by the next revocation.
func (m *Admin) revocationsAfter(ctx context.Context, who Actor, after string) (RevocationPage, <-chan struct{}, error) {
	if _, err := m.reader(ctx, who, opRevocations); err != nil {
		return RevocationPage{}, nil, err
	}
	return m.revocationPage(after)
}

func (m *Admin) revocationPage(after string) (RevocationPage, <-chan struct{}, error) {
	log, age, err := m.kit.RevocationLog()
	if err != nil {
		return RevocationPage{}, nil, err
	}
	at, err := readCursor[token.Position](m, after)
	if err != nil || at == nil {
		at = &token.Position{} // everything, so that nothing is missed
	}
	list, next, more, changed := log.After(*at, maxPageRevoked)
	page := RevocationPage{Revocations: make([]Revocation, 0, len(list)), Position: *cursorOf(&next), Current: !more, Age: age.Milliseconds() + 1, TokenLifetime: int(log.Life() / time.Second)}
	for _, r := range list {
		page.Revocations = append(page.Revocations, Revocation{optional(r.SessionID), optional(r.UserID), r.All, optional(r.Spared), r.At.UTC(), optional(r.Role), r.Stale})
	}
	return page, changed, nil
}

// followed adds the stream to the endpoint of the revocations, for requests that accept
// one.
func followed(e endpoint) endpoint {
	once := e.handle
	e.handle = func(m *Admin, who Actor, w http.ResponseWriter, r *http.Request) error {
		w.Header().Add("Vary", "Accept")
		if r.Header.Get("Accept") != mediaEvents || r.Method != http.MethodGet {
			return once(m, who, w, r)
		}
		return m.stream(who, w, r)
	}
	return e
}

// stream sends pages as server-sent events, until the caller may not read them any more,
// this process cannot, or either side ends. Each message is a page, and its id the position.
func (m *Admin) stream(who Actor, w http.ResponseWriter, r *http.Request) error {
	var p RevocationsParams
	if err := m.query(r.URL.Query(), &p); err != nil {
		return err
	}
	if id := r.Header.Get("Last-Event-Id"); id != "" { // of an EventSource that reconnects
		p.After = id
	}
	page, changed, err := m.revocationsAfter(r.Context(), who, p.After)
	if err != nil {
		return err
	}
	ctx, end, err := m.kit.BeginStream(r)
	if err != nil {
		return err
	}
	defer end()
	out := newEvents(w)
	beat, recheck := time.NewTicker(RevocationsHeartbeat), time.NewTicker(recheckCaller)
	defer beat.Stop()
	defer recheck.Stop()
	for {
		if out.send(page) != nil {
			return nil //nolint:nilerr // the reader has left, or is too slow
		}
		if page.Current {
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
			case <-beat.C:
			case <-recheck.C:
				if _, err := m.reader(ctx, who, opRevocations); err != nil {
					return nil //nolint:nilerr // the next request returns the reason
				}
			}
		}
		if page, changed, err = m.revocationPage(page.Position); err != nil {
			return nil //nolint:nilerr // likewise
		}
	}
}

// events writes server-sent events.
type events struct {
	w http.ResponseWriter
	c *http.ResponseController
}

func newEvents(w http.ResponseWriter) events {
	h := w.Header()
	h.Set("Content-Type", mediaEvents)
	h.Set("Cache-Control", "no-store, no-transform") // compression would delay events
	h.Set("X-Accel-Buffering", "no")                 // nginx
	return events{w, http.NewResponseController(w)}
}

// send sends one message. It replaces the server's time limit for whole responses.
func (e events) send(page RevocationPage) error {
	b, err := json.Marshal(page)
	if err != nil {
		return err
	}
	if err := e.c.SetWriteDeadline(time.Now().Add(slowReader)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := e.w.Write([]byte("id: " + page.Position + "\ndata: " + string(b) + "\n\n")); err != nil {
		return err
	}
	return e.c.Flush()
}
