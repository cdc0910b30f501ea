package authclient

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/authmount/auth"
)

// User is the wire's User object.
type User = auth.UserView

// Session is a completed sign-in; stores may hold its RefreshToken alone. Its tokens are secrets: formatting and logging a
// session show neither, marshalling it as JSON does, for stores.
type Session struct {
	AccessToken  string    `json:"access_token"`
	RefreshToken string    `json:"refresh_token"`
	ExpiresAt    time.Time `json:"expires_at"` // of the access token, by the clock of this machine
	User         User      `json:"user"`

	// RecoveryCodesLeft is there after a sign-in with a recovery code.
	RecoveryCodesLeft *int `json:"recovery_codes_left,omitempty"`
}

// String leaves the tokens out.
func (s Session) String() string { return "session of user " + s.User.ID + " [redacted]" }

// GoString leaves the tokens out of %#v.
func (s Session) GoString() string { return s.String() }

// LogValue keeps the tokens out of the log.
func (s Session) LogValue() slog.Value {
	return slog.GroupValue(slog.String("user_id", s.User.ID), slog.Time("expires_at", s.ExpiresAt), slog.String("tokens", "[redacted]"))
}

// early is how long before its end an access token is not used any more, so that it
// arrives while it is good.
const early = 30 * time.Second

// fresh tells whether the access token can be used without a refresh. The margin is the
// same for all: one that lives for no longer than it is renewed for every call.
func (s *Session) fresh(now time.Time) bool { return now.Add(early).Before(s.ExpiresAt) }

// valid tells whether the access token has not expired.
func (s *Session) valid(now time.Time) bool { return now.Before(s.ExpiresAt) }

func (s *Session) clone() *Session {
	if s == nil {
		return nil
	}
	out := *s
	out.User = cloneUser(s.User)
	return &out
}

func cloneUser(u User) User {
	u.Roles, u.Identities = slices.Clone(u.Roles), slices.Clone(u.Identities)
	u.UserMetadata, u.AppMetadata = maps.Clone(u.UserMetadata), maps.Clone(u.AppMetadata)
	return u
}

// sessionWire is the wire's Session object.
type sessionWire struct {
	AccessToken       string `json:"access_token"`
	RefreshToken      string `json:"refresh_token"`
	ExpiresIn         int    `json:"expires_in"`
	User              User   `json:"user"`
	RecoveryCodesLeft *int   `json:"recovery_codes_left"`
}

// session dates the token by when the answer was asked for, so that a clock that is
// wrong does no harm.
func (w sessionWire) session(asked time.Time) (*Session, error) {
	if w.AccessToken == "" || w.RefreshToken == "" || w.User.ID == "" {
		return nil, &Error{Code: CodeBadResponse, Message: "The answer holds no session."}
	}
	return &Session{
		AccessToken: w.AccessToken, RefreshToken: w.RefreshToken, ExpiresAt: asked.Add(time.Duration(w.ExpiresIn) * time.Second),
		User: w.User, RecoveryCodesLeft: w.RecoveryCodesLeft,
	}, nil
}
