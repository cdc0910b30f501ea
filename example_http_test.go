package auth_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/pages"
	"github.com/authmount/auth/turnstile"
)

// Let only requests with an access token through to a handler.
func ExampleAuth_Require() {
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

	notes := a.Require(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, "notes of ", auth.ClaimsFrom(r.Context()).Email)
	}))
	for _, authorization := range []string{"Bearer " + res.Tokens.AccessToken, ""} {
		r := httptest.NewRequestWithContext(ctx, "GET", "/notes", http.NoBody)
		r.Header.Set("Authorization", authorization)
		w := httptest.NewRecorder()
		notes.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// 200
	// 401
}

// Give a role a permission, and a user the role, and ask for the permission.
func ExampleHasPermission() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode())
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()
	adm, err := admin.New(ctx, a, admin.Options{Permissions: []admin.Permission{{Name: "notes.write"}}})
	if err != nil {
		log.Fatal(err)
	}
	res, err := a.SignUp(ctx, auth.SignUpParams{Email: "ada@example.com", Password: "correct horse battery"})
	if err != nil {
		log.Fatal(err)
	}

	setup := admin.System("setup").Accepting()
	if _, err := adm.CreateRole(ctx, setup, admin.CreateRoleParams{Name: "editor", Permissions: []string{"notes.*"}}); err != nil {
		log.Fatal(err)
	}
	if _, err := adm.Grant(ctx, setup, admin.GrantParams{UserID: res.User.ID, Role: "editor"}); err != nil {
		log.Fatal(err)
	}
	tokens, err := a.Refresh(ctx, auth.RefreshParams{RefreshToken: res.Tokens.RefreshToken}) // the old access token is stale
	if err != nil {
		log.Fatal(err)
	}

	notes := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	r := httptest.NewRequestWithContext(ctx, "POST", "/notes", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+tokens.AccessToken)
	w := httptest.NewRecorder()
	a.Require(notes, auth.HasPermission("notes.write")).ServeHTTP(w, r)
	fmt.Println(w.Code)
	// Output: 200
}

// Ask for more than the requirements of this package do.
func ExampleRequirement() {
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

	verified := auth.RequirementFunc(func(_ auth.Service, _ *http.Request, c *auth.Claims) error {
		if !c.EmailVerified {
			return auth.Reject(auth.CodeEmailNotVerified, "Confirm your address first.")
		}
		return nil
	})
	r := httptest.NewRequestWithContext(ctx, "POST", "/comments", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+res.Tokens.AccessToken)
	w := httptest.NewRecorder()
	a.Require(http.NotFoundHandler(), verified).ServeHTTP(w, r)
	fmt.Println(w.Code, strings.Contains(w.Body.String(), "Confirm your address first."))
	// Output: 403 true
}

// Serve everybody, and signed-in users by name.
func ExampleAuth_Optional() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode())
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	home := a.Optional(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c := auth.ClaimsFrom(r.Context()); c != nil {
			_, _ = fmt.Fprintln(w, "Hello", c.Email)
			return
		}
		_, _ = fmt.Fprintln(w, "Hello stranger")
	}))
	w := httptest.NewRecorder()
	home.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/", http.NoBody))
	fmt.Print(w.Body)
	// Output: Hello stranger
}

// Protect a page. Visitors without a session go to the sign-in page and come back.
func ExampleAuth_RequirePage() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(), auth.WithCookies(auth.CookieOptions{SignInURL: "/signin"}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	mux := http.NewServeMux()
	mux.Handle("/auth/v1/", a.Handler())
	mux.Handle("GET /notes", a.RequirePage(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintln(w, "notes of", auth.ClaimsFrom(r.Context()).Email)
	})))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/notes?page=2", http.NoBody))
	fmt.Println(w.Code, w.Header().Get("Location"))
	// Output: 303 /signin?return_to=%2Fnotes%3Fpage%3D2
}

// Sign a browser in with a form of the application's own.
func ExampleAuth_SetCookies() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(), auth.WithCookies(auth.CookieOptions{SignInURL: "/signin"}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	signIn := func(w http.ResponseWriter, r *http.Request) {
		back := cmp.Or(r.FormValue("return_to"), "/")
		if err := errors.Join(a.CheckOrigin(r), a.CheckReturn(back)); err != nil {
			a.WriteError(w, r, err)
			return
		}
		tokens, err := a.Login(a.ClientContext(r), auth.LoginParams{Email: r.FormValue("email"), Password: r.FormValue("password")})
		if err == nil {
			err = a.SetCookies(w, r, tokens, auth.Remember(r.FormValue("remember") != ""))
		}
		if err != nil {
			a.WriteError(w, r, err) // or the form again, with a message for the error's Code
			return
		}
		http.Redirect(w, r, back, http.StatusSeeOther)
	}
	if _, err := a.SignUp(ctx, auth.SignUpParams{Email: "ada@example.com", Password: "correct horse battery"}); err != nil {
		log.Fatal(err)
	}
	r := httptest.NewRequestWithContext(ctx, "POST", "/signin?return_to=/notes", strings.NewReader("email=ada@example.com&password=correct+horse+battery"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	signIn(w, r)
	fmt.Println(w.Code, w.Header().Get("Location"), len(w.Header()["Set-Cookie"]) > 0)
	// Output: 303 /notes true
}

// Use the ready-made pages for sign-in and the account, with the session in cookies.
func ExampleWithCookies() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(), auth.WithCookies(auth.CookieOptions{}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()
	p, err := pages.New(a, pages.Options{Brand: "Notes", Home: "/notes"})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/auth/v1/", a.Handler())
	mux.Handle("/account/", p)
	mux.Handle("GET /notes", a.RequirePage(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintln(w, "notes of", auth.ClaimsFrom(r.Context()).Email)
	})))

	srv := httptest.NewServer(mux)
	defer srv.Close()
	jar, err := cookiejar.New(nil)
	if err != nil {
		log.Fatal(err)
	}
	form := strings.NewReader("email=ada@example.com&password=correct+horse+battery")
	req, err := http.NewRequestWithContext(ctx, "POST", srv.URL+"/account/sign-up", form)
	if err != nil {
		log.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	browser := &http.Client{Jar: jar}
	res, err := browser.Do(req)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	fmt.Println(res.StatusCode, res.Request.URL.Path, res.Request.URL.Query().Get("return_to")) // takes the mailed code; "Not now" leads on
	// Output: 200 /account/email/code /notes
}

// Answer requests that are not let through with a page of the application's own.
func ExampleWithOnRefused() {
	ctx := context.Background()
	var a *auth.Auth
	refused := func(w http.ResponseWriter, r *http.Request, err error) {
		if !errors.Is(err, auth.CodeMissingPermission) {
			a.WriteError(w, r, err)
			return
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintln(w, "Ask your administrator for access.")
	}
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(), auth.WithOnRefused(refused))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()
	res, err := a.SignUp(ctx, auth.SignUpParams{Email: "ada@example.com", Password: "correct horse battery"})
	if err != nil {
		log.Fatal(err)
	}

	r := httptest.NewRequestWithContext(ctx, "GET", "/reports", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+res.Tokens.AccessToken)
	w := httptest.NewRecorder()
	a.Require(http.NotFoundHandler(), auth.HasRole("staff")).ServeHTTP(w, r)
	fmt.Print(w.Code, " ", w.Body)
	// Output: 403 Ask your administrator for access.
}

// Offer an operation at an endpoint of the application's own, with the client's address
// for the rate limits and the errors of the other endpoints.
func ExampleAuth_ClientContext() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode())
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	login := func(w http.ResponseWriter, r *http.Request) {
		var p auth.LoginParams
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4096)).Decode(&p); err != nil {
			a.WriteError(w, r, auth.Reject(auth.CodeBadJSON, ""))
			return
		}
		tokens, err := a.Login(a.ClientContext(r), p)
		if err != nil {
			a.WriteError(w, r, err)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"session": tokens, "news": 3})
	}
	w := httptest.NewRecorder()
	body := strings.NewReader(`{"email":"ada@example.com","password":"a wrong password"}`)
	login(w, httptest.NewRequestWithContext(ctx, "POST", "/app/login", body))
	fmt.Println(w.Code)
	// Output: 401
}

// Limit wrong passwords more strictly. An error says when to try again.
func ExampleWithRateLimits() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(),
		auth.WithRateLimits(auth.RateLimits{LoginPerAccount: auth.Rate{Burst: 2, Per: time.Hour}}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	for range 3 {
		_, err = a.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: "a wrong password"})
		var e *auth.Error
		if errors.As(err, &e) {
			fmt.Println(e.Code, e.RetryAfter > 0)
		}
	}
	// Output:
	// invalid_credentials false
	// invalid_credentials false
	// rate_limited true
}

// Ask for a captcha at sign-ups.
func ExampleWithCaptcha() {
	ctx := context.Background()
	cloudflare := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]bool{"success": r.FormValue("response") == "solved"})
	}))
	defer cloudflare.Close() // in production: without WithURL, Cloudflare itself
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(),
		auth.WithCaptcha(auth.CaptchaOptions{Verifier: turnstile.New("secret key", turnstile.WithURL(cloudflare.URL))}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	for _, captcha := range []string{"", "solved"} {
		body := strings.NewReader(`{"email":"ada@example.com","password":"correct horse battery"}`)
		r := httptest.NewRequestWithContext(ctx, "POST", "/auth/v1/signup", body)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("X-Captcha-Token", captcha)
		w := httptest.NewRecorder()
		a.Handler().ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// 422
	// 200
}
