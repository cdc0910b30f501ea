package admin_test

import (
	"context"
	"errors"
	"fmt"
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
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

const password = "a rather long password"

// invitedToken returns the token of the last invitation mailed to an address.
func (o *office) invitedToken(email string) string {
	o.t.Helper()
	u, err := url.Parse(o.Mail(o.t, email, auth.KindInvitation).Link)
	if err != nil {
		o.t.Fatal(err)
	}
	return u.Query().Get("token")
}

// invite creates an invitation, and returns its token.
func (o *office) invite(who admin.Actor, email string, roles ...string) (admin.Invitation, string) {
	o.t.Helper()
	i, err := o.adm.Invite(o.t.Context(), who, admin.InviteParams{Email: email, Roles: roles})
	if err != nil {
		o.t.Fatal(err)
	}
	return i, o.invitedToken(email)
}

func (o *office) accept(token string, edit ...func(*auth.AcceptInvitationParams)) (*auth.Tokens, error) {
	p := auth.AcceptInvitationParams{Token: token, Password: password, FullName: "Ada"}
	for _, e := range edit {
		e(&p)
	}
	return o.AcceptInvitation(o.t.Context(), p)
}

// withRole is an office with the role "editor", which permits notes, and an operator who
// may grant it.
func withRole(t *testing.T, store auth.Store, opts ...auth.Option) (*office, *authtest.SignedIn) {
	t.Helper()
	o := newOffice(t, store, opts...)
	o.permit("editor", notes)
	return o, o.operator("boss@example.com", notes, admin.PermUsersWrite, admin.PermRolesAssign, admin.PermUsersRead)
}

// An invitation creates an account with its roles although sign-up is switched off, once.
func TestInvitationMakesAnAccount(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, boss := withRole(t, store, auth.WithSettings(auth.Settings{SignUp: auth.Off}))
		made := o.do(boss, "POST /invitations", `{"email":"Ada@Example.com","roles":["editor"],"metadata":{"team":"x"},"expires_in":3600}`).want(201)
		token := o.invitedToken("Ada@example.com")
		list := o.do(boss, "GET /invitations", "").want(200).body["invitations"].([]any)
		if len(list) != 1 || list[0].(map[string]any)["id"] != made.body["id"] {
			t.Fatalf("listed %v", list)
		}
		page := o.page("GET", "/invitations/accept?token="+token, "")
		if !strings.Contains(page, `name="password"`) {
			t.Errorf("page: %s", page)
		}
		tokens, err := o.accept(token)
		if err != nil {
			t.Fatal(err)
		}
		u := tokens.User
		if !slices.Equal(u.Roles, []string{"editor"}) || !u.EmailVerified() || u.AppMetadata["team"] != "x" || u.FullName != "Ada" {
			t.Errorf("made %+v", u)
		}
		_, err = o.accept(token)
		wantCode(t, err, auth.CodeInvalidToken)
		if list := o.do(boss, "GET /invitations", "").want(200).body["invitations"].([]any); len(list) != 0 {
			t.Errorf("listed still: %v", list)
		}
		if _, err := o.Login(t.Context(), auth.LoginParams{Email: "ada@example.com", Password: password}); err != nil {
			t.Error(err)
		}
		if r := o.audit()[0]; r.Type != auth.EventInvitationAccepted || r.Record.Target != "Ada@example.com" || r.UserID != u.ID {
			t.Errorf("recorded %+v", r)
		}
	})
}

// A page of invitations starts where the one before ended.
func TestInvitationPages(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o, _ := withRole(t, st)
		system := admin.System("test").Accepting()
		var want, got []string
		for i := range 3 {
			o.Clock.Advance(time.Minute)
			made, err := o.adm.Invite(t.Context(), system, admin.InviteParams{Email: fmt.Sprintf("u%d@example.com", i)})
			if err != nil {
				t.Fatal(err)
			}
			want = append([]string{made.ID}, want...)
		}
		p := admin.InvitationsParams{Limit: 2}
		for range 5 {
			page, err := o.adm.Invitations(t.Context(), system, p)
			if err != nil {
				t.Fatal(err)
			}
			for _, i := range page.Invitations {
				got = append(got, i.ID)
			}
			if page.NextCursor == nil {
				break
			}
			p.Cursor = *page.NextCursor
		}
		if !slices.Equal(got, want) {
			t.Errorf("listed %v, want %v", got, want)
		}
	})
}

// page requests a page of links as a browser does.
func (o *office) page(method, path, form string, headers ...string) string {
	o.t.Helper()
	r := httptest.NewRequestWithContext(o.t.Context(), method, "/auth/v1"+path, strings.NewReader(form))
	r.Header.Set("Accept", "text/html")
	r.Header.Set("User-Agent", "Mozilla/5.0")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	w := httptest.NewRecorder()
	o.Handler().ServeHTTP(w, r)
	return w.Body.String()
}

// The page's form accepts the invitation, and shows the form again for a bad password.
func TestInvitationPage(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, boss := withRole(t, store)
		_, token := o.invite(actor(boss), "ada@example.com", "editor")
		if page := o.page("POST", "/invitations/accept", "token="+token+"&password=short"); !strings.Contains(page, "fewer than") {
			t.Errorf("page: %s", page)
		}
		if page := o.page("POST", "/invitations/accept", "token="+token+"&password="); !strings.Contains(page, "<form") {
			t.Errorf("a form without a password: %s", page)
		}
		if page := o.page("POST", "/invitations/accept", "token="+token+"&password="+url.QueryEscape(password)); !strings.Contains(page, "Invitation accepted") {
			t.Errorf("page: %s", page)
		}
		if page := o.page("GET", "/invitations/accept?token="+token, ""); strings.Contains(page, "<form") {
			t.Errorf("page: %s", page)
		}
	})
}

// The endpoint reports an account only if it has verified the address or is signed in.
func TestInvitationTellsOfAccounts(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, boss := withRole(t, store)
		eve, err := o.SignUp(t.Context(), auth.SignUpParams{Email: "eve@example.com", Password: password})
		if err != nil {
			t.Fatal(err)
		}
		_, token := o.invite(actor(boss), "eve@example.com")
		for access, want := range map[string]string{"": `"account_exists":false`, eve.Tokens.AccessToken: `"account_exists":true`} {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/auth/v1/invitations/accept?token="+token, nil)
			if access != "" {
				r.Header.Set("Authorization", "Bearer "+access)
			}
			w := httptest.NewRecorder()
			o.Handler().ServeHTTP(w, r)
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("signed in %t: %s", access != "", w.Body)
			}
		}
	})
}

// A newer invitation, revocation, time and a maker who lost the permission end an
// invitation. No account is created and no role given then.
func TestInvitationEnds(t *testing.T) {
	code := admin.System("test").Accepting()
	ends := map[string]func(t *testing.T, o *office, boss *authtest.SignedIn, i admin.Invitation) error{
		"sent again": func(t *testing.T, o *office, boss *authtest.SignedIn, i admin.Invitation) error {
			o.Clock.Advance(time.Minute)
			_, err := o.adm.InviteAgain(t.Context(), actor(boss), i.ID)
			return err
		},
		"taken back": func(t *testing.T, o *office, boss *authtest.SignedIn, i admin.Invitation) error {
			return o.adm.WithdrawInvitation(t.Context(), actor(boss), i.ID)
		},
		"expired": func(_ *testing.T, o *office, _ *authtest.SignedIn, _ admin.Invitation) error {
			o.Clock.Advance(7 * 24 * time.Hour)
			return nil
		},
		"the inviter is demoted": func(t *testing.T, o *office, boss *authtest.SignedIn, _ admin.Invitation) error {
			_, err := o.adm.SetRoles(t.Context(), code, admin.SetRolesParams{UserID: boss.User.ID})
			return err
		},
		"the inviter is banned": func(t *testing.T, o *office, boss *authtest.SignedIn, _ admin.Invitation) error {
			_, err := o.adm.BanUser(t.Context(), code, admin.BanUserParams{UserID: boss.User.ID, Reason: "x"})
			return err
		},
		"the inviter is deleted": func(t *testing.T, o *office, boss *authtest.SignedIn, _ admin.Invitation) error {
			return o.adm.DeleteUser(t.Context(), code, admin.DeleteUserParams{UserID: boss.User.ID, Reason: "x"})
		},
		"the role grows beyond the inviter": func(t *testing.T, o *office, _ *authtest.SignedIn, _ admin.Invitation) error {
			return o.permitIn(t.Context(), "editor", notes, "money.send")
		},
		"the role is deleted": func(t *testing.T, o *office, _ *authtest.SignedIn, _ admin.Invitation) error {
			_, err := o.adm.DeleteRole(t.Context(), code, admin.DeleteRoleParams{Name: "editor"})
			return err
		},
	}
	onStores(t, func(t *testing.T, st auth.Store) {
		n := 0
		o, _ := withRole(t, st)
		for name, end := range ends {
			n++
			o.permit("editor", notes)
			email := fmt.Sprintf("ada%d@example.com", n)
			boss := o.operator(fmt.Sprintf("boss%d@example.com", n), notes, admin.PermUsersWrite, admin.PermRolesAssign)
			i, token := o.invite(actor(boss), email, "editor")
			if err := end(t, o, boss, i); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			_, err := o.accept(token)
			if wantCode(t, err, auth.CodeInvalidToken); t.Failed() {
				t.Fatal(name)
			}
			if _, err := st.User(t.Context(), store.ByEmail(email)); err == nil {
				t.Errorf("%s: there is an account", name)
			}
		}
	})
}

// An invitation gives no roles that its maker could not grant directly, and only actors
// who could grant its roles may change it.
func TestInvitationRules(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, boss := withRole(t, store)
		writer := o.operator("writer@example.com", notes, admin.PermUsersWrite)
		weak := o.operator("weak@example.com", admin.PermUsersWrite, admin.PermRolesAssign)
		o.do(writer, "POST /invitations", `{"email":"a@example.com","roles":["editor"]}`).want(403, auth.CodeMissingPermission)
		o.do(weak, "POST /invitations", `{"email":"a@example.com","roles":["editor"]}`).want(403, auth.CodeTargetStronger)
		o.do(weak, "POST /invitations", `{"email":"a@example.com","roles":["owner"]}`).want(403, auth.CodeTargetStronger)
		o.do(weak, "POST /invitations", `{"email":"weak@example.com"}`).want(403, auth.CodeTargetStronger)
		none := o.do(boss, "POST /invitations", `{"email":"a@example.com","roles":["editor","nothing"]}`).want(404, auth.CodeRoleNotFound)
		if none.body["message"] != `There is no role "nothing".` {
			t.Error(none.body)
		}
		for _, body := range []string{`{"email":"no address"}`, `{"email":"a@example.com","expires_in":0}`, `{"email":"a@example.com","expires_in":299}`, `{"email":"a@example.com","expires_in":99999999999}`} {
			o.do(boss, "POST /invitations", body).want(422, auth.CodeValidationFailed)
		}
		o.do(boss, "POST /invitations", `{"email":"a@example.com","redirect_to":"https://evil.example/"}`).want(400, auth.CodeRedirectNotAllowed)
		i, token := o.invite(actor(boss), "a@example.com", "editor")
		o.do(weak, "POST /invitations/"+i.ID+"/resend", "").want(403, auth.CodeTargetStronger)
		o.do(weak, "DELETE /invitations/"+i.ID, "").want(403, auth.CodeTargetStronger)
		o.do(weak, "POST /invitations", `{"email":"a@example.com"}`).want(403, auth.CodeTargetStronger)
		o.do(boss, "POST /invitations/"+i.ID+"/resend", "").want(429, auth.CodeRateLimited)
		o.do(boss, "DELETE /invitations/"+strings.Repeat("0", 36), "").want(404, auth.CodeNotFound)
		stale := o.later(boss)
		o.do(stale, "POST /invitations", `{"email":"b@example.com","roles":["editor"]}`).want(403, auth.CodeReauthNeeded)
		o.do(stale, "POST /invitations", `{"email":"b@example.com"}`).want(201)
		if _, err := o.accept(token); err != nil {
			t.Error(err)
		}
	})
}

// A verified account accepts roles only within a session of its own. An account that was
// never verified is taken over by the reader of the mailbox.
func TestInvitationOfSomebodyWhoHasAnAccount(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o, boss := withRole(t, st)
		ada := o.LoginAs(t, "ada@example.com")
		eve := o.LoginAs(t, "eve@example.com")
		within := func(s *authtest.SignedIn) func(*auth.AcceptInvitationParams) {
			return func(p *auth.AcceptInvitationParams) {
				p.Password, p.FullName, p.Within = "", "", auth.Caller{UserID: s.User.ID, SessionID: s.SessionID}
			}
		}
		_, token := o.invite(actor(boss), "ada@example.com", "editor")
		_, err := o.accept(token)
		wantCode(t, err, auth.CodeAccountExists)
		_, err = o.accept(token, within(eve)) // another user's session does not count
		wantCode(t, err, auth.CodeAccountExists)
		tokens, err := o.accept(token, within(ada))
		if err != nil {
			t.Fatal(err)
		}
		if tokens.SessionID != ada.SessionID || !slices.Contains(tokens.User.Roles, "editor") {
			t.Errorf("%s %v", tokens.SessionID, tokens.User.Roles)
		}
		if u, _ := st.User(t.Context(), store.ByID(eve.User.ID)); len(u.Roles) != 0 {
			t.Errorf("eve has %v", u.Roles)
		}

		squatter := o.LoginAs(t, "bob@example.com", authtest.Unverified())
		_, token = o.invite(actor(boss), "bob@example.com", "editor")
		if tokens, err = o.accept(token); err != nil {
			t.Fatal(err)
		}
		if tokens.User.ID != squatter.User.ID || !slices.Equal(tokens.User.Roles, []string{"editor"}) {
			t.Errorf("%+v", tokens.User)
		}
		if _, err := o.Refresh(t.Context(), auth.RefreshParams{RefreshToken: squatter.RefreshToken}); err == nil {
			t.Error("the squatter is signed in still")
		}
	})
}

// With sign-up switched off, only a user of a provider that verified the invited address
// can accept.
func TestInvitationByProvider(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		idp := authtest.StartProvider(t)
		o, boss := withRole(t, store, auth.WithProvider(idp.Google()), auth.WithSettings(auth.Settings{SignUp: auth.Off}))
		come := func(token string, who authtest.Person) (*auth.OAuthResult, error) {
			idp.SignsIn(who)
			const browser = "a browser"
			to, err := o.StartOAuth(t.Context(), auth.StartOAuthParams{Provider: "google", Browser: browser, Invitation: token})
			if err != nil {
				t.Fatal(err)
			}
			q := idp.Authorize(t, to)
			return o.FinishOAuth(t.Context(), auth.OAuthCallback{Provider: "google", State: q.Get("state"), Code: q.Get("code"), Issuer: q.Get("iss"), Browser: browser})
		}
		_, token := o.invite(actor(boss), "ada@example.com", "editor")
		for name, who := range map[string]authtest.Person{
			"another address": {Subject: "1", Email: "eve@example.com", EmailVerified: true},
			"one not proved":  {Subject: "2", Email: "ada@example.com"},
		} {
			if _, err := come(token, who); err == nil {
				t.Errorf("%s: accepted", name)
			}
		}
		_, err := come("", authtest.Person{Subject: "3", Email: "ada@example.com", EmailVerified: true})
		wantCode(t, err, auth.CodeSignupDisabled)
		ada := authtest.Person{Subject: "4", Email: "ada@example.com", EmailVerified: true}
		res, err := come(token, ada)
		if err != nil {
			t.Fatal(err)
		}
		if u := res.Tokens.User; !slices.Equal(u.Roles, []string{"editor"}) || len(u.Identities) != 1 {
			t.Errorf("made %+v", u)
		}
		_, err = come(token, ada)
		wantCode(t, err, auth.CodeInvalidToken)

		bob := o.LoginAs(t, "bob@example.com")
		_, token = o.invite(actor(boss), "bob@example.com", "editor")
		if res, err = come(token, authtest.Person{Subject: "5", Email: "bob@example.com", EmailVerified: true}); err != nil {
			t.Fatal(err)
		}
		if u := res.Tokens.User; u.ID != bob.User.ID || !slices.Contains(u.Roles, "editor") || len(u.Identities) != 1 {
			t.Errorf("joined %+v", u)
		}
	})
}

// An invitation that is accepted twice at once creates one account.
func TestInvitationAcceptedTwiceAtOnce(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o, boss := withRole(t, store)
		for round := range 3 {
			email := fmt.Sprintf("ada%d@example.com", round)
			_, token := o.invite(actor(boss), email, "editor")
			var wg sync.WaitGroup
			errs := make([]error, 4)
			for i := range errs {
				wg.Go(func() { _, errs[i] = o.accept(token) })
			}
			wg.Wait()
			won := 0
			for _, err := range errs {
				if err == nil {
					won++
					continue
				}
				if !errors.Is(err, auth.CodeInvalidToken) && !errors.Is(err, auth.CodeAccountExists) { // the account of the winner
					t.Errorf("round %d: %v", round, err)
				}
			}
			if won != 1 {
				t.Errorf("round %d: %d accepted", round, won)
			}
		}
	})
}

// An event that ends an invitation between the acceptance's read and its change prevails.
func TestInvitationEndsWhileItIsAccepted(t *testing.T) {
	code := admin.System("test").Accepting()
	onStores(t, func(t *testing.T, st auth.Store) {
		tap := storetap.New(st)
		o, _ := withRole(t, tap)
		n := 0
		for name, end := range map[string]func(ctx context.Context, boss *authtest.SignedIn, i admin.Invitation) error{
			"taken back": func(ctx context.Context, _ *authtest.SignedIn, i admin.Invitation) error {
				return o.adm.WithdrawInvitation(ctx, code, i.ID)
			},
			"the inviter is demoted": func(ctx context.Context, boss *authtest.SignedIn, _ admin.Invitation) error {
				_, err := o.adm.SetRoles(ctx, code, admin.SetRolesParams{UserID: boss.User.ID})
				return err
			},
			"the inviter is banned": func(ctx context.Context, boss *authtest.SignedIn, _ admin.Invitation) error {
				_, err := o.adm.BanUser(ctx, code, admin.BanUserParams{UserID: boss.User.ID, Reason: "x"})
				return err
			},
			"a role grows": func(ctx context.Context, _ *authtest.SignedIn, _ admin.Invitation) error {
				return o.permitIn(ctx, "editor", "money.send")
			},
		} {
			for kind, prepare := range map[string]func(email string) func(*auth.AcceptInvitationParams){
				"of a new account": func(string) func(*auth.AcceptInvitationParams) { return func(*auth.AcceptInvitationParams) {} },
				"within a session": func(email string) func(*auth.AcceptInvitationParams) {
					s := o.LoginAs(t, email)
					return func(p *auth.AcceptInvitationParams) {
						p.Password, p.Within = "", auth.Caller{UserID: s.User.ID, SessionID: s.SessionID}
					}
				},
			} {
				n++
				email := fmt.Sprintf("ada%d@example.com", n)
				o.permit("editor", notes)
				boss := o.operator(fmt.Sprintf("inviter%d@example.com", n), notes, admin.PermUsersWrite, admin.PermRolesAssign)
				edit := prepare(email)
				i, token := o.invite(actor(boss), email, "editor")
				var once sync.Once
				tap.Reset(storetap.Hooks{Before: func(ctx context.Context, method string, _ int) {
					if method == "RedeemToken" {
						once.Do(func() {
							if err := end(ctx, boss, i); err != nil {
								t.Errorf("%s: %v", name, err)
							}
						})
					}
				}})
				_, err := o.accept(token, edit)
				tap.Reset(storetap.Hooks{})
				wantCode(t, err, auth.CodeInvalidToken)
				if u, err := st.User(t.Context(), store.ByEmail(email)); err == nil && len(u.Roles) > 0 {
					t.Errorf("%s %s: has %v", name, kind, u.Roles)
				}
			}
		}
	})
}
