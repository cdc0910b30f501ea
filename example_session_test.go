package auth_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/memstore"
)

// Trade a refresh token for new tokens. One that comes back too late ends the session.
func ExampleAuth_Refresh() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(), auth.WithSessions(auth.SessionOptions{RefreshGrace: -1}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()
	res, err := a.SignUp(ctx, auth.SignUpParams{Email: "ada@example.com", Password: "correct horse battery"})
	if err != nil {
		log.Fatal(err)
	}

	tokens, err := a.Refresh(ctx, auth.RefreshParams{RefreshToken: res.Tokens.RefreshToken})
	if err != nil {
		log.Fatal(err)
	}
	_, err = a.Refresh(ctx, auth.RefreshParams{RefreshToken: res.Tokens.RefreshToken}) // somebody has a copy
	fmt.Println(errors.Is(err, auth.CodeRefreshTokenReused))
	_, err = a.Refresh(ctx, auth.RefreshParams{RefreshToken: tokens.RefreshToken})
	fmt.Println(errors.Is(err, auth.CodeSessionEnded))
	// Output:
	// true
	// true
}

// List the sessions of a user, and revoke one of them.
func ExampleAuth_Sessions() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode())
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()
	laptop := auth.ContextWithClient(ctx, auth.Client{UserAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"})
	if _, err := a.SignUp(laptop, auth.SignUpParams{Email: "ada@example.com", Password: "correct horse battery"}); err != nil {
		log.Fatal(err)
	}
	tokens, err := a.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: "correct horse battery"})
	if err != nil {
		log.Fatal(err)
	}

	ada := auth.Caller{UserID: tokens.User.ID, SessionID: tokens.SessionID}
	sessions, err := a.Sessions(ctx, auth.SessionsParams{UserID: ada.UserID, Current: ada.SessionID})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range sessions {
		if s.Current {
			continue
		}
		fmt.Println("revoking", s.Device)
		if err := a.EndSession(ctx, auth.EndSessionParams{Caller: ada, TargetSessionID: s.ID}); err != nil {
			log.Fatal(err)
		}
	}
	// Output: revoking Firefox on Linux
}

// Act for the user who sends a request.
func ExampleClaims_Caller() {
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

	rename := a.Require(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := r.FormValue("name")
		user, err := a.UpdateMe(r.Context(), auth.UpdateMeParams{Caller: auth.ClaimsFrom(r.Context()).Caller(), FullName: &name})
		if err != nil {
			a.WriteError(w, r, err)
			return
		}
		_, _ = fmt.Fprintln(w, "Hello", user.FullName)
	}))
	r := httptest.NewRequestWithContext(ctx, "POST", "/rename?name=Ada", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+res.Tokens.AccessToken)
	w := httptest.NewRecorder()
	rename.ServeHTTP(w, r)
	fmt.Print(w.Body)
	// Output: Hello Ada
}

// Act on an account for the application itself, such as in a job.
func ExampleByApplication() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode())
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()
	user, err := a.ImportUser(ctx, auth.ImportUserParams{Email: "ada@example.com", EmailVerified: true})
	if err != nil {
		log.Fatal(err)
	}

	export, err := a.Export(ctx, auth.ExportParams{Caller: auth.ByApplication(user.ID)})
	if err != nil {
		log.Fatal(err)
	}
	var archive bytes.Buffer // in production: a file
	if err := export.Write(ctx, &archive); err != nil {
		log.Fatal(err)
	}
	if err := a.DeleteUser(ctx, auth.DeleteUserParams{Caller: auth.ByApplication(user.ID)}); err != nil {
		log.Fatal(err)
	}
	err = a.DeleteUser(ctx, auth.DeleteUserParams{Caller: auth.ByApplication(user.ID)})
	fmt.Println(export.User.Email, errors.Is(err, auth.CodeNotFound))
	// Output: ada@example.com true
}

// Refuse the access token of a session that was revoked a moment ago.
func ExampleCheckSession() {
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
	pay := a.Require(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), auth.CheckSession())

	ada := auth.Caller{UserID: res.User.ID, SessionID: res.Tokens.SessionID}
	for range 2 {
		r := httptest.NewRequestWithContext(ctx, "POST", "/pay", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+res.Tokens.AccessToken)
		w := httptest.NewRecorder()
		pay.ServeHTTP(w, r)
		fmt.Println(w.Code)
		if err := a.Logout(ctx, auth.LogoutParams{Caller: ada}); err != nil {
			log.Fatal(err)
		}
	}
	// Output:
	// 200
	// 401
}

// Ask for the password again before an operation that matters.
func ExampleFreshAuth() {
	ctx := context.Background()
	var passed atomic.Int64
	clock := func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(), auth.WithClock(clock)) // the clock is for tests only
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()
	res, err := a.SignUp(ctx, auth.SignUpParams{Email: "ada@example.com", Password: "correct horse battery"})
	if err != nil {
		log.Fatal(err)
	}
	pay := a.Require(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), auth.FreshAuth(5*time.Minute))

	passed.Store(int64(10 * time.Minute))
	ada := auth.Caller{UserID: res.User.ID, SessionID: res.Tokens.SessionID}
	tokens, err := a.Confirm(ctx, auth.ConfirmParams{Caller: ada, Password: "correct horse battery"})
	if err != nil {
		log.Fatal(err)
	}
	for _, token := range []string{res.Tokens.AccessToken, tokens.AccessToken} {
		r := httptest.NewRequestWithContext(ctx, "POST", "/pay", http.NoBody)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		pay.ServeHTTP(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// 403
	// 200
}

// Put claims of the application into access tokens.
func ExampleWithClaims() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(),
		auth.WithClaims(func(_ context.Context, u auth.User) (map[string]any, error) {
			return map[string]any{"plan": "pro"}, nil // looked up by u.ID
		}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	res, err := a.SignUp(ctx, auth.SignUpParams{Email: "ada@example.com", Password: "correct horse battery"})
	if err != nil {
		log.Fatal(err)
	}
	claims, err := a.Verify(res.Tokens.AccessToken)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(claims.Custom["plan"], claims.ExpiresAt.Sub(claims.IssuedAt))
	// Output: pro 15m0s
}
