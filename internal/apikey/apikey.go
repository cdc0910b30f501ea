// Package apikey defines the format of API keys: sk_<environment>_<id>_<random><crc>, and
// pk_ for public ones. Secret scanners find keys by the prefix and exclude false matches
// by the checksum.
package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/big"
	"regexp"
	"strings"

	"github.com/google/uuid"
)

// The prefixes.
const (
	SecretPrefix = "sk_"
	PublicPrefix = "pk_"
)

const (
	idBytes, randomBytes              = 16, 32
	idDigits, randomDigits, crcDigits = 22, 43, 6 // in base 62
)

var environment = regexp.MustCompile(`^[a-z0-9]{1,16}$`)

// IsEnvironment reports whether a name can be a key's environment.
func IsEnvironment(name string) bool { return environment.MatchString(name) }

// Parts are the public parts of a key.
type Parts struct {
	Public      bool
	Environment string
	ID          string // a UUID
}

// New returns a new key: prefix, environment, id, 256 random bits, and a CRC-32 of
// everything before it.
func New(p Parts) (string, error) {
	id, err := uuid.Parse(p.ID)
	if err != nil || !IsEnvironment(p.Environment) {
		return "", fmt.Errorf("invalid id %q or environment %q of an API key", p.ID, p.Environment)
	}
	random := make([]byte, randomBytes)
	_, _ = rand.Read(random) // never fails (crypto/rand)
	prefix := SecretPrefix
	if p.Public {
		prefix = PublicPrefix
	}
	text := prefix + p.Environment + "_" + digits(id[:], idDigits) + "_" + digits(random, randomDigits)
	return text + checksum(text), nil
}

// Parse reads a key. It accepts only the exact form of New.
func Parse(text string) (Parts, bool) {
	var p Parts
	rest, ok := strings.CutPrefix(text, SecretPrefix)
	if !ok {
		rest, p.Public = strings.CutPrefix(text, PublicPrefix)
		if !p.Public {
			return Parts{}, false
		}
	}
	env, rest, _ := strings.Cut(rest, "_")
	id, rest, _ := strings.Cut(rest, "_")
	if !IsEnvironment(env) || len(rest) != randomDigits+crcDigits || checksum(text[:len(text)-crcDigits]) != rest[randomDigits:] {
		return Parts{}, false
	}
	b, ok := number(id, idDigits, idBytes)
	if !ok {
		return Parts{}, false
	}
	if _, ok := number(rest[:randomDigits], randomDigits, randomBytes); !ok {
		return Parts{}, false
	}
	p.Environment, p.ID = env, uuid.UUID(b).String()
	return p, true
}

// Hash returns the stored form of a key.
func Hash(text string) []byte {
	h := sha256.Sum256([]byte(text))
	return h[:]
}

// Is reports in constant time whether hash is the hash of a key.
func Is(text string, hash []byte) bool { return subtle.ConstantTimeCompare(Hash(text), hash) == 1 }

func checksum(text string) string {
	return digits(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE([]byte(text))), crcDigits)
}

// digits writes a number with n digits in base 62.
func digits(b []byte, n int) string {
	s := new(big.Int).SetBytes(b).Text(62)
	return strings.Repeat("0", n-len(s)) + s
}

// number reads a number that digits wrote into size bytes.
func number(s string, n, size int) ([]byte, bool) {
	if len(s) != n || strings.ContainsAny(s, "+-") {
		return nil, false
	}
	v, ok := new(big.Int).SetString(s, 62) // accepts only digits and a sign
	if !ok || v.BitLen() > 8*size {
		return nil, false
	}
	return v.FillBytes(make([]byte, size)), true
}
