package auth_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authclient"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/dashboard"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/smtpmail"
)

// Mount every endpoint, and protect a handler of the application.
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

// Start on a development machine: messages go to a page instead of a mail server.
func ExampleWithDevMode() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode())
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	mux := http.NewServeMux()
	mux.Handle("/auth/v1/", a.Handler())
	mux.Handle("/dev/", a.Inbox()) // http://127.0.0.1:8080/dev/inbox shows every message

	if _, err := a.SendMagicLink(ctx, auth.SendMagicLinkParams{Email: "ada@example.com"}); err != nil {
		log.Fatal(err)
	}
	m, err := a.Inbox().Wait(ctx, func(m auth.Message) bool { return m.Kind == auth.KindMagicLink })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.To, m.Link != "")
	// Output: ada@example.com true
}

// Stop the HTTP server first and then the service, which sends the messages that wait.
func ExampleAuth_Close() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode())
	if err != nil {
		log.Fatal(err)
	}
	srv := &http.Server{Addr: "127.0.0.1:0", Handler: a.Handler(), ReadHeaderTimeout: 10 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- srv.ListenAndServe() }()

	stop() // an interrupt does the same
	select {
	case err := <-failed:
		log.Print(err)
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	fmt.Println(errors.Join(srv.Shutdown(end), a.Close(end)))
	// Output: <nil>
}

// Use the service in a command that does one thing and ends.
func ExampleWithoutBackground() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(), auth.WithoutBackground())
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	user, err := a.ImportUser(ctx, auth.ImportUserParams{Email: "ada@example.com", EmailVerified: true})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(user.Email)
	// Output: ada@example.com
}

// Log to a handler of the application. Parameters may be logged, because they hide
// their secrets.
func ExampleWithLogger() {
	ctx := context.Background()
	logger := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		Level: slog.LevelWarn,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{} // so that this example prints the same every time
			}
			return a
		},
	}))
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(), auth.WithLogger(logger))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	params := auth.LoginParams{Email: "ada@example.com", Password: "correct horse battery"}
	if _, err := a.Login(ctx, params); err != nil {
		logger.WarnContext(ctx, "login failed", "params", params, "err", err)
	}
	// Output: level=WARN msg="login failed" params.email=a•••a@e•••e.com params.password=[redacted] err="auth: invalid_credentials"
}

// Lock one setting, and give another a value that operators may change.
func ExampleDefault() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(),
		auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}),
		auth.Default(auth.WithSettings(auth.Settings{SignUp: auth.Off})),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()
	adm, err := admin.New(ctx, a, admin.Options{})
	if err != nil {
		log.Fatal(err)
	}

	setup := admin.System("setup").Accepting()
	_, err = adm.SetSettings(ctx, setup, admin.SetSettingsParams{Set: map[string]any{"email_confirmation_required": false}})
	fmt.Println(errors.Is(err, auth.CodeValidationFailed)) // the option has locked it
	if _, err := adm.SetSettings(ctx, setup, admin.SetSettingsParams{Set: map[string]any{"signup_enabled": true}}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(a.Settings(ctx).SignUp.On())
	// Output:
	// true
	// true
}

// Give operators a dashboard. The first owner opens the link that is printed.
func Example_dashboard() {
	ctx := context.Background()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(), auth.WithBaseURL("http://127.0.0.1:8080/auth/v1"))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()
	adm, err := admin.New(ctx, a, admin.Options{
		Permissions: []admin.Permission{{Name: "notes.write", Description: "Change the notes of other people."}},
	})
	if err != nil {
		log.Fatal(err)
	}
	dash, err := dashboard.New(adm, dashboard.Options{Brand: "Notes"})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/auth/v1/", a.Handler())
	mux.Handle("/auth/v1/admin/", adm.Handler())
	mux.Handle("/dashboard/", dash)

	link, err := dash.FirstOwnerLink(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(link[:len("http://127.0.0.1:8080/dashboard/")])
	// Output: http://127.0.0.1:8080/dashboard/
}

// Verify access tokens in a service that has no store.
func Example_verifier() {
	ctx := context.Background()
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux) // the service with the store is another process
	defer srv.Close()
	a, err := auth.New(ctx, memstore.New(), auth.WithDevMode(), auth.WithBaseURL(srv.URL+"/auth/v1"))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()
	mux.Handle("/auth/v1/", a.Handler())
	res, err := a.SignUp(ctx, auth.SignUpParams{Email: "ada@example.com", Password: "correct horse battery"})
	if err != nil {
		log.Fatal(err)
	}

	v, err := authclient.NewVerifier(ctx, srv.URL)
	if err != nil {
		log.Fatal(err)
	}
	notes := v.Require(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintln(w, "notes of", authclient.ClaimsFrom(r.Context()).Email)
	}))
	r := httptest.NewRequestWithContext(ctx, "GET", "/notes", http.NoBody)
	r.Header.Set("Authorization", "Bearer "+res.Tokens.AccessToken)
	w := httptest.NewRecorder()
	notes.ServeHTTP(w, r)
	fmt.Print(w.Code, " ", w.Body)
	// Output: 200 notes of ada@example.com
}

// Test a handler of the application with a signed-in user.
func Example_testing() {
	notes := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

	_ = func(t *testing.T) { // func TestNotes(t *testing.T)
		env := authtest.New(t)
		ada := env.LoginAs(t, "ada@example.com", authtest.Permissions("notes.write"))

		r := httptest.NewRequestWithContext(t.Context(), "POST", "/notes", http.NoBody)
		ada.Sign(r)
		w := httptest.NewRecorder()
		env.Require(notes, auth.HasPermission("notes.write")).ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Errorf("status %d, want 200", w.Code)
		}
	}
}
