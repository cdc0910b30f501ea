package passkey

import (
	"errors"
	"fmt"

	"github.com/go-webauthn/webauthn/metadata"
	"github.com/go-webauthn/webauthn/metadata/providers/memory"
	"github.com/go-webauthn/webauthn/protocol"
	"github.com/google/uuid"
)

// models are the authenticators that may be registered.
type models struct {
	ids      map[uuid.UUID]bool
	metadata metadata.Provider
}

// bindModels reads the list of allowed authenticators, and their metadata.
func (p *Passkeys) bindModels() error {
	if len(p.o.Authenticators) == 0 {
		return nil
	}
	m := &models{ids: map[uuid.UUID]bool{}}
	for _, text := range p.o.Authenticators {
		id, err := uuid.Parse(text)
		if err != nil || id == uuid.Nil {
			return fmt.Errorf("Options.Authenticators: %q is not an AAGUID", text)
		}
		m.ids[id] = true
	}
	known, err := readMetadata(p.o.Metadata, p.metadataRoot)
	if err != nil {
		return fmt.Errorf("Options.Metadata, which Options.Authenticators needs: %w", err)
	}
	for id := range m.ids {
		if known[id] == nil {
			return fmt.Errorf("Options.Authenticators: the metadata does not know %s", id)
		}
	}
	m.metadata, err = memory.New(memory.WithMetadata(known), memory.WithValidateEntry(true), memory.WithValidateTrustAnchor(true),
		memory.WithValidateStatus(true), memory.WithValidateAttestationTypes(true))
	p.models = m
	return err
}

// readMetadata reads a blob of the FIDO metadata service, and checks its signature. root, if
// not empty, replaces the service's root certificate.
func readMetadata(blob []byte, root string) (map[uuid.UUID]*metadata.Entry, error) {
	options := []metadata.DecoderOption{metadata.WithIgnoreEntryParsingErrors()}
	if root != "" {
		options = append(options, metadata.WithRootCertificate(root))
	}
	decoder, err := metadata.NewDecoder(options...)
	if err != nil {
		return nil, err
	}
	payload, err := decoder.DecodeBytes(blob)
	if err != nil {
		return nil, err
	}
	m, err := decoder.Parse(payload)
	if err != nil {
		return nil, err
	}
	return m.ToMap(), nil
}

// provider returns the metadata to check attestations with, which is nil without a list of
// authenticators.
func (m *models) provider() metadata.Provider {
	if m == nil {
		return nil
	}
	return m.metadata
}

// check checks that a registered authenticator is one of the list. The library has checked
// its attestation against the metadata.
func (m *models) check(object protocol.AttestationObject) error {
	if m == nil {
		return nil
	}
	id, err := uuid.FromBytes(object.AuthData.AttData.AAGUID)
	if err != nil || !m.ids[id] {
		return errors.New("the authenticator is not one of Options.Authenticators")
	}
	if certificates, _ := object.AttStatement["x5c"].([]any); len(certificates) == 0 { // self attestation proves no model
		return errors.New("the attestation has no certificate")
	}
	return nil
}
