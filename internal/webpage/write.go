package webpage

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
)

// Response is a page to send.
type Response struct {
	Status     int
	Locale     string
	Styles     string // Hash of the page's style sheet
	Look       Look
	FormTarget string // see Origin; "" for forms that stay on this origin
	Scripts    bool   // the page loads scripts of this origin, and they may send requests there
	Body       []byte
}

// Hash returns the policy's source for an inline style sheet.
func Hash(css []byte) string {
	sum := sha256.Sum256(css)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// Write sends a page. Its policy forbids scripts (unless Response.Scripts is set), frames
// and requests to other origins, it is not cached, and its URL, which may contain a token, is not sent as a referrer.
func Write(w http.ResponseWriter, r *http.Request, p Response) {
	images, err := p.Look.images()
	if err != nil {
		images = "data:"
	}
	scripts := ""
	if p.Scripts {
		scripts = "script-src 'self'; connect-src 'self'; require-trusted-types-for 'script'; "
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", p.Locale)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Content-Security-Policy", "default-src 'none'; "+scripts+"style-src "+p.Styles+"; img-src "+images+"; base-uri 'none'; form-action "+
		formAction(p.FormTarget)+"; frame-ancestors 'none'")
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(p.Body) // the client may have disconnected
	}
}

var plainOrigin = regexp.MustCompile(`^[a-z][a-z0-9+.-]*:(//[A-Za-z0-9.\-:\[\]]+)?$`)

// formAction allows forms to post to this origin, and the response to redirect to the
// application: browsers apply the policy to redirects too.
func formAction(target string) string {
	if plainOrigin.MatchString(target) {
		return "'self' " + target
	}
	return "'self'"
}

// Origin returns the source that the policy must allow for a form whose response
// redirects to target.
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
