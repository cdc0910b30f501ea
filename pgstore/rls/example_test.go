package rls_test

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/pgstore/rls"
)

// Query a table of the application as the user who sends the request, so that a policy
// of Postgres chooses the rows:
//
//	create table notes (owner uuid not null default auth.uid(), text text not null);
//	alter table notes enable row level security;
//	create policy own on notes to authenticated using (owner = auth.uid());
//	grant select on notes to authenticated;
func ExampleAsUser() {
	ctx := context.Background()
	store, err := pgstore.Open(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	a, err := auth.New(ctx, store, auth.WithDevMode())
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	mux := http.NewServeMux()
	mux.Handle("GET /notes/latest", a.Require(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var text string
		err := rls.AsUser(r.Context(), store.Pool(), auth.ClaimsFrom(r.Context()), func(tx pgx.Tx) error {
			return tx.QueryRow(r.Context(), "select text from notes limit 1").Scan(&text)
		})
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			http.NotFound(w, r)
		case err != nil:
			a.WriteError(w, r, err)
		default:
			_, _ = w.Write([]byte(text))
		}
	})))
}
