package store

import (
	"net/netip"
)

// Client is who is asking: for rate limits, sessions and the log.
type Client struct {
	IP        netip.Addr `json:"ip"`
	UserAgent string     `json:"user_agent,omitempty"`
	Device    string     `json:"-"` // hash of what the device says it is; empty: it does not say
}
