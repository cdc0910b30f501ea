package store

import (
	"net/netip"
	"time"
)

// Session is one signed-in device. Its tokens are derived from ID and Counter;
// the store holds no secret.
type Session struct {
	ID           string // a UUID
	UserID       string
	Counter      uint32 // of the current refresh token; the first is 0
	RotatedAt    time.Time
	AAL          string // "aal1" or "aal2"
	AMR          []AMR
	CreatedAt    time.Time
	LastActiveAt time.Time
	IdleUntil    time.Time // ends here unless refreshed before
	ExpiresAt    time.Time // ends here in any case; zero: never
	IP           string
	UserAgent    string
	Device       string // Client.Device of the sign-in; empty: not known
}

// Client is who used the session last, as far as the session tells.
func (s *Session) Client() Client {
	ip, _ := netip.ParseAddr(s.IP)
	return Client{IP: ip, UserAgent: s.UserAgent}
}

// End is the instant at which the session ends if nothing happens before.
func (s *Session) End() time.Time {
	if !s.ExpiresAt.IsZero() && s.ExpiresAt.Before(s.IdleUntil) {
		return s.ExpiresAt
	}
	return s.IdleUntil
}

// What a store remembers of devices: of each user those seen last, so many, and
// none that was not seen for so long.
const (
	MaxDevices = 50
	DeviceLife = 400 * 24 * time.Hour
)

// MaxTrust is for how long a device may be trusted for the second factor at most.
const MaxTrust = 30 * 24 * time.Hour

// NewDevice is what a store does about a session that it makes on a device that is
// new: the user has signed in before (LastSignInAt), and Session.Device is none of
// the devices that are remembered of them. No device, which is an empty one, is new
// to a user of whom any are, or were until they were forgotten (DropDevices): for
// that, too, DeviceLife is long enough.
type NewDevice struct {
	Refuse bool // the change is ErrNewDevice, among what the method says of its target

	// Recorded in the same step, with the change's events of OutcomeNewDevice.
	Tokens   []Token         // of the session's user, as by PutToken
	Messages []SealedMessage // likewise, as Change.Messages

	Made func() // if set, called once such a change has come about
}

// ReplayGap is for how long after an outdated refresh token was let pass once no
// other one of the session is (Store.AdvanceSession).
const ReplayGap = 24 * time.Hour

// AMR is one proof given for a session (RFC 8176 gives some of the names).
type AMR struct {
	Method    string `json:"method"`    // "password", "magic_link", "otp", "oauth", "totp", "recovery_code"
	Timestamp int64  `json:"timestamp"` // Unix seconds
}

// Time is when the proof was given, in UTC.
func (m AMR) Time() time.Time { return time.Unix(m.Timestamp, 0).UTC() }

// SessionFilter picks sessions of one user: those of which all is true. The zero
// value means all.
type SessionFilter struct {
	ID     string    // only this one
	Except string    // all but this one
	Since  time.Time // only those made then or later
	Before time.Time // only those made before
	IP     string    // only those at this address
}

// Assurance levels of sessions.
const (
	LevelAAL1 = "aal1" // one factor
	LevelAAL2 = "aal2" // two
)
