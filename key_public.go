package auth

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/authmount/auth/internal/apikey"
	"github.com/authmount/auth/store"
)

// publicKeysFor is how long the public keys of the store are remembered: one that was
// revoked stops within a second everywhere.
const publicKeysFor = time.Second / 2

// publicKeys remembers the public keys of the store, all of them, so that whoever makes
// keys up has nothing read.
type publicKeys struct {
	known   atomic.Pointer[knownKeys]
	changes atomic.Int64  // how often a key was changed here
	reading chan struct{} // has room for the one who reads
}

// forget has the keys read anew.
func (t *publicKeys) forget() {
	t.changes.Add(1)
	t.known.Store(nil)
}

// remember keeps what was read after a number of changes: of one since, it may know nothing.
func (t *publicKeys) remember(k *knownKeys, changes int64) {
	t.known.Store(k)
	if t.changes.Load() != changes {
		t.known.CompareAndSwap(k, nil)
	}
}

type knownKeys struct {
	at     time.Time // before they were read
	byHash map[string]*publicKey
}

type publicKey struct {
	store.APIKey
	until time.Time // of the hash before a rotation; zero: of the present one
	noted atomic.Bool
}

func (k *knownKeys) fresh() bool { return k != nil && time.Since(k.at) < publicKeysFor }

// isStoredKey tells whether a text is a public key of the store that may be used now
// and from where the context says.
func (a *Auth) isStoredKey(ctx context.Context, text string) (bool, error) {
	parts, ok := apikey.Parse(text)
	if !ok || !parts.Public || a.keyStore == nil {
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

// storedKeys are the live public keys of the store, not older than publicKeysFor. One
// caller reads, the others wait.
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
	k := &knownKeys{at: time.Now(), byHash: map[string]*publicKey{}} // of the process: how old something read is, no fake clock tells
	for {
		list, err := a.keyStore.Keys(ctx, q)
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
