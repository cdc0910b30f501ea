// Package authtest is for the tests of applications that use Authmount: a whole
// service in memory, with a clock the test moves, an inbox the test reads, and
// shortcuts to signed-in users.
//
//	env := authtest.New(t)
//	ada := env.LoginAs(t, "ada@example.com", authtest.Roles("editor"))
//	req := httptest.NewRequest("GET", "/notes", nil)
//	ada.Sign(req)
//	env.Require(notes).ServeHTTP(rec, req)
package authtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// BaseURL is where an Env believes to be mounted.
const BaseURL = "https://auth.test/auth/v1"

// Password is the password of every user that LoginAs makes.
const Password = "authtest-Passphrase-7" //nolint:gosec // for tests

// Env is an auth.Auth on memory with everything a test wants to reach.
type Env struct {
	*auth.Auth
	Store auth.Store
	Clock *Clock
	Inbox *auth.Inbox

	key          *ecdsa.PrivateKey
	passwordHash string // of Password, at what a hash costs here

	mu       sync.Mutex
	recovery map[string][]string // codes of those whom AAL2 gave a second factor, by address
}

// New makes an Env in memory and closes it when the test ends. The options come
// after Env's own, so they may replace its clock, its keys or its mailer.
func New(tb testing.TB, opts ...auth.Option) *Env {
	tb.Helper()
	return NewOn(tb, memstore.New(), opts...)
}

// NewOn is New on a store of the test's own, as auth.New has it: a *pgstore.Store
// to test what is particular to Postgres, one of the application's, or one that
// several Envs share (SameKeys). The store stays open; closing it is the test's.
// Permissions needs it to be a store.ProjectStore, AAL2 a store.FactorStore. Passwords are
// hashed at next to no cost, unless WithPasswords names one.
func NewOn(tb testing.TB, store auth.Store, opts ...auth.Option) *Env {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	e := &Env{
		Store: store,
		Clock: &Clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		Inbox: auth.NewInbox(),
		key:   key,
	}
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails (crypto/rand)
	base := []auth.Option{
		auth.WithSecret(secret),
		auth.WithSigningKeys(key),
		auth.WithBaseURL(BaseURL),
		auth.WithMailer(sender{e.Inbox}),
		auth.WithSMSSender(sender{e.Inbox}),
		auth.WithRedirectURLs("https://app.test/*"),
		auth.WithClock(e.Clock.Now),
	}
	e.Auth, err = auth.New(tb.Context(), e.Store, append(base, opts...)...)
	if err == nil {
		var cheap bool
		cheap, err = host.Of(e).CheapPasswords()
		e.passwordHash = usualHash
		if cheap {
			e.passwordHash = cheapHash
		}
	}
	if err != nil {
		tb.Fatal(err)
	}
	e.Clock.settle = e.messagesSent
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return e
}

// SameKeys makes another Env sign with this one's key, as the instances of one
// service do.
func (e *Env) SameKeys() auth.Option { return auth.WithSigningKeys(e.key) }

// sender puts messages into an inbox that nobody serves; New would not take the
// inbox itself for a service on https.
type sender struct{ inbox *auth.Inbox }

func (s sender) Send(ctx context.Context, m auth.Message) error { return s.inbox.Send(ctx, m) }

// Clock is a clock that stands still until the test moves it. It is safe for
// concurrent use.
type Clock struct {
	settle func() // waits for messages on their way

	mu  sync.Mutex
	now time.Time
}

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock on, once the messages that are on their way are sent: a moved
// clock could make them late, and one that stands still would never bring them back. It
// waits for them a second at most, as a mailer may hang.
func (c *Clock) Advance(d time.Duration) {
	if c.settle != nil {
		c.settle()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// SignedIn is a user with a session.
type SignedIn struct {
	auth.Tokens
}

// Sign puts the access token into a request.
func (s *SignedIn) Sign(r *http.Request) { r.Header.Set("Authorization", "Bearer "+s.AccessToken) }

// UserOption changes the user that LoginAs makes.
type UserOption func(*person)

// person is whom LoginAs makes.
type person struct {
	auth.ImportUserParams
	permissions []string
	aal2        bool
}

// Roles gives the user roles. What they permit is up to PutRole on Env.Store; see
// Permissions. One that permits nothing, as nobody made it, is named in the test's log.
func Roles(roles ...string) UserOption {
	return func(p *person) { p.Roles = append(p.Roles, roles...) }
}

// Permissions gives the user a role of their own that permits these.
func Permissions(permissions ...string) UserOption {
	return func(p *person) { p.permissions = append(p.permissions, permissions...) }
}

// AAL2 gives the user a second factor, and LoginAs signs in with it: the session is
// at store.LevelAAL2. Later calls of LoginAs use a recovery code each, of which there
// are ten.
func AAL2() UserOption { return func(p *person) { p.aal2 = true } }

// AppMetadata gives the user metadata of the server's.
func AppMetadata(m map[string]any) UserOption {
	return func(p *person) { p.AppMetadata = m }
}

// Unverified leaves the user's address unconfirmed.
func Unverified() UserOption {
	return func(p *person) { p.EmailVerified = false }
}

// LoginAs signs a user in by a real login, and makes the user first if there is
// none with that address: verified, with Password as password. The options
// matter only for a new user.
func (e *Env) LoginAs(tb testing.TB, email string, opts ...UserOption) *SignedIn {
	tb.Helper()
	p := person{ImportUserParams: auth.ImportUserParams{Email: email, EmailVerified: true, PasswordHash: e.passwordHash}}
	for _, o := range opts {
		o(&p)
	}
	if len(p.permissions) > 0 {
		own := "authtest " + email
		p.Roles = append(p.Roles, own)
		e.permit(tb, own, p.permissions)
	}
	e.nameUnknown(tb, p.Roles)
	_, err := e.ImportUser(tb.Context(), p.ImportUserParams)
	made := err == nil
	if err != nil && !errors.Is(err, auth.CodeUserAlreadyExists) {
		tb.Fatal(err)
	}
	t, err := e.Login(tb.Context(), auth.LoginParams{Email: email, Password: Password})
	var asked *auth.Error
	if errors.As(err, &asked) && asked.Code == auth.CodeMFARequired {
		t, err = e.VerifyMFA(tb.Context(), auth.VerifyMFAParams{MFAToken: asked.MFAToken, RecoveryCode: e.nextCode(tb, email)})
	}
	if err != nil {
		tb.Fatal(err)
	}
	if made && p.aal2 {
		t = e.enrol(tb, email, t)
	}
	return &SignedIn{Tokens: *t}
}

// nameUnknown logs roles that nobody made: a misspelt one would leave whoever reads the
// test in the dark.
func (e *Env) nameUnknown(tb testing.TB, names []string) {
	tb.Helper()
	st, ok := store.Capability[store.ProjectStore](e.Store)
	if !ok || len(names) == 0 {
		return
	}
	table, err := st.Roles(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	for _, name := range names {
		if name != auth.RoleOwner && !slices.ContainsFunc(table.Roles, func(r store.RolePermissions) bool { return r.Name == name }) {
			tb.Logf("authtest.Roles: nobody made the role %q, so that it permits nothing", name)
		}
	}
}

// permit says what a role permits.
func (e *Env) permit(tb testing.TB, role string, permissions []string) {
	tb.Helper()
	roles, ok := store.Capability[store.ProjectStore](e.Store)
	if !ok {
		tb.Fatalf("authtest.Permissions: the store %T keeps no roles", e.Store)
	}
	change := store.Change{Now: e.Clock.Now(), By: auth.Authority{System: "authtest"}}
	if _, err := roles.PutRole(tb.Context(), store.PutRole{Change: change, Role: store.RolePermissions{Name: role, Permissions: permissions}}); err != nil {
		tb.Fatal(err)
	}
	host.Of(e).ForgetRoles()
}

// enrol gives somebody who has just signed in a second factor.
func (e *Env) enrol(tb testing.TB, email string, t *auth.Tokens) *auth.Tokens {
	tb.Helper()
	me := auth.Caller{UserID: t.User.ID, SessionID: t.SessionID}
	secret, err := host.Of(e).BeginTOTP(tb.Context(), auth.SessionRef{ID: me.SessionID, UserID: me.UserID})
	if err != nil {
		tb.Fatal(err)
	}
	code, err := totp.GenerateCode(secret, e.Clock.Now())
	if err != nil {
		tb.Fatal(err)
	}
	on, err := e.EnableTOTP(tb.Context(), auth.EnableTOTPParams{Caller: me, TOTPCode: code})
	if err != nil {
		tb.Fatal(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.recovery == nil {
		e.recovery = map[string][]string{}
	}
	e.recovery[email] = on.RecoveryCodes
	return on.Tokens
}

// nextCode is a recovery code that was not used yet.
func (e *Env) nextCode(tb testing.TB, email string) string {
	tb.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	codes := e.recovery[email]
	if len(codes) == 0 {
		tb.Fatalf("authtest: no recovery code of %s is left, or the second factor is not of AAL2", email)
	}
	e.recovery[email] = codes[1:]
	return codes[0]
}

// Mail waits for the newest message to an address whose kind is k, and fails
// the test if none comes. What was asked for before has come by then, unless the
// sender holds it up for more than a second.
func (e *Env) Mail(tb testing.TB, to string, k auth.Kind) auth.Message {
	tb.Helper()
	e.messagesSent()
	ctx, cancel := context.WithTimeout(tb.Context(), 10*time.Second)
	defer cancel()
	m, err := e.Inbox.Wait(ctx, func(m auth.Message) bool { return m.To == to && m.Kind == k })
	if err != nil {
		tb.Fatalf("no %s message to %s: %v", k, to, err)
	}
	return m
}

// messagesSent waits, a second at most, until no message is on its way.
func (e *Env) messagesSent() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	host.Of(e).MessagesSent(ctx)
}

// MintToken signs an access token with the claims given on top of valid ones
// for a user and session that do not exist; nil values remove a claim. It needs
// Env's own signing key. Handlers behind Require accept it, CheckSession and the
// endpoints that read the store do not.
func (e *Env) MintToken(tb testing.TB, claims map[string]any) string {
	tb.Helper()
	now := e.Clock.Now()
	c := jwt.MapClaims{
		"iss": BaseURL, "aud": "authenticated", "sub": newID(tb), "session_id": newID(tb), "jti": newID(tb),
		"iat": now.Unix(), "exp": now.Add(15 * time.Minute).Unix(),
		"role": "authenticated", "roles": []string{}, "permissions": []string{},
		"email": "minted@example.com", "email_verified": true, "phone": nil,
		"aal": store.LevelAAL1, "amr": []any{map[string]any{"method": "password", "timestamp": now.Unix()}}, "app_metadata": map[string]any{},
	}
	for k, v := range claims {
		if v == nil {
			delete(c, k)
			continue
		}
		c[k] = v
	}
	t := jwt.NewWithClaims(jwt.SigningMethodES256, c)
	t.Header["typ"] = "at+jwt"
	t.Header["kid"] = e.keyID(tb)
	signed, err := t.SignedString(e.key)
	if err != nil {
		tb.Fatal(err)
	}
	return signed
}

func newID(tb testing.TB) string {
	tb.Helper()
	id, err := uuid.NewV7()
	if err != nil {
		tb.Fatal(err)
	}
	return id.String()
}

// keyID reads the id of Env's key from the published key set.
func (e *Env) keyID(tb testing.TB) string {
	tb.Helper()
	var set struct {
		Keys []struct {
			ID string `json:"kid"`
		} `json:"keys"`
	}
	if err := json.Unmarshal(e.JWKS(), &set); err != nil || len(set.Keys) == 0 {
		tb.Fatalf("no key in the key set: %v", err)
	}
	return set.Keys[0].ID
}

// Password, hashed with the default parameters and with next to none.
const (
	usualHash = "$argon2id$v=19$m=19456,t=2,p=1$extRb7sDvqc+cpFoNmTh4Q$lTvMvAgc12VEeg4/9s6ENCW3pI/d7HVtt7nLZiw692A"
	cheapHash = "$argon2id$v=19$m=64,t=1,p=1$MQRmY9BL53AzJP6xHMQmYg$ivA9LwWXyscZpKBtYwwks48mobTxRHJjFk77kQ26e5U"
)
