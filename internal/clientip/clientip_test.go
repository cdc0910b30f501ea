package clientip

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func TestOf(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8:ffff::/48")}
	for name, c := range map[string]struct {
		remote    string
		xff       []string
		forwarded []string
		want      string // "" for none
		unsure    bool   // the origin is unknown
	}{
		"no address":               {remote: "", want: ""},
		"a Unix socket":            {remote: "@", xff: []string{"198.51.100.1"}, want: ""},
		"direct":                   {remote: "203.0.113.9:1", want: "203.0.113.9"},
		"direct IPv6":              {remote: "[2001:db8::1]:1", want: "2001:db8::1"},
		"mapped IPv4":              {remote: "[::ffff:203.0.113.9]:1", want: "203.0.113.9"},
		"header from anybody":      {remote: "203.0.113.9:1", xff: []string{"198.51.100.1"}, forwarded: []string{"for=198.51.100.1"}, want: "203.0.113.9"},
		"proxy without a header":   {remote: "192.0.2.1:1", want: "192.0.2.1"},
		"header from a proxy":      {remote: "192.0.2.1:1", xff: []string{"198.51.100.1"}, want: "198.51.100.1"},
		"mapped proxy":             {remote: "[::ffff:192.0.2.1]:1", xff: []string{"198.51.100.1"}, want: "198.51.100.1"},
		"IPv6 proxy":               {remote: "[2001:db8:ffff::1]:1", xff: []string{"198.51.100.1"}, want: "198.51.100.1"},
		"spoofed beyond a proxy":   {remote: "192.0.2.1:1", xff: []string{"1.1.1.1, 198.51.100.1"}, want: "198.51.100.1"},
		"spoofed in a first field": {remote: "192.0.2.1:1", xff: []string{"1.1.1.1", "198.51.100.1"}, want: "198.51.100.1"},
		"two proxies":              {remote: "192.0.2.1:1", xff: []string{"1.1.1.1, 198.51.100.1, 192.0.2.7"}, want: "198.51.100.1"},
		"only proxies":             {remote: "192.0.2.1:1", xff: []string{"192.0.2.8, 192.0.2.7"}, want: "192.0.2.8"},
		"garbled":                  {remote: "192.0.2.1:1", xff: []string{"198.51.100.1, x"}, want: "192.0.2.1", unsure: true},
		"garbled beyond a proxy":   {remote: "192.0.2.1:1", xff: []string{"198.51.100.1, , 192.0.2.7"}, want: "192.0.2.7", unsure: true},
		"with ports":               {remote: "192.0.2.1:1", xff: []string{"[2001:db8::1]:80"}, want: "2001:db8::1"},
		"IPv4 with a port":         {remote: "192.0.2.1:1", xff: []string{"198.51.100.1:80"}, want: "198.51.100.1"},
		"bare IPv6":                {remote: "192.0.2.1:1", xff: []string{"2001:db8::1"}, want: "2001:db8::1"},
		"mapped hop":               {remote: "192.0.2.1:1", xff: []string{"::ffff:198.51.100.1"}, want: "198.51.100.1"},
		"zone":                     {remote: "192.0.2.1:1", xff: []string{"fe80::1%eth0"}, want: "fe80::1"},
		"Forwarded":                {remote: "192.0.2.1:1", forwarded: []string{`for=1.1.1.1, For="[2001:db8::1]:80";proto=https;by=192.0.2.1`}, want: "2001:db8::1"},
		"Forwarded twice":          {remote: "192.0.2.1:1", forwarded: []string{"for=198.51.100.1", "proto=http;for=192.0.2.7"}, want: "198.51.100.1"},
		"hidden":                   {remote: "192.0.2.1:1", forwarded: []string{"for=198.51.100.1, for=_hidden"}, want: "192.0.2.1", unsure: true},
		"nameless element":         {remote: "192.0.2.1:1", forwarded: []string{"for=198.51.100.1, proto=https"}, want: "192.0.2.1", unsure: true},
		"both, which differ":       {remote: "192.0.2.1:1", xff: []string{"198.51.100.1"}, forwarded: []string{"for=198.51.100.2"}, want: "192.0.2.1", unsure: true},
		"both, which agree":        {remote: "192.0.2.1:1", xff: []string{"1.1.1.1, 198.51.100.1, 192.0.2.7"}, forwarded: []string{"for=198.51.100.1"}, want: "198.51.100.1"},
		"both, one garbled":        {remote: "192.0.2.1:1", xff: []string{"x"}, forwarded: []string{"for=198.51.100.2"}, want: "192.0.2.1", unsure: true},
		"both, one empty":          {remote: "192.0.2.1:1", xff: []string{""}, forwarded: []string{"for=198.51.100.2"}, want: "192.0.2.1", unsure: true},
		"both, one no Forwarded":   {remote: "192.0.2.1:1", xff: []string{"198.51.100.1"}, forwarded: []string{"x, y;z", ""}, want: "198.51.100.1"},
		"both, one hidden":         {remote: "192.0.2.1:1", xff: []string{"198.51.100.1"}, forwarded: []string{"for=_hidden"}, want: "192.0.2.1", unsure: true},
		"both, one nameless":       {remote: "192.0.2.1:1", xff: []string{"198.51.100.1"}, forwarded: []string{"x", "proto=https"}, want: "192.0.2.1", unsure: true},
		"both, one with a comma":   {remote: "192.0.2.1:1", xff: []string{"198.51.100.1"}, forwarded: []string{`for=198.51.100.2;host="a, b"`}, want: "192.0.2.1", unsure: true},
		"no Forwarded alone":       {remote: "192.0.2.1:1", forwarded: []string{"x"}, want: "192.0.2.1"},
		"one garbled, one agrees":  {remote: "192.0.2.1:1", xff: []string{"x"}, forwarded: []string{"for=192.0.2.1"}, want: "192.0.2.1", unsure: true},
		"one agrees, one hidden":   {remote: "192.0.2.1:1", xff: []string{"192.0.2.1"}, forwarded: []string{"for=_hidden"}, want: "192.0.2.1", unsure: true},
	} {
		h := http.Header{}
		for _, v := range c.xff {
			h.Add("X-Forwarded-For", v)
		}
		for _, v := range c.forwarded {
			h.Add("Forwarded", v)
		}
		got, known := Of(&http.Request{RemoteAddr: c.remote, Header: h}, proxies)
		if got.IsValid() != (c.want != "") || (got.IsValid() && got.String() != c.want) || known != (c.want != "" && !c.unsure) {
			t.Errorf("%s: %v, known: %t; want %q", name, got, known, c.want)
		}
	}
}

// Ignored headers are reported only if an operator may have forgotten a proxy.
func TestHeadersIgnored(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	for name, c := range map[string]struct {
		remote, header, value string
		want                  bool
	}{
		"X-Forwarded-For from anybody": {"203.0.113.9:1", "X-Forwarded-For", "198.51.100.1", true},
		"Forwarded from anybody":       {"203.0.113.9:1", "Forwarded", "for=198.51.100.1", true},
		"from a proxy":                 {"192.0.2.1:1", "X-Forwarded-For", "198.51.100.1", false},
		"from a mapped proxy":          {"[::ffff:192.0.2.1]:1", "Forwarded", "for=198.51.100.1", false},
		"another header":               {"203.0.113.9:1", "X-Real-Ip", "198.51.100.1", false},
		"from a Unix socket":           {"@", "X-Forwarded-For", "198.51.100.1", false},
	} {
		r := &http.Request{RemoteAddr: c.remote, Header: http.Header{c.header: {c.value}}}
		if got := HeadersIgnored(r, proxies); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestLimitKey(t *testing.T) {
	for ip, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "2001:db8::1": "2001:db8::/64", "2001:db8::ffff:2": "2001:db8::/64", "2001:db8:0:1::1": "2001:db8:0:1::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := LimitKey(netip.MustParseAddr(ip)); got != want {
			t.Errorf("%s: %q, want %q", ip, got, want)
		}
	}
}

func TestNetworks(t *testing.T) {
	for ip, want := range map[string][]string{
		"192.0.2.1": {"192.0.2.1"}, "::ffff:192.0.2.1": {"192.0.2.1"},
		"2001:db8:1:2345::1%eth0": {"2001:db8:1::/48", "2001:db8:1:2300::/56", "2001:db8:1:2345::/64"},
	} {
		if got := Networks(netip.MustParseAddr(ip)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", ip, got, want)
		}
	}
}

func TestCleanUserAgent(t *testing.T) {
	long := strings.Repeat("x", 256)
	for in, want := range map[string]string{
		"": "", "curl/8.5.0 (x; y)": "curl/8.5.0 (x; y)", " ~": " ~", "a\r\nb\x00c\x7fd\tü\xff": "abcd", long: long, long + "y": long, strings.Repeat("ü", 300) + "z": "z",
	} {
		if got := CleanUserAgent(in); got != want {
			t.Errorf("%.40q: %q, want %q", in, got, want)
		}
	}
}

func FuzzOf(f *testing.F) {
	proxies := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	f.Add("198.51.100.1, 192.0.2.7", "")
	f.Add("", `for="[2001:db8::1]:80";proto=https, for=192.0.2.1`)
	f.Add("x,,:1", "for=_hidden;for=")
	f.Fuzz(func(t *testing.T, xff, forwarded string) {
		h := http.Header{}
		if xff != "" {
			h.Set("X-Forwarded-For", xff)
		}
		if forwarded != "" {
			h.Set("Forwarded", forwarded)
		}
		if ip, _ := Of(&http.Request{RemoteAddr: "192.0.2.1:1", Header: h}, proxies); !ip.IsValid() || ip.Is4In6() || ip.Zone() != "" {
			t.Errorf("address %v", ip)
		}
		// A client that adds the header that its proxy does not write cannot choose an
		// address, and no address except its own is known.
		h.Set("X-Forwarded-For", "198.51.100.9")
		ip, known := Of(&http.Request{RemoteAddr: "192.0.2.1:1", Header: h}, proxies)
		if own := ip.String() == "198.51.100.9"; !own && (known || ip.String() != "192.0.2.1") {
			t.Errorf("address %v, known: %t", ip, known)
		}
		// Headers from other senders are ignored.
		if ip, known := Of(&http.Request{RemoteAddr: "203.0.113.9:1", Header: h}, proxies); ip.String() != "203.0.113.9" || !known {
			t.Errorf("address %v, known: %t", ip, known)
		}
	})
}
