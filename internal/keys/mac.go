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

// PhoneCode is what is kept of a code: a MAC under each secret, the current one
// first. The first is stored; any of them may be what was stored before a
// rotation. A hash without a key would not do: all codes can be tried.
func (r *Ring) PhoneCode(purpose, subject, code string) [][]byte {
	return macs(r.phone, purpose, subject, code)
}

// MailCode is PhoneCode for a code that was mailed: it is bound to the address, and
// to what else has to be shown with it, such as a code challenge.
func (r *Ring) MailCode(purpose, subject, address, bound, code string) [][]byte {
	return macs(r.phone, purpose, subject, address, bound, code)
}

// RecoveryCode is what is kept of a user's recovery code: a MAC under each
// secret, the current one first, as with PhoneCode, behind the secret's id. Case, spaces and hyphens do
// not matter.
func (r *Ring) RecoveryCode(userID, code string) [][]byte {
	list := macs(r.recovery, userID, strings.NewReplacer("-", "", " ", "").Replace(strings.ToLower(code)))
	for i := range list {
		list[i] = append(slices.Clone(r.ids[i]), list[i]...)
	}
	return list
}

// RateLimit names the bucket of a limit and of the value that it counts by. The
// value is hidden, so that a table of limits holds no addresses. The oldest secret
// that is configured names it, so that counts go on through a rotation: a new
// secret in front leaves the names as they are. They start anew when the oldest one
// is left out.
func (r *Ring) RateLimit(limit, value string) string {
	return limit + ":" + base64.RawURLEncoding.EncodeToString(mac(r.limits, limit, value)[:16])
}

// Request makes the id of a request about somebody: random, good until a time, and
// made by nobody else.
func (r *Ring) Request(about string, until time.Time) string {
	id := make([]byte, requestRandom, requestSize)
	_, _ = rand.Read(id)                                         // never fails (crypto/rand)
	id = binary.BigEndian.AppendUint64(id, uint64(until.Unix())) //nolint:gosec // after 1970
	return base64.RawURLEncoding.EncodeToString(append(id, mac(r.requests[0], about, string(id))[:requestMAC]...))
}

// ValidRequest tells whether an id was made by Request for the same, under any of
// the secrets, and is good still.
func (r *Ring) ValidRequest(about, id string, now time.Time) bool {
	b, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil || len(b) != requestSize || base64.RawURLEncoding.EncodeToString(b) != id { // one spelling only
		return false
	}
	body, sum := b[:requestSize-requestMAC], b[requestSize-requestMAC:]
	if now.Unix() >= int64(binary.BigEndian.Uint64(body[requestRandom:])) { //nolint:gosec // ours, if the MAC is right
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

// mac covers each part with its length, so that no two lists are alike.
func mac(key []byte, parts ...string) []byte {
	h := hmac.New(sha256.New, key)
	for _, p := range parts {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(p))))
		h.Write([]byte(p))
	}
	return h.Sum(nil)
}
