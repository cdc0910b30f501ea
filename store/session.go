package store

import (
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/internal/clientip"
)

// Session is one signed-in device. Its tokens are derived from ID and Counter, so the store
// holds no secret.
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

// Client is the IP address and user agent of the session's last use. Device is empty.
func (s *Session) Client() Client {
	ip, _ := netip.ParseAddr(s.IP)
	return Client{IP: ip, UserAgent: s.UserAgent}
}

// End is the instant at which the session ends unless it is refreshed or revoked before.
func (s *Session) End() time.Time {
	if !s.ExpiresAt.IsZero() && s.ExpiresAt.Before(s.IdleUntil) {
		return s.ExpiresAt
	}
	return s.IdleUntil
}

// Limits of the devices that a store remembers: MaxDevices most recently seen devices of
// each user, and none that was not seen for DeviceLife.
const (
	MaxDevices = 50
	DeviceLife = 400 * 24 * time.Hour
)

// MaxTrust is the longest time for which a device may be trusted for the second factor.
const MaxTrust = 30 * 24 * time.Hour

// NewDevice controls the creation of a session on a new device. A device is new if the user
// has signed in before (LastSignInAt), and Session.Device is none of the user's remembered
// devices. An empty Device is new if the store remembers any device of the user, or has
// forgotten one (DropDevices) that was last seen less than DeviceLife ago.
type NewDevice struct {
	Refuse bool // the change is ErrNewDevice, checked with the method's other errors about its target

	// Recorded in the same step as the change's events of OutcomeNewDevice.
	Tokens   []Token         // of the session's user, as by PutToken
	Messages []SealedMessage // of the session's user, as Change.Messages

	Made func() // if set, called once after such a change
}

// ReplayGap is the time after an accepted outdated refresh token in which no other one of
// the session is accepted (Store.AdvanceSession).
const ReplayGap = 24 * time.Hour

// MaxStrays is the number of successive counters of a session that another network may
// repeat early; the next of them counts as late (Rotation.Repeats).
const MaxStrays = 2

// Rotation is the part of a session that only AdvanceSession reads and writes. The zero
// value, with the Device of the Session, belongs to a new session.
type Rotation struct {
	Device     string    // Advance.Device of the client that moved the counter; at first Session.Device
	ReplayedAt time.Time // when an outdated token was last accepted late
	Replayed   uint32    // the counter then
	StrayedAt  uint32    // the last counter whose predecessor another network repeated early
	Strays     int       // the number of successive counters up to StrayedAt with such a repetition
}

// Move records the client that moves the counter.
func (r *Rotation) Move(a *Advance) {
	if !a.unknownClient() {
		r.Device = a.Device
	}
}

// Repeats decides on a counter that is lower than that of the session s, and records the
// decision: OutcomeDone if the same successor is issued again, OutcomeReplayed if the
// counter is accepted late, and OutcomeReused otherwise. Store.AdvanceSession documents
// the rules.
func (r *Rotation) Repeats(s *Session, a *Advance) Outcome {
	switch {
	case a.Counter+1 != s.Counter || a.Grace <= 0:
		return OutcomeReused
	case r.Replayed == s.Counter && a.Now.Before(r.ReplayedAt.Add(a.Grace)):
		return OutcomeDone
	case a.Now.Before(s.RotatedAt.Add(a.Grace)) && r.sameDevice(s, a) && (sameNetwork(s.IP, a.IP) || r.mayStray(s.Counter)):
		return OutcomeDone
	case !r.ReplayedAt.IsZero() && (a.Now.Before(r.ReplayedAt.Add(ReplayGap)) || r.Replayed+1 == s.Counter):
		return OutcomeReused
	}
	r.ReplayedAt, r.Replayed = a.Now, s.Counter
	return OutcomeReplayed
}

// sameDevice reports whether the client that moved the counter sent a. Without device
// identifiers, the user agent has to do.
func (r *Rotation) sameDevice(s *Session, a *Advance) bool {
	if a.unknownClient() || a.Device != "" || r.Device != "" {
		return a.unknownClient() || a.Device == r.Device
	}
	return a.UserAgent == s.UserAgent || a.UserAgent == "" || s.UserAgent == ""
}

// mayStray counts a repetition from another network, once for each counter.
func (r *Rotation) mayStray(counter uint32) bool {
	switch {
	case r.Strays > 0 && r.StrayedAt == counter:
	case r.Strays > 0 && r.StrayedAt+1 == counter:
		r.Strays++
	default:
		r.Strays = 1
	}
	r.StrayedAt = counter
	return r.Strays <= MaxStrays
}

// sameNetwork reports whether two addresses have the same key of rate limits. An unknown
// address is in every network.
func sameNetwork(one, other string) bool {
	a, errA := netip.ParseAddr(one)
	b, errB := netip.ParseAddr(other)
	return errA != nil || errB != nil || clientip.LimitKey(a) == clientip.LimitKey(b)
}

// unknownClient reports whether the call is from code that names no client.
func (a *Advance) unknownClient() bool { return a.IP == "" && a.UserAgent == "" && a.Device == "" }

// AMR is one authentication method used for a session (RFC 8176 defines some of the names).
type AMR struct {
	Method    string `json:"method"`    // "password", "magic_link", "otp", "oauth", "totp", "recovery_code"
	Timestamp int64  `json:"timestamp"` // Unix seconds
}

// Time is the instant of the authentication, in UTC.
func (m AMR) Time() time.Time { return time.Unix(m.Timestamp, 0).UTC() }

// SessionFilter picks sessions of one user that match all of its fields. The zero value
// matches all.
type SessionFilter struct {
	ID     string    // only this one
	Except string    // all but this one
	Before time.Time // only those with an earlier CreatedAt, by the clock of the caller that created them
	IP     string    // only those at this IP address

	FromSequence int64 // only those with at least this Sequence
}

// Authenticator assurance levels of sessions.
const (
	LevelAAL1 = "aal1" // one factor
	LevelAAL2 = "aal2" // two factors
)

// AddAuthentication is the parameter of Store.AddAuthentication.
type AddAuthentication struct {
	Change
	SessionID string
	Proof     AMR
}

// Client is the client that sent a request: for rate limits, sessions and the log.
type Client struct {
	IP        netip.Addr `json:"ip"`
	UserAgent string     `json:"user_agent,omitempty"`
	Device    string     `json:"-"` // hash of the device's own identifier; empty: it sent none
}

// SessionQuery picks live sessions that match all of its fields. A zero field matches all.
type SessionQuery struct {
	UserID string
	IP     string // in the form of Session.IP
	AAL    string
	Client string    // part of the user agent, in any case
	Since  time.Time // created then or later
	Before time.Time // created before

	After *SessionCursor // for the next page
	Limit int            // required, from 1
	Now   time.Time      // required
}

// SessionCursor is a place in a list of sessions.
type SessionCursor struct {
	Time time.Time `json:"time"` // Session.CreatedAt
	ID   string    `json:"id"`
}

// Check returns an *InvalidError if the query is invalid.
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
		return &InvalidError{"cursor", "does not belong to this list"}
	}
	return nil
}

// EndEverySession is the parameter of AdminStore.EndEverySession.
type EndEverySession struct {
	Change
	Until  int64     // the result of SessionOrder
	At     time.Time // for the feed (Revocation.At)
	Except string    // the id of a session that is kept; empty: none
	Limit  int       // required, from 1
}

// FactorRule names the users who need a second factor: everybody, holders of one of the
// roles, and always those whose AppMetadata has "mfa_required": true.
type FactorRule struct {
	Everybody bool
	Roles     []string
}

// Names reports whether u is one of the users.
func (r FactorRule) Names(u User) bool {
	own, _ := u.AppMetadata["mfa_required"].(bool)
	return own || r.Everybody || slices.ContainsFunc(u.Roles, func(role string) bool { return slices.Contains(r.Roles, role) })
}

// NeedsFactor reports whether FactorFor names u and the session s of u, which has the
// presented counter, is below AAL2.
func (a *Advance) NeedsFactor(s Session, u User) bool {
	return a.FactorFor != nil && a.Counter == s.Counter && s.AAL != LevelAAL2 && a.FactorFor.Names(u)
}
