// Package rls runs an application's own queries as the signed-in user, so that the
// row-level security of Postgres applies to them.
package rls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/authmount/auth"
)

// The roles that policies are written for. What a token says about its role is
// not asked: no text from outside ever names one.
const (
	roleAnon          = "anon"
	roleAuthenticated = "authenticated"
)

// AsUser runs fn in a transaction as the person whom claims name, or as nobody
// for nil claims, so that row-level security decides what fn sees and changes.
// Pass auth.ClaimsFrom(r.Context()).
//
// In it, current_user is authenticated, or anon for nil claims, and auth.jwt(),
// auth.uid(), auth.role() and auth.email() tell what the access token says,
// and auth.authorize(permission) whether it has a permission, as Claims.HasPermission
// does; of permissions that a token left out, by the table of roles.
// Both are settings of the transaction, made by one statement in it, so that
// nothing of them is left on the connection and a pooler in transaction mode may
// stand in between. [pgstore.WithRowLevelSecurity] makes the roles. The pool's own user has
// to be a member of both, and should be neither superuser nor the tables' owner,
// who stand above policies.
//
// The transaction is committed if fn returns nil. Otherwise, or if it panics, it
// is rolled back, and fn's error is returned as it is; other errors are those of
// the database, and claims without a user. fn must not end the transaction
// itself, which is an error, nor change the role or the claims for the session
// (set role without local). What AsUser holds back is the mistake in a query, not
// a stranger's SQL: that could reset the role.
//
// AsUser may be called concurrently; fn's transaction may not be used so.
func AsUser(ctx context.Context, pool *pgxpool.Pool, claims *auth.Claims, fn func(pgx.Tx) error) error {
	role := roleAnon
	said := map[string]any{}
	if claims != nil {
		if claims.UserID == "" {
			return errors.New("rls: AsUser: the claims name no user")
		}
		role = roleAuthenticated
		said = saidBy(claims)
	}
	said["role"] = role
	text, err := json.Marshal(said)
	if err != nil {
		return fmt.Errorf("rls: AsUser: %w", err)
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "select set_config('role', $1::text, true), set_config('request.jwt.claims', $2::text, true)", role, string(text)); err != nil {
			var e *pgconn.PgError
			if errors.As(err, &e) && e.Code == noSuchRole {
				return fmt.Errorf("rls: AsUser: cannot become %s (migrate with WithRowLevelSecurity): %w", role, err)
			}
			return fmt.Errorf("rls: AsUser: cannot become %s: %w", role, err)
		}
		if err := fn(tx); err != nil {
			return err
		}
		if tx.Conn().PgConn().TxStatus() == 'I' { // what followed was done by the pool's user
			return errors.New("rls: AsUser: fn ended the transaction")
		}
		return nil
	})
}

const noSuchRole = "22023" // SQLSTATE invalid_parameter_value, of a setting

// saidBy is what policies get to know of a token, by the names it has there.
// Authmount's own come last, so that custom claims cannot replace them.
func saidBy(c *auth.Claims) map[string]any {
	said := map[string]any{}
	maps.Copy(said, c.Custom)
	maps.Copy(said, map[string]any{
		"sub": c.UserID, "session_id": c.SessionID, "email": orNull(c.Email), "email_verified": c.EmailVerified, "phone": orNull(c.Phone),
		"roles": orEmpty(c.Roles), "permissions": orEmpty(c.Permissions), "aal": c.AAL, "amr": orEmpty(c.AMR), "app_metadata": c.AppMetadata,
	})
	if c.AppMetadata == nil {
		said["app_metadata"] = struct{}{}
	}
	if by := c.Impersonator; by != nil {
		said["act"] = map[string]string{"sub": by.UserID, "session_id": by.ID}
	}
	for _, name := range c.Omitted { // not there, rather than empty
		delete(said, name)
	}
	if c.Omitted != nil {
		said["omitted"] = c.Omitted
	}
	return said
}

// orEmpty is an empty list for nil, which JSON would call null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// orNull is null for an empty text.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
