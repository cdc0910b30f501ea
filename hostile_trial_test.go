package auth_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
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

// trial is the request of a row of the class's table, on a store that is hostile
// to it.
type trial struct {
	row   row
	wrong string         // the field whose guess is made wrong; empty: none
	fault storetap.Fault // of the k-th store call
	k     int
	spoil sabotage
}

func (tr trial) String() string {
	guess := ""
	if tr.wrong != "" {
		guess = "wrong " + tr.wrong + ", "
	}
	if tr.fault == storetap.NoFault {
		return guess + "undisturbed"
	}
	return fmt.Sprintf("%scall %d: %s", guess, tr.k, tr.fault)
}

// sabotage breaks the flows, for the tests of the invariants themselves.
type sabotage struct {
	edit  edit
	draws func([]store.Draw) []store.Draw
}

// guesses are the fields by which something is guessed, and the limit that
// counts it.
func guesses() map[string]string {
	return map[string]string{
		"password": "LoginPerAccount", "current_password": "LoginPerAccount",
		"totp_code": "FactorPerUser", "recovery_code": "FactorPerUser", "otp": "CodesPerAddress",
	}
}

// wrongly is a guess beside the right one.
func wrongly(guess string) string {
	last := guess[len(guess)-1]
	switch {
	case last >= '0' && last <= '9':
		last = '0' + (last-'0'+1)%10
	case last == 'A' || last == 'a': // recovery codes are taken in any case
		last = 'B'
	default:
		last = 'A'
	}
	return guess[:len(guess)-1] + string(last)
}

// hostileWorld is a class world whose limits are counted, and refuse nothing.
type hostileWorld struct {
	*classWorld
	limits map[int]string // names, by the burst that is each one's own
}

func newHostileWorld(t *testing.T, r row) *hostileWorld {
	t.Helper()
	return newHostileWorldOn(t, newStore(t), r)
}

func newHostileWorldOn(t *testing.T, store auth.Store, r row, more ...auth.Option) *hostileWorld {
	t.Helper()
	w := &hostileWorld{limits: map[int]string{}}
	var limits auth.RateLimits
	v := reflect.ValueOf(&limits).Elem()
	for i := range v.NumField() {
		if rate, ok := v.Field(i).Addr().Interface().(*auth.Rate); ok {
			*rate = auth.Rate{Burst: 1_000_000 + i, Per: time.Hour}
			w.limits[rate.Burst] = v.Type().Field(i).Name
		}
	}
	more = append([]auth.Option{auth.WithRateLimits(limits), auth.WithLogger(slog.New(slog.DiscardHandler))}, more...)
	w.classWorld = newClassWorldOn(t, store, r, more...)
	auth.HoldReturns(w.Auth) // until they are asked for
	return w
}

// played is what came of a trial.
type played struct {
	*scene
	trial
	limits  map[int]string
	request func() *answer
	mu      sync.Mutex
	fields  []string // guesses in the request

	n       int // store calls
	hit     bool
	strikes bool      // the call to come is Take, and hit
	answers []*answer // the request's, and that of one that came while it waited
	calls   []call
	drawn   map[string]int  // of each limit, whether or not it was given back
	net     map[string]int  // of each limit, without what was given back
	struck  map[string]bool // limits that the fault kept from being asked, or from answering
	hashes  uint64
	tried   int // codes that the store found wrong

	was, is snapshot
	events  []auth.Event
	mails   []auth.Message
	letter  []letter // sent and kept, since the scene began
	telling []int    // the calls whose changes carried messages
}

// play lets a trial happen.
func (w *hostileWorld) play(tr trial) *played {
	w.t.Helper()
	p := &played{scene: w.scene(tr.row), trial: tr, limits: w.limits, drawn: map[string]int{}, net: map[string]int{}, struck: map[string]bool{}}
	p.request = tr.row.prepare(p.scene)
	w.giveBack()
	p.start = p.look(p.t.Context())
	p.was = p.start
	before, mails, works := p.recorded(), len(p.Inbox.Messages()), auth.HashWorks(p.Auth)
	ctx, leave := context.WithCancel(p.t.Context())
	defer leave()
	release, arrived := make(chan struct{}), make(chan struct{})
	p.tap.Reset(p.hooks(leave, release, arrived))
	p.evil.ctx, p.evil.edit = ctx, p.guess
	if tr.fault == storetap.Waits {
		p.answers = p.twice(release, arrived)
	} else {
		p.answers = append(p.answers, p.request())
	}
	p.n = p.tap.Calls()
	p.tap.Reset(storetap.Hooks{Took: p.took})
	w.giveBack()
	p.tap.Reset(storetap.Hooks{})
	p.evil.ctx, p.evil.edit = p.t.Context(), nil
	p.hashes = auth.HashWorks(p.Auth) - works
	for _, key := range []store.UserKey{store.ByEmail(p.email), store.ByEmail(p.evilMail), store.ByPhone(p.number)} {
		if u, err := p.tap.Inner().User(p.t.Context(), key); p.id == "" && err == nil {
			p.id = u.ID
		}
	}
	p.is = p.look(p.t.Context())
	p.events = slices.DeleteFunc(p.recorded(), func(e auth.Event) bool {
		return slices.ContainsFunc(before, func(b auth.Event) bool { return b.ID == e.ID })
	})
	p.letter = p.letters()
	p.mails = p.Inbox.Messages()[mails:]
	return p
}

// giveBack gives back what right guesses drew.
func (w *hostileWorld) giveBack() {
	w.t.Helper()
	if err := auth.GiveBack(w.Auth); err != nil {
		w.t.Fatal(err)
	}
}

// took keeps the account of what was drawn.
func (p *played) took(draws []store.Draw, d store.Decision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, draw := range draws {
		limit := p.limits[draw.Rate.Burst]
		if d.Allowed {
			p.drawn[limit] += max(draw.Cost, 0)
			p.net[limit] += draw.Cost
		}
	}
}

// twice makes the request, and once more by somebody who loses patience while it
// waits. Where the second stands in line behind the first, it cannot end before.
func (p *played) twice(release, arrived chan struct{}) []*answer {
	first, second := make(chan *answer, 1), make(chan *answer, 1)
	go func() { first <- p.request() }()
	select {
	case a := <-first: // it never came to wait
		return []*answer{a}
	case <-arrived:
	}
	go func() { second <- p.request() }()
	patience := time.NewTimer(100 * time.Millisecond)
	defer patience.Stop()
	var a *answer
	select {
	case a = <-second:
		close(release)
	case <-patience.C:
		close(release)
		a = <-second
	}
	return []*answer{a, <-first}
}

// guess makes the guess wrong that is to be wrong.
func (p *played) guess(path string, body map[string]any) map[string]any {
	p.mu.Lock()
	defer p.mu.Unlock()
	body = maps.Clone(body)
	for field := range guesses() {
		guess, _ := body[field].(string)
		if guess == "" || (field == "password" && path != "/login") {
			continue
		}
		if !slices.Contains(p.fields, field) {
			p.fields = append(p.fields, field)
		}
		if field == p.wrong {
			body[field] = wrongly(guess)
		}
	}
	return body
}

func (p *played) hooks(leave func(), release, arrived chan struct{}) storetap.Hooks {
	var mu sync.Mutex
	current, open := 0, map[int]call{}
	return storetap.Hooks{
		// What is done behind the requests' backs is not theirs.
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
			open[current] = call{method: method, change: *c}
			if p.spoil.edit != nil {
				p.spoil.edit(method, c)
			}
		},
		Fault: func(_ context.Context, method string, n int) storetap.Fault {
			p.mu.Lock()
			defer p.mu.Unlock()
			if n != p.k {
				return storetap.NoFault
			}
			p.hit, p.strikes = true, method == "Take"
			if p.fault == storetap.Waits {
				close(arrived)
			}
			return p.fault
		},
		After: func(_ context.Context, method string, n int, err error) {
			mu.Lock()
			defer mu.Unlock()
			if method == "TryCode" && errors.Is(err, store.ErrWrongCode) {
				p.tried++
			}
			if c, ok := open[n]; ok {
				c.err = err
				if err == nil && len(c.change.Messages) > 0 {
					p.telling = append(p.telling, n)
				}
				p.calls = append(p.calls, c)
			}
		},
		Leave: leave, Release: release,
		Draws: func(draws []store.Draw) []store.Draw {
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, draw := range draws {
				if p.strikes {
					p.struck[p.limits[draw.Rate.Burst]] = true
				}
			}
			p.strikes = false
			if p.spoil.draws != nil {
				return p.spoil.draws(slices.Clone(draws))
			}
			return draws
		},
		Took: p.took,
	}
}

// recorded are the newest events of everybody.
func (w *classWorld) recorded() []auth.Event {
	w.t.Helper()
	st, _ := store.Capability[store.EventStore](w.tap.Inner())
	list, err := st.Events(w.t.Context(), store.EventQuery{Limit: 100})
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// answer is that of the request, which came last.
func (p *played) answer() *answer { return p.answers[len(p.answers)-1] }

// codeOf is an answer in a word.
func codeOf(a *answer) string {
	var e struct{ Code auth.Code }
	if a.status >= 400 {
		_ = json.Unmarshal(a.body, &e) // pages have none
	}
	return strings.TrimSpace(fmt.Sprint(a.status, " ", e.Code))
}

// account tells in words, the same for each scene, how one gets into an account.
func (s *scene) account(v snapshot) string {
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
		u.Email, u.EmailVerified(), u.Phone, u.PhoneVerified(), password(v.Credentials.PasswordHash), identities, factors, u.MFAEnabled,
		v.Factors.RecoveryLeft, u.FullName, !u.BannedUntil.IsZero())
	return strings.NewReplacer(s.email, "owner's", s.evilMail, "other's", s.number, "owner's", s.evilNumber, "other's").Replace(text)
}

// password is which one of the scenes' a hash is of.
func password(hash string) string {
	h, err := passhash.Parse(hash)
	if err != nil {
		return "none"
	}
	for _, p := range []string{evilPassword, evilNew, ownPassword, ownNew} {
		if h.Verify(p) {
			return p
		}
	}
	return "another"
}
