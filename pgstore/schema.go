package pgstore

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// defaultSchema is the schema that statements are written for.
const defaultSchema = "auth"

var (
	//go:embed migrations/*.sql
	migrationFiles embed.FS
	// policyRoles creates the roles of WithRowLevelSecurity and grants their
	// privileges. It can be applied again.
	//go:embed rls.sql
	policyRoles string
)

// migration is one step of the schema; steps are only ever appended. The first line of
// its file may name the oldest package version, by its schema, that still works after
// the step:
//
//	-- compatible from 3
//
// Processes of that version keep running during a deploy, and new ones start. A step
// that only adds something (a table, an optional column, an index) repeats the version
// of the step before it. A step that removes something has to wait for one minor
// release that does not need it, and names the version of that release. Without the
// line, no older package works after the step.
type migration struct {
	version    int
	name       string
	compatible int // the oldest package version that works after it
	sql        string
}

const compatibleFrom = "-- compatible from "

// migrations returns all steps of this package, in order.
func migrations() []migration {
	list, err := readMigrations(migrationFiles, "migrations")
	if err != nil {
		panic(err) // they are embedded
	}
	return list
}

func readMigrations(files fs.FS, dir string) ([]migration, error) {
	entries, err := fs.ReadDir(files, dir) // sorted by name
	if err != nil {
		return nil, err
	}
	var list []migration
	oldest := 1
	for _, e := range entries {
		number, name, _ := strings.Cut(strings.TrimSuffix(e.Name(), ".sql"), "_")
		m := migration{name: name}
		if m.version, err = strconv.Atoi(number); err != nil || m.version != len(list)+1 {
			return nil, fmt.Errorf("pgstore: migration %s is out of order", e.Name())
		}
		text, err := fs.ReadFile(files, path.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		m.sql, m.compatible = string(text), m.version
		if line, _, _ := strings.Cut(m.sql, "\n"); strings.HasPrefix(line, compatibleFrom) {
			m.compatible, err = strconv.Atoi(strings.TrimPrefix(line, compatibleFrom))
			if err != nil || m.compatible < oldest || m.compatible > m.version {
				return nil, fmt.Errorf("pgstore: migration %s: %q has to name a version from %d to %d", e.Name(), line, oldest, m.version)
			}
		}
		oldest = m.compatible
		list = append(list, m)
	}
	return list, nil
}

// inSchema rewrites a statement for another schema than auth. It replaces auth as a
// whole word in
//
//	auth.users      // a name follows
//	schema auth     // or "exists auth": the schema itself
//	'auth_revoked'  // the channel of revocations
func inSchema(text, schema string) string {
	if schema == defaultSchema {
		return text
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, defaultSchema)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		if namesSchema(b.String(), after) {
			b.WriteString(schema)
		} else {
			b.WriteString(defaultSchema)
		}
		text = after
	}
}

// namesSchema reports whether the word auth between two texts is the schema's name.
func namesSchema(before, after string) bool {
	if before != "" && isNamePart(before[len(before)-1]) {
		return false
	}
	switch {
	case len(after) > 1 && after[0] == '.':
		return isNamePart(after[1])
	case strings.HasPrefix(after, "_revoked'"):
		return strings.HasSuffix(before, "'")
	case after == "" || !isNamePart(after[0]):
		return strings.HasSuffix(before, "schema ") || strings.HasSuffix(before, "exists ")
	}
	return false
}

// isNamePart reports whether a byte can be part of a name in this package's SQL: in
// lower case, without quotes. After a dot, auth is a column.
func isNamePart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '.'
}

// versions creates the table that records the applied migrations.
const versions = `
create schema if not exists auth;
create table if not exists auth.schema_version (
	version integer primary key,
	name text not null,
	compatible_from integer not null, -- the oldest version whose package works beside it
	applied_at timestamptz not null default now()
);
`

// Schema returns all migrations as SQL, to apply with another tool, such as by an
// administrator. Apply it to an empty database, in one transaction.
func Schema(opts ...Option) (string, error) {
	s := &Store{schema: defaultSchema}
	for _, o := range opts {
		if err := o(s); err != nil {
			return "", err
		}
	}
	var b strings.Builder
	b.WriteString(strings.TrimLeft(inSchema(versions, s.schema), "\n"))
	for _, m := range migrations() {
		fmt.Fprintf(&b, "\n-- %04d %s\n\n%s", m.version, m.name, inSchema(m.sql, s.schema))
		fmt.Fprintf(&b, "\ninsert into %s.schema_version (version, name, compatible_from) values (%d, '%s', %d);\n", s.schema, m.version, m.name, m.compatible)
	}
	if s.policies {
		b.WriteString("\n" + inSchema(policyRoles, s.schema))
	}
	return b.String(), nil
}

// Migrate brings the schema up to date, in one transaction under a lock, so that
// instances may start together. It does nothing if the schema is up to date, or if a
// newer version of this package has migrated it and this version works with it.
//
// This allows rolling deploys: instances of the previous minor release keep running and
// start after the new one has migrated. The migrations of a minor release keep
// everything that the code of the previous one needs. Older versions may get
// ErrSchemaAhead.
func (s *Store) Migrate(ctx context.Context) error {
	return s.migrate(ctx, migrations())
}

// migrate is Migrate with the given migrations.
func (s *Store) migrate(ctx context.Context, list []migration) error {
	behind := s.ready(ctx, len(list))
	if behind == nil || errors.Is(behind, ErrSchemaAhead) || errors.Is(behind, ErrSchemaForeign) {
		return behind
	}
	err := pgx.BeginTxFunc(ctx, s.pool, readCommitted, func(tx pgx.Tx) error { // each statement after the lock sees the migrations of others
		h := fnv.New64a()
		_, _ = h.Write([]byte("authmount schema " + s.schema))
		if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock($1)", int64(h.Sum64())); err != nil { //nolint:gosec // any number will do
			return err
		}
		if err := s.notOccupied(ctx, tx); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, inSchema(versions, s.schema), pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		have, err := s.applied(ctx, tx)
		if err != nil {
			return err
		}
		for _, m := range list[min(have.version, len(list)):] {
			if _, err := tx.Exec(ctx, inSchema(m.sql, s.schema), pgx.QueryExecModeSimpleProtocol); err != nil {
				return fmt.Errorf("migration %04d %s: %w", m.version, m.name, err)
			}
			if _, err := tx.Exec(ctx, s.sql("insert into auth.schema_version (version, name, compatible_from) values ($1::integer, $2::text, $3::integer)"), m.version, m.name, m.compatible); err != nil {
				return err
			}
		}
		if !s.policies {
			return nil
		}
		_, err = tx.Exec(ctx, inSchema(policyRoles, s.schema), pgx.QueryExecModeSimpleProtocol)
		return err
	})
	var e *pgconn.PgError
	switch {
	case err == nil:
		return s.ready(ctx, len(list))
	case errors.Is(err, ErrSchemaForeign):
		return err
	case errors.As(err, &e) && e.Code == notPermitted && errors.Is(behind, ErrSchemaBehind):
		return fmt.Errorf("pgstore: migrate: the schema %q is missing or out of date, and this role may not change that: let its owner migrate; to create it takes \"create\" on the database: %w", s.schema, err)
	case e != nil && e.Hint != "":
		return fmt.Errorf("pgstore: migrate: %w (%s)", err, e.Hint)
	}
	return fmt.Errorf("pgstore: migrate: %w", err)
}

// notOccupied checks that the schema, if no migration was applied to it, has no tables of
// another program, such as those of Supabase's own schema auth.
func (s *Store) notOccupied(ctx context.Context, q querier) error {
	var table string
	err := q.QueryRow(ctx, `select coalesce(min(c.relname::text), '') from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where n.nspname = $1::text and not exists (select from pg_class v where v.relnamespace = n.oid and v.relname = 'schema_version')`, s.schema).Scan(&table)
	if err == nil && table != "" {
		err = fmt.Errorf("%w: schema %q has %q of another program: use another schema (WithSchema) or database", ErrSchemaForeign, s.schema, table)
	}
	return err
}

const notPermitted = "42501" // SQLSTATE insufficient_privilege

// Errors of Migrate and Check about the schema.
var (
	// ErrSchemaBehind: migrations are missing. Call Migrate, or apply Schema().
	ErrSchemaBehind = errors.New("pgstore: migrations are missing: call Migrate or apply Schema")
	// ErrSchemaAhead: a newer version of this package has migrated, and this one does
	// not work with its schema.
	ErrSchemaAhead = errors.New("pgstore: a newer version of this package has migrated: update the package")
	// ErrSchemaForeign: the schema was created by other migrations than this package's,
	// such as those of its versions before the first release, or has tables of another
	// program. It is left unchanged.
	ErrSchemaForeign = errors.New("pgstore: the schema was created by other migrations")
)

// Check checks that this package works with the schema: its own, or a newer one that
// keeps everything it needs. It also checks the roles of WithRowLevelSecurity and the
// claims function, if these are configured. auth.New calls it.
func (s *Store) Check(ctx context.Context) error {
	if err := s.ready(ctx, len(migrations())); err != nil || s.claims == "" {
		return err
	}
	// Checks that the function exists and may be called, without calling it.
	if _, err := s.pool.Exec(ctx, s.sql("select "+s.claims+"(u.id) from auth.users u limit 0")); err != nil {
		return fmt.Errorf("pgstore: the claims function cannot be called: %w", err)
	}
	return nil
}

// ready checks everything that Migrate creates: the version of the schema, and the
// roles for policies if they are configured.
func (s *Store) ready(ctx context.Context, known int) error {
	if err := s.upToDate(ctx, known); err != nil || !s.policies {
		return err
	}
	var roles int
	err := s.pool.QueryRow(ctx, s.sql(`select count(*) from pg_roles r, pg_proc p where r.rolname in ('anon', 'authenticated') and p.oid = 'auth.uid()'::regprocedure
		and has_schema_privilege(r.oid, p.pronamespace, 'usage') and has_function_privilege(r.oid, p.oid, 'execute')`)).Scan(&roles)
	switch {
	case err != nil:
		return fmt.Errorf("pgstore: %w", err)
	case roles < 2:
		return fmt.Errorf("%w: the roles anon and authenticated of WithRowLevelSecurity are missing, or may not use the schema %q", ErrSchemaBehind, s.schema)
	}
	return nil
}

// upToDate checks that a package with this number of migrations works with the applied
// ones.
func (s *Store) upToDate(ctx context.Context, known int) error {
	have, err := s.applied(ctx, s.pool)
	var e *pgconn.PgError
	switch {
	case errors.As(err, &e) && e.Code == notPermitted:
		return fmt.Errorf("pgstore: this role lacks privileges on the schema %q (docs/deployment.md lists them): %w", s.schema, err)
	case errors.Is(err, ErrSchemaForeign):
		return err
	case err != nil:
		return fmt.Errorf("pgstore: %w", err)
	case have.version < known:
		return fmt.Errorf("%w: schema %q is at %d, the package at %d", ErrSchemaBehind, s.schema, have.version, known)
	case have.compatible > known:
		return fmt.Errorf("%w: schema %q is at %d, the package at %d, and it takes %d", ErrSchemaAhead, s.schema, have.version, known, have.compatible)
	}
	return nil
}

// applied returns the newest applied migration, with the name of the first one, or the
// zero value if there is none. Errors: ErrSchemaForeign.
func (s *Store) applied(ctx context.Context, q querier) (have migration, err error) {
	err = q.QueryRow(ctx, s.sql("select coalesce(max(version), 0), coalesce(max(compatible_from), 0), coalesce(min(name) filter (where version = 1), '') from auth.schema_version")).
		Scan(&have.version, &have.compatible, &have.name)
	if first := migrations()[0].name; err == nil && have.version > 0 && have.name != first {
		return migration{}, fmt.Errorf("%w: version 1 of schema %q is named %q, not %q: use another schema (WithSchema) or database", ErrSchemaForeign, s.schema, have.name, first)
	}
	var e *pgconn.PgError
	if errors.As(err, &e) && slices.Contains([]string{"42P01", "3F000"}, e.Code) { // no such table, no such schema
		return migration{}, nil
	}
	return have, err
}
