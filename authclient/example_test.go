package authclient_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authclient"
	"github.com/authmount/auth/memstore"
)

// start runs a server for the examples; yours is another process.
func start() (url string, stop func()) {
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	a, err := auth.New(context.Background(), memstore.New(), auth.WithDevMode(), auth.WithBaseURL(srv.URL+"/auth/v1"),
		auth.WithSecretKeys(auth.SecretKey{Key: "sk_test_0123456789abcdef", Scopes: []string{"*"}}))
	if err != nil {
		panic(err)
	}
	adm, err := admin.New(context.Background(), a, admin.Options{})
	if err != nil {
		panic(err)
	}
	mux.Handle("/auth/v1/", a.Handler())
	mux.Handle("/auth/v1/admin/", adm.Handler())
	return srv.URL, func() {
		srv.Close()
		_ = a.Close(context.Background())
	}
}

// A service that is not the auth server guards its routes as the server would.
func ExampleVerifier_Require() {
	url, stop := start()
	defer stop()
	v, err := authclient.NewVerifier(context.Background(), url)
	if err != nil {
		panic(err)
	}
	notes := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, "notes of ", authclient.ClaimsFrom(r.Context()).Email)
	})
	rec := httptest.NewRecorder()
	v.Require(notes, auth.HasRole("editor")).ServeHTTP(rec, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "/notes", nil))
	fmt.Println(rec.Code)
	// Output: 401
}

// A program signs in as a user, and calls an API in their name.
func ExampleClient() {
	url, stop := start()
	defer stop()
	ctx := context.Background()
	c, err := authclient.NewClient(url)
	if err != nil {
		panic(err)
	}
	if _, err := c.SignUp(ctx, authclient.SignUpParams{Email: "ada@example.com", Password: "correct horse battery 7"}); err != nil {
		panic(err)
	}
	_, err = c.SignInWithPassword(ctx, authclient.PasswordParams{Email: "ada@example.com", Password: "wrong"})
	fmt.Println(errors.Is(err, auth.CodeInvalidCredentials))
	app := &http.Client{Transport: c.Transport(nil)} // sends the token to the project's origin
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/auth/v1/me", nil)
	if err != nil {
		panic(err)
	}
	res, err := app.Do(req)
	if err != nil {
		panic(err)
	}
	defer func() { _ = res.Body.Close() }()
	fmt.Println(res.StatusCode)
	// Output:
	// true
	// 200
}

// A list is followed to its end.
func ExampleAdmin_Users() {
	url, stop := start()
	defer stop()
	ctx := context.Background()
	adm, err := authclient.NewAdmin(url, "sk_test_0123456789abcdef")
	if err != nil {
		panic(err)
	}
	if _, err := adm.CreateUser(ctx, authclient.CreateUserParams{Email: "ada@example.com"}); err != nil {
		panic(err)
	}
	for u, err := range adm.Users(ctx, authclient.UserQuery{Sort: "email"}) {
		if err != nil {
			panic(err)
		}
		fmt.Println(*u.Email)
	}
	// Output: ada@example.com
}
