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

// SignUpAttempt is what BeforeSignUp decides on.
type SignUpAttempt struct {
	Email         string // or Phone; sign-ups by a provider may have neither
	EmailVerified bool   // by the provider
	Phone         string
	FullName      string
	UserMetadata  map[string]any
	Method        string // "password", "magic_link", "otp", "oauth"
	Provider      string // of "oauth"
}

// SignInAttempt is what BeforeSignIn decides on, after the proof was right.
type SignInAttempt struct {
	User     User
	Method   string
	Provider string // of "oauth"
}

// PasswordChange is what BeforePasswordChange decides on: a password that is good
// enough, and that somebody may choose who knows the one before or came by a link.
// Nothing is changed yet, and something else may still refuse it.
type PasswordChange struct {
	User   User
	Method string // "change", from within a session, "reset", by a link, "invitation" or "operator"
}

// The methods of a PasswordChange.
const (
	passwordByChange = "change"
	passwordByReset  = "reset"

	passwordByInvitation = "invitation"
)

// Hooks are functions of the application's own. Each may be nil, must be safe
// for concurrent use, and gets the request's context with its client
// ([ContextWithClient]). Those of several WithHooks are called one after the
// other, in the order of the options.
//
// The before-hooks may refuse: an [*Error] (see [Reject]) is answered as it is,
// any other error becomes 500, the hooks behind it are not called, and nothing
// changes. A panic becomes 500.
//
// The after-hooks, OnEvent and OnProviderToken, observe what has been committed.
// They cannot harm it: a panic is logged, and neither the answer nor the hooks
// behind it suffer.
type Hooks struct {
	BeforeSignUp func(ctx context.Context, s SignUpAttempt) error
	BeforeSignIn func(ctx context.Context, s SignInAttempt) error
	// BeforePasswordChange decides on a password that takes the place of another
	// one, or is the first of an account that is there. Sign-ups and imports have
	// hooks of their own.
	BeforePasswordChange func(ctx context.Context, p PasswordChange) error
	// BeforeDelete decides on the end of an account, whoever asks for it. It is asked
	// once more of an account that changed meanwhile. Once it
	// agrees, the store may still refuse (CodeLastOwner, a session that has ended).
	BeforeDelete func(ctx context.Context, u User) error
	// OnUserCreating is called in the step that creates an account, whichever way
	// and also by ImportUser, and its error undoes it. With pgstore that is a
	// transaction, which pgstore.Tx(ctx) returns: a row of the application's own
	// is there with the account or not at all. One that gave way to another
	// transaction is made again, the call included. It must not call Auth.
	OnUserCreating func(ctx context.Context, u User) error
	// OnEvent observes what has happened. It runs inside the request, so it
	// should be quick.
	OnEvent func(ctx context.Context, e Event)
	// OnProviderToken receives what a provider gave for a person who has just
	// proved to be a user, before BeforeSignIn and before any second factor is
	// asked for. Authmount keeps no such tokens. An identity linked by /exchange
	// comes without.
	OnProviderToken func(ctx context.Context, t ProviderToken)
}

// ProviderToken is a provider's permission to act for a person.
type ProviderToken struct {
	UserID       string
	Provider     string
	Subject      string
	AccessToken  string
	RefreshToken string // if the provider gave one
	TokenType    string
	ExpiresAt    time.Time // zero: not told
}

// emit tells the application that something has happened, counts it, and has it
// recorded if that did not come with a change.
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

// codeOf is the code of an error.
func codeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return string(e.Code)
	}
	return string(CodeInternal)
}

// observe calls an after-hook, which cannot harm what has happened.
func (a *Auth) observe(ctx context.Context, hook func()) {
	defer func() {
		if v := recover(); v != nil {
			a.cfg.log.ErrorContext(ctx, "auth: hook panicked", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
		}
	}()
	hook()
}

// dated fills in what every event has, unless it has it already.
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

// before asks the before-hooks that pick finds, in order, until one refuses.
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

func (a *Auth) beforeSignIn(ctx context.Context, s SignInAttempt) error {
	return before(ctx, a, s, func(h Hooks) func(context.Context, SignInAttempt) error { return h.BeforeSignIn })
}

func (a *Auth) beforePasswordChange(ctx context.Context, p PasswordChange) error {
	return before(ctx, a, p, func(h Hooks) func(context.Context, PasswordChange) error { return h.BeforePasswordChange })
}

func (a *Auth) beforeDelete(ctx context.Context, u User) error {
	return before(ctx, a, u, func(h Hooks) func(context.Context, User) error { return h.BeforeDelete })
}

// creating is the hooks in the form stores call them.
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

// AuditOptions are about the audit log, which a [store.Journal] keeps.
type AuditOptions struct {
	// Retention is how long events are kept; default 90 days, at least a day. Events
	// hold addresses of clients and of people, and outlive the accounts that they are
	// about: keep them as long as you may and need to. Below zero: for ever.
	Retention time.Duration
}

// WithAuditLog says how long the audit log goes back. A second call replaces the
// first. It needs a store that is a [store.Journal].
func WithAuditLog(o AuditOptions) Option {
	return func(c *config) { c.audit, c.audited = o, true }
}

const defaultRetention = 90 * 24 * time.Hour

func (o *AuditOptions) check() error {
	if o.Retention == 0 {
		o.Retention = defaultRetention
	}
	if o.Retention > 0 && o.Retention < 24*time.Hour {
		return errors.New("a Retention of less than a day: name at least 24 hours, or less than zero to keep events for ever")
	}
	return nil
}

// eventWriter is the store's AddEvents, nil if it keeps no events.
func (a *Auth) eventWriter() func(context.Context, []Event) error {
	if a.journal != nil {
		return a.journal.AddEvents
	}
	return nil
}

// countWriter is the store's AddCounts, nil if it keeps no figures.
func (a *Auth) countWriter() func(context.Context, store.AddCounts) error {
	if a.project != nil {
		return a.project.AddCounts
	}
	return nil
}

// sweepEvents deletes what the audit log has kept long enough, up to n events.
func (a *Auth) sweepEvents(ctx context.Context, n int) (int, error) {
	if a.journal == nil || a.cfg.audit.Retention < 0 {
		return 0, nil
	}
	now := a.now()
	return a.journal.SweepEvents(ctx, now.Add(-a.cfg.audit.Retention), now, n)
}
