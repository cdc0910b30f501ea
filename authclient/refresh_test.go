package authclient

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Many concurrent callers after one expiry cause one refresh, and nobody is signed out.
func TestOneRefresh(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	old := accessToken(t, c)
	s.clock.Advance(15 * time.Minute)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if got, err := c.Token(t.Context()); err != nil || got == old {
				t.Error(got == old, err)
			}
		})
	}
	wg.Wait()
	if n := s.count("POST /refresh"); n != 1 {
		t.Errorf("%d refreshes", n)
	}
}

// Clients that share a store, as processes share a file, adopt each other's tokens. A
// client that slept for a day is not signed out.
func TestSharedStoreAdoptsNewerTokens(t *testing.T) {
	t.Parallel()
	s := newService(t)
	store := FileStore{filepath.Join(t.TempDir(), "session.json")}
	a := signedIn(t, s, "ada@example.com", WithTokenStore(store))
	b := newClient(t, s, WithTokenStore(store))
	if state, err := b.Restore(t.Context()); err != nil || state.Status != StatusSignedIn {
		t.Fatal(state, err)
	}
	for range 3 {
		s.clock.Advance(24 * time.Hour)
		accessToken(t, a)
		if before := s.count("POST /refresh"); accessToken(t, b) != accessToken(t, a) || s.count("POST /refresh") != before {
			t.Error("the newer token was not adopted")
		}
	}
	if err := a.SignOut(t.Context(), ScopeLocal); err != nil {
		t.Fatal(err)
	}
	s.clock.Advance(time.Hour)
	if _, err := b.Token(t.Context()); !errors.Is(err, CodeNoSession) || b.State().Status != StatusSignedOut {
		t.Error(err, b.State())
	}
}

// A refresh without an answer is sent again, and gets the same successor.
func TestLostAnswerOfARefresh(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	s.clock.Advance(16 * time.Minute)
	var lost atomic.Bool
	s.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if strings.HasSuffix(r.URL.Path, "/refresh") && !lost.Swap(true) {
			next.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		next.ServeHTTP(w, r)
	})
	accessToken(t, c)
	if s.count("POST /refresh") != 2 {
		t.Error(s.asked)
	}
}

// A sign-out during a refresh prevails: the refresh does not sign in again.
func TestSignOutWinsOverRefresh(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	s.clock.Advance(16 * time.Minute)
	arrived, leave := make(chan struct{}), make(chan struct{})
	s.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		if !strings.HasSuffix(r.URL.Path, "/refresh") {
			next.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		next.ServeHTTP(rec, r) // it succeeds, and its answer is late
		close(arrived)
		<-leave
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(rec.Body.Bytes())
	})
	done := make(chan error)
	go func() {
		_, err := c.Token(t.Context())
		done <- err
	}()
	<-arrived
	if err := c.SignOut(t.Context(), ScopeLocal); err != nil {
		t.Error(err)
	}
	close(leave)
	if err := <-done; err == nil {
		t.Error("a token of a session that was signed out")
	}
	if got := c.State().Status; got != StatusSignedOut {
		t.Error(got)
	}
}

// A caller's context ends its own wait, and not the refresh that others wait for.
func TestContextBoundsTheOneCall(t *testing.T) {
	t.Parallel()
	s := newService(t)
	c := signedIn(t, s, "ada@example.com")
	s.clock.Advance(16 * time.Minute)
	arrived, leave := make(chan struct{}), make(chan struct{})
	s.set(func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		close(arrived)
		<-leave
		next.ServeHTTP(w, r)
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := c.Token(ctx)
		done <- err
	}()
	<-arrived
	stays := make(chan error)
	go func() {
		_, err := c.Token(t.Context())
		stays <- err
	}()
	for two := false; !two; runtime.Gosched() {
		c.mu.Lock()
		two = c.flight.waiting == 2
		c.mu.Unlock()
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	close(leave)
	if err := <-stays; err != nil {
		t.Error(err)
	}
	if n := s.count("POST /refresh"); n != 1 {
		t.Error(n, "refreshes")
	}
}
