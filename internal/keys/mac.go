package keys

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"
	"strings"
	"time"
)

// PhoneCode returns the stored form of a code: a MAC under each secret, the current one
// first. Store the first; compare with all, because the stored one may be older than a
// rotation. A hash without a key would not protect codes, because all of them can be
// tried.
func (r *Ring) PhoneCode(purpose, subject, code string) [][]byte {
	return macs(r.codes, purpose, subject, code)
}

// MailCode is PhoneCode for a mailed code. It binds the code to the email address, and to
// a value that has to be presented with it, such as a code challenge.
func (r *Ring) MailCode(purpose, subject, address, bound, code string) [][]byte {
	return macs(r.codes, purpose, subject, address, bound, code)
}

// RecoveryCode returns the stored form of a user's recovery code: for each secret, the
// current one first, the secret's id and a MAC. Case, spaces and hyphens do not matter.
func (r *Ring) RecoveryCode(userID, code string) [][]byte {
	list := macs(r.recovery, userID, strings.NewReplacer("-", "", " ", "").Replace(strings.ToLower(code)))
	for i := range list {
		list[i] = append(slices.Clone(r.ids[i]), list[i]...)
	}
	return list
}

// RateLimit returns the key of a limit's bucket for a value. It is a MAC, so that a table
// of limits has no email or IP addresses. The oldest configured secret makes it: a new
// current secret does not change the keys, so counts survive a rotation. They restart
// when the oldest secret is removed.
func (r *Ring) RateLimit(limit, value string) string {
	return limit + ":" + base64.RawURLEncoding.EncodeToString(mac(r.limits, limit, value)[:16])
}

// RequestID returns a random id for a request about a subject. It is valid until a time,
// and cannot be forged.
func (r *Ring) RequestID(about string, until time.Time) string {
	id := make([]byte, requestRandom, requestSize)
	_, _ = rand.Read(id)                                         // never fails (crypto/rand)
	id = binary.BigEndian.AppendUint64(id, uint64(until.Unix())) //nolint:gosec // after 1970
	return base64.RawURLEncoding.EncodeToString(append(id, mac(r.requests[0], about, string(id))[:requestMAC]...))
}

// ValidRequestID reports whether RequestID returned an id for the same subject, under any of
// the secrets, and the id has not expired.
func (r *Ring) ValidRequestID(about, id string, now time.Time) bool {
	b, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil || len(b) != requestSize || base64.RawURLEncoding.EncodeToString(b) != id { // only the canonical encoding
		return false
	}
	body, sum := b[:requestSize-requestMAC], b[requestSize-requestMAC:]
	if now.Unix() >= int64(binary.BigEndian.Uint64(body[requestRandom:])) { //nolint:gosec // correct if the MAC is
		return false
	}
	return slices.ContainsFunc(macs(r.requests, about, string(body)), func(m []byte) bool { return hmac.Equal(m[:requestMAC], sum) })
}

const (
	requestRandom = 16
	requestMAC    = 16
	requestSize   = requestRandom + 8 + requestMAC
)

func macs(keys [][]byte, parts ...string) [][]byte {
	list := make([][]byte, len(keys))
	for i, key := range keys {
		list[i] = mac(key, parts...)
	}
	return list
}

// mac includes the length of each part, so that different lists have different MACs.
func mac(key []byte, parts ...string) []byte {
	h := hmac.New(sha256.New, key)
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write([]byte(p))
	}
	return h.Sum(nil)
}
