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
//
// A proxy writes one of the two headers and passes on the other as the client sent
// it. Nothing tells which, so where X-Forwarded-For and Forwarded lead to
// different addresses, neither is believed, and the client is the proxy. A Forwarded
// without an equals sign is none: every element that a proxy writes has one, so the
// client made it up, which must not make it the proxy. X-Forwarded-For has no
// grammar that would tell.
//
// known tells whether that is where the request came from, and not the nearest place
// that is vouched for: what opens something to an address asks for it.
func Of(r *http.Request, proxies []netip.Prefix) (client netip.Addr, known bool) {
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, false
	}
	peer := remote.Addr().Unmap()
	if !within(peer, proxies) {
		return peer, true
	}
	client, known = peer, true
	found := false
	for _, hops := range [][]string{forwardedFor(r.Header), forwarded(r.Header)} {
		if hops == nil {
			continue
		}
		ip, ok := beyond(peer, hops, proxies)
		if found && ip != client {
			return peer, false
		}
		client, known, found = ip, known && ok, true
	}
	return client, known
}

// Unheeded tells whether a request has forwarding headers that count for nothing,
// because who sent it is no trusted proxy.
func Unheeded(r *http.Request, proxies []netip.Prefix) bool {
	if forwardedFor(r.Header) == nil && forwarded(r.Header) == nil {
		return false
	}
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && !within(remote.Addr().Unmap(), proxies)
}

// beyond is the client that hops lead to, as far as they are vouched for, and whether
// that is all the way.
func beyond(peer netip.Addr, hops []string, proxies []netip.Prefix) (client netip.Addr, known bool) {
	client = peer
	for i := len(hops) - 1; i >= 0; i-- {
		ip, ok := parseHop(hops[i])
		if !ok {
			return client, false // what lies beyond a garbled hop is not vouched for
		}
		client = ip
		if !within(ip, proxies) {
			break
		}
	}
	return client, true
}

func within(ip netip.Addr, networks []netip.Prefix) bool {
	for _, p := range networks {
		if p.Contains(ip) {
			return true
		}
	}
	return false
}

// forwardedFor lists the hops of X-Forwarded-For, nearest last; nil without one.
func forwardedFor(h http.Header) []string {
	fields := h.Values("X-Forwarded-For")
	if len(fields) == 0 {
		return nil
	}
	return strings.Split(strings.Join(fields, ","), ",")
}

// forwarded lists the hops of Forwarded (RFC 7239), nearest last; nil without one.
// An element that names nobody is a hop, too: nothing beyond it is vouched for.
func forwarded(h http.Header) []string {
	field := strings.Join(h.Values("Forwarded"), ",")
	if !strings.Contains(field, "=") {
		return nil
	}
	hops := []string{}
	for _, element := range strings.Split(field, ",") {
		hop := ""
		for _, pair := range strings.Split(element, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
			if strings.EqualFold(name, "for") {
				hop = strings.Trim(value, `"`)
			}
		}
		hops = append(hops, hop)
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
	return s[:min(len(s), 256)]
}
