package sqlitestore_test

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/authmount/auth"
	"github.com/authmount/auth/sqlitestore"
	"github.com/authmount/auth/store"
)

// A profile row of the application is created together with the account or not at all, with
// every sign-up method.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()

	db, err := sqlitestore.Open(filepath.Join(dir, "app.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	err = db.InTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `create table if not exists profiles (
			user_id text primary key references auth_users on delete cascade,
			name text not null
		) strict`)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}

	// It runs in the transaction that creates the account. Its error undoes the sign-up.
	addProfile := func(ctx context.Context, u auth.User) error {
		_, err := sqlitestore.Tx(ctx).ExecContext(ctx, "insert into profiles (user_id, name) values (?, ?)", u.ID, cmp.Or(u.FullName, u.Email, u.Phone))
		return err
	}
	a, err := auth.New(ctx, db, auth.WithDevMode(), auth.WithHooks(auth.Hooks{OnUserCreating: addProfile}))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()
	signed, err := a.SignUp(ctx, auth.SignUpParams{Email: "ada@example.com", Password: "correct horse battery", FullName: "Ada"})
	if err != nil {
		log.Fatal(err)
	}

	var name string
	err = db.InTx(ctx, func(ctx context.Context, tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "select name from profiles where user_id = ?", signed.User.ID).Scan(&name)
	})
	fmt.Println(name, err)
	// Output: Ada <nil>
}

// Two accounts are imported together or not at all.
func ExampleStore_InTx() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	db, err := sqlitestore.Open(filepath.Join(dir, "auth.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	a, err := auth.New(ctx, db, auth.WithDevMode())
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	err = db.InTx(ctx, func(ctx context.Context, _ *sql.Tx) error { // calls within need this ctx
		for _, email := range []string{"ada@example.com", "ADA@example.com"} {
			if _, err := a.ImportUser(ctx, auth.ImportUserParams{Email: email}); err != nil {
				return err
			}
		}
		return nil
	})
	fmt.Println(errors.Is(err, auth.CodeUserAlreadyExists))
	_, err = db.User(ctx, store.ByEmail("ada@example.com"))
	fmt.Println(errors.Is(err, store.ErrNotFound))
	// Output:
	// true
	// true
}
