package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/journal"
	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/internal/redirect"
	"github.com/authmount/auth/store"
)

// Redirects are allowed to the return pages of pages and dashboard, the application's
// first, and to the patterns of the options.
func TestRoomsThatPeopleComeBackTo(t *testing.T) {
	listed, err := redirect.ParsePattern("https://app.test/")
	if err != nil {
		t.Fatal(err)
	}
	own, separate := &host.PageOptions{ReturnPath: "/auth/return"}, &host.PageOptions{ReturnPath: "/admin/return", Separate: true}
	for name, c := range map[string]struct {
		use  []*host.PageOptions
		want []string
	}{
		"none":            {nil, nil},
		"one's own":       {[]*host.PageOptions{own}, []string{"https://auth.test:8443/auth/return"}},
		"apart":           {[]*host.PageOptions{separate}, []string{"https://auth.test:8443/admin/return"}},
		"both":            {[]*host.PageOptions{separate, own}, []string{"https://auth.test:8443/auth/return", "https://auth.test:8443/admin/return"}},
		"one's own twice": {[]*host.PageOptions{{ReturnPath: "/first"}, own}, []string{"https://auth.test:8443/first"}},
	} {
		a := &Auth{cfg: config{log: slog.New(slog.DiscardHandler), redirects: []redirect.Pattern{listed}, baseURL: &url.URL{Scheme: "https", Host: "auth.test:8443", Path: "/auth/v1"}}}
		if err := a.put(t.Context(), store.StoredSettings{}); err != nil {
			t.Fatal(err)
		}
		for _, p := range c.use {
			if err := (kit{a}).UsePages(*p); (err != nil) != (p == own && len(c.use) > 1 && c.use[0] != separate) {
				t.Errorf("%s: %v", name, err)
			}
		}
		var got []string
		for _, p := range a.redirects() {
			got = append(got, p.String())
		}
		if want := append(slices.Clone(c.want), "https://app.test/"); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// anonymizingStore is a store that records calls to anonymize.
type anonymizingStore struct {
	Store
	store.AdminStore
	got []store.AnonymizeUser
}

func (s *anonymizingStore) AnonymizeUser(_ context.Context, c store.AnonymizeUser) (User, error) {
	s.got = append(s.got, c)
	return User{ID: c.UserID, BannedUntil: store.AnonymizedUntil()}, nil
}

// Anonymizing covers all names of an account: in events, in tokens and in messages.
func TestAnonymizingTakesEveryName(t *testing.T) {
	a := &Auth{keys: testKeys(t), recorder: &journal.Recorder{}}
	mail, number := "Ada@Example.com", "+4930123456"
	toMail, toNumber := a.keys.RateLimit("message-to", "ada@example.com"), a.keys.RateLimit("message-to", number)
	invited := invitationID("ada@example.com")
	for _, c := range []struct {
		u    User
		want store.AnonymizeUser
	}{
		{User{ID: "u"}, store.AnonymizeUser{Subjects: []string{"u"}}},
		{User{ID: "u", Email: mail}, store.AnonymizeUser{Names: []string{"ada@example.com"}, Subjects: []string{"u", "ada@example.com", invited}, Recipients: []string{toMail}}},
		{User{ID: "u", Phone: number}, store.AnonymizeUser{Subjects: []string{"u", number}, Recipients: []string{toNumber}}},
		{User{ID: "u", Email: mail, Phone: number}, store.AnonymizeUser{Names: []string{"ada@example.com"}, Subjects: []string{"u", "ada@example.com", invited, number}, Recipients: []string{toMail, toNumber}}},
	} {
		s := &anonymizingStore{}
		a.admin = s
		c.want.UserID, c.want.Label, c.want.Change = "u", "somebody", store.Change{Now: time.Unix(1, 0), KeepOwner: true}
		u, err := kit{a}.Anonymize(t.Context(), c.want.Change, c.u, "somebody")
		if err != nil || u.ID != "u" || !reflect.DeepEqual(s.got, []store.AnonymizeUser{c.want}) {
			t.Errorf("%+v\nwant %+v, %v", s.got, c.want, err)
		}
	}
	s := &anonymizingStore{}
	a.admin = s
	a.recorder = journal.NewRecorder(func(context.Context, []Event) error { return errors.New("away") }, slog.New(slog.DiscardHandler))
	a.recorder.Add([]Event{{Type: EventSignInFailed}})
	if _, err := (kit{a}).Anonymize(t.Context(), store.Change{}, User{ID: "u"}, ""); !errors.Is(err, CodeUnavailable) || s.got != nil {
		t.Errorf("%v, %+v", err, s.got)
	}
	a.admin = nil
	if _, err := (kit{a}).Anonymize(t.Context(), store.Change{}, User{ID: "u"}, ""); !errors.Is(err, CodeInternal) {
		t.Errorf("a store that cannot: %v", err)
	}
}

// Locks are read with one call for each limit that is on. Without limits there is no call.
// If a call fails, the result is an error, not an empty list.
func TestLocksOfFewLimits(t *testing.T) {
	one, off := Rate{Burst: 3, Per: time.Hour}, Rate{Burst: -1}
	now := time.Unix(1767323045, 0).UTC()
	for name, c := range map[string]struct {
		limits RateLimits
		fails  int // number of the call that fails; 0: none
		left   int
		calls  int
		want   []host.Lock
	}{
		"none":                    {RateLimits{FactorPerUser: off, SignInsPerAccount: off}, 0, 0, 0, []host.Lock{}},
		"one":                     {RateLimits{FactorPerUser: one}, 0, 0, 2, []host.Lock{{Limit: "factor", Until: now.Add(time.Minute)}}},
		"one that holds":          {RateLimits{FactorPerUser: one}, 0, 1, 1, []host.Lock{}},
		"two":                     {RateLimits{FactorPerUser: one, SignInsPerAccount: one}, 0, 0, 3, []host.Lock{{Limit: "factor", Until: now.Add(time.Minute)}, {Limit: "password", Until: now.Add(time.Minute)}}},
		"that cannot be asked":    {RateLimits{FactorPerUser: one}, 1, 0, 1, nil},
		"that can no longer be":   {RateLimits{FactorPerUser: one}, 2, 0, 2, nil},
		"of which the last fails": {RateLimits{FactorPerUser: one, SignInsPerAccount: one}, 3, 0, 3, nil},
	} {
		calls := 0
		store := &drawing{take: func(draws []store.Draw) (store.Decision, error) {
			if calls++; calls == c.fails {
				return store.Decision{}, errors.New("away")
			}
			d := store.Decision{Remaining: make([]int, len(draws)), RetryAfter: time.Minute, Allowed: c.left > 0}
			for i := range draws {
				d.Remaining[i] = c.left
				if draws[i].Cost != 0 {
					t.Errorf("%s: to ask costs %d", name, draws[i].Cost)
				}
			}
			return d, nil
		}}
		a := &Auth{keys: testKeys(t), store: store, cfg: config{now: func() time.Time { return now }, limits: c.limits}}
		got, err := a.locks(t.Context(), User{ID: "ada"}, UserRecords{})
		if calls != c.calls || (err != nil) != (c.fails > 0) || err == nil && !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v, %d calls", name, got, err, calls)
		}
	}
}

// Flush writes the waiting events and figures, and returns an error if either fails.
func TestWrittenTellsWhatIsNot(t *testing.T) {
	for _, c := range []struct{ events, figures bool }{{true, true}, {true, false}, {false, true}, {false, false}} {
		events, figures, fault := 0, 0, errors.New("away")
		log := slog.New(slog.DiscardHandler)
		r := journal.NewRecorder(func(_ context.Context, list []Event) error {
			if fault == nil {
				events += len(list)
			}
			return fault
		}, log)
		n := journal.NewCounter(func(context.Context, store.AddCounts) error {
			if !c.figures {
				return errors.New("away")
			}
			figures++
			return nil
		}, time.Now, log, codeOf)
		r.Add(make([]Event, 2))
		if err := r.Close(t.Context()); err == nil {
			t.Error("closed without what could not be written")
		}
		r.Add(make([]Event, 3)) // these are lost
		n.Count(store.MetricLimits, "guesses")
		if c.events {
			fault = nil
		}
		a := &Auth{recorder: r, counter: n}
		err := kit{a}.Flush(t.Context())
		switch {
		case c.events && c.figures && (err != nil || events != 2 || figures != 1):
			t.Errorf("%v, %d events and %d figures", err, events, figures)
		case (!c.events || !c.figures) && !errors.Is(err, CodeUnavailable):
			t.Errorf("%+v: %v", c, err)
		}
		if n := (kit{a}).EventsLost(); n != 3 {
			t.Errorf("%d lost", n)
		}
	}
}

// storedSettings is a store of settings.
type storedSettings struct {
	store.ProjectStore
	is  store.StoredSettings
	err error
}

func (s *storedSettings) Settings(ctx context.Context) (store.StoredSettings, error) {
	if ctx.Err() != nil {
		return store.StoredSettings{}, ctx.Err()
	}
	return s.is, s.err
}

// Written settings take effect immediately, even after the writer's context has ended. A
// failed read is logged, and a successful one is not.
func TestSettingsThatAreRead(t *testing.T) {
	var log bytes.Buffer
	st := &storedSettings{is: store.StoredSettings{Revision: 1, Document: []byte(`{"sender_name":"Acme"}`)}}
	a := &Auth{cfg: config{log: slog.New(slog.NewTextHandler(&log, nil)), baseURL: &url.URL{Scheme: "https", Host: "auth.test"}}}
	a.project = st
	over, end := context.WithCancel(t.Context())
	end()
	read := func(want string, revision int64, logged bool) {
		t.Helper()
		log.Reset()
		kit{a}.ReloadSettings(over)
		at, when := kit{a}.SettingsState()
		if now := time.Now(); a.appName() != want || at != revision || when.After(now) || now.Sub(when) > time.Minute || strings.Contains(log.String(), "settings cannot be read") != logged {
			t.Errorf("%s at %d, read at %v: %s", a.appName(), at, when, log.String())
		}
	}
	read("Acme", 1, false)
	st.is = store.StoredSettings{Revision: 2, Document: []byte(`{"sender_name":"Bcme"}`)}
	read("Bcme", 2, false)
	st.err = errors.New("away")
	read("Bcme", 2, true)
	st.is, st.err = store.StoredSettings{Revision: 3, Document: []byte(`{`)}, nil
	read("Bcme", 2, true)
}

// A message that is recorded in a transaction of the application is sent by the process
// that finds it after the commit. Other messages are sent by this process.
func TestMessagesJoinTransactions(t *testing.T) {
	for name, c := range map[string]struct {
		inTx func(context.Context) bool
		want bool
	}{
		"of a store without":  {nil, false},
		"outside of one":      {func(context.Context) bool { return false }, false},
		"within one":          {func(context.Context) bool { return true }, true},
		"of this very caller": {func(ctx context.Context) bool { return ctx.Value(requestIDKey{}) == "tx" }, true},
	} {
		a := &Auth{keys: testKeys(t), outbox: outbox.New(outbox.Options{InTx: c.inTx, Timeout: time.Minute})}
		ctx := context.WithValue(t.Context(), requestIDKey{}, "tx")
		ch := store.Change{Now: time.Unix(1767323045, 0)}
		a.enclose(ctx, &ch, outbox.Outgoing{Kind: KindMagicLink}, User{}, nil) // a decoy, which draws nothing
		if len(ch.Messages) != 1 {
			t.Fatalf("%s: %d messages", name, len(ch.Messages))
		}
		at, attempts := ch.Now.Add(3*time.Minute), 1
		if c.want {
			at, attempts = ch.Now, 0
		}
		if m := ch.Messages[0]; a.outbox.JoinsTransaction(ctx) != c.want || !m.NextAt.Equal(at) || m.Attempts != attempts {
			t.Errorf("%s: due %v after, attempts %d", name, m.NextAt.Sub(ch.Now), m.Attempts)
		}
	}
}

// listing is a store that returns invitations with a function.
type listing struct {
	Store
	store.AdminStore
	query store.InvitationQuery
	list  []store.Token
	err   error
}

func (s *listing) ListInvitations(_ context.Context, q store.InvitationQuery) ([]store.Token, error) {
	s.query = q
	return s.list, s.err
}

// Lists of invitations have a cursor if there may be more. An invitation without details
// is an internal error and is not skipped.
func TestInvitationsAreListedWhole(t *testing.T) {
	now := time.Unix(1767323045, 0).UTC()
	at := &store.InvitationCursor{CreatedAt: now, Subject: "before"}
	token := func(id string, data any) store.Token {
		raw, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		return store.Token{Subject: id, Hash: []byte("hash of " + id), CreatedAt: now.Add(-time.Hour), Data: raw}
	}
	a, b := host.Invitation{ID: "a", Email: "ada@example.com", Metadata: map[string]any{}}, host.Invitation{ID: "b", Email: "bob@example.com", Metadata: map[string]any{}}
	both := []store.Token{token("a", linkData{Invitation: &a}), token("b", linkData{Invitation: &b})}
	odd := token("b", "no particulars")
	for name, c := range map[string]struct {
		store Store
		limit int
		want  []host.Invitation
		next  string
		code  Code
	}{
		"none":                       {&listing{}, 2, nil, "", ""},
		"all":                        {&listing{list: both}, 3, []host.Invitation{a, b}, "", ""},
		"perhaps not all":            {&listing{list: both}, 2, []host.Invitation{a, b}, "b", ""},
		"one":                        {&listing{list: both[:1]}, 1, []host.Invitation{a}, "a", ""},
		"without particulars":        {&listing{list: []store.Token{both[0], token("b", linkData{})}}, 3, nil, "", CodeInternal},
		"with none that can be read": {&listing{list: []store.Token{both[0], odd}}, 3, nil, "", CodeInternal},
		"that cannot be asked for":   {&listing{err: errors.New("away")}, 2, nil, "", CodeUnavailable},
		"of a store that has none":   {&drawing{}, 2, nil, "", CodeInternal},
	} {
		admin, _ := store.Capability[store.AdminStore](c.store)
		auth := &Auth{store: c.store, admin: admin, cfg: config{now: func() time.Time { return now }}}
		list, hashes, next, err := kit{auth}.Invitations(t.Context(), "id", at, c.limit)
		if c.code != "" {
			if !errors.Is(err, c.code) || list != nil || hashes != nil || next != nil {
				t.Errorf("%s: %+v, %v", name, list, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(list, c.want) || len(hashes) != len(c.want) {
			t.Errorf("%s: %+v, %q, %v", name, list, hashes, err)
		}
		for i, h := range hashes {
			if !bytes.Equal(h, []byte("hash of "+list[i].ID)) {
				t.Errorf("%s: %q", name, hashes)
			}
		}
		if (next != nil) != (c.next != "") || next != nil && *next != (store.InvitationCursor{CreatedAt: now.Add(-time.Hour), Subject: c.next}) {
			t.Errorf("%s: goes on after %+v", name, next)
		}
		if s, ok := c.store.(*listing); ok && !reflect.DeepEqual(s.query, store.InvitationQuery{Subject: "id", Now: now, After: at, Limit: c.limit}) {
			t.Errorf("%s: asked for %+v", name, s.query)
		}
	}
}

// A key of the options has a name while they contain it. A former key is distinguished
// from an unknown one.
func TestSecretKeysByTheirNames(t *testing.T) {
	c := configOf(WithSecretKeys(SecretKey{Key: "sk_test_01234567", Scopes: []string{"a"}}, SecretKey{Key: "sk_test_12345678", Scopes: []string{"b"}}))
	kit := kit{&Auth{cfg: c}}
	for _, k := range c.secretKeys {
		if len(k.Name) != len("secret key 01234567") || !strings.HasPrefix(k.Name, "secret key ") {
			t.Errorf("a key is named %q", k.Name)
		}
		if got, named, there := kit.SecretKeyNamed(k.Name); !named || !there || !reflect.DeepEqual(got, k) {
			t.Errorf("%s: %+v, %t, %t", k.Name, got, named, there)
		}
	}
	for name, was := range map[string]bool{"secret key 00000000": true, "nightly export": false, "": false} {
		if got, named, there := kit.SecretKeyNamed(name); named != was || there || got.Name != "" {
			t.Errorf("%q: %+v, %t, %t", name, got, named, there)
		}
	}
}
