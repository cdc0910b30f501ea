package authclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// TokenStore stores the session of one user. Implementations must be safe for
// concurrent use and respect each call's context. The stored tokens give access to the
// account: keep them where no other user can read them.
type TokenStore interface {
	// Load returns the session, or nil if there is none.
	Load(ctx context.Context) (*Session, error)
	// Save replaces the session.
	Save(ctx context.Context, s *Session) error
	// Clear deletes the session. It is no error if there is none.
	Clear(ctx context.Context) error
}

// MemoryStore keeps the session in memory. Its zero value is ready to use.
type MemoryStore struct {
	mu sync.Mutex
	s  *Session
}

// Load implements TokenStore.
func (m *MemoryStore) Load(context.Context) (*Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.s.clone(), nil
}

// Save implements TokenStore.
func (m *MemoryStore) Save(_ context.Context, s *Session) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.s = s.clone()
	return nil
}

// Clear implements TokenStore.
func (m *MemoryStore) Clear(context.Context) error { return m.Save(context.Background(), nil) }

// FileStore stores the session in a file that only its owner can read, for command-line
// programs. It creates a missing folder, for the owner only. Several processes may share it, because each reads it before it refreshes.
type FileStore struct{ Path string }

// Load implements TokenStore.
func (f FileStore) Load(context.Context) (*Session, error) {
	b, err := os.ReadFile(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var s Session
	if json.Unmarshal(b, &s) != nil || s.RefreshToken == "" {
		return nil, fmt.Errorf("%s holds no session", f.Path)
	}
	return &s, nil
}

// Save implements TokenStore. It replaces the file in one step.
func (f FileStore) Save(_ context.Context, s *Session) error {
	b, err := json.Marshal(s) //nolint:gosec // tokens are what is to be stored
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(f.Path), ".session-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = tmp.Write(b)
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), f.Path)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	return err
}

// Clear implements TokenStore.
func (f FileStore) Clear(context.Context) error {
	err := os.Remove(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
