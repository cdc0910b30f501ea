package pgstore

import (
	"context"
	"io/fs"
)

// MigrateFiles is Migrate of a package that has these migrations.
func (s *Store) MigrateFiles(ctx context.Context, files fs.FS) error {
	list, err := readMigrations(files, ".")
	if err != nil {
		return err
	}
	return s.migrate(ctx, list)
}

// CheckFiles is Check of a package that has these migrations.
func (s *Store) CheckFiles(ctx context.Context, files fs.FS) error {
	list, err := readMigrations(files, ".")
	if err != nil {
		return err
	}
	return s.upToDate(ctx, len(list))
}
