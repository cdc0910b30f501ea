package pgstore_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

// The events of every kind of change are recorded or, where they cannot be, returned with
// all the fields that the store fills in: both if recording failed and if it was skipped
// after a recent failure.
func TestEventsAreRecordedOrGivenBack(t *testing.T) {
	t.Parallel()
	s, schema := openSchema(t)
	type change struct {
		about string // the user of its events
		ended []string
		call  func(s *pgstore.Store, c store.Change) error
		want  []store.Outcome // of the events
	}
	code := func(tries int, userID string) store.Token {
		c := newCode(uuid.NewString(), uuid.NewString(), tries)
		if c = ofUser(c, userID); put(t.Context(), s, c) != nil {
			t.Fatal("no code")
		}
		return c
	}
	guess := func(right bool, e store.Effect) func() change {
		return func() change {
			u := withUser(t, s)
			c := code(5, u.ID)
			hash, outcome := c.Hash, store.OutcomeDone
			if !right {
				hash, outcome = hashOf("wrong"), store.OutcomeWrongCode
			}
			return change{about: u.ID, want: []store.Outcome{outcome}, call: func(s *pgstore.Store, ch store.Change) error {
				_, _, err := s.RedeemCode(t.Context(), store.CodeAttempt{Change: ch, Purpose: c.Purpose, Subject: c.Subject, Hash: hash, Effect: e})
				if !right && errors.Is(err, store.ErrWrongCode) {
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
			return change{about: u.ID, want: []store.Outcome{store.OutcomeDone}, call: func(s *pgstore.Store, ch store.Change) error {
				_, _, err := s.RedeemToken(t.Context(), store.Redemption{Change: ch, Purpose: c.Purpose, Hash: c.Hash, Effect: store.Effect{UserID: ids[by]}})
				return err
			}}
		}
	}
	name := "x"
	renamed := store.Effect{Patch: &store.UserPatch{FullName: &name}}
	changes := map[string]func() change{
		"a sign-up": func() change {
			nu := newUser("")
			return change{about: nu.User.ID, want: []store.Outcome{store.OutcomeDone}, call: func(s *pgstore.Store, c store.Change) error {
				nu.Change = c
				_, err := s.CreateUser(t.Context(), nu)
				return err
			}}
		},
		"a sign-up with a role": func() change {
			nu := newUser("")
			nu.User.Roles = []string{"x"}
			return change{about: nu.User.ID, want: []store.Outcome{store.OutcomeDone}, call: func(s *pgstore.Store, c store.Change) error {
				nu.Change = c
				_, err := s.CreateUser(t.Context(), nu)
				return err
			}}
		},
		"a sign-in on a new device": func() change {
			u, before := withSession(t, s)
			sess := newSession(u.ID)
			sess.Device = "new"
			return change{about: u.ID, ended: []string{before.ID}, want: []store.Outcome{store.OutcomeDone, store.OutcomeSessionsEnded, store.OutcomeNewDevice}, call: func(s *pgstore.Store, c store.Change) error {
				_, err := s.CreateSession(t.Context(), store.CreateSession{Change: c, NewSession: store.NewSession{Session: sess, KeepSessions: 1}})
				return err
			}}
		},
		"a token": func() change {
			u := withUser(t, s)
			return change{about: u.ID, want: []store.Outcome{store.OutcomeDone}, call: func(s *pgstore.Store, c store.Change) error {
				return s.PutToken(t.Context(), store.PutToken{Change: c, Token: ofUser(newCode(uuid.NewString(), "", 0), u.ID)})
			}}
		},
		"a token that is used up":       redeem("user", ""),
		"one for somebody who is named": redeem("", "user"),
		"a right code":                  guess(true, store.Effect{}),
		"a right code with an effect":   guess(true, renamed),
		"a wrong code":                  guess(false, store.Effect{}),
		"a wrong code with an effect":   guess(false, renamed),
		"sessions that end": func() change {
			u, before := withSession(t, s)
			return change{about: u.ID, ended: []string{before.ID}, want: []store.Outcome{store.OutcomeDone, store.OutcomeSessionsEnded}, call: func(s *pgstore.Store, c store.Change) error {
				_, err := s.RevokeSessions(t.Context(), store.RevokeSessions{Change: c, UserID: u.ID})
				return err
			}}
		},
		"a refresh that comes too late": func() change {
			u, sess := withSession(t, s)
			exec(t, s.Pool(), "update "+schema+".sessions set counter = 7 where id = $1", sess.ID)
			return change{about: u.ID, want: []store.Outcome{store.OutcomeReused}, call: func(s *pgstore.Store, c store.Change) error {
				if _, _, err := s.AdvanceSession(t.Context(), store.Advance{Change: c, SessionID: sess.ID, IdleUntil: time.Now().Add(time.Hour)}); !errors.Is(err, store.ErrReused) {
					return err
				}
				return nil
			}}
		},
	}
	outcomes := []store.Outcome{store.OutcomeDone, store.OutcomeWrongCode, store.OutcomeReused, store.OutcomeSessionsEnded, store.OutcomeReplayed, store.OutcomeNewDevice}
	run := func(what, when string, s *pgstore.Store, begin func() change, recorded bool) {
		t.Helper()
		m := begin()
		var back []store.Event
		c := byTest()
		c.Unrecorded = func(list []store.Event) { back = append(back, list...) }
		on := map[string]store.Outcome{}
		for i, o := range outcomes {
			e := store.Event{ID: uuid.NewString(), Type: store.EventSignedIn, At: c.Now.Add(-time.Duration(i) * time.Second)}
			on[e.ID] = o
			c.Events = append(c.Events, store.OutcomeEvent{On: o, Event: e})
		}
		if err := m.call(s, c); err != nil {
			t.Errorf("%s, %s: %v", what, when, err)
		}
		list := back
		if recorded {
			kept, err := s.Events(t.Context(), store.EventQuery{UserID: m.about})
			if err != nil || len(back) > 0 {
				t.Errorf("%s, %s: %v, and given back were %+v", what, when, err, back)
			}
			list = kept
		}
		var have []store.Outcome
		for _, e := range list {
			o := on[e.ID]
			have = append(have, o)
			var ended []string
			if o == store.OutcomeSessionsEnded {
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
		fresh, err := pgstore.New(s.Pool(), pgstore.WithSchema(schema)) // has not seen the failure yet
		done(t, err)
		run(what, "tried in vain", fresh, begin, false)
		exec(t, s.Pool(), "alter table "+schema+".elsewhere rename to events")
		run(what, "not tried", fresh, begin, false)
		exec(t, s.Pool(), "alter table "+schema+".events rename to elsewhere")
	}
}
