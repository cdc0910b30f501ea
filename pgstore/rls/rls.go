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

// The roles that policies are written for. The token's role claim is ignored,
// because it must not choose a database role.
const (
	roleAnon          = "anon"
	roleAuthenticated = "authenticated"
)

// AsUser runs fn in a transaction as the user of claims, or as an anonymous user if
// claims is nil, so that row-level security limits the rows that fn reads and changes.
// Pass auth.ClaimsFrom(r.Context()).
//
// Within fn, current_user is authenticated, or anon if claims is nil. auth.jwt(),
// auth.uid(), auth.role() and auth.email() return the data of the access token.
// auth.authorize(permission) reports whether the token has a permission, as
// Claims.HasPermission does; if the token omits its permissions, it reads those of the
// token's roles from the table of roles.
//
// Role and claims are settings of the transaction, set by one statement in it. So
// nothing of them remains on the connection, and a pooler in transaction mode may be
// used. [github.com/authmount/auth/pgstore.WithRowLevelSecurity] creates the roles. The pool's user must be a
// member of both. It should be neither a superuser nor the owner of the tables, because
// policies do not apply to these.
//
// AsUser commits the transaction if fn returns nil. If fn returns an error or panics,
// AsUser rolls it back, and returns fn's error unchanged. It also returns errors of the
// database, and errors for claims without a user, and for none in the context of a request
// that a secret key sent (auth.AllowKeys). fn must not end the transaction,
// which is an error, nor change the role or the claims for the session (set role
// without local). AsUser protects against mistakes in a query, not against injected
// SQL, which could reset the role.
//
// AsUser may be called concurrently, but fn must not use its transaction concurrently.
func AsUser(ctx context.Context, pool *pgxpool.Pool, claims *auth.Claims, fn func(pgx.Tx) error) error {
	if claims == nil && auth.KeyFrom(ctx) != nil {
		return errors.New("rls: AsUser: a secret key sent this request, and it is no user")
	}
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
				return fmt.Errorf("rls: AsUser: cannot set role %s; run the migrations with pgstore.WithRowLevelSecurity: %w", role, err)
			}
			return fmt.Errorf("rls: AsUser: cannot set role %s: %w", role, err)
		}
		if err := fn(tx); err != nil {
			return err
		}
		if tx.Conn().PgConn().TxStatus() == 'I' { // later statements ran as the pool's user
			return errors.New("rls: AsUser: fn ended the transaction")
		}
		return nil
	})
}

const noSuchRole = "22023" // SQLSTATE invalid_parameter_value, of a setting

// saidBy returns the claims that policies can read, by their names in the token.
// Authmount's own claims are copied last, so that custom claims cannot replace them.
func saidBy(c *auth.Claims) map[string]any {
	said := map[string]any{}
	maps.Copy(said, c.Custom)
	maps.Copy(said, map[string]any{
		"sub": c.UserID, "session_id": c.SessionID, "email": orNull(c.Email), "email_verified": c.EmailVerified, "phone": orNull(c.Phone),
		"roles": nonNil(c.Roles), "permissions": nonNil(c.Permissions), "aal": c.AAL, "amr": nonNil(c.AMR), "app_metadata": c.AppMetadata,
	})
	if c.AppMetadata == nil {
		said["app_metadata"] = struct{}{}
	}
	if by := c.Impersonator; by != nil {
		said["act"] = map[string]string{"sub": by.UserID, "session_id": by.ID}
	}
	for _, name := range c.Omitted { // missing rather than empty
		delete(said, name)
	}
	if c.Omitted != nil {
		said["omitted"] = c.Omitted
	}
	return said
}

// nonNil returns an empty list for nil, which JSON would write as null.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// orNull returns nil for an empty text.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
