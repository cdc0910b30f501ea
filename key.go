package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/authmount/auth/internal/apikey"
	"github.com/authmount/auth/store"
)

// SecretKey is a secret API key that is not in the store.
type SecretKey struct {
	Key    string   // "sk_" and at least 13 more characters
	Scopes []string // the key's permissions; "*" for all that keys may have; to unlock, delete and anonymise, and to give roles, the permission by name; "role/editor" for a role to give

	HourlyLimit int // accounts that it may ban, delete, anonymise, sign out or mail in an hour; 0: 50
}

// LogValue keeps the key out of the log.
func (k SecretKey) LogValue() slog.Value { return slog.AnyValue(k.Scopes) }

// Format keeps the key out of printed text, for every verb.
func (k SecretKey) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "{%s %v}", redacted, k.Scopes) }

const shortestSecretKey = 16

// WithSecretKeys adds secret keys for programs that use the admin API or routes with
// [AllowKeys], in addition to those in the store (see package admin). A key's scopes are
// its permissions. Programs send it as the bearer token. It is valid as long as the option
// contains it. The default is no key. Further calls add more.
func WithSecretKeys(keys ...SecretKey) Option {
	return func(c *config) {
		for _, k := range keys {
			switch {
			case !strings.HasPrefix(k.Key, apikey.SecretPrefix):
				c.fail("WithSecretKeys", errors.New("a key has to begin with "+apikey.SecretPrefix))
			case len(k.Key) < shortestSecretKey || strings.ContainsFunc(k.Key, notUnreserved):
				c.fail("WithSecretKeys", fmt.Errorf("a key needs at least %d characters, and only letters, digits and -._~: generate 32 random bytes", shortestSecretKey))
			case len(k.Scopes) == 0:
				c.fail("WithSecretKeys", errors.New("a key needs scopes, such as auth.users.read, or * for all permissions that keys can have"))
			case k.HourlyLimit < 0:
				c.fail("WithSecretKeys", errors.New("an hourly limit cannot be negative"))
			}
			hash := apikey.Hash(k.Key)
			c.secretKeys = append(c.secretKeys, store.APIKey{Name: fmt.Sprintf("%s%x", optionKeyName, hash[:4]), Hash: hash, Scopes: slices.Clone(k.Scopes), HourlyLimit: k.HourlyLimit})
		}
	}
}

// Reasons to refuse a secret key, for the log. The response does not contain them.
var (
	errUnknownSecretKey = mistake{errors.New("the secret key is neither in the store nor in WithSecretKeys")}
	errKeysUndecided    = mistake{errors.New("AllowKeys needs package admin, which knows the permissions of keys: call admin.New in this process")}
	errSecretInBrowser  = mistake{errors.New("a browser sent a secret key: visitors of the page can read it, so rotate it")}
)

// givenSecretKey returns the secret key of a request: the bearer token, or, without an
// Authorization header, the API key.
func givenSecretKey(r *http.Request) (string, bool) {
	given := []string{r.Header.Get("Apikey"), r.Header.Get("X-Api-Key")}
	if h := r.Header.Get("Authorization"); h != "" {
		scheme, token, _ := strings.Cut(h, " ")
		if given = nil; strings.EqualFold(scheme, "Bearer") {
			given = []string{strings.TrimSpace(token)}
		}
	}
	for _, key := range given {
		if strings.HasPrefix(key, apikey.SecretPrefix) {
			return key, true
		}
	}
	return "", false
}

// admitSecretKey admits a request with a secret key. Errors: CodeInvalidAPIKey,
// CodeRateLimited.
func (a *Auth) admitSecretKey(r *http.Request, secret string) (*http.Request, error) {
	if _, err := a.sentKey(r, secret); err != nil {
		return r, err
	}
	return r.WithContext(context.WithValue(r.Context(), secretKeyKey{}, secret)), nil
}

// sentKey is secretKey for the secret key of a request, which no browser may send.
func (a *Auth) sentKey(r *http.Request, secret string) (store.APIKey, error) {
	if apikey.FromBrowser(r) {
		return store.APIKey{}, secretInBrowser()
	}
	return a.secretKey(r.Context(), secret)
}

func secretInBrowser() error {
	err := fail(CodeInvalidAPIKey, errSecretInBrowser)
	err.Message = "A secret key must not be used in a browser. Rotate it, and keep the new one on a server."
	return err
}

type secretKeyKey struct{}

// secretKey returns the key for a text, if it may be used now and by the context's
// client. The response is the same for every reason to refuse it. Failures count by the
// client's IP address, but never block a right key. Errors: CodeInvalidAPIKey,
// CodeRateLimited.
func (a *Auth) secretKey(ctx context.Context, text string) (store.APIKey, error) {
	k, wrong, err := a.findSecretKey(ctx, text)
	switch {
	case err != nil:
		return store.APIKey{}, storeFailed(err)
	case wrong != nil:
		if err := a.take(ctx, a.perIP(ctx, a.cfg.limits.SecretKeysPerIP, "secret-key-ip")...); err != nil {
			return store.APIKey{}, err
		}
		return store.APIKey{}, fail(CodeInvalidAPIKey, wrong)
	}
	a.noteUse(ctx, &k)
	return k, nil
}

// findSecretKey finds the key for a text. wrong is the reason to refuse it; it names a
// key only if the text is that key.
func (a *Auth) findSecretKey(ctx context.Context, text string) (found store.APIKey, wrong, err error) {
	for _, k := range a.cfg.secretKeys {
		if apikey.Is(text, k.Hash) {
			found = k
		}
	}
	if found.Hash != nil {
		return found, nil, nil
	}
	parts, ok := apikey.Parse(text)
	if !ok || parts.Public || a.project == nil {
		return store.APIKey{}, errUnknownSecretKey, nil
	}
	k, err := a.project.Key(ctx, parts.ID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return store.APIKey{}, nil, err
	}
	now := a.now()
	right := apikey.Is(text, k.Hash) // k is empty if there is no such key
	before := apikey.Is(text, k.PreviousHash) && now.Before(k.PreviousUntil)
	switch {
	case !right && !before || k.Public:
		return store.APIKey{}, errUnknownSecretKey, nil
	case !k.Live(now):
		return store.APIKey{}, mistake{fmt.Errorf("the secret key %s was revoked or has expired", k.ID)}, nil
	case !usableFrom(ctx, &k):
		return store.APIKey{}, mistake{fmt.Errorf("the secret key %s may not be used from this client address", k.ID)}, nil
	}
	return k, nil, nil
}

// usableFrom reports whether the client's IP address is in the key's networks. An unsure
// address is refused, because it is often the proxy's, and that is often in a private
// network.
func usableFrom(ctx context.Context, k *store.APIKey) bool {
	c, _ := ctx.Value(clientKey{}).(requestClient)
	return len(k.Networks) == 0 || !c.unsure && slices.ContainsFunc(k.Networks, func(n string) bool {
		p, err := netip.ParsePrefix(n)
		return err == nil && p.Contains(c.IP.Unmap())
	})
}

// usesNoted is the least time between two recorded uses of a key.
const usesNoted = time.Minute

// noteUse records the use of a key. A failure does not fail the request.
func (a *Auth) noteUse(ctx context.Context, k *store.APIKey) {
	now := a.now()
	if k.ID == "" || now.Sub(k.LastUsedAt) < usesNoted {
		return
	}
	if err := a.project.UseKey(ctx, k.ID, now); err != nil {
		a.cfg.log.WarnContext(ctx, "auth: the use of an API key was not recorded", "key", k.ID, "error", err)
	}
}

// publicKeysFor is how long the store's public keys are cached. A revoked key stops
// working within a second on every instance.
const publicKeysFor = time.Second / 2

// publicKeys caches all public keys of the store, so that invented keys cause no reads.
type publicKeys struct {
	known   atomic.Pointer[knownKeys]
	changes atomic.Int64  // number of changes of keys on this instance
	reading chan struct{} // held by the goroutine that reads
}

// forget makes the next use read the keys again.
func (t *publicKeys) forget() {
	t.changes.Add(1)
	t.known.Store(nil)
}

// remember caches keys that were read after changes changes, unless there was another
// one since.
func (t *publicKeys) remember(k *knownKeys, changes int64) {
	t.known.Store(k)
	if t.changes.Load() != changes {
		t.known.CompareAndSwap(k, nil)
	}
}

type knownKeys struct {
	at     time.Time // just before the read
	byHash map[string]*publicKey
}

type publicKey struct {
	store.APIKey
	until time.Time // the end of a rotated hash; zero: the current one
	noted atomic.Bool
}

func (k *knownKeys) fresh() bool { return k != nil && time.Since(k.at) < publicKeysFor }

// isStoredKey reports whether a text is a public key of the store that may be used now
// and by the context's client.
func (a *Auth) isStoredKey(ctx context.Context, text string) (bool, error) {
	parts, ok := apikey.Parse(text)
	if !ok || !parts.Public || a.project == nil {
		return false, nil
	}
	known, err := a.storedKeys(ctx)
	if err != nil {
		return false, storeFailed(err)
	}
	k, now := known.byHash[string(apikey.Hash(text))], a.now()
	if k == nil || !k.Live(now) || !k.until.IsZero() && !now.Before(k.until) || !usableFrom(ctx, &k.APIKey) {
		return false, nil
	}
	if k.noted.CompareAndSwap(false, true) {
		a.noteUse(ctx, &k.APIKey)
	}
	return true, nil
}

// storedKeys returns the live public keys of the store, not older than publicKeysFor.
// One caller reads, and the others wait.
func (a *Auth) storedKeys(ctx context.Context) (*knownKeys, error) {
	t := a.publicKeys
	if k := t.known.Load(); k.fresh() {
		return k, nil
	}
	select {
	case t.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-t.reading }()
	if k := t.known.Load(); k.fresh() { // read while this waited
		return k, nil
	}
	changes := t.changes.Load()
	const page = 200
	public := true
	q := store.KeyQuery{Public: &public, LiveAt: a.now(), Limit: page}
	k := &knownKeys{at: time.Now(), byHash: map[string]*publicKey{}} // the process's time, because a test's clock does not show the age of the cache
	for {
		list, err := a.project.Keys(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, one := range list {
			k.byHash[string(one.Hash)] = &publicKey{APIKey: one}
			if len(one.PreviousHash) > 0 {
				k.byHash[string(one.PreviousHash)] = &publicKey{APIKey: one, until: one.PreviousUntil}
			}
		}
		if len(list) < page {
			t.remember(k, changes)
			return k, nil
		}
		q.After = list[page-1].Cursor()
	}
}
