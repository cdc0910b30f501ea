package takeover_test

import (
	"slices"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// A stop ends the sessions that were made since, too: a second one on a device that
// is known by then is told to nobody. Those from before stay.
func TestStopEndsLaterSessions(t *testing.T) {
	w, _, own := harness.NewDeviceWorld(t)
	w.Clock.Advance(time.Minute)
	first := w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.OnDevice(harness.Mobile)).Session()
	token := w.StopToken(harness.AdaMail, auth.KindNewDevice)
	w.Fired()
	second := w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.OnDevice(harness.Mobile)).Session()
	w.Clock.Advance(5 * time.Minute)
	third := w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.OnDevice(harness.Mobile)).Session()
	if slices.Contains(w.Fired(), auth.EventNewDevice) {
		t.Fatal("told")
	}
	w.Do("POST", "/secure-account", map[string]any{"token": token}).Want(200)
	for name, s := range map[string]harness.Session{"first": first, "second": second, "third": third} {
		if w.Alive(s.AccessToken) {
			t.Errorf("the %s session goes on", name)
		}
	}
	if !w.Alive(own.AccessToken) {
		t.Error("the session from before is over")
	}
}

// Whoever signed in with the password does not come back with it after a stop: the
// reset makes another one, and locks nobody out. A session that rests on something
// else leaves the password.
func TestStopEndsThePassword(t *testing.T) {
	const chosen = "the owner's horse battery"
	for name, c := range map[string]struct {
		signIn func(w *harness.World) *harness.Answer
		want   int
	}{
		"password": {func(w *harness.World) *harness.Answer {
			return w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword))
		}, 401},
		"password later": {func(w *harness.World) *harness.Answer {
			token := w.MagicLink(harness.AdaMail, nil)
			a := w.Do("POST", "/magic-link/verify", map[string]any{"token": token}, harness.OnDevice(harness.Mobile))
			w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.OnDevice(harness.Mobile)).Want(200)
			return a
		}, 401},
		"magic link": {func(w *harness.World) *harness.Answer {
			token := w.MagicLink(harness.AdaMail, nil)
			return w.Do("POST", "/magic-link/verify", map[string]any{"token": token})
		}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			w, _, _ := harness.NewDeviceWorld(t)
			w.Clock.Advance(time.Minute)
			c.signIn(w).Want(200)
			token := w.StopToken(harness.AdaMail, auth.KindNewDevice)
			w.Clock.Advance(time.Minute)
			w.Do("POST", "/secure-account", map[string]any{"token": token}).Want(200)
			w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword)).Want(c.want)
			w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken(harness.AdaMail, auth.KindResetPassword), "new_password": chosen}).Want(200)
			w.Do("POST", "/login", harness.Credentials(harness.AdaMail, chosen), harness.OnDevice(harness.Laptop)).Want(200)
		})
	}
}

// The password goes while signing in with one is switched off, too: whoever knows it
// would be back as soon as it is on again.
func TestStopEndsThePasswordWhilePasswordsAreOff(t *testing.T) {
	w, _, _ := harness.NewDeviceWorld(t)
	w.Clock.Advance(time.Minute)
	w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword)).Want(200)
	token := w.StopToken(harness.AdaMail, auth.KindNewDevice)
	off := harness.NewWorldOn(t, w.Store, auth.WithSettings(auth.Settings{Password: auth.Off}))
	off.Clock.Advance(2 * time.Minute)
	off.Do("POST", "/secure-account", map[string]any{"token": token}).Want(200)
	host.Of(off).WaitForMessages(t.Context())
	if slices.ContainsFunc(off.Inbox.Messages(), func(m auth.Message) bool { return m.Kind == auth.KindResetPassword }) {
		t.Error("a link to choose a password was sent, which nobody could use")
	}
	w.Clock.Advance(2 * time.Minute)
	w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword)).Want(401, auth.CodeInvalidCredentials)
}

// A password that the session has set goes with it, whichever way that came in, also one
// that nobody is told of until the session asks for another address: nobody set it but
// whoever is stopped, as far as the reader of the notice can tell.
func TestStopEndsAPasswordSetSince(t *testing.T) {
	const thiefs = "the thief's horse battery"
	byPassword := []string{"POST /login", "POST /2fa/verify", "POST /2fa/verify-and-enable"} // so that there is one
	for pattern, prepare := range harness.SignInEndpoints() {
		if prepare == nil {
			continue
		}
		for name, c := range map[string]struct {
			had, known bool
		}{"changed": {had: true}, "first": {}, "changed on a known device": {had: true, known: true}, "first on a known device": {known: true}} {
			if !c.had && slices.Contains(byPassword, pattern) {
				continue
			}
			t.Run(pattern+" "+name, func(t *testing.T) {
				t.Parallel()
				w, idp, s := harness.NewDeviceWorld(t)
				open := prepare(w, idp, s)
				w.Clock.Advance(time.Second)
				device, kind, body := harness.OnDevice(harness.Mobile), auth.KindNewDevice, map[string]any{"new_password": thiefs}
				if c.known {
					device, kind = harness.OnDevice(harness.Laptop), auth.KindEmailChangeRequested
				}
				if c.had {
					body["current_password"] = harness.GoodPassword
				} else {
					w.Patch(s.User.ID, store.UserPatch{PasswordHash: new(string)})
				}
				in := open(device).Want(200).Session()
				w.Clock.Advance(time.Second)
				w.Do("POST", "/me/password", body, harness.Bearer(in.AccessToken)).Want(200)
				if c.known {
					w.Do("PATCH", "/me", map[string]any{"email": "thief@example.com"}, harness.Bearer(in.AccessToken)).Want(200)
				}
				w.Do("POST", "/secure-account", map[string]any{"token": w.StopToken(harness.AdaMail, kind)}).Want(200)
				w.Do("POST", "/login", harness.Credentials(harness.AdaMail, thiefs)).Want(401, auth.CodeInvalidCredentials)
				w.LinkToken(harness.AdaMail, auth.KindResetPassword)
			})
		}
	}
}
