package sqlitestore

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/ncruces/go-sqlite3"
)

// ErrDamaged is the error of a file whose content SQLite cannot have written. Restore a
// backup; a program that continues could lose more.
var ErrDamaged = errors.New("the file is damaged")

// ErrInUse is the error of Restore for a file that is open in this or another process.
var ErrInUse = errors.New("the file is open in a program, perhaps in this one")

// explained adds the problem of a file in plain words to an error of SQLite or of the
// operating system. Other errors are returned as they are, such as io.EOF.
func explained(path string, err error) error {
	if err == nil {
		return nil
	}
	if code := sqlite3.ErrorCode(0); !errors.As(err, &code) && !errors.As(err, new(*fs.PathError)) {
		return err
	}
	var problem error
	switch {
	case errors.Is(err, sqlite3.CORRUPT), errors.Is(err, sqlite3.NOTADB):
		problem = ErrDamaged
	case errors.Is(err, sqlite3.FULL), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		problem = errors.New("the disk is full")
	case errors.Is(err, sqlite3.READONLY_DBMOVED):
		problem = errors.New("the file was moved or deleted while it was open")
	case errors.Is(err, sqlite3.READONLY), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		problem = errors.New("the program may not write to the file or its directory")
	case errors.Is(err, sqlite3.IOERR):
		problem = errors.New("the disk or file system reports an error")
	case errors.Is(err, sqlite3.CANTOPEN):
		problem = errors.New("the file cannot be opened")
	default:
		return err
	}
	return fmt.Errorf("%w: %s: %w", problem, path, err)
}
