package dashboard

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/webpage"
)

//go:embed texts assets
var files embed.FS

// texts maps English texts to a language. "{name}" in them is replaced.
type texts map[string]string

// of translates a text and fills in its values, given as name, value, name, value.
func (t texts) of(text string, values ...any) string {
	if in, ok := t[text]; ok {
		text = in
	}
	for i := 0; i+1 < len(values); i += 2 {
		text = strings.ReplaceAll(text, "{"+fmt.Sprint(values[i])+"}", fmt.Sprint(values[i+1]))
	}
	return text
}

// looks are the texts and files.
type looks struct {
	langs    *webpage.Languages
	texts    map[string]texts
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
	in, err := fs.Sub(files, "texts")
	if err != nil {
		return err
	}
	l := &d.looks
	if l.langs, err = webpage.FindLanguages(webpage.Layers{Builtin: in}, ".", "texts", "json", "en"); err != nil {
		return err
	}
	l.texts, l.assets, l.versions = map[string]texts{}, map[string]asset{}, map[string]string{}
	for _, lang := range l.langs.Names {
		raw, err := fs.ReadFile(in, "texts."+lang+".json")
		if err != nil {
			return err
		}
		t := texts{}
		if err := json.Unmarshal(raw, &t); err != nil {
			return fmt.Errorf("texts.%s.json: %w", lang, err)
		}
		l.texts[lang] = t
	}
	for _, s := range host.DeclaredSettings() {
		l.texts["en"][s.Name] = s.Label
	}
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
