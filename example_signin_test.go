package auth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"slices"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/hibp"
	"github.com/authmount/auth/memstore"
)

// Create an account. The error lists the reasons against a password.
func ExampleAuth_SignUp() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode())
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	_, err = a.SignUp(ctx, auth.SignUpParams{Email: "ada@example.com", Password: "password"})
	var e *auth.Error
	if errors.As(err, &e) {
		fmt.Println(e.Code, e.Reasons)
	}
	res, err := a.SignUp(ctx, auth.SignUpParams{Email: "ada@example.com", Password: "correct horse battery"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.User.Email, res.User.EmailVerified())
	// Output:
	// weak_password [common]
	// ada@example.com false
}

// Sign in with a password. Show users the errors that they can act on, and log the others.
func ExampleAuth_Login() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode())
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	_, err = a.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: "a wrong password"})
	var e *auth.Error
	switch {
	case err == nil:
		fmt.Println("Welcome.")
	case errors.Is(err, auth.CodeInvalidCredentials):
		fmt.Println("Wrong email address or password.")
	case errors.Is(err, auth.CodeUserBanned):
		fmt.Println("This account is banned.")
	case errors.As(err, &e) && e.Code == auth.CodeMFARequired:
		fmt.Println("Enter a code:", e.Factors) // and go on with e.MFAToken, see VerifyMFA
	case errors.As(err, &e) && e.RetryAfter > 0:
		fmt.Println("Try again in", e.RetryAfter)
	default:
		log.Print(err)
	}
	// Output: Wrong email address or password.
}

// Read which field of a request is wrong. Codes are stable, and messages are for people.
func ExampleError() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode())
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	_, err = a.SignUp(ctx, auth.SignUpParams{Email: "ada", Password: "correct horse battery"})
	var e *auth.Error
	if !errors.As(err, &e) {
		log.Fatal(err)
	}
	fmt.Println(e.Code, e.Status, len(e.Fields["email"]) > 0)
	fmt.Println(errors.Is(err, auth.CodeValidationFailed)) // to compare with one code
	// Output:
	// validation_failed 422 true
	// true
}

// Require a confirmed address before the first sign-in, and confirm it with the code in
// the mail.
func ExampleAuth_VerifyEmail() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(), auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	res, err := a.SignUp(ctx, auth.SignUpParams{Email: "ada@example.com", Password: "correct horse battery"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.ConfirmationRequired, res.Tokens == nil)
	mail, err := a.Inbox().Wait(ctx, func(m auth.Message) bool { return m.Kind == auth.KindVerifyEmail })
	if err != nil {
		log.Fatal(err)
	}
	verified, err := a.VerifyEmail(ctx, auth.VerifyEmailParams{Email: "ada@example.com", Code: mail.Code, RequestID: res.RequestID})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(verified.User.EmailVerified())
	// Output:
	// true true
	// true
}

// Sign in with a link in a mail.
func ExampleAuth_SendMagicLink() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode())
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
	link, err := url.Parse(mail.Link) // leads to a page with a button, which completes the sign-in
	if err != nil {
		log.Fatal(err)
	}
	tokens, err := a.VerifyMagicLink(ctx, auth.VerifyMagicLinkParams{Token: link.Query().Get("token")})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(tokens.User.Email, tokens.User.EmailVerified())
	// Output: ada@example.com true
}

// Sign in with the code that is beside the link in the same mail.
func ExampleAuth_VerifyMagicLink() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode())
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	sent, err := a.SendMagicLink(ctx, auth.SendMagicLinkParams{Email: "ada@example.com"})
	if err != nil {
		log.Fatal(err)
	}
	mail, err := a.Inbox().Wait(ctx, func(m auth.Message) bool { return m.Kind == auth.KindMagicLink })
	if err != nil {
		log.Fatal(err)
	}
	p := auth.VerifyMagicLinkParams{Email: "ada@example.com", Code: mail.Code, RequestID: sent.RequestID}
	tokens, err := a.VerifyMagicLink(ctx, p)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(tokens.User.Email)
	_, err = a.VerifyMagicLink(ctx, p)
	fmt.Println(errors.Is(err, auth.CodeInvalidCode)) // a code works once
	// Output:
	// ada@example.com
	// true
}

// Sign in with a code in a text message, for phone numbers of two countries.
func ExampleAuth_SendPhoneCode() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(), // in production also WithSMSSender(twiliosms.New(…))
		auth.WithPhone(auth.PhoneOptions{Allow: []string{"+49", "+43"}}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	sent, err := a.SendPhoneCode(ctx, auth.SendPhoneCodeParams{Phone: "+49 30 123456"})
	if err != nil {
		log.Fatal(err)
	}
	text, err := a.Inbox().Wait(ctx, func(m auth.Message) bool { return m.Channel == auth.ChannelSMS })
	if err != nil {
		log.Fatal(err)
	}
	tokens, err := a.VerifyPhoneCode(ctx, auth.VerifyPhoneCodeParams{Phone: "+49 30 123456", Code: text.Code, RequestID: sent.RequestID})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(tokens.User.Phone, tokens.User.PhoneVerified())
	// Output: +4930123456 true
}

// Offer sign-in with Google. A link to /auth/v1/oauth/google starts it.
func ExampleWithProvider() {
	ctx := context.Background()
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	defer srv.Close()
	idp := authtest.NewProvider(srv.URL + "/idp")
	idp.SignsIn(authtest.Person{Subject: "7", Email: "ada@example.com", EmailVerified: true})
	mux.Handle("/idp/", idp)
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(), auth.WithBaseURL(srv.URL+"/auth/v1"),
		auth.WithCookies(auth.CookieOptions{}), auth.WithProvider(idp.Google())) // in production: provider.Google(id, secret)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()
	mux.Handle("/auth/v1/", a.Handler())
	mux.Handle("GET /notes", a.RequirePage(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintln(w, "notes of", auth.ClaimsFrom(r.Context()).Email)
	})))

	jar, err := cookiejar.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	browser := &http.Client{Jar: jar}
	req, err := http.NewRequestWithContext(ctx, "GET", srv.URL+"/auth/v1/oauth/google?redirect_to="+url.QueryEscape(srv.URL+"/notes"), http.NoBody)
	if err != nil {
		log.Fatal(err)
	}
	res, err := browser.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	page, err := io.ReadAll(res.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(string(page))
	// Output: notes of ada@example.com
}

// Sign in a user of a native app with the ID token that the app got from the provider.
func ExampleAuth_SignInWithIDToken() {
	ctx := context.Background()
	idp := authtest.NewProvider("")
	srv := httptest.NewServer(idp)
	defer srv.Close()
	idp.Issuer = srv.URL
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(), auth.WithProvider(idp.Google())) // in production: provider.Google(id, secret)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	idToken := idp.IDToken("google", authtest.Person{Subject: "7", Email: "ada@example.com", EmailVerified: true}, "nonce of the app")
	tokens, err := a.SignInWithIDToken(ctx, auth.IDTokenParams{Provider: "google", IDToken: idToken, Nonce: "nonce of the app"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(tokens.User.Email, tokens.User.Identities[0].Provider)
	// Output: ada@example.com google
}

// Set up an authenticator app, and sign in with it.
func ExampleAuth_SetupTOTP() {
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

	setup, err := a.SetupTOTP(ctx, auth.SetupTOTPParams{Caller: ada}) // setup.QRCode is an image to scan
	if err != nil {
		log.Fatal(err)
	}
	code, err := totp.GenerateCode(setup.Secret, time.Now()) // the app shows it
	if err != nil {
		log.Fatal(err)
	}
	enabled, err := a.EnableTOTP(ctx, auth.EnableTOTPParams{Caller: ada, TOTPCode: code})
	if err != nil {
		log.Fatal(err)
	}

	_, err = a.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: "correct horse battery"})
	var e *auth.Error
	if !errors.As(err, &e) || e.Code != auth.CodeMFARequired {
		log.Fatal(err)
	}
	tokens, err := a.VerifyMFA(ctx, auth.VerifyMFAParams{MFAToken: e.MFAToken, RecoveryCode: enabled.RecoveryCodes[0]})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(tokens.User.MFAEnabled, *tokens.RecoveryCodesLeft)
	// Output: true 9
}

// Require a second factor of everybody who has a role.
func ExampleWithMFA() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(),
		auth.WithMFA(auth.MFAOptions{RequiredFor: func(u auth.User) bool { return slices.Contains(u.Roles, "staff") }}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()
	_, err = a.ImportUser(ctx, auth.ImportUserParams{
		Email: "ada@example.com", EmailVerified: true, Roles: []string{"staff"},
		PasswordHash: "$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW",
	})
	if err != nil {
		log.Fatal(err)
	}

	_, err = a.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: "U*U"})
	var e *auth.Error
	if !errors.As(err, &e) || e.Code != auth.CodeMFAEnrollmentRequired {
		log.Fatal(err)
	}
	setup, err := a.SetupTOTP(ctx, auth.SetupTOTPParams{MFAToken: e.MFAToken}) // and EnableTOTP signs her in
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(setup.URI[:len("otpauth://")])
	// Output: otpauth://
}

// Refuse passwords that are known from leaks.
func ExampleWithPasswords() {
	ctx := context.Background()
	leaked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintln(w, "C62ECE399A22ED30D490EF333BE7FDE7385:3") // the rest of the SHA-1 of a password, and its count
	}))
	defer leaked.Close() // in production: without WithURL, api.pwnedpasswords.com
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(),
		auth.WithPasswords(auth.PasswordOptions{MinLength: 12, Breach: hibp.New(hibp.WithURL(leaked.URL))}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	_, err = a.SignUp(ctx, auth.SignUpParams{Email: "ada@example.com", Password: "correct horse battery"})
	var e *auth.Error
	if errors.As(err, &e) {
		fmt.Println(e.Code, e.Reasons)
	}
	// Output: weak_password [breached]
}
