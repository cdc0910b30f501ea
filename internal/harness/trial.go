package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/passhash"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// ResultOf describes an answer by its status, its code and the error of its redirect.
func ResultOf(a *Answer) string {
	to, err := url.Parse(a.Header.Get("Location"))
	if err != nil {
		return CodeOf(a)
	}
	return strings.TrimSpace(CodeOf(a) + " " + to.Query().Get("error_code"))
}

// Letter is a message that was sent or is stored for sending.
type Letter struct {
	Kind auth.Kind
	To   string
}

// letters returns a trial's messages: first the messages in the store, which another process
// may send after their lease, then the messages that were sent.
func (p *Played) letters() []Letter {
	p.T.Helper()
	st, _ := store.Capability[store.Journal](p.Tap.Inner())
	later := p.Clock.Now().Add(Lease(p.Auth) + time.Second)
	kept, err := st.ClaimMessages(p.T.Context(), store.ClaimMessages{Now: later, Until: later, Limit: 1000})
	if err != nil {
		p.T.Fatal(err)
	}
	var list []Letter
	for _, m := range kept {
		k, to, err := OpenMessage(p.Auth, m)
		if err != nil {
			p.T.Fatal(err)
		}
		list = append(list, Letter{k, to})
	}
	for _, m := range p.Inbox.Messages() {
		list = append(list, Letter{m.Kind, m.To})
	}
	return list
}

// Trial is a request of the class's table on a store with a fault.
type Trial struct {
	Row   Row
	Wrong string         // field with a wrong value; empty: none
	Fault storetap.Fault // fault of the K-th store call
	K     int
	Spoil Sabotage
}

func (tr Trial) String() string {
	guess := ""
	if tr.Wrong != "" {
		guess = "wrong " + tr.Wrong + ", "
	}
	if tr.Fault == storetap.NoFault {
		return guess + "undisturbed"
	}
	return fmt.Sprintf("%scall %d: %s", guess, tr.K, tr.Fault)
}

// Sabotage breaks the flows, to test the invariants themselves.
type Sabotage struct {
	Edit  Edit
	Draws func([]store.Draw) []store.Draw
}

// AttemptFields maps the fields of secrets to the limits that count attempts.
func AttemptFields() map[string]string {
	return map[string]string{
		"password": "LoginPerAccount", "current_password": "LoginPerAccount",
		"totp_code": "FactorPerUser", "recovery_code": "FactorPerUser", "otp": "CodesPerAddress",
	}
}

// Wrongly returns a wrong value that is similar to guess.
func Wrongly(guess string) string {
	last := guess[len(guess)-1]
	switch {
	case last >= '0' && last <= '9':
		last = '0' + (last-'0'+1)%10
	case last == 'A' || last == 'a': // recovery codes ignore case
		last = 'B'
	default:
		last = 'A'
	}
	return guess[:len(guess)-1] + string(last)
}

// HostileWorld is a class world with limits that count and never refuse.
type HostileWorld struct {
	*ClassWorld
	Limits map[int]string // names by burst, which is unique to each
}

func NewHostileWorld(t *testing.T, r Row) *HostileWorld {
	t.Helper()
	return NewHostileWorldOn(t, NewStore(t), r)
}

func NewHostileWorldOn(t *testing.T, store auth.Store, r Row, more ...auth.Option) *HostileWorld {
	t.Helper()
	w := &HostileWorld{Limits: map[int]string{}}
	var limits auth.RateLimits
	v := reflect.ValueOf(&limits).Elem()
	for i := range v.NumField() {
		if rate, ok := v.Field(i).Addr().Interface().(*auth.Rate); ok {
			*rate = auth.Rate{Burst: 1_000_000 + i, Per: time.Hour}
			w.Limits[rate.Burst] = v.Type().Field(i).Name
		}
	}
	more = append([]auth.Option{auth.WithRateLimits(limits), auth.WithLogger(slog.New(slog.DiscardHandler))}, more...)
	w.ClassWorld = NewClassWorldOn(t, store, r, more...)
	HoldRefunds(w.Auth) // until Refund is called
	return w
}

// Played is the result of a trial.
type Played struct {
	*Scene
	Trial
	Limits  map[int]string
	Request func() *Answer
	mu      sync.Mutex
	Fields  []string // secrets in the request

	N       int // number of store calls
	Hit     bool
	Failed  string    // store method with the fault
	strikes bool      // the next draws belong to the failing Take
	Answers []*Answer // of the concurrent request, if any, and of the request
	Calls   []Call
	Drawn   map[string]int  // by limit, including refunded draws
	Net     map[string]int  // by limit, without refunded draws
	Struck  map[string]bool // limits that the fault kept from being checked
	Hashes  uint64
	Tried   int // codes that the store rejected

	Was, Is Snapshot
	Events  []auth.Event
	Mails   []auth.Message
	Letter  []Letter // sent and stored since the scene began
	Telling []int    // calls that recorded messages
}

// Play runs a trial.
func (w *HostileWorld) Play(tr Trial) *Played {
	w.T.Helper()
	p := &Played{Scene: w.NewScene(tr.Row), Trial: tr, Limits: w.Limits, Drawn: map[string]int{}, Net: map[string]int{}, Struck: map[string]bool{}}
	p.Request = tr.Row.Prepare(p.Scene)
	w.Refund()
	p.Start = p.Look(p.T.Context())
	p.Was = p.Start
	before, mails, works := p.recorded(), len(p.Inbox.Messages()), HashWorks(p.Auth)
	ctx, leave := context.WithCancel(p.T.Context())
	defer leave()
	release, arrived := make(chan struct{}), make(chan struct{})
	p.Tap.Reset(p.hooks(leave, release, arrived))
	p.Evil.ctx, p.Evil.Edit = ctx, p.Attempt
	if tr.Fault == storetap.Waits {
		p.Answers = p.twice(release, arrived)
	} else {
		p.Answers = append(p.Answers, p.Request())
	}
	p.N = p.Tap.Calls()
	p.Tap.Reset(storetap.Hooks{Took: p.took})
	w.Refund()
	p.Tap.Reset(storetap.Hooks{})
	p.Evil.ctx, p.Evil.Edit = p.T.Context(), nil
	p.Hashes = HashWorks(p.Auth) - works
	for _, key := range []store.UserKey{store.ByEmail(p.Email), store.ByEmail(p.EvilMail), store.ByPhone(p.Number)} {
		if u, err := p.Tap.Inner().User(p.T.Context(), key); p.Id == "" && err == nil {
			p.Id = u.ID
		}
	}
	p.Is = p.Look(p.T.Context())
	p.Events = slices.DeleteFunc(p.recorded(), func(e auth.Event) bool {
		return slices.ContainsFunc(before, func(b auth.Event) bool { return b.ID == e.ID })
	})
	p.Letter = p.letters()
	p.Mails = p.Inbox.Messages()[mails:]
	return p
}

// Refund refunds the draws of successful attempts.
func (w *HostileWorld) Refund() {
	w.T.Helper()
	if err := Refund(w.Auth); err != nil {
		w.T.Fatal(err)
	}
}

// took counts draws.
func (p *Played) took(draws []store.Draw, d store.Decision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, draw := range draws {
		limit := p.Limits[draw.Rate.Burst]
		if d.Allowed {
			p.Drawn[limit] += max(draw.Cost, 0)
			p.Net[limit] += draw.Cost
		}
	}
}

// twice sends the request, and sends it again while the first one waits. If the second
// request queues behind the first, the first is released after 100 ms.
func (p *Played) twice(release, arrived chan struct{}) []*Answer {
	first, second := make(chan *Answer, 1), make(chan *Answer, 1)
	go func() { first <- p.Request() }()
	select {
	case a := <-first: // it did not reach the fault
		return []*Answer{a}
	case <-arrived:
	}
	go func() { second <- p.Request() }()
	patience := time.NewTimer(100 * time.Millisecond)
	defer patience.Stop()
	var a *Answer
	select {
	case a = <-second:
		close(release)
	case <-patience.C:
		close(release)
		a = <-second
	}
	return []*Answer{a, <-first}
}

// Attempt replaces the trial's wrong field by a wrong value.
func (p *Played) Attempt(path string, body map[string]any) map[string]any {
	p.mu.Lock()
	defer p.mu.Unlock()
	body = maps.Clone(body)
	for field := range AttemptFields() {
		guess, _ := body[field].(string)
		if guess == "" || (field == "password" && path != "/login") {
			continue
		}
		if !slices.Contains(p.Fields, field) {
			p.Fields = append(p.Fields, field)
		}
		if field == p.Wrong {
			body[field] = Wrongly(guess)
		}
	}
	return body
}

func (p *Played) hooks(leave func(), release, arrived chan struct{}) storetap.Hooks {
	var mu sync.Mutex
	current, open := 0, map[int]Call{}
	return storetap.Hooks{
		// background work is not part of the request
		Skip: func(_ context.Context, method string) bool {
			return method == "Sweep" || method == "ClaimMessages" || method == "FinishMessage"
		},
		Before: func(_ context.Context, _ string, n int) {
			mu.Lock()
			defer mu.Unlock()
			current = n
		},
		Edit: func(method string, c *store.Change) {
			mu.Lock()
			defer mu.Unlock()
			open[current] = Call{Method: method, Change: *c}
			if p.Spoil.Edit != nil {
				p.Spoil.Edit(method, c)
			}
		},
		Fault: func(_ context.Context, method string, n int) storetap.Fault {
			p.mu.Lock()
			defer p.mu.Unlock()
			if n != p.K {
				return storetap.NoFault
			}
			p.Hit, p.Failed, p.strikes = true, method, method == "Take"
			if p.Fault == storetap.Waits {
				close(arrived)
			}
			return p.Fault
		},
		After: func(_ context.Context, method string, n int, err error) {
			mu.Lock()
			defer mu.Unlock()
			if method == "RedeemCode" && errors.Is(err, store.ErrWrongCode) {
				p.Tried++
			}
			if c, ok := open[n]; ok {
				c.Err = err
				if err == nil && len(c.Change.Messages) > 0 {
					p.Telling = append(p.Telling, n)
				}
				p.Calls = append(p.Calls, c)
			}
		},
		Leave: leave, Release: release,
		Draws: func(draws []store.Draw) []store.Draw {
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, draw := range draws {
				if p.strikes {
					p.Struck[p.Limits[draw.Rate.Burst]] = true
				}
			}
			p.strikes = false
			if p.Spoil.Draws != nil {
				return p.Spoil.Draws(slices.Clone(draws))
			}
			return draws
		},
		Took: p.took,
	}
}

// recorded returns the newest events of all accounts.
func (w *ClassWorld) recorded() []auth.Event {
	w.T.Helper()
	st, _ := store.Capability[store.Journal](w.Tap.Inner())
	list, err := st.Events(w.T.Context(), store.EventQuery{Limit: 100})
	if err != nil {
		w.T.Fatal(err)
	}
	return list
}

// Answer returns the response to the request, which is the last one.
func (p *Played) Answer() *Answer { return p.Answers[len(p.Answers)-1] }

// CodeOf describes an answer by its status and code.
func CodeOf(a *Answer) string {
	var e struct{ Code auth.Code }
	if a.Status >= 400 {
		_ = json.Unmarshal(a.Body, &e) // pages have no code
	}
	return strings.TrimSpace(fmt.Sprint(a.Status, " ", e.Code))
}

// AccountText describes an account's credentials in words that are equal for each scene.
func (s *Scene) AccountText(v Snapshot) string {
	u := v.Credentials.User
	if u.ID == "" {
		return "none"
	}
	var identities, factors []string
	for _, i := range u.Identities {
		identities = append(identities, i.Provider)
	}
	for _, f := range v.Factors.List {
		factors = append(factors, fmt.Sprintf("%s enabled %v", f.Kind, f.Enabled))
	}
	slices.Sort(identities)
	text := fmt.Sprintf("email %q (%v) phone %q (%v) password %q identities %v factors %v (%v) recovery codes %d name %q banned %v",
		u.Email, u.EmailVerified(), u.Phone, u.PhoneVerified(), PasswordOf(v.Credentials.PasswordHash), identities, factors, u.MFAEnabled,
		v.Factors.RecoveryLeft, u.FullName, !u.BannedUntil.IsZero())
	return strings.NewReplacer(s.Email, "owner's", s.EvilMail, "other's", s.Number, "owner's", s.EvilNumber, "other's").Replace(text)
}

// PasswordOf returns the scene's password that a hash belongs to.
func PasswordOf(hash string) string {
	h, err := passhash.Parse(hash)
	if err != nil {
		return "none"
	}
	for _, p := range []string{EvilPassword, evilNew, OwnPassword, OwnNew} {
		if h.Verify(p) {
			return p
		}
	}
	return "another"
}
