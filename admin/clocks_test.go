package admin_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/testsecret"
)

// clockOffice is an office whose clock is ahead of the machine's, with its log. Offices of
// one store are instances of one service.
type clockOffice struct {
	*office
	log *lines
}

func newClockOffice(t *testing.T, store auth.Store, ahead time.Duration, opts ...auth.Option) clockOffice {
	t.Helper()
	log := &lines{}
	return clockOffice{newOfficeWith(t, store, admin.Options{RequireMFA: auth.Off}, append(opts,
		auth.WithSecret(testsecret.Of("clocks")), auth.WithLogger(slog.New(slog.NewTextHandler(log, nil))),
		auth.WithClock(func() time.Time { return time.Now().Add(ahead) }))...), log}
}

// operator signs a user in.
func (o clockOffice) operator(email string) *authtest.SignedIn {
	o.t.Helper()
	return o.LoginAs(o.t, email, authtest.Roles(auth.RoleOwner))
}

// clocks returns the warnings about clocks, which the overview and the diagnostics agree on,
// as "other clock, seconds".
func (o clockOffice) clocks(as *authtest.SignedIn) (list []string) {
	o.t.Helper()
	host, err := os.Hostname()
	if err != nil {
		o.t.Fatal(err)
	}
	rows, _ := o.do(as, "GET /diagnostics", "").want(200).body["clocks"].([]any)
	for _, row := range rows {
		d := row.(map[string]any)
		here, errHere := time.Parse(time.RFC3339, d["here"].(string))
		there, errThere := time.Parse(time.RFC3339, d["there"].(string))
		by := d["ahead_by"].(float64)
		if d["instance"] != host || errHere != nil || errThere != nil || there.Sub(here).Seconds()-by > 0.01 || there.Sub(here).Seconds()-by < -0.01 {
			o.t.Errorf("difference %v", d)
		}
		list = append(list, fmt.Sprintf("%v %.0f", d["with"], by/10)) // in tens of seconds, because the machine may be slow
	}
	overview := o.do(as, "GET /overview", "").want(200)
	warned := 0
	for _, row := range overview.body["warnings"].([]any) {
		if w := row.(map[string]any); w["code"] == "clocks_differ" {
			clocks, _ := w["clocks"].([]any)
			warned = len(clocks)
			if w["count"] != float64(warned) {
				o.t.Errorf("warning %v", w)
			}
		}
	}
	if warned != len(list) {
		o.t.Errorf("the overview warns of %d clocks, the diagnostics of %v", warned, list)
	}
	return list
}

// protected returns the status of a route of the application.
func (o clockOffice) protected(as *authtest.SignedIn) int {
	o.t.Helper()
	r := httptest.NewRequestWithContext(o.t.Context(), http.MethodGet, "/notes", nil)
	as.Sign(r)
	w := httptest.NewRecorder()
	o.Require(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
	return w.Code
}

func (o clockOffice) complaints() int {
	return strings.Count(o.log.String(), "access tokens are refused because the clocks")
}

// An instance whose clock is behind refuses the tokens of the others. It logs that once, with
// both clocks, and warns its operators.
func TestClockBehindIsLoggedOnce(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		_, onPostgres := store.(interface{ Migrate(context.Context) error })
		right := newClockOffice(t, store, 0)
		behind := newClockOffice(t, store, -3*time.Minute, right.SameKeys())
		ada := right.operator("ada@example.com")
		for range 3 {
			if got := behind.protected(ada); got != 401 {
				t.Fatalf("status %d", got)
			}
			behind.do(ada, "GET /overview", "").want(401, auth.CodeBadToken)
		}
		log := behind.log.String()
		if behind.complaints() != 1 || !strings.Contains(log, "here=") || !strings.Contains(log, "issuer=") || !strings.Contains(log, "difference=3m0s") && !strings.Contains(log, "difference=2m59s") {
			t.Errorf("log %s", log)
		}
		if strings.Contains(log, ada.AccessToken) || strings.Contains(log, strings.Split(ada.AccessToken, ".")[1]) {
			t.Error("the log has the token")
		}
		want := "[token 18]"
		if onPostgres {
			want = "[store 18 token 18]"
		}
		if got := fmt.Sprint(behind.clocks(behind.operator("bob@example.com"))); got != want {
			t.Errorf("clocks %s, want %s", got, want)
		}
		if got := right.clocks(ada); len(got) > 0 || right.complaints() > 0 {
			t.Errorf("the other instance has %v", got)
		}
	})
}

// A token seems to have expired at an instance whose clock is ahead. The store's clock
// explains it. A token that has expired by that clock, too, is no reason to complain.
func TestClockAheadIsLogged(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		_, onPostgres := store.(interface{ Migrate(context.Context) error })
		right := newClockOffice(t, store, 0)
		ahead := newClockOffice(t, store, 20*time.Minute, right.SameKeys())
		old := newClockOffice(t, store, -17*time.Minute, right.SameKeys()).operator("old@example.com")
		fresh, root := right.operator("ada@example.com"), ahead.operator("bob@example.com")
		want := map[bool]string{false: "[]", true: "[store -120]"}[onPostgres]
		if got := fmt.Sprint(ahead.clocks(root)); got != want {
			t.Errorf("clocks %s, want %s", got, want)
		}
		if got := ahead.protected(old); got != 401 || ahead.complaints() > 0 {
			t.Errorf("an expired token: %d, log %s", got, ahead.log)
		}
		if got := right.protected(old); got != 401 || right.complaints() > 0 {
			t.Errorf("an expired token where the clock is right: %d, log %s", got, right.log)
		}
		if got := ahead.protected(fresh); got != 401 || onPostgres != (ahead.complaints() == 1) {
			t.Errorf("a fresh token: %d, log %s", got, ahead.log)
		}
		want = map[bool]string{false: "[]", true: "[store -120 token -120]"}[onPostgres]
		if got := fmt.Sprint(ahead.clocks(root)); got != want {
			t.Errorf("clocks %s, want %s", got, want)
		}
	})
}

// Clocks that differ by a few seconds are usual.
func TestSmallClockDifference(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		right := newClockOffice(t, store, 0)
		for i, by := range []time.Duration{-4 * time.Second, 4 * time.Second} {
			near := newClockOffice(t, store, by, right.SameKeys())
			ada := right.operator(fmt.Sprintf("ada%d@example.com", i))
			bob := near.operator(fmt.Sprintf("bob%d@example.com", i))
			for who, at := range map[*authtest.SignedIn]clockOffice{ada: near, bob: right} {
				if got := at.protected(who); got != 200 {
					t.Errorf("%v: status %d", by, got)
				}
				if got := at.clocks(who); len(got) > 0 || at.complaints() > 0 {
					t.Errorf("%v: %v, log %s", by, got, at.log)
				}
			}
		}
	})
}

// The limit is five seconds: 7 s are reported where the store has a clock. Tokens are valid
// until their leeway of 30 s, and no token is to blame.
func TestClockDifferenceFromTheStore(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		_, onPostgres := store.(interface{ Migrate(context.Context) error })
		right, off := newClockOffice(t, store, 0), (clockOffice{})
		for i, by := range []time.Duration{-7 * time.Second, 7 * time.Second} {
			off = newClockOffice(t, store, by, right.SameKeys())
			ada := right.operator(fmt.Sprintf("ada%d@example.com", i))
			want := "[]"
			if onPostgres {
				want = fmt.Sprintf("[store %.0f]", -by.Seconds()/10)
			}
			if got := fmt.Sprint(off.clocks(ada)); got != want || off.complaints() > 0 {
				t.Errorf("%v: clocks %s, want %s", by, got, want)
			}
		}
	})
}
