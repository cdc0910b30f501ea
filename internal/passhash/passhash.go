// Package passhash verifies password hashes in the formats that other systems
// keep them in, and makes argon2id and bcrypt ones.
//
// The formats:
//
//	$argon2id$v=19$m=19456,t=2,p=1$<salt>$<hash>        also argon2i; unpadded base64
//	$2a$10$…, $2b$…, $2y$…                              bcrypt; only the first 72 bytes count
//	$scrypt$ln=16,r=8,p=1$<salt>$<hash>                 unpadded base64
//	$firebase-scrypt$ln=14,r=8,p=1$<salt>$<hash>$<signer key>$<salt separator>
//	$pbkdf2-sha256$i=600000$<salt>$<hash>               also sha1 and sha512; unpadded base64
//	pbkdf2_sha256$600000$<salt>$<hash>                  Django's; the salt is plain text
//
// The firebase-scrypt form carries the project's parameters (mem_cost is ln,
// rounds is r) beside each hash; base64 may be padded, plain or URL-safe.
package passhash

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // PBKDF2-HMAC-SHA-1 hashes exist and have to be read
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"strconv"
	"strings"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/scrypt"
)

// ErrFormat means that a hash is in none of the formats, or asks for more work
// than a login may cost.
var ErrFormat = errors.New("passhash: unknown format or unreasonable parameters")

// Limits on what a hash may ask for, so that a hostile import cannot exhaust
// the server.
const (
	maxMemory     = 256 << 10 // KiB
	maxTime       = 32
	maxIterations = 10_000_000
	maxCost       = 16 // bcrypt
)

// Hash is a parsed password hash.
type Hash struct {
	scheme string
	params map[string]uint64
	salt   []byte
	sum    []byte
	text   string // bcrypt keeps its own form

	signerKey, separator []byte // Firebase
}

// Argon2id are the parameters of new hashes; Memory is in KiB.
type Argon2id struct {
	Memory  uint32
	Time    uint32
	Threads uint8
}

// Make hashes a password with a new salt.
func (p Argon2id) Make(password string) string {
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // never fails (crypto/rand)
	sum := argon2.IDKey([]byte(password), salt, p.Time, p.Memory, p.Threads, 32)
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=19$m=%d,t=%d,p=%d$%s$%s", p.Memory, p.Time, p.Threads, b64(salt), b64(sum))
}

// MakeBcrypt hashes a password of at most 72 bytes.
func MakeBcrypt(password string, cost int) (string, error) {
	b, err := bcrypt.GenerateFromPassword([]byte(password), cost)
	return string(b), err
}

// AtLeast tells whether the hash is argon2id with parameters no weaker than p.
func (h *Hash) AtLeast(p Argon2id) bool {
	return h.scheme == "argon2id" && h.params["m"] >= uint64(p.Memory) && h.params["t"] >= uint64(p.Time)
}

// BcryptCost is the cost of a bcrypt hash, and 0 for any other.
func (h *Hash) BcryptCost() int {
	if h.scheme != "bcrypt" {
		return 0
	}
	return int(h.params["cost"]) //nolint:gosec // checked to be at most maxCost
}

// Parse reads a hash. The error is ErrFormat.
func Parse(encoded string) (*Hash, error) {
	if len(encoded) > 1024 {
		return nil, ErrFormat
	}
	h, err := parse(encoded)
	if err != nil || !h.reasonable() {
		return nil, ErrFormat
	}
	return h, nil
}

func parse(encoded string) (*Hash, error) {
	if rest, ok := strings.CutPrefix(encoded, "pbkdf2_"); ok {
		return parseDjango(rest)
	}
	rest, ok := strings.CutPrefix(encoded, "$")
	if !ok {
		return nil, ErrFormat
	}
	parts := strings.Split(rest, "$")
	switch parts[0] {
	case "2a", "2b", "2y":
		cost, err := bcrypt.Cost([]byte(encoded))
		if err != nil || len(encoded) != 60 {
			return nil, ErrFormat
		}
		return &Hash{scheme: "bcrypt", params: map[string]uint64{"cost": uint64(cost)}, text: encoded}, nil //nolint:gosec // a cost is positive
	case "argon2id", "argon2i":
		if len(parts) != 5 || parts[1] != "v=19" {
			return nil, ErrFormat
		}
		return build(parts[0], parts[2], parts[3], parts[4], "m", "t", "p")
	case "scrypt":
		if len(parts) != 4 {
			return nil, ErrFormat
		}
		return build("scrypt", parts[1], parts[2], parts[3], "ln", "r", "p")
	case "firebase-scrypt":
		if len(parts) != 6 {
			return nil, ErrFormat
		}
		h, err := build("firebase-scrypt", parts[1], parts[2], parts[3], "ln", "r", "p")
		if err != nil {
			return nil, err
		}
		if h.signerKey, err = decode64(parts[4]); err != nil || len(h.signerKey) == 0 {
			return nil, ErrFormat
		}
		h.separator, err = decode64(parts[5])
		return h, err
	case "pbkdf2-sha1", "pbkdf2-sha256", "pbkdf2-sha512":
		if len(parts) != 4 {
			return nil, ErrFormat
		}
		return build(parts[0], parts[1], parts[2], parts[3], "i")
	}
	return nil, ErrFormat
}

func parseDjango(rest string) (*Hash, error) {
	parts := strings.Split(rest, "$")
	if len(parts) != 4 || (parts[0] != "sha1" && parts[0] != "sha256" && parts[0] != "sha512") {
		return nil, ErrFormat
	}
	h, err := build("pbkdf2-"+parts[0], "i="+parts[1], "", parts[3], "i")
	if err == nil {
		h.salt = []byte(parts[2])
	}
	return h, err
}

// build reads the parts that all formats but bcrypt share; params must be
// exactly the names given, in that order.
func build(scheme, params, salt, sum string, names ...string) (*Hash, error) {
	h := &Hash{scheme: scheme, params: map[string]uint64{}}
	pairs := strings.Split(params, ",")
	if len(pairs) != len(names) {
		return nil, ErrFormat
	}
	for i, name := range names {
		value, ok := strings.CutPrefix(pairs[i], name+"=")
		n, err := strconv.ParseUint(value, 10, 32)
		if !ok || err != nil || n == 0 {
			return nil, ErrFormat
		}
		h.params[name] = n
	}
	var err error
	if h.salt, err = decode64(salt); err != nil {
		return nil, err
	}
	h.sum, err = decode64(sum)
	return h, err
}

func decode64(s string) ([]byte, error) {
	s = strings.TrimRight(s, "=")
	if strings.ContainsAny(s, "-_") {
		return base64.RawURLEncoding.DecodeString(s)
	}
	return base64.RawStdEncoding.DecodeString(s)
}

// reasonable bounds the work and refuses hashes that any password could match.
func (h *Hash) reasonable() bool {
	if h.scheme == "bcrypt" {
		return h.params["cost"] <= maxCost
	}
	if len(h.salt) == 0 || len(h.sum) < 16 || len(h.sum) > 512 {
		return false
	}
	switch h.scheme {
	case "argon2id", "argon2i":
		return h.params["m"] <= maxMemory && h.params["t"] <= maxTime && h.params["p"] <= 16 && h.params["m"] >= 8*h.params["p"]
	case "scrypt", "firebase-scrypt":
		ln, r, p := h.params["ln"], h.params["r"], h.params["p"]
		return ln < 24 && r <= 64 && p <= 16 && r<<ln*128 <= maxMemory<<10
	}
	return h.params["i"] <= maxIterations
}

// Verify tells whether a password has this hash, in constant time for hashes of
// one format.
func (h *Hash) Verify(password string) bool {
	if h.scheme == "bcrypt" {
		pw := []byte(password)
		if len(pw) > 72 {
			pw = pw[:72] // what other implementations silently do
		}
		return bcrypt.CompareHashAndPassword([]byte(h.text), pw) == nil
	}
	sum, err := h.compute(password)
	return err == nil && subtle.ConstantTimeCompare(sum, h.sum) == 1
}

func (h *Hash) compute(password string) ([]byte, error) {
	pw, n := []byte(password), len(h.sum)
	m, t, p := uint32(h.params["m"]), uint32(h.params["t"]), uint8(h.params["p"]) //nolint:gosec // bounded by reasonable
	switch h.scheme {
	case "argon2id":
		return argon2.IDKey(pw, h.salt, t, m, p, uint32(n)), nil //nolint:gosec // bounded by reasonable
	case "argon2i":
		return argon2.Key(pw, h.salt, t, m, p, uint32(n)), nil //nolint:gosec // bounded by reasonable
	case "scrypt":
		return scrypt.Key(pw, h.salt, 1<<h.params["ln"], int(h.params["r"]), int(p), n) //nolint:gosec // bounded by reasonable
	case "firebase-scrypt":
		return h.firebase(pw)
	}
	digests := map[string]func() hash.Hash{"pbkdf2-sha1": sha1.New, "pbkdf2-sha256": sha256.New, "pbkdf2-sha512": sha512.New}
	return pbkdf2.Key(digests[h.scheme], password, h.salt, int(h.params["i"]), n) //nolint:gosec // bounded by reasonable
}

// firebase encrypts the project's signer key under a key stretched from the
// password (AES-256-CTR, zero counter); the ciphertext is the hash.
func (h *Hash) firebase(password []byte) ([]byte, error) {
	salt := append(append([]byte(nil), h.salt...), h.separator...)
	key, err := scrypt.Key(password, salt, 1<<h.params["ln"], int(h.params["r"]), int(h.params["p"]), 64) //nolint:gosec // bounded by reasonable
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key[:32])
	if err != nil {
		return nil, err
	}
	out := make([]byte, len(h.signerKey))
	cipher.NewCTR(block, make([]byte, aes.BlockSize)).XORKeyStream(out, h.signerKey) //nolint:gosec // the format's own: every key is used once
	return out, nil
}
