package admin_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// firstOwnerLink returns the token of a new link.
func (o *office) firstOwnerLink() string {
	o.t.Helper()
	link, err := o.adm.FirstOwnerLink(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	u, err := url.Parse(link)
	if err != nil || !strings.HasSuffix(u.Path, "/auth/v1/admin/first-owner") {
		o.t.Fatalf("the link leads to %s: %v", link, err)
	}
	return u.Query().Get("token")
}

func (o *office) beOwner(who *authtest.SignedIn, token string) *answer {
	o.t.Helper()
	return o.do(who, "POST /first-owner", `{"token":"`+token+`"}`)
}

// A signed-in user with a verified address and the newest link becomes the owner, if there
// never was one.
func TestFirstOwner(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		var logged bytes.Buffer
		var mu sync.Mutex
		o := newOffice(t, st, auth.WithLogger(slog.New(slog.NewTextHandler(&locked{&mu, &logged}, &slog.HandlerOptions{Level: slog.LevelDebug}))))
		ada := o.LoginAs(t, "ada@example.com")
		unproved := o.LoginAs(t, "ben@example.com")
		o.patch(unproved.User.ID, store.UserPatch{EmailVerifiedAt: &time.Time{}})

		older, token := o.firstOwnerLink(), o.firstOwnerLink()
		o.beOwner(nil, token).want(401, auth.CodeMissingToken)
		o.beOwner(unproved, token).want(403, auth.CodeEmailNotVerified)
		o.beOwner(ada, older).want(400, auth.CodeInvalidToken)
		o.beOwner(ada, "").want(422, auth.CodeValidationFailed)
		o.Clock.Advance(30 * time.Minute)
		ada = o.renewed(ada)
		o.beOwner(ada, token).want(400, auth.CodeInvalidToken)

		token = o.firstOwnerLink()
		before := len(o.audit())
		o.beOwner(ada, token).want(204)
		if roles := o.read(ada.User.ID).Roles; !slices.Contains(roles, auth.RoleOwner) {
			t.Fatalf("roles %v", roles)
		}
		rows := o.audit()
		if len(rows)-before != 1 || rows[0].Type != auth.EventRolesChanged || rows[0].Record.Actor != "ada@example.com" || rows[0].UserID != ada.User.ID {
			t.Errorf("recorded %+v", rows[0])
		}
		eve := o.LoginAs(t, "eve@example.com")
		o.beOwner(eve, token).want(409, auth.CodeRoleInUse)
		mu.Lock()
		defer mu.Unlock()
		for _, secret := range []string{older, token} {
			if strings.Contains(logged.String(), secret) {
				t.Error("the log has a link")
			}
		}
	})
}

// locked is a writer for concurrent use.
type locked struct {
	mu *sync.Mutex
	w  *bytes.Buffer
}

func (l *locked) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// After the first owner, even a former one, no link is created, and older links open
// nothing.
func TestFirstOwnerIsOnce(t *testing.T) {
	code := admin.System("test").Accepting()
	ends := map[string]func(o *office, id string) error{
		"still there": func(*office, string) error { return nil },
		"demoted": func(o *office, id string) error {
			o.patch(id, store.UserPatch{Roles: &[]string{}})
			return nil
		},
		"banned": func(o *office, id string) error {
			until := o.Clock.Now().Add(time.Hour)
			o.patch(id, store.UserPatch{BannedUntil: &until})
			return nil
		},
		"deleted": func(o *office, id string) error {
			return o.behind().DeleteUser(o.t.Context(), store.DeleteUser{Change: o.change(), UserID: id})
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, store auth.Store) {
				o := newOffice(t, store)
				token := o.firstOwnerLink()
				first := o.imported("first@example.com")
				if _, err := o.adm.Grant(t.Context(), code, admin.GrantParams{UserID: first.User.ID, Role: auth.RoleOwner}); err != nil {
					t.Fatal(err)
				}
				if err := end(o, first.User.ID); err != nil {
					t.Fatal(err)
				}
				ada := o.LoginAs(t, "ada@example.com")
				o.beOwner(ada, token).want(409, auth.CodeRoleInUse)
				if slices.Contains(o.read(ada.User.ID).Roles, auth.RoleOwner) {
					t.Error("a second first owner")
				}
				_, err := o.adm.FirstOwnerLink(t.Context())
				wantCode(t, err, auth.CodeRoleInUse)
			})
		})
	}
}

// Of several visitors with the link one becomes the owner.
func TestFirstOwnersAtOnce(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		token := o.firstOwnerLink()
		var people []*authtest.SignedIn
		for i := range 6 {
			people = append(people, o.LoginAs(t, fmt.Sprintf("p%d@example.com", i)))
		}
		var all sync.WaitGroup
		for _, p := range people {
			all.Go(func() { o.beOwner(p, token) })
		}
		all.Wait()
		owners := 0
		for _, p := range people {
			if slices.Contains(o.read(p.User.ID).Roles, auth.RoleOwner) {
				owners++
			}
		}
		if owners != 1 {
			t.Errorf("%d owners", owners)
		}
	})
}

// The page asks a signed-in user to confirm, and tells all others to sign in.
func TestFirstOwnerPage(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store, auth.WithCookies(auth.CookieOptions{}))
		token := o.firstOwnerLink()
		ada := o.LoginAs(t, "ada@example.com")
		var cookies []*http.Cookie
		send := func(method, body string, headers ...string) *httptest.ResponseRecorder {
			t.Helper()
			r := httptest.NewRequestWithContext(t.Context(), method, "/auth/v1/admin/first-owner?token="+token, strings.NewReader(body))
			r.Header.Set("Accept", "text/html")
			if body != "" {
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			}
			for _, h := range append([]string{"Sec-Fetch-Site: same-origin"}, headers...) {
				name, value, _ := strings.Cut(h, ": ")
				r.Header.Set(name, value)
			}
			for _, c := range cookies {
				r.AddCookie(c)
			}
			w := httptest.NewRecorder()
			o.mux.ServeHTTP(w, r)
			return w
		}
		form := url.Values{"token": {token}}.Encode()
		if w := send("GET", ""); w.Code != 200 || !strings.Contains(w.Body.String(), "Sign in to the account") || strings.Contains(w.Body.String(), "<form") {
			t.Errorf("nobody is shown %d %s", w.Code, w.Body)
		}
		if w := send("POST", form); w.Code != 401 {
			t.Errorf("nobody's form: %d", w.Code)
		}
		signIn := httptest.NewRecorder()
		if err := o.SetCookies(signIn, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil), &ada.Tokens); err != nil {
			t.Fatal(err)
		}
		cookies = signIn.Result().Cookies()
		w := send("GET", "")
		if w.Code != 200 || !strings.Contains(w.Body.String(), "<form") || strings.Contains(w.Body.String(), "ada@example.com") {
			t.Errorf("ada is shown %d %s", w.Code, w.Body)
		}
		if w := send("GET", "", "Accept-Language: de"); !strings.Contains(w.Body.String(), "Eigentümer werden") {
			t.Errorf("in German: %s", w.Body)
		}
		if slices.Contains(o.read(ada.User.ID).Roles, auth.RoleOwner) {
			t.Fatal("opening the page made an owner")
		}
		if w := send("POST", form, "Sec-Fetch-Site: cross-site", "Origin: https://evil.example"); w.Code != 403 {
			t.Errorf("another site's form: %d", w.Code)
		}
		if w := send("POST", form); w.Code != 200 || !strings.Contains(w.Body.String(), "You are the owner") {
			t.Errorf("the form: %d %s", w.Code, w.Body)
		}
		if !slices.Contains(o.read(ada.User.ID).Roles, auth.RoleOwner) {
			t.Error("the form made no owner")
		}
		if w := send("GET", ""); w.Code != 400 {
			t.Errorf("a link that was used: %d", w.Code)
		}
	})
}
