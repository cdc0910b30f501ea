// Package download writes a file to a client bit by bit.
package download

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"
)

// pause is how long a client may take for a part of a file.
const pause = 30 * time.Second

// Response is a response that is written bit by bit. Its header goes with the first bit, so
// that an error before it can still be answered.
type Response struct {
	w           http.ResponseWriter
	name, media string
	begun, gone bool
}

// New is a response with a file of a name and a media type.
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

// Write sends a part of the file, and waits for a slow client, but not for ever.
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

// End ends the response. It returns an error that can still be answered. After the first
// bit it breaks the connection off, because a part of the file must not look like the
// whole, and logs an error that is not the client's.
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
