package auth

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
)

func FuzzDecodeJSON(f *testing.F) {
	for _, s := range []string{
		`{"email":"a","password":"b"}`, `{"email":"a","email":"b"}`, `{"Email":"a"}`, `{"\u0065mail":"a","email":"b"}`, `[]`, `null`, `{}x`, `{"a":[[[{}]]]}`,
		`{"email":1e999}`, "{\"email\":\"\xff\"}", `{"user_metadata":{"a":{"b":null}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var v struct {
			Email    string         `json:"email"`
			Metadata map[string]any `json:"user_metadata"`
		}
		if decodeJSON(b, &v) != nil {
			return
		}
		// What is accepted, every JSON parser reads the same way.
		var loose map[string]any
		if err := json.Unmarshal(b, &loose); err != nil {
			t.Errorf("%q is accepted: %v", b, err)
		}
		if s, _ := loose["email"].(string); s != v.Email {
			t.Errorf("%q: %q and %q", b, s, v.Email)
		}
	})
}

func FuzzRedirect(f *testing.F) {
	var patterns []redirectPattern
	for _, s := range []string{"https://app.test/*", "http://localhost/*", "https://exact.test/cb"} {
		p, err := parseRedirectPattern(s)
		if err != nil {
			f.Fatal(err)
		}
		patterns = append(patterns, p)
	}
	for _, s := range []string{"https://app.test/", "https://app.test@evil.test/", `https://app.test\evil`, "//app.test", "https://app.test/%2e%2e/x", "http://localhost:1/", "https://exact.test/cb?x"} {
		f.Add(s)
	}
	a := &Auth{cfg: config{redirects: patterns}}
	f.Fuzz(func(t *testing.T, s string) {
		if s == "" || a.allowRedirect(s) != nil {
			return
		}
		u, err := url.Parse(s)
		if err != nil {
			t.Fatalf("%q is allowed: %v", s, err)
		}
		host := strings.ToLower(u.Hostname())
		if (host != "app.test" && host != "localhost" && host != "exact.test") || u.User != nil || strings.ContainsAny(s, "\\\r\n\t ") {
			t.Errorf("%q is allowed", s)
		}
		// With or without what is added, it leads to the same place.
		to, err := url.Parse(withQuery(s, url.Values{"code": {"c"}}))
		if err != nil || !strings.EqualFold(to.Host, u.Host) || to.Query().Get("code") != "c" {
			t.Errorf("%q leads to %v, %v", s, to, err)
		}
	})
}

func FuzzClientOf(f *testing.F) {
	c := &config{trustedProxies: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}}
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
		if ip := c.clientOf(&http.Request{RemoteAddr: "192.0.2.1:1", Header: h}).IP; !ip.IsValid() || ip.Is4In6() || ip.Zone() != "" {
			t.Errorf("address %v", ip)
		}
		// From anybody else the headers mean nothing.
		if ip := c.clientOf(&http.Request{RemoteAddr: "203.0.113.9:1", Header: h}).IP; ip.String() != "203.0.113.9" {
			t.Errorf("address %v", ip)
		}
	})
}

func FuzzRate(f *testing.F) {
	f.Add(5, int64(time.Minute), int64(0), 1)
	f.Add(3, int64(time.Second), int64(-5), -2)
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.Fuzz(func(t *testing.T, burst int, per, offset int64, cost int) {
		if burst < 1 || burst > 1000 || per < int64(time.Millisecond) || per > int64(24*time.Hour) || cost < -2000 || cost > 2000 || offset > per || offset < -per {
			return
		}
		r := Rate{burst, time.Duration(per)}
		next, ok, wait, remaining := r.Apply(now.Add(time.Duration(offset)), now, cost)
		if remaining < 0 || remaining > burst || (ok && wait != 0) || (!ok && wait <= 0) || (ok && next.Before(now)) {
			t.Errorf("%v %d %d: %v %v %v %d", r, offset, cost, next, ok, wait, remaining)
		}
	})
}

func FuzzVerify(f *testing.F) {
	c := &config{secrets: [][]byte{[]byte("a secret of the fuzzer's, 32 b.!")}, now: func() time.Time { return time.Unix(1767323045, 0) }}
	c.tokens.Issuer = "https://auth.test"
	keys, err := newKeyring(c)
	if err != nil {
		f.Fatal(err)
	}
	a := &Auth{cfg: *c, keys: keys, parser: newParser(c), remember: newClaimsCache(-1), revoked: &denylist{}}
	good, _, err := a.accessToken(context.Background(), User{ID: "u"}, Session{ID: "s"}, c.now())
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{good, good + "A", good[1:], "a.b.c", "..", "eyJhbGciOiJub25lIn0.e30.", strings.ToLower(good)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if claims, err := a.Verify(s); err == nil && claims.UserID != "u" {
			t.Errorf("%q is accepted: %+v", s, claims)
		}
	})
}
