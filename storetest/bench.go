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

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/difference"
)

// parallel is how many goroutines race for one thing.
const parallel = 50

// bench is one store under test. Capabilities that it lacks are nil.
type bench struct {
	reporter
	auth.Store
	test    *testing.T // failed by report alone
	under   auth.Store // the store itself; Store tells calls of what is asked
	calls   *calls
	about   string // what the next assertions are about, by of
	factors auth.FactorStore
	events  auth.EventStore
	outbox  auth.OutboxStore
	roles   auth.RoleStore
	keys    auth.KeyStore
	proofs  auth.ProofStore
	exports auth.ExportStore
	whose   auth.AccountStore
	imports auth.ImportStore
	uses    auth.RotationStore
	people  auth.DirectoryStore
	clears  auth.LimitStore
	stats   auth.StatsStore

	settings auth.SettingsStore
	health   auth.DiagnosticStore
	acting   auth.ImpersonationStore
	logins   auth.SessionListStore
	invited  auth.InvitationStore
	founded  auth.FirstOwnerStore
	nobody   auth.AnonymizeStore
	work     auth.JobStore
	posted   auth.MessageLogStore
}

func newBench(t *testing.T, s auth.Store) *bench {
	t.Helper()
	under := s
	s, asked := watch(s)
	b := &bench{reporter: t, Store: s, test: t, under: under, calls: asked}
	b.factors, _ = auth.Capability[auth.FactorStore](s)
	b.events, _ = auth.Capability[auth.EventStore](s)
	b.outbox, _ = auth.Capability[auth.OutboxStore](s)
	b.roles, _ = auth.Capability[auth.RoleStore](s)
	b.keys, _ = auth.Capability[auth.KeyStore](s)
	b.exports, _ = auth.Capability[auth.ExportStore](s)
	b.whose, _ = auth.Capability[auth.AccountStore](s)
	b.proofs, _ = auth.Capability[auth.ProofStore](s)
	b.imports, _ = auth.Capability[auth.ImportStore](s)
	b.people, _ = auth.Capability[auth.DirectoryStore](s)
	b.settings, _ = auth.Capability[auth.SettingsStore](s)
	b.health, _ = auth.Capability[auth.DiagnosticStore](s)
	b.clears, _ = auth.Capability[auth.LimitStore](s)
	b.stats, _ = auth.Capability[auth.StatsStore](s)
	b.logins, _ = auth.Capability[auth.SessionListStore](s)
	b.acting, _ = auth.Capability[auth.ImpersonationStore](s)
	b.posted, _ = auth.Capability[auth.MessageLogStore](s)
	b.nobody, _ = auth.Capability[auth.AnonymizeStore](s)
	b.work, _ = auth.Capability[auth.JobStore](s)
	b.invited, _ = auth.Capability[auth.InvitationStore](s)
	b.founded, _ = auth.Capability[auth.FirstOwnerStore](s)
	b.uses, _ = auth.Capability[auth.RotationStore](s)
	return b
}

// now is the instant that the checks take place at.
var now = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)

const (
	us     = time.Microsecond
	minute = time.Minute
)

// by is a change without conditions at an instant.
func by(at time.Time) auth.Change {
	return auth.Change{Now: at, By: auth.Authority{System: "storetest"}}
}

func (b *bench) ctx() context.Context { return b.Context() }

// id makes a UUIDv7.
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

// newUser describes a user with an address.
func (b *bench) newUser(email string) auth.NewUser {
	b.Helper()
	return auth.NewUser{User: auth.User{ID: b.id(), Email: email, CreatedAt: now, UpdatedAt: now}}
}

// create adds a user.
func (b *bench) create(nu auth.NewUser) (auth.User, error) {
	return b.CreateUser(b.ctx(), auth.CreateUser{Change: by(now), NewUser: nu})
}

// user adds a user with an address.
func (b *bench) user(email string) auth.User {
	b.Helper()
	u, err := b.create(b.newUser(email))
	b.ok(err)
	return u
}

// whole adds a user of whom everything is known, with the password hash "hash".
func (b *bench) whole() auth.User {
	b.Helper()
	nu := b.newUser("ada@example.com")
	nu.User.EmailVerifiedAt, nu.User.Phone, nu.User.PhoneVerifiedAt, nu.User.FullName = now, "+4930123456", now.Add(us), "Ada"
	nu.User.UserMetadata, nu.User.AppMetadata, nu.User.Roles = map[string]any{"a": "b"}, map[string]any{"c": "d"}, []string{"r"}
	nu.User.Identities = []auth.Identity{b.identity("p", "1"), b.identity("p", "2"), b.identity("q", "1")}
	nu.User.LastSignInAt, nu.PasswordHash = now.Add(-minute), "hash"
	u, err := b.create(nu)
	b.ok(err)
	return u
}

// identity describes an account at a provider.
func (b *bench) identity(provider, subject string) auth.Identity {
	b.Helper()
	return auth.Identity{ID: b.id(), Provider: provider, Subject: subject, Email: "x@example.com", CreatedAt: now, LastSignInAt: now}
}

// update patches a user now.
func (b *bench) update(id string, p auth.UserPatch) (auth.User, error) {
	return b.UpdateUser(b.ctx(), auth.UpdateUser{Change: by(now), UserID: id, Patch: p})
}

// updateAt patches a user at a time.
func (b *bench) updateAt(at time.Time, id string, p auth.UserPatch) (auth.User, error) {
	return b.UpdateUser(b.ctx(), auth.UpdateUser{Change: by(at), UserID: id, Patch: p})
}

// updateIf patches a user on a condition on it.
func (b *bench) updateIf(at auth.UserAt, p auth.UserPatch) (auth.User, error) {
	c := auth.UpdateUser{Change: by(now), UserID: at.ID, Patch: p}
	c.IfUsers = []auth.UserAt{at}
	return b.UpdateUser(b.ctx(), c)
}

func (b *bench) delete(id string) error {
	return b.DeleteUser(b.ctx(), auth.DeleteUser{Change: by(now), UserID: id})
}

// stands wants a user and the password hash as the store keeps them.
func (b *bench) stands(want auth.Credentials) {
	b.Helper()
	got, err := b.Credentials(b.ctx(), auth.ByID(want.User.ID))
	b.ok(err)
	b.sameUser(got.User, want.User)
	equal(b, "Credentials.PasswordHash", got.PasswordHash, want.PasswordHash)
}

// newSession describes a session of a user.
func (b *bench) newSession(userID string) auth.Session {
	b.Helper()
	return auth.Session{
		ID: b.id(), UserID: userID, AAL: auth.LevelAAL1, AMR: []auth.AMR{{Method: "password", Timestamp: now.Unix()}},
		CreatedAt: now, LastActiveAt: now, RotatedAt: now, IdleUntil: now.Add(time.Hour), IP: "192.0.2.1", UserAgent: "storetest",
	}
}

// signIn adds a session at its time, on conditions.
func (b *bench) signIn(s auth.Session, ifUsers ...auth.UserAt) (auth.User, error) {
	c := auth.CreateSession{Change: by(s.CreatedAt), Session: s}
	c.IfUsers = ifUsers
	return b.CreateSession(b.ctx(), c)
}

// session adds a session of a user.
func (b *bench) session(userID string) auth.Session {
	b.Helper()
	s := b.newSession(userID)
	_, err := b.signIn(s)
	b.ok(err)
	return s
}

// revoke ends sessions of a user now.
func (b *bench) revoke(userID string, f auth.SessionFilter) ([]string, error) {
	return b.RevokeSessions(b.ctx(), auth.RevokeSessions{Change: by(now), UserID: userID, Filter: f})
}

// advance refreshes a session with a counter at a time.
func (b *bench) advance(id string, counter uint32, at time.Time) (auth.Session, error) {
	s, _, err := b.AdvanceSession(b.ctx(), auth.Advance{
		Change: by(at), SessionID: id, Counter: counter, Grace: 10 * time.Second, IdleUntil: at.Add(time.Hour),
	})
	return s, err
}

// newToken describes a token.
func newToken(secret, subject string) auth.Token {
	return auth.Token{
		Purpose: auth.PurposeMagicLink, Hash: hashOf(secret), Subject: subject, Data: []byte(`{"a":1}`),
		CreatedAt: now, ExpiresAt: now.Add(minute), MaxTries: 0,
	}
}

// newCode describes a code with a number of tries.
func newCode(code, subject string, tries int) auth.Token {
	t := newToken(code, subject)
	t.MaxTries = tries
	return t
}

// put keeps a token.
func (b *bench) put(t auth.Token) error {
	return b.PutToken(b.ctx(), auth.PutToken{Change: by(now), Token: t})
}

// token keeps a token and wants no error.
func (b *bench) token(t auth.Token) {
	b.Helper()
	b.ok(b.put(t))
}

// use uses up a token that newToken described, with an effect.
func (b *bench) use(secret string, e auth.Effect) (auth.Token, auth.User, error) {
	return b.RedeemToken(b.ctx(), auth.Redemption{Change: proof(now), Purpose: auth.PurposeMagicLink, Hash: hashOf(secret), Effect: e})
}

// proof is a change in the name of the token that it uses up.
func proof(at time.Time) auth.Change {
	return auth.Change{Now: at, By: auth.Authority{Proof: true}}
}

// redeem uses up a token that newToken described.
func (b *bench) redeem(secret string) error {
	_, _, err := b.use(secret, auth.Effect{})
	return err
}

// guess tries a code that newCode described.
func (b *bench) guess(subject, code string, e auth.Effect) (auth.Token, auth.User, error) {
	return b.TryCode(b.ctx(), auth.TryCode{Change: proof(now), Purpose: auth.PurposeMagicLink, Subject: subject, Hash: hashOf(code), Effect: e})
}

func (b *bench) try(subject, code string) error {
	_, _, err := b.guess(subject, code, auth.Effect{})
	return err
}

// race runs f in many goroutines at once and counts the outcomes: nil, or the
// first of the errors named that matches. Any other error fails the test.
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

// cancelled is a context of a caller that has gone.
func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// sameUser compares users; the store may spell empty lists and maps either way.
func (b *bench) sameUser(got, want auth.User) {
	b.Helper()
	equal(b, "User", plain(got), plain(want))
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
	u.Claims = nil
	u.Identities = slices.SortedFunc(slices.Values(u.Identities), func(a, b auth.Identity) int {
		return strings.Compare(a.Provider+a.Subject, b.Provider+b.Subject)
	})
	return u
}

func (b *bench) sameSession(got, want auth.Session) {
	b.Helper()
	equal(b, "Session", got, want)
}

func (b *bench) sameToken(got, want auth.Token) {
	b.Helper()
	equal(b, "Token", plainToken(got), plainToken(want))
}

// plainToken is a token whose lists and times are spelled one way.
func plainToken(t auth.Token) auth.Token {
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
