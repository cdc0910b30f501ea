package memstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/authmount/auth"
)

// snapshotVersion is raised when the format changes.
const snapshotVersion = 1

// snapshot is the file's format. Rate limits are not kept: they are short.
type snapshot struct {
	Version  int            `json:"version"`
	Users    []savedUser    `json:"users"`
	Sessions []savedSession `json:"sessions"`
	Tokens   []auth.Token   `json:"tokens"`
}

// savedUser spells the user out, because auth.User's JSON is the wire's.
type savedUser struct {
	User     fields       `json:"user"`
	Hash     string       `json:"password_hash"`
	Factor   *auth.Factor `json:"factor,omitempty"`
	Recovery [][]byte     `json:"recovery,omitempty"`
}

// fields and identity drop the methods of the types they are made of.
type (
	identity auth.Identity
	fields   struct {
		plain
		Identities []identity
	}
	plain auth.User
)

type savedSession struct {
	auth.Session
	Revoked bool `json:"revoked"`
}

// Open makes a store from the snapshot at path, or an empty one if there is no
// such file. A file that cannot be read whole is an error.
func Open(path string) (*Store, error) {
	s := New()
	s.path = path
	b, err := os.ReadFile(path) //nolint:gosec // the caller's own file
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("memstore: %w", err)
	}
	if err := s.load(b); err != nil {
		return nil, fmt.Errorf("memstore: snapshot %s: %w", path, err)
	}
	return s, nil
}

func (s *Store) load(b []byte) error {
	var snap snapshot
	if err := json.Unmarshal(b, &snap); err != nil {
		return err
	}
	if snap.Version != snapshotVersion {
		return fmt.Errorf("version %d is not %d", snap.Version, snapshotVersion)
	}
	for _, u := range snap.Users {
		plainUser := auth.User(u.User.plain)
		plainUser.Identities = nil
		for _, i := range u.User.Identities {
			plainUser.Identities = append(plainUser.Identities, auth.Identity(i))
		}
		if _, err := s.createUser(context.Background(), auth.NewUser{User: plainUser, PasswordHash: u.Hash}); err != nil {
			return err
		}
		if u.Factor != nil {
			s.users[plainUser.ID].factor = &factor{*u.Factor, u.Recovery}
		}
	}
	for _, sess := range snap.Sessions {
		u := s.users[sess.UserID]
		if u == nil {
			return errors.New("a session of no user")
		}
		s.sessions[sess.ID] = &session{Session: sess.Session, revoked: sess.Revoked}
		u.sessions[sess.ID] = true
	}
	for _, t := range snap.Tokens {
		if t.UserID != "" && s.users[t.UserID] == nil {
			return errors.New("a token of no user")
		}
		s.addToken(t)
	}
	return nil
}

// Save writes the snapshot: whole or not at all, readable by the owner only. It
// holds password hashes.
func (s *Store) Save(ctx context.Context) error {
	if s.path == "" {
		return errors.New("memstore: the store has no file; see Open")
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return err
	}
	b, err := json.Marshal(s.snapshot())
	unlock()
	if err != nil {
		return fmt.Errorf("memstore: %w", err)
	}
	if err := replace(s.path, b); err != nil {
		return fmt.Errorf("memstore: %w", err)
	}
	return nil
}

func (s *Store) snapshot() snapshot {
	snap := snapshot{Version: snapshotVersion}
	for _, u := range s.users {
		f := fields{plain: plain(u.User)}
		for _, i := range u.Identities {
			f.Identities = append(f.Identities, identity(i))
		}
		saved := savedUser{User: f, Hash: u.hash}
		if u.factor != nil {
			saved.Factor, saved.Recovery = &u.factor.Factor, u.factor.recovery
		}
		snap.Users = append(snap.Users, saved)
	}
	for _, sess := range s.sessions {
		snap.Sessions = append(snap.Sessions, savedSession{sess.Session, sess.revoked})
	}
	for _, t := range s.tokens {
		snap.Tokens = append(snap.Tokens, *t)
	}
	return snap
}

// replace writes a file beside the old one and renames it over, so that a crash
// leaves one of the two.
func replace(path string, b []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
