// Web is a server-rendered application on Postgres: notes behind the sign-in pages of
// package pages, without scripts.
//
//	DATABASE_URL=postgres://localhost/app go run .
//
// The secret is random at each start: accounts survive a restart, sessions do not.
package main

import (
	"context"
	"embed"
	"errors"
	"flag"
	"fmt"
	"html/template"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth"
	"github.com/authmount/auth/pages"
	"github.com/authmount/auth/pgstore"
)

//go:embed notes.html
var files embed.FS

const schema = `create table if not exists notes (
	id bigint generated always as identity primary key,
	user_id uuid not null references auth.users on delete cascade,
	body text not null check (length(body) between 1 and 1000)
)`

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "address to listen on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr, os.Getenv("DATABASE_URL")); err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx is done, then closes the server, the messages and the database in
// order.
func run(ctx context.Context, addr, database string) error {
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	url := "http://" + ln.Addr().String()
	store, err := pgstore.Open(ctx, database, pgstore.AutoMigrate())
	if err != nil {
		return err
	}
	defer store.Close()
	if _, err := store.Pool().Exec(ctx, schema); err != nil {
		return err
	}
	a, err := auth.New(ctx, store,
		auth.WithDevMode(), // ephemeral secret, http on loopback, messages to an inbox
		auth.WithBaseURL(url+"/auth/v1"),
		auth.WithCookies(auth.CookieOptions{}),
		auth.WithMail(auth.MailOptions{AppName: "Notes"}),
		auth.WithSettings(auth.Settings{AccountDeletion: auth.On}),
	)
	if err != nil {
		return err
	}
	handler, err := routes(a, store.Pool())
	if err != nil {
		return errors.Join(err, a.Close(ctx))
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ln) }()
	fmt.Printf("Open %s/notes; messages arrive at %s/dev/inbox\n", url, url)
	select {
	case err := <-done:
		return errors.Join(err, a.Close(ctx))
	case <-ctx.Done():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(srv.Shutdown(closing), a.Close(closing))
}

func routes(a *auth.Auth, db *pgxpool.Pool) (http.Handler, error) {
	account, err := pages.New(a, pages.Options{Accent: "#0f766e", Home: "/notes"})
	if err != nil {
		return nil, err
	}
	n := &notes{db: db, page: template.Must(template.ParseFS(files, "notes.html"))}
	r := chi.NewRouter()
	r.Handle("/auth/v1/*", a.Handler()) // links in mails, providers, programs
	r.Handle("/account/*", account)     // sign-in, sign-up, the account
	r.Handle("/dev/*", a.Inbox())
	r.Handle("/", http.RedirectHandler("/notes", http.StatusSeeOther))
	r.Group(func(r chi.Router) {
		r.Use(a.RequirePageAll()) // also rejects forms of other sites
		r.Get("/notes", n.list)
		r.Post("/notes", n.add)
		r.Post("/notes/{id}/delete", n.remove)
	})
	return r, nil
}

type notes struct {
	db   *pgxpool.Pool
	page *template.Template
}

type note struct {
	ID   int64
	Body string
}

func (n *notes) list(w http.ResponseWriter, r *http.Request) { n.show(w, r, http.StatusOK, "") }

func (n *notes) show(w http.ResponseWriter, r *http.Request, status int, problem string) {
	user := auth.ClaimsFrom(r.Context())
	rows, err := n.db.Query(r.Context(), `select id, body from notes where user_id = $1 order by id desc`, user.UserID)
	var list []note
	for err == nil && rows.Next() {
		var one note
		if err = rows.Scan(&one.ID, &one.Body); err == nil {
			list = append(list, one)
		}
	}
	if rows != nil {
		rows.Close()
		err = errors.Join(err, rows.Err())
	}
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if err := n.page.Execute(w, map[string]any{"User": user, "Notes": list, "Problem": problem}); err != nil {
		log.Print(err) // the visitor has disconnected
	}
}

func (n *notes) add(w http.ResponseWriter, r *http.Request) {
	body := r.FormValue("body")
	if count := len([]rune(body)); count < 1 || count > 1000 {
		n.show(w, r, http.StatusUnprocessableEntity, "A note has 1 to 1,000 characters.")
		return
	}
	n.change(w, r, `insert into notes (user_id, body) values ($1, $2)`, body)
}

func (n *notes) remove(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseInt(chi.URLParam(r, "id"), 10, 64)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	n.change(w, r, `delete from notes where user_id = $1 and id = $2`, id)
}

// change changes data of the visitor and shows the list.
func (n *notes) change(w http.ResponseWriter, r *http.Request, sql string, value any) {
	if _, err := n.db.Exec(r.Context(), sql, auth.ClaimsFrom(r.Context()).UserID, value); err != nil {
		fail(w, err)
		return
	}
	http.Redirect(w, r, "/notes", http.StatusSeeOther)
}

func fail(w http.ResponseWriter, err error) {
	log.Print(err)
	http.Error(w, "Something went wrong on our side.", http.StatusInternalServerError)
}
