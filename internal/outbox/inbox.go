package outbox

import (
	_ "embed"
	"encoding/json"
	"html/template"
	"net"
	"net/http"
	"net/netip"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/internal/redirect"
	"github.com/authmount/auth/store"
)

// ServeInbox shows messages to requests from this machine: as a page at paths that end in
// /inbox, as JSON at paths that end in /messages. The newest message is last in JSON and
// first on the page.
func ServeInbox(w http.ResponseWriter, r *http.Request, list func() []Message) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	if !fromThisMachine(r) {
		http.Error(w, "The inbox is only available on this machine, and not through a proxy: open it at the address of the server itself.", http.StatusForbidden)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "Method not allowed.", http.StatusMethodNotAllowed)
		return
	}
	switch path.Base(r.URL.Path) {
	case "messages":
		serveInboxJSON(w, list())
	case "inbox":
		serveInboxPage(w, list())
	default:
		http.NotFound(w, r)
	}
}

// fromThisMachine reports whether a request was sent on this machine to this machine, not
// through a proxy.
func fromThisMachine(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded") || slices.Contains([]string{"Forwarded", "Via", "X-Real-Ip"}, name) {
			return false
		}
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && peer.Addr().Unmap().IsLoopback() && redirect.IsLoopback(strings.Trim(host, "[]"))
}

func serveInboxJSON(w http.ResponseWriter, messages []Message) {
	type entry struct {
		ID      string        `json:"id"`
		Kind    store.Kind    `json:"kind"`
		Channel store.Channel `json:"channel"`
		To      string        `json:"to"`
		Subject string        `json:"subject"`
		Text    string        `json:"text"`
		HTML    string        `json:"html"`
		Link    any           `json:"link"`
		Code    any           `json:"code"`
		At      time.Time     `json:"at"`
	}
	list := []entry{}
	for _, m := range messages {
		list = append(list, entry{m.ID, m.Kind, m.Channel, m.To, m.Subject, m.Text, m.HTML, orNull(m.Link), orNull(m.Code), m.At})
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(w).Encode(list) // the client may have disconnected
}

// orNull returns nil, JSON's null, for an empty string.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

//go:embed inbox.html
var inboxHTML string

var inboxPage = template.Must(template.New("inbox.html").Funcs(template.FuncMap{"inTop": inTop}).Parse(inboxHTML))

func serveInboxPage(w http.ResponseWriter, list []Message) {
	slices.Reverse(list)
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	_ = inboxPage.Execute(w, list) // the client may have disconnected
}

// inTop adds a base element to an HTML message, so that its links leave the inbox's
// frame.
func inTop(html string) string {
	const base = `<base target="_top">`
	if before, after, ok := strings.Cut(html, "<head>"); ok {
		return before + "<head>" + base + after
	}
	return base + html
}
