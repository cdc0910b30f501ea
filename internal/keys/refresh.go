package keys

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"

	"github.com/google/uuid"
)

// A refresh token is "v1." and, in base64url, the session's id, its counter and a MAC of
// both. A store has only the counter, so a leaked database contains no usable tokens, and
// a forged token is rejected before the store is asked.
const (
	refreshVersion = "v1."
	refreshBody    = 16 + 4
	refreshSize    = refreshBody + sha256.Size
)

// RefreshToken returns the token of a session. The session's id must be a UUID of any
// version in the usual form.
func (r *Ring) RefreshToken(sessionID string, counter uint32) (string, error) {
	id, err := uuid.Parse(sessionID)
	if err != nil || len(sessionID) != len(uuid.Nil.String()) { // Parse also reads URNs and braces
		return "", errors.New("a session id must be a UUID")
	}
	b := make([]byte, refreshBody, refreshSize)
	copy(b, id[:])
	binary.BigEndian.PutUint32(b[len(id):], counter)
	return refreshVersion + base64.RawURLEncoding.EncodeToString(append(b, refreshMAC(r.refresh[0], b)...)), nil
}

// IsRefreshToken reports whether a token has the form of a refresh token. It does not
// check the MAC.
func IsRefreshToken(token string) bool {
	rest, ok := strings.CutPrefix(token, refreshVersion)
	return ok && len(rest) == base64.RawURLEncoding.EncodedLen(refreshSize)
}

// ParseRefreshToken reads a token made under one of the secrets. The id is in lower case.
// It accepts only the canonical encoding.
func (r *Ring) ParseRefreshToken(token string) (sessionID string, counter uint32, ok bool) {
	if !IsRefreshToken(token) {
		return "", 0, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimPrefix(token, refreshVersion))
	if err != nil || len(b) != refreshSize { // the decoder skips line breaks
		return "", 0, false
	}
	body, mac := b[:refreshBody], b[refreshBody:]
	for _, key := range r.refresh {
		if hmac.Equal(mac, refreshMAC(key, body)) {
			return uuid.UUID(body).String(), binary.BigEndian.Uint32(body[16:]), true
		}
	}
	return "", 0, false
}

func refreshMAC(key, body []byte) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(refreshVersion))
	h.Write(body)
	return h.Sum(nil)
}
