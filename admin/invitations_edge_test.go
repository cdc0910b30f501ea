package admin_test

import (
	"context"
	"net/url"
	"strings"
	"testing"

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

// The page links to providers if one can return from them: with cookies, or to the target
// of the invitation.
func TestInvitationPageLeadsToProviders(t *testing.T) {
	for name, c := range map[string]struct {
		to     string
		opts   []auth.Option
		leads  bool
		inside bool
	}{
		"neither":       {},
		"cookies":       {opts: []auth.Option{auth.WithCookies(auth.CookieOptions{})}, leads: true, inside: true},
		"a redirect":    {to: "https://app.example.com/in", leads: true},
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
