package pages_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/authmount/auth"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/pages"
)

// An application with sign-in pages: a visitor without a session signs in first and
// returns.
func Example() {
	a, err := auth.New(context.Background(), memstore.New(),
		auth.WithDevMode(), // for your own machine; see auth.New for the rest
		auth.WithCookies(auth.CookieOptions{}),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(context.Background()) }()
	p, err := pages.New(a, pages.Options{Brand: "Notes", Accent: "#0f766e", Home: "/notes"})
	if err != nil {
		log.Fatal(err) // names the wrong file, text or option
	}
	notes := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "Notes of %s", auth.ClaimsFrom(r.Context()).Email)
	})
	mux := http.NewServeMux()
	mux.Handle("/auth/v1/", a.Handler())
	mux.Handle("/account/", p)
	mux.Handle("/notes", a.RequirePage(notes))

	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, "http://127.0.0.1:8080/notes", http.NoBody))
	fmt.Println(w.Code, w.Header().Get("Location"))
	// Output: 303 /account/sign-in?return_to=%2Fnotes
}
