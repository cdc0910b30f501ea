package admin_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// holds reports whether the browser's access token has the role of editors.
func (b *linkBrowser) holds() bool {
	b.o.t.Helper()
	return slices.Contains(b.signedIn().Roles, "editor")
}

// signsIn signs the browser in with the password of authtest, as a page's script does.
func (b *linkBrowser) signsIn(email string) {
	b.json("/login", `{"email":"`+email+`","password":"`+authtest.Password+`"}`)
	b.signedIn()
}

// A signed-in account that accepts a role which requires a second factor sets one up on the
// page, in the same session, and continues where the invitation leads.
func TestInvitationWithinASessionContinuesToFactor(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o, _ := withRole(t, st, inCookies(editorsNeedFactor, auth.WithMFA(auth.MFAOptions{TrustDevices: time.Hour}))...)
		opened := func(email, to string) (*linkBrowser, string) {
			t.Helper()
			_, err := o.adm.Invite(t.Context(), admin.System("test"), admin.InviteParams{Email: email, Roles: []string{"editor"}, RedirectTo: to})
			o.must(err)
			return o.browser(), o.Mail(t, email, auth.KindInvitation).Link
		}
		for _, to := range []string{"", "https://app.test/in"} {
			email := "carol" + strings.TrimPrefix(to, "https://app.test/") + "@example.com"
			o.LoginAs(t, email)
			b, link := opened(email, to)
			b.signsIn(email)
			before := b.signedIn()
			b.open(link)
			b.press()
			secret := b.enrols()
			b.press("do", "enable", "code", o.appCode(secret))
			b.shows(200, "recovery codes")
			if next := `href="` + to + `"`; to != "" && !strings.Contains(b.body, next) {
				t.Errorf("the page does not lead to %s: %s", to, b.body)
			}
			if c := b.signedIn(); c.AAL != store.LevelAAL2 || !b.holds() || c.SessionID != before.SessionID {
				t.Errorf("signed in with %s, %v", c.AAL, c.Roles)
			}
			b.noSecretsIn(link)
		}

		// JSON gets the session, as at a refresh: its tokens lack the role.
		json := o.LoginAs(t, "json@example.com")
		_, link := opened("json@example.com", "")
		u, err := url.Parse(link)
		o.must(err)
		w := o.postJSON("/invitations/accept", `{"token":"`+u.Query().Get("token")+`"}`, json.AccessToken)
		if w.Code != 200 || slices.Contains(o.rolesIn(w), "editor") {
			t.Errorf("JSON got %d %s", w.Code, w.Body)
		}

		// An account with a factor is asked for it, unless the session or the device has
		// shown it.
		_, secret, _ := o.withFactor("dora@example.com")
		b, link := opened("dora@example.com", "")
		login := `{"email":"dora@example.com","password":"` + authtest.Password + `"}`
		waits := b.json("/login", login)
		b.json("/2fa/verify", `{"mfa_token":"`+waits["mfa_token"].(string)+`","totp_code":"`+o.appCode(secret)+`","trust_device":true}`)
		b.json("/logout", "")
		b.json("/login", login)
		if c := b.signedIn(); c.AAL != store.LevelAAL1 {
			t.Fatalf("signed in with %s", c.AAL)
		}
		o.Clock.Advance(2 * time.Hour) // the trust ends
		b.json("/refresh", "")
		b.open(link)
		b.press()
		b.shows(200, "authenticator app")
		b.press("code", o.appCode(secret))
		b.shows(200, "You are signed in")
		if c := b.signedIn(); c.AAL != store.LevelAAL2 || !b.holds() {
			t.Errorf("signed in with %s, %v", c.AAL, c.Roles)
		}

		_, secret, _ = o.withFactor("emil@example.com")
		b, link = opened("emil@example.com", "")
		waits = b.json("/login", strings.Replace(login, "dora", "emil", 1))
		b.json("/2fa/verify", `{"mfa_token":"`+waits["mfa_token"].(string)+`","totp_code":"`+o.appCode(secret)+`"}`)
		b.open(link)
		b.press()
		b.shows(200, "You are signed in")
		if !b.holds() {
			t.Error("the factor was shown, but the role does not count")
		}
	})
}

// postJSON posts as a program with a bearer token.
func (o *office) postJSON(path, body, token string) *httptest.ResponseRecorder {
	o.t.Helper()
	r := httptest.NewRequestWithContext(o.t.Context(), http.MethodPost, "/auth/v1"+path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	o.Handler().ServeHTTP(w, r)
	return w
}

// rolesIn returns the roles in the access token of a response.
func (o *office) rolesIn(w *httptest.ResponseRecorder) []string {
	o.t.Helper()
	var s struct {
		AccessToken string `json:"access_token"`
	}
	o.must(json.Unmarshal(w.Body.Bytes(), &s))
	c, err := o.Verify(s.AccessToken)
	o.must(err)
	return c.Roles
}

// An old session accepts the role, and sets up no second factor without a new sign-in. So
// does one whose account waits for the acceptance of other roles, which comes first.
func TestInvitationWithoutEnrolment(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o, _ := withRole(t, st, inCookies(editorsNeedFactor)...)
		o.permit("clerk", clerkHolds...)
		for email, before := range map[string]func(string){
			"old@example.com": func(string) { o.Clock.Advance(3 * time.Hour) },
			"waiting@example.com": func(id string) {
				_, err := o.adm.Grant(t.Context(), admin.System("boss"), admin.GrantParams{UserID: id, Role: "clerk"})
				o.must(err)
			},
		} {
			user, b := o.LoginAs(t, email).User, o.browser()
			b.signsIn(email)
			before(user.ID)
			b.json("/refresh", "")
			_, err := o.adm.Invite(t.Context(), admin.System("test"), admin.InviteParams{Email: email, Roles: []string{"editor"}})
			o.must(err)
			b.open(o.Mail(t, email, auth.KindInvitation).Link)
			b.press()
			b.shows(200, "signed in")
			if u, err := o.adm.User(t.Context(), admin.System("test"), user.ID); err != nil || !slices.Contains(u.Roles, "editor") || u.MFAEnabled {
				t.Errorf("%s: %v, %v", email, u.Roles, err)
			}
		}
	})
}
