package signin_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// tells signs in and expects a notice of a new device.
func tells(w *harness.World, signIn func() *harness.Answer) {
	w.T.Helper()
	w.Fired()
	signIn().Want(200)
	if got := w.Fired(); !slices.Contains(got, auth.EventNewDevice) {
		w.T.Errorf("nobody was told: %v", got)
	}
}

// A client that hides its device causes a notice, even after the account's devices were forgotten.
func TestHiddenDevicesAreToldOnceDevicesAreForgotten(t *testing.T) {
	for name, forget := range map[string]func(w *harness.World, own harness.Session){
		"stop": func(w *harness.World, _ harness.Session) {
			w.Clock.Advance(time.Minute)
			w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword)).Want(200)
			w.Do("POST", "/secure-account", map[string]any{"token": w.StopToken(harness.AdaMail, auth.KindNewDevice)}).Want(200)
		},
		"signing out everywhere": func(w *harness.World, own harness.Session) {
			w.Do("POST", "/logout?scope=global", nil, harness.Bearer(own.AccessToken)).Want(204)
		},
		"reset": func(w *harness.World, _ harness.Session) {
			w.Do("POST", "/forgot-password", map[string]any{"email": harness.AdaMail}).Want(200)
			w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken(harness.AdaMail, auth.KindResetPassword), "new_password": "the owner's horse battery"}).Want(200)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, _, own := harness.NewDeviceWorld(t)
			forget(w, own)
			for range 2 {
				w.Clock.Advance(2 * time.Minute)
				token := w.MagicLink(harness.AdaMail, nil)
				tells(w, func() *harness.Answer { return w.Do("POST", "/magic-link/verify", map[string]any{"token": token}) })
			}
		})
	}
}

// Ending a session in the list forgets its device, and a password change forgets all but the
// caller's. Signing out on a device does not.
func TestDevicesOfEndedSessionsAreForgotten(t *testing.T) {
	w, _, own := harness.NewDeviceWorld(t)
	signIn := func(password, device string) func() *harness.Answer {
		return func() *harness.Answer {
			return w.Do("POST", "/login", harness.Credentials(harness.AdaMail, password), harness.OnDevice(device))
		}
	}
	thief := signIn(harness.GoodPassword, harness.Mobile)().Session()
	w.Do("DELETE", "/sessions/"+w.ClaimsOf(thief).SessionID, nil, harness.Bearer(own.AccessToken)).Want(204)
	tells(w, signIn(harness.GoodPassword, harness.Mobile))
	w.Do("POST", "/me/password", map[string]any{"current_password": harness.GoodPassword, "new_password": "the owner's horse battery"}, harness.Bearer(own.AccessToken)).Want(200)
	tells(w, signIn("the owner's horse battery", harness.Mobile))

	w.Do("DELETE", "/sessions/"+w.ClaimsOf(own).SessionID, nil, harness.Bearer(own.AccessToken)).Want(204)
	own = signIn("the owner's horse battery", harness.Laptop)().Session()
	w.Do("POST", "/logout", nil, harness.Bearer(own.AccessToken)).Want(204)
	w.Fired()
	signIn("the owner's horse battery", harness.Laptop)().Want(200)
	if got := w.Fired(); slices.Contains(got, auth.EventNewDevice) {
		t.Errorf("the owner's device was forgotten: %v", got)
	}
}

// The list of sessions names each device in fixed words and contains nothing from the
// client's own description.
func TestSessionsNameTheirDevices(t *testing.T) {
	const firefox, chrome = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36"
	for agent, want := range map[string]string{
		firefox:                                "Firefox on Linux",
		chrome:                                 "Chrome on Android",
		firefox + " call +1 555 0100 for help": "Firefox on Linux",
		"call +1 555 0100 for help":            "",
		"":                                     "",
	} {
		w := harness.NewWorld(t)
		w.PostSignUp("ada@example.com")
		s := w.Do("POST", "/login", harness.Credentials("ada@example.com", harness.GoodPassword), harness.Header{Name: "User-Agent", Value: agent}).Want(200).Session()
		wire := harness.DecodeAs[struct {
			Sessions []struct {
				Device  *string
				Current bool
			}
		}](w.Do("GET", "/sessions", nil, harness.Bearer(s.AccessToken)).Want(200))
		list, err := w.Sessions(t.Context(), auth.SessionsParams{UserID: s.User.ID})
		if err != nil || len(list) != 2 || len(wire.Sessions) != 2 {
			t.Fatalf("%d and %d sessions, %v", len(wire.Sessions), len(list), err)
		}
		for i := range list {
			got := list[i].Device
			if sent := wire.Sessions[i].Device; (sent == nil) != (got == "") || sent != nil && *sent != got {
				t.Errorf("%q: another name on the wire than %q", agent, got)
			}
			if wire.Sessions[i].Current && got != want {
				t.Errorf("%q is called %q, want %q", agent, got, want)
			}
		}
	}
}

const firefoxOnLinux = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

// Every sign-in on a device that is new to the account sends a notice with time, IP address
// and device. A sign-in on the owner's device does not. The methods come from the route
// table.
func TestEveryWayInTellsOfNewDevices(t *testing.T) {
	doors := harness.SignInEndpoints()
	w := harness.NewWorld(t)
	for _, pattern := range harness.SignInRoutes(w.Auth) {
		if _, ok := doors[pattern]; !ok {
			t.Errorf("%s is in no table: how does one sign in there?", pattern)
		}
		delete(doors, pattern)
	}
	for pattern := range doors {
		t.Errorf("%s is no way in", pattern)
	}
	doors = harness.SignInEndpoints()
	for pattern, prepare := range doors {
		if prepare == nil {
			continue
		}
		for name, device := range map[string][]harness.Header{"another": {harness.OnDevice(harness.Mobile)}, "none": nil, "hers": {harness.OnDevice(harness.Laptop)}} {
			t.Run(pattern+" on "+name, func(t *testing.T) {
				t.Parallel()
				w, idp, s := harness.NewDeviceWorld(t)
				open := prepare(w, idp, s)
				w.Fired()
				w.Clock.Advance(time.Second)
				at := w.Clock.Now()
				open(append(device, harness.Header{Name: "User-Agent", Value: firefoxOnLinux})...).Want(200)
				told := slices.Contains(w.Fired(), auth.EventNewDevice)
				if told == (name == "hers") {
					t.Fatalf("told: %v", told)
				}
				if !told {
					return
				}
				m := w.Mail(t, harness.AdaMail, auth.KindNewDevice)
				if !containsAll(m.Text, "Hello Ada", "Firefox on Linux", "192.0.2.1", at.UTC().Format("2006-01-02 15:04 UTC"), m.Link) || w.StopToken(harness.AdaMail, auth.KindNewDevice) == "" {
					t.Errorf("message %s", m.Text)
				}
				list, err := w.Store.Sessions(t.Context(), s.User.ID, w.Clock.Now())
				if err != nil {
					t.Fatal(err)
				}
				before := len(list)
				w.Do("POST", "/secure-account", map[string]any{"token": w.StopToken(harness.AdaMail, auth.KindNewDevice)}).Want(200)
				list, err = w.Store.Sessions(t.Context(), s.User.ID, w.Clock.Now())
				if err != nil || len(list) != before-1 || slices.ContainsFunc(list, func(s auth.Session) bool { return s.CreatedAt.Equal(at) }) {
					t.Errorf("%d sessions are left of %d, %v", len(list), before, err)
				}
			})
		}
	}
}

func containsAll(s string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(s, p) })
}

// The first session of an account causes no notice, and neither does any session of an
// account that never named a device.
func TestFirstSessionsAreNoNews(t *testing.T) {
	w := harness.NewWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	w.Do("POST", "/signup", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.OnDevice(harness.Laptop)).Want(200)
	w.PostConfirm(harness.AdaMail)
	w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.OnDevice(harness.Mobile)).Want(200)
	w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink("new@example.com", nil)}, harness.OnDevice(harness.Mobile)).Want(200)
	for range 3 {
		w.Do("POST", "/magic-link/verify", map[string]any{"token": w.AskByMail("program@example.com", nil).Token}).Want(200)
		w.Clock.Advance(2 * time.Minute)
	}
	if list := w.Fired(); slices.Contains(list, auth.EventNewDevice) {
		t.Errorf("events %v", list)
	}
	w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.OnDevice(harness.Laptop)).Want(200)
	if list := w.Fired(); !slices.Contains(list, auth.EventNewDevice) {
		t.Errorf("events %v", list)
	}
}

// "This wasn't me" ends the session of the notice and everything that it started, and
// forgets the device. The link works for a week, once, and never by being opened alone.
func TestThatWasNotMe(t *testing.T) {
	thiefs := func(t *testing.T) (*harness.World, harness.Session, harness.Session, string) {
		w, _, own := harness.NewDeviceWorld(t)
		thief := w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.OnDevice(harness.Mobile)).Session()
		return w, own, thief, w.StopToken(harness.AdaMail, auth.KindNewDevice)
	}
	t.Run("what it began", func(t *testing.T) {
		w, own, thief, token := thiefs(t)
		w.Clock.Advance(time.Minute)
		w.Do("PATCH", "/me", map[string]any{"email": "thief@example.com"}, harness.Bearer(thief.AccessToken)).Want(200)
		link := w.LinkToken("thief@example.com", auth.KindChangeEmail)
		enrolSilently(w, thief.AccessToken)
		for range 2 {
			w.Do("GET", "/secure-account?token="+url.QueryEscape(token), nil, harness.Browser).Want(200)
			w.Do("HEAD", "/secure-account?token="+url.QueryEscape(token), nil, harness.Browser).Want(200)
		}
		if !w.Alive(thief.AccessToken) {
			t.Fatal("looking at the page ended the session")
		}
		a := w.Do("POST", "/secure-account", "token="+url.QueryEscape(token), harness.Form, harness.Browser).Want(200)
		if w.Alive(thief.AccessToken) {
			t.Errorf("the session lives: %s", a.Body)
		}
		w.Do("POST", "/verify-email", map[string]any{"token": link}, harness.Bearer(thief.AccessToken)).Want(400, auth.CodeInvalidToken)
		u, err := w.Store.User(t.Context(), store.ByID(own.User.ID))
		if err != nil || u.MFAEnabled {
			t.Errorf("the thief's second factor is left: %v, %v", u.MFAEnabled, err)
		}
		w.Do("POST", "/secure-account", map[string]any{"token": token}).Want(400, auth.CodeInvalidToken)
		w.Fired()
		w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink(harness.AdaMail, nil)}, harness.OnDevice(harness.Mobile)).Want(200)
		if !slices.Contains(w.Fired(), auth.EventNewDevice) {
			t.Error("the thief's device is known")
		}
		reset := w.LinkToken(harness.AdaMail, auth.KindResetPassword)
		w.Do("POST", "/reset-password", map[string]any{"token": reset, "new_password": "the owner's horse battery"}).Want(200)
	})
	t.Run("for a week", func(t *testing.T) {
		for left, want := range map[time.Duration]int{time.Second: 200, 0: 400} {
			w, _, _, token := thiefs(t)
			w.Clock.Advance(7*24*time.Hour - left)
			w.Do("POST", "/secure-account", map[string]any{"token": token}).Want(want)
		}
	})
	t.Run("after a change of address", func(t *testing.T) {
		w, _, thief, token := thiefs(t)
		w.Clock.Advance(time.Minute)
		w.Do("PATCH", "/me", map[string]any{"email": "thief@example.com"}, harness.Bearer(thief.AccessToken)).Want(200)
		w.Do("POST", "/verify-email", map[string]any{"token": w.LinkToken("thief@example.com", auth.KindChangeEmail)}, harness.Bearer(thief.AccessToken)).Want(200)
		w.Do("POST", "/secure-account", map[string]any{"token": token}).Want(200)
		if u, err := w.Store.User(t.Context(), store.ByEmail(harness.AdaMail)); err != nil || u.ID != thief.User.ID || w.Alive(thief.AccessToken) {
			t.Errorf("the account is at %q, %v", u.Email, err)
		}
	})
}

// enrolSilently sets a second factor up and leaves the clock as it is.
func enrolSilently(w *harness.World, access string) {
	w.T.Helper()
	setup := harness.DecodeAs[struct{ Secret string }](w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(access)).Want(200))
	w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.Code(setup.Secret, 0)}, harness.Bearer(access)).Want(200)
}

// An unverified address gets no name, no link and few notices. A verified one gets as many
// as other notices. The sign-in succeeds in any case.
func TestNewDeviceNoticesAreLimited(t *testing.T) {
	for name, most := range map[string]int{"unproved": 2, "proved": 3} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t, auth.WithRateLimits(auth.RateLimits{
				NoticesUnverified: auth.Rate{Burst: 2, Per: time.Hour}, NoticesPerAddress: auth.Rate{Burst: 3, Per: time.Hour}, SignInsPerAccount: harness.NoLimit,
			}))
			s := w.Do("POST", "/signup", map[string]any{"email": harness.AdaMail, "password": harness.GoodPassword, "full_name": "Ada"}, harness.OnDevice(harness.Laptop)).Session()
			if name == "proved" {
				w.Do("POST", "/verify-email", map[string]any{"token": w.LinkToken(harness.AdaMail, auth.KindVerifyEmail)}, harness.Bearer(s.AccessToken)).Want(200)
			}
			for i := range 5 {
				w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.OnDevice(harness.Mobile+string(rune('a'+i)))).Want(200)
			}
			w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.OnDevice(harness.Laptop)).Want(200) // draws nothing
			n := 0
			list := w.Sent(harness.AdaMail)
			for _, k := range list {
				if k == auth.KindNewDevice {
					n++
				}
			}
			if n != most {
				t.Errorf("sent %v", list)
			}
			m := w.Mail(t, harness.AdaMail, auth.KindNewDevice)
			if strings.Contains(m.Text, "Ada") != (name == "proved") || (m.Link != "") != (name == "proved") {
				t.Errorf("message %q", m.Text)
			}
			if name == "unproved" && strings.Contains(m.HTML, "href") {
				t.Errorf("a link without address: %s", m.HTML)
			}
		})
	}
}

// In cookies the browser is recognised by the cookie that its first sign-in left.
func TestNewBrowserIsTold(t *testing.T) {
	w := harness.NewWorld(t, auth.WithCookies(auth.CookieOptions{}))
	first := w.Do("POST", "/signup", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.Transport).Want(200)
	var jar []string
	for _, c := range (&http.Response{Header: first.Header}).Cookies() {
		if strings.HasSuffix(c.Name, "-device") {
			jar = append(jar, c.Name+"="+c.Value)
		}
	}
	w.Fired()
	w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.Transport, harness.Header{Name: "Cookie", Value: strings.Join(jar, "; ")}).Want(200)
	w.WantEvents(auth.EventSignedIn)
	w.Do("POST", "/login", harness.Credentials(harness.AdaMail, harness.GoodPassword), harness.Transport).Want(200)
	w.WantEvents(auth.EventSignedIn, auth.EventNewDevice)
	if !strings.Contains(w.Mail(t, harness.AdaMail, auth.KindNewDevice).Subject, "sign-in") {
		t.Error("another message")
	}
}
