// Package clientip determines the IP address of a request's client.
package clientip

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Of returns the IP address of a request's client, as IPv4 if it is IPv4-mapped; the zero
// Addr if RemoteAddr is invalid. Forwarding headers count only as far as trusted proxies
// wrote them: read from the right, the first hop that is not a trusted proxy is the
// client.
//
// A proxy writes one of the two headers and passes on the other as the client sent it. It
// is unknown which, so if X-Forwarded-For and Forwarded lead to different addresses,
// neither counts and the client is the proxy. A Forwarded header without an equals sign
// is ignored: a proxy writes one in every element, so the client sent the header, and
// must not be able to appear as the proxy. X-Forwarded-For has no grammar to make that
// distinction.
//
// known reports whether client is the origin of the request, and not just the nearest hop
// that a trusted proxy wrote. Check it before granting access by IP address.
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
		ip, ok := resolve(peer, hops, proxies)
		if found && ip != client {
			return peer, false
		}
		client, known, found = ip, known && ok, true
	}
	return client, known
}

// HeadersIgnored reports whether a request has forwarding headers that are ignored because its
// sender is not a trusted proxy.
func HeadersIgnored(r *http.Request, proxies []netip.Prefix) bool {
	if forwardedFor(r.Header) == nil && forwarded(r.Header) == nil {
		return false
	}
	remote, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && !within(remote.Addr().Unmap(), proxies)
}

// resolve returns the client according to the hops, and whether all hops up to it are
// valid.
func resolve(peer netip.Addr, hops []string, proxies []netip.Prefix) (client netip.Addr, known bool) {
	client = peer
	for i := len(hops) - 1; i >= 0; i-- {
		ip, ok := parseHop(hops[i])
		if !ok {
			return client, false // hops before a malformed one are not trusted
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

// forwardedFor returns the hops of X-Forwarded-For, the nearest last; nil if the header
// is absent.
func forwardedFor(h http.Header) []string {
	fields := h.Values("X-Forwarded-For")
	if len(fields) == 0 {
		return nil
	}
	return strings.Split(strings.Join(fields, ","), ",")
}

// forwarded returns the hops of Forwarded (RFC 7239), the nearest last; nil if the header
// is absent. An element without "for" is a hop, too: hops before it are not trusted.
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

// LimitKey returns the part of an IP address that one customer controls, for rate limits:
// the /64 of an IPv6 address, because a host can use any address in it.
func LimitKey(ip netip.Addr) string {
	list := Networks(ip)
	return list[len(list)-1]
}

// Networks returns the networks that one customer may control, the widest first: the /48,
// /56 and /64 of an IPv6 address, and an IPv4 address alone.
func Networks(ip netip.Addr) []string {
	if ip = ip.Unmap(); ip.Is4() {
		return []string{ip.String()}
	}
	var list []string
	for _, bits := range []int{48, 56, 64} {
		p, _ := ip.WithZone("").Prefix(bits) // IPv6 has at least 64 bits
		list = append(list, p.String())
	}
	return list
}

// CleanUserAgent returns the printable characters of a User-Agent header, at most 256
// bytes.
func CleanUserAgent(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return -1
		}
		return r
	}, s)
	return s[:min(len(s), 256)]
}
