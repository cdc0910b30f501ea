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

	// Anybody can make up key ids, so that no more than this many lookups for
	// unknown ones are made in a row, one for each interval in the long run.
	unknownKeys     = 5
	unknownInterval = time.Minute
)

// KeySet remembers a provider's public keys. A token that names an unknown key
// makes it fetch them again, at most five times in five minutes. It is safe for
// concurrent use.
type KeySet struct {
	client *http.Client
	now    func() time.Time
	kept   latest[[]jose.JSONWebKey]

	mu   sync.Mutex
	full time.Time // when all lookups are to be had again
}

// NewKeySet is for the keys of one provider; timeout bounds each fetch.
func NewKeySet(client *http.Client, now func() time.Time, timeout time.Duration) *KeySet {
	return &KeySet{client: client, now: now, kept: latest[[]jose.JSONWebKey]{timeout: timeout}}
}

// lookup verifies one token, as go-oidc asks. go-oidc quotes the token in its
// errors and drops their cause, so that err keeps it.
type lookup struct {
	set *KeySet
	url string
	err error
}

// VerifySignature returns the payload of a token that one of the keys signed.
func (l *lookup) VerifySignature(ctx context.Context, raw string) ([]byte, error) {
	payload, err := l.verify(ctx, raw)
	l.err = err
	return payload, err
}

func (l *lookup) verify(ctx context.Context, raw string) ([]byte, error) {
	jws, err := jose.ParseSignedCompact(raw, signatures())
	if err != nil {
		return nil, &TokenError{"is malformed"}
	}
	id := jws.Signatures[0].Header.KeyID
	for _, life := range []time.Duration{keysLife, 0} {
		if life == 0 && !l.set.mayLookUp() {
			break
		}
		keys, err := l.set.kept.get(ctx, l.set.now(), life, l.fetch)
		if err != nil {
			return nil, fmt.Errorf("keys: %w", err)
		}
		known := false
		for _, key := range keys {
			if key.Use == "enc" || (id != "" && key.KeyID != id) {
				continue
			}
			known = true
			if payload, err := jws.Verify(key); err == nil {
				return payload, nil
			}
		}
		if known {
			return nil, &TokenError{"has a wrong signature"}
		}
	}
	return nil, &TokenError{"names a key that is not published"}
}

// mayLookUp draws one lookup for an unknown key.
func (s *KeySet) mayLookUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	full := s.full
	if full.Before(now) {
		full = now
	}
	full = full.Add(unknownInterval)
	if full.Sub(now) > unknownKeys*unknownInterval {
		return false
	}
	s.full = full
	return true
}

// Count reads the keys at an address, past what is remembered of them, and tells how
// many can be used.
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
		// A key of a kind that is not known here is for others; a symmetric or
		// private one has no business there.
		if key.UnmarshalJSON(raw) == nil && key.Valid() && key.IsPublic() {
			keys = append(keys, key)
		}
	}
	return keys, nil
}
