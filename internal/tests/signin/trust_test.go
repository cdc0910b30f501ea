package signin_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// trustWorld has Ada with a second factor, and her laptop trusted.
func trustWorld(t *testing.T, opts ...auth.Option) (*harness.World, harness.Session, harness.Enrolled) {
	t.Helper()
	w, _, s := harness.NewDeviceWorld(t, append([]auth.Option{harness.TrustsDevices()}, opts...)...)
	e := w.Enrol(s.AccessToken)
	return w, w.Trust(e), e
}

// With every sign-in method, a trusted device replaces the second factor, and no other
// device does. The methods come from the route table.
func TestTrustedDeviceAtEveryDoor(t *testing.T) {
	for pattern, prepare := range harness.SignInEndpoints() {
		if prepare == nil || strings.Contains(pattern, "/2fa/") || strings.Contains(pattern, "/passkeys") { // no account yet; the second factor itself
			continue
		}
		for name, device := range map[string]string{"hers": harness.Laptop, "another": harness.Mobile, "none": ""} {
			t.Run(pattern+" on "+name, func(t *testing.T) {
				t.Parallel()
				w, idp, s := harness.NewDeviceWorld(t, harness.TrustsDevices())
				s = w.Trust(w.Enrol(s.AccessToken))
				open := prepare(w, idp, s)
				var h []harness.Header
				if device != "" {
					h = append(h, harness.OnDevice(device))
				}
				a := open(h...)
				if name != "hers" {
					a.Want(403, auth.CodeMFARequired)
					return
				}
				got := a.Session()
				claims, err := w.Verify(got.AccessToken)
				if err != nil || claims.AAL != store.LevelAAL1 || len(claims.AMR) != 1 || claims.AMR[0].Method == "totp" {
					t.Errorf("claims %+v, %v", claims, err)
				}
			})
		}
	}
}

// A right code of the app makes a device trusted, at every endpoint that takes one, if the
// client names the device and the option is on. Nothing else does.
func TestTrustIsSaid(t *testing.T) {
	verify := func(edit func(w *harness.World, e harness.Enrolled, body map[string]any), device ...harness.Header) func(*harness.World, harness.Enrolled) {
		return func(w *harness.World, e harness.Enrolled) {
			body := map[string]any{"mfa_token": w.MFATokenOf(auth.CodeMFARequired), "totp_code": w.Code(e.Secret, 0), "trust_device": true}
			if edit != nil {
				edit(w, e, body)
			}
			w.Do("POST", "/2fa/verify", body, device...)
		}
	}
	on := harness.OnDevice(harness.Laptop)
	for name, c := range map[string]struct {
		say  func(*harness.World, harness.Enrolled)
		want bool
	}{
		"2fa/verify": {verify(nil, on), true},
		"login":      {func(w *harness.World, e harness.Enrolled) { w.Trust(e) }, true},
		"otp/verify": {func(w *harness.World, e harness.Enrolled) {
			code := w.PhoneCode(harness.PhoneNumber)
			w.Do("POST", "/otp/verify", map[string]any{"phone": harness.PhoneNumber, "otp": code, "totp_code": w.Code(e.Secret, 0), "trust_device": true}, on).Want(200)
		}, true},
		"not asked for":  {verify(func(_ *harness.World, _ harness.Enrolled, b map[string]any) { delete(b, "trust_device") }, on), false},
		"declined":       {verify(func(_ *harness.World, _ harness.Enrolled, b map[string]any) { b["trust_device"] = false }, on), false},
		"no device":      {verify(nil), false},
		"a short device": {verify(nil, harness.OnDevice(harness.Laptop[:15])), false},
		"another device": {verify(nil, harness.OnDevice(harness.Mobile)), false},
		"a wrong code": {verify(func(w *harness.World, e harness.Enrolled, b map[string]any) {
			b["totp_code"] = harness.OtherNumber(w.Code(e.Secret, 0))
		}, on), false},
		"a recovery code": {verify(func(_ *harness.World, e harness.Enrolled, b map[string]any) {
			delete(b, "totp_code")
			b["recovery_code"] = e.Recovery[0]
		}, on), false},
		"without a factor": {func(w *harness.World, _ harness.Enrolled) { w.Passes(on) }, false},
		"a step-up": {func(w *harness.World, e harness.Enrolled) {
			tokens := w.Trust(e, func(b map[string]any) { delete(b, "trust_device") })
			w.Clock.Advance(time.Minute)
			w.Do("POST", "/2fa/verify", map[string]any{"totp_code": w.Code(e.Secret, 0), "trust_device": true}, on, harness.Bearer(tokens.AccessToken)).Want(200)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, s := harness.NewDeviceWorld(t, harness.TrustsDevices())
			e := w.Enrol(s.AccessToken)
			c.say(w, e)
			if got := w.Passes(on); got != c.want {
				t.Errorf("passes: %v, want %v", got, c.want)
			}
			if w.Passes(harness.OnDevice("short")) || w.Passes() {
				t.Error("a device that is none is trusted")
			}
		})
	}
}

// It is for 30 days and no instant longer, and a sign-in there does not lengthen it.
func TestTrustExpires(t *testing.T) {
	w, _, e := trustWorld(t)
	began := w.Clock.Now()
	w.Clock.Advance(harness.TrustFor - time.Microsecond)
	if !w.Passes(harness.OnDevice(harness.Laptop)) {
		t.Error("over too early")
	}
	w.Clock.Advance(began.Add(harness.TrustFor).Sub(w.Clock.Now()))
	if w.Passes(harness.OnDevice(harness.Laptop)) {
		t.Error("an instant equal to the end counts")
	}
	w.Trust(e)
	if !w.Passes(harness.OnDevice(harness.Laptop)) {
		t.Error("not anew")
	}
}

// Every event that must end trust ends it.
func TestTrustEnds(t *testing.T) {
	removed := func(w *harness.World, s harness.Session) {
		w.Do("POST", "/2fa/disable", nil, harness.Bearer(s.AccessToken)).Want(200)
	}
	for name, end := range map[string]func(w *harness.World, s harness.Session){
		"sign out everywhere": func(w *harness.World, s harness.Session) {
			w.Do("DELETE", "/sessions", nil, harness.Bearer(s.AccessToken)).Want(204)
		},
		"new recovery codes": func(w *harness.World, s harness.Session) {
			w.Do("POST", "/2fa/recovery-codes", nil, harness.Bearer(s.AccessToken)).Want(200)
		},
		"a factor that is replaced": func(w *harness.World, s harness.Session) {
			removed(w, s)
			if !w.Passes(harness.OnDevice(harness.Laptop)) || !w.Passes() {
				w.T.Error("without a factor none is asked for")
			}
			w.Enrol(s.AccessToken)
		},
		"a password": func(w *harness.World, s harness.Session) {
			w.Do("POST", "/me/password", map[string]any{"current_password": harness.GoodPassword, "new_password": "another " + harness.GoodPassword}, harness.Bearer(s.AccessToken)).Want(200)
			w.Do("POST", "/me/password", map[string]any{"current_password": "another " + harness.GoodPassword, "new_password": harness.GoodPassword}, harness.Bearer(s.AccessToken)).Want(200)
		},
		"a reset": func(w *harness.World, _ harness.Session) {
			w.Do("POST", "/forgot-password", map[string]any{"email": harness.AdaMail}).Want(200)
			w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken(harness.AdaMail, auth.KindResetPassword), "new_password": harness.GoodPassword + "!"}).Want(200)
			w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword+"!"), harness.OnDevice(harness.Laptop)).Want(403, auth.CodeMFARequired)
		},
		"a ban": func(w *harness.World, s harness.Session) {
			until := w.Clock.Now().Add(time.Minute)
			w.Patch(s.User.ID, store.UserPatch{BannedUntil: &until})
			w.Clock.Advance(time.Minute)
		},
		"roles": func(w *harness.World, s harness.Session) {
			w.Patch(s.User.ID, store.UserPatch{Roles: &[]string{"editor"}})
		},
		"an identity": func(w *harness.World, s harness.Session) {
			w.Patch(s.User.ID, store.UserPatch{Unlink: &store.UserKey{Provider: "google", Subject: harness.Ada.Subject}})
		},
		"devices are forgotten": func(w *harness.World, s harness.Session) { w.Patch(s.User.ID, store.UserPatch{DropDevices: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s, _ := trustWorld(t)
			end(w, s)
			if name != "a reset" && w.Passes(harness.OnDevice(harness.Laptop)) {
				t.Error("still trusted")
			}
		})
	}
	t.Run("a name leaves it", func(t *testing.T) {
		w, s, _ := trustWorld(t)
		w.Do("PATCH", "/me", map[string]any{"full_name": "Ada L."}, harness.Bearer(s.AccessToken)).Want(200)
		if !w.Passes(harness.OnDevice(harness.Laptop)) {
			t.Error("over")
		}
	})
}

// Another user's trusted device, and a trusted device without the first factor, are refused.
func TestTrustIsTheUsersOwn(t *testing.T) {
	w, _, _ := trustWorld(t)
	eve := w.Do("POST", "/signup", harness.Credentials("eve@example.com", harness.GoodPassword), harness.OnDevice(harness.Laptop)).Session()
	w.Enrol(eve.AccessToken)
	w.Do("POST", "/login", harness.Credentials("eve@example.com", harness.GoodPassword), harness.OnDevice(harness.Laptop)).Want(403, auth.CodeMFARequired)
	w.Do("POST", "/login", harness.Credentials(harness.AdaMail, "not "+harness.GoodPassword), harness.OnDevice(harness.Laptop)).Want(401, auth.CodeInvalidCredentials)
}

// A session from a trusted device has one factor: operations that need the second one refuse it.
func TestTrustedSessionHasOneFactor(t *testing.T) {
	w, s, e := trustWorld(t)
	w.Patch(s.User.ID, store.UserPatch{AppMetadata: map[string]any{"mfa_required": true}}) // it is set up, and need not be shown each time
	w.Fired()
	one := w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.OnDevice(harness.Laptop)).Session()
	w.Mu.Lock()
	signedIn := slices.ContainsFunc(w.Events, func(e auth.Event) bool { return e.Type == auth.EventSignedIn && e.Reason == "trusted_device" })
	w.Mu.Unlock()
	if !signedIn {
		t.Error("the event does not say so")
	}
	w.Patch(s.User.ID, store.UserPatch{AppMetadata: map[string]any{}})
	w.Do("POST", "/2fa/disable", nil, harness.Bearer(one.AccessToken)).Want(403, auth.CodeReauthNeeded)
	w.Do("POST", "/2fa/recovery-codes", nil, harness.Bearer(one.AccessToken)).Want(403, auth.CodeInsufficientAAL)
	guarded := w.Require(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }), auth.AAL2())
	w.DoOn(guarded, "GET", "/", nil, harness.Bearer(one.AccessToken)).Want(403, auth.CodeInsufficientAAL)
	w.Clock.Advance(time.Minute)
	raised := w.Do("POST", "/2fa/verify", map[string]any{"totp_code": w.Code(e.Secret, 0)}, harness.Bearer(one.AccessToken)).Session()
	w.DoOn(guarded, "GET", "/", nil, harness.Bearer(raised.AccessToken)).Want(204)
}

// While the option is off, no device is trusted, not even one from before, and the field is
// ignored.
func TestTrustIsOffByDefault(t *testing.T) {
	w, _, s := harness.NewDeviceWorld(t)
	e := w.Enrol(s.AccessToken)
	s = w.Trust(e)
	c := store.CreateSession{Change: w.ChangeByTest(), NewSession: store.NewSession{TrustUntil: w.Clock.Now().Add(time.Hour)}}
	c.Session = auth.Session{ID: harness.NewID(w.Auth), UserID: s.User.ID, AAL: store.LevelAAL2, CreatedAt: c.Now, LastActiveAt: c.Now, RotatedAt: c.Now, IdleUntil: c.TrustUntil, Device: deviceOf(w, s.User.ID)}
	if w.Passes(harness.OnDevice(harness.Laptop)) {
		t.Error("trusted by a field")
	}
	if _, err := w.Store.CreateSession(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if w.Passes(harness.OnDevice(harness.Laptop)) {
		t.Error("trusted from before")
	}
}

// Sign-ins at once with the end of trust never leave a session that lacks a factor.
func TestTrustEndsInFlight(t *testing.T) {
	w, s, _ := trustWorld(t, auth.WithRateLimits(auth.RateLimits{SignInsPerAccount: harness.NoLimit}))
	done := make(chan int, 2)
	for range 2 {
		go func() {
			done <- w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.OnDevice(harness.Laptop)).Status
		}()
	}
	w.Do("DELETE", "/sessions", nil, harness.Bearer(s.AccessToken)).Want(204)
	for range 2 {
		if got := <-done; got != 200 && got != 403 {
			t.Errorf("status %d", got)
		}
	}
	if w.Passes(harness.OnDevice(harness.Laptop)) {
		t.Error("still trusted")
	}
}

func TestNewRefusesTrustForLong(t *testing.T) {
	for _, d := range []time.Duration{-1, store.MaxTrust + 1} {
		if got := harness.Refusal(t, auth.WithMFA(auth.MFAOptions{TrustDevices: d})); !strings.Contains(got, "WithMFA: TrustDevices") {
			t.Errorf("%v: %q", d, got)
		}
	}
}
