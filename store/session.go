package store

import (
	"net/netip"
	"strings"
	"time"

	"github.com/google/uuid"
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
	Origin
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
	Before time.Time // only those created before, by the clock of the caller that created them
	IP     string    // only those at this IP address

	FromSequence int64 // only those of at least this Sequence
}

// Assurance levels of sessions.
const (
	LevelAAL1 = "aal1" // one factor
	LevelAAL2 = "aal2" // two
)

// AddProof is the parameter of Store.AddProof.
type AddProof struct {
	Change
	SessionID string
	Proof     AMR
}

// Client is who is asking: for rate limits, sessions and the log.
type Client struct {
	IP        netip.Addr `json:"ip"`
	UserAgent string     `json:"user_agent,omitempty"`
	Device    string     `json:"-"` // hash of what the device says it is; empty: it does not say
}

// SessionQuery picks live sessions. Fields at zero pick all; those set have to hold
// together.
type SessionQuery struct {
	UserID string
	IP     string // as Session.IP has it
	AAL    string
	Client string    // part of the user agent, whatever its case
	Since  time.Time // made then or later
	Before time.Time // made before

	After *SessionCursor // for the next page
	Limit int            // required, from 1
	Now   time.Time      // required
}

// SessionCursor is a place in a list of sessions.
type SessionCursor struct {
	Time time.Time `json:"time"` // Session.CreatedAt
	ID   string    `json:"id"`
}

// Check tells what is wrong with a query: an *InvalidError.
func (q *SessionQuery) Check() error {
	switch {
	case q.Limit < 1:
		return &InvalidError{"limit", "has to be at least 1"}
	case q.AAL != "" && q.AAL != LevelAAL1 && q.AAL != LevelAAL2:
		return &InvalidError{"aal", "has to be aal1 or aal2"}
	case q.UserID != "" && uuid.Validate(q.UserID) != nil:
		return &InvalidError{"user", "has to be an id"}
	case q.Client != "" && q.UserID == "" && q.IP == "" && q.Since.IsZero():
		return &InvalidError{"client", "needs user, ip or since beside it, which say where to look"}
	case len(q.Client) > 256 || strings.ContainsRune(q.Client, 0) || len(q.IP) > 64 || strings.ContainsRune(q.IP, 0):
		return &InvalidError{"client", "is too long, or no text"}
	case q.After != nil && uuid.Validate(q.After.ID) != nil:
		return &InvalidError{"cursor", "is none of this list"}
	}
	return nil
}

// EndEverySession is the parameter of AdminStore.EndEverySession.
type EndEverySession struct {
	Change
	Until  int64     // as SessionOrder returned it
	At     time.Time // for the feed (Revocation.At)
	Except string    // the id of a session that is kept; empty: none
	Limit  int       // required, from 1
}
