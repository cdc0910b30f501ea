// Package storetest holds an auth.Store to its promises.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) auth.Store { return mystore.New(t) })
//	}
//
// Each subtest gets a store of its own and is named after the promise it checks.
// Run it with -race: the races are real parallel calls.
package storetest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
)

// parallel is how many goroutines race for one thing.
const parallel = 50

// Run checks every promise of auth.Store, and of auth.FactorStore if the store
// is one. open makes an empty store, and
// arranges for its end with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) auth.Store) {
	t.Helper()
	groups := map[string]map[string]func(*bench){
		"users": users, "sessions": sessions, "tokens": tokens, "limits": limits, "upkeep": upkeep,
	}
	for group, checks := range groups {
		t.Run(group, func(t *testing.T) {
			for name, check := range checks {
				t.Run(name, func(t *testing.T) {
					check(&bench{T: t, Store: open(t)})
				})
			}
		})
	}
	t.Run("factors", func(t *testing.T) { runFactors(t, open) })
}

// bench is one store under test.
type bench struct {
	*testing.T
	auth.Store
}

// now is the instant that the checks take place at.
var now = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)

const (
	us     = time.Microsecond
	minute = time.Minute
)

func (b *bench) ctx() context.Context { return b.Context() }

// id makes a UUIDv7.
func (b *bench) id() string {
	b.Helper()
	id, err := uuid.NewV7()
	if err != nil {
		b.Fatal(err)
	}
	return id.String()
}

func hashOf(s string) []byte {
	sum := sha256.Sum256([]byte(s))
	return sum[:]
}

func ptr[T any](v T) *T { return &v }

// newUser describes a user with an address.
func (b *bench) newUser(email string) auth.NewUser {
	b.Helper()
	return auth.NewUser{User: auth.User{ID: b.id(), Email: email, CreatedAt: now, UpdatedAt: now}}
}

// user adds a user.
func (b *bench) user(email string) auth.User {
	b.Helper()
	u, err := b.CreateUser(b.ctx(), b.newUser(email))
	b.ok(err)
	return u
}

// whole adds a user of whom everything is known, with the password hash "hash".
func (b *bench) whole() auth.User {
	b.Helper()
	nu := b.newUser("ada@example.com")
	nu.User.EmailVerified, nu.User.Phone, nu.User.PhoneVerified, nu.User.FullName = true, "+4930123456", true, "Ada"
	nu.User.UserMetadata, nu.User.AppMetadata, nu.User.Roles = map[string]any{"a": "b"}, map[string]any{"c": "d"}, []string{"r"}
	nu.User.Identities = []auth.Identity{b.identity("p", "1"), b.identity("p", "2"), b.identity("q", "1")}
	nu.User.LastSignInAt, nu.PasswordHash = now.Add(-minute), "hash"
	u, err := b.CreateUser(b.ctx(), nu)
	b.ok(err)
	return u
}

// identity describes an account at a provider.
func (b *bench) identity(provider, subject string) auth.Identity {
	b.Helper()
	return auth.Identity{ID: b.id(), Provider: provider, Subject: subject, Email: "x@example.com", CreatedAt: now, LastSignInAt: now}
}

// stands wants a user and the password hash as the store keeps them.
func (b *bench) stands(want auth.Credentials) {
	b.Helper()
	got, err := b.Credentials(b.ctx(), auth.ByID(want.User.ID))
	b.ok(err)
	b.sameUser(got.User, want.User)
	if got.PasswordHash != want.PasswordHash {
		b.Errorf("hash %q, want %q", got.PasswordHash, want.PasswordHash)
	}
}

// newSession describes a session of a user.
func (b *bench) newSession(userID string) auth.Session {
	b.Helper()
	return auth.Session{
		ID: b.id(), UserID: userID, AAL: auth.LevelAAL1, AMR: []auth.AMR{{Method: "password", Timestamp: now.Unix()}},
		CreatedAt: now, LastActiveAt: now, RotatedAt: now, IdleUntil: now.Add(time.Hour), IP: "192.0.2.1", UserAgent: "storetest",
	}
}

// session adds a session.
func (b *bench) session(userID string) auth.Session {
	b.Helper()
	s := b.newSession(userID)
	_, err := b.CreateSession(b.ctx(), auth.NewSession{Session: s})
	b.ok(err)
	return s
}

// newToken describes a token.
func newToken(secret, subject string) auth.Token {
	return auth.Token{
		Purpose: auth.PurposeMagicLink, Hash: hashOf(secret), Subject: subject, Data: []byte(`{"a":1}`),
		CreatedAt: now, ExpiresAt: now.Add(minute), MaxTries: 0,
	}
}

// token adds a token.
func (b *bench) token(t auth.Token) {
	b.Helper()
	b.ok(b.PutToken(b.ctx(), t))
}

// redeem uses up a token that newToken described.
func (b *bench) redeem(secret string) error {
	_, _, err := b.RedeemToken(b.ctx(), auth.Redemption{Purpose: auth.PurposeMagicLink, Hash: hashOf(secret), Now: now})
	return err
}

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) is(err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Fatalf("error %v, want %v", err, want)
	}
}

// conflict wants an error about one unique value.
func (b *bench) conflict(err error, field string) {
	b.Helper()
	var c *auth.ConflictError
	if !errors.As(err, &c) || c.Field != field {
		b.Fatalf("error %v, want a conflict of %s", err, field)
	}
}

// race runs f in many goroutines at once and counts the outcomes: nil, or the
// first of the errors named that matches. Any other error fails the test.
func (b *bench) race(f func(i int) error, outcomes ...error) (won int, lost map[error]int) {
	b.Helper()
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		start = make(chan struct{})
	)
	lost = map[error]int{}
	for i := range parallel {
		wg.Go(func() {
			<-start
			err := f(i)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
				return
			}
			for _, o := range outcomes {
				if errors.Is(err, o) {
					lost[o]++
					return
				}
			}
			b.Errorf("unexpected error: %v", err)
		})
	}
	close(start)
	wg.Wait()
	return won, lost
}

// cancelled is a context of a caller that has gone.
func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// sameUser compares users; the store may spell empty lists and maps either way,
// and put identities in any order.
func (b *bench) sameUser(got, want auth.User) {
	b.Helper()
	if g, w := plain(got), plain(want); !reflect.DeepEqual(g, w) {
		b.Errorf("user\n%+v\nwant\n%+v", g, w)
	}
}

func plain(u auth.User) auth.User {
	if len(u.UserMetadata) == 0 {
		u.UserMetadata = nil
	}
	if len(u.AppMetadata) == 0 {
		u.AppMetadata = nil
	}
	if len(u.Roles) == 0 {
		u.Roles = nil
	}
	u.Identities = slices.SortedFunc(slices.Values(u.Identities), func(a, b auth.Identity) int {
		return strings.Compare(a.Provider+a.Subject, b.Provider+b.Subject)
	})
	return u
}

func (b *bench) sameToken(got, want auth.Token) {
	b.Helper()
	if !bytes.Equal(got.Hash, want.Hash) || !bytes.Equal(got.Data, want.Data) || got.Purpose != want.Purpose || got.Subject != want.Subject ||
		got.UserID != want.UserID || !got.CreatedAt.Equal(want.CreatedAt) || !got.ExpiresAt.Equal(want.ExpiresAt) || got.MaxTries != want.MaxTries || got.Tries != want.Tries {
		b.Errorf("token\n%+v\nwant\n%+v", got, want)
	}
}
