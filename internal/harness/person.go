package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/authmount/auth/authtest"
)

// Person is a person with a browser, who keeps all credentials.
type Person struct {
	S       *Scene
	ctx     context.Context
	Handler http.Handler
	mu      sync.Mutex // guards the credentials, because requests may be concurrent
	cookies map[string]string
	was     map[string]bool                                       // providers used to sign in
	Edit    func(path string, body map[string]any) map[string]any // edits request bodies; may be nil
	Device  []Header                                              // headers of their browser

	access, Refresh, mfa []string
	urls                 []string // provider URLs to return from
	codes                []string // for /exchange
}

func (s *Scene) NewPerson(ctx context.Context) *Person {
	p := &Person{S: s, ctx: ctx, Handler: s.Handler(), cookies: map[string]string{}, was: map[string]bool{}}
	if s.people++; s.Known {
		p.Device = []Header{{"X-Device-Id", fmt.Sprintf("device-of-person-%d", s.people)}, {"User-Agent", fmt.Sprintf("browser/%d", s.people)}}
	}
	return p
}

func (p *Person) Send(method, path string, body any, headers ...Header) *Answer {
	p.S.T.Helper()
	if fields, ok := body.(map[string]any); ok && p.Edit != nil {
		body = p.Edit(path, fields)
	}
	var reader io.Reader = http.NoBody
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			p.S.T.Fatal(err)
		}
		reader = bytes.NewReader(raw)
	}
	r := httptest.NewRequestWithContext(p.ctx, method, path, reader)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range append(slices.Clip(p.Device), headers...) {
		r.Header.Set(h.Name, h.Value)
	}
	p.mu.Lock()
	for name, value := range p.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value}) //nolint:gosec // a request
	}
	p.mu.Unlock()
	rec := httptest.NewRecorder()
	p.Handler.ServeHTTP(rec, r)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range rec.Result().Cookies() {
		p.cookies[c.Name] = c.Value
	}
	a := &Answer{T: p.S.T, Status: rec.Code, Header: rec.Header(), Body: rec.Body.Bytes()}
	p.keep(a)
	return a
}

// keep stores the credentials of a response.
func (p *Person) keep(a *Answer) {
	var v map[string]any
	_ = json.Unmarshal(a.Body, &v) // pages are not JSON
	for name, list := range map[string]*[]string{"access_token": &p.access, "refresh_token": &p.Refresh, "mfa_token": &p.mfa, "url": &p.urls} {
		if value, _ := v[name].(string); value != "" {
			*list = append(*list, value)
		}
	}
	to, err := url.Parse(a.Header.Get("Location"))
	if err != nil {
		return
	}
	if code := to.Query().Get("code"); code != "" {
		p.codes = append(p.codes, code)
	}
	if to.Query().Get("state") != "" {
		p.urls = append(p.urls, to.String())
	}
}

// Back returns the request by which a person returns from a provider.
func (p *Person) Back(name, from string, who authtest.Person) func() *Answer {
	p.S.T.Helper()
	p.was[name] = true
	p.S.idp.SignsIn(who)
	with := p.S.idp.Authorize(p.S.T, from)
	return func() *Answer {
		if name == "apple" {
			return p.Send("POST", "/oauth/apple/callback", with.Encode(), Form)
		}
		return p.Send("GET", "/oauth/"+name+"/callback?"+with.Encode(), nil)
	}
}

// Begin starts a sign-in at a provider and returns its URL.
func (p *Person) Begin(name, query string) string {
	return p.Send("GET", "/oauth/"+name+"?"+p.S.withChallenge(query), nil).Want(302).Header.Get("Location")
}

func (p *Person) signIn(name string, who authtest.Person, query string) *Answer {
	p.S.T.Helper()
	return p.Back(name, p.Begin(name, query), who)()
}

// link starts to link an identity in the session.
func (p *Person) link(name string, body any) string {
	p.S.T.Helper()
	a := p.Send("POST", "/me/identities/"+name, body, p.S.Authorization()).Want(200)
	return DecodeAs[map[string]string](a)["url"]
}
