package pgstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth"
	"github.com/authmount/auth/pgstore"
)

// Imports in the name of one and the same session go on at the same time; what ends that
// session waits for them, and they for that.
func TestImportsOfOneSessionGoOnAtOnce(t *testing.T) {
	s := open(t)
	u, sess := withSession(t, s)
	imports := func(ctx context.Context) error {
		email := uuid.NewString() + "@example.com"
		list, err := s.CreateUsers(ctx, auth.CreateUsers{Change: bySession(sess), Users: []auth.ImportedRow{{User: auth.User{ID: uuid.NewString(), Email: email, CreatedAt: time.Now(), UpdatedAt: time.Now()}}}})
		return errors.Join(append(list, err)...)
	}
	err := pgx.BeginFunc(t.Context(), s.Pool(), func(tx pgx.Tx) error {
		if err := imports(pgstore.InTx(t.Context(), tx)); err != nil {
			return err
		}
		if err := imports(t.Context()); err != nil {
			t.Errorf("beside another one: %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := revoke(s, u.ID)(ctx); err == nil {
			t.Error("the session ends while an import of its goes on")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := revoke(s, u.ID)(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := imports(t.Context()); !errors.Is(err, auth.ErrSessionEnded) {
		t.Errorf("once it has ended: %v", err)
	}
}
