package authclient

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/authmount/auth"
)

// User is the API's User object.
type User = auth.UserView

// Session is a completed sign-in. Stores may hold its RefreshToken alone. The tokens
// are secrets: formatting and logging a session show none of them; JSON contains them,
// for stores.
type Session struct {
	AccessToken  string    `json:"access_token"`
	RefreshToken string    `json:"refresh_token"`
	ExpiresAt    time.Time `json:"expires_at"` // of the access token, by the clock of this machine
	User         User      `json:"user"`

	// RecoveryCodesLeft is set after a sign-in with a recovery code.
	RecoveryCodesLeft *int `json:"recovery_codes_left,omitempty"`
	// RecoveryCodes replace those that an account recovery link dropped. Show them to the
	// user: only the call that signs in returns them.
	RecoveryCodes []string `json:"-"`
}

// String leaves the tokens out.
func (s Session) String() string { return "session of user " + s.User.ID + " [redacted]" }

// GoString leaves the tokens out of %#v.
func (s Session) GoString() string { return s.String() }

// LogValue hides the tokens from logs.
func (s Session) LogValue() slog.Value {
	return slog.GroupValue(slog.String("user_id", s.User.ID), slog.Time("expires_at", s.ExpiresAt), slog.String("tokens", "[redacted]"))
}

// early is the margin before its expiry in which an access token is no longer used, so
// that it is still valid when it arrives.
const early = 30 * time.Second

// fresh reports whether the access token can be used without a refresh. The margin does
// not depend on the token's life, so a token that lives for less is refreshed for every
// call.
func (s *Session) fresh(now time.Time) bool { return now.Add(early).Before(s.ExpiresAt) }

// valid reports whether the access token has not expired.
func (s *Session) valid(now time.Time) bool { return now.Before(s.ExpiresAt) }

func (s *Session) clone() *Session {
	if s == nil {
		return nil
	}
	out := *s
	out.User, out.RecoveryCodes = cloneUser(s.User), nil
	return &out
}

func cloneUser(u User) User {
	u.Roles, u.Identities = slices.Clone(u.Roles), slices.Clone(u.Identities)
	u.UserMetadata, u.AppMetadata = maps.Clone(u.UserMetadata), maps.Clone(u.AppMetadata)
	return u
}

// sessionWire is the API's Session object.
type sessionWire struct {
	AccessToken       string `json:"access_token"`
	RefreshToken      string `json:"refresh_token"`
	ExpiresIn         int    `json:"expires_in"`
	User              User   `json:"user"`
	RecoveryCodesLeft *int   `json:"recovery_codes_left"`

	RecoveryCodes []string `json:"recovery_codes"`
}

// session computes the expiry from the time of the request by the local clock, so that
// a wrong clock does no harm.
func (w sessionWire) session(asked time.Time) (*Session, error) {
	if w.AccessToken == "" || w.RefreshToken == "" || w.User.ID == "" {
		return nil, &Error{Code: CodeBadResponse, Message: "The answer holds no session."}
	}
	return &Session{
		AccessToken: w.AccessToken, RefreshToken: w.RefreshToken, ExpiresAt: asked.Add(time.Duration(w.ExpiresIn) * time.Second),
		User: w.User, RecoveryCodesLeft: w.RecoveryCodesLeft, RecoveryCodes: w.RecoveryCodes,
	}, nil
}
