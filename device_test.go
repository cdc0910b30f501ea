package auth_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

const laptop, mobile = "laptop-0123456789abcdef", "phone-0123456789abcdef"

func onDevice(id string) header { return header{"X-Device-Id", id} }

// devices are the devices of a user's live sessions, newest first.
func (w *world) devices(userID string) []string {
	w.t.Helper()
	list, err := w.Store.Sessions(w.t.Context(), userID, w.Clock.Now())
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for _, s := range list {
		all = append(all, s.Device)
	}
	return all
}

// knows wants a device to be known to the account with an address, or not to be.
func (w *world) knows(email, device string, want bool) {
	w.t.Helper()
	key := store.ByEmail(email)
	key.Device = device
	c, err := w.Store.Credentials(w.t.Context(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	if c.KnownDevice != want {
		w.t.Errorf("%s knows %.8s…: %v, want %v", email, device, c.KnownDevice, want)
	}
}

// deviceOf is the one device of a user's sessions.
func (w *world) deviceOf(userID string) string {
	w.t.Helper()
	all := slices.Compact(w.devices(userID))
	if len(all) != 1 {
		w.t.Fatalf("devices %q", all)
	}
	return all[0]
}

func credentials(email, password string) map[string]any {
	return map[string]any{"email": email, "password": password}
}

// A device is known to the accounts that signed in on it, and to no others; what
// is kept of it is a hash.
func TestDeviceIsRecognised(t *testing.T) {
	w := newWorld(t, auth.WithSettings(auth.Settings{AccountDeletion: auth.On}))
	ada := w.do("POST", "/signup", credentials("ada@example.com", goodPassword), onDevice(laptop)).session()
	eve := w.do("POST", "/signup", credentials("eve@example.com", goodPassword), onDevice(mobile)).session()
	hers, theirs := w.deviceOf(ada.User.ID), w.deviceOf(eve.User.ID)
	plain := sha256.Sum256([]byte(laptop))
	if hers == theirs || hers == hex.EncodeToString(plain[:]) || !regexp.MustCompile("^[0-9a-f]{64}$").MatchString(hers) {
		t.Errorf("kept as %q and %q", hers, theirs)
	}
	w.knows("ada@example.com", hers, true)
	w.knows("ada@example.com", theirs, false)
	w.knows("eve@example.com", hers, false)

	w.do("POST", "/login", credentials("ada@example.com", "not the password"), onDevice(mobile)).want(401)
	w.knows("ada@example.com", theirs, false)
	w.do("POST", "/login", credentials("ada@example.com", goodPassword), onDevice(mobile)).want(200)
	w.knows("ada@example.com", theirs, true)
	w.do("DELETE", "/sessions", nil, bearer(ada.AccessToken)).want(204)
	w.knows("ada@example.com", hers, true)
	w.knows("ada@example.com", theirs, false) // it is one of those that are signed out everywhere

	w.do("DELETE", "/me", map[string]any{"password": goodPassword}, bearer(ada.AccessToken)).want(204)
	w.do("POST", "/signup", credentials("ada@example.com", goodPassword)).want(200)
	w.knows("ada@example.com", hers, false)
	w.knows("eve@example.com", theirs, true)
}

// Every way to a session makes the device known on which it was begun.
func TestEveryDoorTellsTheDevice(t *testing.T) {
	for door, open := range map[string]func(w *world) (email string){
		"sign-up": func(w *world) string {
			w.do("POST", "/signup", credentials("new@example.com", goodPassword), onDevice(laptop)).want(200)
			return "new@example.com"
		},
		"password": func(w *world) string {
			w.signUp("ada@example.com")
			w.do("POST", "/login", credentials("ada@example.com", goodPassword), onDevice(laptop)).want(200)
			return "ada@example.com"
		},
		"magic link": func(w *world) string {
			token := w.magicLink("ada@example.com", nil)
			w.do("POST", "/magic-link/verify", map[string]any{"token": token}, onDevice(laptop)).want(200)
			return "ada@example.com"
		},
		"second factor": func(w *world) string {
			e := w.enrol(w.member("ada@example.com").AccessToken)
			w.Clock.Advance(time.Minute)
			w.do("POST", "/login", map[string]any{"email": "ada@example.com", "password": goodPassword, "totp_code": w.code(e.secret, 0)}, onDevice(laptop)).want(200)
			return "ada@example.com"
		},
		"phone code": func(w *world) string {
			w.otp(number, w.phoneCode(number), onDevice(laptop)).want(200)
			u, err := w.Store.User(w.t.Context(), store.ByPhone(number))
			if err != nil {
				w.t.Fatal(err)
			}
			email := "ada@example.com"
			w.patch(u.ID, store.UserPatch{Email: &email})
			return email
		},
	} {
		t.Run(door, func(t *testing.T) {
			w := newWorld(t)
			known := w.do("POST", "/signup", credentials("other@example.com", goodPassword), onDevice(laptop)).session()
			w.knows(open(w), w.deviceOf(known.User.ID), true)
		})
	}
}

// Whoever takes an account over is not met by the devices of whoever had it.
func TestTakeoverForgetsDevices(t *testing.T) {
	w := newWorld(t)
	w.do("POST", "/signup", credentials("ada@example.com", goodPassword), onDevice(mobile)).want(200)
	squatter, err := w.Store.User(t.Context(), store.ByEmail("ada@example.com"))
	if err != nil {
		t.Fatal(err)
	}
	theirs := w.deviceOf(squatter.ID)
	w.knows("ada@example.com", theirs, true)
	token := w.magicLink("ada@example.com", nil)
	w.do("POST", "/magic-link/verify", map[string]any{"token": token}, onDevice(laptop)).want(200)
	w.knows("ada@example.com", theirs, false)
	w.knows("ada@example.com", w.deviceOf(squatter.ID), true)
}

// Whoever signs out everywhere else is left with the own device, and everywhere
// with none: those who were thrown out have no tries of a device's own.
func TestSignOutEverywhereForgetsDevices(t *testing.T) {
	for name, c := range map[string]struct {
		method, path string
		own, others  bool // known afterwards
	}{
		"everywhere":           {"POST", "/logout?scope=global", false, false},
		"everywhere else":      {"POST", "/logout?scope=others", true, false},
		"the others":           {"DELETE", "/sessions", true, false},
		"here":                 {"POST", "/logout", true, true},
		"one of them":          {"DELETE", "/sessions/{id}", true, false},
		"everywhere, of a ban": {"POST", "/logout?scope=global", true, true}, // ends no more than the session itself
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			old := w.do("POST", "/signup", credentials("ada@example.com", goodPassword), onDevice(mobile)).session()
			theirs := w.deviceOf(old.User.ID)
			ada := w.do("POST", "/login", credentials("ada@example.com", goodPassword), onDevice(laptop)).want(200).session()
			own := slices.DeleteFunc(w.devices(old.User.ID), func(d string) bool { return d == theirs })[0]
			eve := w.do("POST", "/signup", credentials("eve@example.com", goodPassword), onDevice(mobile)).session()
			w.knows("ada@example.com", own, true)
			w.knows("ada@example.com", theirs, true)
			if strings.HasSuffix(name, "ban") {
				until := w.Clock.Now().Add(time.Hour)
				w.patch(old.User.ID, store.UserPatch{BannedUntil: &until})
			}
			w.do(c.method, strings.ReplaceAll(c.path, "{id}", w.claimsOf(old).SessionID), nil, bearer(ada.AccessToken), onDevice(laptop)).want(204)
			w.knows("ada@example.com", own, c.own)
			w.knows("ada@example.com", theirs, c.others)
			w.knows("eve@example.com", w.deviceOf(eve.User.ID), true)
		})
	}
}

// What is no identifier of a device, or says two things, says nothing.
func TestDeviceIdentifiers(t *testing.T) {
	for name, c := range map[string]struct {
		ids  []string
		want bool
	}{
		"shortest":     {[]string{strings.Repeat("a", 16)}, true},
		"longest":      {[]string{strings.Repeat("a", 128)}, true},
		"unreserved":   {[]string{"AZaz09-._~AZaz09-._~"}, true},
		"too short":    {[]string{strings.Repeat("a", 15)}, false},
		"too long":     {[]string{strings.Repeat("a", 129)}, false},
		"a space":      {[]string{"0123456789abcdef 0"}, false},
		"a letter ä":   {[]string{"0123456789abcdefä"}, false},
		"a percentage": {[]string{"0123456789abcdef%20"}, false},
		"empty":        {[]string{""}, false},
		"two":          {[]string{laptop, mobile}, false},
		"twice":        {[]string{laptop, laptop}, false},
	} {
		for _, from := range []string{"header", "cookie"} {
			t.Run(name+" "+from, func(t *testing.T) {
				w := newWorld(t)
				r := httptest.NewRequestWithContext(t.Context(), "POST", "/signup", strings.NewReader(`{"email":"ada@example.com","password":"`+goodPassword+`"}`))
				r.Header.Set("Content-Type", "application/json")
				for _, id := range c.ids {
					if from == "header" {
						r.Header.Add("X-Device-Id", id)
					} else {
						r.Header.Add("Cookie", "__Host-authmount-device="+id)
					}
				}
				rec := httptest.NewRecorder()
				w.Handler().ServeHTTP(rec, r)
				a := &answer{t: t, status: rec.Code, header: rec.Header(), body: rec.Body.Bytes()}
				if got := w.deviceOf(a.session().User.ID) != ""; got != c.want {
					t.Errorf("a device: %v, want %v", got, c.want)
				}
				if set := a.header.Values("Set-Cookie"); len(set) > 0 {
					t.Errorf("set for a program: %q", set)
				}
			})
		}
	}
}

// In cookie mode a browser becomes a device with its first completed sign-in, and
// stays the same one.
func TestDeviceCookie(t *testing.T) {
	for name, c := range map[string]struct {
		cookie string
		opts   []auth.Option
	}{
		"https":           {"__Host-authmount-device", []auth.Option{auth.WithCookies(auth.CookieOptions{})}},
		"of another name": {"__Host-my-device", []auth.Option{auth.WithCookies(auth.CookieOptions{Name: "my"})}},
		"loopback":        {"authmount-device", []auth.Option{auth.WithCookies(auth.CookieOptions{}), auth.WithBaseURL("http://127.0.0.1:8080/auth/v1"), auth.WithDevMode()}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.opts...)
			cookie := func(a *answer) *http.Cookie {
				for _, k := range (&http.Response{Header: a.header}).Cookies() {
					if strings.HasSuffix(k.Name, "-device") {
						return k
					}
				}
				return nil
			}
			first := w.do("POST", "/signup", credentials("ada@example.com", goodPassword), transport).want(200)
			k := cookie(first)
			if k == nil || k.Name != c.cookie || len(k.Value) < 16 || !k.HttpOnly || k.Secure != strings.HasPrefix(c.cookie, "__Host-") ||
				k.SameSite != http.SameSiteLaxMode || k.Path != "/" || k.Domain != "" || k.MaxAge != 400*24*60*60 {
				t.Fatalf("cookie %v", k)
			}
			u := decodeAs[session](first).User
			device := w.deviceOf(u.ID)
			w.knows("ada@example.com", device, true)

			sent := header{"Cookie", k.Name + "=" + k.Value}
			again := w.do("POST", "/login", credentials("ada@example.com", goodPassword), sent, transport).want(200)
			if k := cookie(again); k != nil {
				t.Errorf("a second cookie: %v", k)
			}
			if got := w.deviceOf(u.ID); got != device { // of both sessions
				t.Errorf("device %q, then %q", device, got)
			}
			if k := cookie(w.do("POST", "/login", credentials("ada@example.com", goodPassword), sent, transport, onDevice(laptop)).want(200)); k != nil {
				t.Errorf("a cookie beside a header: %v", k)
			}
			if k := cookie(w.do("POST", "/login", credentials("ada@example.com", "not the password"), transport).want(401)); k != nil {
				t.Errorf("a cookie for a wrong password: %v", k)
			}
			all := (&http.Response{Header: first.header}).Cookies()
			i := slices.IndexFunc(all, func(k *http.Cookie) bool { return strings.HasSuffix(k.Name, "-refresh") })
			refresh := header{"Cookie", all[i].Name + "=" + all[i].Value}
			if k := cookie(w.do("POST", "/refresh", nil, refresh, header{"Sec-Fetch-Site", "same-origin"}).want(200)); k != nil {
				t.Errorf("a cookie for a refresh: %v", k)
			}
			two := header{"Cookie", k.Name + "=" + k.Value + "; " + k.Name + "=" + laptop}
			if k := cookie(w.do("POST", "/login", credentials("ada@example.com", goodPassword), two, transport).want(200)); k == nil {
				t.Error("one of two cookies was believed")
			}
		})
	}
}

// addSession makes a session behind the service's back.
func (w *world) addSession(userID string) {
	w.t.Helper()
	now := w.Clock.Now()
	_, err := w.Store.CreateSession(w.t.Context(), store.CreateSession{Change: store.Change{Now: now, By: auth.Authority{System: "test"}}, Session: auth.Session{
		ID: uuid.NewString(), UserID: userID, AAL: store.LevelAAL1, AMR: []auth.AMR{{Method: "password", Timestamp: now.Unix()}},
		CreatedAt: now, LastActiveAt: now, RotatedAt: now, IdleUntil: now.Add(time.Hour),
	}})
	if err != nil {
		w.t.Fatal(err)
	}
}

// A user has at most so many sessions; the one that was active least ends, and
// that is told.
func TestSessionsPerUser(t *testing.T) {
	for name, c := range map[string]struct {
		opts      []auth.Option
		made, max int
	}{
		"the default": {nil, 101, 100},
		"a number":    {[]auth.Option{auth.WithSessions(auth.SessionOptions{MaxPerUser: 2})}, 4, 2},
		"any number":  {[]auth.Option{auth.WithSessions(auth.SessionOptions{MaxPerUser: -1})}, 103, 103},
	} {
		t.Run(name, func(t *testing.T) {
			var ended []string
			w := newWorld(t, append(c.opts, auth.WithRateLimits(auth.RateLimits{Off: true}))...)
			first := w.member("ada@example.com")
			var second string
			for i := 1; i < c.made; i++ {
				w.Clock.Advance(time.Second)
				if i == 2 { // who is active stays
					first = w.refresh(first.RefreshToken).session()
				}
				if 1 < i && i < c.made-2 { // hashing takes its time
					w.addSession(first.User.ID)
					continue
				}
				s := w.do("POST", "/login", credentials("ada@example.com", goodPassword)).session()
				if i == 1 {
					second = s.AccessToken
				}
			}
			w.mu.Lock()
			for _, e := range w.events {
				if e.Type == auth.EventSessionsEnded {
					ended = append(ended, e.SessionIDs...)
				}
			}
			w.mu.Unlock()
			if n := len(w.devices(first.User.ID)); n != c.max {
				t.Errorf("%d sessions, want %d", n, c.max)
			}
			if len(ended) != c.made-c.max {
				t.Errorf("told of %d that ended, want %d", len(ended), c.made-c.max)
			}
			if !w.alive(first.AccessToken) && c.max > 2 {
				t.Error("the active session ended")
			}
			if w.alive(second) != (c.made == c.max) {
				t.Error("the least active session did not end")
			}
		})
	}
}

// asked remembers which device the store was last asked about.
type asked struct {
	auth.Store
	device string
}

func (s *asked) Credentials(ctx context.Context, key store.UserKey) (store.Credentials, error) {
	s.device = key.Device
	return s.Store.Credentials(ctx, key)
}

// The read before a login asks whether the device is known.
func TestLoginAsksForTheDevice(t *testing.T) {
	store := &asked{Store: memstore.New()}
	w := &world{t: t, Env: authtest.NewOn(t, store)}
	u := w.do("POST", "/signup", credentials("ada@example.com", goodPassword), onDevice(laptop)).session().User
	w.do("POST", "/login", credentials("ada@example.com", goodPassword), onDevice(laptop)).want(200)
	if want := w.deviceOf(u.ID); store.device != want {
		t.Errorf("asked about %q, want %q", store.device, want)
	}
}
