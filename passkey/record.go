package passkey

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/google/uuid"

	"github.com/authmount/auth/internal/host"
)

// record is the constant part of a stored passkey: what a passkey record of C2SP needs, too.
// The authenticator data has the RP ID's hash, the AAGUID, the credential id and the public
// key.
type record struct {
	RPID       string   `json:"rp_id"`
	AuthData   []byte   `json:"auth_data"` // of the registration, as it came
	Transports []string `json:"transports,omitempty"`

	parsed protocol.AuthenticatorData
}

func readRecord(b []byte) (r record, err error) {
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("stored passkey: %w", err)
	}
	if err := r.parsed.Unmarshal(slices.Clone(r.AuthData)); err != nil {
		return r, fmt.Errorf("stored passkey: %w", err)
	}
	if len(r.parsed.AttData.CredentialPublicKey) == 0 {
		return r, errors.New("stored passkey: no public key")
	}
	return r, nil
}

func (r record) aaguid() string {
	id, err := uuid.FromBytes(r.parsed.AttData.AAGUID)
	if err != nil {
		return uuid.Nil.String()
	}
	return id.String()
}

// state is the part that changes with each use. Writes compare and swap it.
type state struct {
	Counter        uint32 `json:"counter"`
	Verifies       bool   `json:"verifies"` // WebAuthn's uvInitialized
	BackupEligible bool   `json:"backup_eligible"`
	BackedUp       bool   `json:"backed_up"`

	// Used are the challenges that were used and have not expired: an assertion is valid
	// once, although challenges are not stored before their use.
	Used []usedChallenge `json:"used,omitempty"`
}

type usedChallenge struct {
	Hash  []byte `json:"h"`
	Until int64  `json:"u"` // Unix seconds
}

// challengeLife is at least the life of a challenge, in seconds.
const challengeLife = 10 * 60

// maxUsed bounds the state. More assertions by one passkey within challengeLife are refused.
const maxUsed = 100

var (
	errUsed    = errors.New("the assertion was used before")
	errTooMany = errors.New("too many assertions by this passkey in ten minutes")
)

func readState(b []byte) (s state, err error) {
	if err := json.Unmarshal(b, &s); err != nil {
		return s, fmt.Errorf("stored passkey: %w", err)
	}
	return s, nil
}

func (s state) bytes() []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // numbers only
	}
	return b
}

// use adds a challenge to those used.
func (s *state) use(challenge string, now time.Time) error {
	sum := sha256.Sum256([]byte(challenge))
	s.Used = slices.DeleteFunc(slices.Clone(s.Used), func(u usedChallenge) bool { return u.Until <= now.Unix() })
	if slices.ContainsFunc(s.Used, func(u usedChallenge) bool { return bytes.Equal(u.Hash, sum[:16]) }) {
		return errUsed
	}
	if len(s.Used) >= maxUsed {
		return errTooMany
	}
	s.Used = append(s.Used, usedChallenge{sum[:16], now.Unix() + challengeLife})
	return nil
}

// checkFlags checks the flags about backups (WebAuthn, sections 7.1 and 7.2).
func checkFlags(f protocol.AuthenticatorFlags) error {
	if f.HasBackupState() && !f.HasBackupEligible() {
		return errors.New("backed up, but not eligible for it")
	}
	return nil
}

// setFlags takes the flags of new authenticator data over. Password managers change whether a
// passkey can be backed up, so a change is recorded and not refused.
func (s *state) setFlags(f protocol.AuthenticatorFlags) {
	s.BackupEligible, s.BackedUp = f.HasBackupEligible(), f.HasBackupState()
}

// Describe returns what a list of passkeys shows.
func (p *Passkeys) Describe(k host.Passkey) host.PasskeyInfo {
	r, err := readRecord(k.Record)
	s, err2 := readState(k.State)
	if err != nil || err2 != nil {
		return host.PasskeyInfo{AAGUID: uuid.Nil.String()}
	}
	return host.PasskeyInfo{Authenticator: authenticatorName(r.aaguid()), AAGUID: r.aaguid(), Transports: r.Transports, Synced: s.BackedUp}
}

// counterGrew reports whether a signature counter is as expected. Counters of 0 are not used
// (WebAuthn, section 6.1.1).
func counterGrew(before, now uint32) bool { return before == 0 && now == 0 || now > before }
