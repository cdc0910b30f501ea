// Package passhash verifies password hashes in the formats of other systems, and makes
// argon2id and bcrypt hashes.
//
// The formats:
//
//	$argon2id$v=19$m=19456,t=2,p=1$<salt>$<hash>        also argon2i; unpadded base64
//	$2a$10$…, $2b$…, $2y$…                              bcrypt; see FitsBcrypt
//	$scrypt$ln=16,r=8,p=1$<salt>$<hash>                 unpadded base64
//	$firebase-scrypt$ln=14,r=8,p=1$<salt>$<hash>$<signer key>$<salt separator>
//	$pbkdf2-sha256$i=600000$<salt>$<hash>               also sha1 and sha512; unpadded base64
//	pbkdf2_sha256$600000$<salt>$<hash>                  Django's; the salt is plain text
//
// The firebase-scrypt form has the project's parameters (mem_cost is ln, rounds is r) in
// each hash. Its base64 may be padded, plain or URL-safe.
package passhash

import (
	"cmp"
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

// The errors of Parse. Errors that wrap them never quote the hash.
var (
	// ErrFormat: the hash has none of the formats.
	ErrFormat = errors.New("password hash is malformed or of an unknown format")
	// ErrUnsafe: verifying the hash costs more than a login may, or its sum or salt is
	// too short to be secure.
	ErrUnsafe = errors.New("password hash has unsafe parameters")
)

// Limits of a hash's parameters, so that a hostile import cannot exhaust the server.
// Parameters multiply, so their product is limited too: the most expensive accepted hash
// takes a few seconds.
const (
	maxMemory     = 256 << 10  // KiB
	maxTime       = 32         // argon2
	maxThreads    = 16         // argon2
	maxPasses     = 2 << 20    // argon2: KiB written in all passes
	maxMixed      = 1 << 20    // scrypt: KiB written for all p
	maxIterations = 10_000_000 // PBKDF2, over all blocks of the sum
	maxCost       = 16         // bcrypt
)

// Hash is a parsed password hash.
type Hash struct {
	scheme string
	params map[string]uint64
	salt   []byte
	sum    []byte
	text   string // the bcrypt hash as text

	signerKey, separator []byte // Firebase
}

// Argon2id holds the parameters of new hashes. Memory is in KiB.
type Argon2id struct {
	Memory  uint32
	Time    uint32
	Threads uint8
}

// Make hashes a password with a new salt.
func (p Argon2id) Make(password string) string {
	salt := random(16)
	return p.encode(salt, argon2.IDKey([]byte(password), salt, p.Time, p.Memory, p.Threads, 32))
}

// MakeUnknown returns a hash without a known password. Verifying a password against it takes
// as long as against a hash of Make; making it costs nothing.
func (p Argon2id) MakeUnknown() string { return p.encode(random(16), random(32)) }

func (p Argon2id) encode(salt, sum []byte) string {
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=19$m=%d,t=%d,p=%d$%s$%s", p.Memory, p.Time, p.Threads, b64(salt), b64(sum))
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return b
}

// Check returns ErrUnsafe for parameters that Parse rejects.
func (p Argon2id) Check() error {
	return checkArgon2(uint64(p.Memory), uint64(p.Time), uint64(p.Threads))
}

// FitsBcrypt reports whether bcrypt hashes the whole password: it must have at most 72
// bytes and no NUL. Implementations stop at a NUL or wrap around to the start.
func FitsBcrypt(password string) bool {
	return len(password) <= 72 && strings.IndexByte(password, 0) < 0
}

// ErrNoFit: bcrypt cannot hash the whole password.
var ErrNoFit = errors.New("bcrypt accepts at most 72 bytes and no NUL")

// MakeBcrypt hashes a password. Errors: ErrNoFit.
func MakeBcrypt(password string, cost int) (string, error) {
	if !FitsBcrypt(password) {
		return "", ErrNoFit
	}
	b, err := bcrypt.GenerateFromPassword([]byte(password), cost)
	return string(b), err
}

// MakeUnknownBcrypt is MakeUnknown for bcrypt.
func MakeUnknownBcrypt(cost int) string {
	b64 := base64.NewEncoding("./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789").WithPadding(base64.NoPadding).EncodeToString
	return fmt.Sprintf("$2a$%02d$%s%s", cost, b64(random(16)), b64(random(23)))
}

// AtLeast reports whether the hash is argon2id with parameters no weaker than p.
func (h *Hash) AtLeast(p Argon2id) bool {
	return h.scheme == "argon2id" && h.params["m"] >= uint64(p.Memory) && h.params["t"] >= uint64(p.Time)
}

// BcryptCost returns the cost of a bcrypt hash, or 0 for other hashes.
func (h *Hash) BcryptCost() int {
	if h.scheme != "bcrypt" {
		return 0
	}
	return int(h.params["cost"]) //nolint:gosec // checked to be at most maxCost
}

// Parse reads a hash. The error wraps ErrFormat or ErrUnsafe.
func Parse(encoded string) (*Hash, error) {
	if len(encoded) > 1024 {
		return nil, ErrFormat
	}
	h, err := parse(encoded)
	if err != nil {
		return nil, ErrFormat
	}
	if err := h.check(); err != nil {
		return nil, err
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
		if err != nil || len(encoded) != 60 || len(parts) != 3 || strings.Trim(parts[2], bcryptDigits) != "" {
			return nil, ErrFormat // verifying a malformed hash fails at once, which an attacker can measure
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

// build parses the parts that all formats except bcrypt share. params must have exactly
// the given names in that order.
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

// bcryptDigits are the characters of bcrypt's base64.
const bcryptDigits = "./ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

func decode64(s string) ([]byte, error) {
	s = strings.TrimRight(s, "=")
	if strings.ContainsAny(s, "-_") {
		return base64.RawURLEncoding.DecodeString(s)
	}
	return base64.RawStdEncoding.DecodeString(s)
}

// check limits the work and rejects hashes that any password could match.
func (h *Hash) check() error {
	v := h.params
	if h.scheme == "bcrypt" {
		return within("bcrypt cost", v["cost"], maxCost)
	}
	if len(h.salt) == 0 {
		return fmt.Errorf("%w: the salt is empty", ErrUnsafe)
	}
	if len(h.sum) < 16 || len(h.sum) > 512 {
		return fmt.Errorf("%w: the hash must have 16 to 512 bytes", ErrUnsafe)
	}
	switch h.scheme {
	case "argon2id", "argon2i":
		return checkArgon2(v["m"], v["t"], v["p"])
	case "scrypt", "firebase-scrypt":
		if v["ln"] > 24 || v["r"] > 64 || v["p"] > 16 {
			return fmt.Errorf("%w: scrypt accepts ln up to 24, r up to 64, p up to 16", ErrUnsafe)
		}
		kib := v["r"] << v["ln"] / 8 // a block has 128*r bytes
		return cmp.Or(within("scrypt memory in KiB", kib, maxMemory), within("scrypt memory times p", kib*v["p"], maxMixed))
	}
	size := map[string]int{"pbkdf2-sha1": sha1.Size, "pbkdf2-sha256": sha256.Size, "pbkdf2-sha512": sha512.Size}[h.scheme]
	blocks := (len(h.sum) + size - 1) / size
	return within("PBKDF2 iterations times blocks", v["i"]*uint64(blocks), maxIterations) //nolint:gosec // blocks is positive
}

func checkArgon2(m, t, p uint64) error {
	if t < 1 || p < 1 || m < 8*p {
		return fmt.Errorf("%w: argon2 needs t and p of at least 1 and 8 KiB for each p", ErrUnsafe)
	}
	return cmp.Or(within("argon2 m in KiB", m, maxMemory), within("argon2 t", t, maxTime), within("argon2 p", p, maxThreads), within("argon2 m times t", m*t, maxPasses))
}

func within(name string, n, limit uint64) error {
	if n > limit {
		return fmt.Errorf("%w: %s is %d, above the limit of %d", ErrUnsafe, name, n, limit)
	}
	return nil
}

// Verify reports whether a password has this hash, in constant time for hashes of one
// format. A password that bcrypt cannot hash as a whole never matches a bcrypt hash,
// because its start alone would be enough.
func (h *Hash) Verify(password string) bool {
	if h.scheme == "bcrypt" {
		same := bcrypt.CompareHashAndPassword([]byte(h.text), []byte(password[:min(len(password), 72)])) == nil // the same work for every password
		return same && FitsBcrypt(password)
	}
	sum, err := h.compute(password)
	return err == nil && subtle.ConstantTimeCompare(sum, h.sum) == 1
}

func (h *Hash) compute(password string) ([]byte, error) {
	pw, n := []byte(password), len(h.sum)
	m, t, p := uint32(h.params["m"]), uint32(h.params["t"]), uint8(h.params["p"]) //nolint:gosec // bounded by check
	switch h.scheme {
	case "argon2id":
		return argon2.IDKey(pw, h.salt, t, m, p, uint32(n)), nil //nolint:gosec // bounded by check
	case "argon2i":
		return argon2.Key(pw, h.salt, t, m, p, uint32(n)), nil //nolint:gosec // bounded by check
	case "scrypt":
		return scrypt.Key(pw, h.salt, 1<<h.params["ln"], int(h.params["r"]), int(p), n) //nolint:gosec // bounded by check
	case "firebase-scrypt":
		return h.firebase(pw)
	}
	digests := map[string]func() hash.Hash{"pbkdf2-sha1": sha1.New, "pbkdf2-sha256": sha256.New, "pbkdf2-sha512": sha512.New}
	return pbkdf2.Key(digests[h.scheme], password, h.salt, int(h.params["i"]), n) //nolint:gosec // bounded by check
}

// firebase encrypts the project's signer key under a key derived from the password
// (AES-256-CTR, zero counter). The ciphertext is the hash.
func (h *Hash) firebase(password []byte) ([]byte, error) {
	salt := append(append([]byte(nil), h.salt...), h.separator...)
	key, err := scrypt.Key(password, salt, 1<<h.params["ln"], int(h.params["r"]), int(h.params["p"]), 64) //nolint:gosec // bounded by check
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key[:32])
	if err != nil {
		return nil, err
	}
	out := make([]byte, len(h.signerKey))
	cipher.NewCTR(block, make([]byte, aes.BlockSize)).XORKeyStream(out, h.signerKey) //nolint:gosec // defined by the format: every key is used once
	return out, nil
}
