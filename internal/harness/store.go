package harness

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/hostileclient"
	"github.com/authmount/auth/internal/storetap"
)

// Listening is a world that listens on a port.
type Listening struct {
	*World
	Tap  *storetap.Tap
	Addr string
}

// NewListening starts a server. edit, which may be nil, changes it before it starts.
func NewListening(t *testing.T, edit func(*http.Server), opts ...auth.Option) *Listening {
	t.Helper()
	tap := storetap.New(NewStore(t))
	w := &World{T: t, Log: &SyncBuffer{}}
	base := []auth.Option{
		WithPasskeys(),
		auth.WithRateLimits(auth.RateLimits{Off: true}), auth.WithSettings(auth.Settings{AccountDeletion: auth.On}),
		auth.WithLogger(slog.New(slog.NewTextHandler(w.Log, nil))),
	}
	w.Env = authtest.NewOn(t, tap, append(base, opts...)...)
	if err := CheapPasswords(w.Auth); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(w.Handler())
	if edit != nil {
		edit(srv.Config)
	}
	srv.Start()
	t.Cleanup(srv.Close)
	return &Listening{w, tap, srv.Listener.Addr().String()}
}

// Request is a request of a route. Its body has all fields that any route may accept from
// a signed-in user.
func Request(pattern, access string) hostileclient.Request {
	method, path, _ := strings.Cut(pattern, " ")
	body, err := json.Marshal(map[string]any{
		"full_name": "Thief", "user_metadata": map[string]any{"thief": true}, "email": "thief@example.com",
		"current_password": GoodPassword, "new_password": "thieves' horse battery", "totp_code": "123456",
	})
	if err != nil {
		panic(err) // strings only
	}
	return hostileclient.Request{
		Method: method, Path: "/auth/v1" + strings.NewReplacer("{provider}", "google", "{id}", "00000000-0000-7000-8000-000000000000").Replace(path),
		Header: []hostileclient.Field{{Name: "Authorization", Value: "Bearer " + access}, {Name: "Content-Type", Value: "application/json"}},
		Body:   string(body),
	}
}

// Settled waits until the number of goroutines is back to before, except for the goroutines
// of a few idle connections.
func Settled(t *testing.T, before int) {
	t.Helper()
	const spare = 8
	for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before+spare; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, and there were %d", runtime.NumGoroutine(), before)
		}
	}
}

var ErrDown = errors.New("connection refused")

const OwnersPassword = "the owner's horse battery"

// NewTappedWorld is a world on a tapped store.
func NewTappedWorld(t *testing.T, opts ...auth.Option) (*World, *storetap.Tap, *authtest.Provider) {
	t.Helper()
	tap, idp := storetap.New(NewStore(t)), authtest.StartProvider(t)
	w := &World{T: t, Log: &SyncBuffer{}}
	w.Env = authtest.NewOn(t, tap, append([]auth.Option{auth.WithProvider(idp.Google(), idp.GitHub())}, opts...)...)
	idp.Now = w.Clock.Now
	return w, tap, idp
}

// BeforeCall runs f right before the next call of a method, once.
func BeforeCall(tap *storetap.Tap, method string, f func()) {
	tap.Reset(storetap.Hooks{Before: func(_ context.Context, called string, _ int) {
		if called == method {
			tap.Reset(storetap.Hooks{})
			f()
		}
	}})
}

// PostOffice is a mailer that records its messages and returns configured errors.
type PostOffice struct {
	Mu     sync.Mutex
	Got    []auth.Message
	Answer func(n int) error // for the n-th message, from 1; nil: accepted
}

func (p *PostOffice) Send(_ context.Context, m auth.Message) error {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.Got = append(p.Got, m)
	if p.Answer == nil {
		return nil
	}
	return p.Answer(len(p.Got))
}

func ContainsAny(s string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
}

// PlainStore is a store without second factors.
type PlainStore struct{ auth.Store }
