// Package hostileclient sends requests as a hostile client does, for tests. It uses its
// own connections: it closes its half after the request, sends the head and delays the
// body, aborts at a chosen moment, never reads, sends two cookies with the same name, and
// opens many connections at once.
package hostileclient

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// patience limits operations that their context does not limit earlier.
const patience = 20 * time.Second

// Field is one header line.
type Field struct{ Name, Value string }

// Request is sent exactly as it is. Only Host and, with a body, Content-Length are added.
type Request struct {
	Method string
	Path   string
	Header []Field // names may repeat
	Body   string
}

func (r Request) head(more ...Field) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n", r.Method, r.Path)
	if r.Body != "" {
		more = append(more, Field{"Content-Length", fmt.Sprint(len(r.Body))})
	}
	for _, list := range [][]Field{r.Header, more} {
		for _, f := range list {
			fmt.Fprintf(&b, "%s: %s\r\n", f.Name, f.Value)
		}
	}
	return b.String() + "\r\n"
}

// TwoCookies returns the two ways to send two cookies with the same name: in one field
// and in two.
func TwoCookies(name, first, second string) [][]Field {
	one, other := name+"="+first, name+"="+second
	return [][]Field{{{"Cookie", one + "; " + other}}, {{"Cookie", one}, {"Cookie", other}}}
}

// Response is a complete response.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
	Closes bool // the server closes the connection after the response
}

// conn is a connection that responses are read from.
type conn struct {
	*net.TCPConn
	r *bufio.Reader
}

func dial(ctx context.Context, addr string) (*conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	end, ok := ctx.Deadline()
	if !ok {
		end = time.Now().Add(patience)
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return nil, errors.Join(errors.New("hostileclient: no TCP connection"), c.Close())
	}
	return &conn{tcp, bufio.NewReader(c)}, tcp.SetDeadline(end)
}

// send connects and writes, and closes the connection if writing fails.
func send(ctx context.Context, addr, text string) (*conn, error) {
	c, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(c, text); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// response reads the response to a request with this method.
func (c *conn) response(method string) (*Response, error) {
	res, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		return nil, err
	}
	return &Response{Status: res.StatusCode, Header: res.Header, Body: body, Closes: res.Close}, nil
}

// Do sends a well-formed request on its own connection.
func Do(ctx context.Context, addr string, r Request) (*Response, error) {
	c, err := send(ctx, addr, r.head()+r.Body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	return c.response(r.Method)
}

// HalfClose sends a request, closes its half of the connection after a delay, and reads
// the response, if there is one.
func HalfClose(ctx context.Context, addr string, r Request, after time.Duration) (*Response, error) {
	c, err := send(ctx, addr, r.head()+r.Body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	if err := wait(ctx, after); err != nil {
		return nil, err
	}
	if err := c.CloseWrite(); err != nil {
		return nil, err
	}
	return c.response(r.Method)
}

// Abort sends a request and resets the connection after a delay.
func Abort(ctx context.Context, addr string, r Request, after time.Duration) error {
	c, err := send(ctx, addr, r.head()+r.Body)
	if err != nil {
		return err
	}
	err = wait(ctx, after)
	return errors.Join(err, c.SetLinger(0), c.Close())
}

func wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Held is a request that is sent except for its body.
type Held struct {
	conn *conn
	r    Request
}

// AnsweredError reports a server that did not wait for the body.
type AnsweredError struct{ Response *Response }

func (e *AnsweredError) Error() string {
	return fmt.Sprintf("hostileclient: answered %d before the body was sent: %s", e.Response.Status, e.Response.Body)
}

// Hold sends the head of a request and returns once the server reads the body, which it
// signals with 100 Continue (RFC 9110, section 10.1.1). If the server answers instead, the
// error is an *AnsweredError.
func Hold(ctx context.Context, addr string, r Request) (*Held, error) {
	c, err := send(ctx, addr, r.head(Field{"Expect", "100-continue"}))
	if err != nil {
		return nil, err
	}
	res, err := c.response(r.Method)
	switch {
	case err != nil:
		return nil, errors.Join(err, c.Close())
	case res.Status != http.StatusContinue:
		return nil, errors.Join(&AnsweredError{res}, c.Close())
	}
	return &Held{c, r}, nil
}

// Send sends the body and returns the response.
func (h *Held) Send() (*Response, error) {
	if _, err := io.WriteString(h.conn, h.r.Body); err != nil {
		return nil, err
	}
	return h.Response()
}

// Response waits for the response and sends nothing more.
func (h *Held) Response() (*Response, error) { return h.conn.response(h.r.Method) }

// Closed waits until the server has closed the connection, and returns nil then.
func (h *Held) Closed() error {
	_, err := h.conn.r.ReadByte()
	if err == nil {
		return errors.New("hostileclient: the server sent more")
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return err
	}
	return nil
}

// Close abandons the request.
func (h *Held) Close() error { return h.conn.Close() }

// ReadNothing sends a request n times on one connection and never reads. It returns when
// all are sent, or when the server has accepted nothing for a while. The caller closes
// the connection.
func ReadNothing(ctx context.Context, addr string, r Request, n int, while time.Duration) (io.Closer, error) {
	c, err := dial(ctx, addr)
	if err != nil {
		return nil, err
	}
	if err := c.SetReadBuffer(1024); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	for range n {
		if err := c.SetWriteDeadline(time.Now().Add(while)); err != nil {
			return nil, errors.Join(err, c.Close())
		}
		if _, err := io.WriteString(c, r.head()+r.Body); err != nil {
			break // the connection is full, or the server gave up, which is the purpose
		}
	}
	return c, nil
}

// Many sends a request on n connections and opens them all before the first byte is sent.
// It returns the responses in no order.
func Many(ctx context.Context, addr string, r Request, n int) ([]*Response, error) {
	conns := make([]*conn, 0, n)
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for range n {
		c, err := dial(ctx, addr)
		if err != nil {
			return nil, err
		}
		conns = append(conns, c)
	}
	type result struct {
		res *Response
		err error
	}
	results := make(chan result, n)
	for _, c := range conns {
		go func() {
			_, err := io.WriteString(c, r.head()+r.Body)
			if err != nil {
				results <- result{nil, err}
				return
			}
			res, err := c.response(r.Method)
			results <- result{res, err}
		}()
	}
	var list []*Response
	var errs []error
	for range n {
		if got := <-results; got.err != nil {
			errs = append(errs, got.err)
		} else {
			list = append(list, got.res)
		}
	}
	return list, errors.Join(errs...)
}
