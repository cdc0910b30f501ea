package pgstore_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
)

// An export of several pages also works in a transaction of the application's, which runs
// one statement at a time, and contains the transaction's changes.
func TestUsersExportInTransaction(t *testing.T) {
	s, schema := openSchema(t)
	env := authtest.NewOn(t, s)
	adm, err := admin.New(t.Context(), env.Auth, admin.Options{})
	if err != nil {
		t.Fatal(err)
	}
	people := `insert into ` + schema + `.users (id, email, email_key, created_at, updated_at)
		select gen_random_uuid(), g || '@example.org', g || '@example.org', now(), now() from generate_series(1, 2000) g`
	inTx(t, s, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, people); err != nil {
			return err
		}
		var out bytes.Buffer
		if err := adm.ExportUsers(ctx, admin.System("test").Accepting(), admin.ExportUsersParams{}, &out); err != nil {
			return err
		}
		if n := bytes.Count(out.Bytes(), []byte("\n")); n != 2000 {
			t.Errorf("%d lines", n)
		}
		return nil
	})
}
