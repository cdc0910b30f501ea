package auth

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/journal"
	"github.com/authmount/auth/store"
)

// Hooks run in the order of the options, until one refuses. Missing hooks are skipped. An
// error with one of our codes is returned as it is; other errors are hidden.
func TestHooksAreAskedInOrder(t *testing.T) {
	other := errors.New("the application's own secret")
	var called []string
	ask := func(name string, err error) func(what any) error {
		return func(any) error { called = append(called, name); return err }
	}
	hooks := func(f func(any) error) Hooks {
		return Hooks{
			BeforeSignUp:         func(_ context.Context, s SignUpAttempt) error { return f(s) },
			BeforeSignIn:         func(_ context.Context, s SignInAttempt) error { return f(s) },
			BeforePasswordChange: func(_ context.Context, p PasswordChange) error { return f(p) },
			BeforeDelete:         func(_ context.Context, u User) error { return f(u) },
			OnUserCreating:       func(_ context.Context, u User) error { return f(u) },
		}
	}
	for name, do := range map[string]func(a *Auth) error{
		"sign-up":         func(a *Auth) error { return a.beforeSignUp(t.Context(), SignUpAttempt{}) },
		"sign-in":         func(a *Auth) error { return a.beforeSignIn(t.Context(), SignInAttempt{}) },
		"password change": func(a *Auth) error { return a.beforePasswordChange(t.Context(), PasswordChange{}) },
		"end":             func(a *Auth) error { return a.beforeDelete(t.Context(), User{}) },
		"beginning":       func(a *Auth) error { return a.creating()(t.Context(), User{}) },
	} {
		for _, c := range []struct {
			errs  []error // results of the hooks, in order
			asked []string
			want  error
		}{
			{[]error{nil, nil}, []string{"0", "1"}, nil},
			{[]error{nil, CodeSignupDisabled}, []string{"0", "1"}, CodeSignupDisabled},
			{[]error{fail(CodeUserBanned, nil), CodeSignupDisabled}, []string{"0"}, CodeUserBanned},
			{[]error{nil, other}, []string{"0", "1"}, hookRefused(other)},
		} {
			called = nil
			a := &Auth{cfg: config{hooks: []Hooks{{}}}}
			for i, err := range c.errs {
				a.cfg.hooks = append(a.cfg.hooks, hooks(ask(string(rune('0'+i)), err)), Hooks{})
			}
			err := do(a)
			var e *Error
			if !slices.Equal(called, c.asked) || (err == nil) != (c.want == nil) || err != nil && !errors.As(err, &e) {
				t.Errorf("%s, %v: asked %v, %v", name, c.errs, called, err)
			}
			if code, ok := c.want.(Code); ok && !errors.Is(err, code) || c.want != nil && strings.Contains(e.Message, "secret") { //nolint:errorlint // the very value
				t.Errorf("%s, %v: %v, says %q", name, c.errs, err, e.Message)
			}
		}
	}
	if (&Auth{cfg: config{hooks: []Hooks{{}, {OnEvent: func(context.Context, Event) {}}}}}).creating() != nil {
		t.Error("stores are given hooks that there are not")
	}
}

// Every event hook receives each event, whatever other hooks do with it. The event is
// complete by then, with only its missing fields filled in.
func TestEventsAreToldWhole(t *testing.T) {
	now := time.Unix(1767323045, 0).UTC()
	var log bytes.Buffer
	var reported [][]Event
	a := &Auth{cfg: config{now: func() time.Time { return now }, log: slog.New(slog.NewTextHandler(&log, nil))}}
	var recorded []Event
	a.recorder = journal.NewRecorder(func(_ context.Context, list []Event) error { recorded = append(recorded, list...); return nil }, a.cfg.log)
	var figures store.AddCounts
	a.counter = journal.NewCounter(func(_ context.Context, c store.AddCounts) error { figures = c; return nil }, a.now, a.cfg.log, codeOf)
	reported = make([][]Event, 2)
	a.cfg.hooks = []Hooks{
		{OnEvent: func(_ context.Context, e Event) { reported[0] = append(reported[0], e); panic("hook") }}, {},
		{OnEvent: func(_ context.Context, e Event) { reported[1] = append(reported[1], e) }},
	}
	client := Client{UserAgent: "browser", Device: "device"}
	ctx := ContextWithClient(t.Context(), client)
	whole := Event{ID: "e", At: now.Add(-time.Hour), Type: EventSignInFailed, Err: fail(CodeInvalidCredentials, nil), Reason: "said", Client: Client{UserAgent: "other"}}
	bare := Event{Type: EventSignInFailed, UserID: "ada", Err: fail(CodeInvalidCredentials, nil)}
	other := Event{Type: EventRefreshed, UserID: "ada"}
	for _, e := range []Event{whole, bare, other} {
		a.emit(ctx, e)
	}
	if !reflect.DeepEqual(reported[0], reported[1]) || len(reported[0]) != 3 || strings.Count(log.String(), "hook panicked") != 3 {
		t.Fatalf("told %+v\nlog %s", reported, log.String())
	}
	if !reflect.DeepEqual(reported[0][0], whole) {
		t.Errorf("%+v\nwant %+v", reported[0][0], whole)
	}
	for i, want := range []Event{bare, other} {
		got := reported[0][i+1]
		want.At, want.Client = now, client
		if want.Err != nil {
			want.Reason = reason(want.Err)
		}
		if id := got.ID; !isID(id) {
			t.Errorf("the id is %q", id)
		}
		if got.ID = ""; !reflect.DeepEqual(got, want) {
			t.Errorf("%+v\nwant %+v", got, want)
		}
	}
	if got := reported[0][1].Reason; got == "" || got == "said" {
		t.Errorf("the reason is %q", got)
	}
	if err := errors.Join(a.recorder.Flush(t.Context()), a.counter.Flush(t.Context())); err != nil {
		t.Fatal(err)
	}
	want := []store.Count{{Metric: store.MetricSignInFailures, Label: "invalid_credentials", At: now.Truncate(time.Hour), N: 2}}
	if !reflect.DeepEqual(recorded, reported[0][:2]) || !slices.Equal(figures.Counts, want) || len(figures.Active) != 1 {
		t.Errorf("recorded %+v, counted %+v", recorded, figures)
	}
	if got := codeOf(errors.New("x")); got != string(CodeInternal) {
		t.Errorf("an error without a code counts as %s", got)
	}
}

// Overloads are reported once a second, with their number since the last report.
func TestOverloadsAreToldOnceASecond(t *testing.T) {
	now := time.Unix(1767323045, 0)
	var o overloads
	for i, c := range []struct {
		after time.Duration
		want  int
	}{{0, 1}, {0, 0}, {time.Second - 1, 0}, {1, 3}, {time.Second, 1}, {time.Hour, 1}} {
		if now = now.Add(c.after); o.add(now) != c.want {
			t.Errorf("refusal %d is told otherwise than %d", i, c.want)
		}
	}
	var log bytes.Buffer
	a := &Auth{cfg: config{now: func() time.Time { return now }, log: slog.New(slog.NewTextHandler(&log, nil))}}
	for range 3 {
		a.logOverload(t.Context())
	}
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "refused=1") {
		t.Errorf("the log says %q", got)
	}
}

// A link that an operator created is valid while the operator could still create it. The
// check of the operator adds its preconditions to those of the change.
func TestLinksRestOnTheirMakers(t *testing.T) {
	maker := &host.LinkMaker{By: Actor{Kind: store.ActorUser, ID: "op"}, CredentialRevision: 3}
	before, more := UserAt{ID: "ada"}, UserAt{ID: "op"}
	for name, c := range map[string]struct {
		maker  *host.LinkMaker
		judges bool
		err    error // of the check
		gone   error // of the store
		want   error
		users  []UserAt
		asked  int
	}{
		"of nobody's":              {nil, true, nil, nil, nil, []UserAt{before}, 0},
		"of nobody's, unjudged":    {nil, false, nil, nil, nil, []UserAt{before}, 0},
		"of one who still can":     {maker, true, nil, nil, nil, []UserAt{before, more}, 1},
		"of one who cannot":        {maker, true, fail(CodeInvalidToken, nil), nil, CodeInvalidToken, []UserAt{before}, 1},
		"where nobody judges":      {maker, false, nil, nil, CodeUnavailable, []UserAt{before}, 0},
		"of an account that went":  {maker, true, nil, store.ErrNotFound, CodeInvalidToken, []UserAt{before}, 0},
		"of a store that is away":  {maker, true, nil, errors.New("away"), CodeUnavailable, []UserAt{before}, 0},
		"of one judged to be away": {maker, true, fail(CodeUnavailable, nil), nil, CodeUnavailable, []UserAt{before}, 1},
	} {
		a := &Auth{store: &userStore{err: c.gone}}
		called := 0
		if c.judges {
			kit{a}.CheckLinks(func(_ context.Context, m host.LinkMaker, u User) (host.Terms, error) {
				if called++; m != *maker || u.ID != "ada" {
					t.Errorf("%s: asked of %+v, %+v", name, m, u)
				}
				return host.Terms{IfRoles: &maker.CredentialRevision, IfUsers: []UserAt{more}}, c.err
			})
		}
		ch := store.Change{IfUsers: []UserAt{before}}
		err := a.requireMaker(t.Context(), store.Token{UserID: "ada"}, linkData{Maker: c.maker}, &ch)
		if !errors.Is(err, c.want) || c.want == nil && err != nil || called != c.asked || !reflect.DeepEqual(ch.IfUsers, c.users) || ch.IfRoles != nil != (len(c.users) > 1) {
			t.Errorf("%s: %v, asked %d times, %+v", name, err, called, ch.IfUsers)
		}
	}
}

// userStore is a store that returns users with the requested id.
type userStore struct {
	Store
	err error
}

func (s *userStore) User(_ context.Context, k store.UserKey) (User, error) {
	return User{ID: k.ID}, s.err
}

// brokenSweep is a store with a first sweep that fails.
type brokenSweep struct {
	Store
	calls int
}

func (s *brokenSweep) Sweep(context.Context, time.Time, int) (int, error) {
	if s.calls++; s.calls == 1 {
		return 0, errors.New("no room")
	}
	return 0, nil
}

// A failed sweep is logged once and repeated. A sweep that shutdown cancels is not.
func TestSweepFails(t *testing.T) {
	for name, c := range map[string]struct {
		ended bool
		told  int
	}{"meanwhile": {false, 1}, "at the end": {true, 0}} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			s := &brokenSweep{}
			a := &Auth{store: s}
			a.cfg.now, a.cfg.log = time.Now, slog.New(slog.NewTextHandler(&log, nil))
			ctx, end := context.WithCancel(t.Context())
			defer end()
			if c.ended {
				a.cfg.now = func() time.Time { end(); return time.Now() }
			}
			go a.sweep(ctx)
			<-time.After(2*sweepEvery + time.Second) // the bubble's clock
			end()
			synctest.Wait()
			if n := strings.Count(log.String(), "no room"); n != c.told || !c.ended && s.calls != 2 {
				t.Errorf("%s: told %d times, want %d; %d sweeps:\n%s", name, n, c.told, s.calls, log.String())
			}
		})
	}
}

// The actor of a change comes from its authority, not from its event.
func TestActorsAreOfTheAuthority(t *testing.T) {
	e := Event{UserID: "ada", SessionID: "s"}
	for by, want := range map[Authority]Actor{
		{System: "sweep"}: {Kind: store.ActorSystem, ID: "sweep"},
		{External: "x"}:   {Kind: store.ActorExternal, ID: "x"},
		{Proof: true}:     {Kind: store.ActorUser, ID: "ada", SessionID: "s"},
	} {
		if got := actorOf(by, e); got != want {
			t.Errorf("%+v: %+v, want %+v", by, got, want)
		}
	}
}
