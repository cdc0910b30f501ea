package hostile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/hostileclient"
)

// abuse sends a request in one malicious way. It returns the statuses of the responses; a
// broken connection is no error.
type abuse func(ctx context.Context, w *harness.Listening, r hostileclient.Request) ([]int, error)

// read is the outcome of an abuse that may get a response.
func read(res *hostileclient.Response, err error) ([]int, error) {
	if err != nil || res == nil {
		return nil, nil //nolint:nilerr // the server may well hang up
	}
	return []int{res.Status}, nil
}

// abuses are all of them, by name.
func abuses() map[string]abuse {
	m := map[string]abuse{
		"holds the body": func(ctx context.Context, w *harness.Listening, r hostileclient.Request) ([]int, error) {
			h, err := hostileclient.Hold(ctx, w.Addr, r)
			if err != nil {
				return nil, err
			}
			defer func() { _ = h.Close() }()
			res, err := h.Response()
			if err != nil {
				return nil, err
			}
			if err := h.Closed(); err != nil {
				return nil, err
			}
			return []int{res.Status}, nil
		},
		"leaves while the body is awaited": func(ctx context.Context, w *harness.Listening, r hostileclient.Request) ([]int, error) {
			h, err := hostileclient.Hold(ctx, w.Addr, r)
			if err != nil {
				return nil, err
			}
			return nil, h.Close()
		},
		"reads nothing": func(ctx context.Context, w *harness.Listening, r hostileclient.Request) ([]int, error) {
			c, err := hostileclient.ReadNothing(ctx, w.Addr, r, 20, 5*time.Millisecond)
			if err != nil {
				return nil, err
			}
			return nil, c.Close()
		},
		"comes many times at once": func(ctx context.Context, w *harness.Listening, r hostileclient.Request) ([]int, error) {
			list, err := hostileclient.Many(ctx, w.Addr, r, 20)
			var statuses []int
			for _, res := range list {
				statuses = append(statuses, res.Status)
			}
			return statuses, err
		},
		"has two cookies of one name": func(ctx context.Context, w *harness.Listening, r hostileclient.Request) ([]int, error) {
			token := strings.TrimPrefix(r.Header[0].Value, "Bearer ")
			var statuses []int
			for _, fields := range hostileclient.TwoCookies(harness.AccessCookie, token, token) {
				r.Header = append(fields, hostileclient.Field{Name: "Content-Type", Value: "application/json"})
				res, err := hostileclient.Do(ctx, w.Addr, r)
				if err != nil {
					return nil, err
				}
				if slices.Contains(harness.SessionRoutes(w.Auth), r.Method+" "+strings.TrimPrefix(r.Path, "/auth/v1")) && res.Status < 400 {
					return nil, fmt.Errorf("status %d with two cookies", res.Status)
				}
				statuses = append(statuses, res.Status)
			}
			return statuses, nil
		},
	}
	for _, ms := range []time.Duration{0, 1, 3, 6, 12} {
		m[fmt.Sprintf("closes its half after %d ms", ms)] = func(ctx context.Context, w *harness.Listening, r hostileclient.Request) ([]int, error) {
			return read(hostileclient.HalfClose(ctx, w.Addr, r, ms*time.Millisecond))
		}
		m[fmt.Sprintf("breaks off after %d ms", ms)] = func(ctx context.Context, w *harness.Listening, r hostileclient.Request) ([]int, error) {
			return nil, hostileclient.Abort(ctx, w.Addr, r, ms*time.Millisecond)
		}
	}
	return m
}

// No abuse of any route stops the server or leaves anything behind. The server reports no
// fault except a shortage, and serves the next request.
func TestHostileClient(t *testing.T) {
	const sample = 50
	idp := authtest.StartProvider(t)
	w := harness.NewListening(t, nil, harness.WithBodyWait(20*time.Millisecond), auth.WithCookies(auth.CookieOptions{}), auth.WithProvider(idp.Google()))
	idp.Now = w.Clock.Now
	type trial struct{ pattern, abuse string }
	var trials []trial
	how := abuses()
	for _, pattern := range harness.Routes(w.Auth) {
		for name := range how {
			trials = append(trials, trial{pattern, name})
		}
	}
	slices.SortFunc(trials, func(a, b trial) int { return strings.Compare(a.pattern+a.abuse, b.pattern+b.abuse) })
	if !harness.All() {
		harness.Sampler(t, harness.DrawSeed(t)).Shuffle(len(trials), func(i, j int) { trials[i], trials[j] = trials[j], trials[i] })
		trials = trials[:sample]
	}
	watcher, _ := w.InCookies("watcher@example.com")
	next := func(what trial) {
		t.Helper()
		r := harness.Request("GET /me", watcher)
		r.Body = ""
		if res, err := hostileclient.Do(t.Context(), w.Addr, r); err != nil || res.Status != 200 {
			t.Fatalf("after %+v the next request fails: %+v, %v", what, res, err)
		}
	}
	next(trial{})
	before := runtime.NumGoroutine()
	for i, what := range trials {
		access, _ := w.InCookies(fmt.Sprintf("ada%d@example.com", i))
		statuses, err := how[what.abuse](t.Context(), w, harness.Request(what.pattern, access))
		if err != nil && !errors.Is(err, io.EOF) {
			t.Errorf("%+v: %v", what, err)
		}
		for _, status := range statuses {
			if status >= 500 && status != 503 {
				t.Errorf("%+v: status %d", what, status)
			}
		}
		next(what)
	}
	harness.Settled(t, before)
	if log := w.Log.String(); strings.Contains(log, "panic") {
		t.Errorf("log %s", log)
	}
}
