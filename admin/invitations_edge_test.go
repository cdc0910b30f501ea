package admin_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

func withinOf(s *authtest.SignedIn) func(*auth.AcceptInvitationParams) {
	return func(p *auth.AcceptInvitationParams) {
		p.Password, p.Within = "", auth.Caller{UserID: s.User.ID, SessionID: s.SessionID}
	}
}

// An invitation gives an account roles and no password. It is invalid for a banned user
// and for its maker.
func TestInvitationGivesNothingElse(t *testing.T) {
	o, boss := withRole(t, memstore.New())
	ada := o.LoginAs(t, "ada@example.com")
	_, token := o.invite(actor(boss), "ada@example.com", "editor")
	_, err := o.accept(token, withinOf(ada), func(p *auth.AcceptInvitationParams) { p.Password = password })
	wantCode(t, err, auth.CodeValidationFailed)
	if _, err := o.accept(token, withinOf(ada)); err != nil {
		t.Errorf("the invitation is used up: %v", err)
	}

	bob := o.LoginAs(t, "bob@example.com", authtest.Unverified())
	_, token = o.invite(actor(boss), "bob@example.com", "editor")
	if _, err := o.adm.BanUser(t.Context(), admin.System("test").Accepting(), admin.BanUserParams{UserID: bob.User.ID, Reason: "x"}); err != nil {
		t.Fatal(err)
	}
	_, err = o.accept(token)
	wantCode(t, err, auth.CodeUserBanned)

	_, token = o.invite(actor(boss), "cleo@example.com", "editor")
	cleo, at := "cleo@example.com", o.Clock.Now()
	o.patch(boss.User.ID, store.UserPatch{Email: &cleo, EmailVerifiedAt: &at})
	_, err = o.accept(token, withinOf(boss))
	wantCode(t, err, auth.CodeInvalidToken)
}

// A visitor whose identity at the provider belongs to another account cannot accept,
// although it has the invited address.
func TestInvitationOfAnotherIdentity(t *testing.T) {
	idp := authtest.StartProvider(t)
	o, boss := withRole(t, memstore.New(), auth.WithProvider(idp.Google()))
	idp.Now = o.Clock.Now
	come := func(token, address string) (*auth.OAuthResult, error) {
		idp.SignsIn(authtest.Person{Subject: "7", Email: address, EmailVerified: true})
		const browser = "a browser"
		to, err := o.StartOAuth(t.Context(), auth.StartOAuthParams{Provider: "google", Browser: browser, Invitation: token})
		if err != nil {
			t.Fatal(err)
		}
		q := idp.Authorize(t, to)
		return o.FinishOAuth(t.Context(), auth.OAuthCallback{Provider: "google", State: q.Get("state"), Code: q.Get("code"), Issuer: q.Get("iss"), Browser: browser})
	}
	bob, err := come("", "bob@example.com")
	if err != nil {
		t.Fatal(err)
	}
	_, token := o.invite(actor(boss), "ada@example.com", "editor")
	_, err = come(token, "ada@example.com")
	wantCode(t, err, auth.CodeInvalidToken)
	if u := o.read(bob.Tokens.User.ID); len(u.Roles) != 0 {
		t.Errorf("%s has %v", u.Email, u.Roles)
	}
	if _, err := o.accept(token); err != nil {
		t.Errorf("the invitation is used up: %v", err)
	}
}

// The page links to providers if one can return from them: with cookies. A redirect without
// cookies needs a code challenge, which the page does not have.
func TestInvitationPageLeadsToProviders(t *testing.T) {
	for name, c := range map[string]struct {
		to     string
		opts   []auth.Option
		leads  bool
		inside bool
	}{
		"neither":       {},
		"cookies":       {opts: []auth.Option{auth.WithCookies(auth.CookieOptions{})}, leads: true, inside: true},
		"a redirect":    {to: "https://app.example.com/in"},
		"both":          {to: "https://app.example.com/in", opts: []auth.Option{auth.WithCookies(auth.CookieOptions{})}, leads: true, inside: true},
		"none are on":   {to: "https://app.example.com/in", opts: []auth.Option{auth.WithSettings(auth.Settings{OAuth: auth.Off})}},
		"off, a cookie": {opts: []auth.Option{auth.WithCookies(auth.CookieOptions{}), auth.WithSettings(auth.Settings{OAuth: auth.Off})}, inside: true},
	} {
		t.Run(name, func(t *testing.T) {
			o, boss := withRole(t, memstore.New(), append(c.opts, auth.WithRedirectURLs("https://app.example.com/*"), auth.WithProvider(authtest.StartProvider(t).GitHub()))...)
			if _, err := o.adm.Invite(t.Context(), actor(boss), admin.InviteParams{Email: "ada@example.com", RedirectTo: c.to}); err != nil {
				t.Fatal(err)
			}
			token := o.invitedToken("ada@example.com")
			page := strings.ReplaceAll(o.page("GET", "/invitations/accept?token="+token, ""), "&amp;", "&")
			q := url.Values{"invitation": {token}}
			if c.to != "" {
				q.Set("redirect_to", c.to)
			}
			first, second := strings.Index(page, "/oauth/github?"+q.Encode()+`"`), strings.Index(page, "/oauth/"+theProvider+"?"+q.Encode()+`"`)
			if (first >= 0) != c.leads || (second >= 0) != c.leads || (first < second) != c.leads {
				t.Errorf("%d, %d: %s", first, second, page)
			}
			if first >= 0 {
				r := httptest.NewRequestWithContext(t.Context(), "GET", "https://auth.test/auth/v1/oauth/github?"+q.Encode(), nil)
				r.Header.Set("Sec-Fetch-Mode", "navigate")
				w := httptest.NewRecorder()
				if o.Handler().ServeHTTP(w, r); w.Code != 303 && w.Code != 302 {
					t.Errorf("the link is a dead end: %d %s", w.Code, w.Body)
				}
			}
			page = o.page("POST", "/invitations/accept", "token="+token+"&password="+url.QueryEscape(password))
			if c.to == "" && strings.Contains(page, "signed in") != c.inside {
				t.Errorf("accepted: %s", page)
			}
		})
	}
}

// An invitation that its maker could no longer create is shown to nobody.
func TestInvitationOfAFormerOperatorIsNotShown(t *testing.T) {
	o, boss := withRole(t, memstore.New())
	_, token := o.invite(actor(boss), "ada@example.com", "editor")
	if _, err := o.adm.SetRoles(t.Context(), admin.System("test").Accepting(), admin.SetRolesParams{UserID: boss.User.ID}); err != nil {
		t.Fatal(err)
	}
	if page := o.page("GET", "/invitations/accept?token="+token, ""); strings.Contains(page, "<form") {
		t.Errorf("page: %s", page)
	}
}

// Hooks and events report that an account was created by an invitation, and the record has
// the changes.
func TestInvitationIsTheMethod(t *testing.T) {
	var asked []auth.SignUpAttempt
	var events []auth.Event
	idp := authtest.StartProvider(t)
	o, boss := withRole(t, memstore.New(), auth.WithProvider(idp.Google()), auth.WithHooks(auth.Hooks{BeforeSignUp: func(_ context.Context, a auth.SignUpAttempt) error {
		asked = append(asked, a)
		return nil
	}, OnEvent: func(_ context.Context, e auth.Event) { events = append(events, e) }}))
	asked = nil
	_, token := o.invite(actor(boss), "eve@example.com", "editor")
	events = nil
	tokens, err := o.accept(token)
	if err != nil {
		t.Fatal(err)
	}
	if len(asked) != 1 || asked[0].Method != "invitation" || asked[0].Email != "eve@example.com" || !asked[0].EmailVerified {
		t.Errorf("asked about %+v", asked)
	}
	seen := 0
	for _, e := range events {
		switch e.Type {
		case auth.EventSignedUp:
			if e.UserID == tokens.User.ID && e.Method == "invitation" {
				seen++
			}
		case auth.EventInvitationAccepted:
			if was, _ := e.Record.Changes["roles"].Before.([]string); was == nil || len(was) != 0 {
				t.Errorf("before: %#v", e.Record.Changes["roles"].Before)
			}
			seen++
		}
	}
	if seen != 2 {
		t.Errorf("%d events", seen)
	}
}

// The language of an invitation is the language of its message, of its page whatever the
// browser prefers, and of the new account.
func TestInvitationHasALanguage(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o, boss := withRole(t, st)
		o.do(boss, "POST /invitations", `{"email":"ada@example.com","locale":"not a language"}`, "Accept-Language: en").want(422, auth.CodeValidationFailed)
		made := o.do(boss, "POST /invitations", `{"email":"ada@example.com","locale":"de"}`, "Accept-Language: en").want(201)
		if made.body["locale"] != "de" {
			t.Errorf("shown %v", made.body)
		}
		o.Clock.Advance(10 * time.Minute)
		o.do(boss, fmt.Sprintf("POST /invitations/%s/resend", made.body["id"]), "", "Accept-Language: en").want(200)
		for _, m := range o.Inbox.Messages() {
			if m.Kind == auth.KindInvitation && m.Locale != "de" {
				t.Errorf("sent in %s: %s", m.Locale, m.Subject)
			}
		}
		token := o.invitedToken("ada@example.com")
		if page := o.page("GET", "/invitations/accept?token="+token, "", "Accept-Language: fr"); !strings.Contains(page, `lang="de"`) {
			t.Errorf("page: %s", page)
		}
		if page := o.page("POST", "/invitations/accept", "token="+token+"&password="+url.QueryEscape(password), "Accept-Language: fr"); !strings.Contains(page, `lang="de"`) {
			t.Errorf("page: %s", page)
		}
		if u := o.byEmail("ada@example.com"); u.UserMetadata["locale"] != "de" {
			t.Errorf("stored %v", u.UserMetadata)
		}
	})
}

// Without a language, a new account keeps the language of the page on which it was created,
// also if it replaces a stranger's account. A program's request chooses none.
func TestAcceptedAccountKeepsThePagesLanguage(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o, boss := withRole(t, st)
		if _, err := o.SignUp(t.Context(), auth.SignUpParams{Email: "taken@example.com", Password: password, UserMetadata: map[string]any{"locale": "es"}}); err != nil {
			t.Fatal(err)
		}
		for _, email := range []string{"ada@example.com", "taken@example.com"} {
			_, token := o.invite(actor(boss), email)
			o.page("POST", "/invitations/accept", "token="+token+"&password="+url.QueryEscape(password), "Accept-Language: fr-CA, en;q=0.5")
			if u := o.byEmail(email); !u.EmailVerified() || u.UserMetadata["locale"] != "fr" {
				t.Errorf("%s: stored %v", email, u.UserMetadata)
			}
		}
		_, token := o.invite(actor(boss), "eve@example.com")
		if tokens, err := o.accept(token); err != nil || tokens.User.UserMetadata["locale"] != nil {
			t.Errorf("%v %v", tokens, err)
		}
	})
}

// byEmail reads an account.
func (o *office) byEmail(email string) auth.User {
	o.t.Helper()
	u, err := o.Store.User(o.t.Context(), store.ByEmail(email))
	if err != nil {
		o.t.Fatal(err)
	}
	return u
}

// The message and the page of an invitation name its roles, and say that one of them needs a
// second factor.
func TestInvitationNamesItsRoles(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o, boss := withRole(t, st, auth.WithSettings(auth.Settings{MFARequiredFor: []string{"accountant"}}))
		o.permit("accountant", notes)
		const factor = "You need a second factor for this"
		for _, c := range []struct {
			email string
			roles []string
			want  string
			needs bool
		}{
			{"none@example.com", nil, "", false},
			{"one@example.com", []string{"editor"}, "editor.", false},
			{"two@example.com", []string{"editor", "accountant"}, "accountant, editor.", true},
		} {
			_, token := o.invite(actor(boss), c.email, c.roles...)
			m := o.Mail(t, c.email, auth.KindInvitation)
			page := o.page("GET", "/invitations/accept?token="+token, "")
			for at, text := range map[string]string{"text": m.Text, "HTML": m.HTML, "page": page} {
				if !strings.Contains(text, c.want) || strings.Contains(text, "Your role") != (c.want != "") || strings.Contains(text, factor) != c.needs {
					t.Errorf("%s, %s: %s", c.email, at, text)
				}
			}
		}
	})
}

// The page for permissions of an operator names the roles that the account holds already and
// that take effect with it.
func TestAcceptancePageNamesTheRoles(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st, auth.WithSettings(auth.Settings{MFARequiredFor: []string{"support"}}))
		o.permit("support", admin.PermUsersRead)
		o.permit("editor", notes)
		owner := o.operator("owner@example.com", "*")
		ada := o.LoginAs(t, "ada@example.com").User
		for _, role := range []string{"editor", "support"} {
			o.do(owner, "POST /users/"+ada.ID+"/roles/"+role, `{"address":"ada@example.com"}`).want(200)
		}
		page := o.page("GET", "/invitations/accept?token="+o.invitedToken(ada.Email), "")
		if !strings.Contains(page, "Your role: support.") || !strings.Contains(page, "You need a second factor") {
			t.Errorf("page: %s", page)
		}
	})
}
