package auth_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authclient"
	"github.com/authmount/auth/memstore"
)

// Ban a user from code of the application, and read the audit log.
func Example_admin() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode())
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()
	adm, err := admin.New(ctx, a, admin.Options{})
	if err != nil {
		log.Fatal(err)
	}
	user, err := a.ImportUser(ctx, auth.ImportUserParams{Email: "eve@example.com", EmailVerified: true})
	if err != nil {
		log.Fatal(err)
	}

	spam := admin.System("spam filter") // for an operator: admin.User(claims.Caller())
	if _, err := adm.BanUser(ctx, spam, admin.BanUserParams{UserID: user.ID, Reason: "spam"}); err != nil {
		log.Fatal(err)
	}
	page, err := adm.Timeline(ctx, spam, admin.TimelineParams{UserID: user.ID, Limit: 1})
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range page.Events {
		fmt.Println(e.Type, e.Actor.ID)
	}
	// Output: user.banned spam filter
}

// Let a program use the admin endpoints with a secret key.
func ExampleWithSecretKeys() {
	ctx := context.Background()
	const key = "sk_test_0123456789abcdef" // in production: random, from the environment
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	defer srv.Close()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(), auth.WithBaseURL(srv.URL+"/auth/v1"),
		auth.WithSecretKeys(auth.SecretKey{Key: key, Scopes: []string{admin.PermUsersRead}}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()
	adm, err := admin.New(ctx, a, admin.Options{})
	if err != nil {
		log.Fatal(err)
	}
	mux.Handle("/auth/v1/", a.Handler())
	mux.Handle("/auth/v1/admin/", adm.Handler())
	if _, err := a.ImportUser(ctx, auth.ImportUserParams{Email: "ada@example.com", EmailVerified: true}); err != nil {
		log.Fatal(err)
	}

	program, err := authclient.NewAdmin(srv.URL, key) // in another process
	if err != nil {
		log.Fatal(err)
	}
	for user, err := range program.Users(ctx, authclient.UserQuery{}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(*user.Email)
	}
	// Output: ada@example.com
}

// Ask every client for a public key, which says which application it is.
func ExampleWithAPIKeys() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(), auth.WithAPIKeys("pk_live_web_0123456789"))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	for _, key := range []string{"", "pk_live_web_0123456789"} {
		r := httptest.NewRequestWithContext(ctx, "GET", "/auth/v1/settings", http.NoBody)
		r.Header.Set("Apikey", key)
		w := httptest.NewRecorder()
		a.Handler().ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// 401
	// 200
}

// Invite somebody to an account with a role, while sign-up is closed.
func ExampleAuth_AcceptInvitation() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(), auth.WithSettings(auth.Settings{SignUp: auth.Off}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()
	adm, err := admin.New(ctx, a, admin.Options{})
	if err != nil {
		log.Fatal(err)
	}

	_, err = adm.Invite(ctx, admin.System("setup").Accepting(), admin.InviteParams{Email: "ada@example.com", Roles: []string{admin.RoleSupport}})
	if err != nil {
		log.Fatal(err)
	}
	mail, err := a.Inbox().Wait(ctx, func(m auth.Message) bool { return m.Kind == auth.KindInvitation })
	if err != nil {
		log.Fatal(err)
	}
	link, err := url.Parse(mail.Link) // leads to a page, which accepts the invitation
	if err != nil {
		log.Fatal(err)
	}
	tokens, err := a.AcceptInvitation(ctx, auth.AcceptInvitationParams{Token: link.Query().Get("token"), Password: "correct horse battery"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(tokens.User.Email, tokens.User.Roles)
	// Output: ada@example.com [support]
}

// Let support act as a user, but not pay in the user's name.
func ExampleNotImpersonated() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode())
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()
	adm, err := admin.New(ctx, a, admin.Options{})
	if err != nil {
		log.Fatal(err)
	}
	const ada, secret = "01890a5d-ac96-774b-bcce-b302099a8057", "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
	const hash = "$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW"
	if _, err := a.ImportUsers(ctx, slices.Values([]auth.ImportUserParams{
		{ID: ada, Email: "ada@example.com", EmailVerified: true},
		{Email: "op@example.com", EmailVerified: true, PasswordHash: hash, TOTPSecret: secret, Roles: []string{auth.RoleOwner}, Accepted: true},
	}), nil); err != nil {
		log.Fatal(err)
	}
	code, err := totp.GenerateCode(secret, time.Now())
	if err != nil {
		log.Fatal(err)
	}
	op, err := a.Login(ctx, auth.LoginParams{Email: "op@example.com", Password: "U*U", TOTPCode: code})
	if err != nil {
		log.Fatal(err)
	}

	operator := admin.User(auth.Caller{UserID: op.User.ID, SessionID: op.SessionID}) // in a handler: admin.User(claims.Caller())
	acting, err := adm.Impersonate(ctx, operator, admin.ImpersonateParams{UserID: ada, Reason: "ticket 7"})
	if err != nil {
		log.Fatal(err)
	}
	r := httptest.NewRequestWithContext(ctx, "POST", "/pay", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+acting.AccessToken)
	w := httptest.NewRecorder()
	a.Require(http.NotFoundHandler(), auth.NotImpersonated()).ServeHTTP(w, r)
	fmt.Println(w.Code)
	// Output: 403
}
