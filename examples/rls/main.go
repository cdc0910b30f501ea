// RLS is a notes API without user ids in its queries: policies in Postgres limit each
// user to their own notes by their access token, and let editors change other users'
// notes by a permission of their role.
//
//	go run ./examples/rls -migrate postgres://owner@localhost/notes
//	go run ./examples/rls -database postgres://notes_app:notes@localhost/notes -editor ada@example.com
//
// Here the owner may create roles, and tables in the schema public; docs/deployment.md
// describes the steps for an administrator otherwise. Sessions end with the server, because its secret is random at
// each start.
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/pgstore/rls"
)

//go:embed schema.sql
var schema string

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "address to listen on")
	owner := flag.String("migrate", "", "connection string of the tables' owner: migrate and exit")
	database := flag.String("database", "", "connection string of the role notes_app")
	editor := flag.String("editor", "", "proved address of an account that is to be an editor")
	flag.Parse()
	if err := run(*addr, *owner, *database, *editor); err != nil {
		log.Fatal(err)
	}
}

func run(addr, owner, database, editor string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if owner != "" {
		return migrate(ctx, owner)
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	url := "http://" + ln.Addr().String()
	store, err := pgstore.Open(ctx, database, pgstore.WithRowLevelSecurity())
	if err != nil {
		return err
	}
	defer store.Close()
	a, err := auth.New(ctx, store, auth.WithDevMode(), auth.WithBaseURL(url+"/auth/v1"))
	if err != nil {
		return err
	}
	adm, err := roles(ctx, a)
	if err == nil && editor != "" {
		_, err = adm.GrantByAddress(ctx, admin.System("setup"), editor, "editor")
	}
	if err != nil {
		return err
	}
	fmt.Printf("POST to %s/auth/v1/signup, then POST and GET %s/notes with the access token\n", url, url)
	return serve(ctx, ln, routes(a, store.Pool()), a)
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

// roles creates the role editor with the permission that a policy requires, if it is
// missing.
func roles(ctx context.Context, a *auth.Auth) (*admin.Admin, error) {
	adm, err := admin.New(ctx, a, admin.Options{Permissions: []admin.Permission{{Name: "notes.write", Description: "Change others' notes."}}})
	if err != nil {
		return nil, err
	}
	return adm, adm.EnsureRole(ctx, admin.System("setup"), admin.CreateRoleParams{Name: "editor", Permissions: []string{"notes.write"}})
}

// migrate is run by the owner, once per release; the server has no privileges for it.
func migrate(ctx context.Context, url string) error {
	store, err := pgstore.Open(ctx, url, pgstore.WithRowLevelSecurity(), pgstore.AutoMigrate())
	if err != nil {
		return err
	}
	defer store.Close()
	_, err = store.Pool().Exec(ctx, schema)
	return err
}

func routes(a *auth.Auth, pool *pgxpool.Pool) http.Handler {
	n := notes{pool}
	mux := http.NewServeMux()
	mux.Handle("/auth/v1/", a.Handler())
	mux.Handle("GET /notes", a.Optional(http.HandlerFunc(n.list))) // also without a session
	mux.Handle("POST /notes", a.Require(http.HandlerFunc(n.add)))
	mux.Handle("PUT /notes/{id}", a.Require(http.HandlerFunc(n.change)))
	mux.Handle("DELETE /notes/{id}", a.Require(http.HandlerFunc(n.remove)))
	return mux
}

type notes struct{ pool *pgxpool.Pool }

type note struct {
	ID   int64  `json:"id"`
	Text string `json:"text"`
}

// as runs fn with the database role of the request's user.
func (n notes) as(r *http.Request, fn func(pgx.Tx) error) error {
	return rls.AsUser(r.Context(), n.pool, auth.ClaimsFrom(r.Context()), fn)
}

func (n notes) list(w http.ResponseWriter, r *http.Request) {
	list := []note{}
	err := n.as(r, func(tx pgx.Tx) error {
		rows, err := tx.Query(r.Context(), "select id, text from notes order by id")
		if err == nil {
			list, err = pgx.CollectRows(rows, pgx.RowToStructByPos[note])
		}
		return err
	})
	answer(w, list, err)
}

func (n notes) add(w http.ResponseWriter, r *http.Request) {
	in, ok := decode(w, r)
	if !ok {
		return
	}
	err := n.as(r, func(tx pgx.Tx) error {
		return tx.QueryRow(r.Context(), "insert into notes (text) values ($1) returning id", in.Text).Scan(&in.ID)
	})
	answer(w, in, err)
}

func (n notes) change(w http.ResponseWriter, r *http.Request) {
	in, ok := decode(w, r)
	if !ok {
		return
	}
	err := n.as(r, func(tx pgx.Tx) error {
		return tx.QueryRow(r.Context(), "update notes set text = $2 where id = $1 returning id", id(r), in.Text).Scan(&in.ID)
	})
	answer(w, in, err)
}

func (n notes) remove(w http.ResponseWriter, r *http.Request) {
	var gone note
	err := n.as(r, func(tx pgx.Tx) error {
		return tx.QueryRow(r.Context(), "delete from notes where id = $1 returning id, text", id(r)).Scan(&gone.ID, &gone.Text)
	})
	answer(w, gone, err)
}

// id returns the id of the note in the path; invalid ids name no note.
func id(r *http.Request) int64 {
	n, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
	return n
}

func decode(w http.ResponseWriter, r *http.Request) (n note, ok bool) {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(&n); err != nil {
		http.Error(w, "This is no note.", http.StatusBadRequest)
		return note{}, false
	}
	return n, true
}

// answer writes the result of a request. Another user's note is not found.
func answer(w http.ResponseWriter, v any, err error) {
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		http.Error(w, "There is no such note.", http.StatusNotFound)
	case err != nil:
		log.Print(err)
		http.Error(w, "Something went wrong.", http.StatusInternalServerError)
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
}
