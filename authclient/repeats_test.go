package authclient

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
)

// clientCalls are the first requests of each method of a client. Requests that may be sent
// again, because repeating them does no harm, are sent three times.
var clientCalls = map[string]string{
	"BeginPasskeyFactor": "3 × POST /2fa/passkey", "Passkeys": "3 × GET /me/passkeys", "RemovePasskey": "DELETE /me/passkeys/x", "UpdatePasskey": "PATCH /me/passkeys/x",
	"AcceptInvitation": "POST /invitations/accept", "ChangePassword": "POST /me/password", "Confirm": "POST /me/confirm", "ConfirmEmail": "POST /verify-email",
	"ConfirmPhone": "POST /otp/verify", "DeleteAccount": "DELETE /me", "DisableTOTP": "POST /2fa/disable", "EnableTOTP": "POST /2fa/verify-and-enable",
	"EndOtherSessions": "3 × DELETE /sessions", "EndSession": "DELETE /sessions/x", "EnrollTOTP": "POST /2fa/setup-totp", "Exchange": "POST /exchange",
	"Export": "3 × GET /me/export", "Healthy": "GET /healthz", "Invitation": "3 × GET /invitations/accept", "LinkIdentity": "POST /me/identities/x",
	"RecoveryCodes": "POST /2fa/recovery-codes", "Refresh": "3 × POST /refresh", "ResetPassword": "POST /reset-password", "ResetPasswordForEmail": "POST /forgot-password",
	"SecureAccount": "POST /secure-account", "SendEmailConfirmation": "POST /verify-email", "SendOTP": "POST /magic-link/send", "Sessions": "3 × GET /sessions",
	"Settings": "3 × GET /settings", "SignInWithIDToken": "POST /oauth/x/id-token", "SignInWithOAuth": "3 × GET /oauth/x", "SignInWithPassword": "POST /login",
	"SignOut": "3 × POST /logout", "SignUp": "POST /signup", "UnlinkIdentity": "DELETE /me/identities/x", "UpdateUser": "PATCH /me", "User": "3 × GET /me",
	"UserOf": "3 × GET /me", "VerifyMFA": "POST /2fa/verify", "VerifyMagicLink": "POST /magic-link/verify", "VerifyOTP": "POST /magic-link/verify",
}

// In an outage each method sends only its repeatable requests again: on the admin side all
// but deletions, which would look like failures, and rows that are gone.
func TestEveryMethodRepeatsWhatMayBe(t *testing.T) {
	t.Parallel()
	var asked []string
	out := roundTrip(func(r *http.Request) (*http.Response, error) {
		asked = append(asked, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/auth/v1"))
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{"code":"unavailable"}`)), Request: r}, nil
	})
	at := func(w *wire) { w.pause = func(context.Context, time.Duration) error { return nil } }
	each := func(of reflect.Type, check func(name, asked string), fresh func() reflect.Value) {
		for i := range of.NumMethod() {
			asked = nil
			_, _, _ = outcome(t.Context(), fresh().Method(i))
			if len(asked) == 0 {
				continue
			}
			all := strings.Join(asked, ", ")
			if all == strings.Join([]string{asked[0], asked[0], asked[0]}, ", ") {
				all = "3 × " + asked[0]
			}
			check(of.Method(i).Name, all)
		}
	}
	seen := 0
	each(reflect.TypeFor[*Client](), func(name, asked string) {
		if seen++; asked != clientCalls[name] {
			t.Errorf("%s asks for %s, want %s", name, asked, clientCalls[name])
		}
	}, func() reflect.Value {
		c, err := NewClient("https://app.example.com", WithHTTPClient(&http.Client{Transport: out}), WithTokenStore(&endless{}), WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		at(c.wire)
		return reflect.ValueOf(c)
	})
	if seen != len(clientCalls) {
		t.Errorf("%d methods ask for something, want %d", seen, len(clientCalls))
	}
	each(reflect.TypeFor[*Admin](), func(name, asked string) {
		if once := strings.HasPrefix(asked, "DELETE /admin/") || asked == "POST /admin/users/import"; once == strings.HasPrefix(asked, "3 × ") {
			t.Errorf("%s asks for %s", name, asked)
		}
	}, func() reflect.Value {
		a, err := NewAdmin("https://app.example.com", secretKey, WithHTTPClient(&http.Client{Transport: out}))
		if err != nil {
			t.Fatal(err)
		}
		at(a.wire)
		return reflect.ValueOf(a)
	})
	a, err := NewAdmin("https://app.example.com", secretKey, WithHTTPClient(&http.Client{Transport: out}))
	if err != nil {
		t.Fatal(err)
	}
	at(a.wire)
	for what, row := range map[string]struct {
		call  func() error
		tries int
	}{ // a change under a revision makes another one
		"a change under a revision": {func() error { _, err := a.UpdateUser(t.Context(), "x", UpdateUserChanges{}, IfRevision(1)); return err }, 1},
		"another change":            {func() error { _, err := a.UpdateUser(t.Context(), "x", UpdateUserChanges{}); return err }, 3},
		"a read":                    {func() error { _, err := a.User(t.Context(), "x", IfRevision(1)); return err }, 3},
	} {
		if asked = nil; row.call() == nil || len(asked) != row.tries {
			t.Errorf("%s is sent %d times, want %d", what, len(asked), row.tries)
		}
	}
}

// The client's own errors have messages, too.
func TestOwnErrorsHaveWords(t *testing.T) {
	t.Parallel()
	answering := func(status int, body string) roundTrip {
		return func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{"X-Request-Id": {"r"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		}
	}
	client := func(tr roundTrip, s TokenStore) *Client {
		c, err := NewClient("https://app.example.com", WithHTTPClient(&http.Client{Transport: tr}), WithTokenStore(s), WithRetries(0))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	page := answering(http.StatusOK, "<html>")
	lost := roundTrip(func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF })
	broken := answering(http.StatusOK, "")
	for what, row := range map[string]struct {
		code auth.Code
		call func(ctx context.Context) error
	}{
		"an empty id":     {auth.CodeValidationFailed, func(ctx context.Context) error { return client(page, &endless{}).EndSession(ctx, "") }},
		"dots":            {auth.CodeValidationFailed, func(ctx context.Context) error { return client(page, &endless{}).EndSession(ctx, "..") }},
		"nobody":          {CodeNoSession, func(ctx context.Context) error { _, err := client(page, &MemoryStore{}).Token(ctx); return err }},
		"nobody to renew": {CodeNoSession, client(page, &MemoryStore{}).Refresh},
		"nobody, renewed": {CodeNoSession, func(ctx context.Context) error { _, err := client(page, &MemoryStore{}).renewed(ctx, "t"); return err }},
		"nobody, traded":  {CodeNoSession, client(page, &MemoryStore{}).refresh},
		"signed out elsewhere": {CodeNoSession, func(ctx context.Context) error {
			c := client(page, &MemoryStore{})
			c.loaded, c.session = true, &Session{AccessToken: "a", RefreshToken: "r"}
			return c.Refresh(ctx)
		}},
		"nobody, beside another process that is somebody": {CodeNoSession, func(ctx context.Context) error {
			c := client(page, &endless{})
			c.loaded = true // when nobody was signed in
			return c.refresh(ctx)
		}},
		"the store": {CodeStorage, client(page, unreadable{}).Refresh},
		"a page":    {CodeBadResponse, func(ctx context.Context) error { _, err := client(page, &endless{}).User(ctx); return err }},
		"nothing":   {CodeBadResponse, func(ctx context.Context) error { _, err := client(broken, &endless{}).User(ctx); return err }},
		"no answer": {CodeNetwork, func(ctx context.Context) error { _, err := client(lost, &endless{}).User(ctx); return err }},
		"no JSON": {auth.CodeValidationFailed, func(ctx context.Context) error {
			_, err := client(page, &endless{}).UpdateUser(ctx, UpdateUserParams{UserMetadata: map[string]any{"x": make(chan int)}})
			return err
		}},
		"another's address": {CodeForeignURL, func(ctx context.Context) error {
			_, err := newFlow(client(page, &endless{})).Complete(ctx, "https://app.example.com/?x=y")
			return err
		}},
	} {
		var e *Error
		if err := row.call(t.Context()); !errors.As(err, &e) || e.Code != row.code || e.Message == "" {
			t.Errorf("%s: %+v", what, err)
		}
	}
}
