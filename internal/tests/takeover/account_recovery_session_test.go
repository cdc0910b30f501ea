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

// Account recovery also ends the sessions that started later, although a second one on a
// device that is known by then causes no notice. Earlier sessions stay.
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

// Account recovery deletes the password that a stopped session signed in with. The reset
// sets another one and locks no one out. If the session does not depend on the password, the
// password stays.
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

// The password is deleted even while sign-in by password is switched off, because its holder
// could sign in as soon as it is on again.
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

// Account recovery deletes a password that the stopped session set, with every sign-in
// method, even if no notice was sent before the session requested another address. For all
// that the reader of the notice can tell, the session's holder set it.
func TestStopEndsAPasswordSetSince(t *testing.T) {
	const thiefs = "the thief's horse battery"
	byPassword := []string{"POST /login", "POST /2fa/verify", "POST /2fa/verify-and-enable", "POST /me/passkeys"} // so that there is one
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
