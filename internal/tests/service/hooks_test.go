package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// Hooks of several options are all called, in order; a before-hook that refuses
// is the last.
func TestHooksAddUp(t *testing.T) {
	var calls []string
	hooks := func(name string, refuse error) auth.Option {
		return auth.WithHooks(auth.Hooks{
			BeforeSignUp:   func(context.Context, auth.SignUpAttempt) error { calls = append(calls, name+" before"); return refuse },
			OnUserCreating: func(context.Context, auth.User) error { calls = append(calls, name+" creating"); return nil },
			OnEvent: func(_ context.Context, e auth.Event) {
				if e.Type == auth.EventSignedUp {
					calls = append(calls, name+" event")
				}
			},
		})
	}
	w := harness.NewWorld(t, hooks("one", nil), hooks("two", nil))
	w.PostSignUp("ada@example.com")
	if want := []string{"one before", "two before", "one creating", "two creating", "one event", "two event"}; !slices.Equal(calls, want) {
		t.Errorf("called %q", calls)
	}
	calls = nil
	w = harness.NewWorld(t, hooks("one", auth.Reject(auth.CodeSignupDisabled, "")), hooks("two", nil))
	w.Do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}).Want(403, auth.CodeSignupDisabled)
	if want := []string{"one before"}; !slices.Equal(calls, want) {
		t.Errorf("called %q", calls)
	}
}

// A custom code of the application compiles but is no code on the wire: the log names its
// origin and the replacement.
func TestRejectWithUnknownCode(t *testing.T) {
	w := harness.NewWorld(t, auth.WithHooks(auth.Hooks{BeforeSignUp: func(context.Context, auth.SignUpAttempt) error { return auth.Reject("staff_only", "") }}))
	w.Do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword}).Want(500, auth.CodeInternal)
	for _, want := range []string{"staff_only", "auth.Reject", "one of the Code constants"} {
		if !strings.Contains(w.Log.String(), want) {
			t.Errorf("%q is not in the log: %s", want, w.Log)
		}
	}
}

// An after-hook that panics is logged. The committed change is answered as a success, and
// other observers still get the event.
func TestAfterHooksCannotHarm(t *testing.T) {
	told := 0
	w := harness.NewWorld(t,
		auth.WithHooks(auth.Hooks{OnEvent: func(context.Context, auth.Event) { panic("observer") }}),
		auth.WithHooks(auth.Hooks{OnEvent: func(context.Context, auth.Event) { told++ }}))
	s := w.PostSignUp("ada@example.com")
	if !w.Alive(s.AccessToken) || told != 2 {
		t.Errorf("alive %v, told of %d events", w.Alive(s.AccessToken), told)
	}
	if !strings.Contains(w.Log.String(), "hook panicked") || !strings.Contains(w.Log.String(), "observer") {
		t.Errorf("log %s", w.Log)
	}
}

// An event contains the action, the actor and the user, and survives JSON.
func TestEvents(t *testing.T) {
	w := harness.NewWorld(t)
	s := w.PostSignUp("ada@example.com")
	w.Do("PATCH", "/me", map[string]any{"full_name": "Ada"}, harness.Bearer(s.AccessToken)).Want(200)
	w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": "wrong horse battery"}, harness.Header{Name: "User-Agent", Value: "Test/1"}).Want(401)
	w.Mu.Lock()
	events := slices.Clone(w.Events)
	w.Mu.Unlock()
	if len(events) != 4 {
		t.Fatalf("%d events: %+v", len(events), events)
	}
	ids := map[string]bool{}
	for _, e := range events {
		ids[e.ID] = true
		if e.ID == "" || !e.At.Equal(w.Clock.Now()) || e.UserID != s.User.ID || !e.Client.IP.IsValid() {
			t.Errorf("event %+v", e)
		}
		b, err := json.Marshal(e)
		var back auth.Event
		if err == nil {
			err = json.Unmarshal(b, &back)
		}
		e.Err = nil
		if err != nil || !reflect.DeepEqual(back, e) {
			t.Errorf("%v\n%+v\nis not\n%+v", err, back, e)
		}
	}
	if len(ids) != len(events) {
		t.Errorf("ids %v", ids)
	}
	session := w.ClaimsOf(s).SessionID
	if got, want := events[2].Actor, (auth.Actor{Kind: store.ActorUser, ID: s.User.ID, SessionID: session}); events[2].Type != auth.EventUserUpdated || got != want {
		t.Errorf("update by %+v", events[2])
	}
	if e := events[3]; e.Type != auth.EventSignInFailed || !errors.Is(e.Err, auth.CodeInvalidCredentials) || e.Reason != "invalid_credentials" || e.Actor != (auth.Actor{}) || e.Client.UserAgent != "Test/1" {
		t.Errorf("failure %+v", e)
	}
}

// The events of a change are recorded in the same step, and the hooks get the same events.
func TestEventsAreRecorded(t *testing.T) {
	w := harness.NewWorld(t)
	st, ok := store.Capability[store.Journal](w.Store)
	if !ok {
		t.Fatal("the store keeps no events")
	}
	ada := w.LoginAs(t, "ada@example.com")
	w.Do("PATCH", "/me", map[string]any{"full_name": "Ada"}, harness.Bearer(ada.AccessToken)).Want(200)
	w.Enrol(ada.AccessToken)
	w.Do("POST", "/logout?scope=global", nil, harness.Bearer(ada.AccessToken)).Want(204)
	kept, err := st.Events(t.Context(), store.EventQuery{UserID: ada.User.ID})
	if err != nil {
		t.Fatal(err)
	}
	var types []auth.EventType
	for _, e := range slices.Backward(kept) {
		types = append(types, e.Type)
	}
	want := []auth.EventType{auth.EventUserImported, auth.EventSignedIn, auth.EventUserUpdated, auth.EventMFAEnabled, auth.EventSessionsEnded}
	slices.Sort(types) // of one instant, by their ids
	slices.Sort(want)
	if !slices.Equal(types, want) {
		t.Errorf("recorded %v", types)
	}
	w.Mu.Lock()
	defer w.Mu.Unlock()
	for _, told := range w.Events {
		told.Err = nil
		if !slices.ContainsFunc(kept, func(e auth.Event) bool { return reflect.DeepEqual(e, told) }) {
			t.Errorf("told of %+v, which is not recorded\n%+v", told, kept)
		}
	}
}

// A logout's event names the sessions that ended, and not the one that stays.
func TestLogoutNamesWhatEnded(t *testing.T) {
	for scope, want := range map[auth.LogoutScope][]int{auth.LogoutLocal: {0}, auth.LogoutOthers: {1, 2}, auth.LogoutGlobal: {0, 1, 2}} {
		w := harness.NewWorld(t)
		var ids []string
		var tokens []string
		for range 3 {
			s := w.LoginAs(t, "ada@example.com")
			ids, tokens = append(ids, s.SessionID), append(tokens, s.AccessToken)
		}
		w.Fired()
		w.Do("POST", "/logout?scope="+string(scope), nil, harness.Bearer(tokens[0])).Want(204)
		w.Mu.Lock()
		if len(w.Events) != 1 {
			t.Fatalf("%s: events %+v", scope, w.Events)
		}
		e := w.Events[0]
		w.Mu.Unlock()
		var ended []string
		for _, i := range want {
			ended = append(ended, ids[i])
		}
		slices.Sort(ended)
		if e.Type != auth.EventSessionsEnded || !slices.Equal(e.SessionIDs, ended) || e.Actor.SessionID != ids[0] {
			t.Errorf("%s: %+v, want %v", scope, e, ended)
		}
		w.Do("POST", "/logout?scope="+string(scope), nil, harness.Bearer(tokens[2]))
	}
}
