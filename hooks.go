package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/authmount/auth/store"
)

// SignUpAttempt is the argument of BeforeSignUp.
type SignUpAttempt struct {
	Email         string // or Phone; sign-ups with a provider may have neither
	EmailVerified bool   // by the provider
	Phone         string
	FullName      string
	UserMetadata  map[string]any
	Method        string // "password", "magic_link", "otp", "oauth"
	Provider      string // of "oauth"
}

// SignInAttempt is the argument of BeforeSignIn, which runs after the credentials were
// verified, but before a recovery code is: the change that uses the code up creates the
// session.
type SignInAttempt struct {
	User     User
	Method   string
	Provider string // of "oauth"
}

// PasswordChange is the argument of BeforePasswordChange. The new password is strong
// enough, and the caller may set it. Nothing has changed yet, and another check may still
// refuse it.
type PasswordChange struct {
	User   User
	Method string // "change" (within a session), "reset" (by a link), "invitation" or "operator"
}

// The methods of a PasswordChange.
const (
	passwordByChange = "change"
	passwordByReset  = "reset"

	passwordByInvitation = "invitation"
)

// Hooks are functions of the application. Each may be nil, must be safe for concurrent
// use, and gets the request's context with its client ([ContextWithClient]). The hooks
// of several WithHooks run in the order of the options.
//
// The before-hooks may refuse. An [*Error] (see [Reject]) becomes the response, any
// other error or a panic becomes a 500. Later hooks do not run, and nothing changes.
//
// The after-hooks, OnEvent and OnProviderToken, observe committed changes. A panic is
// logged; it affects neither the response nor later hooks.
type Hooks struct {
	BeforeSignUp func(ctx context.Context, s SignUpAttempt) error
	BeforeSignIn func(ctx context.Context, s SignInAttempt) error
	// BeforePasswordChange decides on a new password of an existing account.
	// Sign-ups and imports have hooks of their own.
	BeforePasswordChange func(ctx context.Context, p PasswordChange) error
	// BeforeDelete decides on every deletion of an account. It runs again if the
	// account has changed meanwhile. After it agrees, the store may still refuse
	// (CodeLastOwner, CodeSessionEnded).
	BeforeDelete func(ctx context.Context, u User) error
	// OnUserCreating runs in the step that creates an account, by any method including
	// ImportUser. Its error undoes the step. With pgstore that is a transaction, which
	// pgstore.Tx(ctx) returns: the application's own rows are committed with the account
	// or not at all. If the transaction is retried, the hook runs again. It must not
	// call Auth.
	OnUserCreating func(ctx context.Context, u User) error
	// OnEvent observes events. It runs inside the request, so it should be quick.
	OnEvent func(ctx context.Context, e Event)
	// OnProviderToken receives a provider's tokens for a user who has just signed in
	// there. It runs before BeforeSignIn and before any second factor. Authmount does not
	// keep these tokens. It does not run for an identity linked by /exchange.
	OnProviderToken func(ctx context.Context, t ProviderToken)
}

// ProviderToken is a provider's permission to act for a user.
type ProviderToken struct {
	UserID       string
	Provider     string
	Subject      string
	AccessToken  string
	RefreshToken string // if the provider gave one
	TokenType    string
	ExpiresAt    time.Time // zero: unknown
}

// emit calls the application's hooks with an event, counts it, and records it unless a
// change has done so.
func (a *Auth) emit(ctx context.Context, e Event) {
	e = a.dated(ctx, e)
	a.recorder.Observe(e)
	a.counter.Observe(e)
	for _, h := range a.cfg.hooks {
		if h.OnEvent != nil {
			a.observe(ctx, func() { h.OnEvent(ctx, e) })
		}
	}
}

// codeOf returns the code of an error.
func codeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return string(e.Code)
	}
	return string(CodeInternal)
}

// observe calls an after-hook, and logs its panics.
func (a *Auth) observe(ctx context.Context, hook func()) {
	defer func() {
		if v := recover(); v != nil {
			a.cfg.log.ErrorContext(ctx, "auth: hook panicked", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	hook()
}

// dated fills in the event's missing id, client, time and reason.
func (a *Auth) dated(ctx context.Context, e Event) Event {
	if e.ID == "" {
		e.ID, e.Client = a.newID(), clientFrom(ctx)
	}
	if e.At.IsZero() {
		e.At = a.now()
	}
	if e.Err != nil && e.Reason == "" {
		e.Reason = reason(e.Err)
	}
	return e
}

// before runs the before-hooks that pick selects, in order, until one refuses.
func before[T any](ctx context.Context, a *Auth, about T, pick func(Hooks) func(context.Context, T) error) error {
	for _, h := range a.cfg.hooks {
		if ask := pick(h); ask != nil {
			if err := ask(ctx, about); err != nil {
				return hookRefused(err)
			}
		}
	}
	return nil
}

func (a *Auth) beforeSignUp(ctx context.Context, s SignUpAttempt) error {
	return before(ctx, a, s, func(h Hooks) func(context.Context, SignUpAttempt) error { return h.BeforeSignUp })
}

func (a *Auth) beforeSignIn(ctx context.Context, s SignInAttempt) (err error) {
	if s.User, err = a.asActor(ctx, s.User); err != nil {
		return err
	}
	return before(ctx, a, s, func(h Hooks) func(context.Context, SignInAttempt) error { return h.BeforeSignIn })
}

func (a *Auth) beforePasswordChange(ctx context.Context, p PasswordChange) error {
	return before(ctx, a, p, func(h Hooks) func(context.Context, PasswordChange) error { return h.BeforePasswordChange })
}

func (a *Auth) beforeDelete(ctx context.Context, u User) error {
	return before(ctx, a, u, func(h Hooks) func(context.Context, User) error { return h.BeforeDelete })
}

// creating returns the OnUserCreating hooks in the form that stores call.
func (a *Auth) creating() func(context.Context, User) error {
	var hooks []func(context.Context, User) error
	for _, h := range a.cfg.hooks {
		if h.OnUserCreating != nil {
			hooks = append(hooks, h.OnUserCreating)
		}
	}
	if len(hooks) == 0 {
		return nil
	}
	return func(ctx context.Context, u User) error {
		for _, hook := range hooks {
			if err := hook(ctx, u); err != nil {
				return hookRefused(err)
			}
		}
		return nil
	}
}

// LogValue keeps the tokens out of the log.
func (t ProviderToken) LogValue() slog.Value {
	return slog.GroupValue(slog.String("user_id", t.UserID), slog.String("provider", t.Provider), slog.String("tokens", redacted))
}

// AuditOptions configure the audit log of a [store.Journal].
type AuditOptions struct {
	// Retention is how long events are kept: by default 90 days, at least a day, and
	// for ever if negative. Events contain IP addresses and email addresses, and outlive
	// the accounts they are about. Keep them no longer than you need and the law allows.
	Retention time.Duration
}

// WithAuditLog sets the retention of the audit log. It needs a store that is a
// [store.Journal]. A second call replaces the first.
func WithAuditLog(o AuditOptions) Option {
	return func(c *config) { c.audit, c.audited = o, true }
}

const defaultRetention = 90 * 24 * time.Hour

func (o *AuditOptions) check() error {
	if o.Retention == 0 {
		o.Retention = defaultRetention
	}
	if o.Retention > 0 && o.Retention < 24*time.Hour {
		return errors.New("the retention is less than a day: set at least 24 hours, or a negative value to keep events for ever")
	}
	return nil
}

// eventWriter returns the store's AddEvents, or nil if it keeps no events.
func (a *Auth) eventWriter() func(context.Context, []Event) error {
	if a.journal != nil {
		return a.journal.AddEvents
	}
	return nil
}

// countWriter returns the store's AddCounts, or nil if it keeps no counts.
func (a *Auth) countWriter() func(context.Context, store.AddCounts) error {
	if a.project != nil {
		return a.project.AddCounts
	}
	return nil
}

// sweepEvents deletes up to n events that are older than the retention.
func (a *Auth) sweepEvents(ctx context.Context, n int) (int, error) {
	if a.journal == nil || a.cfg.audit.Retention < 0 {
		return 0, nil
	}
	now := a.now()
	return a.journal.SweepEvents(ctx, now.Add(-a.cfg.audit.Retention), now, n)
}
