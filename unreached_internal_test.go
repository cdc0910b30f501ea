package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// Whatever did not draw from the limits makes no account and sends nothing that somebody
// asked for.
func TestNothingComesOfWhatDrewNoLimits(t *testing.T) {
	var log bytes.Buffer
	a := guesser(t)
	a.cfg.log = slog.New(slog.NewTextHandler(&log, nil))
	var failed []Event
	a.cfg.hooks = []Hooks{{OnEvent: func(_ context.Context, e Event) { failed = append(failed, e) }}}
	o := outbox.Outgoing{Kind: KindResetPassword, To: "ada@example.com"}
	for name, permit := range map[string]sendPermit{"none": {}, "of another kind": permitFor(KindMagicLink, o.To), "to another": permitFor(o.Kind, "eve@example.com")} {
		log.Reset()
		failed = nil
		if o.Permit = permit; a.maySend(t.Context(), o, User{ID: "ada"}) {
			t.Errorf("%s: sent", name)
		}
		if len(failed) != 1 || failed[0].Type != EventMessageFailed || failed[0].UserID != "ada" || failed[0].Message != KindResetPassword || log.Len() == 0 {
			t.Errorf("%s: told %+v, %s", name, failed, log.String())
		}
	}
	if o.Permit = permitFor(o.Kind, o.To); !a.maySend(t.Context(), o, User{}) {
		t.Error("not sent with its permit")
	}
	defer func() {
		if recover() == nil {
			t.Error("an account without a permit")
		}
	}()
	a.newUser(accountPermit{}, User{ID: "ada"})
}

// A guess for which nobody waits any more is neither let through nor refused as one too
// many, wherever it waits; one that waits for others is judged once those are over.
func TestGuessesThatNobodyWaitsFor(t *testing.T) {
	draws := func(a *Auth) []guessDraw { return []guessDraw{a.guessDraw(Rate{Burst: 3, Per: time.Hour}, "x", "ada")} }
	t.Run("for its turn", func(t *testing.T) {
		a := guesser(t)
		at := a.pending.join("ada")
		at.turn <- struct{}{}
		request, leave := context.WithCancel(t.Context())
		leave()
		if d, others, err := a.drawInTurn(request, t.Context(), at, []store.Draw{draws(a)[0].Draw}); !errors.Is(err, CodeUnavailable) || d.Allowed || others != nil {
			t.Errorf("%+v, %v", d, err)
		}
	})
	for name, gone := range map[string]bool{"for others": true, "until others end": false} {
		t.Run(name, func(t *testing.T) {
			a := guesser(t)
			all := draws(a)
			about, tries := all[0].Key, 0
			a.pending.drew(a.pending.join(about)) // the other one
			request, leave := context.WithCancel(t.Context())
			defer leave()
			a.store = &drawing{take: func(draws []store.Draw) (store.Decision, error) {
				if tries++; tries > 1 {
					return store.Decision{Allowed: true, Remaining: make([]int, len(draws))}, nil
				}
				if gone {
					leave()
				} else {
					a.pending.leave(about, true)
				}
				return store.Decision{Remaining: make([]int, len(draws)), RetryAfter: time.Minute}, nil
			}}
			d, end, err := a.drawAttempt(request, t.Context(), all)
			end()
			switch {
			case gone && (!errors.Is(err, CodeUnavailable) || d.Allowed || tries != 1):
				t.Errorf("%+v, %v, %d tries", d, err, tries)
			case !gone && (err != nil || !d.Allowed || tries != 2 || len(a.pending.of) != 0):
				t.Errorf("%+v, %v, %d tries, pending %v", d, err, tries, a.pending.of)
			}
		})
	}
}

// Whoever does not wait for the keys that another reads learns of none.
func TestKeysThatNobodyWaitsFor(t *testing.T) {
	keys := &publicKeys{reading: make(chan struct{}, 1)}
	keys.reading <- struct{}{}
	a := &Auth{publicKeys: keys}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if k, err := a.storedKeys(gone); !errors.Is(err, context.Canceled) || k != nil {
		t.Errorf("%+v, %v", k, err)
	}
}

// An export that cannot be written to its end is no whole one: the caller is told, and a
// browser sees that its download broke off.
func TestExportsThatBreakOff(t *testing.T) {
	number := map[string]any{"x": math.Inf(1)} // which no JSON has
	page := make([]Event, exportPage)
	for name, e := range map[string]*Export{
		"in the account": {User: User{ID: "ada", UserMetadata: number}},
		"in an event":    {User: User{ID: "ada"}, first: []Event{{ID: "e", Record: &store.Record{Changes: map[string]store.FieldChange{"x": {After: number}}}}}},
		"between pages":  {User: User{ID: "ada"}, first: page, events: func(context.Context, *Event) ([]Event, error) { return nil, errors.New("away") }},
	} {
		var out bytes.Buffer
		if err := e.Write(t.Context(), &out); err == nil || json.Valid(out.Bytes()) {
			t.Errorf("%s: %v, %d bytes", name, err, out.Len())
		}
		var log bytes.Buffer
		a := &Auth{cfg: config{log: slog.New(slog.NewTextHandler(&log, nil))}}
		func() {
			defer func() {
				if v := recover(); v != http.ErrAbortHandler { //nolint:errorlint // the very value
					t.Errorf("%s: ends with %v", name, v)
				}
			}()
			t.Error(a.writeExport(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/me/export", http.NoBody), e))
		}()
		if log.Len() == 0 {
			t.Errorf("%s: the log does not say", name)
		}
	}
}

// An export tells when messages that wait were written and until when they are kept.
func TestExportsTellOfMessages(t *testing.T) {
	at := time.Unix(1767323045, 0).UTC()
	e := &Export{Held: Held{Messages: []store.HeldMessage{{CreatedAt: at, ExpiresAt: at.Add(time.Hour)}}}}
	if got := e.view().Messages; len(got) != 1 || got[0] != (heldOnlyView{at, at.Add(time.Hour)}) {
		t.Errorf("%+v", got)
	}
}

// What cannot be told in JSON, or has no code of its own, is an error of ours.
func TestWhatHasNoWordsIsOurs(t *testing.T) {
	w := httptest.NewRecorder()
	if err := writeJSON(w, http.StatusOK, math.NaN()); !errors.Is(err, CodeInternal) || w.Body.Len() > 0 {
		t.Errorf("%v, %s", err, w.Body)
	}
	if q := errorQuery(errors.New("away")); q.Get("error") != "server_error" || q.Get("error_code") != string(CodeInternal) {
		t.Errorf("%v", q)
	}
}

// Http is for the developer's own machine, at any port.
func TestOriginsThatSettingsMayName(t *testing.T) {
	for o, want := range map[string]bool{
		"https://app.test": true, "https://app.test:8443": true, "http://localhost": true, "http://localhost:3000": true, "http://127.0.0.1:3000": true, "http://[::1]:3000": true,
		"http://app.test": false, "HTTPS://app.test": false, "http://app.test:3000": false, "http://localhost.evil.test:3000": false, "*": false, "ftp://localhost:21": false, "https://app.test?x": false,
	} {
		if err := checkStoredOrigin(o); (err == nil) != want {
			t.Errorf("%s: %v", o, err)
		}
	}
}
