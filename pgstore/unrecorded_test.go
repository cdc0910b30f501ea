package pgstore_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/pgstore"
)

// Whatever kind of change it is, its events are recorded or, where they cannot be, given
// back, with all that the store fills in: whether recording was tried in vain or, as it
// lately was, is not tried.
func TestEventsAreRecordedOrGivenBack(t *testing.T) {
	t.Parallel()
	s, schema := openSchema(t)
	type change struct {
		about string // whom its events are about
		ended []string
		call  func(s *pgstore.Store, c auth.Change) error
		want  []auth.Outcome // of the events
	}
	code := func(tries int, userID string) auth.Token {
		c := newCode(uuid.NewString(), uuid.NewString(), tries)
		if c = ofUser(c, userID); put(t.Context(), s, c) != nil {
			t.Fatal("no code")
		}
		return c
	}
	guess := func(right bool, e auth.Effect) func() change {
		return func() change {
			u := withUser(t, s)
			c := code(5, u.ID)
			hash, outcome := c.Hash, auth.OutcomeDone
			if !right {
				hash, outcome = hashOf("wrong"), auth.OutcomeWrongCode
			}
			return change{about: u.ID, want: []auth.Outcome{outcome}, call: func(s *pgstore.Store, ch auth.Change) error {
				_, _, err := s.TryCode(t.Context(), auth.TryCode{Change: ch, Purpose: c.Purpose, Subject: c.Subject, Hash: hash, Effect: e})
				if !right && errors.Is(err, auth.ErrWrongCode) {
					return nil
				}
				return err
			}}
		}
	}
	redeem := func(of, by string) func() change {
		return func() change {
			u := withUser(t, s)
			ids := map[string]string{"": "", "user": u.ID}
			c := code(0, ids[of])
			return change{about: u.ID, want: []auth.Outcome{auth.OutcomeDone}, call: func(s *pgstore.Store, ch auth.Change) error {
				_, _, err := s.RedeemToken(t.Context(), auth.Redemption{Change: ch, Purpose: c.Purpose, Hash: c.Hash, Effect: auth.Effect{UserID: ids[by]}})
				return err
			}}
		}
	}
	name := "x"
	renamed := auth.Effect{Patch: &auth.UserPatch{FullName: &name}}
	changes := map[string]func() change{
		"a sign-up": func() change {
			nu := newUser("")
			return change{about: nu.User.ID, want: []auth.Outcome{auth.OutcomeDone}, call: func(s *pgstore.Store, c auth.Change) error {
				nu.Change = c
				_, err := s.CreateUser(t.Context(), nu)
				return err
			}}
		},
		"a sign-up with a role": func() change {
			nu := newUser("")
			nu.User.Roles = []string{"x"}
			return change{about: nu.User.ID, want: []auth.Outcome{auth.OutcomeDone}, call: func(s *pgstore.Store, c auth.Change) error {
				nu.Change = c
				_, err := s.CreateUser(t.Context(), nu)
				return err
			}}
		},
		"a sign-in on a new device": func() change {
			u, before := withSession(t, s)
			sess := newSession(u.ID)
			sess.Device = "new"
			return change{about: u.ID, ended: []string{before.ID}, want: []auth.Outcome{auth.OutcomeDone, auth.OutcomeSessionsEnded, auth.OutcomeNewDevice}, call: func(s *pgstore.Store, c auth.Change) error {
				_, err := s.CreateSession(t.Context(), auth.CreateSession{Change: c, Session: sess, KeepSessions: 1})
				return err
			}}
		},
		"a token": func() change {
			u := withUser(t, s)
			return change{about: u.ID, want: []auth.Outcome{auth.OutcomeDone}, call: func(s *pgstore.Store, c auth.Change) error {
				return s.PutToken(t.Context(), auth.PutToken{Change: c, Token: ofUser(newCode(uuid.NewString(), "", 0), u.ID)})
			}}
		},
		"a token that is used up":       redeem("user", ""),
		"one for somebody who is named": redeem("", "user"),
		"a right code":                  guess(true, auth.Effect{}),
		"a right code with an effect":   guess(true, renamed),
		"a wrong code":                  guess(false, auth.Effect{}),
		"a wrong code with an effect":   guess(false, renamed),
		"sessions that end": func() change {
			u, before := withSession(t, s)
			return change{about: u.ID, ended: []string{before.ID}, want: []auth.Outcome{auth.OutcomeDone, auth.OutcomeSessionsEnded}, call: func(s *pgstore.Store, c auth.Change) error {
				_, err := s.RevokeSessions(t.Context(), auth.RevokeSessions{Change: c, UserID: u.ID})
				return err
			}}
		},
		"a refresh that comes too late": func() change {
			u, sess := withSession(t, s)
			exec(t, s.Pool(), "update "+schema+".sessions set counter = 7 where id = $1", sess.ID)
			return change{about: u.ID, want: []auth.Outcome{auth.OutcomeReused}, call: func(s *pgstore.Store, c auth.Change) error {
				if _, _, err := s.AdvanceSession(t.Context(), auth.Advance{Change: c, SessionID: sess.ID, IdleUntil: time.Now().Add(time.Hour)}); !errors.Is(err, auth.ErrReused) {
					return err
				}
				return nil
			}}
		},
	}
	outcomes := []auth.Outcome{auth.OutcomeDone, auth.OutcomeWrongCode, auth.OutcomeReused, auth.OutcomeSessionsEnded, auth.OutcomeReplayed, auth.OutcomeNewDevice}
	run := func(what, when string, s *pgstore.Store, begin func() change, recorded bool) {
		t.Helper()
		m := begin()
		var back []auth.Event
		c := byTest()
		c.Unrecorded = func(list []auth.Event) { back = append(back, list...) }
		on := map[string]auth.Outcome{}
		for i, o := range outcomes {
			e := auth.Event{ID: uuid.NewString(), Type: auth.EventSignedIn, At: c.Now.Add(-time.Duration(i) * time.Second)}
			on[e.ID] = o
			c.Events = append(c.Events, auth.OutcomeEvent{On: o, Event: e})
		}
		if err := m.call(s, c); err != nil {
			t.Errorf("%s, %s: %v", what, when, err)
		}
		list := back
		if recorded {
			kept, err := s.Events(t.Context(), auth.EventQuery{UserID: m.about})
			if err != nil || len(back) > 0 {
				t.Errorf("%s, %s: %v, and given back were %+v", what, when, err, back)
			}
			list = kept
		}
		var have []auth.Outcome
		for _, e := range list {
			o := on[e.ID]
			have = append(have, o)
			var ended []string
			if o == auth.OutcomeSessionsEnded {
				ended = m.ended
			}
			if e.UserID != m.about || !slices.Equal(e.SessionIDs, ended) {
				t.Errorf("%s, %s: outcome %d is told of %q with sessions %v", what, when, o, e.UserID, e.SessionIDs)
			}
		}
		if !slices.Equal(have, m.want) {
			t.Errorf("%s, %s: outcomes %v, want %v", what, when, have, m.want)
		}
	}
	for what, begin := range changes {
		run(what, "recorded", s, begin, true)
	}
	exec(t, s.Pool(), "alter table "+schema+".events rename to elsewhere")
	for what, begin := range changes {
		fresh, err := pgstore.New(s.Pool(), pgstore.WithSchema(schema)) // which knows of no trouble yet
		done(t, err)
		run(what, "tried in vain", fresh, begin, false)
		exec(t, s.Pool(), "alter table "+schema+".elsewhere rename to events")
		run(what, "not tried", fresh, begin, false)
		exec(t, s.Pool(), "alter table "+schema+".events rename to elsewhere")
	}
}
