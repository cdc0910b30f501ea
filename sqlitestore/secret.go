package sqlitestore

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
)

// DevelopmentSecret returns a secret for auth.WithSecret that is kept beside a database file,
// in path + ".secret", so that sessions survive a restart in development. It creates the file,
// readable only to its owner, if there is none; call it before Open. In production keep the secret apart from the
// data: a copy of both lets its holder sign in as any user.
func DevelopmentSecret(path string) ([]byte, error) {
	info, failed := os.Stat(path)
	path += ".secret"
	made := rand.Text() + rand.Text()                                     // 260 bits
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // beside the file that the application opens
	switch {
	case errors.Is(err, fs.ErrExist):
		return readSecret(path)
	case err != nil:
		return nil, fmt.Errorf("auth: sqlite: %w", err)
	}
	_, err = f.WriteString(made + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("auth: sqlite: %w", err), os.Remove(path))
	}
	if failed == nil && info.Size() > 0 {
		slog.Warn("auth: sqlite: the database has no secret beside it, and gets a new one: sessions and second factors from before do not work", "file", path)
	}
	return []byte(made), nil
}

func readSecret(path string) ([]byte, error) {
	b, err := os.ReadFile(path) //nolint:gosec // as above
	if err != nil {
		return nil, fmt.Errorf("auth: sqlite: %w", err)
	}
	secret := strings.TrimSpace(string(b))
	if len(secret) < 32 {
		return nil, fmt.Errorf("auth: sqlite: %s holds no secret of at least 32 bytes; restore it, or delete it: then all sessions and second factors are lost", path)
	}
	return []byte(secret), nil
}
