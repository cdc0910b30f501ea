package takeover_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// Instances with clocks that differ by five minutes agree on the changes before and after a
// session: the owner's additions have later times than the thief's session, and the thief's
// have earlier ones.
func TestRecoveryWithClocksThatDiffer(t *testing.T) {
	const skew = 5 * time.Minute
	w := harness.NewWorld(t, harness.SendsAtOnce, auth.WithRateLimits(auth.RateLimits{Off: true}))
	id := w.Account("ada@example.com", harness.GoodPassword).ID
	w.Clock.Advance(time.Hour)
	link := func(provider string) {
		now := w.Clock.Now()
		w.Patch(id, store.UserPatch{Link: &auth.Identity{ID: uuid.NewString(), Provider: provider, Subject: "1", CreatedAt: now, LastSignInAt: now}})
	}
	w.Clock.Advance(skew) // an instance that is ahead
	verified := w.Clock.Now()
	w.Patch(id, store.UserPatch{EmailVerifiedAt: &verified})
	link("google")
	w.Clock.Advance(-skew)
	thief := w.SignInAgain("ada@example.com")
	w.Clock.Advance(-skew) // an instance that is behind
	link("github")
	later := w.SignInAgain("ada@example.com")
	w.Clock.Advance(skew) // tokens from the future are refused
	w.ChangeEmailTo(thief, "ada@example.com", "thief@example.com")
	notice := w.StopToken("ada@example.com", auth.KindEmailChanged)
	w.Do("POST", "/secure-account", map[string]any{"token": notice}).Want(200)
	u, err := w.Store.User(t.Context(), store.ByID(id))
	if err != nil {
		t.Fatal(err)
	}
	if u.Email != "ada@example.com" {
		t.Errorf("the account's email address is %q", u.Email)
	}
	if len(u.Identities) != 1 || u.Identities[0].Provider != "google" {
		t.Errorf("identities: %+v, want the owner's alone", u.Identities)
	}
	for name, s := range map[string]harness.Session{"thief's": thief, "later": later} {
		if w.Alive(s.AccessToken) {
			t.Errorf("the %s session is live", name)
		}
	}
}

// A notice about a new device ends the sessions from that one on and keeps the earlier ones,
// regardless of their times.
func TestNoticeWithClocksThatDiffer(t *testing.T) {
	const skew = 5 * time.Minute
	w, _, _ := harness.NewDeviceWorld(t, auth.WithRateLimits(auth.RateLimits{Off: true}))
	w.Clock.Advance(time.Hour + skew)
	earlier := w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.OnDevice(harness.Laptop)).Session()
	w.Clock.Advance(-skew)
	w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.OnDevice(harness.Mobile)).Session()
	notice := w.StopToken(harness.AdaMail, auth.KindNewDevice)
	w.Clock.Advance(-skew)
	later := w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.OnDevice(harness.Mobile)).Session()
	w.Clock.Advance(skew)
	w.Do("POST", "/secure-account", map[string]any{"token": notice}).Want(200)
	w.Clock.Advance(skew)
	if !w.Alive(earlier.AccessToken) || w.Alive(later.AccessToken) {
		t.Errorf("the earlier session is live: %v, the later one: %v", w.Alive(earlier.AccessToken), w.Alive(later.AccessToken))
	}
}

// An instance whose clock is behind does not refuse refreshes because another instance has
// counted some, and both together allow no more than one.
func TestRefreshesWithClocksThatDiffer(t *testing.T) {
	const skew = 5 * time.Minute
	w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{RefreshPerSession: auth.Rate{Burst: 6, Per: time.Minute}}))
	token := w.Member("ada@example.com").RefreshToken
	refresh := func() *harness.Answer {
		a := w.PostRefresh(token)
		if a.Status == 200 {
			token = a.Session().RefreshToken
		}
		return a
	}
	for range 2 {
		w.Clock.Advance(skew)
		refresh().Want(200)
		w.Clock.Advance(-skew)
		for range 2 {
			refresh().Want(200)
		}
	}
	refresh().Want(429, auth.CodeRateLimited)
	w.Clock.Advance(skew)
	refresh().Want(429, auth.CodeRateLimited)
	w.Clock.Advance(time.Minute)
	refresh().Want(200)
}
