package passkey

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"

	"github.com/authmount/auth/internal/host"
)

// maxTransports and maxTransport bound what a browser may say about an authenticator.
const (
	maxTransports = 8
	maxTransport  = 32
)

// maxPublicKey and maxAuthData bound what an authenticator registers, in bytes. RSA with 4096
// bits fits; a check with a longer key takes a lot of time, and anybody can register one.
const (
	maxPublicKey = 600
	maxAuthData  = 2048
)

// Register checks a registration (WebAuthn, section 7.1).
func (p *Passkeys) Register(response []byte, judge func(challenge string) (ok, conditional bool)) (host.Passkey, error) {
	var none host.Passkey
	c, err := protocol.ParseCredentialCreationResponseBytes(response)
	if err != nil {
		return none, explained(err)
	}
	object, challenge := &c.Response.AttestationObject, c.Response.CollectedClientData.Challenge
	ok, conditional := judge(challenge)
	if !ok {
		return none, errors.New("the challenge is not from here, or expired")
	}
	if data := object.AuthData.AttData; len(data.CredentialPublicKey) > maxPublicKey || len(object.RawAuthData) > maxAuthData {
		return none, errors.New("the public key or the authenticator data is too large")
	}
	if p.models == nil { // an attestation that nobody asked for is not judged (section 7.1, step 23)
		object.Format, object.AttStatement, object.SubStatements = string(protocol.AttestationFormatNone), nil, nil
	}
	_, err = c.Verify(challenge, p.rpID, p.origins(), p.o.AndroidApps, nil, protocol.TopOriginExplicitVerificationMode, false, !conditional, !conditional,
		p.models.provider(), algorithms, protocol.AttestationPolicy{}, protocol.SignaturePolicy{})
	if err != nil {
		return none, explained(err)
	}
	if err := p.models.check(*object); err != nil {
		return none, err
	}
	flags := object.AuthData.Flags
	if err := checkFlags(flags); err != nil { // such a passkey could never sign in
		return none, err
	}
	s := state{Counter: object.AuthData.Counter, Verifies: flags.HasUserVerified()}
	s.setFlags(flags)
	r := record{RPID: p.rpID, AuthData: object.RawAuthData, Transports: transports(c.Response.Transports)}
	b, err := json.Marshal(r)
	if err != nil {
		return none, err
	}
	if _, err := readRecord(b); err != nil {
		return none, err
	}
	return host.Passkey{ID: object.AuthData.AttData.CredentialID, Record: b, State: s.bytes()}, nil
}

// transports keeps the browser's hints that look like some. Unknown ones are kept, as
// WebAuthn asks.
func transports[T ~string](list []T) (out []string) {
	for _, t := range list {
		ok := t != "" && len(t) <= maxTransport && strings.Trim(string(t), "abcdefghijklmnopqrstuvwxyz-") == ""
		if ok && len(out) < maxTransports && !slices.Contains(out, string(t)) {
			out = append(out, string(t))
		}
	}
	return out
}

// assertion is a response that was read.
type assertion struct {
	p *Passkeys
	c *protocol.ParsedCredentialAssertionData
}

// Assertion reads the response of an authentication.
func (p *Passkeys) Assertion(response []byte) (host.Assertion, error) {
	c, err := protocol.ParseCredentialRequestResponseBytes(response)
	if err != nil {
		return nil, explained(err)
	}
	return assertion{p, c}, nil
}

func (a assertion) ID() []byte        { return a.c.RawID }
func (a assertion) Handle() []byte    { return a.c.Response.UserHandle }
func (a assertion) Challenge() string { return a.c.Response.CollectedClientData.Challenge }

// Verify checks the assertion (WebAuthn, section 7.2).
func (a assertion) Verify(k host.Passkey, now time.Time) (use host.PasskeyUse, err error) {
	r, err := readRecord(k.Record)
	if err != nil {
		return use, err
	}
	s, err := readState(k.State)
	if err != nil {
		return use, err
	}
	p := a.p
	err = a.c.Verify(a.Challenge(), p.rpID, "", p.origins(), p.o.AndroidApps, nil, protocol.TopOriginExplicitVerificationMode, false, true, true,
		r.parsed.AttData.CredentialPublicKey, protocol.SignaturePolicy{})
	if err != nil {
		return use, explained(err)
	}
	data := a.c.Response.AuthenticatorData
	if err := checkFlags(data.Flags); err != nil {
		return use, err
	}
	if err := s.use(a.Challenge(), now); err != nil {
		return use, err
	}
	use.Copied = !counterGrew(s.Counter, data.Counter)
	use.Synced = s.BackupEligible && data.Flags.HasBackupEligible() // a copy could set the flag to keep the owner from being told
	if use.Copied && p.o.RefuseCopies {
		use.State = s.bytes()
		return use, errors.New("the signature counter did not grow")
	}
	s.Counter = max(s.Counter, data.Counter)
	s.setFlags(data.Flags)
	use.TwoFactors = s.Verifies
	use.State = s.bytes()
	return use, nil
}

// Confirmed sets WebAuthn's uvInitialized, which needs another factor (section 7.2, step
// 25).
func (p *Passkeys) Confirmed(stored []byte) []byte {
	s, err := readState(stored)
	if err != nil || s.Verifies {
		return nil
	}
	s.Verifies = true
	return s.bytes()
}

// explained adds the details of the library's errors, which its Error leaves out. They have
// no secrets.
func explained(err error) error {
	var e *protocol.Error
	if errors.As(err, &e) {
		return fmt.Errorf("%w: %s", err, e.DevInfo)
	}
	return err
}
