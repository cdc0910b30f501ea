package webpage

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
)

// Response is a page as it is sent.
type Response struct {
	Status     int
	Locale     string
	Styles     string // Hash of the one style sheet that it has
	Look       Look
	FormTarget string // see Origin; "" for forms that stay here
	Body       []byte
}

// Hash is the source by which the policy lets an inline style sheet through.
func Hash(css []byte) string {
	sum := sha256.Sum256(css)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Write sends a page. Nothing on it can run, be framed, or load from elsewhere; it
// is kept nowhere, and its address, which may hold a token, goes nowhere.
func Write(w http.ResponseWriter, r *http.Request, p Response) {
	images, err := p.Look.images()
	if err != nil {
		images = "data:"
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", p.Locale)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src "+p.Styles+"; img-src "+images+"; base-uri 'none'; form-action "+
		formAction(p.FormTarget)+"; frame-ancestors 'none'")
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(p.Body) // a client that has gone needs no answer
	}
}

var plainOrigin = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:(//[A-Za-z0-9.\-:\[\]]+)?$`)

// formAction lets the form post here, and its answer redirect to the
// application: browsers hold redirects to the policy too.
func formAction(target string) string {
	if plainOrigin.MatchString(target) {
		return "'self' " + target
	}
	return "'self'"
}

// Origin is what the policy has to allow for a form whose answer leads to target.
func Origin(target string) string {
	u, err := url.Parse(target)
	if target == "" || err != nil {
		return ""
	}
	if u.Host == "" {
		return u.Scheme + ":"
	}
	return u.Scheme + "://" + u.Host
}
