package storetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/internal/difference"
	"github.com/authmount/auth/store"
)

// parallel is the number of goroutines in a race.
const parallel = 50

// bench is one store under test. The interfaces that it lacks are nil.
type bench struct {
	reporter
	store.Store
	test    *testing.T  // failed only by report
	under   store.Store // the store itself; the embedded Store records calls
	calls   *calls
	about   string // the subject of the next assertions, set by of
	factors store.FactorStore
	journal store.Journal
	project store.ProjectStore
	admin   store.AdminStore
}

func newBench(t *testing.T, s store.Store) *bench {
	t.Helper()
	under := s
	s, asked := watch(s)
	b := &bench{reporter: t, Store: s, test: t, under: under, calls: asked}
	b.factors, _ = store.Capability[store.FactorStore](s)
	b.journal, _ = store.Capability[store.Journal](s)
	b.project, _ = store.Capability[store.ProjectStore](s)
	b.admin, _ = store.Capability[store.AdminStore](s)
	return b
}

// now is the instant of the checks.
var now = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)

const (
	us     = time.Microsecond
	minute = time.Minute
)

// by returns a change without conditions at an instant.
func by(at time.Time) store.Change {
	return store.Change{Now: at, By: store.Authority{System: "storetest"}}
}

func (b *bench) ctx() context.Context { return b.Context() }

// id returns a new UUIDv7.
func (b *bench) id() string {
	b.Helper()
	id, err := uuid.NewV7()
	b.ok(err)
	return id.String()
}

func hashOf(s string) []byte {
	sum := sha256.Sum256([]byte(s))
	return sum[:]
}

func ptr[T any](v T) *T { return &v }

// newUser describes a user with an email address.
func (b *bench) newUser(email string) store.NewUser {
	b.Helper()
	return store.NewUser{User: store.User{ID: b.id(), Email: email, CreatedAt: now, UpdatedAt: now}}
}

// create adds a user.
func (b *bench) create(nu store.NewUser) (store.User, error) {
	return b.CreateUser(b.ctx(), store.CreateUser{Change: by(now), NewUser: nu})
}

// user adds a user with an email address.
func (b *bench) user(email string) store.User {
	b.Helper()
	u, err := b.create(b.newUser(email))
	b.ok(err)
	return u
}

// whole adds a user with every field set and the password hash "hash".
func (b *bench) whole() store.User {
	b.Helper()
	nu := b.newUser("ada@example.com")
	nu.User.EmailVerifiedAt, nu.User.Phone, nu.User.PhoneVerifiedAt, nu.User.FullName = now, "+4930123456", now.Add(us), "Ada"
	nu.User.UserMetadata, nu.User.AppMetadata, nu.User.Roles = map[string]any{"a": "b"}, map[string]any{"c": "d"}, []string{"r"}
	nu.User.Identities = []store.Identity{b.identity("p", "1"), b.identity("p", "2"), b.identity("q", "1")}
	nu.User.LastSignInAt, nu.PasswordHash = now.Add(-minute), "hash"
	u, err := b.create(nu)
	b.ok(err)
	return u
}

// identity describes an account at a provider.
func (b *bench) identity(provider, subject string) store.Identity {
	b.Helper()
	return store.Identity{ID: b.id(), Provider: provider, Subject: subject, Email: "x@example.com", CreatedAt: now, LastSignInAt: now}
}

// update patches a user at now.
func (b *bench) update(id string, p store.UserPatch) (store.User, error) {
	return b.UpdateUser(b.ctx(), store.UpdateUser{Change: by(now), UserID: id, Patch: p})
}

// updateAt patches a user at a time.
func (b *bench) updateAt(at time.Time, id string, p store.UserPatch) (store.User, error) {
	return b.UpdateUser(b.ctx(), store.UpdateUser{Change: by(at), UserID: id, Patch: p})
}

// updateIf patches a user under a condition.
func (b *bench) updateIf(at store.UserAt, p store.UserPatch) (store.User, error) {
	c := store.UpdateUser{Change: by(now), UserID: at.ID, Patch: p}
	c.IfUsers = []store.UserAt{at}
	return b.UpdateUser(b.ctx(), c)
}

func (b *bench) delete(id string) error {
	return b.DeleteUser(b.ctx(), store.DeleteUser{Change: by(now), UserID: id})
}

// stands checks the stored user and password hash.
func (b *bench) stands(want store.Credentials) {
	b.Helper()
	got, err := b.Credentials(b.ctx(), store.ByID(want.User.ID))
	b.ok(err)
	b.sameUser(got.User, want.User)
	equal(b, "Credentials.PasswordHash", got.PasswordHash, want.PasswordHash)
}

// newSession describes a session of a user.
func (b *bench) newSession(userID string) store.Session {
	b.Helper()
	return store.Session{
		ID: b.id(), UserID: userID, AAL: store.LevelAAL1, AMR: []store.AMR{{Method: "password", Timestamp: now.Unix()}},
		CreatedAt: now, LastActiveAt: now, RotatedAt: now, IdleUntil: now.Add(time.Hour), IP: "192.0.2.1", UserAgent: "storetest",
	}
}

// signIn adds a session at its CreatedAt, under conditions.
func (b *bench) signIn(s store.Session, ifUsers ...store.UserAt) (store.User, error) {
	c := store.CreateSession{Change: by(s.CreatedAt), NewSession: store.NewSession{Session: s}}
	c.IfUsers = ifUsers
	return b.CreateSession(b.ctx(), c)
}

// session adds a session of a user.
func (b *bench) session(userID string) store.Session {
	b.Helper()
	s := b.newSession(userID)
	_, err := b.signIn(s)
	b.ok(err)
	return s
}

// revoke ends sessions of a user at now.
func (b *bench) revoke(userID string, f store.SessionFilter) ([]string, error) {
	return b.RevokeSessions(b.ctx(), store.RevokeSessions{Change: by(now), UserID: userID, Filter: f})
}

// advance refreshes a session with a counter at a time.
func (b *bench) advance(id string, counter uint32, at time.Time) (store.Session, error) {
	s, _, err := b.AdvanceSession(b.ctx(), store.Advance{
		Change: by(at), SessionID: id, Counter: counter, Grace: 10 * time.Second, IdleUntil: at.Add(time.Hour),
	})
	return s, err
}

// newToken describes a token.
func newToken(secret, subject string) store.Token {
	return store.Token{
		Purpose: store.PurposeMagicLink, Hash: hashOf(secret), Subject: subject, Data: []byte(`{"a":1}`),
		CreatedAt: now, ExpiresAt: now.Add(minute), MaxAttempts: 0,
	}
}

// newCode describes a code with a number of attempts.
func newCode(code, subject string, tries int) store.Token {
	t := newToken(code, subject)
	t.MaxAttempts = tries
	return t
}

// put stores a token.
func (b *bench) put(t store.Token) error {
	return b.PutToken(b.ctx(), store.PutToken{Change: by(now), Token: t})
}

// token stores a token and expects no error.
func (b *bench) token(t store.Token) {
	b.Helper()
	b.ok(b.put(t))
}

// use uses up a token of newToken, with an effect.
func (b *bench) use(secret string, e store.Effect) (store.Token, store.User, error) {
	return b.RedeemToken(b.ctx(), store.Redemption{Change: proof(now), Purpose: store.PurposeMagicLink, Hash: hashOf(secret), Effect: e})
}

// proof returns a change with the token that it uses up as authority.
func proof(at time.Time) store.Change {
	return store.Change{Now: at, By: store.Authority{Proof: true}}
}

// redeem uses up a token of newToken.
func (b *bench) redeem(secret string) error {
	_, _, err := b.use(secret, store.Effect{})
	return err
}

// guess makes an attempt at a code of newCode.
func (b *bench) guess(subject, code string, e store.Effect) (store.Token, store.User, error) {
	return b.RedeemCode(b.ctx(), store.CodeAttempt{Change: proof(now), Purpose: store.PurposeMagicLink, Subject: subject, Hash: hashOf(code), Effect: e})
}

func (b *bench) try(subject, code string) error {
	_, _, err := b.guess(subject, code, store.Effect{})
	return err
}

// race runs f in many goroutines at once and counts the outcomes: nil, or the first of the
// named errors that matches. Any other error fails the test.
func (b *bench) race(f func(i int) error, outcomes ...error) (won int, lost map[error]int) {
	b.Helper()
	return b.raceOf(parallel, f, outcomes...)
}

// raceOf is race with a number of goroutines.
func (b *bench) raceOf(n int, f func(i int) error, outcomes ...error) (won int, lost map[error]int) {
	b.Helper()
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		start = make(chan struct{})
	)
	lost = map[error]int{}
	for i := range n {
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
			b.wrong("error of one of many calls at once", err, "none, or one of "+difference.Show(outcomes))
		})
	}
	close(start)
	wg.Wait()
	return won, lost
}

// cancelled returns a cancelled context.
func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// sameUser compares users. A store may return empty lists and maps or nil. Other checks
// compare the sequences.
func (b *bench) sameUser(got, want store.User) {
	b.Helper()
	equal(b, "User", withoutSequences(plain(got)), withoutSequences(plain(want)))
}

// withoutSequences returns a user with all sequences at 0.
func withoutSequences(u store.User) store.User {
	u.Sequence = 0
	for _, field := range sequences(&u) {
		*field.Sequence, *field.AddedBy = 0, 0
	}
	u.Identities = slices.Clone(u.Identities)
	for i := range u.Identities {
		u.Identities[i].Origin = store.Origin{}
	}
	return u
}

// fieldSequence points to the origin of one of a user's fields.
type fieldSequence struct{ Sequence, AddedBy *int64 }

// sequences returns the origins of a user's fields, by the fields' names.
func sequences(u *store.User) map[string]fieldSequence {
	return map[string]fieldSequence{
		"Password":      {&u.PasswordSequence, &u.PasswordAddedBy},
		"Email":         {&u.EmailSequence, &u.EmailAddedBy},
		"EmailVerified": {&u.EmailVerifiedSequence, &u.EmailVerifiedAddedBy},
		"Phone":         {&u.PhoneSequence, &u.PhoneAddedBy},
		"PhoneVerified": {&u.PhoneVerifiedSequence, &u.PhoneVerifiedAddedBy},
	}
}

func plain(u store.User) store.User {
	if len(u.UserMetadata) == 0 {
		u.UserMetadata = nil
	}
	if len(u.AppMetadata) == 0 {
		u.AppMetadata = nil
	}
	if len(u.Roles) == 0 {
		u.Roles = nil
	}
	u.Claims = nil
	u.Identities = slices.SortedFunc(slices.Values(u.Identities), func(a, b store.Identity) int {
		return strings.Compare(a.Provider+a.Subject, b.Provider+b.Subject)
	})
	return u
}

func (b *bench) sameSession(got, want store.Session) {
	b.Helper()
	got.Origin, want.Origin = store.Origin{}, store.Origin{}
	equal(b, "Session", got, want)
}

func (b *bench) sameToken(got, want store.Token) {
	b.Helper()
	got.Origin, want.Origin = store.Origin{}, store.Origin{}
	equal(b, "Token", plainToken(got), plainToken(want))
}

// plainToken returns a token with its empty lists and its times in one form.
func plainToken(t store.Token) store.Token {
	for _, at := range []*time.Time{&t.CreatedAt, &t.ExpiresAt, &t.CodeExpiresAt} {
		*at = at.UTC()
	}
	for _, list := range []*[]byte{&t.Hash, &t.Data, &t.Code} {
		if len(*list) == 0 {
			*list = nil
		}
	}
	return t
}
