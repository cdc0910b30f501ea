package hostileclient

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// serve starts a server and returns its address.
func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String()
}

func TestDo(t *testing.T) {
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write([]byte(r.Method + " " + r.URL.Path + " " + strings.Join(r.Header.Values("X"), ",") + " " + string(body))) //nolint:gosec // no browser reads it
	})
	res, err := Do(t.Context(), addr, Request{"POST", "/a", []Field{{"X", "1"}, {"X", "2"}}, "body"})
	if err != nil || res.Status != 200 || string(res.Body) != "POST /a 1,2 body" {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestHalfClose(t *testing.T) {
	gone := make(chan bool, 1)
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done() // the server sees that the client will send no more
		gone <- true
		w.WriteHeader(http.StatusTeapot)
	})
	res, err := HalfClose(t.Context(), addr, Request{Method: "GET", Path: "/"}, time.Millisecond)
	if err != nil || res.Status != http.StatusTeapot || !<-gone {
		t.Errorf("%+v, %v", res, err)
	}
}

func TestAbort(t *testing.T) {
	began, gone := make(chan bool), make(chan error, 1)
	addr := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		gone <- r.Context().Err()
	})
	if err := Abort(t.Context(), addr, Request{Method: "GET", Path: "/"}, 50*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	<-began
	if err := <-gone; err == nil {
		t.Error("the server did not notice")
	}
}

func TestHold(t *testing.T) {
	reading := make(chan string, 1)
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/early" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		body, _ := io.ReadAll(r.Body)
		reading <- string(body)
	})
	h, err := Hold(t.Context(), addr, Request{Method: "POST", Path: "/", Body: "late"})
	if err != nil {
		t.Fatal(err)
	}
	select {
	case body := <-reading:
		t.Fatalf("read %q before it was sent", body)
	default:
	}
	if res, err := h.Send(); err != nil || res.Status != 200 || <-reading != "late" {
		t.Errorf("%+v, %v", res, err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
	var early *AnsweredError
	if _, err := Hold(t.Context(), addr, Request{Method: "POST", Path: "/early", Body: "late"}); !errors.As(err, &early) || early.Response.Status != 401 {
		t.Errorf("%v", err)
	}
}

func TestReadNothing(t *testing.T) {
	big := bytes.Repeat([]byte("x"), 1<<20)
	stuck, free := make(chan bool, 64), make(chan error, 64)
	addr := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		stuck <- true
		var err error
		for range 64 {
			if _, err = w.Write(big); err != nil {
				break
			}
		}
		free <- err
	})
	c, err := ReadNothing(t.Context(), addr, Request{Method: "GET", Path: "/"}, 3, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	<-stuck
	select {
	case err := <-free:
		t.Errorf("somebody reads: %v", err)
	default:
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-free; err == nil {
		t.Error("everything was read")
	}
}

func TestTwoCookies(t *testing.T) {
	addr := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var values []string
		for _, c := range r.CookiesNamed("a") {
			values = append(values, c.Value)
		}
		_, _ = w.Write([]byte(strings.Join(values, ","))) //nolint:gosec // no browser reads it
	})
	for _, fields := range TwoCookies("a", "1", "2") {
		res, err := Do(t.Context(), addr, Request{Method: "GET", Path: "/", Header: fields})
		if err != nil || string(res.Body) != "1,2" {
			t.Errorf("%v: %+v, %v", fields, res, err)
		}
	}
}

func TestMany(t *testing.T) {
	const n = 40
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	opened := make(chan bool, n)
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			opened <- true
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	list, err := Many(t.Context(), srv.Listener.Addr().String(), Request{Method: "GET", Path: "/"}, n)
	if err != nil || len(list) != n || slices.ContainsFunc(list, func(r *Response) bool { return r.Status != 204 }) || len(opened) != n {
		t.Errorf("%d responses on %d connections, %v", len(list), len(opened), err)
	}
}
