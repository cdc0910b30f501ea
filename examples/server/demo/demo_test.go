package demo

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// The month can end at any time of the day.
func TestSeedAtAnyTime(t *testing.T) {
	for _, clock := range []time.Duration{time.Minute, 11*time.Hour + 30*time.Minute, 24*time.Hour - time.Second} {
		t.Run(clock.String(), func(t *testing.T) {
			t.Parallel()
			now := time.Now().UTC().Truncate(24 * time.Hour).Add(clock)
			o, err := seedUntil(t.Context(), now, memstore.New(), []byte("a-secret-of-the-tests-32-bytes-at-least"), "http://127.0.0.1:8080/auth/v1", "Notes")
			if err != nil || o.TOTPSecret == "" || len(o.RecoveryCodes) < 3 {
				t.Errorf("%+v, %v", o, err)
			}
		})
	}
}

// forgetting is a store that does not record the outcomes of messages.
type forgetting struct {
	auth.Store
	store.Journal
}

func (s forgetting) Unwrap() auth.Store { return s.Store }

func (s forgetting) FinishMessage(context.Context, store.FinishMessage) error { return nil }

// A message that is not attempted ends the start with its state.
func TestSeedReportsAMessageThatWaits(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	st := memstore.New()
	_, err := Seed(ctx, forgetting{st, st}, []byte("a-secret-of-the-tests-32-bytes-at-least"), "http://127.0.0.1:8080/auth/v1", "")
	if err == nil || !strings.Contains(err.Error(), "is queued after 0 attempts") {
		t.Errorf("%v", err)
	}
}

// Nothing is written to a store that has an account.
func TestSeedNeedsAnEmptyStore(t *testing.T) {
	t.Parallel()
	st := memstore.New()
	secret := []byte("a-secret-of-the-tests-32-bytes-at-least")
	a, err := auth.New(t.Context(), st, auth.WithDevMode(), auth.WithSecret(secret))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close(t.Context()) }()
	ada, err := a.ImportUser(t.Context(), auth.ImportUserParams{Email: "ada@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Seed(t.Context(), st, secret, "http://127.0.0.1:8080/auth/v1", ""); err == nil {
		t.Error("it seeded a store with accounts")
	}
	users, err := st.ListUsers(t.Context(), store.UserQuery{Limit: 10})
	if err != nil || len(users) != 1 || users[0].ID != ada.ID {
		t.Errorf("%v, %v", users, err)
	}
}
