package auth_test

import (
	"slices"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// A stop ends the sessions that were made since, too: a second one on a device that
// is known by then is told to nobody. Those from before stay.
func TestStopEndsLaterSessions(t *testing.T) {
	w, _, own := deviceWorld(t)
	w.Clock.Advance(time.Minute)
	first := w.do("POST", "/login", credentials(adas, goodPassword), onDevice(mobile)).session()
	token := w.stopToken(adas, auth.KindNewDevice)
	w.fired()
	second := w.do("POST", "/login", credentials(adas, goodPassword), onDevice(mobile)).session()
	w.Clock.Advance(5 * time.Minute)
	third := w.do("POST", "/login", credentials(adas, goodPassword), onDevice(mobile)).session()
	if slices.Contains(w.fired(), auth.EventNewDevice) {
		t.Fatal("told")
	}
	w.do("POST", "/secure-account", map[string]any{"token": token}).want(200)
	for name, s := range map[string]session{"first": first, "second": second, "third": third} {
		if w.alive(s.AccessToken) {
			t.Errorf("the %s session goes on", name)
		}
	}
	if !w.alive(own.AccessToken) {
		t.Error("the session from before is over")
	}
}

// Whoever signed in with the password does not come back with it after a stop: the
// reset makes another one, and locks nobody out. A session that rests on something
// else leaves the password.
func TestStopEndsThePassword(t *testing.T) {
	const chosen = "the owner's horse battery"
	for name, c := range map[string]struct {
		signIn func(w *world) *answer
		want   int
	}{
		"password": {func(w *world) *answer { return w.do("POST", "/login", credentials(adas, goodPassword)) }, 401},
		"password later": {func(w *world) *answer {
			token := w.magicLink(adas, nil)
			a := w.do("POST", "/magic-link/verify", map[string]any{"token": token}, onDevice(mobile))
			w.do("POST", "/login", credentials(adas, goodPassword), onDevice(mobile)).want(200)
			return a
		}, 401},
		"magic link": {func(w *world) *answer {
			token := w.magicLink(adas, nil)
			return w.do("POST", "/magic-link/verify", map[string]any{"token": token})
		}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			w, _, _ := deviceWorld(t)
			w.Clock.Advance(time.Minute)
			c.signIn(w).want(200)
			token := w.stopToken(adas, auth.KindNewDevice)
			w.Clock.Advance(time.Minute)
			w.do("POST", "/secure-account", map[string]any{"token": token}).want(200)
			w.do("POST", "/login", credentials(adas, goodPassword)).want(c.want)
			w.do("POST", "/reset-password", map[string]any{"token": w.linkToken(adas, auth.KindResetPassword), "new_password": chosen}).want(200)
			w.do("POST", "/login", credentials(adas, chosen), onDevice(laptop)).want(200)
		})
	}
}

// The password goes while signing in with one is switched off, too: whoever knows it
// would be back as soon as it is on again.
func TestStopEndsThePasswordWhilePasswordsAreOff(t *testing.T) {
	w, _, _ := deviceWorld(t)
	w.Clock.Advance(time.Minute)
	w.do("POST", "/login", credentials(adas, goodPassword)).want(200)
	token := w.stopToken(adas, auth.KindNewDevice)
	off := newWorldOn(t, w.Store, auth.WithSettings(auth.Settings{Password: auth.Off}))
	off.Clock.Advance(2 * time.Minute)
	off.do("POST", "/secure-account", map[string]any{"token": token}).want(200)
	host.Of(off).MessagesSent(t.Context())
	if slices.ContainsFunc(off.Inbox.Messages(), func(m auth.Message) bool { return m.Kind == auth.KindResetPassword }) {
		t.Error("a link to choose a password was sent, which nobody could use")
	}
	w.Clock.Advance(2 * time.Minute)
	w.do("POST", "/login", credentials(adas, goodPassword)).want(401, auth.CodeInvalidCredentials)
}

// A password that the session has set goes with it, whichever way that came in, also one
// that nobody is told of until the session asks for another address: nobody set it but
// whoever is stopped, as far as the reader of the notice can tell.
func TestStopEndsAPasswordSetSince(t *testing.T) {
	const thiefs = "the thief's horse battery"
	byPassword := []string{"POST /login", "POST /2fa/verify", "POST /2fa/verify-and-enable"} // so that there is one
	for pattern, prepare := range signInDoors() {
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
				w, idp, s := deviceWorld(t)
				open := prepare(w, idp, s)
				w.Clock.Advance(time.Second)
				device, kind, body := onDevice(mobile), auth.KindNewDevice, map[string]any{"new_password": thiefs}
				if c.known {
					device, kind = onDevice(laptop), auth.KindEmailChangeRequested
				}
				if c.had {
					body["current_password"] = goodPassword
				} else {
					w.patch(s.User.ID, store.UserPatch{PasswordHash: new(string)})
				}
				in := open(device).want(200).session()
				w.Clock.Advance(time.Second)
				w.do("POST", "/me/password", body, bearer(in.AccessToken)).want(200)
				if c.known {
					w.do("PATCH", "/me", map[string]any{"email": "thief@example.com"}, bearer(in.AccessToken)).want(200)
				}
				w.do("POST", "/secure-account", map[string]any{"token": w.stopToken(adas, kind)}).want(200)
				w.do("POST", "/login", credentials(adas, thiefs)).want(401, auth.CodeInvalidCredentials)
				w.linkToken(adas, auth.KindResetPassword)
			})
		}
	}
}
