package passkey

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/protocol/webauthncbor"
	"github.com/go-webauthn/webauthn/protocol/webauthncose"
	"github.com/google/uuid"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// Passkeys move between services of one RP ID as store.PasskeyRecord.

// maxCredentialID bounds a credential id, in bytes (WebAuthn, section 4).
const maxCredentialID = 1023

const maxRPID = 253 // bytes of a domain (RFC 1035)

var encode = base64.RawURLEncoding.EncodeToString

// Record returns a stored passkey as exports carry it.
func (p *Passkeys) Record(k host.Passkey) (out store.PasskeyRecord, err error) {
	r, err := readRecord(k.Record)
	if err != nil {
		return out, err
	}
	s, err := readState(k.State)
	if err != nil {
		return out, err
	}
	return store.PasskeyRecord{
		CredentialID: encode(k.ID), RPID: r.RPID, PublicKey: encode(r.parsed.AttData.CredentialPublicKey), Counter: s.Counter,
		UserVerified: s.Verifies, BackupEligible: s.BackupEligible, BackedUp: s.BackedUp,
		Transports: append([]string{}, r.Transports...), AAGUID: r.aaguid(), AuthData: encode(r.AuthData),
	}, nil
}

// Import checks an exported passkey.
func (p *Passkeys) Import(in store.PasskeyRecord) (host.Passkey, error) {
	var none host.Passkey
	if in.RPID != p.rpID && (!p.o.OtherRPID || in.RPID == "" || len(in.RPID) > maxRPID) {
		return none, refuse("rp_id", fmt.Sprintf("is not %s, so the passkey could not be used: see passkey.Options.OtherRPID", p.rpID))
	}
	id, err := decode("credential_id", in.CredentialID, 1, maxCredentialID)
	if err != nil {
		return none, err
	}
	key, err := decode("public_key", in.PublicKey, 1, maxPublicKey)
	if err != nil {
		return none, err
	}
	if key, err = checkKey(key); err != nil {
		return none, refuse("public_key", err.Error())
	}
	model, err := p.importedModel(in.AAGUID)
	if err != nil {
		return none, err
	}
	if in.BackedUp && !in.BackupEligible {
		return none, refuse("backed_up", "is true, but backup_eligible is not")
	}
	data := composed(in.RPID, in.Counter, model, id, key)
	if in.AuthData != "" {
		if data, err = decode("auth_data", in.AuthData, 1, maxAuthData); err != nil {
			return none, err
		}
	}
	r := record{RPID: in.RPID, AuthData: data, Transports: transports(in.Transports)}
	b, err := json.Marshal(r)
	if err != nil {
		return none, err
	}
	if r, err = readRecord(b); err != nil {
		return none, refuse("auth_data", "is not the authenticator data of a registration")
	}
	hash := sha256.Sum256([]byte(in.RPID))
	switch of := r.parsed; {
	case !bytes.Equal(of.RPIDHash, hash[:]):
		return none, refuse("auth_data", "is of another rp_id")
	case !bytes.Equal(of.AttData.CredentialID, id):
		return none, refuse("auth_data", "is of another credential_id")
	case !bytes.Equal(of.AttData.CredentialPublicKey, key):
		return none, refuse("auth_data", "is of another public_key")
	case r.aaguid() != model.String():
		return none, refuse("auth_data", "is of another aaguid")
	}
	s := state{Counter: in.Counter, Verifies: in.UserVerified, BackupEligible: in.BackupEligible, BackedUp: in.BackedUp}
	return host.Passkey{ID: id, Record: b, State: s.bytes()}, nil
}

func refuse(field, problem string) error {
	return &store.InvalidError{Field: field, Problem: problem}
}

// decode decodes a base64url value. Of several forms it accepts the one of exports, because
// ids are compared.
func decode(field, text string, least, most int) ([]byte, error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || encode(b) != text {
		return nil, refuse(field, "is not base64url without padding")
	}
	if len(b) < least || len(b) > most {
		return nil, refuse(field, fmt.Sprintf("has %d bytes, not %d to %d", len(b), least, most))
	}
	return b, nil
}

// checkKey checks that a public key can be used, and by an algorithm that registrations may
// have. It returns the key in the form in which authenticator data is read.
func checkKey(key []byte) ([]byte, error) {
	var about webauthncose.PublicKeyData
	var members any
	parsed, err := webauthncose.ParsePublicKey(key)
	if err = errors.Join(err, webauthncbor.Unmarshal(key, &about), webauthncbor.Unmarshal(key, &members)); err != nil {
		return nil, errors.New("is not a COSE key that can be used")
	}
	if !slices.ContainsFunc(algorithms, func(a protocol.CredentialParameter) bool { return int64(a.Algorithm) == about.Algorithm }) {
		return nil, errors.New("is not of the algorithm ES256, EdDSA or RS256")
	}
	if rsa, ok := parsed.(webauthncose.RSAPublicKeyData); ok && len(rsa.Modulus) < 256 {
		return nil, errors.New("is an RSA key with less than 2,048 bits")
	}
	return webauthncbor.Marshal(members)
}

// importedModel reads an AAGUID. Of Options.Authenticators it checks the list only: the
// service that registered the passkey checked the attestation.
func (p *Passkeys) importedModel(aaguid string) (id uuid.UUID, err error) {
	if aaguid != "" {
		if id, err = uuid.Parse(aaguid); err != nil || len(aaguid) != len(id.String()) {
			return id, refuse("aaguid", "is not a UUID")
		}
	}
	if p.models != nil && !p.models.ids[id] {
		return id, refuse("aaguid", "is not one of Options.Authenticators")
	}
	return id, nil
}

// composed returns authenticator data (WebAuthn, section 6.1) for a passkey of a system that
// did not keep it.
func composed(rpID string, counter uint32, model uuid.UUID, id, key []byte) []byte {
	hash := sha256.Sum256([]byte(rpID))
	data := append(hash[:], byte(protocol.FlagUserPresent|protocol.FlagAttestedCredentialData))
	data = binary.BigEndian.AppendUint32(data, counter)
	data = append(data, model[:]...)
	data = binary.BigEndian.AppendUint16(data, uint16(len(id))) //nolint:gosec // at most maxCredentialID
	return append(append(data, id...), key...)
}
