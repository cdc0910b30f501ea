package auth_test

import (
	"slices"
	"testing"
	"time"

	"github.com/authmount/auth"
)

// tells signs in, and wants it to be told as a new device.
func (w *world) tells(signIn func() *answer) {
	w.t.Helper()
	w.fired()
	signIn().want(200)
	if got := w.fired(); !slices.Contains(got, auth.EventNewDevice) {
		w.t.Errorf("nobody was told: %v", got)
	}
}

// A client that says nothing of its device is told of, also once the devices of the
// account were forgotten.
func TestHiddenDevicesAreToldOnceDevicesAreForgotten(t *testing.T) {
	for name, forget := range map[string]func(w *world, own session){
		"stop": func(w *world, _ session) {
			w.Clock.Advance(time.Minute)
			w.do("POST", "/login", credentials(adas, goodPassword)).want(200)
			w.do("POST", "/secure-account", map[string]any{"token": w.stopToken(adas, auth.KindNewDevice)}).want(200)
		},
		"signing out everywhere": func(w *world, own session) {
			w.do("POST", "/logout?scope=global", nil, bearer(own.AccessToken)).want(204)
		},
		"reset": func(w *world, _ session) {
			w.do("POST", "/forgot-password", map[string]any{"email": adas}).want(200)
			w.do("POST", "/reset-password", map[string]any{"token": w.linkToken(adas, auth.KindResetPassword), "new_password": "the owner's horse battery"}).want(200)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, _, own := deviceWorld(t)
			forget(w, own)
			for range 2 {
				w.Clock.Advance(2 * time.Minute)
				token := w.magicLink(adas, nil)
				w.tells(func() *answer { return w.do("POST", "/magic-link/verify", map[string]any{"token": token}) })
			}
		})
	}
}

// A device is forgotten with the session that somebody ends in the list, and all
// but the caller's with a change of the password; not by whoever signs out there.
func TestDevicesOfEndedSessionsAreForgotten(t *testing.T) {
	w, _, own := deviceWorld(t)
	signIn := func(password, device string) func() *answer {
		return func() *answer { return w.do("POST", "/login", credentials(adas, password), onDevice(device)) }
	}
	thief := signIn(goodPassword, mobile)().session()
	w.do("DELETE", "/sessions/"+w.claimsOf(thief).SessionID, nil, bearer(own.AccessToken)).want(204)
	w.tells(signIn(goodPassword, mobile))
	w.do("POST", "/me/password", map[string]any{"current_password": goodPassword, "new_password": "the owner's horse battery"}, bearer(own.AccessToken)).want(200)
	w.tells(signIn("the owner's horse battery", mobile))

	w.do("DELETE", "/sessions/"+w.claimsOf(own).SessionID, nil, bearer(own.AccessToken)).want(204)
	own = signIn("the owner's horse battery", laptop)().session()
	w.do("POST", "/logout", nil, bearer(own.AccessToken)).want(204)
	w.fired()
	signIn("the owner's horse battery", laptop)().want(200)
	if got := w.fired(); slices.Contains(got, auth.EventNewDevice) {
		t.Errorf("the owner's device was forgotten: %v", got)
	}
}
