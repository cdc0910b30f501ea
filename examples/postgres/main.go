// Postgres is a small program that stores its users in Postgres, with its own table that
// has one row per user: the profile is created together with the account or not at all,
// with every sign-up method.
//
//	go run ./examples/postgres -database postgres://localhost/app
//	curl http://127.0.0.1:8080/auth/v1/signup -H 'Content-Type: application/json' \
//		-d '{"email":"ada@example.com","password":"correct horse battery","full_name":"Ada"}'
//	curl http://127.0.0.1:8080/hello -H 'Authorization: Bearer <access_token of the response>'
//
// The secret is random at each start: accounts survive a restart, sessions do not.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/authmount/auth"
	"github.com/authmount/auth/pgstore"
)

const profiles = `create table if not exists profiles (
	user_id uuid primary key references auth.users on delete cascade,
	name text not null constraint profiles_name_check check (lower(name) <> 'admin')
)`

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "address to listen on")
	database := flag.String("database", "", "connection string; default: the PG… environment variables")
	flag.Parse()
	if err := run(*addr, *database); err != nil {
		log.Fatal(err)
	}
}

func run(addr, database string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	url := "http://" + ln.Addr().String()
	store, err := open(ctx, database)
	if err != nil {
		return err
	}
	defer store.Close()
	a, err := newAuth(ctx, store, url)
	if err != nil {
		return err
	}
	fmt.Printf("POST to %s/auth/v1/signup; messages arrive at %s/dev/inbox\n", url, url)
	return serve(ctx, ln, routes(a, store), a)
}

// serve serves until a signal arrives. Then it completes running requests and sends
// waiting messages.
func serve(ctx context.Context, ln net.Listener, h http.Handler, a *auth.Auth) error {
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	select {
	case err := <-failed:
		return errors.Join(err, a.Close(ctx))
	case <-ctx.Done():
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(srv.Shutdown(end), a.Close(end))
}

// open connects and migrates both schemas.
func open(ctx context.Context, url string) (*pgstore.Store, error) {
	store, err := pgstore.Open(ctx, url, pgstore.AutoMigrate())
	if err != nil {
		return nil, err
	}
	if _, err := store.Pool().Exec(ctx, profiles); err != nil {
		store.Close()
		return nil, err
	}
	return store, nil
}

func newAuth(ctx context.Context, store *pgstore.Store, url string) (*auth.Auth, error) {
	return auth.New(ctx, store,
		auth.WithDevMode(), // ephemeral secret, http on loopback, messages to an inbox
		auth.WithBaseURL(url+"/auth/v1"),
		auth.WithHooks(auth.Hooks{OnUserCreating: addProfile}),
	)
}

// addProfile runs in the transaction that creates the account. Its error rolls back the
// sign-up; an error of auth.Reject is shown to the user.
func addProfile(ctx context.Context, u auth.User) error {
	_, err := pgstore.Tx(ctx).Exec(ctx, "insert into profiles (user_id, name) values ($1, $2)", u.ID, cmp.Or(u.FullName, u.Email, u.Phone))
	var e *pgconn.PgError
	if errors.As(err, &e) && e.ConstraintName == "profiles_name_check" {
		return auth.Reject(auth.CodeValidationFailed, "This name is reserved.")
	}
	return err
}

func routes(a *auth.Auth, store *pgstore.Store) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/auth/v1/", a.Handler())
	mux.Handle("/dev/", a.Inbox())
	mux.Handle("GET /hello", a.Require(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var name string
		err := store.Pool().QueryRow(r.Context(), "select name from profiles where user_id = $1", auth.ClaimsFrom(r.Context()).UserID).Scan(&name)
		if err != nil {
			http.Error(w, "Something went wrong.", http.StatusInternalServerError)
			return
		}
		_, _ = fmt.Fprintf(w, "Hello %s\n", name)
	})))
	return mux
}
