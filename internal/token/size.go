package token

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
)

// A token is sent with every request, in a header or in a cookie, which browsers
// drop above 4,096 bytes. So it stays below 3 kB: what would not fit is left out, and
// the claim "omitted" names it, so that nobody takes it for empty.

const (
	maxTokenSize = 3000 // an access token is shorter
	maxClaimSize = 1024 // of permissions and of app_metadata, as JSON

	// What users choose, as JSON: the longest address (RFC 5321) and number (E.164),
	// and the proofs of a session with two factors.
	maxEmailSize = 254 + len(`""`)
	maxPhoneSize = 16 + len(`""`)
	maxAMRSize   = 3 * len(`{"method":"recovery_code","timestamp":1234567890},`)

	// ClaimPermissions is the claim that names the permissions.
	ClaimPermissions = "permissions"
	claimAppMetadata = "app_metadata"
	omittedCustom    = "*" // all custom claims, where even their names are too many
)

// claimsJSON are the claims of a token: those of the session and, of custom ones, as
// many as there is room for, without the largest.
func (s *Signer) claimsJSON(ctx context.Context, c accessClaims, permissions []string, app, custom map[string]any) ([]byte, error) {
	var err error
	if c.Permissions, err = json.Marshal(permissions); err != nil {
		return nil, err
	}
	if c.AppMetadata, err = json.Marshal(orEmptyMap(app)); err != nil {
		return nil, err
	}
	c = c.bounded()
	own, err := c.with(nil)
	if err != nil {
		return nil, err
	}
	spare := c.spare()
	if !s.fits(len(own) + spare) {
		c.AppMetadata = nil
		c = c.bounded()
		own, err = c.with(nil)
	}
	if err == nil && !s.fits(len(own)+spare) {
		c.Permissions = nil
		c = c.bounded()
		own, err = c.with(nil)
	}
	if err != nil {
		return nil, err
	}
	more, err := customJSON(custom)
	if err != nil {
		return nil, err
	}
	left := s.tooMuch(len(own)+spare, more)
	if len(left) > 0 {
		for _, name := range left {
			delete(more, name)
		}
		if len(more) == 0 && !s.fits(len(own)+spare+namesSize(left)) {
			left = []string{omittedCustom}
		}
		slices.Sort(left)
		c.Omitted = append(c.Omitted, left...)
	}
	whole, err := c.with(more)
	if err == nil && (len(left) > 0 || !s.fits(len(whole)+spare)) {
		s.oversizedOnce.Do(func() {
			s.log.WarnContext(ctx, "auth: an access token has to stay below 3 kB: claims of the application's own that do not fit are left out, and named in its claim omitted; put less into WithClaims, the store's claims or roles",
				"left_out", left, "bytes", len(own), "user_id", c.Subject)
		})
	}
	return whole, err
}

// spare is what the claims could take more if their user had chosen another address,
// number or proof: what is left out rests on nothing that users choose, or else they
// could have what is known of them left out.
func (c accessClaims) spare() int {
	amr, _ := json.Marshal(c.AMR) // texts and numbers, which cannot fail
	size := max(0, maxAMRSize-len(amr))
	for _, chosen := range []struct {
		claim *string
		limit int
	}{{c.Email, maxEmailSize}, {c.Phone, maxPhoneSize}} {
		b, _ := asJSON(chosen.claim) // likewise
		size += max(0, chosen.limit-len(b))
	}
	if c.EmailVerified {
		size += len("false") - len("true")
	}
	return size
}

// asJSON is json.Marshal that leaves "&", "<" and ">" as they are, which would take
// six bytes each.
func asJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// bounded are the claims without what is too large for a token, or was left out.
func (c accessClaims) bounded() accessClaims {
	c.Omitted = nil
	if n := len(c.AppMetadata); n == 0 || n > maxClaimSize {
		c.AppMetadata, c.Omitted = nil, append(c.Omitted, claimAppMetadata)
	}
	if n := len(c.Permissions); n == 0 || n > maxClaimSize {
		c.Permissions, c.Omitted = nil, append(c.Omitted, ClaimPermissions)
	}
	return c
}

// with are the claims as JSON, with custom ones.
func (c accessClaims) with(custom map[string]json.RawMessage) ([]byte, error) {
	object, err := asJSON(c)
	if err != nil || len(custom) == 0 {
		return object, err
	}
	more, err := json.Marshal(custom)
	if err != nil {
		return nil, err
	}
	return append(append(object[:len(object)-1], ','), more[1:]...), nil
}

// customJSON are the custom claims, but for reserved ones.
func customJSON(custom map[string]any) (map[string]json.RawMessage, error) {
	list := make(map[string]json.RawMessage, len(custom))
	for name, v := range custom {
		if reserved(name) {
			continue
		}
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		list[name] = b
	}
	return list, nil
}

// tooMuch returns the custom claims that have to go from beside others of a size:
// the largest, as few as will do.
func (s *Signer) tooMuch(beside int, custom map[string]json.RawMessage) (left []string) {
	size := beside
	for name, v := range custom {
		size += claimSize(name, v)
	}
	if s.fits(size) {
		return nil
	}
	names := slices.SortedFunc(maps.Keys(custom), func(x, y string) int {
		return cmp.Or(claimSize(y, custom[y])-claimSize(x, custom[x]), cmp.Compare(x, y))
	})
	for n, name := range names {
		size -= claimSize(name, custom[name])
		if s.fits(size + namesSize(names[:n+1])) {
			return names[:n+1]
		}
	}
	return names
}

// claimSize is what a claim takes in an object.
func claimSize(name string, v json.RawMessage) int { return quotedSize(name) + len(":,") + len(v) }

// namesSize is what "omitted" takes with these names, at most.
func namesSize(names []string) int {
	size := len(`,"omitted":[]`)
	for _, name := range names {
		size += quotedSize(name) + len(",")
	}
	return size
}

func quotedSize(s string) int {
	b, _ := json.Marshal(s) // a string, which cannot fail
	return len(b)
}

// fits tells whether a token with claims of so many bytes is short enough.
func (s *Signer) fits(claims int) bool {
	signature := 64 // ES256, EdDSA
	switch key := s.key.Key.(type) {
	case *rsa.PrivateKey:
		signature = key.Size()
	case []byte: // HS256
		signature = 32
	}
	return len(s.head)+len("..")+base64.RawURLEncoding.EncodedLen(claims)+base64.RawURLEncoding.EncodedLen(signature) < maxTokenSize
}

func orEmptyMap(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}
