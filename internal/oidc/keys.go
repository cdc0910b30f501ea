package oidc

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/authmount/auth/internal/outbound"
)

const (
	keysLife = time.Hour

	// Attackers can invent key ids and signatures, so at most this many lookups for them
	// happen in a row, and in the long run one per interval.
	unknownKeys     = 5
	unknownInterval = time.Minute
)

// KeySet caches a provider's public keys. It fetches them again for a token that none of
// them verifies, at most five times in five minutes. A provider can publish a new key
// under an old key id, so a wrong signature counts like an unknown id. It is safe for
// concurrent use.
type KeySet struct {
	client *http.Client
	now    func() time.Time
	keys   latest[[]jose.JSONWebKey]

	mu     sync.Mutex
	fullAt time.Time // when all lookups will be available again
}

// NewKeySet returns the key set of one provider. timeout limits each fetch.
func NewKeySet(client *http.Client, now func() time.Time, timeout time.Duration) *KeySet {
	return &KeySet{client: client, now: now, keys: latest[[]jose.JSONWebKey]{timeout: timeout}}
}

// lookup verifies one token for go-oidc. err stores the cause of a failure, because
// go-oidc drops it and quotes the token in its errors.
type lookup struct {
	set    *KeySet
	url    string
	secret []byte // for HS256; nil: HS256 is refused
	err    error

	symmetric bool // the token is signed with the secret
}

// VerifySignature returns the payload of a token with a signature by one of the keys.
func (l *lookup) VerifySignature(ctx context.Context, raw string) ([]byte, error) {
	payload, err := l.verify(ctx, raw)
	l.err = err
	return payload, err
}

func (l *lookup) verify(ctx context.Context, raw string) ([]byte, error) {
	algorithms := signatureAlgorithms()
	if l.secret != nil {
		algorithms = append(algorithms, jose.HS256)
	}
	jws, err := jose.ParseSignedCompact(raw, algorithms)
	if err != nil {
		return nil, &TokenError{"is malformed, or signed with an algorithm that is not accepted"}
	}
	if jws.Signatures[0].Header.Algorithm == string(jose.HS256) {
		l.symmetric = true
		payload, err := jws.Verify(l.secret)
		if err != nil {
			return nil, &TokenError{"has a wrong signature"}
		}
		return payload, nil
	}
	id, known := jws.Signatures[0].Header.KeyID, false
	for _, life := range []time.Duration{keysLife, 0} {
		if life == 0 && !l.set.allowLookup() {
			// Another caller may have fetched newer keys, or may be fetching them.
			life = keysLife
			l.set.keys.settle(ctx)
		}
		keys, err := l.set.keys.get(ctx, l.set.now(), life, l.fetch)
		if err != nil {
			return nil, fmt.Errorf("keys: %w", err)
		}
		known = false
		for _, key := range keys {
			if key.Use == "enc" || (id != "" && key.KeyID != id) {
				continue
			}
			known = true
			if payload, err := jws.Verify(key); err == nil {
				return payload, nil
			}
		}
	}
	if known {
		return nil, &TokenError{"has a wrong signature"}
	}
	return nil, &TokenError{"names a key that is not published"}
}

// allowLookup uses one lookup for an unverified token, if one is available.
func (s *KeySet) allowLookup() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	full := s.fullAt
	if full.Before(now) {
		full = now
	}
	full = full.Add(unknownInterval)
	if full.Sub(now) > unknownKeys*unknownInterval {
		return false
	}
	s.fullAt = full
	return true
}

// Count fetches the keys at a URL without the cache, and returns the number of usable
// ones.
func (s *KeySet) Count(ctx context.Context, url string) (int, error) {
	keys, err := (&lookup{set: s, url: url}).fetch(ctx)
	return len(keys), err
}

func (l *lookup) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := outbound.GetJSON(ctx, l.set.client, l.url, &set); err != nil {
		return nil, err
	}
	var keys []jose.JSONWebKey
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		// Keys of unknown kinds are for other clients. Symmetric and private keys do not
		// belong in a public set.
		if key.UnmarshalJSON(raw) == nil && key.Valid() && key.IsPublic() {
			keys = append(keys, key)
		}
	}
	return keys, nil
}
