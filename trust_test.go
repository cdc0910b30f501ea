package auth_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

const trustFor = 30 * 24 * time.Hour

func trustsDevices() auth.Option { return auth.WithMFA(auth.MFAOptions{TrustDevices: trustFor}) }

// trustWorld has Ada with a second factor, and her laptop trusted.
func trustWorld(t *testing.T, opts ...auth.Option) (*world, session, enrolled) {
	t.Helper()
	w, _, s := deviceWorld(t, append([]auth.Option{trustsDevices()}, opts...)...)
	e := w.enrol(s.AccessToken)
	return w, w.trust(e), e
}

// trust signs Ada in on her laptop, and has that trusted.
func (w *world) trust(e enrolled, edit ...func(map[string]any)) session {
	w.t.Helper()
	w.Clock.Advance(time.Minute)
	body := credentials(adas, goodPassword)
	body["totp_code"], body["trust_device"] = w.code(e.secret, 0), true
	for _, f := range edit {
		f(body)
	}
	return w.do("POST", "/login", body, onDevice(laptop)).session()
}

// passes tells whether Ada's password alone signs in on a device.
func (w *world) passes(h ...header) bool {
	w.t.Helper()
	a := w.do("POST", "/login", credentials(adas, goodPassword), h...)
	if a.status != http.StatusOK {
		a.want(403, auth.CodeMFARequired)
	}
	return a.status == http.StatusOK
}

// Whichever way leads in, a trusted device stands in for the second factor, and no
// other one does. The ways come from the route table.
func TestTrustedDeviceAtEveryDoor(t *testing.T) {
	for pattern, prepare := range signInDoors() {
		if prepare == nil || strings.Contains(pattern, "/2fa/") { // no account yet; the second factor itself
			continue
		}
		for name, device := range map[string]string{"hers": laptop, "another": mobile, "none": ""} {
			t.Run(pattern+" on "+name, func(t *testing.T) {
				t.Parallel()
				w, idp, s := deviceWorld(t, trustsDevices())
				s = w.trust(w.enrol(s.AccessToken))
				open := prepare(w, idp, s)
				var h []header
				if device != "" {
					h = append(h, onDevice(device))
				}
				a := open(h...)
				if name != "hers" {
					a.want(403, auth.CodeMFARequired)
					return
				}
				got := a.session()
				claims, err := w.Verify(got.AccessToken)
				if err != nil || claims.AAL != store.LevelAAL1 || len(claims.AMR) != 1 || claims.AMR[0].Method == "totp" {
					t.Errorf("claims %+v, %v", claims, err)
				}
			})
		}
	}
}

// A device is trusted with a right code of the app, at every door that takes one,
// if the client says which device it is and the option is on; by nothing else.
func TestTrustIsSaid(t *testing.T) {
	verify := func(edit func(w *world, e enrolled, body map[string]any), device ...header) func(*world, enrolled) {
		return func(w *world, e enrolled) {
			body := map[string]any{"mfa_token": w.mfaTokenOf(auth.CodeMFARequired), "totp_code": w.code(e.secret, 0), "trust_device": true}
			if edit != nil {
				edit(w, e, body)
			}
			w.do("POST", "/2fa/verify", body, device...)
		}
	}
	on := onDevice(laptop)
	for name, c := range map[string]struct {
		say  func(*world, enrolled)
		want bool
	}{
		"2fa/verify": {verify(nil, on), true},
		"login":      {func(w *world, e enrolled) { w.trust(e) }, true},
		"otp/verify": {func(w *world, e enrolled) {
			code := w.phoneCode(number)
			w.do("POST", "/otp/verify", map[string]any{"phone": number, "otp": code, "totp_code": w.code(e.secret, 0), "trust_device": true}, on).want(200)
		}, true},
		"not asked for":  {verify(func(_ *world, _ enrolled, b map[string]any) { delete(b, "trust_device") }, on), false},
		"declined":       {verify(func(_ *world, _ enrolled, b map[string]any) { b["trust_device"] = false }, on), false},
		"no device":      {verify(nil), false},
		"a short device": {verify(nil, onDevice(laptop[:15])), false},
		"another device": {verify(nil, onDevice(mobile)), false},
		"a wrong code":   {verify(func(w *world, e enrolled, b map[string]any) { b["totp_code"] = other(w.code(e.secret, 0)) }, on), false},
		"a recovery code": {verify(func(_ *world, e enrolled, b map[string]any) {
			delete(b, "totp_code")
			b["recovery_code"] = e.recovery[0]
		}, on), false},
		"without a factor": {func(w *world, _ enrolled) { w.passes(on) }, false},
		"a step-up": {func(w *world, e enrolled) {
			tokens := w.trust(e, func(b map[string]any) { delete(b, "trust_device") })
			w.Clock.Advance(time.Minute)
			w.do("POST", "/2fa/verify", map[string]any{"totp_code": w.code(e.secret, 0), "trust_device": true}, on, bearer(tokens.AccessToken)).want(200)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _, s := deviceWorld(t, trustsDevices())
			e := w.enrol(s.AccessToken)
			c.say(w, e)
			if got := w.passes(on); got != c.want {
				t.Errorf("passes: %v, want %v", got, c.want)
			}
			if w.passes(onDevice("short")) || w.passes() {
				t.Error("a device that is none is trusted")
			}
		})
	}
}

// It is for 30 days and no instant longer, and a sign-in there does not lengthen it.
func TestTrustExpires(t *testing.T) {
	w, _, e := trustWorld(t)
	began := w.Clock.Now()
	w.Clock.Advance(trustFor - time.Microsecond)
	if !w.passes(onDevice(laptop)) {
		t.Error("over too early")
	}
	w.Clock.Advance(began.Add(trustFor).Sub(w.Clock.Now()))
	if w.passes(onDevice(laptop)) {
		t.Error("an instant equal to the end counts")
	}
	w.trust(e)
	if !w.passes(onDevice(laptop)) {
		t.Error("not anew")
	}
}

// Whatever ends trust, ends it.
func TestTrustEnds(t *testing.T) {
	removed := func(w *world, s session) {
		w.do("POST", "/2fa/disable", nil, bearer(s.AccessToken)).want(200)
	}
	for name, end := range map[string]func(w *world, s session){
		"sign out everywhere": func(w *world, s session) { w.do("DELETE", "/sessions", nil, bearer(s.AccessToken)).want(204) },
		"new recovery codes": func(w *world, s session) {
			w.do("POST", "/2fa/recovery-codes", nil, bearer(s.AccessToken)).want(200)
		},
		"a factor that is replaced": func(w *world, s session) {
			removed(w, s)
			if !w.passes(onDevice(laptop)) || !w.passes() {
				w.t.Error("without a factor none is asked for")
			}
			w.enrol(s.AccessToken)
		},
		"a password": func(w *world, s session) {
			w.do("POST", "/me/password", map[string]any{"current_password": goodPassword, "new_password": "another " + goodPassword}, bearer(s.AccessToken)).want(200)
			w.do("POST", "/me/password", map[string]any{"current_password": "another " + goodPassword, "new_password": goodPassword}, bearer(s.AccessToken)).want(200)
		},
		"a reset": func(w *world, _ session) {
			w.do("POST", "/forgot-password", map[string]any{"email": adas}).want(200)
			w.do("POST", "/reset-password", map[string]any{"token": w.linkToken(adas, auth.KindResetPassword), "new_password": goodPassword + "!"}).want(200)
			w.do("POST", "/login", credentials(adas, goodPassword+"!"), onDevice(laptop)).want(403, auth.CodeMFARequired)
		},
		"a ban": func(w *world, s session) {
			until := w.Clock.Now().Add(time.Minute)
			w.patch(s.User.ID, store.UserPatch{BannedUntil: &until})
			w.Clock.Advance(time.Minute)
		},
		"roles": func(w *world, s session) { w.patch(s.User.ID, store.UserPatch{Roles: &[]string{"editor"}}) },
		"an identity": func(w *world, s session) {
			w.patch(s.User.ID, store.UserPatch{Unlink: &store.UserKey{Provider: "google", Subject: ada.Subject}})
		},
		"devices are forgotten": func(w *world, s session) { w.patch(s.User.ID, store.UserPatch{DropDevices: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, s, _ := trustWorld(t)
			end(w, s)
			if name != "a reset" && w.passes(onDevice(laptop)) {
				t.Error("still trusted")
			}
		})
	}
	t.Run("a name leaves it", func(t *testing.T) {
		w, s, _ := trustWorld(t)
		w.do("PATCH", "/me", map[string]any{"full_name": "Ada L."}, bearer(s.AccessToken)).want(200)
		if !w.passes(onDevice(laptop)) {
			t.Error("over")
		}
	})
}

// What somebody else trusts, and a device without the first factor, is worth nothing.
func TestTrustIsTheUsersOwn(t *testing.T) {
	w, _, _ := trustWorld(t)
	eve := w.do("POST", "/signup", credentials("eve@example.com", goodPassword), onDevice(laptop)).session()
	w.enrol(eve.AccessToken)
	w.do("POST", "/login", credentials("eve@example.com", goodPassword), onDevice(laptop)).want(403, auth.CodeMFARequired)
	w.do("POST", "/login", credentials(adas, "not "+goodPassword), onDevice(laptop)).want(401, auth.CodeInvalidCredentials)
}

// A session that began so is of one factor: what asks for the second asks here, too.
func TestTrustedSessionHasOneFactor(t *testing.T) {
	w, s, e := trustWorld(t)
	w.patch(s.User.ID, store.UserPatch{AppMetadata: map[string]any{"mfa_required": true}}) // it is set up, and not to be shown each time
	w.fired()
	one := w.do("POST", "/login", credentials(adas, goodPassword), onDevice(laptop)).session()
	w.mu.Lock()
	signedIn := slices.ContainsFunc(w.events, func(e auth.Event) bool { return e.Type == auth.EventSignedIn && e.Reason == "trusted_device" })
	w.mu.Unlock()
	if !signedIn {
		t.Error("the event does not say so")
	}
	w.patch(s.User.ID, store.UserPatch{AppMetadata: map[string]any{}})
	w.do("POST", "/2fa/disable", nil, bearer(one.AccessToken)).want(403, auth.CodeReauthNeeded)
	w.do("POST", "/2fa/recovery-codes", nil, bearer(one.AccessToken)).want(403, auth.CodeInsufficientAAL)
	guarded := w.Require(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }), auth.AAL2())
	w.doOn(guarded, "GET", "/", nil, bearer(one.AccessToken)).want(403, auth.CodeInsufficientAAL)
	w.Clock.Advance(time.Minute)
	raised := w.do("POST", "/2fa/verify", map[string]any{"totp_code": w.code(e.secret, 0)}, bearer(one.AccessToken)).session()
	w.doOn(guarded, "GET", "/", nil, bearer(raised.AccessToken)).want(204)
}

// Switched off, nothing is trusted, whatever was before, and the field is ignored.
func TestTrustIsOffByDefault(t *testing.T) {
	w, _, s := deviceWorld(t)
	e := w.enrol(s.AccessToken)
	s = w.trust(e)
	c := store.CreateSession{Change: w.byTest(), TrustUntil: w.Clock.Now().Add(time.Hour)}
	c.Session = auth.Session{ID: auth.NewID(w.Auth), UserID: s.User.ID, AAL: store.LevelAAL2, CreatedAt: c.Now, LastActiveAt: c.Now, RotatedAt: c.Now, IdleUntil: c.TrustUntil, Device: w.deviceOf(s.User.ID)}
	if w.passes(onDevice(laptop)) {
		t.Error("trusted by a field")
	}
	if _, err := w.Store.CreateSession(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if w.passes(onDevice(laptop)) {
		t.Error("trusted from before")
	}
}

// Sign-ins at once with the end of trust never leave a session that lacks a factor.
func TestTrustEndsInFlight(t *testing.T) {
	w, s, _ := trustWorld(t, auth.WithRateLimits(auth.RateLimits{SignInsPerAccount: noLimit}))
	done := make(chan int, 2)
	for range 2 {
		go func() { done <- w.do("POST", "/login", credentials(adas, goodPassword), onDevice(laptop)).status }()
	}
	w.do("DELETE", "/sessions", nil, bearer(s.AccessToken)).want(204)
	for range 2 {
		if got := <-done; got != 200 && got != 403 {
			t.Errorf("status %d", got)
		}
	}
	if w.passes(onDevice(laptop)) {
		t.Error("still trusted")
	}
}

func TestNewRefusesTrustForLong(t *testing.T) {
	for _, d := range []time.Duration{-1, store.MaxTrust + 1} {
		if got := refused(t, auth.WithMFA(auth.MFAOptions{TrustDevices: d})); !strings.Contains(got, "WithMFA: TrustDevices") {
			t.Errorf("%v: %q", d, got)
		}
	}
}
