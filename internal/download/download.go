// Package download streams a file to a client.
package download

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// pause is how long a client may take for one write.
const pause = 30 * time.Second

// Response is a streamed response. Its header is sent with the first bytes, so that an
// earlier error can still be answered.
type Response struct {
	w           http.ResponseWriter
	name, media string
	begun, gone bool
}

// New returns a response for a file with a name and a media type.
func New(w http.ResponseWriter, name, media string) *Response {
	return &Response{w: w, name: name, media: media}
}

// Begin writes the header.
func (d *Response) Begin() {
	if d.begun {
		return
	}
	d.begun = true
	h := d.w.Header()
	h.Set("Content-Type", d.media)
	h.Set("Content-Disposition", `attachment; filename="`+d.name+`"`)
	h.Set("Cache-Control", "no-store")
	d.w.WriteHeader(http.StatusOK)
}

// Write sends a part of the file. A client that is too slow fails it.
func (d *Response) Write(b []byte) (int, error) {
	d.Begin()
	c := http.NewResponseController(d.w)
	if err := c.SetWriteDeadline(time.Now().Add(pause)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		d.gone = true
		return 0, err
	}
	n, err := d.w.Write(b)
	if err != nil {
		d.gone = true
		return n, err
	}
	if err := c.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		d.gone = true
		return n, err
	}
	return n, nil
}

// End ends the response. Before the first bytes it returns an error for the caller to
// answer. Later it aborts the connection on an error, because a part of the file must not
// look complete, and logs the error unless the client caused it.
func (d *Response) End(ctx context.Context, log *slog.Logger, err error) error {
	switch {
	case err == nil:
		d.Begin() // of an empty file
	case d.begun:
		if !d.gone {
			log.WarnContext(ctx, "auth: export broken off", "error", err)
		}
		panic(http.ErrAbortHandler)
	}
	return err
}
