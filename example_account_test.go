package auth_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/url"
	"slices"
	"sync"
	"testing/fstest"

	"github.com/authmount/auth"
	"github.com/authmount/auth/memstore"
)

// Choose a new password with the link in a mail.
func ExampleAuth_ResetPassword() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode())
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()
	if _, err := a.SignUp(ctx, auth.SignUpParams{Email: "ada@example.com", Password: "correct horse battery"}); err != nil {
		log.Fatal(err)
	}

	if err := a.SendPasswordReset(ctx, auth.SendPasswordResetParams{Email: "ada@example.com"}); err != nil {
		log.Fatal(err)
	}
	mail, err := a.Inbox().Wait(ctx, func(m auth.Message) bool { return m.Kind == auth.KindResetPassword })
	if err != nil {
		log.Fatal(err)
	}
	link, err := url.Parse(mail.Link)
	if err != nil {
		log.Fatal(err)
	}
	p := auth.ResetPasswordParams{Token: link.Query().Get("token"), NewPassword: "staple battery horse"}
	if err := a.ResetPassword(ctx, p); err != nil {
		log.Fatal(err)
	}
	tokens, err := a.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: "staple battery horse"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(tokens.User.EmailVerified()) // the link has shown that the address is hers
	// Output: true
}

// Change the address of an account. It takes effect with the link sent to the new one.
func ExampleAuth_UpdateMe() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode())
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()
	res, err := a.SignUp(ctx, auth.SignUpParams{Email: "ada@example.com", Password: "correct horse battery"})
	if err != nil {
		log.Fatal(err)
	}

	ada := auth.Caller{UserID: res.User.ID, SessionID: res.Tokens.SessionID}
	email := "ada@example.org"
	if _, err := a.UpdateMe(ctx, auth.UpdateMeParams{Caller: ada, Email: &email}); err != nil {
		log.Fatal(err)
	}
	mail, err := a.Inbox().Wait(ctx, func(m auth.Message) bool { return m.To == email })
	if err != nil {
		log.Fatal(err)
	}
	link, err := url.Parse(mail.Link)
	if err != nil {
		log.Fatal(err)
	}
	verified, err := a.VerifyEmail(ctx, auth.VerifyEmailParams{Token: link.Query().Get("token"), Within: ada})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(verified.User.Email)
	// Output: ada@example.org
}

// Import a user from another system with the password hash. The password stays valid,
// and the first login replaces the hash by an argon2id hash.
func ExampleAuth_ImportUser() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode())
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	_, err = a.ImportUser(ctx, auth.ImportUserParams{
		Email: "ada@example.com", EmailVerified: true,
		PasswordHash: "$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", // bcrypt
	})
	if err != nil {
		log.Fatal(err)
	}
	tokens, err := a.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: "U*U"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(tokens.User.Email)
	// Output: ada@example.com
}

// Import many users. Each one that is refused is reported, and the others are created.
func ExampleAuth_ImportUsers() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode())
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	users := slices.Values([]auth.ImportUserParams{ // in production: an iterator over rows or lines
		{Email: "ada@example.com", EmailVerified: true},
		{Email: "bob"},
		{Phone: "+49 30 123456", PhoneVerified: true},
	})
	sum, err := a.ImportUsers(ctx, users, func(r auth.ImportResult) {
		var e *auth.Error
		if errors.As(r.Err, &e) {
			fmt.Println("user", r.Index, e.Code)
		}
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(sum.Created, "created,", sum.Refused, "refused")
	// Output:
	// user 1 validation_failed
	// 2 created, 1 refused
}

// Let only some people sign up.
func ExampleWithHooks() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(),
		auth.WithHooks(auth.Hooks{
			BeforeSignUp: func(_ context.Context, s auth.SignUpAttempt) error {
				if s.Email != "ada@example.com" {
					return auth.Reject(auth.CodeSignupDisabled, "Signing up is by invitation.")
				}
				return nil
			},
		}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	_, err = a.SignUp(ctx, auth.SignUpParams{Email: "eve@example.com", Password: "correct horse battery"})
	fmt.Println(errors.Is(err, auth.CodeSignupDisabled))
	// Output: true
}

// Count events for a metric. OnEvent also suits a webhook or a log of the application.
func ExampleHooks_events() {
	ctx := context.Background()
	var mu sync.Mutex
	counts := map[auth.EventType]int{}
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(),
		auth.WithHooks(auth.Hooks{OnEvent: func(_ context.Context, e auth.Event) {
			mu.Lock()
			defer mu.Unlock()
			counts[e.Type]++
		}}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	if _, err := a.SignUp(ctx, auth.SignUpParams{Email: "ada@example.com", Password: "correct horse battery"}); err != nil {
		log.Fatal(err)
	}
	for range 2 {
		if _, err := a.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: "a wrong password"}); err == nil {
			log.Fatal("signed in")
		}
	}
	mu.Lock()
	defer mu.Unlock()
	fmt.Println(counts[auth.EventSignedUp], counts[auth.EventSignInFailed])
	// Output: 1 2
}

// Create a row of the application together with the account. An error undoes both.
func ExampleHooks_newUser() {
	ctx := context.Background()
	profiles := map[string]string{} // with pgstore: insert by pgstore.Tx(ctx), in the same transaction
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(),
		auth.WithHooks(auth.Hooks{OnUserCreating: func(_ context.Context, u auth.User) error {
			profiles[u.ID] = u.FullName
			return nil
		}}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	res, err := a.SignUp(ctx, auth.SignUpParams{Email: "ada@example.com", Password: "correct horse battery", FullName: "Ada Lovelace"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(profiles[res.User.ID])
	// Output: Ada Lovelace
}

// Replace the words of a mail, and add the name of the application.
func ExampleWithMail() {
	ctx := context.Background()
	templates := fstest.MapFS{ // in production: embed.FS or os.DirFS
		"languages/en/mails.json": {Data: []byte(`{"magic_link.subject": "Hello from {app}"}`)},
	}
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(), auth.WithMail(auth.MailOptions{AppName: "Notes", Templates: templates}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	if _, err := a.SendMagicLink(ctx, auth.SendMagicLinkParams{Email: "ada@example.com"}); err != nil {
		log.Fatal(err)
	}
	mail, err := a.Inbox().Wait(ctx, func(m auth.Message) bool { return m.Kind == auth.KindMagicLink })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(mail.Subject)
	// Output: Hello from Notes
}
