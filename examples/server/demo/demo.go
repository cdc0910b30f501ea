// Package demo fills an empty store with a month of a service that does not exist, for
// looking at the dashboard: people who sign up, sign in, mistype passwords and are banned.
// Everything goes through Authmount's public API and its endpoints, at a clock of the past.
package demo

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	mathrand "math/rand/v2"

	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/store"
)

// Permissions are the declared permissions of the demo's application. The service that
// serves the store needs them too.
func Permissions() []admin.Permission {
	return []admin.Permission{
		{Name: "notes.read", Description: "Read all notes."},
		{Name: "notes.write", Description: "Change all notes."},
		{Name: "notes.publish", Description: "Publish notes on the front page."},
	}
}

// Owner is the owner's access to the dashboard.
type Owner struct {
	Email, Password string
	TOTPSecret      string   // base32
	RecoveryCodes   []string // unused ones
}

// Mailer returns a mailer that hands messages to inbox, except those for two mailboxes: one
// is full, and the other's server asks to try again later. The service that serves the
// store needs it too, or it sends the message that waits.
func Mailer(inbox auth.Mailer) auth.Mailer { return mailer{inbox} }

type mailer struct{ auth.Mailer }

func (m mailer) Send(ctx context.Context, msg auth.Message) error {
	switch {
	case msg.To == bouncing && msg.Kind != auth.KindVerifyEmail:
		return auth.Permanent(errors.New("552 5.2.2 mailbox full"))
	case msg.To == deferring && msg.Kind == auth.KindResetPassword:
		return errors.New("451 4.7.1 greylisted, try again later")
	}
	return m.Mailer.Send(ctx, msg)
}

// Seed fills a store that has no accounts, and returns the owner's credentials. It needs
// the secret of the service that serves the store afterwards. It refuses a store with
// accounts, and leaves a part of the month behind if it fails later.
func Seed(ctx context.Context, st auth.Store, secret []byte, baseURL, appName string) (Owner, error) {
	return seedUntil(ctx, time.Now(), st, secret, baseURL, appName)
}

func seedUntil(ctx context.Context, now time.Time, st auth.Store, secret []byte, baseURL, appName string) (Owner, error) {
	s := &service{ctx: ctx, now: now.UTC().Truncate(time.Second), inbox: auth.NewInbox(), chance: mathrand.New(mathrand.NewPCG(7, 11)), password: rand.Text()} //nolint:gosec // for variety, not for secrets
	for i, p := range month {
		p.n, p.password, p.sessions = i, s.password, map[rune]*session{}
		s.people = append(s.people, &p)
	}
	s.moveTo(s.now.AddDate(0, 0, -31))
	var err error
	s.Auth, err = auth.New(ctx, st, auth.WithDevMode(), auth.WithSecret(secret), auth.WithBaseURL(baseURL), auth.WithMail(auth.MailOptions{AppName: appName, Sync: true}),
		auth.WithMailer(Mailer(s.inbox)), auth.WithSMSSender(s.inbox), auth.WithTrustedProxies("127.0.0.1/32"),
		auth.WithClock(func() time.Time { return time.Unix(0, s.clock.Load()).UTC() }), auth.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return Owner{}, err
	}
	err = s.seed()
	return Owner{Email: owner, Password: s.password, TOTPSecret: s.person(owner).secret, RecoveryCodes: s.person(owner).recovery}, errors.Join(err, s.Close(ctx))
}

// service is the service in the past.
type service struct {
	*auth.Auth
	ctx      context.Context //nolint:containedctx // of one call of Seed
	adm      *admin.Admin
	inbox    *auth.Inbox
	now      time.Time
	clock    atomic.Int64
	chance   *mathrand.Rand // the same at each start
	password string         // of everybody at first
	people   []*person
	steps    []step
}

// step is something that happens at a time.
type step struct {
	at   time.Time
	name string
	do   func() error
}

func (s *service) moveTo(t time.Time) { s.clock.Store(t.UnixNano()) }

// seed plans the month and carries it out in order.
func (s *service) seed() (err error) {
	if s.adm, err = admin.New(s.ctx, s.Auth, admin.Options{Permissions: Permissions()}); err != nil {
		return err
	}
	page, err := s.adm.ListUsers(s.ctx, admin.System("demo"), admin.ListUsersParams{Limit: 1})
	if err != nil {
		return err
	}
	if len(page.Users) > 0 {
		return errors.New("the database has accounts; the demo needs an empty one")
	}
	s.planVisits()
	s.planEvents()
	slices.SortStableFunc(s.steps, func(a, b step) int { return a.at.Compare(b.at) })
	for _, one := range s.steps {
		if !one.at.Before(s.now) {
			continue
		}
		s.moveTo(one.at)
		s.inbox.Clear()
		if err := cmp.Or(one.do(), s.sent()); err != nil {
			return fmt.Errorf("%s on %s: %w", one.name, one.at.Format(time.DateTime), err)
		}
	}
	return nil
}

// sent returns an error if a message was not attempted. No later step would send it at its
// time: the clock stands still within a step and jumps over the message's lease between two.
func (s *service) sent() error {
	page, err := s.adm.Messages(s.ctx, admin.System("demo"), admin.MessagesParams{State: store.MessageQueued})
	if err != nil {
		return err
	}
	for _, m := range page.Messages {
		if m.Error == "" {
			return fmt.Errorf("the message %s of %s to %s is %s after %d attempts", m.Kind, m.CreatedAt.Format(time.DateTime), m.To, m.State, m.Attempts)
		}
	}
	return nil
}

// plan adds a step, some days ago.
func (s *service) plan(daysAgo, hour, minute int, name string, do func() error) {
	day := s.now.Truncate(24*time.Hour).AddDate(0, 0, -daysAgo)
	s.steps = append(s.steps, step{day.Add(time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute), name, do})
}

// planVisits plans the sign-ups, and the visits after them.
func (s *service) planVisits() {
	for _, p := range s.people {
		if slices.Contains([]method{password, link, phone}, p.by) {
			s.plan(p.joined, 8+p.n%3, 5+p.n, "sign-up of "+p.name, func() error { return s.signUp(p) })
		}
		for ago := p.joined - p.every; ago >= 0; ago -= max(1, p.every-1+s.chance.IntN(3)) {
			dev := rune(p.on[s.chance.IntN(len(p.on))])
			s.plan(ago, 11+s.chance.IntN(11), s.chance.IntN(60), "visit of "+p.name, func() error { return s.visit(p, dev) })
		}
	}
}

func (s *service) person(email string) *person {
	return s.people[slices.IndexFunc(s.people, func(p *person) bool { return p.email == email })]
}

// staff reports whether a person works for the service.
func (p *person) staff() bool { return strings.HasSuffix(p.email, "@example.com") }

// address returns the IP address of a person's device, of a documentation range.
func (p *person) address(dev rune) string {
	switch {
	case devices[dev].mobile:
		return fmt.Sprintf("198.51.100.%d", 10+p.n)
	case p.staff():
		return "192.0.2.17" // the office
	case p.n%4 == 1:
		return fmt.Sprintf("2001:db8:%x:1::%x", 0x40+p.n, 0x1000+7*p.n)
	}
	return fmt.Sprintf("203.0.113.%d", 10+p.n)
}

// refused is an answer of the service that is no success.
type refused struct {
	status   int
	Code     auth.Code      `json:"code"`
	Message  string         `json:"message"`
	MFAToken string         `json:"mfa_token"`
	Details  map[string]any `json:"details"`
}

func (r *refused) Error() string {
	return fmt.Sprint(r.status, " ", r.Code, ": ", r.Message, r.Details)
}

// is reports whether an error is an answer with a code.
func is(err error, code auth.Code) bool {
	var r *refused
	return errors.As(err, &r) && r.Code == code
}

type fields map[string]any

// send sends one request as a person's device behind the service's proxy. token may be
// empty. The response is decoded into out, if out is not nil.
func (s *service) send(p *person, dev rune, method, path, token string, body, out any) error {
	h := http.Header{"User-Agent": {devices[dev].agent}, "X-Forwarded-For": {p.address(dev)}, "X-Device-Id": {fmt.Sprintf("demo-device-%03d-%c", p.n, dev)}}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	return s.request(h, method, path, body, out)
}

func (s *service) request(h http.Header, method, path string, body, out any) error {
	raw, text := []byte(nil), false
	switch b := body.(type) {
	case nil:
	case string:
		raw, text = []byte(b), true
	default:
		var err error
		if raw, err = json.Marshal(b); err != nil {
			return err
		}
	}
	r := httptest.NewRequestWithContext(s.ctx, method, path, bytes.NewReader(raw))
	r.RemoteAddr, r.Header = "127.0.0.1:4711", h.Clone()
	if text {
		r.Header.Set("Content-Type", "application/x-ndjson")
	} else if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	rec := httptest.NewRecorder()
	if strings.HasPrefix(path, "/admin/") {
		s.adm.Handler().ServeHTTP(rec, r)
	} else {
		s.Handler().ServeHTTP(rec, r)
	}
	if rec.Code >= http.StatusBadRequest {
		no := &refused{status: rec.Code}
		return cmp.Or(json.Unmarshal(rec.Body.Bytes(), no), error(no))
	}
	if out == nil || rec.Body.Len() == 0 {
		return nil
	}
	return json.Unmarshal(rec.Body.Bytes(), out)
}

// mailed returns the token of the link in the message of a kind, or its code.
func (s *service) mailed(to string, kind auth.Kind) (token, code string, err error) {
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	m, err := s.inbox.Wait(ctx, func(m auth.Message) bool { return m.To == to && m.Kind == kind })
	if err != nil {
		return "", "", fmt.Errorf("no %s for %s: %w", kind, to, err)
	}
	u, err := url.Parse(m.Link)
	if err != nil {
		return "", "", err
	}
	return u.Query().Get("token"), m.Code, nil
}

// code is the present code of a person's authenticator app.
func (s *service) code(p *person) string {
	code, err := totp.GenerateCode(p.secret, s.Now())
	if err != nil {
		panic(err) // the service made the secret
	}
	return code
}
