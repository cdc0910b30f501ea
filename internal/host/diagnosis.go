package host

import (
	"time"
)

// Diagnosis is how the service is doing, as one instance sees it.
type Diagnosis struct {
	Now      time.Time     `json:"now"`
	Store    StoreHealth   `json:"store"`
	Client   RequestClient `json:"client"`
	Mail     MailQueue     `json:"mail"`
	Keys     []KeyInfo     `json:"keys"`
	Settings SettingsAt    `json:"settings"`
	Feed     Feed          `json:"feed"`
}

// StoreHealth is the part of a Diagnosis about the store.
type StoreHealth struct {
	Now      *time.Time `json:"now"`      // null: it has no clock of its own
	Ahead    *float64   `json:"ahead_by"` // seconds by which its clock is ahead of this process's
	Schema   *int       `json:"schema_version"`
	Response float64    `json:"response_seconds"` // of what was read for this
}

// RequestClient is who asks, as it is seen here.
type RequestClient struct {
	IP             string   `json:"ip"`              // by the rules of WithTrustedProxies
	Peer           string   `json:"peer"`            // who is connected: the client, or a proxy
	Forwarded      []string `json:"forwarded"`       // the names of headers that speak of another client
	Unheeded       bool     `json:"unheeded"`        // they count for nothing, as the peer is no trusted proxy
	TrustedProxies int      `json:"trusted_proxies"` // how many ranges WithTrustedProxies names
}

// MailQueue is the part of a Diagnosis about messages.
type MailQueue struct {
	Here    int        `json:"here"`    // in this process
	Waiting *int       `json:"waiting"` // in the store, counted up to 10,000; null: it keeps none
	Oldest  *time.Time `json:"oldest"`
}

// KeyInfo is a public key that verifies access tokens. Its age is not known here.
type KeyInfo struct {
	ID        string `json:"kid"`
	Algorithm string `json:"alg"`
	Signs     bool   `json:"signs"`
}

// SettingsAt tells which settings are in force here.
type SettingsAt struct {
	Revision int64      `json:"revision"`
	ReadAt   *time.Time `json:"read_at"` // null: the store keeps none
	Failing  bool       `json:"failing"` // the store cannot be read
}

// Feed is the part of a Diagnosis about the feed of revocations.
type Feed struct {
	Following int        `json:"following"` // how many feeds this process follows
	LookedAt  *time.Time `json:"looked_at"`
}
