package memstore_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// A value that cannot be written as JSON makes its writer fail, and leaves no half of an
// answer.
func TestMetadataThatAreNoJSON(t *testing.T) {
	for what, u := range map[string]store.User{
		"the user's own":    {UserMetadata: map[string]any{"x": make(chan int)}},
		"the application's": {AppMetadata: map[string]any{"x": make(chan int)}},
	} {
		s := open(t, filepath.Join(t.TempDir(), "auth.db"))
		u.ID = uuid.NewString()
		_, err := s.CreateUser(t.Context(), store.CreateUser{Change: system(now), NewUser: store.NewUser{User: u}})
		ok(t, err)
		if rows, err := s.ListUserRows(t.Context(), store.UserQuery{Limit: 9}); err == nil || rows != nil {
			t.Errorf("%s: %+v, %v", what, rows, err)
		}
		if err := s.Save(t.Context()); err == nil {
			t.Errorf("%s: saved", what)
		}
	}
}

// A snapshot that cannot be read or written is reported, and leaves no other file.
func TestSnapshotThatFails(t *testing.T) {
	dir := t.TempDir()
	if s, err := memstore.Open(dir); err == nil || s != nil {
		t.Error("a folder is a snapshot")
	}
	s := open(t, filepath.Join(dir, "none", "auth.db"))
	if err := s.Save(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	s = open(t, filepath.Join(dir, "auth.db"))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Save(gone); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "auth.db"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(t.Context()); err == nil {
		t.Error("saved in place of a folder")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	if err := memstore.New().Save(t.Context()); err == nil {
		t.Error("saved without a file")
	}
}
