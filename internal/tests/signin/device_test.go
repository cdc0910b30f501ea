package signin_test

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
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// devices are the devices of a user's live sessions, newest first.
func devices(w *harness.World, userID string) []string {
	w.T.Helper()
	list, err := w.Store.Sessions(w.T.Context(), userID, w.Clock.Now())
	if err != nil {
		w.T.Fatal(err)
	}
	var all []string
	for _, s := range list {
		all = append(all, s.Device)
	}
	return all
}

// knows checks whether a device is known to the account with an address.
func knows(w *harness.World, email, device string, want bool) {
	w.T.Helper()
	key := store.ByEmail(email)
	key.Device = device
	c, err := w.Store.Credentials(w.T.Context(), key)
	if err != nil {
		w.T.Fatal(err)
	}
	if c.KnownDevice != want {
		w.T.Errorf("%s knows %.8s…: %v, want %v", email, device, c.KnownDevice, want)
	}
}

// deviceOf is the one device of a user's sessions.
func deviceOf(w *harness.World, userID string) string {
	w.T.Helper()
	all := slices.Compact(devices(w, userID))
	if len(all) != 1 {
		w.T.Fatalf("devices %q", all)
	}
	return all[0]
}

// A device is known only to the accounts that signed in on it. The store has only its hash.
func TestDeviceIsRecognised(t *testing.T) {
	w := harness.NewWorld(t, auth.WithSettings(auth.Settings{AccountDeletion: auth.On}))
	ada := w.Do("POST", "/signup", harness.Credentials("ada@example.com", harness.GoodPassword), harness.OnDevice(harness.Laptop)).Session()
	eve := w.Do("POST", "/signup", harness.Credentials("eve@example.com", harness.GoodPassword), harness.OnDevice(harness.Mobile)).Session()
	hers, theirs := deviceOf(w, ada.User.ID), deviceOf(w, eve.User.ID)
	plain := sha256.Sum256([]byte(harness.Laptop))
	if hers == theirs || hers == hex.EncodeToString(plain[:]) || !regexp.MustCompile("^[0-9a-f]{64}$").MatchString(hers) {
		t.Errorf("kept as %q and %q", hers, theirs)
	}
	knows(w, "ada@example.com", hers, true)
	knows(w, "ada@example.com", theirs, false)
	knows(w, "eve@example.com", hers, false)

	w.Do("POST", "/login", harness.Credentials("ada@example.com", "not the password"), harness.OnDevice(harness.Mobile)).Want(401)
	knows(w, "ada@example.com", theirs, false)
	w.Do("POST", "/login", harness.Credentials("ada@example.com", harness.GoodPassword), harness.OnDevice(harness.Mobile)).Want(200)
	knows(w, "ada@example.com", theirs, true)
	w.Do("DELETE", "/sessions", nil, harness.Bearer(ada.AccessToken)).Want(204)
	knows(w, "ada@example.com", hers, true)
	knows(w, "ada@example.com", theirs, false) // it is one of those that are signed out everywhere

	w.Do("DELETE", "/me", map[string]any{"password": harness.GoodPassword}, harness.Bearer(ada.AccessToken)).Want(204)
	w.Do("POST", "/signup", harness.Credentials("ada@example.com", harness.GoodPassword)).Want(200)
	knows(w, "ada@example.com", hers, false)
	knows(w, "eve@example.com", theirs, true)
}

// Every sign-in method makes the device known on which it was started.
func TestEveryDoorTellsTheDevice(t *testing.T) {
	for door, open := range map[string]func(w *harness.World) (email string){
		"sign-up": func(w *harness.World) string {
			w.Do("POST", "/signup", harness.Credentials("new@example.com", harness.GoodPassword), harness.OnDevice(harness.Laptop)).Want(200)
			return "new@example.com"
		},
		"password": func(w *harness.World) string {
			w.PostSignUp("ada@example.com")
			w.Do("POST", "/login", harness.Credentials("ada@example.com", harness.GoodPassword), harness.OnDevice(harness.Laptop)).Want(200)
			return "ada@example.com"
		},
		"magic link": func(w *harness.World) string {
			token := w.MagicLink("ada@example.com", nil)
			w.Do("POST", "/magic-link/verify", map[string]any{"token": token}, harness.OnDevice(harness.Laptop)).Want(200)
			return "ada@example.com"
		},
		"second factor": func(w *harness.World) string {
			e := w.Enrol(w.Member("ada@example.com").AccessToken)
			w.Clock.Advance(time.Minute)
			w.Do("POST", "/login", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword, "totp_code": w.Code(e.Secret, 0)}, harness.OnDevice(harness.Laptop)).Want(200)
			return "ada@example.com"
		},
		"phone code": func(w *harness.World) string {
			w.PostOTP(harness.PhoneNumber, w.PhoneCode(harness.PhoneNumber), harness.OnDevice(harness.Laptop)).Want(200)
			u, err := w.Store.User(w.T.Context(), store.ByPhone(harness.PhoneNumber))
			if err != nil {
				w.T.Fatal(err)
			}
			email := "ada@example.com"
			w.Patch(u.ID, store.UserPatch{Email: &email})
			return email
		},
	} {
		t.Run(door, func(t *testing.T) {
			w := harness.NewWorld(t)
			known := w.Do("POST", "/signup", harness.Credentials("other@example.com", harness.GoodPassword), harness.OnDevice(harness.Laptop)).Session()
			knows(w, open(w), deviceOf(w, known.User.ID), true)
		})
	}
}

// After a takeover, the account does not know the devices of its former holder.
func TestTakeoverForgetsDevices(t *testing.T) {
	w := harness.NewWorld(t)
	w.Do("POST", "/signup", harness.Credentials("ada@example.com", harness.GoodPassword), harness.OnDevice(harness.Mobile)).Want(200)
	squatter, err := w.Store.User(t.Context(), store.ByEmail("ada@example.com"))
	if err != nil {
		t.Fatal(err)
	}
	theirs := deviceOf(w, squatter.ID)
	knows(w, "ada@example.com", theirs, true)
	token := w.MagicLink("ada@example.com", nil)
	w.Do("POST", "/magic-link/verify", map[string]any{"token": token}, harness.OnDevice(harness.Laptop)).Want(200)
	knows(w, "ada@example.com", theirs, false)
	knows(w, "ada@example.com", deviceOf(w, squatter.ID), true)
}

// Signing out everywhere else keeps only the caller's device, and everywhere keeps none. The
// removed devices have no attempts of their own.
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
			w := harness.NewWorld(t)
			old := w.Do("POST", "/signup", harness.Credentials("ada@example.com", harness.GoodPassword), harness.OnDevice(harness.Mobile)).Session()
			theirs := deviceOf(w, old.User.ID)
			ada := w.Do("POST", "/login", harness.Credentials("ada@example.com", harness.GoodPassword), harness.OnDevice(harness.Laptop)).Want(200).Session()
			own := slices.DeleteFunc(devices(w, old.User.ID), func(d string) bool { return d == theirs })[0]
			eve := w.Do("POST", "/signup", harness.Credentials("eve@example.com", harness.GoodPassword), harness.OnDevice(harness.Mobile)).Session()
			knows(w, "ada@example.com", own, true)
			knows(w, "ada@example.com", theirs, true)
			if strings.HasSuffix(name, "ban") {
				until := w.Clock.Now().Add(time.Hour)
				w.Patch(old.User.ID, store.UserPatch{BannedUntil: &until})
			}
			w.Do(c.method, strings.ReplaceAll(c.path, "{id}", w.ClaimsOf(old).SessionID), nil, harness.Bearer(ada.AccessToken), harness.OnDevice(harness.Laptop)).Want(204)
			knows(w, "ada@example.com", own, c.own)
			knows(w, "ada@example.com", theirs, c.others)
			knows(w, "eve@example.com", deviceOf(w, eve.User.ID), true)
		})
	}
}

// A header that is no device identifier, or contains two, is ignored.
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
		"two":          {[]string{harness.Laptop, harness.Mobile}, false},
		"twice":        {[]string{harness.Laptop, harness.Laptop}, false},
	} {
		for _, from := range []string{"header", "cookie"} {
			t.Run(name+" "+from, func(t *testing.T) {
				w := harness.NewWorld(t)
				r := httptest.NewRequestWithContext(t.Context(), "POST", "/signup", strings.NewReader(`{"email":"ada@example.com","password":"`+harness.GoodPassword+`"}`))
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
				a := &harness.Answer{T: t, Status: rec.Code, Header: rec.Header(), Body: rec.Body.Bytes()}
				if got := deviceOf(w, a.Session().User.ID) != ""; got != c.want {
					t.Errorf("a device: %v, want %v", got, c.want)
				}
				if set := a.Header.Values("Set-Cookie"); len(set) > 0 {
					t.Errorf("set for a program: %q", set)
				}
			})
		}
	}
}

// In cookie mode a browser becomes a device with its first completed sign-in and keeps its
// identifier.
func TestDeviceCookie(t *testing.T) {
	for name, c := range map[string]struct {
		cookie string
		opts   []auth.Option
	}{
		"https":           {"__Host-authmount-device", []auth.Option{auth.WithCookies(auth.CookieOptions{})}},
		"of another name": {"__Host-my-device", []auth.Option{auth.WithCookies(auth.CookieOptions{Name: "my"})}},
		"loopback":        {"authmount-device", []auth.Option{auth.WithCookies(auth.CookieOptions{}), auth.WithBaseURL("http://localhost:8080/auth/v1"), auth.WithDevMode()}},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t, c.opts...)
			cookie := func(a *harness.Answer) *http.Cookie {
				for _, k := range (&http.Response{Header: a.Header}).Cookies() {
					if strings.HasSuffix(k.Name, "-device") {
						return k
					}
				}
				return nil
			}
			first := w.Do("POST", "/signup", harness.Credentials("ada@example.com", harness.GoodPassword), harness.Transport).Want(200)
			k := cookie(first)
			if k == nil || k.Name != c.cookie || len(k.Value) < 16 || !k.HttpOnly || k.Secure != strings.HasPrefix(c.cookie, "__Host-") ||
				k.SameSite != http.SameSiteLaxMode || k.Path != "/" || k.Domain != "" || k.MaxAge != 400*24*60*60 {
				t.Fatalf("cookie %v", k)
			}
			u := harness.DecodeAs[harness.Session](first).User
			device := deviceOf(w, u.ID)
			knows(w, "ada@example.com", device, true)

			sent := harness.Header{Name: "Cookie", Value: k.Name + "=" + k.Value}
			again := w.Do("POST", "/login", harness.Credentials("ada@example.com", harness.GoodPassword), sent, harness.Transport).Want(200)
			if k := cookie(again); k != nil {
				t.Errorf("a second cookie: %v", k)
			}
			if got := deviceOf(w, u.ID); got != device { // of both sessions
				t.Errorf("device %q, then %q", device, got)
			}
			if k := cookie(w.Do("POST", "/login", harness.Credentials("ada@example.com", harness.GoodPassword), sent, harness.Transport, harness.OnDevice(harness.Laptop)).Want(200)); k != nil {
				t.Errorf("a cookie beside a header: %v", k)
			}
			if k := cookie(w.Do("POST", "/login", harness.Credentials("ada@example.com", "not the password"), harness.Transport).Want(401)); k != nil {
				t.Errorf("a cookie for a wrong password: %v", k)
			}
			all := (&http.Response{Header: first.Header}).Cookies()
			i := slices.IndexFunc(all, func(k *http.Cookie) bool { return strings.HasSuffix(k.Name, "-refresh") })
			refresh := harness.Header{Name: "Cookie", Value: all[i].Name + "=" + all[i].Value}
			if k := cookie(w.Do("POST", "/refresh", nil, refresh, harness.Header{Name: "Sec-Fetch-Site", Value: "same-origin"}).Want(200)); k != nil {
				t.Errorf("a cookie for a refresh: %v", k)
			}
			two := harness.Header{Name: "Cookie", Value: k.Name + "=" + k.Value + "; " + k.Name + "=" + harness.Laptop}
			if k := cookie(w.Do("POST", "/login", harness.Credentials("ada@example.com", harness.GoodPassword), two, harness.Transport).Want(200)); k == nil {
				t.Error("one of two cookies was believed")
			}
		})
	}
}

// addSession creates a session directly in the store.
func addSession(w *harness.World, userID string) {
	w.T.Helper()
	now := w.Clock.Now()
	_, err := w.Store.CreateSession(w.T.Context(), store.CreateSession{Change: store.Change{Now: now, By: auth.Authority{System: "test"}}, NewSession: store.NewSession{Session: auth.Session{
		ID: uuid.NewString(), UserID: userID, AAL: store.LevelAAL1, AMR: []auth.AMR{{Method: "password", Timestamp: now.Unix()}},
		CreatedAt: now, LastActiveAt: now, RotatedAt: now, IdleUntil: now.Add(time.Hour),
	}}})
	if err != nil {
		w.T.Fatal(err)
	}
}

// A user has a limited number of sessions. The least recently active one ends, and this is
// reported.
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
			w := harness.NewWorld(t, append(c.opts, auth.WithRateLimits(auth.RateLimits{Off: true}))...)
			first := w.Member("ada@example.com")
			var second string
			for i := 1; i < c.made; i++ {
				w.Clock.Advance(time.Second)
				if i == 2 { // the active session stays
					first = w.PostRefresh(first.RefreshToken).Session()
				}
				if 1 < i && i < c.made-2 { // hashing takes its time
					addSession(w, first.User.ID)
					continue
				}
				s := w.Do("POST", "/login", harness.Credentials("ada@example.com", harness.GoodPassword)).Session()
				if i == 1 {
					second = s.AccessToken
				}
			}
			w.Mu.Lock()
			for _, e := range w.Events {
				if e.Type == auth.EventSessionsEnded {
					ended = append(ended, e.SessionIDs...)
				}
			}
			w.Mu.Unlock()
			if n := len(devices(w, first.User.ID)); n != c.max {
				t.Errorf("%d sessions, want %d", n, c.max)
			}
			if len(ended) != c.made-c.max {
				t.Errorf("told of %d that ended, want %d", len(ended), c.made-c.max)
			}
			if !w.Alive(first.AccessToken) && c.max > 2 {
				t.Error("the active session ended")
			}
			if w.Alive(second) != (c.made == c.max) {
				t.Error("the least active session did not end")
			}
		})
	}
}

// asked remembers the device of the last store call.
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
	w := &harness.World{T: t, Env: authtest.NewOn(t, store)}
	u := w.Do("POST", "/signup", harness.Credentials("ada@example.com", harness.GoodPassword), harness.OnDevice(harness.Laptop)).Session().User
	w.Do("POST", "/login", harness.Credentials("ada@example.com", harness.GoodPassword), harness.OnDevice(harness.Laptop)).Want(200)
	if want := deviceOf(w, u.ID); store.device != want {
		t.Errorf("asked about %q, want %q", store.device, want)
	}
}
