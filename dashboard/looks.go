package dashboard

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/webpage"
)

//go:embed assets
var files embed.FS

// looks are the texts and files.
type looks struct {
	langs    *webpage.Languages
	assets   map[string]asset
	versions map[string]string
	policy   string
}

// asset is a compressed file that browsers load.
type asset struct {
	kind         string
	plain, gzip_ []byte
}

// load reads the embedded files once.
func (d *Dashboard) load() error {
	l := &d.looks
	var err error
	if l.langs, err = d.kit.DashboardTexts(); err != nil {
		return err
	}
	l.assets, l.versions = map[string]asset{}, map[string]string{}
	css, err := files.ReadFile("assets/dashboard.css")
	if err != nil {
		return err
	}
	js, err := files.ReadFile("assets/dashboard.js")
	if err != nil {
		return err
	}
	l.policy = policy
	if l.policy, err = d.look.Policy(policy); err != nil {
		return err
	}
	return errors.Join(l.add("dashboard.css", "text/css; charset=utf-8", append([]byte(string(d.kit.Site().Style)+d.look.CSS()), css...)), l.add("dashboard.js", "text/javascript; charset=utf-8", js))
}

func (l *looks) add(name, kind string, body []byte) error {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(body); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	l.assets[name], l.versions[name] = asset{kind, body, b.Bytes()}, base64.RawURLEncoding.EncodeToString(sum[:9])
	return nil
}

// serveAsset sends a file, which never changes under its version.
func (d *Dashboard) serveAsset(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	a, ok := d.looks.assets[name]
	if !ok {
		d.problem(w, r, auth.Reject(auth.CodeNotFound, ""))
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	if h.Set("Cache-Control", "no-cache"); r.URL.Query().Get("v") == d.looks.versions[name] {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	body := a.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = a.gzip_
	}
	_, _ = w.Write(body) // the client may have gone
}

// forPeople is the format of times on pages.
const forPeople = "2006-01-02 15:04 UTC"

func absolute(t time.Time) string { return t.UTC().Format(forPeople) }

func iso(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func compact(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return ""
	}
	return strings.ReplaceAll(strings.TrimSpace(b.String()), "'", `'\''`)
}

// asError returns err as an error of the library, or nil.
func asError(err error) *auth.Error {
	var e *auth.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
