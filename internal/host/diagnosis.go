package host

import (
	"time"
)

// Diagnosis is the state of the service as one instance sees it.
type Diagnosis struct {
	Now      time.Time     `json:"now"`
	Store    StoreHealth   `json:"store"`
	Client   RequestClient `json:"client"`
	Mail     MailQueue     `json:"mail"`
	Keys     []KeyInfo     `json:"keys"`
	Settings SettingsAt    `json:"settings"`
	Feed     Feed          `json:"feed"`

	Clocks []ClockDifference `json:"clocks"` // empty: none is known
}

// ClockDifference is a difference between the clock of an instance and another one that is
// large enough for a warning: more than MaxClockDifference from the store, or so much that an
// access token was refused for it alone in the last hour.
type ClockDifference struct {
	Instance string    `json:"instance"` // host name of the instance
	With     string    `json:"with"`     // ClockOfStore or ClockOfToken
	Here     time.Time `json:"here"`     // by the instance's clock
	There    time.Time `json:"there"`    // by the other clock at that moment
	Ahead    float64   `json:"ahead_by"` // seconds by which the other clock is ahead, at least
}

// MaxClockDifference is the difference to the store's clock without a warning.
const MaxClockDifference = 5 * time.Second

// The other clocks of a ClockDifference.
const (
	ClockOfStore = "store"
	ClockOfToken = "token" // of the instance that issued a refused access token
)

// StoreHealth is the part of a Diagnosis about the store.
type StoreHealth struct {
	Now      *time.Time `json:"now"`      // null: the store has no clock of its own
	Ahead    *float64   `json:"ahead_by"` // seconds by which its clock is ahead of this process's
	Schema   *int       `json:"schema_version"`
	Response float64    `json:"response_seconds"` // duration of the reads for this report
}

// RequestClient is the caller of a request as the service sees it.
type RequestClient struct {
	IP             string   `json:"ip"`              // by the rules of WithTrustedProxies
	Peer           string   `json:"peer"`            // the other end of the connection: the client, or a proxy
	Forwarded      []string `json:"forwarded"`       // names of headers that name another client
	Unheeded       bool     `json:"unheeded"`        // the headers are ignored because the peer is not a trusted proxy
	TrustedProxies int      `json:"trusted_proxies"` // number of ranges in WithTrustedProxies
}

// MailQueue is the part of a Diagnosis about messages.
type MailQueue struct {
	Here    int        `json:"here"`    // messages in this process
	Waiting *int       `json:"waiting"` // messages in the store, counted up to 10,000; null: the store has none
	Oldest  *time.Time `json:"oldest"`
}

// KeyInfo is a public key that verifies access tokens. Its age is unknown.
type KeyInfo struct {
	ID        string `json:"kid"`
	Algorithm string `json:"alg"`
	Signs     bool   `json:"signs"`
}

// SettingsAt is the state of the settings in this process.
type SettingsAt struct {
	Revision int64      `json:"revision"`
	ReadAt   *time.Time `json:"read_at"` // null: the store has no settings
	Failing  bool       `json:"failing"` // the store cannot be read
}

// Feed is the part of a Diagnosis about the feed of revocations.
type Feed struct {
	Following int        `json:"following"` // number of feeds that this process follows
	LookedAt  *time.Time `json:"looked_at"`
}
