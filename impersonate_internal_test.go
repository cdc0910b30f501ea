package auth

import (
	"context"
	"errors"
	"net/url"
	"reflect"
	"testing"
	"time"

	"github.com/authmount/auth/internal/journal"
	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// An impersonation is a session of its user at the lower level, with the IP address of its
// start. It has no other properties of a session.
func TestImpersonationAsASession(t *testing.T) {
	start := time.Unix(1767323045, 0).UTC()
	i := store.Impersonation{
		ID: "i", UserID: "ada", ActorID: "eve", ActorSessionID: "s", Reason: "to see", CreatedAt: start, ExpiresAt: start.Add(time.Minute),
		IP: "192.0.2.7", UserAgent: "browser", Sequence: 4, UserRevision: 1, ActorRevision: 2, RolesRevision: 3,
	}
	v := reflect.ValueOf(i)
	for n := range v.NumField() {
		if v.Field(n).IsZero() {
			t.Errorf("nothing is known of %s", v.Type().Field(n).Name)
		}
	}
	want := Session{
		ID: "i", UserID: "ada", AAL: "aal1", AMR: []AMR{{Method: "impersonation", Timestamp: 1767323045}},
		CreatedAt: start, LastActiveAt: start, RotatedAt: start, IdleUntil: i.ExpiresAt, ExpiresAt: i.ExpiresAt, IP: "192.0.2.7", UserAgent: "browser",
	}
	if got := sessionOf(&i); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// oneImpersonation is a store of one impersonation, or an error.
type oneImpersonation struct {
	Store
	store.AdminStore
	i   store.Impersonation
	err error
}

func (s *oneImpersonation) Impersonation(context.Context, string, time.Time) (store.Impersonation, User, error) {
	return s.i, User{ID: s.i.UserID}, s.err
}

// An impersonation token is valid only for the impersonation that it names: of its user,
// by its actor, in the session that the actor started it in.
func TestImpersonationOfATokenIsItsOwn(t *testing.T) {
	now := func() time.Time { return time.Unix(1767323045, 0) }
	for name, c := range map[string]struct {
		edit func(*store.Impersonation)
		err  error
		want Code
	}{
		"its own":                 {func(*store.Impersonation) {}, nil, ""},
		"of another user":         {func(i *store.Impersonation) { i.UserID = "bob" }, nil, CodeSessionEnded},
		"by another actor":        {func(i *store.Impersonation) { i.ActorID = "bob" }, nil, CodeSessionEnded},
		"in another session":      {func(i *store.Impersonation) { i.ActorSessionID = "other" }, nil, CodeSessionEnded},
		"none":                    {func(*store.Impersonation) {}, store.ErrNotFound, CodeSessionEnded},
		"over":                    {func(*store.Impersonation) {}, store.ErrSessionEnded, CodeSessionEnded},
		"of a store that is away": {func(*store.Impersonation) {}, errors.New("away"), CodeUnavailable},
	} {
		i := store.Impersonation{ID: "i", UserID: "ada", ActorID: "eve", ActorSessionID: "s"}
		c.edit(&i)
		a := &Auth{admin: &oneImpersonation{i: i, err: c.err}, cfg: config{now: now}}
		s, u, err := a.currentImpersonation(t.Context(), &Claims{UserID: "ada", SessionID: "i", Impersonator: &SessionRef{UserID: "eve", ID: "s"}})
		switch {
		case c.want == "" && (err != nil || s.ID != "i" || u.ID != "ada"):
			t.Errorf("%s: %+v, %+v, %v", name, s, u, err)
		case c.want != "" && (!errors.Is(err, c.want) || s.ID != "" || u.ID != ""):
			t.Errorf("%s: %+v, %+v, %v", name, s, u, err)
		}
	}
	bare := &Auth{store: &drawing{}, cfg: config{now: now}}
	if _, _, err := bare.currentImpersonation(t.Context(), &Claims{Impersonator: &SessionRef{}}); !errors.Is(err, CodeSessionEnded) {
		t.Errorf("of a store that keeps none: %v", err)
	}
}

// endedImpersonations is a store that records which impersonations are ended.
type endedImpersonations struct {
	Store
	store.AdminStore
	list  []store.Impersonation
	ended []store.EndImpersonation
	err   error
}

func (s *endedImpersonations) EndImpersonation(_ context.Context, c store.EndImpersonation) error {
	s.ended = append(s.ended, c)
	return s.err
}

func (s *endedImpersonations) Impersonation(context.Context, string, time.Time) (store.Impersonation, User, error) {
	return store.Impersonation{}, User{}, s.err
}

func (s *endedImpersonations) Impersonations(_ context.Context, userID string, _ time.Time) ([]store.Impersonation, error) {
	if userID != "ada" {
		return nil, errors.New("of another")
	}
	return s.list, s.err
}

func impersonating(st Store) (*Auth, *[]Event) {
	now := time.Unix(1767323045, 0).UTC()
	var events []Event
	admin, _ := store.Capability[store.AdminStore](st)
	a := &Auth{store: st, admin: admin, counter: &journal.Counter{}, recorder: &journal.Recorder{}, outbox: &outbox.Outbox{}, cfg: config{now: func() time.Time { return now }, baseURL: &url.URL{Scheme: "https", Host: "auth.test"}}}
	a.cfg.hooks = []Hooks{{OnEvent: func(_ context.Context, e Event) { events = append(events, e) }}}
	return a, &events
}

// An operator ends an impersonation by signing out, as themselves, and ends no session of
// the user. An impersonation that has ended is no error; other failures are.
func TestImpersonationsEndBySigningOut(t *testing.T) {
	actor := SessionRef{ID: "s", UserID: "eve"}
	claims := &Claims{UserID: "ada", SessionID: "i", Impersonator: &actor}
	for name, c := range map[string]struct {
		scope  LogoutScope
		err    error
		want   error
		ends   bool
		events int
	}{
		"signed out":       {"", nil, nil, true, 1},
		"signed out here":  {LogoutLocal, nil, nil, true, 1},
		"over":             {"", store.ErrSessionEnded, nil, true, 0},
		"none":             {"", store.ErrNotFound, nil, true, 0},
		"of the banned":    {"", store.ErrBanned, nil, true, 0},
		"that cannot be":   {"", errors.New("away"), CodeUnavailable, true, 0},
		"of a bad change":  {"", store.ErrInvalidChange, CodeInternal, true, 0},
		"all the user's":   {LogoutGlobal, nil, CodeImpersonationForbidden, false, 0},
		"the user's other": {LogoutOthers, nil, CodeImpersonationForbidden, false, 0},
	} {
		st := &endedImpersonations{err: c.err}
		a, events := impersonating(st)
		err := a.Logout(t.Context(), LogoutParams{Caller: claims.Caller(), Scope: c.scope})
		if !errors.Is(err, c.want) || c.want == nil && err != nil || len(st.ended) > 0 != c.ends || len(*events) != c.events {
			t.Errorf("%s: %v, asked %+v, told %+v", name, err, st.ended, *events)
		}
		if !c.ends {
			continue
		}
		got := st.ended[0]
		if got.ID != "i" || *got.By.Session != actor || len(got.Events) != 1 || got.Events[0].On != store.OutcomeDone {
			t.Errorf("%s: %+v", name, got)
		}
		for _, e := range append(*events, got.Events[0].Event) {
			if e.Type != EventImpersonationEnded || e.UserID != "ada" || e.SessionID != "i" || e.Actor != (Actor{Kind: store.ActorUser, ID: "eve", SessionID: "s"}) {
				t.Errorf("%s: tells %+v", name, e)
			}
		}
	}
	bare, _ := impersonating(&drawing{})
	if err := bare.Logout(t.Context(), LogoutParams{Caller: claims.Caller()}); !errors.Is(err, CodeSessionEnded) {
		t.Errorf("of a store that keeps none: %v", err)
	}
}

// A user's list of sessions shows impersonations. The code of an impersonation that has
// ended is invalid.
func TestImpersonationsAreListedAndExchanged(t *testing.T) {
	start := time.Unix(1767323000, 0).UTC()
	list := []store.Impersonation{{ID: "i", UserID: "ada", ActorID: "eve", CreatedAt: start, ExpiresAt: start.Add(time.Hour)}, {ID: "j", UserID: "ada", ActorID: "bob", CreatedAt: start, ExpiresAt: start.Add(time.Hour)}}
	a, _ := impersonating(&endedImpersonations{list: list})
	infos, err := a.impersonationInfos(t.Context(), SessionsParams{UserID: "ada", Current: "j"})
	if err != nil || len(infos) != 2 {
		t.Fatalf("%+v, %v", infos, err)
	}
	for n, i := range list {
		want := sessionInfo(sessionOf(&i), "j")
		if want.ImpersonatedBy = i.ActorID; !reflect.DeepEqual(infos[n], want) || infos[n].Current != (i.ID == "j") {
			t.Errorf("%+v\nwant %+v", infos[n], want)
		}
	}
	away, _ := impersonating(&endedImpersonations{err: errors.New("away")})
	if _, err := away.impersonationInfos(t.Context(), SessionsParams{UserID: "ada"}); !errors.Is(err, CodeUnavailable) {
		t.Error(err)
	}
	bare, _ := impersonating(&drawing{})
	if infos, err := bare.impersonationInfos(t.Context(), SessionsParams{UserID: "ada"}); err != nil || infos == nil || len(infos) != 0 {
		t.Errorf("of a store that keeps none: %+v, %v", infos, err)
	}
	for fault, want := range map[error]error{store.ErrNotFound: CodeInvalidCode, store.ErrSessionEnded: CodeInvalidCode, errors.New("away"): CodeUnavailable} {
		a, _ := impersonating(&endedImpersonations{err: fault})
		if tokens, err := a.exchangeImpersonation(t.Context(), "i"); !errors.Is(err, want) || tokens != nil {
			t.Errorf("%v: %v", fault, err)
		}
	}
}

// The actor of a change comes from its authority, of every kind. If the authority names no
// actor, the event does.
func TestActorsOfEveryAuthority(t *testing.T) {
	about := Event{UserID: "ada", SessionID: "s"}
	for name, c := range map[string]struct {
		by   Authority
		e    Event
		want Actor
	}{
		"a session":                    {Authority{Session: &SessionRef{ID: "t", UserID: "eve"}}, about, Actor{Kind: store.ActorUser, ID: "eve", SessionID: "t"}},
		"a key":                        {Authority{Key: &KeyRef{ID: "k", Revision: 3}}, about, Actor{Kind: store.ActorKey, ID: "k"}},
		"a system":                     {Authority{System: "sweep"}, about, Actor{Kind: store.ActorSystem, ID: "sweep"}},
		"the application":              {Authority{External: "x"}, about, Actor{Kind: store.ActorExternal, ID: "x"}},
		"a proof":                      {Authority{Proof: true}, about, Actor{Kind: store.ActorUser, ID: "ada", SessionID: "s"}},
		"a link":                       {Authority{Token: &store.TokenRef{Purpose: store.PurposeReset}}, about, Actor{Kind: store.ActorUser, ID: "ada", SessionID: "s"}},
		"a proof of whom nobody knows": {Authority{Proof: true}, Event{SessionID: "s"}, Actor{}},
	} {
		if got := actorOf(c.by, c.e); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}
