// Server is Authmount as a separate process, configured by flags or by AUTH_… environment
// variables of the same names (-base-url is AUTH_BASE_URL).
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/dashboard"
	"github.com/authmount/auth/examples/server/demo"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/passkey"
	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/provider"
	"github.com/authmount/auth/smtpmail"
	"github.com/authmount/auth/sqlitestore"
	"github.com/authmount/auth/twiliosms"
)

// settings are the flags.
type settings struct {
	database, file, addr, baseURL, secret, apiKeys, redirects, smtpURL, proxies, cors, hash, appName string
	twilioSID, twilioToken, twilioFrom                                                               string
	clients                                                                                          map[string]*client // by provider
	oidcIssuer, microsoftTenant, appleTeam, appleKeyID, appleKey                                     string
	owner                                                                                            string
	adminMFA, ownerLink                                                                              bool
	secretKeys                                                                                       []auth.SecretKey
	requireMFA, confirm, inbox, noLimits, deletion, cookies, pprof, verbose, demo, memory            bool
}

// client is this application at a provider.
type client struct{ id, secret string }

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

func parse(args []string) (settings, error) {
	var s settings
	fs := flag.NewFlagSet("server", flag.ContinueOnError)
	str := func(p *string, name, def, usage string) {
		if v, ok := os.LookupEnv(envName(name)); ok {
			def = v
		}
		fs.StringVar(p, name, def, usage+" ("+envName(name)+")")
	}
	yes := func(p *bool, name, usage string) {
		v := strings.ToLower(os.Getenv(envName(name)))
		fs.BoolVar(p, name, v == "1" || v == "true" || v == "yes", usage+" ("+envName(name)+")")
	}
	str(&s.addr, "addr", "127.0.0.1:8080", "address to listen on")
	str(&s.baseURL, "base-url", "", "public URL of the mount, with passkeys on https and on http://localhost; default http://<addr>/auth/v1, for development")
	str(&s.file, "file", "", "SQLite file for the data, created if there is none; with http, the secret is kept beside it (default auth.db)")
	str(&s.database, "database-url", "", "postgres://… database for the data instead of the file, migrated at start")
	yes(&s.memory, "memory", "keep the data in memory instead, until the process ends")
	str(&s.secret, "secret", "", "secret of at least 32 bytes; commas separate the current one from previous ones; required with https; on http with -database-url or -memory, random at each start")
	str(&s.appName, "app-name", "", "name shown in messages and pages")
	str(&s.apiKeys, "api-key", "", "public API keys, separated by commas")
	str(&s.redirects, "redirect-urls", "", "allowed redirect targets, separated by commas")
	str(&s.smtpURL, "smtp-url", "", "smtp(s)://user:password@host:port?from=address")
	str(&s.proxies, "trusted-proxies", "", "networks of reverse proxies (CIDR), separated by commas")
	str(&s.cors, "cors", "", "origins that may call from a browser, separated by commas")
	str(&s.owner, "owner", "", "email address of the first owner, which takes effect once the address is verified")
	yes(&s.ownerLink, "first-owner-link", "print the first owner's link to standard error (the default on a terminal without -owner)")
	fs.BoolVar(&s.adminMFA, "admin-mfa", os.Getenv(envName("admin-mfa")) != "false", "admins need a second factor ("+envName("admin-mfa")+")")
	secretKeys := []string{os.Getenv(envName("secret-key"))}
	fs.Func("secret-key", "<key>=<scopes>: secret key of a program for the admin side, with permissions separated by commas, * for what needs no scope by name (unlocking, deleting, anonymising and giving roles do), role/<name> for each role that it gives; repeatable; better set in the environment, separated by spaces ("+envName("secret-key")+")", func(key string) error {
		secretKeys = append(secretKeys, key) // parsed below, because an error of this function would show the key
		return nil
	})
	str(&s.hash, "hash", "argon2id", "password hash: argon2id or bcrypt (cost 10, for comparisons)")
	str(&s.twilioSID, "twilio-account-sid", "", "Twilio account, for phone codes")
	str(&s.twilioToken, "twilio-auth-token", "", "Twilio token; better set in the environment")
	str(&s.twilioFrom, "twilio-from", "", "number or sender id of text messages")
	s.clients = map[string]*client{}
	for _, name := range []string{"google", "github", "facebook", "twitter", "microsoft", "discord", "apple", "oidc"} {
		c := &client{}
		s.clients[name] = c
		str(&c.id, name+"-client-id", "", "client id at "+name+"; switches it on")
		if name != "apple" {
			str(&c.secret, name+"-client-secret", "", "client secret at "+name+"; better set in the environment")
		}
	}
	str(&s.oidcIssuer, "oidc-issuer", "", "issuer of any OpenID provider, which is then called oidc")
	str(&s.microsoftTenant, "microsoft-tenant", "common", "tenant id, common, organizations or consumers")
	str(&s.appleTeam, "apple-team-id", "", "team id at Apple")
	str(&s.appleKeyID, "apple-key-id", "", "id of the private key at Apple")
	str(&s.appleKey, "apple-private-key", "", "file with the private key (.p8) of Apple")
	yes(&s.requireMFA, "require-mfa", "all users need a second factor")
	yes(&s.confirm, "require-confirmation", "e-mail addresses must be confirmed before the first sign-in")
	yes(&s.inbox, "dev-inbox", "keep messages at /dev/inbox instead of sending them; for loopback only")
	yes(&s.noLimits, "no-rate-limit", "no rate limits; for benchmarks only")
	yes(&s.deletion, "account-deletion", "people may delete their account")
	yes(&s.cookies, "cookies", "let sessions be in cookies, beside bearer tokens")
	yes(&s.pprof, "pprof", "serve /debug/pprof/; for loopback only")
	yes(&s.demo, "demo", "fill the memory, or the empty database of -database-url, with a month of made-up data before serving, to look at the dashboard; for loopback only")
	yes(&s.verbose, "verbose", "log at debug level")
	err := fs.Parse(args)
	if err == nil && fs.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", fs.Arg(0))
	}
	if err == nil {
		s.secretKeys, err = readSecretKeys(secretKeys)
	}
	return s, err
}

func envName(flagName string) string {
	return "AUTH_" + strings.ToUpper(strings.ReplaceAll(flagName, "-", "_"))
}

func list(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
}

// on is a boolean flag; if it is not set, the default applies.
func on(yes bool) auth.Switch {
	if yes {
		return auth.On
	}
	return 0
}

// options returns the options of an Auth for the settings, and the inbox if it is
// enabled.
func options(s settings, log *slog.Logger) ([]auth.Option, *auth.Inbox, error) {
	opts := []auth.Option{
		auth.WithLogger(log),
		auth.WithMail(auth.MailOptions{AppName: s.appName}),
		auth.WithSettings(auth.Settings{RequireConfirmation: on(s.confirm), MFARequired: on(s.requireMFA), AccountDeletion: on(s.deletion)}),
		auth.WithRedirectURLs(list(s.redirects)...),
		auth.WithAPIKeys(list(s.apiKeys)...),
		auth.WithSecretKeys(s.secretKeys...),
		auth.WithTrustedProxies(list(s.proxies)...),
		auth.WithCORS(list(s.cors)...),
	}
	if s.baseURL == "" {
		s.baseURL = "http://" + s.addr + "/auth/v1"
	}
	opts = append(opts, auth.WithBaseURL(s.baseURL))
	if base, err := url.Parse(s.baseURL); err == nil && (base.Scheme == "https" || base.Hostname() == "localhost") {
		opts = append(opts, auth.WithPasskeys(passkey.New(passkey.Options{}))) // browsers create none for IP addresses
	}
	if strings.HasPrefix(s.baseURL, "http://") {
		opts = append(opts, auth.WithDevMode())
		if s.secret == "" && !s.memory {
			log.Warn("no -secret: a random one is used; when this process ends, all sessions end and stored second factors cannot be read")
		}
	}
	if s.secret != "" {
		var secrets [][]byte
		for _, one := range list(s.secret) {
			secrets = append(secrets, []byte(one))
		}
		opts = append(opts, auth.WithSecret(secrets[0], secrets[1:]...))
	}
	if strings.HasPrefix(s.baseURL, "https://") && s.secret == "" {
		return nil, nil, errors.New("-secret is required: at least 32 random bytes, for example from openssl rand -base64 32")
	}
	var inbox *auth.Inbox
	switch {
	case s.smtpURL != "" && s.inbox:
		return nil, nil, errors.New("-smtp-url and -dev-inbox cannot be used together")
	case s.smtpURL != "":
		opts = append(opts, auth.WithMailer(smtpmail.New(s.smtpURL)))
	case s.inbox && strings.HasPrefix(s.baseURL, "https://"):
		return nil, nil, errors.New("-dev-inbox only works with http on a loopback host; set -smtp-url")
	case s.inbox:
		inbox = auth.NewInbox()
		var mailer auth.Mailer = inbox
		if s.demo {
			mailer = demo.Mailer(inbox)
		}
		opts = append(opts, auth.WithMailer(mailer), auth.WithSMSSender(inbox))
	case strings.HasPrefix(s.baseURL, "https://"):
		return nil, nil, errors.New("-smtp-url is required")
	case strings.HasPrefix(s.baseURL, "http://"):
		log.Warn("messages are discarded: set -smtp-url, or -dev-inbox for development")
	}
	if s.twilioSID != "" {
		opts = append(opts, auth.WithSMSSender(twiliosms.New(s.twilioSID, s.twilioToken, s.twilioFrom)))
	}
	connections, err := providers(s)
	if err != nil {
		return nil, nil, err
	}
	opts = append(opts, auth.WithProvider(connections...))
	switch s.hash {
	case "argon2id":
	case "bcrypt":
		opts = append(opts, auth.WithPasswords(auth.PasswordOptions{BcryptCost: 10}))
	default:
		return nil, nil, fmt.Errorf("-hash must be argon2id or bcrypt, not %q", s.hash)
	}
	if s.noLimits {
		log.Warn("RATE LIMITS ARE OFF: attempts at passwords and codes are unlimited; never do this in production")
		opts = append(opts, auth.WithRateLimits(auth.RateLimits{Off: true}))
	}
	if s.cookies {
		opts = append(opts, auth.WithCookies(auth.CookieOptions{}))
	}
	return opts, inbox, nil
}

// providers returns the providers with a client id.
func providers(s settings) ([]provider.Provider, error) {
	var on []provider.Provider
	for name, makes := range map[string]func(id, secret string, opts ...provider.Option) provider.Provider{
		"google": provider.Google, "github": provider.GitHub, "facebook": provider.Facebook, "twitter": provider.Twitter, "discord": provider.Discord,
		"microsoft": func(id, secret string, _ ...provider.Option) provider.Provider {
			return provider.Microsoft(id, secret, func(p *provider.Provider) { p.Tenant = s.microsoftTenant })
		},
		"oidc": func(id, secret string, _ ...provider.Option) provider.Provider {
			return provider.OIDC("oidc", s.oidcIssuer, id, secret)
		},
	} {
		if c := s.clients[name]; c.id != "" {
			on = append(on, makes(c.id, c.secret))
		}
	}
	if (s.oidcIssuer != "") != (s.clients["oidc"].id != "") {
		return nil, errors.New("-oidc-issuer and -oidc-client-id must be set together")
	}
	for name, c := range s.clients {
		if c.secret != "" && c.id == "" {
			return nil, fmt.Errorf("-%s-client-secret needs -%s-client-id", name, name)
		}
	}
	if c := s.clients["apple"]; c.id != "" {
		if s.appleTeam == "" || s.appleKeyID == "" || s.appleKey == "" {
			return nil, errors.New("-apple-client-id needs -apple-team-id, -apple-key-id and -apple-private-key")
		}
		key, err := os.ReadFile(s.appleKey)
		if err != nil {
			return nil, fmt.Errorf("-apple-private-key: %w", err)
		}
		on = append(on, provider.Apple(c.id, s.appleTeam, s.appleKeyID, key))
	}
	slices.SortFunc(on, func(a, b provider.Provider) int { return strings.Compare(a.Name, b.Name) })
	return on, nil
}

func run(args []string) error {
	s, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if s.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.addr)
	if err != nil {
		return err
	}
	s.addr = ln.Addr().String()
	if err := errors.Join(s.prepareDemo(), s.prepareFile(log)); err != nil {
		return err
	}
	opts, inbox, err := options(s, log)
	if err != nil {
		return err
	}
	store, closeStore, err := openStore(ctx, s)
	if err != nil {
		return err
	}
	defer closeStore()
	if s.demo {
		if err := seedDemo(ctx, store, s, os.Stderr); err != nil {
			return err
		}
	}
	first := &firstOwner{address: s.owner, log: log}
	a, err := auth.New(ctx, store, append(opts, auth.WithHooks(auth.Hooks{OnEvent: first.onEvent}))...)
	if err != nil {
		return err
	}
	adm, err := newAdmin(ctx, a, s)
	if err != nil {
		return err
	}
	first.begin(ctx, adm)
	if s.ownerLink || s.owner == "" && isTerminal(os.Stderr) {
		if err := printOwnerLink(ctx, adm, os.Stderr); err != nil {
			return err
		}
	}
	return serve(ctx, ln, a, adm, inbox, s, log)
}

// prepareFile decides whether the data is in a file, and takes the secret beside it.
func (s *settings) prepareFile(log *slog.Logger) error {
	switch {
	case s.memory && s.database != "":
		return errors.New("-memory and -database-url cannot be used together")
	case s.file != "" && (s.memory || s.database != "" || s.demo):
		return errors.New("-file cannot be used together with -memory, -database-url or -demo")
	case s.memory || s.database != "" || s.demo:
		return nil
	}
	path, err := filepath.Abs(cmp.Or(s.file, "auth.db"))
	if err != nil {
		return err
	}
	s.file = path
	if s.secret == "" && !strings.HasPrefix(s.baseURL, "https://") {
		secret, err := sqlitestore.DevelopmentSecret(path)
		if err != nil {
			return err
		}
		s.secret = string(secret)
	}
	log.Info("the data is in a file; -memory keeps nothing", "file", path)
	return nil
}

// openStore opens the store that the settings name.
func openStore(ctx context.Context, s settings) (auth.Store, func(), error) {
	switch {
	case s.database != "":
		store, err := pgstore.Open(ctx, s.database, pgstore.AutoMigrate())
		if err != nil {
			return nil, nil, err
		}
		return store, store.Close, nil
	case s.file != "":
		store, err := sqlitestore.Open(s.file)
		if err != nil {
			return nil, nil, err
		}
		return store, func() { _ = store.Close() }, nil
	}
	return memstore.New(), func() {}, nil
}

// newServer limits the resources of clients that send slowly, read slowly or do neither.
func newServer(h http.Handler) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      45 * time.Second, // from the header on; longer than a sign-in at a slow provider
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
}

// serve serves until a signal arrives, then completes requests and sends messages.
func serve(ctx context.Context, ln net.Listener, a *auth.Auth, adm *admin.Admin, inbox *auth.Inbox, s settings, log *slog.Logger) error {
	mux := http.NewServeMux()
	dash, err := dashboard.New(adm, dashboard.Options{})
	if err != nil {
		return err
	}
	mux.Handle(adminPath(s), adm.Handler())
	mux.Handle("/dashboard/", dash)
	mux.Handle("/", a.Handler()) // for any path of the base URL
	if inbox != nil {
		mux.Handle("/dev/", inbox)
	}
	if s.pprof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	}
	srv := newServer(mux)
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()
	log.Info("listening", "addr", s.addr)
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	log.Info("shutting down")
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return errors.Join(srv.Shutdown(end), a.Close(end))
}
