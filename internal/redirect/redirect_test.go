package redirect

import (
	"errors"
	"net/url"
	"path"
	"regexp"
	"strings"
	"testing"
)

func patterns(t testing.TB, list ...string) []Pattern {
	t.Helper()
	var out []Pattern
	for _, s := range list {
		p, err := ParsePattern(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, p)
	}
	return out
}

func TestParsePattern(t *testing.T) {
	for s, want := range map[string]Pattern{
		"https://app.test":          {Scheme: "https", Host: "app.test", Path: "/"},
		"https://app.test/cb":       {Scheme: "https", Host: "app.test", Path: "/cb"},
		"https://APP.test/*":        {Scheme: "https", Host: "app.test", Path: "/", Below: true},
		"https://app.test:8443/a/*": {Scheme: "https", Host: "app.test", Port: "8443", Path: "/a/", Below: true},
		"http://[::1]/*":            {Scheme: "http", Host: "::1", Path: "/", Below: true},
		"http://app.localhost/cb":   {Scheme: "http", Host: "app.localhost", Path: "/cb"},
		"myapp://auth/*":            {Scheme: "myapp", Host: "auth", Path: "/", Below: true},
		"com.example.app:/cb":       {Scheme: "com.example.app", Path: "/cb"}, // RFC 8252, 7.1
	} {
		if got, err := ParsePattern(s); err != nil || got != want {
			t.Errorf("%q: %+v, %v; want %+v", s, got, err, want)
		}
		if again, err := ParsePattern(want.String()); err != nil || again != want {
			t.Errorf("%q became %q: %+v, %v", s, want, again, err)
		}
	}
	for s, want := range map[string]string{
		"": "plain URL", "*": "scheme", "/*": "scheme", "app.test/*": "scheme", "https://*.app.test/*": "wildcard", "https://app.test/a*": "wildcard", "https://app.test/*/x": "wildcard",
		"https://app.test/?a=b": "query", "https://app.test/#a": "query", "https:///*": "no host", "http:///*": "no host", "javascript:/*": "scheme", "https://a@app.test/*": "user information", "myapp:auth/*": "no host", "blob://app.test/*": "scheme", "data://app.test/*": "scheme", "vbscript://app.test/*": "scheme", "file://app.test/*": "scheme",
		"https://app.test/a/../*": "dots", "https://app.test//*": "misread", "https://äpp.test/*": "escaping", "https://app.test:x/*": "is not a URL",
		"http://app.test/*": "loopback", "HTTP://app.test/cb": "loopback", "http://localhost.evil.test/*": "loopback", "http://10.0.0.1/*": "loopback",
	} {
		p, err := ParsePattern(s)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasSuffix(err.Error(), "; want https://host/path, or https://host/* for all below") || p != (Pattern{}) {
			t.Errorf("%q: %+v, %v; want %q, and what would do", s, p, err, want)
		}
	}
}

func TestCheck(t *testing.T) {
	list := patterns(t, "https://app.test/*", "https://exact.test/cb", "https://port.test:8443/*", "http://localhost/*", "http://[::1]/*", "myapp://auth/*", "https://sub.test/app/*")
	for _, target := range []string{
		"https://app.test/", "https://app.test", "https://app.test/a/b?c=d#e", "https://APP.test/x", "https://app.test:443/x", "https://exact.test/cb", "https://exact.test/cb?x=1",
		"https://port.test:8443/x", "http://localhost:3000/x", "http://[::1]:3000/x", "myapp://auth/done", "https://sub.test/app/x", "https://sub.test/app", "https://sub.test/app/",
		"https://app.test/a!b~c", "https://app.test/" + strings.Repeat("x", 2048-len("https://app.test/")),
	} {
		if err := Check(target, list); err != nil {
			t.Errorf("%q: %v", target, err)
		}
	}
	for _, target := range []string{
		"https://sub.test/application", "https://exact.test/cb/", "https://exact.test/other", "https://exact.test", "https://port.test/x", "http://app.test/", "http://app.test:443/", "https://localhost/", "https://app.test:444/",
		"https://app.test.evil.test/", "https://evil.test/", "https://evil.test#@app.test/", "https://evil.test?@app.test/", "http://localhost.evil.test/", "http://127.0.0.1/", "myapp://other/",
	} {
		if err := Check(target, list); !errors.Is(err, ErrNotListed) {
			t.Errorf("%q: %v", target, err)
		}
		if err := Check(target, nil); err == nil {
			t.Errorf("%q is allowed by nothing", target)
		}
	}
	for _, target := range []string{
		"", "https://app.test@evil.test/", "https://user:pw@app.test/", "//app.test/", "///app.test/", "/relative", "https:app.test", "https:/app.test", `https://app.test\@evil.test/`,
		`https://app.test/\evil`, "https://app.test/%5cevil", "https://app.test//evil.test", "https://app.test/%2f/evil.test", "https://sub.test/app/../admin", "https://sub.test/app/%2e%2e/admin",
		"https://app.test/%00", "https://app.test/%0d%0aSet-Cookie:x", "javascript:alert(1)", "JavaScript:alert(1)//https://app.test/", "data:text/html,x", "file:///etc", "blob:https://app.test/x",
		"https://app.test/\r\nSet-Cookie: x=y", "https://app.test/\tx", " https://app.test/", "https://app.test/ü", "https://аpp.test/", // the last with a Cyrillic а
		"https://app.test/%7f", `https://app.test/?a=\b`, `https://app.test/#\b`, "https://app.test/?a= b", "https://[::1%25%40app.test]/", "https://app.test/" + strings.Repeat("x", 2049-len("https://app.test/")),
	} {
		if err := Check(target, list); err == nil || errors.Is(err, ErrNotListed) {
			t.Errorf("%q is taken for a plain URL: %v", target, err)
		}
	}
}

// climbing are paths that some servers read as outside /app/.
var climbing = []string{
	"..;/x", "..;a=b/x", ".;/x", "a;b/x", "x;y", "%2e%2e/x", "%2E%2E/x", ".%2e/x", "%2e./x", "..%2fx", "..%2Fx", "%2e%2e%2fx", "..%5cx", "%2e%2e%5Cx", "a%5c..%5cx",
	"%252e%252e/x", "%252E%252e%252fx", "..%252fx", "%25252e%25252e/x", "%c0%ae%c0%ae/../x", "..%3b/x", "..%3B/x", "%2e%2e;/x", "../x", "./x", "a/../../x", "..", ".", "...", ".%20./x", "..%20/x", "%20../x", ".../x", "%2f/x", "%5cx", "a%2f..%2f..%2fx", "a%2fb", "%2e%2e%2e/x",
}

// No server reads an accepted path below /app/* as outside it.
func TestPathsStayBelow(t *testing.T) {
	list := patterns(t, "https://app.test/app/*", "https://app.test/app/exact", "myapp://auth/app/*")
	for _, base := range []string{"https://app.test/app/", "myapp://auth/app/", "https://app.test/app/deep/er/"} {
		for _, end := range climbing {
			if err := Check(base+end, list); err == nil {
				t.Errorf("%s%s is allowed", base, end)
			}
		}
		for _, end := range []string{"", "x", "x.html", ".well-known/x", "a..b", "..a/b", "a%20b", "%c3%bc", "x?next=%2e%2e%2f;y", "x#..;/%2f"} {
			if err := Check(base+end, list); err != nil {
				t.Errorf("%s%s: %v", base, end, err)
			}
		}
	}
}

func TestIsLocal(t *testing.T) {
	for _, target := range []string{"/", "/notes", "/notes?page=2", "/a/b?to=//evil.test#x", "/?", "/a%20b", "/%c3%bc"} {
		if !IsLocal(target) {
			t.Errorf("%q is not local", target)
		}
	}
	for _, target := range []string{
		"", "notes", "?a=b", "#a", "//evil.test", "///evil.test", `/\evil.test`, `/\/evil.test`, `\evil.test`, "/%5cevil.test", "/%2fevil.test", "/%2Fevil.test", "/\t/evil.test", "/\n/evil.test",
		" /notes", "/no tes", "/ü", "https://evil.test/", "https:evil.test", "javascript:alert(1)", "/a/..//evil.test", "/./evil.test", "/../x", "/a/%2e%2e/x", "/;/evil.test", "/x;y", "/@evil.test/..", "/" + strings.Repeat("x", 3000),
	} {
		if IsLocal(target) {
			t.Errorf("%q is local", target)
		}
	}
	for _, end := range climbing {
		if IsLocal("/app/" + end) {
			t.Errorf("/app/%s is local", end)
		}
	}
}

func TestIsLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "app.localhost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "localhost.evil.test": false, "evillocalhost": false, "192.0.2.1": false, "0.0.0.0": false, "::": false, "127.0.0.1.evil.test": false,
	} {
		if got := IsLoopback(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}

func TestWithQuery(t *testing.T) {
	for target, want := range map[string]string{
		"https://app.test":                 "https://app.test?code=a%26b",
		"https://app.test/x?y=z#f":         "https://app.test/x?code=a%26b&y=z#f",
		"https://app.test/?code=mallory's": "https://app.test/?code=a%26b",
		"myapp://auth/done":                "myapp://auth/done?code=a%26b",
		"https://app.test:x/":              "https://app.test:x/",
	} {
		if got := WithQuery(target, url.Values{"code": {"a&b"}}); got != want {
			t.Errorf("%q: %q, want %q", target, got, want)
		}
	}
}

var params = regexp.MustCompile(`;[^/]*`)

func FuzzCheck(f *testing.F) {
	list := patterns(f, "https://app.test/*", "http://localhost/*", "https://exact.test/cb", "https://below.test/app/*")
	for _, s := range []string{"https://app.test/", "https://app.test@evil.test/", `https://app.test\evil`, "//app.test", "https://app.test/%2e%2e/x", "http://localhost:1/", "https://exact.test/cb?x"} {
		f.Add(s)
	}
	for _, end := range climbing {
		f.Add("https://below.test/app/" + end)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if Check(s, list) != nil {
			return
		}
		u, err := url.Parse(s)
		if err != nil {
			t.Fatalf("%q is allowed: %v", s, err)
		}
		host := strings.ToLower(u.Hostname())
		if host == "below.test" {
			// However often it is decoded and trimmed, the path stays below.
			p := u.EscapedPath()
			for range 4 {
				for _, read := range []string{p, strings.ReplaceAll(p, "\\", "/"), params.ReplaceAllString(p, "")} {
					if read = path.Clean(read); read != "/app" && !strings.HasPrefix(read, "/app/") {
						t.Errorf("%q leads to %q", s, read)
					}
				}
				next, err := url.PathUnescape(p)
				if err != nil {
					break
				}
				p = next
			}
			host = "app.test"
		}
		if (host != "app.test" && host != "localhost" && host != "exact.test") || u.User != nil || strings.ContainsAny(s, "\\\r\n\t ") {
			t.Errorf("%q is allowed", s)
		}
		// With or without added parameters, the target is the same.
		to, err := url.Parse(WithQuery(s, url.Values{"code": {"c"}}))
		if err != nil || !strings.EqualFold(to.Host, u.Host) || to.Query().Get("code") != "c" {
			t.Errorf("%q leads to %v, %v", s, to, err)
		}
	})
}
