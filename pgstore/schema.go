package pgstore

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// defaultSchema is the schema that statements are written for.
const defaultSchema = "auth"

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one step of the schema; steps only ever follow each other.
type migration struct {
	version int
	name    string
	sql     string
}

var migrations = func() []migration {
	entries, err := fs.ReadDir(migrationFiles, "migrations")
	if err != nil {
		panic(err) // embedded
	}
	var list []migration
	for _, e := range entries {
		number, name, _ := strings.Cut(strings.TrimSuffix(e.Name(), ".sql"), "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != len(list)+1 {
			panic("pgstore: migration " + e.Name() + " is out of order")
		}
		text, err := migrationFiles.ReadFile("migrations/" + e.Name())
		if err != nil {
			panic(err) // embedded
		}
		list = append(list, migration{version, name, string(text)})
	}
	return list
}()

var schemaName = regexp.MustCompile(`\bauth[._]|\b(schema|exists) auth\b`)

// inSchema rewrites a statement for another schema.
func inSchema(text, schema string) string {
	if schema == defaultSchema {
		return text
	}
	return schemaName.ReplaceAllStringFunc(text, func(m string) string { return strings.Replace(m, defaultSchema, schema, 1) })
}

// versions is the table that says which migrations were applied.
const versions = `
create schema if not exists auth;
create table if not exists auth.schema_version (
	version integer primary key,
	name text not null,
	applied_at timestamptz not null default now()
);
`

// Schema answers all migrations as SQL, for those who apply them by tools of
// their own, as an administrator for instance. It may be applied to an empty
// database, in one transaction.
func Schema(opts ...Option) (string, error) {
	s := &Store{schema: defaultSchema}
	for _, o := range opts {
		if err := o(s); err != nil {
			return "", err
		}
	}
	var b strings.Builder
	b.WriteString(strings.TrimLeft(inSchema(versions, s.schema), "\n"))
	for _, m := range migrations {
		fmt.Fprintf(&b, "\n-- %04d %s\n\n%s", m.version, m.name, inSchema(m.sql, s.schema))
		fmt.Fprintf(&b, "\ninsert into %s.schema_version (version, name) values (%d, '%s');\n", s.schema, m.version, m.name)
	}
	return b.String(), nil
}

// Migrate brings the schema up to date, in one transaction under a lock, so that
// instances may start together. It does nothing if the schema is up to date.
// Versions newer than this package knows are an error.
func (s *Store) Migrate(ctx context.Context) error {
	behind := s.upToDate(ctx)
	if behind == nil || errors.Is(behind, ErrSchemaAhead) {
		return behind
	}
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		h := fnv.New64a()
		_, _ = h.Write([]byte("authmount schema " + s.schema))
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock($1)", int64(h.Sum64())); err != nil { //nolint:gosec // any number will do
			return err
		}
		if _, err := tx.Exec(ctx, inSchema(versions, s.schema), pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		have, err := s.version(ctx, tx)
		if err != nil {
			return err
		}
		for _, m := range migrations[min(have, len(migrations)):] {
			if _, err := tx.Exec(ctx, inSchema(m.sql, s.schema), pgx.QueryExecModeSimpleProtocol); err != nil {
				return fmt.Errorf("migration %04d %s: %w", m.version, m.name, err)
			}
			if _, err := tx.Exec(ctx, s.sql("insert into auth.schema_version (version, name) values ($1::integer, $2::text)"), m.version, m.name); err != nil {
				return err
			}
		}
		return nil
	})
	var e *pgconn.PgError
	switch {
	case err == nil:
		return s.upToDate(ctx)
	case errors.As(err, &e) && e.Code == notPermitted && errors.Is(behind, ErrSchemaBehind):
		return fmt.Errorf("pgstore: migrate: the schema %q is out of date and this role may not change it: let its owner migrate: %w", s.schema, err)
	case e != nil && e.Hint != "":
		return fmt.Errorf("pgstore: migrate: %w (%s)", err, e.Hint)
	}
	return fmt.Errorf("pgstore: migrate: %w", err)
}

const notPermitted = "42501" // SQLSTATE insufficient_privilege

// What is wrong with a schema.
var (
	// ErrSchemaBehind: migrations are missing. Call Migrate, or apply Schema().
	ErrSchemaBehind = errors.New("pgstore: migrations are missing: call Migrate or apply Schema")
	// ErrSchemaAhead: a newer version of this package has migrated.
	ErrSchemaAhead = errors.New("pgstore: a newer version of this package has migrated: update the package")
)

// Check tells whether the schema is the one this package works with, and whether
// there is a claims function if one is named. auth.New calls it.
func (s *Store) Check(ctx context.Context) error {
	if err := s.upToDate(ctx); err != nil || s.claims == "" {
		return err
	}
	// Looked up and permitted, but not called.
	if _, err := s.pool.Exec(ctx, s.sql("select "+s.claims+"(u.id) from auth.users u limit 0")); err != nil {
		return fmt.Errorf("pgstore: the claims function cannot be called: %w", err)
	}
	return nil
}

// upToDate tells whether exactly the migrations of this package were applied.
func (s *Store) upToDate(ctx context.Context) error {
	have, err := s.version(ctx, s.pool)
	var e *pgconn.PgError
	switch {
	case errors.As(err, &e) && e.Code == notPermitted:
		return fmt.Errorf("pgstore: this role lacks privileges on the schema %q (docs/deployment.md lists them): %w", s.schema, err)
	case err != nil:
		return fmt.Errorf("pgstore: %w", err)
	case have < len(migrations):
		return fmt.Errorf("%w: schema %q is at %d, the package at %d", ErrSchemaBehind, s.schema, have, len(migrations))
	case have > len(migrations):
		return fmt.Errorf("%w: schema %q is at %d, the package at %d", ErrSchemaAhead, s.schema, have, len(migrations))
	}
	return nil
}

// version is the newest migration that was applied; 0 for none.
func (s *Store) version(ctx context.Context, q querier) (int, error) {
	var have int
	err := q.QueryRow(ctx, s.sql("select coalesce(max(version), 0) from auth.schema_version")).Scan(&have)
	var e *pgconn.PgError
	if errors.As(err, &e) && slices.Contains([]string{"42P01", "3F000"}, e.Code) { // no such table, no such schema
		return 0, nil
	}
	return have, err
}
