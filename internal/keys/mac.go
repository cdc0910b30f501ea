package keys

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
)

// PhoneCode is what is kept of a code: a MAC under each secret, the current one
// first. The first is stored; any of them may be what was stored before a
// rotation. A hash without a key would not do: all codes can be tried.
func (r *Ring) PhoneCode(purpose, subject, code string) [][]byte {
	return macs(r.phone, purpose, subject, code)
}

// RecoveryCode is what is kept of a user's recovery code: a MAC under each
// secret, the current one first, as with PhoneCode. Case, spaces and hyphens do
// not matter.
func (r *Ring) RecoveryCode(userID, code string) [][]byte {
	return macs(r.recovery, userID, strings.NewReplacer("-", "", " ", "").Replace(strings.ToLower(code)))
}

// RateLimit names the bucket of a limit and of the value that it counts by. The
// value is hidden, so that a table of limits holds no addresses. A rotation of
// the secret empties all buckets.
func (r *Ring) RateLimit(limit, value string) string {
	return limit + ":" + base64.RawURLEncoding.EncodeToString(mac(r.limits, limit, value)[:16])
}

func macs(keys [][]byte, parts ...string) [][]byte {
	list := make([][]byte, len(keys))
	for i, key := range keys {
		list[i] = mac(key, parts...)
	}
	return list
}

// mac covers each part with its length, so that no two lists are alike.
func mac(key []byte, parts ...string) []byte {
	h := hmac.New(sha256.New, key)
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write([]byte(p))
	}
	return h.Sum(nil)
}
