package pgstore

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/fstest"
	"time"

	"github.com/authmount/auth/store"
)

// A session belongs to no user if its user is gone and was not locked with it.
func TestSessionsWithoutTheirUserAreNobodys(t *testing.T) {
	const id = "9a1c4f5e-0c0e-4f58-9f0f-6f6f3f3f1a01"
	h := &held{sessions: map[string]*sessionRow{id: {s: store.Session{ID: id, UserID: id}}}, users: map[string]*lockedUser{}}
	if sess, u, err := h.liveSession(id, time.Now()); !errors.Is(err, store.ErrNotFound) || sess != nil || u != nil {
		t.Errorf("%v, %v, %v", sess, u, err)
	}
}

// Migrations that cannot be read are an error, not a schema without them.
func TestMigrationsThatCannotBeReadAreAnError(t *testing.T) {
	if list, err := readMigrations(os.DirFS(t.TempDir()), "gone"); err == nil {
		t.Errorf("of no directory: %v", list)
	}
	if list, err := readMigrations(fstest.MapFS{"0001_a.sql/x": {}}, "."); err == nil {
		t.Errorf("of a directory: %v", list)
	}
}

// leaving is a context that ends after its first check.
type leaving struct {
	context.Context //nolint:containedctx // this is a context
	asked           bool
}

func (l *leaving) Err() error {
	if l.asked {
		return context.Canceled
	}
	l.asked = true
	return nil
}

// A call is not made if its caller leaves at the moment that it starts.
func TestCallersWhoLeaveMeanwhile(t *testing.T) {
	b := (&timeouts{}).begin(t.Context(), time.Minute)
	defer b.cancel(nil)
	b.state.Store(wasLeft)
	b.caller = &leaving{Context: t.Context()}
	if err := b.work(); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
