// Package hostileclient sends requests as no decent client would, over
// connections of its own, for tests: it closes its half of the connection after
// the request, sends the head and holds the body, breaks off at a chosen moment,
// reads nothing, sends two cookies of one name, and opens many connections at once.
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

// patience bounds everything that a context does not bound earlier.
const patience = 20 * time.Second

// Field is one line of a head.
type Field struct{ Name, Value string }

// Request is sent to the letter. Only Host and, with a body, Content-Length are
// added.
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

// TwoCookies are the ways to send two cookies of one name: in one field, and in
// two.
func TwoCookies(name, first, second string) [][]Field {
	one, other := name+"="+first, name+"="+second
	return [][]Field{{{"Cookie", one + "; " + other}}, {{"Cookie", one}, {"Cookie", other}}}
}

// Response is a response that was read to its end.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
	Closes bool // the server closes the connection after it
}

// conn is a connection that is read by responses.
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

// send dials and writes, and closes the connection if that fails.
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

// response reads one that follows a request of this method.
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

// Do sends a request as it should be, on a connection of its own.
func Do(ctx context.Context, addr string, r Request) (*Response, error) {
	c, err := send(ctx, addr, r.head()+r.Body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	return c.response(r.Method)
}

// HalfClose sends a request, closes its own half of the connection a while after,
// and reads the response, if there is one.
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

// Abort sends a request and resets the connection a while after.
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

// Held is a request whose body the server waits for.
type Held struct {
	conn *conn
	r    Request
}

// AnsweredError tells of a server that did not wait for the body.
type AnsweredError struct{ Response *Response }

func (e *AnsweredError) Error() string {
	return fmt.Sprintf("hostileclient: answered %d before the body was sent: %s", e.Response.Status, e.Response.Body)
}

// Hold sends the head of a request and returns once the server reads the body,
// which it tells by 100 Continue (RFC 9110, section 10.1.1). An *AnsweredError if
// it answers instead.
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

// Response waits for the response without sending anything more.
func (h *Held) Response() (*Response, error) { return h.conn.response(h.r.Method) }

// Closed waits until the server has closed the connection; nil if it has.
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

// Close gives the request up.
func (h *Held) Close() error { return h.conn.Close() }

// ReadNothing sends a request n times over, one after the other on one
// connection, and reads nothing. It returns when everything is sent, or when the
// server takes no more of it for a while; the connection stays open until it is
// closed.
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
			break // it is full, or the server has given up: that is the point
		}
	}
	return c, nil
}

// Many sends a request on n connections, all of which are open before the first
// byte is sent, and returns the responses in no order.
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
