package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/text/unicode/norm"

	"github.com/authmount/auth/internal/clientip"
	"github.com/authmount/auth/internal/commonpw"
	"github.com/authmount/auth/internal/passhash"
	"github.com/authmount/auth/internal/pwpool"
)

// PasswordOptions are the password policy and the cost of hashing.
type PasswordOptions struct {
	MinLength        int            // characters; default 8, as NIST SP 800-63B-4 asks; 15 where the password is the only factor
	MaxLength        int            // characters; default 256
	Argon2id         Argon2idParams // default m=19456 KiB, t=2, p=1 (OWASP)
	BcryptCost       int            // above 0, new hashes are bcrypt, and passwords have at most 72 bytes and no NUL; only for comparisons with servers that use bcrypt
	Breach           BreachChecker  // nil: no check against leaked passwords
	BreachFailClosed bool           // refuse passwords (503) while the checker cannot answer; by default they are accepted and the failure logged
	Workers          int            // hashes computed at once; default GOMAXPROCS
	Queue            int            // callers waiting for a hash, at most a quarter of them for one client IP address (IPv6: /64) or account; one more gets CodeOverloaded; networks take turns (IPv6: /48, /56, /64); a quarter as many places are in addition for known devices; default 512
}

// minPasswordLength is the default of MinLength, and its minimum.
const minPasswordLength = 8

func (o PasswordOptions) maxLength() int { return cmp.Or(o.MaxLength, 256) }

// Argon2idParams are the parameters of argon2id (RFC 9106). A login renews a hash with
// weaker ones.
type Argon2idParams struct {
	Memory  uint32 // KiB
	Time    uint32 // passes
	Threads uint8
}

// BreachChecker reports whether a password is known from a leak. The context ends with
// the request. A BreachChecker must be safe for concurrent use. Package hibp has one.
type BreachChecker interface {
	Breached(ctx context.Context, password string) (bool, error)
}

// passwords hashes and checks passwords in a pool that bounds memory and CPU.
type passwords struct {
	o     PasswordOptions
	log   *slog.Logger
	dummy *passhash.Hash // for accounts without a password
	usual bool           // the options set no cost
	done  atomic.Uint64  // computations, for tests of equal work
	pool  *pwpool.Pool
}

// maxPasswordBytes bounds the input of a hash at login. No password is longer.
const maxPasswordBytes = 4096

func newPasswords(o PasswordOptions, log *slog.Logger) (*passwords, error) {
	set := func(n *int, def int) {
		if *n == 0 {
			*n = def
		}
	}
	set(&o.MinLength, minPasswordLength)
	o.MaxLength = o.maxLength()
	set(&o.Workers, runtime.GOMAXPROCS(0))
	set(&o.Queue, 512)
	usual := o.BcryptCost == 0 && o.Argon2id == (Argon2idParams{})
	if o.Argon2id == (Argon2idParams{}) {
		o.Argon2id = Argon2idParams{Memory: 19456, Time: 2, Threads: 1}
	}
	a := o.Argon2id
	switch {
	case o.MaxLength < 64 || o.MaxLength > 1024:
		return nil, errors.New("WithPasswords: MaxLength has to lie between 64 and 1024")
	case o.Workers < 1 || o.Queue < 1:
		return nil, errors.New("WithPasswords: Workers and Queue have to be positive")
	case o.BcryptCost == 0 && (uint64(a.Memory)*uint64(a.Time) < 7168*5 || a.Memory < 7168 || a.Time < 1 || a.Threads < 1):
		return nil, errors.New("WithPasswords: argon2id parameters are weaker than OWASP's minimum (such as m=19456,t=2,p=1 or m=7168,t=5,p=1)")
	case o.BcryptCost != 0 && (o.BcryptCost < bcrypt.DefaultCost || o.BcryptCost > 16):
		return nil, errors.New("WithPasswords: BcryptCost has to lie between 10 and 16")
	}
	switch {
	case o.MinLength < minPasswordLength:
		return nil, fmt.Errorf("WithPasswords: MinLength below %d is unsafe (NIST SP 800-63B-4)", minPasswordLength)
	case o.MinLength > o.MaxLength:
		return nil, errors.New("WithPasswords: MinLength is above MaxLength, so no password would be valid")
	}
	if o.BcryptCost == 0 { // before the first hash is made with them
		if err := passhash.Argon2id(a).Check(); err != nil {
			return nil, fmt.Errorf("WithPasswords: Argon2id: %w", err)
		}
	}
	p := &passwords{o: o, log: log, usual: usual, pool: pwpool.New(o.Workers, o.Queue)}
	return p, p.makeDummy()
}

// makeDummy creates the hash that replaces a missing one.
func (p *passwords) makeDummy() (err error) {
	unknown := passhash.Argon2id(p.o.Argon2id).MakeUnknown()
	if p.o.BcryptCost > 0 {
		unknown = passhash.MakeUnknownBcrypt(p.o.BcryptCost)
	}
	p.dummy, err = passhash.Parse(unknown)
	return err
}

// passwordRules are the parts of the policy that may change while the service runs.
type passwordRules struct {
	minLength int
	breach    bool // ask the checker, if there is one
}

// hashCount counts the hashes computed so far.
func (p *passwords) hashCount() uint64 { return p.done.Load() }

// ValidPasswordHash returns nil if ImportUser accepts a hash: argon2id and argon2i
// (PHC), bcrypt, scrypt (PHC), Firebase's scrypt, PBKDF2 (PHC or Django's), with
// parameters that a login can afford. Package internal/passhash lists the forms. A
// password above 72 bytes, or with a NUL, never matches a bcrypt hash, because bcrypt
// reads only 72 bytes; a user with such a password has to reset it. The error does not
// quote the hash.
func ValidPasswordHash(encoded string) error {
	_, err := passhash.Parse(encoded)
	return err
}

// nfkc normalises a password, so that forms that look and are typed alike are equal
// (NIST SP 800-63B-4, section 3.1.1.2).
func nfkc(password string) string { return norm.NFKC.String(password) }

// make computes a new hash.
func (p *passwords) make(password string) (string, error) {
	if p.o.BcryptCost > 0 {
		return passhash.MakeBcrypt(password, p.o.BcryptCost)
	}
	return passhash.Argon2id(p.o.Argon2id).Make(password), nil
}

// hashOwner is the account of a password, for the queue and for limits.
type hashOwner struct {
	account string // its id, or its email address or phone number if there is no id yet
	device  string // of deviceOf
}

// key identifies the account for limits. Known devices have limits of their own, so that
// strangers do not use them up.
func (o hashOwner) key() string {
	if o.device == "" {
		return o.account
	}
	return o.account + " " + o.device
}

// hash returns a new hash of a password. Errors: CodeOverloaded, the context's.
func (p *passwords) hash(ctx context.Context, of hashOwner, password string) (string, error) {
	var encoded string
	err := p.run(ctx, of, nil, func() error {
		var err error
		encoded, err = p.make(nfkc(password))
		return err
	})
	return encoded, err
}

// verify checks a password of an account. It does the same work if there is no hash. It
// calls admit right before it computes the hash; few other callers are then between admit
// and their result. rehash reports that the hash has an older format or cost, or is of a
// password that was not normalised. Errors: CodeOverloaded, the context's, admit's.
func (p *passwords) verify(ctx context.Context, of hashOwner, encoded, password string, admit func(context.Context) error) (ok, rehash bool, err error) {
	h, parseErr := passhash.Parse(encoded)
	checkable := parseErr == nil && len(password) <= maxPasswordBytes
	if parseErr != nil {
		h = p.dummy
	}
	if len(password) > maxPasswordBytes {
		password = "x"
	}
	normal, raw := nfkc(password), false
	err = p.run(ctx, of, admit, func() error {
		ok = h.Verify(normal)
		if normal != password {
			// Other systems may have hashed the raw form. It is always checked, so that
			// the amount of work reveals nothing.
			raw = h.Verify(password) && !ok
			ok = ok || raw
			p.done.Add(1)
		}
		return nil
	})
	if err != nil || !ok || !checkable {
		return false, false, err
	}
	if p.o.BcryptCost > 0 {
		return true, raw || h.BcryptCost() < p.o.BcryptCost, nil
	}
	return true, raw || !h.AtLeast(passhash.Argon2id(p.o.Argon2id)), nil
}

// run computes work in the pool, and counts it. The pool alternates between the networks
// of the contexts' clients.
func (p *passwords) run(ctx context.Context, of hashOwner, admit func(context.Context) error, work func() error) error {
	caller := pwpool.Caller{Account: of.key(), KnownDevice: of.device != ""}
	if ip := clientFrom(ctx).IP; ip.IsValid() {
		caller.Networks = clientip.Networks(ip)
	}
	err := p.pool.Run(ctx, caller, admit, func() error {
		p.done.Add(1)
		return work()
	})
	if errors.Is(err, pwpool.ErrOverloaded) {
		return retryAfter(CodeOverloaded, 2*time.Second, err)
	}
	return err
}

// check applies the policy and returns the reasons against a password, if any. about is
// the user's email address, phone number and name, as far as known.
func (p *passwords) check(ctx context.Context, rules passwordRules, password string, about ...string) ([]string, error) {
	normal := nfkc(password)
	var reasons []string
	add := func(bad bool, reason string) {
		if bad {
			reasons = append(reasons, reason)
		}
	}
	length := utf8.RuneCountInString(normal)
	add(length < rules.minLength, "length")
	add(length > p.o.MaxLength || (p.o.BcryptCost > 0 && !passhash.FitsBcrypt(normal)), "too_long")
	if len(normal) <= maxPasswordBytes {
		add(commonpw.Contains(normal), "common")
		add(similar(normal, about), "similar")
	}
	if len(reasons) > 0 || p.o.Breach == nil || !rules.breach {
		return reasons, nil
	}
	breached, err := p.o.Breach.Breached(ctx, password)
	if err != nil {
		p.log.WarnContext(ctx, "auth: breach check failed", "fail_closed", p.o.BreachFailClosed, "error", err)
		if p.o.BreachFailClosed {
			return nil, retryAfter(CodeUnavailable, 5*time.Second, fmt.Errorf("breach check: %w", err))
		}
		return nil, nil
	}
	add(breached, "breached")
	return reasons, nil
}

// similar reports whether a password is little more than an email address, its local
// part or a name in about, once or repeated, with a few characters around it.
func similar(password string, about []string) bool {
	pw := lettersAndDigits(password)
	for _, s := range about {
		local, _, _ := strings.Cut(s, "@")
		for _, known := range []string{lettersAndDigits(s), lettersAndDigits(local)} {
			if utf8.RuneCountInString(known) < 4 || !strings.Contains(pw, known) {
				continue
			}
			rest := strings.ReplaceAll(pw, known, "")
			letters := strings.Map(func(r rune) rune {
				if unicode.IsLetter(r) {
					return r
				}
				return -1
			}, rest)
			if utf8.RuneCountInString(letters) <= 2 && utf8.RuneCountInString(rest) <= 6 {
				return true
			}
		}
	}
	return false
}

func lettersAndDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, norm.NFKC.String(s))
}

// checkNewPassword applies the password policy.
func (a *Auth) checkNewPassword(ctx context.Context, password string, about ...string) error {
	s := a.Settings(ctx)
	reasons, err := a.passwords.check(ctx, passwordRules{minLength: s.PasswordMinLength, breach: s.BreachCheck.On()}, password, about...)
	switch {
	case err != nil:
		return hashFailed(err)
	case len(reasons) > 0:
		return weakPassword(reasons)
	}
	return nil
}

// hashFailed returns an error that has a code as it is. Any other error means that the
// caller's context has ended.
func hashFailed(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return retryAfter(CodeUnavailable, time.Second, err)
}

// overloads counts requests that were refused because the queue for hashes was full. A
// client can cause them at will, so the log has at most one line a second for them.
type overloads struct {
	mu     sync.Mutex
	logged time.Time
	count  int // since then
}

// add counts a refusal. If a log line is due, it returns the number of refusals since
// the last one; otherwise 0.
func (o *overloads) add(now time.Time) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count++
	if now.Sub(o.logged) < time.Second {
		return 0
	}
	n := o.count
	o.logged, o.count = now, 0
	return n
}

func (a *Auth) logOverload(ctx context.Context) {
	if n := a.overloads.add(a.now()); n > 0 {
		a.cfg.log.WarnContext(ctx, "auth: overloaded: the queue for password hashes, or a client's share of it, is full", "refused", n)
	}
}
