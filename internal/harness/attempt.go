package harness

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// AskCode requests a code and returns it with the id of the request.
func (w *World) AskCode(phone string) (code, request string) {
	w.T.Helper()
	w.Inbox.Clear()
	request = w.RequestCode(map[string]any{"phone": phone})
	return w.Mail(w.T, phone, auth.KindPhoneCode).Code, request
}

func (w *World) RequestCode(body map[string]any) string {
	w.T.Helper()
	return DecodeAs[struct {
		ID string `json:"request_id"`
	}](w.Do("POST", "/otp/send", body).Want(200)).ID
}

func (w *World) OTPOf(phone, code, request string, h ...Header) *Answer {
	w.T.Helper()
	return w.Do("POST", "/otp/verify", map[string]any{"phone": phone, "otp": code, "request_id": request}, h...)
}

// AttemptStore counts the draws from the limiter, by limit. OwnDevice is a known device
// of every user.
type AttemptStore struct {
	auth.Store

	Mu    sync.Mutex
	Taken func() // after each draw
	Drawn map[string]int
}

const OwnDevice = "own device"

func (s *AttemptStore) Unwrap() auth.Store { return s.Store }

func (s *AttemptStore) Credentials(ctx context.Context, k store.UserKey) (store.Credentials, error) {
	device := k.Device
	k.Device = ""
	c, err := s.Store.Credentials(ctx, k)
	c.KnownDevice = err == nil && device == OwnDevice
	return c, err
}

func (s *AttemptStore) Take(ctx context.Context, draws []store.Draw, now time.Time) (store.Decision, error) {
	d, err := s.Store.Take(ctx, draws, now)
	if err == nil && d.Allowed {
		s.Mu.Lock()
		for _, draw := range draws {
			limit, _, _ := strings.Cut(draw.Key, ":")
			s.Drawn[limit] += draw.Cost
		}
		s.Mu.Unlock()
	}
	s.Mu.Lock()
	taken := s.Taken
	s.Mu.Unlock()
	if taken != nil {
		taken()
	}
	return d, err
}

// NewAttemptWorld returns a world on an AttemptStore with cheap password hashing.
func NewAttemptWorld(t *testing.T, opts ...auth.Option) (*World, *AttemptStore) {
	t.Helper()
	store := &AttemptStore{Store: NewStore(t), Drawn: map[string]int{}}
	w := &World{T: t, Log: &SyncBuffer{}}
	w.Env = authtest.NewOn(t, store, append([]auth.Option{auth.WithHooks(auth.Hooks{OnEvent: w.Record})}, opts...)...)
	if err := CheapPasswords(w.Auth); err != nil {
		t.Fatal(err)
	}
	return w, store
}

// Account imports a user with a verified email address.
func (w *World) Account(email, password string) auth.User {
	w.T.Helper()
	hash := ""
	if password != "" {
		if _, err := w.SignUp(w.T.Context(), auth.SignUpParams{Email: "made-for-" + email, Password: password}); err != nil && !errors.Is(err, auth.CodeMFAEnrollmentRequired) {
			w.T.Fatal(err)
		}
		c, err := w.Store.Credentials(w.T.Context(), store.ByEmail("made-for-"+email))
		if err != nil {
			w.T.Fatal(err)
		}
		hash = c.PasswordHash
	}
	u, err := w.ImportUser(w.T.Context(), auth.ImportUserParams{Email: email, PasswordHash: hash, EmailVerified: true})
	if err != nil {
		w.T.Fatal(err)
	}
	return u
}

func OnDeviceContext(ctx context.Context, device string) context.Context {
	return auth.ContextWithClient(ctx, auth.Client{IP: netip.MustParseAddr("192.0.2.7"), Device: device})
}

const WrongPassword = "wrong horse battery"

// AttemptLogin attempts to sign in to Ada's account.
func (w *World) AttemptLogin(ctx context.Context, password string) error {
	_, err := w.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: password})
	return err
}
