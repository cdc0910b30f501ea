// Package authtest is for the tests of applications that use Authmount: a whole service
// in memory, with a clock that the test moves, an inbox that the test reads, and
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

// BaseURL is the base URL of every Env.
const BaseURL = "https://auth.test/auth/v1"

// Password is the password of every user that LoginAs creates.
const Password = "authtest-Passphrase-7" //nolint:gosec // for tests

// Env is an auth.Auth in memory with everything that tests use.
type Env struct {
	*auth.Auth
	Store auth.Store
	Clock *Clock
	Inbox *auth.Inbox

	key          *ecdsa.PrivateKey
	passwordHash string // hash of Password at this Env's cost

	mu       sync.Mutex
	recovery map[string][]string // recovery codes of users created with AAL2, by email address
}

// New returns an Env in memory and closes it when the test ends. The options come after
// Env's own, so they may replace its clock, keys or mailer.
func New(tb testing.TB, opts ...auth.Option) *Env {
	tb.Helper()
	return NewOn(tb, memstore.New(), opts...)
}

// NewOn is New on the test's own store: a *pgstore.Store to test Postgres, a store of the
// application, or one that several Envs share (SameKeys). The store stays open until
// the Env is closed: close it in a t.Cleanup before NewOn, never in a defer. Permissions needs a store.ProjectStore, AAL2 a store.FactorStore. Hashing
// passwords is nearly free, unless WithPasswords sets a cost.
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

// SameKeys makes another Env sign with this one's key, as the instances of one service
// do.
func (e *Env) SameKeys() auth.Option { return auth.WithSigningKeys(e.key) }

// sender puts messages into an inbox that is not served, because New does not accept an
// auth.Inbox for a service on https.
type sender struct{ inbox *auth.Inbox }

func (s sender) Send(ctx context.Context, m auth.Message) error { return s.inbox.Send(ctx, m) }

// Clock is a clock that only the test moves. It is safe for concurrent use.
type Clock struct {
	settle func() // waits for messages being sent

	mu  sync.Mutex
	now time.Time
}

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock forward after pending messages were sent, because they could
// expire or wait forever otherwise. It waits for them a second at most, in case the
// mailer hangs.
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

// Sign adds the access token to a request.
func (s *SignedIn) Sign(r *http.Request) { r.Header.Set("Authorization", "Bearer "+s.AccessToken) }

// UserOption changes the user that LoginAs creates.
type UserOption func(*person)

// person is a user that LoginAs creates.
type person struct {
	auth.ImportUserParams
	permissions []string
	aal2        bool
}

// Roles gives the user roles. Define their permissions with PutRole on Env.Store; see
// Permissions. Undefined roles, which permit nothing, are named in the test's log.
func Roles(roles ...string) UserOption {
	return func(p *person) { p.Roles = append(p.Roles, roles...) }
}

// Permissions gives the user a separate role with these permissions.
func Permissions(permissions ...string) UserOption {
	return func(p *person) { p.permissions = append(p.permissions, permissions...) }
}

// AAL2 gives the user a second factor, and LoginAs signs in with it: the session has
// store.LevelAAL2. Later calls of LoginAs use one of the ten recovery codes each.
func AAL2() UserOption { return func(p *person) { p.aal2 = true } }

// AppMetadata sets the user's app_metadata.
func AppMetadata(m map[string]any) UserOption {
	return func(p *person) { p.AppMetadata = m }
}

// Unverified leaves the user's email address unverified.
func Unverified() UserOption {
	return func(p *person) { p.EmailVerified = false }
}

// LoginAs signs a user in with a real login. If no user has the email address, it first
// creates one with the password Password and a verified address. The options only apply
// to a new user, who has accepted the permissions of Roles.
func (e *Env) LoginAs(tb testing.TB, email string, opts ...UserOption) *SignedIn {
	tb.Helper()
	p := person{ImportUserParams: auth.ImportUserParams{Email: email, EmailVerified: true, PasswordHash: e.passwordHash, Accepted: true}}
	for _, o := range opts {
		o(&p)
	}
	if len(p.permissions) > 0 {
		own := "authtest " + email
		p.Roles = append(p.Roles, own)
		e.definePermissions(tb, own, p.permissions)
	}
	all := p.Roles
	p.Roles = e.defined(tb, all)
	u, err := e.ImportUser(tb.Context(), p.ImportUserParams)
	made := err == nil
	if made && len(p.Roles) < len(all) { // the roles may get their permissions later
		accept := store.UpdateUser{Change: store.Change{Now: e.Clock.Now(), By: auth.Authority{System: "authtest"}}, UserID: u.ID, Patch: store.UserPatch{Roles: &all, Accept: true}}
		_, err = e.Store.UpdateUser(tb.Context(), accept)
	}
	if err != nil && !errors.Is(err, auth.CodeUserAlreadyExists) {
		tb.Fatal(err)
	}
	t, err := e.Login(tb.Context(), auth.LoginParams{Email: email, Password: Password})
	var asked *auth.Error
	switch {
	case errors.As(err, &asked) && asked.Code == auth.CodeMFARequired:
		t, err = e.VerifyMFA(tb.Context(), auth.VerifyMFAParams{MFAToken: asked.MFAToken, RecoveryCode: e.nextCode(tb, email)})
	case asked != nil && asked.Code == auth.CodeMFAEnrollmentRequired && p.aal2:
		t, err = e.enrol(tb, email, auth.EnableTOTPParams{MFAToken: asked.MFAToken}), nil
	case asked != nil && asked.Code == auth.CodeMFAEnrollmentRequired:
		tb.Fatalf("authtest: %s needs a second factor: give LoginAs the option authtest.AAL2()", email)
	case err == nil && made && p.aal2:
		t = e.enrol(tb, email, auth.EnableTOTPParams{Caller: auth.Caller{UserID: t.User.ID, SessionID: t.SessionID}})
	}
	if err != nil {
		tb.Fatal(err)
	}
	return &SignedIn{Tokens: *t}
}

// defined returns the roles that exist. It logs the others, because a misspelled role would
// be hard to find.
func (e *Env) defined(tb testing.TB, names []string) (list []string) {
	tb.Helper()
	st, ok := store.Capability[store.ProjectStore](e.Store)
	if !ok || len(names) == 0 {
		return names
	}
	table, err := st.Roles(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	for _, name := range names {
		if name != auth.RoleOwner && !slices.ContainsFunc(table.Roles, func(r store.RolePermissions) bool { return r.Name == name }) {
			tb.Logf("authtest.Roles: the role %q does not exist and permits nothing", name)
			continue
		}
		list = append(list, name)
	}
	return list
}

func (e *Env) definePermissions(tb testing.TB, role string, permissions []string) {
	tb.Helper()
	roles, ok := store.Capability[store.ProjectStore](e.Store)
	if !ok {
		tb.Fatalf("authtest.Permissions: the store %T has no roles", e.Store)
	}
	change := store.Change{Now: e.Clock.Now(), By: auth.Authority{System: "authtest"}}
	if _, err := roles.PutRole(tb.Context(), store.PutRole{Change: change, Role: store.RolePermissions{Name: role, Permissions: permissions}}); err != nil {
		tb.Fatal(err)
	}
	host.Of(e).ReloadRoles()
}

// enrol sets up a second factor for a user who has signed in, or whose sign-in waits for it.
func (e *Env) enrol(tb testing.TB, email string, p auth.EnableTOTPParams) *auth.Tokens {
	tb.Helper()
	secret, err := host.Of(e).BeginTOTP(tb.Context(), auth.SessionRef{ID: p.SessionID, UserID: p.UserID}, p.MFAToken)
	if err != nil {
		tb.Fatal(err)
	}
	if p.TOTPCode, err = totp.GenerateCode(secret, e.Clock.Now()); err != nil {
		tb.Fatal(err)
	}
	on, err := e.EnableTOTP(tb.Context(), p)
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

// nextCode returns an unused recovery code.
func (e *Env) nextCode(tb testing.TB, email string) string {
	tb.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	codes := e.recovery[email]
	if len(codes) == 0 {
		tb.Fatalf("authtest: no recovery code of %s is left, or the second factor was not set up by AAL2", email)
	}
	e.recovery[email] = codes[1:]
	return codes[0]
}

// Mail waits for the newest message of kind k to an email address or phone number, and
// fails the test if none arrives. All messages that were requested before have arrived by
// then, unless the sender takes more than a second.
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

// messagesSent waits, a second at most, until no message is being sent.
func (e *Env) messagesSent() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	host.Of(e).WaitForMessages(ctx)
}

// MintToken signs an access token for a user and session that do not exist, with the
// given claims in addition to valid ones; nil values remove a claim. It needs Env's own
// signing key. Handlers behind Require accept the token; CheckSession and endpoints that
// read the store do not.
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

// Hashes of Password, with the default parameters and with the cheapest ones.
const (
	usualHash = "$argon2id$v=19$m=19456,t=2,p=1$extRb7sDvqc+cpFoNmTh4Q$lTvMvAgc12VEeg4/9s6ENCW3pI/d7HVtt7nLZiw692A"
	cheapHash = "$argon2id$v=19$m=64,t=1,p=1$MQRmY9BL53AzJP6xHMQmYg$ivA9LwWXyscZpKBtYwwks48mobTxRHJjFk77kQ26e5U"
)
