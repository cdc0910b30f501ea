package auth_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

const (
	evilPassword = "squatter horse battery"
	evilNew      = "squatter other battery"
	ownPassword  = "rightful horse battery"
	ownNew       = "rightful other battery"
	mustEnrol    = "Has To Enrol"
)

// classWorld is a service that many scenes play in, one after the other.
type classWorld struct {
	*world
	tap    *storetap.Tap
	idp    *authtest.Provider
	scenes int
	known  bool // people say which device they are at
}

func newClassWorld(t *testing.T, r row, more ...auth.Option) *classWorld {
	t.Helper()
	return newClassWorldOn(t, newStore(t), r, more...)
}

func newClassWorldOn(t *testing.T, store auth.Store, r row, more ...auth.Option) *classWorld {
	t.Helper()
	w := &classWorld{tap: storetap.New(store), idp: authtest.StartProvider(t)}
	settings := auth.Settings{AccountDeletion: auth.On}
	if r.confirm {
		settings.RequireConfirmation = auth.On
	}
	w.world = &world{t: t, log: &syncBuffer{}}
	w.Env = authtest.NewOn(t, w.tap, append([]auth.Option{
		auth.WithProvider(w.idp.Google(), w.idp.GitHub(), w.idp.Facebook(), w.idp.Apple()),
		auth.WithRateLimits(auth.RateLimits{Off: true}),
		auth.WithMail(auth.MailOptions{Sync: true}),
		auth.WithSettings(settings),
		auth.WithMFA(auth.MFAOptions{RequiredFor: func(u auth.User) bool { return u.FullName == mustEnrol && u.Unproved() }}),
	}, more...)...)
	if err := auth.CheapPasswords(w.Auth); err != nil {
		t.Fatal(err)
	}
	w.idp.Now = w.Clock.Now
	return w
}

// scene is one account, whose it should be, and who is on it.
type scene struct {
	*classWorld
	row           row
	id            string // of the account
	email, number string // the owner's
	ada           authtest.Person

	evil             *person
	evilMail         string
	evilNumber       string
	face, git, apple authtest.Person
	session          session // the one that the request is made in
	secret           string  // of a second factor
	recovery         []string
	mfa              bool // the factor is the owner's

	lost   bool     // by the act
	start  snapshot // right before the request
	before snapshot // right after the act
	people int      // so far
}

// scene begins a new one.
func (w *classWorld) scene(r row) *scene {
	w.t.Helper()
	w.scenes++
	w.Inbox.Clear()
	n := w.scenes
	s := &scene{
		classWorld: w, row: r,
		email: fmt.Sprintf("ada%d@example.com", n), number: fmt.Sprintf("+4930%07d", n),
		evilMail: fmt.Sprintf("evil%d@example.com", n), evilNumber: fmt.Sprintf("+4940%07d", n),
	}
	s.ada = authtest.Person{Subject: fmt.Sprintf("1%d", n), Email: s.email, EmailVerified: true}
	s.face = authtest.Person{Subject: fmt.Sprintf("2%d", n), Email: s.email}
	s.git = authtest.Person{Subject: fmt.Sprintf("3%d", n), Email: s.evilMail, EmailVerified: true}
	s.apple = authtest.Person{Subject: fmt.Sprintf("4%d", n), Email: s.evilMail, EmailVerified: true}
	s.evil = s.person(w.t.Context())
	switch r.kind {
	case onAddress:
		s.enter(s.evil.send("POST", "/signup", map[string]any{"email": s.email, "password": evilPassword}).want(200))
	case onNumber:
		s.enter(s.evil.send("POST", "/signup", map[string]any{"phone": s.number, "password": evilPassword}).want(200))
	case onIdentity:
		s.enter(s.evil.signIn("facebook", s.face, "").want(200))
	case onStolen:
		owner := s.person(w.t.Context())
		owner.send("POST", "/signup", map[string]any{"email": s.email, "password": ownPassword}).want(200)
		owner.send("GET", "/verify-email?token="+s.token(s.email, auth.KindVerifyEmail), nil).want(200)
		s.enter(s.evil.send("POST", "/login", map[string]any{"email": s.email, "password": ownPassword}).want(200))
	}
	return s
}

// enter takes the session of a response for the one to act in.
func (s *scene) enter(a *answer) {
	s.session = decodeAs[session](a)
	s.id = s.session.User.ID
}

// in is the header of requests within the session.
func (s *scene) in() header { return bearer(s.session.AccessToken) }

// enrols sets a second factor up in the session.
func (s *scene) enrols() {
	s.secret = decodeAs[struct{ Secret string }](s.evil.send("POST", "/2fa/setup-totp", nil, s.in()).want(200)).Secret
	a := s.evil.send("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": s.code(s.secret, 0)}, s.in()).want(200)
	s.recovery = decodeAs[struct {
		RecoveryCodes []string `json:"recovery_codes"`
	}](a).RecoveryCodes
	s.enter(a)
	s.mfa = s.row.kind == onStolen
	s.Clock.Advance(60e9)
}

// has to set a second factor up before the next session.
func (s *scene) hasToEnrol() {
	name := mustEnrol
	s.patch(s.id, store.UserPatch{FullName: &name})
}

// mail is the newest message to somebody.
func (s *scene) mail(to string, k auth.Kind) auth.Message {
	s.t.Helper()
	list := s.Inbox.Messages()
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].To == to && list[i].Kind == k {
			return list[i]
		}
	}
	s.t.Fatalf("no %s message to %s", k, to)
	return auth.Message{}
}

func (s *scene) token(to string, k auth.Kind) string {
	s.t.Helper()
	u, err := url.Parse(s.mail(to, k).Link)
	if err != nil {
		s.t.Fatal(err)
	}
	return u.Query().Get("token")
}

// person is somebody with a browser, who keeps what they are given.
type person struct {
	s       *scene
	ctx     context.Context
	handler http.Handler
	mu      sync.Mutex // of what is kept: they may ask for two things at once
	cookies map[string]string
	was     map[string]bool                                       // the providers that they came from
	edit    func(path string, body map[string]any) map[string]any // of what they send, or nil
	device  []header                                              // what their browser says of itself

	access, refresh, mfa []string
	urls                 []string // of providers, to come back from
	codes                []string // for /exchange
}

func (s *scene) person(ctx context.Context) *person {
	p := &person{s: s, ctx: ctx, handler: s.Handler(), cookies: map[string]string{}, was: map[string]bool{}}
	if s.people++; s.known {
		p.device = []header{{"X-Device-Id", fmt.Sprintf("device-of-person-%d", s.people)}, {"User-Agent", fmt.Sprintf("browser/%d", s.people)}}
	}
	return p
}

func (p *person) send(method, path string, body any, headers ...header) *answer {
	p.s.t.Helper()
	if fields, ok := body.(map[string]any); ok && p.edit != nil {
		body = p.edit(path, fields)
	}
	var reader io.Reader = http.NoBody
	switch b := body.(type) {
	case nil:
	case string:
		reader = strings.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			p.s.t.Fatal(err)
		}
		reader = bytes.NewReader(raw)
	}
	r := httptest.NewRequestWithContext(p.ctx, method, path, reader)
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range append(slices.Clip(p.device), headers...) {
		r.Header.Set(h.name, h.value)
	}
	p.mu.Lock()
	for name, value := range p.cookies {
		r.AddCookie(&http.Cookie{Name: name, Value: value}) //nolint:gosec // a request
	}
	p.mu.Unlock()
	rec := httptest.NewRecorder()
	p.handler.ServeHTTP(rec, r)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range rec.Result().Cookies() {
		p.cookies[c.Name] = c.Value
	}
	a := &answer{t: p.s.t, status: rec.Code, header: rec.Header(), body: rec.Body.Bytes()}
	p.keep(a)
	return a
}

// keep puts aside whatever could be of use later.
func (p *person) keep(a *answer) {
	var v map[string]any
	_ = json.Unmarshal(a.body, &v) // pages are none
	for name, list := range map[string]*[]string{"access_token": &p.access, "refresh_token": &p.refresh, "mfa_token": &p.mfa, "url": &p.urls} {
		if value, _ := v[name].(string); value != "" {
			*list = append(*list, value)
		}
	}
	to, err := url.Parse(a.header.Get("Location"))
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

// back returns the request by which a person comes back from a provider.
func (p *person) back(name, from string, who authtest.Person) func() *answer {
	p.s.t.Helper()
	p.was[name] = true
	p.s.idp.SignsIn(who)
	with := p.s.idp.Authorize(p.s.t, from)
	return func() *answer {
		if name == "apple" {
			return p.send("POST", "/oauth/apple/callback", with.Encode(), form)
		}
		return p.send("GET", "/oauth/"+name+"/callback?"+with.Encode(), nil)
	}
}

// begin goes to a provider and returns its URL.
func (p *person) begin(name, query string) string {
	return p.send("GET", "/oauth/"+name+"?"+query, nil).want(302).header.Get("Location")
}

func (p *person) signIn(name string, who authtest.Person, query string) *answer {
	p.s.t.Helper()
	return p.back(name, p.begin(name, query), who)()
}

// link begins to link an identity in the session.
func (p *person) link(name string, body any) string {
	p.s.t.Helper()
	a := p.send("POST", "/me/identities/"+name, body, p.s.in()).want(200)
	return decodeAs[map[string]string](a)["url"]
}

// lose lets an act happen. Its requests and store calls pass the tap unseen.
func (s *scene) lose(ctx context.Context, a act) {
	s.t.Helper()
	if s.id == "" {
		if u, err := s.tap.Inner().User(ctx, store.ByEmail(s.email)); err == nil {
			s.id = u.ID
		}
	}
	system := store.Change{Now: s.Clock.Now(), By: auth.Authority{System: "test"}}
	var err error
	switch owner := s.person(ctx); a {
	case byProvider, byMagicLink, byCode:
		var got session
		if answer := s.comes(owner, a); answer.status == http.StatusOK {
			got = decodeAs[session](answer)
		}
		if s.id == "" {
			s.id = got.User.ID
		}
		s.lost = s.id != "" && got.User.ID == s.id
	case byReset:
		owner.send("POST", "/forgot-password", map[string]any{"email": s.email}).want(200)
		if u, err := s.tap.Inner().User(ctx, store.ByEmail(s.email)); err == nil && u.ID == s.id {
			body := map[string]any{"token": s.token(s.email, auth.KindResetPassword), "new_password": ownNew}
			s.lost = owner.send("POST", "/reset-password", body).status == http.StatusOK
		}
	case signedOut:
		err = s.Logout(ctx, auth.LogoutParams{Caller: auth.ByApplication(s.id), Scope: auth.LogoutGlobal})
		s.lost = err == nil
	case banned:
		until := s.Clock.Now().Add(1e6 * 3600e9)
		_, err = s.tap.Inner().UpdateUser(ctx, store.UpdateUser{Change: system, UserID: s.id, Patch: store.UserPatch{BannedUntil: &until}})
		s.lost = err == nil
	case deleted:
		err = s.tap.Inner().DeleteUser(ctx, store.DeleteUser{Change: system, UserID: s.id})
		s.lost = err == nil
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		s.t.Errorf("%s: %v", a, err)
	}
	s.before = s.look(ctx)
	// What an account that is proved, or stays with whom it is, got before is a way
	// in of its own by now, as if the request had come earlier.
	if a == signedOut || (a == byReset && s.row.kind == onStolen) {
		s.lost = s.lost && len(s.before.Credentials.User.Identities) == len(s.start.Credentials.User.Identities)
	}
}

// comes is the owner's sign-in.
func (s *scene) comes(owner *person, a act) *answer {
	switch a {
	case byProvider:
		return owner.signIn("google", s.ada, "")
	case byMagicLink:
		owner.send("POST", "/magic-link/send", map[string]any{"email": s.email}).want(200)
		return owner.send("POST", "/magic-link/verify", map[string]any{"token": s.token(s.email, auth.KindMagicLink)})
	case byReset:
		return owner.send("POST", "/login", map[string]any{"email": s.email, "password": ownNew})
	default:
		owner.send("POST", "/otp/send", map[string]any{"phone": s.number}).want(200)
		return owner.send("POST", "/otp/verify", map[string]any{"phone": s.number, "otp": s.mail(s.number, auth.KindPhoneCode).Code})
	}
}

// snapshot is everything about an account that somebody could leave behind.
type snapshot struct {
	Credentials store.Credentials
	Factors     store.Factors
	Sessions    []auth.Session
}

func (s *scene) look(ctx context.Context) (v snapshot) {
	s.t.Helper()
	var err error
	st := s.tap.Inner()
	if v.Credentials, err = st.Credentials(ctx, store.ByID(s.id)); err != nil && !errors.Is(err, store.ErrNotFound) {
		s.t.Error(err)
	}
	factors, _ := store.Capability[store.FactorStore](st)
	if v.Factors, err = factors.Factors(ctx, s.id); err != nil {
		s.t.Error(err)
	}
	if v.Sessions, err = st.Sessions(ctx, s.id, s.Clock.Now()); err != nil {
		s.t.Error(err)
	}
	return v
}

// changed names what differs from an earlier look.
func (v snapshot) changed(before snapshot) []string {
	var list []string
	a, b := reflect.ValueOf(before.Credentials.User), reflect.ValueOf(v.Credentials.User)
	for i := range a.NumField() {
		if !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			list = append(list, fmt.Sprintf("%s is %v and was %v", a.Type().Field(i).Name, b.Field(i).Interface(), a.Field(i).Interface()))
		}
	}
	if v.Credentials.PasswordHash != before.Credentials.PasswordHash {
		list = append(list, "another password")
	}
	if !reflect.DeepEqual(v.Factors, before.Factors) {
		list = append(list, "other second factors")
	}
	if !reflect.DeepEqual(v.Sessions, before.Sessions) {
		list = append(list, "other sessions")
	}
	return list
}
