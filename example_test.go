package auth_test

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/smtpmail"
)

// Mount every endpoint, and protect a handler of your own.
func Example() {
	secret := make([]byte, 32) // in production: the same 32 random bytes in every instance
	_, _ = rand.Read(secret)
	a, err := auth.New(context.Background(), memstore.New(),
		auth.WithSecret(secret),
		auth.WithBaseURL("https://app.example.com/auth/v1"),
		auth.WithMailer(smtpmail.New("smtps://mail.example.com?from=auth@example.com")),
		auth.WithRedirectURLs("https://app.example.com/*"),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(context.Background()) }()

	notes := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintln(w, "notes of", auth.ClaimsFrom(r.Context()).Email)
	})
	mux := http.NewServeMux()
	mux.Handle("/auth/v1/", a.Handler())
	mux.Handle("GET /notes", a.Require(notes))
	fmt.Println(a.PublicSettings(context.Background()).Methods.Password)
	// Output: true
}

// A page for those who are signed in: a session in cookies is refreshed in place,
// and others are sent to the sign-in page, with the way back.
func ExampleAuth_RequirePage() {
	a, err := auth.New(context.Background(), memstore.New(), auth.WithDevMode(), auth.WithCookies(auth.CookieOptions{SignInURL: "/signin"}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(context.Background()) }()

	mux := http.NewServeMux()
	mux.Handle("/auth/v1/", a.Handler())
	mux.Handle("GET /notes", a.RequirePage(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintln(w, "notes of", auth.ClaimsFrom(r.Context()).Email)
	})))
	mux.HandleFunc("POST /signin", func(w http.ResponseWriter, r *http.Request) { // or a form that posts to /auth/v1/login
		back := cmp.Or(r.FormValue("return_to"), "/")
		if err := errors.Join(a.CheckOrigin(r), a.CheckReturn(back)); err != nil {
			a.WriteError(w, r, err)
			return
		}
		tokens, err := a.Login(r.Context(), auth.LoginParams{Email: r.FormValue("email"), Password: r.FormValue("password")})
		if err == nil {
			err = a.SetCookies(w, r, tokens, auth.Remember(r.FormValue("remember") != ""))
		}
		if err != nil {
			a.WriteError(w, r, err)
			return
		}
		http.Redirect(w, r, back, http.StatusSeeOther) //nolint:gosec // CheckReturn has judged it
	})

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), "GET", "/notes?page=2", nil))
	fmt.Println(w.Code, w.Header().Get("Location"))
	// Output: 303 /signin?return_to=%2Fnotes%3Fpage%3D2
}

// Every endpoint is a method, too.
func ExampleAuth_SignUp() {
	a, err := auth.New(context.Background(), memstore.New(), auth.WithDevMode())
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
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

// Bring users over from another system with their password hashes.
func ExampleAuth_ImportUser() {
	a, err := auth.New(context.Background(), memstore.New(), auth.WithDevMode())
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
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
	fmt.Println(tokens.User.Email) // from now on the hash is argon2id
	// Output: ada@example.com
}

// Put claims of your own into access tokens.
func ExampleWithClaims() {
	a, err := auth.New(context.Background(), memstore.New(), auth.WithDevMode(),
		auth.WithClaims(func(context.Context, auth.User) (map[string]any, error) {
			return map[string]any{"plan": "pro"}, nil
		}))
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	defer func() { _ = a.Close(ctx) }()

	res, err := a.SignUp(ctx, auth.SignUpParams{Email: "ada@example.com", Password: "correct horse battery"})
	if err != nil {
		log.Fatal(err)
	}
	claims, err := a.Verify(res.Tokens.AccessToken)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(claims.Custom["plan"], claims.ExpiresAt.Sub(claims.IssuedAt) == 15*time.Minute)
	// Output: pro true
}

// Let only some people sign up.
func ExampleWithHooks() {
	a, err := auth.New(context.Background(), memstore.New(), auth.WithDevMode(),
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
	ctx := context.Background()
	defer func() { _ = a.Close(ctx) }()

	_, err = a.SignUp(ctx, auth.SignUpParams{Email: "eve@example.com", Password: "correct horse battery"})
	fmt.Println(errors.Is(err, auth.CodeSignupDisabled))
	// Output: true
}
