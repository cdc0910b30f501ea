package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// Backup writes a copy of the file, at one moment, to path, readable only to its owner.
// Changes go on meanwhile; the log (-wal) keeps them until the copy is complete, so the disk
// needs space for it. The copy is complete, checked and synced before it gets its name; a crash
// may leave a folder path.tmp-* with a part of it. Keep the copy as safe as the file, and keep
// the secret of the application, without which the second factors in it are lost.
//
// If there is a file at path, the error is fs.ErrExist. If the copy is no sound file of this
// package, the error is ErrDamaged. The context ends a backup; it must not carry a
// transaction. Several backups may run at once.
func (s *Store) Backup(ctx context.Context, path string) error {
	if s.InTransaction(ctx) {
		return errors.New("auth: sqlite: no backup within a transaction")
	}
	path, err := filepath.Abs(path) // SQLite would look in the root
	if err != nil {
		return fmt.Errorf("auth: sqlite: %w", err)
	}
	err = beside(path, func(copied string) error {
		if exists(path) {
			return &fs.PathError{Op: "backup", Path: path, Err: fs.ErrExist}
		}
		if err := s.copyTo(ctx, copied); err != nil {
			return err
		}
		if err := inspect(ctx, copied, `pragma quick_check(1)`); err != nil {
			return err
		}
		return place(copied, path)
	})
	return ofFile(ctx, err)
}

// ofFile is the error of a file, or that of the context that stopped the work on it.
func ofFile(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	return failure(ctx, err)
}

// copyTo writes a copy of the file to path.
func (s *Store) copyTo(ctx context.Context, path string) error {
	s.copying.Add(1)
	_, err := s.reader.ExecContext(ctx, `vacuum into ?`, path)
	s.copying.Add(-1)
	if err != nil {
		return err
	}
	// Here no change waits for the log that the copy kept. The next commit starts it anew.
	// An error is left to it, because the copy is complete.
	_ = s.read(ctx, func(t *tx) error {
		list(t, func(scan row) (busy int) {
			var pages, copied int
			scan(&busy, &pages, &copied)
			return busy
		}, `pragma wal_checkpoint(passive)`)
		return nil
	})
	return nil
}

// beside calls f with the path of an empty file in a private folder beside path. The folder
// is removed in the end; f moves the file out of it.
func beside(path string, f func(string) error) error {
	dir, err := os.MkdirTemp(filepath.Dir(path), filepath.Base(path)+".tmp-*") // has the mode 0700
	if err != nil {
		return explained(filepath.Dir(path), err)
	}
	file := filepath.Join(dir, "auth.db")
	err = os.WriteFile(file, nil, 0o600)
	if err == nil {
		err = f(file)
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// inspect returns an error if a file is damaged or does not hold the schema of this version.
// check is the pragma that checks its structure.
func inspect(ctx context.Context, path, check string) error {
	db, err := direct(ctx, path, "mode=ro")
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // nothing was written
	return sound(db, path, check)
}

func sound(db *sqlite3.Conn, path, check string) error {
	const version = `select coalesce(max(version), 0) from auth_schema`
	found, err := column(db, check)
	if err != nil {
		return explained(path, err)
	}
	if len(found) != 1 || found[0] != "ok" {
		return fmt.Errorf("%w: %s: %s", ErrDamaged, path, found)
	}
	if found, err = column(db, `select count(*) from sqlite_schema where type = 'table' and name = 'auth_schema'`); err != nil {
		return explained(path, err)
	}
	if found[0] == "0" {
		return fmt.Errorf("%s holds no tables of this package", path)
	}
	if found, err = column(db, version); err != nil {
		return explained(path, err)
	}
	if err := fits(found[0]); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := complete(db, path); err != nil {
		return err
	}
	if found, err = column(db, `select distinct "table" from pragma_foreign_key_check`); err != nil {
		return explained(path, err)
	}
	if len(found) > 0 {
		return fmt.Errorf("%w: %s: rows of %s refer to rows that are missing", ErrDamaged, path, found)
	}
	return nil
}

// definitions lists the definitions of a file.
const definitions = `select name || ' ' || sql from sqlite_schema where sql is not null`

// complete returns an error if a table, index or trigger of this package is missing, or
// another one has its name, with which the store would not do what it says. The application
// may have added its own.
func complete(db *sqlite3.Conn, path string) error {
	model, err := sqlite3.Open(":memory:")
	if err != nil {
		return err
	}
	defer model.Close() //nolint:errcheck // nothing is in it
	if err := model.Exec(schema); err != nil {
		return err
	}
	want, err := column(model, definitions)
	if err != nil {
		return err
	}
	found, err := column(db, definitions)
	if err != nil {
		return explained(path, err)
	}
	for i := range found {
		found[i] = bare(found[i])
	}
	for _, definition := range want {
		if definition = bare(definition); !slices.Contains(found, definition) {
			name, _, _ := strings.Cut(definition, " ")
			return fmt.Errorf("%s: %s is missing or differs from the schema of this package", path, name)
		}
	}
	return nil
}

var comment = regexp.MustCompile(`--[^\n]*`)

// bare returns a definition without comments, with single spaces.
func bare(sql string) string {
	return strings.Join(strings.Fields(comment.ReplaceAllString(sql, "")), " ")
}

// fits reports a schema of another version.
func fits(version string) error {
	if version == fmt.Sprint(schemaVersion) {
		return nil
	}
	return fmt.Errorf("the schema has version %s, this program needs %d", version, schemaVersion)
}

// direct opens a file without the pragmas of a store, with a parameter of its URI.
func direct(ctx context.Context, path, parameter string) (*sqlite3.Conn, error) {
	db, err := sqlite3.OpenContext(ctx, (&connector{path: path}).uri()+"&"+parameter)
	if err != nil {
		return nil, explained(path, err)
	}
	db.SetInterrupt(ctx)
	return db, nil
}

// column returns the first column of a statement's rows.
func column(db *sqlite3.Conn, query string) (all []string, err error) {
	s, _, err := db.Prepare(query)
	if err != nil {
		return nil, err
	}
	for s.Step() {
		all = append(all, s.ColumnText(0))
	}
	return all, errors.Join(s.Err(), s.Close())
}

// place syncs a file and gives it its name, unless there is a file of that name.
func place(file, path string) error {
	if err := syncFile(file); err != nil {
		return explained(path, err)
	}
	err := os.Link(file, path)
	if err != nil && !errors.Is(err, fs.ErrExist) { // a file system without links
		if exists(path) {
			err = &fs.PathError{Op: "backup", Path: path, Err: fs.ErrExist}
		} else {
			err = os.Rename(file, path)
		}
	}
	if err != nil {
		return explained(path, err)
	}
	return syncDir(path)
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0) //nolint:gosec // a path of the application
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncDir makes the names in the folder of a file durable.
func syncDir(path string) error {
	if runtime.GOOS == "windows" { // it cannot, and does so itself
		return nil
	}
	f, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return explained(filepath.Dir(path), errors.Join(f.Sync(), f.Close()))
}
