package auth_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// timedStore measures one method of the store that it wraps, and leaves the others alone.
type timedStore struct {
	auth.Store
	record func(method string, d time.Duration)
}

// Unwrap lets the service find the optional powers of the wrapped store.
func (s timedStore) Unwrap() auth.Store { return s.Store }

// Credentials reads a user and the password hash at a login.
func (s timedStore) Credentials(ctx context.Context, key store.UserKey) (store.Credentials, error) {
	start := time.Now()
	defer func() { s.record("Credentials", time.Since(start)) }()
	return s.Store.Credentials(ctx, key)
}

// Wrap a store to measure it. Package storetest checks a store written from scratch.
func ExampleStore() {
	ctx := context.Background()
	var mu sync.Mutex
	calls := map[string]int{}
	st := timedStore{memstore.New(), func(method string, _ time.Duration) { // in production: a histogram
		mu.Lock()
		defer mu.Unlock()
		calls[method]++
	}}
	a, err := auth.New(ctx, st, auth.WithDevMode())
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = a.Close(ctx) }()

	_, err = a.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: "a wrong password"})
	mu.Lock()
	defer mu.Unlock()
	fmt.Println(errors.Is(err, auth.CodeInvalidCredentials), calls)
	// Output: true map[Credentials:1]
}
