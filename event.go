package auth

import (
	"context"
	"log/slog"
	"time"
)

// EventType names what has happened.
type EventType string

// The events.
const (
	EventSignedUp        EventType = "user.signed_up"
	EventSignedIn        EventType = "user.signed_in"
	EventSignInFailed    EventType = "sign_in.failed"
	EventRefreshed       EventType = "session.refreshed"
	EventReused          EventType = "refresh_token.reused"
	EventSessionsEnded   EventType = "session.ended"
	EventEmailVerified   EventType = "email.verified"
	EventEmailChanged    EventType = "email.changed"
	EventUserUpdated     EventType = "user.updated"
	EventUserImported    EventType = "user.imported"
	EventUserDeleted     EventType = "user.deleted"
	EventPasswordChanged EventType = "password.changed"
	EventPasswordReset   EventType = "password.reset"
	EventPasswordRemoved EventType = "password.removed" // unverified credentials gave way to the address's owner
	EventMessageFailed   EventType = "message.failed"
	EventPhoneVerified   EventType = "phone.verified"
	EventMFAEnabled      EventType = "mfa.enabled"
	EventMFADisabled     EventType = "mfa.disabled"

	EventRecoveryCodeUsed      EventType = "recovery_code.used"
	EventRecoveryCodesReplaced EventType = "recovery_codes.replaced"

	EventSMSBudgetExceeded EventType = "sms.budget_exceeded"

	EventIdentityLinked   EventType = "identity.linked"
	EventIdentityUnlinked EventType = "identity.unlinked"
)

// Event is something that has happened, after it was committed. It carries no
// secrets.
type Event struct {
	Type      EventType
	At        time.Time
	UserID    string // empty if there is no user
	SessionID string
	Method    string // sign-ins: "password", "magic_link", "otp", "oauth"
	Provider  string // identities, and what failed or signed up by one
	Message   Kind   // message.failed
	Left      int    // recovery_code.used: how many codes are left
	Err       error  // message.failed, sign_in.failed: why
	Client    Client
}

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

// Hooks are functions of the application's own. Each may be nil, must be safe
// for concurrent use, and gets the request's context with its client
// ([ContextWithClient]).
//
// The before-hooks may refuse: an [*Error] (see [Reject]) is answered as it is,
// any other error answers 500, and nothing changes. A panic answers 500.
type Hooks struct {
	BeforeSignUp func(ctx context.Context, s SignUpAttempt) error
	BeforeSignIn func(ctx context.Context, s SignInAttempt) error
	// OnUserCreating is called in the step that creates an account, whichever way
	// and also by ImportUser, and its error undoes it. With pgstore that is a
	// transaction, which pgstore.Tx(ctx) answers: a row of the application's own
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

// emit tells the application that something has happened.
func (a *Auth) emit(ctx context.Context, e Event) {
	if a.cfg.hooks.OnEvent == nil {
		return
	}
	if e.At.IsZero() {
		e.At = a.now()
	}
	e.Client = clientFrom(ctx)
	a.cfg.hooks.OnEvent(ctx, e)
}

func (a *Auth) beforeSignUp(ctx context.Context, s SignUpAttempt) error {
	if a.cfg.hooks.BeforeSignUp == nil {
		return nil
	}
	return hookRefused(a.cfg.hooks.BeforeSignUp(ctx, s))
}

func (a *Auth) beforeSignIn(ctx context.Context, s SignInAttempt) error {
	if a.cfg.hooks.BeforeSignIn == nil {
		return nil
	}
	return hookRefused(a.cfg.hooks.BeforeSignIn(ctx, s))
}

// creating is the hook in the form stores call it.
func (a *Auth) creating() func(context.Context, User) error {
	hook := a.cfg.hooks.OnUserCreating
	if hook == nil {
		return nil
	}
	return func(ctx context.Context, u User) error { return hookRefused(hook(ctx, u)) }
}

// What holds secrets logs without them.

const redacted = "[redacted]"

// LogValue keeps the tokens out of the log.
func (t Tokens) LogValue() slog.Value {
	return slog.GroupValue(slog.String("session_id", t.SessionID), slog.String("user_id", t.User.ID), slog.String("tokens", redacted))
}

// LogValue keeps link, code and text out of the log.
func (m Message) LogValue() slog.Value {
	return slog.GroupValue(slog.String("id", m.ID), slog.String("kind", string(m.Kind)), slog.String("to", maskAddress(m.To)), slog.String("text", redacted))
}

// LogValue keeps the password out of the log.
func (p SignUpParams) LogValue() slog.Value {
	return slog.GroupValue(slog.String("email", maskEmail(p.Email)), slog.String("password", redacted))
}

// LogValue keeps the password out of the log.
func (p LoginParams) LogValue() slog.Value {
	return slog.GroupValue(slog.String("email", maskEmail(p.Email)), slog.String("password", redacted))
}

// LogValue keeps the passwords out of the log.
func (p ChangePasswordParams) LogValue() slog.Value {
	return slog.GroupValue(slog.String("user_id", p.UserID), slog.String("passwords", redacted))
}

// LogValue keeps the tokens out of the log.
func (t ProviderToken) LogValue() slog.Value {
	return slog.GroupValue(slog.String("user_id", t.UserID), slog.String("provider", t.Provider), slog.String("tokens", redacted))
}

// LogValue keeps the hash out of the log.
func (c Credentials) LogValue() slog.Value {
	return slog.GroupValue(slog.String("user_id", c.User.ID), slog.String("password_hash", redacted))
}
