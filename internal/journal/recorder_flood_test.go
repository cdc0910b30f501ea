package journal

import (
	"strconv"
	"testing"
	"time"

	"github.com/authmount/auth/store"
)

// At most maxDeniedActors actors have separate limits in one minute. Further actors share
// one limit; earlier actors keep their own.
func TestFurtherActorsShareOneLimit(t *testing.T) {
	r, _, _, _ := newTestRecorder()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	denied := func(who string, at time.Time) bool {
		return r.exceedsDenied(store.Event{Type: store.EventAdminDenied, At: at, Actor: store.Actor{ID: who}})
	}
	for i := range maxDeniedActors {
		if denied(strconv.Itoa(i), now) {
			t.Fatalf("actor %d has no place", i)
		}
	}
	for i := range 2 * maxDeniedPerMinute {
		if got, want := denied("new "+strconv.Itoa(i), now), i >= maxDeniedPerMinute; got != want {
			t.Fatalf("attempt %d of those who came late: floods %t", i, got)
		}
	}
	if n := len(r.denied); n > maxDeniedActors+1 {
		t.Errorf("%d are told apart", n)
	}
	for i := 1; i <= maxDeniedPerMinute; i++ {
		if got, want := denied("7", now), i == maxDeniedPerMinute; got != want {
			t.Fatalf("attempt %d of one who was there: floods %t", i+1, got)
		}
	}
	if r.exceedsDenied(store.Event{Type: store.EventSignInFailed, At: now, Actor: store.Actor{ID: "7"}}) {
		t.Error("it floods what is no denial")
	}
	for _, who := range []string{"7", "new 1", "another"} {
		if denied(who, now.Add(time.Minute)) {
			t.Errorf("%s has no place a minute later", who)
		}
	}
	if n := len(r.denied); n != 3 {
		t.Errorf("%d are told apart a minute later", n)
	}
}
