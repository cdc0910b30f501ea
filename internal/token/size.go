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

// A token is sent with every request, in a header or in a cookie. Browsers drop cookies
// above 4,096 bytes, so a token stays below 3 kB: claims that do not fit are omitted. The
// claim "omitted" names them, so that a reader does not take them for empty.

const (
	maxTokenSize = 3000 // exclusive
	maxClaimSize = 1024 // of permissions and of app_metadata, as JSON

	// Claims that users can change, as JSON: the longest email address (RFC 5321) and
	// phone number (E.164), and the AMR of a session with two factors.
	maxEmailSize = 254 + len(`""`)
	maxPhoneSize = 16 + len(`""`)
	maxAMRSize   = 3 * len(`{"method":"recovery_code","timestamp":1234567890},`)

	// ClaimPermissions is the name of the claim with the user's permissions.
	ClaimPermissions = "permissions"
	claimAppMetadata = "app_metadata"
	omittedCustom    = "*" // stands for all custom claims if their names do not fit
)

// claimsJSON returns a token's claims: the session's claims, and the custom claims that
// fit. It omits the largest custom claims first.
func (s *Signer) claimsJSON(ctx context.Context, c accessClaims, permissions []string, app, custom map[string]any) ([]byte, error) {
	var err error
	if c.Permissions, err = json.Marshal(permissions); err != nil {
		return nil, err
	}
	if c.AppMetadata, err = json.Marshal(orEmptyMap(app)); err != nil {
		return nil, err
	}
	c = c.bounded()
	base, err := c.encode(nil)
	if err != nil {
		return nil, err
	}
	reserve := c.reserve()
	if !s.fits(len(base) + reserve) {
		c.AppMetadata = nil
		c = c.bounded()
		base, err = c.encode(nil)
	}
	if err == nil && !s.fits(len(base)+reserve) {
		c.Permissions = nil
		c = c.bounded()
		base, err = c.encode(nil)
	}
	if err != nil {
		return nil, err
	}
	extra, err := customJSON(custom)
	if err != nil {
		return nil, err
	}
	omitted := s.omit(len(base)+reserve, extra)
	if len(omitted) > 0 {
		for _, name := range omitted {
			delete(extra, name)
		}
		if len(extra) == 0 && !s.fits(len(base)+reserve+namesSize(omitted)) {
			omitted = []string{omittedCustom}
		}
		slices.Sort(omitted)
		c.Omitted = append(c.Omitted, omitted...)
	}
	all, err := c.encode(extra)
	if err == nil && (len(omitted) > 0 || !s.fits(len(all)+reserve)) {
		s.oversizedOnce.Do(func() {
			s.log.WarnContext(ctx, "auth: custom claims are omitted from an access token because it must stay below 3 kB; its claim omitted names them; reduce the claims of WithClaims and of the store, or the roles",
				"left_out", omitted, "bytes", len(base), "user_id", c.Subject)
		})
	}
	return all, err
}

// reserve returns the number of bytes by which the claims could grow if the user had
// another email address, phone number or AMR. Without this reserve users could choose
// values that push other claims out of their tokens.
func (c accessClaims) reserve() int {
	amr, _ := json.Marshal(c.AMR) // strings and numbers: cannot fail
	size := max(0, maxAMRSize-len(amr))
	for _, chosen := range []struct {
		claim *string
		limit int
	}{{c.Email, maxEmailSize}, {c.Phone, maxPhoneSize}} {
		b, _ := asJSON(chosen.claim) // cannot fail
		size += max(0, chosen.limit-len(b))
	}
	if c.EmailVerified {
		size += len("false") - len("true")
	}
	return size
}

// asJSON is json.Marshal without escapes for "&", "<" and ">", which take six bytes each.
func asJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// bounded returns the claims without permissions and app_metadata that are too large or
// were omitted.
func (c accessClaims) bounded() accessClaims {
	c.Omitted = nil
	if n := len(c.AppMetadata); n == 0 || n > maxClaimSize {
		c.AppMetadata, c.Omitted = nil, append(c.Omitted, claimAppMetadata)
	}
	if n := len(c.Permissions); n == 0 || n > maxClaimSize {
		c.Permissions, c.Omitted = nil, append(c.Omitted, ClaimPermissions)
		if c.partial {
			c.Roles = []string{} // readers take omitted permissions from the roles
		}
	}
	return c
}

// encode returns the claims and the custom claims as JSON.
func (c accessClaims) encode(custom map[string]json.RawMessage) ([]byte, error) {
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

// customJSON encodes the custom claims, except reserved ones.
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

// omit returns the names of the custom claims to omit so that the token fits: the
// largest claims, as few as possible. others is the size of all other claims.
func (s *Signer) omit(others int, custom map[string]json.RawMessage) (omitted []string) {
	size := others
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

// claimSize returns the size of a claim in a JSON object.
func claimSize(name string, v json.RawMessage) int { return quotedSize(name) + len(":,") + len(v) }

// namesSize returns the largest size of the claim "omitted" with these names.
func namesSize(names []string) int {
	size := len(`,"omitted":[]`)
	for _, name := range names {
		size += quotedSize(name) + len(",")
	}
	return size
}

func quotedSize(s string) int {
	b, _ := json.Marshal(s) // a string: cannot fail
	return len(b)
}

// fits reports whether a token with claims of this size is short enough.
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
