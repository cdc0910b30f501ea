// Package auth is Authmount, authentication that a Go server mounts: sign-up,
// password login, passkeys, sign-in with Google, GitHub and any OpenID provider,
// magic links, phone codes, TOTP two-factor, e-mail verification, password reset
// and refreshable JWT sessions, on the application's own store.
//
//	store := memstore.New()
//	a, err := auth.New(ctx, store,
//		auth.WithSecret(secret), // at least 32 random bytes
//		auth.WithBaseURL("https://app.example.com/auth/v1"),
//		auth.WithMailer(smtpmail.New(os.Getenv("SMTP_URL"))),
//		auth.WithRedirectURLs("https://app.example.com/*"),
//	)
//	if err != nil {
//		log.Fatal(err) // lists every missing or unsafe option
//	}
//	defer a.Close(context.Background())
//	mux.Handle("/auth/v1/", a.Handler())
//	mux.Handle("GET /notes", a.Require(notes)) // in it: auth.ClaimsFrom(r.Context())
//
// Pages use [WithCookies] and [Auth.RequirePage] instead of Require. Bearer tokens
// still work there.
//
// Every endpoint is also a method of [Auth], free of HTTP: [Auth.SignUp],
// [Auth.Login], [Auth.Refresh] and so on. They take a context and one parameter
// struct, and may be called concurrently. A method that acts for a signed-in user
// takes a [Caller]: with its SessionID, the change happens only while that session
// is live.
//
// # Security
//
// New refuses configuration that is unsafe or incomplete. Passwords are hashed
// with argon2id in a bounded pool. Access tokens are JWTs that live for minutes;
// refresh tokens rotate, and the reuse of an old one ends its session. Links and
// codes are stored as hashes, work once, and cannot be used up by mail scanners.
// Responses reveal as little as possible about which accounts exist. The first person
// who verifies the email address or phone number of an unverified account becomes
// its owner, and credentials that somebody else added before are removed. SECURITY.md has the
// threat model.
//
// # Stores
//
// A [Store] holds all data. Package memstore has one in memory, pgstore one on
// Postgres. Package store is the contract for authors of other stores, and package
// storetest checks an implementation.
//
// # Errors
//
// Operations return an [*Error], which carries a stable [Code]:
//
//	if errors.Is(err, auth.CodeInvalidCredentials) { … }
//
// # Compatibility
//
// The error codes, the wire format and the exported API follow semantic versioning.
// The contract of stores may change in any release, together with
// [store.ContractVersion].
package auth

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/journal"
	"github.com/authmount/auth/internal/keys"
	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/internal/redirect"
	"github.com/authmount/auth/internal/token"
	"github.com/authmount/auth/store"
)

// Auth is an authentication service on a store. It is safe for concurrent use.
type Auth struct {
	store     Store
	cfg       config
	keys      *keys.Ring
	signer    *token.Signer
	verifier  *token.Verifier
	revoked   *token.Revocations
	clocks    *token.Clocks
	streams   streams           // of revocations
	factors   store.FactorStore // nil if the store lacks it; so are the next three
	journal   store.Journal
	project   store.ProjectStore
	admin     store.AdminStore
	roleTable *roleTable

	declaredPermissions   atomic.Pointer[[]string]                                              // of package admin; nil without it
	keyPermissions        atomic.Pointer[func(context.Context, store.APIKey) ([]string, error)] // of package admin; nil without it
	privilegedPermissions atomic.Pointer[[]string]                                              // that the application declared, see operator.go
	documentParts         documentParts

	publicKeys *publicKeys

	passwords     *passwords
	overloads     overloads
	refunds       *refunds
	recorder      *journal.Recorder
	counter       *journal.Counter
	pending       pendingAttempts
	outbox        *outbox.Outbox
	templates     *templates
	mountedPages  atomic.Pointer[host.PageOptions]                                                // the application's pages, if any
	separatePages atomic.Pointer[host.PageOptions]                                                // pages with sessions of their own
	makers        atomic.Pointer[func(context.Context, host.LinkMaker, User) (host.Terms, error)] // checks that links created by operators still hold; nil without the admin API
	inviters      atomic.Pointer[func(context.Context, host.Invitation) (host.Terms, error)]      // checks that invitations still hold; nil without the admin API
	settings      liveSettings
	handler       http.Handler
	inbox         *Inbox
	client        *http.Client // for requests to providers
	providers     map[string]*oauthClient

	providerNames []string // as configured

	missedOnce       sync.Once // these guard warnings that are logged only once
	insecureOnce     sync.Once
	loopbackOnce     sync.Once
	proxyHeadersOnce sync.Once

	sessionCount atomic.Uint32 // see idAt
	servedPort   atomic.Int32  // see publicURL

	background *journal.Background
}

// New checks the configuration, and starts the send queue and the sweeper. Close
// stops them. ctx bounds New itself, which may ask the store whether it is ready. The
// error lists every missing or unsafe option, each with its correction; the options say
// which values they refuse. Errors of the store and its settings, and of keys, password
// rules, templates and passkeys follow one at a time.
func New(ctx context.Context, st Store, opts ...Option) (*Auth, error) {
	c := config{
		log:      slog.Default(),
		now:      time.Now,
		bodyWait: bodyWait,
	}
	for i, o := range opts {
		if o == nil {
			c.errs = append(c.errs, fmt.Errorf("option %d of %d is nil", i+1, len(opts)))
			continue
		}
		o(&c)
	}
	a := &Auth{store: st, roleTable: &roleTable{reading: make(chan struct{}, 1)}, publicKeys: &publicKeys{reading: make(chan struct{}, 1)}}
	if st == nil {
		c.errs = append(c.errs, errors.New("a store is required: memstore.New() or another Store"))
	} else {
		c.checkContract(st)
		a.factors, c.keepsFactors = store.Capability[store.FactorStore](st)
		a.journal, _ = store.Capability[store.Journal](st)
		a.project, _ = store.Capability[store.ProjectStore](st)
		a.admin, _ = store.Capability[store.AdminStore](st)
	}
	c.settlePrefix()
	if c.devMode {
		a.inbox = c.developing()
	}
	c.check()
	a.settings.options = c.newOptionSettings()
	if st != nil {
		a.checkOptions(&c)
	}
	if err := errors.Join(c.errs...); err != nil {
		return nil, fmt.Errorf("auth.New: %w", err)
	}
	a.cfg = c
	if err := checkStore(ctx, st); err != nil {
		return nil, fmt.Errorf("auth.New: %w", err)
	}
	if err := a.begin(ctx); err != nil {
		return nil, fmt.Errorf("auth.New: %w", err)
	}
	if err := a.build(); err != nil {
		return nil, fmt.Errorf("auth.New: %w", err)
	}
	if err := a.bindPasskeys(ctx); err != nil {
		return nil, fmt.Errorf("auth.New: %w", err)
	}
	a.noteSetup(ctx)
	a.background = journal.NewBackground(c.idle)
	a.background.Run(a.sweep)
	a.background.Run(a.followSettings)
	return a, nil
}

// begin applies the first settings, from the store if it keeps any. If they cannot be
// read it returns an error, because a service that was switched off must not start
// switched on.
func (a *Auth) begin(ctx context.Context) error {
	if a.project == nil {
		return a.put(ctx, store.StoredSettings{})
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if err := a.readSettings(ctx); err != nil {
		return fmt.Errorf("the settings cannot be read: %w", err)
	}
	return nil
}

// checkContract refuses a store of another contract version.
func (c *config) checkContract(st Store) {
	if v := st.Contract(); v != store.ContractVersion {
		c.errs = append(c.errs, fmt.Errorf("the store %T implements version %d of the store contract, this package needs %d: update the older one, see ContractVersion", st, v, store.ContractVersion))
	}
}

// checkStore calls the store's Check method, if it has one. It fails, for example,
// while the schema needs a migration.
func checkStore(ctx context.Context, st Store) error {
	s, ok := store.Capability[interface{ Check(context.Context) error }](st)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	return s.Check(ctx)
}

// developing fills in the defaults of dev mode. It returns an inbox that replaces the
// mailer, if none is configured.
func (c *config) developing() *Inbox {
	if c.secrets == nil {
		s := make([]byte, 32)
		_, _ = rand.Read(s) // never fails (crypto/rand)
		c.secrets = [][]byte{s}
	}
	if c.baseURL == nil {
		host := "127.0.0.1:8080"
		if c.passkeys != nil { // browsers create none for addresses
			host = "localhost:8080"
		}
		c.baseURL, c.assumedURL = &url.URL{Scheme: "http", Host: host, Path: c.prefix}, true
	}
	for _, host := range []string{"localhost", "127.0.0.1", "[::1]"} {
		c.redirects = append(c.redirects, redirect.Pattern{Scheme: "http", Host: host, Path: "/", Below: true})
	}
	if c.mailer != nil {
		return nil
	}
	in := NewInbox()
	c.mailer = in
	if c.sms == nil {
		c.sms = in
	}
	return in
}

// check records missing and unsafe configuration in c.errs.
func (c *config) check() {
	need := func(ok bool, option, problem string) {
		if !ok {
			c.fail(option, errors.New(problem))
		}
	}
	need(c.secrets != nil, "WithSecret", "a secret of 32 random bytes (openssl rand -hex 32) is needed, or WithDevMode for development")
	need(c.mailer != nil, "WithMailer", "a mailer is needed, or WithDevMode for development")
	need(c.baseURL != nil, "WithBaseURL", "the public URL (https://…/auth/v1) is needed, or WithDevMode for development")
	if u := c.baseURL; u != nil && u.Scheme == "http" {
		loopback := isLoopbackHost(u.Hostname())
		need(loopback, "WithBaseURL", "http on a host that is not loopback: use https")
		need(c.devMode || !loopback, "WithBaseURL", "http on a loopback host needs WithDevMode")
	}
	for option, sender := range map[string]any{"WithMailer": c.mailer, "WithSMSSender": c.sms} {
		if _, ok := sender.(*Inbox); ok && c.baseURL != nil { // http elsewhere is refused above
			need(c.baseURL.Scheme != "https", option, "an Inbox, also the one of WithDevMode, works only over http on a loopback host, because its readers can sign in as any user")
		}
		if v, ok := sender.(interface{ Validate() error }); ok {
			if err := v.Validate(); err != nil {
				c.fail(option, err)
			}
		}
	}
	if err := c.audit.check(); err != nil {
		c.fail("WithAuditLog", err)
	}
	if err := c.phone.check(); err != nil {
		c.errs = append(c.errs, err)
	}
	names := map[string]bool{}
	for _, p := range c.providers {
		if err := p.Validate(); err != nil {
			c.fail("WithProvider: "+p.Name, err)
		}
		need(!names[p.Name], "WithProvider", fmt.Sprintf("two providers are named %q", p.Name))
		names[p.Name] = true
	}
	if c.cookies != nil {
		for _, o := range c.corsOrigins {
			need(o != "*", "WithCORS", "any origin cannot be allowed together with WithCookies")
		}
	}
	c.checkTokens()
}

// build creates the parts of a from the checked configuration.
func (a *Auth) build() error {
	c := &a.cfg
	c.limits = c.limits.withDefaults()
	c.sessions = c.sessions.withDefaults()
	c.mail.host = c.baseURL.Hostname()
	if c.tokens.Issuer == "" {
		c.tokens.Issuer = c.baseURL.String()
	}
	var err error
	if err = a.buildTokens(); err != nil {
		return err
	}
	a.refunds = a.newRefunds()
	a.recorder = journal.NewRecorder(a.eventWriter(), c.log)
	a.counter = journal.NewCounter(a.countWriter(), a.now, c.log, codeOf)
	a.pending.bySecret = map[string]*attemptGroup{}
	if a.passwords, err = newPasswords(c.passwords, c.log); err != nil {
		return err
	}
	mail := c.mail
	mail.defaults()
	if a.templates, err = parseTemplates(mail); err != nil {
		return err
	}
	logGaps(c.log, a.templates.gaps, mail.Locale)
	a.providers, a.providerNames = a.newProviders()
	a.handler = a.mount(a.routes())
	a.outbox = a.newOutbox()
	return nil
}

// Handler serves every endpoint. Mount it at the prefix, or anywhere behind
// http.StripPrefix.
func (a *Auth) Handler() http.Handler { return a.handler }

// Inbox returns the messages of dev mode. It is nil outside dev mode or if a mailer
// is configured. A nil Inbox is a handler that responds with 404.
func (a *Auth) Inbox() *Inbox { return a.inbox }

// Close stops the sweeper, ends streams of revocations, delivers this process's messages,
// and writes its pending events and counts, until ctx ends. It returns an error with the
// number of messages left. A store that keeps messages (store.Journal) still has them, and another
// instance with the same secret sends them; other stores lose them. Call Close after
// the HTTP server has shut down. It may be called again.
//
// A process that ends without Close, by log.Fatal or a signal, loses no messages on
// Postgres: they are sent within minutes of the next start. In memory they are lost
// with everything else.
func (a *Auth) Close(ctx context.Context) error {
	a.background.Close()
	a.streams.close()
	a.client.CloseIdleConnections()
	return errors.Join(a.refunds.close(ctx), a.outbox.Close(ctx), a.recorder.Close(ctx), a.counter.Close(ctx))
}

// sweepEvery and sweepBatch keep deletions small and frequent.
const (
	sweepEvery = time.Minute
	sweepBatch = 1000
)

// sweep deletes expired data until ctx ends.
func (a *Auth) sweep(ctx context.Context) {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for {
			n, err := a.store.Sweep(ctx, a.now(), sweepBatch)
			if err == nil {
				var events int
				events, err = a.sweepEvents(ctx, sweepBatch)
				n = max(n, events)
			}
			if err != nil && ctx.Err() == nil {
				a.cfg.log.WarnContext(ctx, "auth: sweep failed", "error", err)
			}
			if err != nil || n < sweepBatch {
				break
			}
		}
	}
}

// now returns the time in the precision of stores.
func (a *Auth) now() time.Time { return a.cfg.now().UTC().Truncate(time.Microsecond) }

// newID returns a UUIDv7 (RFC 9562).
func (a *Auth) newID() string {
	return uuid.Must(uuid.NewV7()).String() // crypto/rand never fails
}
