// Package clientip finds out who sent a request.
package clientip

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Of returns the address of a request's client, never IPv4 in IPv6's clothes;
// the zero Addr if RemoteAddr is none. Forwarding headers count only as far as
// trusted proxies vouch for them: read from the right, the first hop that is not
// a trusted proxy is the client.
func Of(r *http.Request, proxies []netip.Prefix) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	client := peer.Addr().Unmap()
	if !within(client, proxies) {
		return client
	}
	hops := forwardedFor(r.Header)
	for i := len(hops) - 1; i >= 0; i-- {
		ip, ok := parseHop(hops[i])
		if !ok {
			break // what lies beyond a garbled hop is not vouched for
		}
		client = ip
		if !within(ip, proxies) {
			break
		}
	}
	return client
}

func within(ip netip.Addr, networks []netip.Prefix) bool {
	for _, p := range networks {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// forwardedFor lists the hops that X-Forwarded-For or else Forwarded (RFC 7239)
// name, nearest last.
func forwardedFor(h http.Header) []string {
	if xff := h.Values("X-Forwarded-For"); len(xff) > 0 {
		return strings.Split(strings.Join(xff, ","), ",")
	}
	var hops []string
	for _, element := range strings.Split(strings.Join(h.Values("Forwarded"), ","), ",") {
		for _, pair := range strings.Split(element, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
			if strings.EqualFold(name, "for") {
				hops = append(hops, strings.Trim(value, `"`))
			}
		}
	}
	return hops
}

// parseHop reads "192.0.2.1", "192.0.2.1:80", "2001:db8::1" or "[2001:db8::1]:80".
func parseHop(s string) (netip.Addr, bool) {
	s = strings.TrimSpace(s)
	if host, _, err := net.SplitHostPort(s); err == nil {
		s = host
	}
	ip, err := netip.ParseAddr(strings.Trim(s, "[]"))
	if err != nil {
		return netip.Addr{}, false
	}
	return ip.Unmap().WithZone(""), true
}

// LimitKey is the part of an address that one customer holds, for rate limits:
// IPv6 addresses count by their /64, because a host can choose any address
// within it.
func LimitKey(ip netip.Addr) string {
	if ip = ip.Unmap(); ip.Is4() {
		return ip.String()
	}
	p, _ := ip.WithZone("").Prefix(64) // IPv6 has no fewer bits
	return p.String()
}

// CleanUserAgent bounds what a client says of itself to 256 bytes and keeps it
// printable.
func CleanUserAgent(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return -1
		}
		return r
	}, s)
	if len(s) > 256 {
		s = s[:256]
	}
	return s
}
