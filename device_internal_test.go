package auth

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/authmount/auth/internal/journal"
	"github.com/authmount/auth/store"
)

// credentialStore is a store of one account's credentials.
type credentialStore struct {
	Store
	c       store.Credentials
	err     error
	queries []store.UserKey
}

func (s *credentialStore) Credentials(_ context.Context, k store.UserKey) (store.Credentials, error) {
	s.queries = append(s.queries, k)
	return s.c, s.err
}

// A device is known if the user has signed in on it. Nothing is looked up for a client
// without a device id.
func TestDevicesAreKnownByWhatTheySay(t *testing.T) {
	then := time.Unix(1767323045, 0).UTC()
	says := ContextWithClient(t.Context(), Client{Device: "device"})
	for name, c := range map[string]struct {
		ctx         context.Context
		known       bool
		signedIn    time.Time
		of          string
		isNew       bool
		err         error
		asks, fails bool
	}{
		"known":                 {says, true, then, "device", false, nil, true, false},
		"not known":             {says, false, then, "", true, nil, true, false},
		"nobody's so far":       {says, false, time.Time{}, "", false, nil, true, false},
		"that says nothing":     {t.Context(), false, then, "", false, nil, false, false},
		"of no user":            {says, false, time.Time{}, "", false, store.ErrNotFound, true, false},
		"of a store that fails": {says, true, then, "", false, errors.New("away"), true, true},
	} {
		cr := store.Credentials{KnownDevice: c.known, User: User{ID: "ada", LastSignInAt: c.signedIn}}
		if c.err == nil {
			if got := deviceOf(c.ctx, cr); got != c.of {
				t.Errorf("%s: it is %q", name, got)
			}
			if got := onNewDevice(c.ctx, cr); got != c.isNew {
				t.Errorf("%s: new %t", name, got)
			}
		}
		st := &credentialStore{c: cr, err: c.err}
		got, err := (&Auth{store: st}).knownDevice(c.ctx, "ada")
		if got != c.of || (err != nil) != c.fails || len(st.queries) > 0 != c.asks || c.asks && st.queries[0] != (store.UserKey{ID: "ada", Device: "device"}) {
			t.Errorf("%s: %q, %v, asked %+v", name, got, err, st.queries)
		}
	}
}

// A sign-in returns the device id that was created for the browser, and the session stores
// it.
func TestNewDevicesAreToldWhoTheyAre(t *testing.T) {
	ctx := context.WithValue(t.Context(), newDeviceKey{}, "made-up")
	for _, c := range []struct {
		ctx  context.Context
		s    Session
		want string
	}{
		{ctx, Session{Device: deviceHash("made-up")}, "made-up"}, {ctx, Session{Device: deviceHash("other")}, ""}, {ctx, Session{}, ""}, {t.Context(), Session{}, ""},
	} {
		if got := newDevice(c.ctx, c.s); got != c.want {
			t.Errorf("%+v: %q", c.s, got)
		}
	}
	if deviceHash("") != "" || len(deviceHash("a")) != 64 || deviceHash("a") == deviceHash("b") {
		t.Error("devices are not told apart")
	}
}

// A device is trusted until the instant in the store, if devices can be trusted. A code of
// an authenticator app makes it trusted, if that was requested.
func TestTrustOfDevicesHasItsEdges(t *testing.T) {
	now := time.Unix(1767323045, 0).UTC()
	says := ContextWithClient(t.Context(), Client{Device: "device"})
	for name, c := range map[string]struct {
		ctx     context.Context
		trust   time.Duration
		until   time.Time
		err     error
		trusted bool
		asks    bool
		fails   bool
	}{
		"trusted":               {says, time.Hour, now.Add(time.Microsecond), nil, true, true, false},
		"not any more":          {says, time.Hour, now, nil, false, true, false},
		"never":                 {says, time.Hour, time.Time{}, nil, false, true, false},
		"where none can be":     {says, 0, now.Add(time.Hour), nil, false, false, false},
		"that says nothing":     {t.Context(), time.Hour, now.Add(time.Hour), nil, false, false, false},
		"of nobody":             {says, time.Hour, time.Time{}, store.ErrNotFound, false, true, false},
		"of a store that fails": {says, time.Hour, now.Add(time.Hour), errors.New("away"), false, true, true},
	} {
		st := &credentialStore{c: store.Credentials{TrustedUntil: c.until}, err: c.err}
		a := &Auth{store: st, cfg: config{now: func() time.Time { return now }, mfa: MFAOptions{TrustDevices: c.trust}}}
		got, err := a.onTrustedDevice(c.ctx, User{ID: "ada"}, clientFrom(c.ctx).Device)
		if got != c.trusted || (err != nil) != c.fails || len(st.queries) > 0 != c.asks || c.asks && st.queries[0] != (store.UserKey{ID: "ada", Device: "device"}) {
			t.Errorf("%s: %t, %v, asked %+v", name, got, err, st.queries)
		}
	}
	app, recovery := AMR{Method: methodTOTP}, AMR{Method: methodRecovery}
	for name, c := range map[string]struct {
		trust time.Duration
		asked bool
		amr   []AMR
		by    string
		want  bool
	}{
		"by an app's code":       {time.Hour, true, []AMR{{Method: methodPassword}, app}, "device", true},
		"by a recovery code":     {time.Hour, true, []AMR{{Method: methodPassword}, recovery}, "device", false},
		"by both":                {time.Hour, true, []AMR{recovery, app}, "device", true},
		"not asked for":          {time.Hour, false, []AMR{app}, "device", false},
		"where none can be":      {0, true, []AMR{app}, "device", false},
		"of none that says it":   {time.Hour, true, []AMR{app}, "", false},
		"by a password and that": {time.Hour, true, []AMR{{Method: methodPassword}}, "device", false},
	} {
		a := &Auth{cfg: config{mfa: MFAOptions{TrustDevices: c.trust}}}
		want := time.Time{}
		if c.want {
			want = now.Add(time.Hour)
		}
		if got := a.trustUntil(signIn{trust: c.asked}, Session{CreatedAt: now, AMR: c.amr, Device: c.by}); !got.Equal(want) {
			t.Errorf("%s: until %v", name, got)
		}
	}
	for on, want := range map[bool]string{true: "trusted_device", false: ""} {
		if got := (&signIn{onTrusted: on}).reason(); got != want {
			t.Errorf("reason %q", got)
		}
	}
}

// A bucket's level, wait and remaining time follow from its arithmetic at each edge.
func TestBucketsToTheirEdges(t *testing.T) {
	now := time.Unix(1767323045, 0).UTC()
	r := Rate{Burst: 3, Per: 10 * time.Second} // does not divide evenly
	step := r.Per / 3
	for name, c := range map[string]struct {
		rate      Rate
		tat       time.Time
		cost      int
		next      time.Time
		ok        bool
		wait      time.Duration
		remaining int
	}{
		"new":                 {r, time.Time{}, 1, now.Add(step), true, 0, 2},
		"full again":          {r, now, 1, now.Add(step), true, 0, 2},
		"for some time":       {r, now.Add(-time.Hour), 1, now.Add(step), true, 0, 2},
		"the last":            {r, now.Add(2 * step), 1, now.Add(3 * step), true, 0, 0},
		"just not the last":   {r, now.Add(2*step + 1), 1, now.Add(2*step + 1), false, 1, 0},
		"empty":               {r, now.Add(3 * step), 1, now.Add(3 * step), false, step, 0},
		"all at once":         {r, time.Time{}, 3, now.Add(3 * step), true, 0, 0},
		"more than all":       {r, time.Time{}, 4, time.Time{}, false, step, 3},
		"asked":               {r, now.Add(step), 0, now.Add(step), true, 0, 2},
		"asked when new":      {r, time.Time{}, 0, now, true, 0, 3},
		"asked when empty":    {r, now.Add(3 * step), 0, now.Add(3 * step), false, step, 0},
		"given back":          {r, now.Add(3 * step), -1, now.Add(2 * step), true, 0, 1},
		"given back too much": {r, now.Add(step), -3, now, true, 0, 3},
		"given back to full":  {r, time.Time{}, -1, now, true, 0, 3},
		"of no burst":         {Rate{Per: time.Second}, now.Add(time.Hour), 9, now.Add(time.Hour), true, 0, 1},
		"of no time":          {Rate{Burst: 1}, now.Add(time.Hour), 9, now.Add(time.Hour), true, 0, 1},
		"of one":              {Rate{Burst: 1, Per: time.Second}, now, 1, now.Add(time.Second), true, 0, 0},
	} {
		b, ok, wait, remaining := c.rate.Apply(store.Bucket{Full: c.tat}, now, c.cost)
		next := b.Full
		if !ok || c.cost == 0 { // nothing is stored
			next = c.next
		}
		if !next.Equal(c.next) || ok != c.ok || wait != c.wait || remaining != c.remaining {
			t.Errorf("%s: %v, %t, %v, %d", name, next.Sub(now), ok, wait, remaining)
		}
	}
}

// Disabled limits are not drawn from. A limit that refuses reports the wait and is
// counted. IP addresses count only if they are known.
func TestDrawsOfLimits(t *testing.T) {
	on := store.Draw{Key: "on", Rate: Rate{Burst: 1, Per: time.Second}, Cost: 1}
	for name, c := range map[string]struct {
		draws []store.Draw
		d     store.Decision
		err   error
		asks  int
		want  error
	}{
		"none":     {nil, store.Decision{}, nil, 0, nil},
		"off":      {[]store.Draw{{Key: "off"}, {Key: "off", Rate: Rate{Burst: -1}}}, store.Decision{}, nil, 0, nil},
		"allowed":  {[]store.Draw{{Key: "off"}, on}, store.Decision{Allowed: true, Remaining: []int{0}}, nil, 1, nil},
		"refused":  {[]store.Draw{on}, store.Decision{Remaining: []int{0}, RetryAfter: 7 * time.Second}, nil, 1, CodeRateLimited},
		"not told": {[]store.Draw{on}, store.Decision{}, errors.New("away"), 1, CodeUnavailable},
	} {
		for _, along := range []bool{false, true} {
			var taken []store.Draw
			now := time.Unix(1767323045, 0)
			counted := 0
			n := journal.NewCounter(func(_ context.Context, c store.AddCounts) error { counted += len(c.Counts); return nil }, func() time.Time { return now }, slog.New(slog.DiscardHandler), codeOf)
			a := &Auth{counter: n, cfg: config{now: func() time.Time { return now }}, store: &drawing{take: func(draws []store.Draw) (store.Decision, error) { taken = append(taken, draws...); return c.d, c.err }}}
			a.refunds = a.newRefunds()
			take := a.take
			if along {
				take = a.takeAfterRefunds
			}
			err := errors.Join(take(t.Context(), c.draws...), n.Flush(t.Context()))
			var e *Error
			if !errors.Is(err, c.want) || len(taken) != c.asks || len(taken) == 1 && taken[0] != on || counted > 0 != (name == "refused") {
				t.Errorf("%s, along %t: %v, asked %+v, counted %v", name, along, err, taken, counted)
			}
			if errors.As(err, &e) && name == "refused" && e.RetryAfter != 7*time.Second {
				t.Errorf("%s: after %v", name, e.RetryAfter)
			}
		}
	}
	a := &Auth{keys: testKeys(t)}
	rate := Rate{Burst: 2, Per: time.Second}
	draw := func(value string, burst int) store.Draw {
		return store.Draw{Key: a.keys.RateLimit("limit", value), Rate: Rate{Burst: burst, Per: time.Second}, Cost: 1}
	}
	for ip, want := range map[string][]store.Draw{
		"192.0.2.7":         {draw("192.0.2.7", 2)},
		"2001:db8:1:2:3::4": {draw("2001:db8:1:2::/64", 2), draw("2001:db8:1::/56", 8), draw("2001:db8:1::/48", 32)},
	} {
		if got := a.perIP(ContextWithClient(t.Context(), Client{IP: netip.MustParseAddr(ip)}), rate, "limit"); !slices.Equal(got, want) {
			t.Errorf("%s: %+v", ip, got)
		}
	}
	if got := a.perIP(t.Context(), rate, "limit"); got != nil {
		t.Errorf("of nobody seen: %+v", got)
	}
}
