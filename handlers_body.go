package auth

import (
	"bytes"
	"io"
	"net/http"
	"time"
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
