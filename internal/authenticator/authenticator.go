// Package authenticator is an authenticator in software for tests: it creates passkeys and
// signs with them as a browser with a security key does, and lies where a test asks for it.
package authenticator

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"

	"github.com/fxamacker/cbor/v2"
)

// The flags of authenticator data (WebAuthn Level 3, section 6.1).
const (
	UserPresent    = 0x01
	UserVerified   = 0x04
	BackupEligible = 0x08
	BackedUp       = 0x10
	attested       = 0x40
)

// Authenticator holds passkeys. It is not safe for concurrent use.
type Authenticator struct {
	Origin string // of the page
	Flags  byte   // of everything it signs
	Step   uint32 // added to a passkey's counter at each use
	AAGUID [16]byte
	// Attest, if set, returns the attestation of a new passkey: its format and statement.
	Attest func(authData, clientDataHash []byte) (format string, statement map[string]any)

	Passkeys []*Passkey
}

// Passkey is a passkey of an Authenticator.
type Passkey struct {
	ID      []byte
	Handle  []byte
	RPID    string
	Counter uint32
	key     *ecdsa.PrivateKey
}

// New returns an authenticator that verifies its user, and does not count.
func New(origin string) *Authenticator {
	return &Authenticator{Origin: origin, Flags: UserPresent | UserVerified}
}

// options are the parts of both kinds of options that matter here.
type options struct {
	Challenge string `json:"challenge"`
	RPID      string `json:"rpId"`
	RP        struct {
		ID string `json:"id"`
	} `json:"rp"`
	User struct {
		ID string `json:"id"`
	} `json:"user"`
	Exclude []descriptor `json:"excludeCredentials"`
	Allow   []descriptor `json:"allowCredentials"`
}

type descriptor struct {
	ID string `json:"id"`
}

// ErrExcluded is the error of a creation that excludes a passkey of this authenticator.
var ErrExcluded = errors.New("the authenticator has an excluded passkey")

// ErrNone is the error of a request that no passkey fits.
var ErrNone = errors.New("no passkey fits")

func read(publicKey any) (o options, err error) {
	b, err := json.Marshal(publicKey)
	if err == nil {
		err = json.Unmarshal(b, &o)
	}
	return o, err
}

func lists(list []descriptor, id []byte) bool {
	for _, d := range list {
		if d.ID == encode(id) {
			return true
		}
	}
	return false
}

// Create is navigator.credentials.create. It returns a RegistrationResponseJSON.
func (a *Authenticator) Create(publicKey any) (json.RawMessage, error) {
	o, err := read(publicKey)
	if err != nil {
		return nil, err
	}
	for _, p := range a.Passkeys {
		if lists(o.Exclude, p.ID) {
			return nil, ErrExcluded
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	handle, err := base64.RawURLEncoding.DecodeString(o.User.ID)
	if err != nil {
		return nil, err
	}
	p := &Passkey{ID: make([]byte, 32), Handle: handle, RPID: o.RP.ID, key: key}
	_, _ = rand.Read(p.ID) // never fails (crypto/rand)
	data, client := a.AttestedData(p), a.ClientData("webauthn.create", o.Challenge)
	format, statement := "none", map[string]any{}
	if a.Attest != nil {
		hash := sha256.Sum256(client)
		format, statement = a.Attest(data, hash[:])
	}
	object, err := cbor.Marshal(map[string]any{"fmt": format, "attStmt": statement, "authData": data})
	if err != nil {
		return nil, err
	}
	a.Passkeys = append(a.Passkeys, p)
	return json.Marshal(map[string]any{
		"id": encode(p.ID), "rawId": encode(p.ID), "type": "public-key", "clientExtensionResults": map[string]any{},
		"response": map[string]any{
			"clientDataJSON": encode(client), "attestationObject": encode(object), "transports": []string{"internal", "hybrid"},
		},
	})
}

// AttestedData returns the authenticator data of a passkey's registration.
func (a *Authenticator) AttestedData(p *Passkey) []byte {
	point, err := p.key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		panic(err) // P-256
	}
	cose, err := cbor.Marshal(map[int]any{1: 2, 3: -7, -1: 1, -2: point[1:33], -3: point[33:]})
	if err != nil {
		panic(err) // numbers and bytes
	}
	data := a.data(p, attested)
	data = append(data, a.AAGUID[:]...)
	data = binary.BigEndian.AppendUint16(data, uint16(len(p.ID))) //nolint:gosec // 32
	return append(append(data, p.ID...), cose...)
}

func (a *Authenticator) data(p *Passkey, more byte) []byte {
	hash := sha256.Sum256([]byte(p.RPID))
	return binary.BigEndian.AppendUint32(append(hash[:], a.Flags|more), p.Counter)
}

// ClientData returns the client data of a ceremony.
func (a *Authenticator) ClientData(kind, challenge string) []byte {
	b, err := json.Marshal(map[string]any{"type": kind, "challenge": challenge, "origin": a.Origin, "crossOrigin": false})
	if err != nil {
		panic(err) // strings
	}
	return b
}

// Get is navigator.credentials.get with the newest passkey that fits. It returns an
// AuthenticationResponseJSON.
func (a *Authenticator) Get(publicKey any) (json.RawMessage, error) {
	o, err := read(publicKey)
	if err != nil {
		return nil, err
	}
	for i := len(a.Passkeys) - 1; i >= 0; i-- {
		if p := a.Passkeys[i]; p.RPID == o.RPID && (len(o.Allow) == 0 || lists(o.Allow, p.ID)) {
			return a.Sign(p, o.Challenge)
		}
	}
	return nil, ErrNone
}

// Sign returns the response of one passkey to a challenge.
func (a *Authenticator) Sign(p *Passkey, challenge string) (json.RawMessage, error) {
	return a.SignClientData(p, a.ClientData("webauthn.get", challenge))
}

// SignClientData is Sign with client data of the test's.
func (a *Authenticator) SignClientData(p *Passkey, client []byte) (json.RawMessage, error) {
	p.Counter += a.Step
	data := a.data(p, 0)
	hash := sha256.Sum256(client)
	sum := sha256.Sum256(append(append([]byte(nil), data...), hash[:]...))
	signature, err := p.key.Sign(rand.Reader, sum[:], crypto.SHA256)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]any{
		"id": encode(p.ID), "rawId": encode(p.ID), "type": "public-key", "clientExtensionResults": map[string]any{},
		"response": map[string]any{
			"clientDataJSON": encode(client), "authenticatorData": encode(data), "signature": encode(signature), "userHandle": encode(p.Handle),
		},
	})
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
