package passkey

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/url"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/authmount/auth/internal/authenticator"
	"github.com/authmount/auth/internal/host"
)

// maker makes authenticators: it has a root certificate, a key of its attestations, and, for
// the test, signs the metadata.
type maker struct {
	t    *testing.T
	key  *ecdsa.PrivateKey // of the root
	root []byte
	leaf []byte
	sign *ecdsa.PrivateKey // of the attestations
}

func newMaker(t *testing.T) *maker {
	t.Helper()
	m := &maker{t: t}
	m.key, m.sign = m.newKey(), m.newKey()
	ca := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	m.root = m.certificate(ca, ca, &m.key.PublicKey)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, BasicConstraintsValid: true,
		Subject: pkix.Name{Country: []string{"SE"}, Organization: []string{"Keys"}, OrganizationalUnit: []string{"Authenticator Attestation"}, CommonName: "key"},
	}
	m.leaf = m.certificate(leaf, ca, &m.sign.PublicKey)
	return m
}

func (m *maker) newKey() *ecdsa.PrivateKey {
	m.t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		m.t.Fatal(err)
	}
	return k
}

func (m *maker) certificate(c, by *x509.Certificate, key *ecdsa.PublicKey) []byte {
	m.t.Helper()
	b, err := x509.CreateCertificate(rand.Reader, c, by, key, m.key)
	if err != nil {
		m.t.Fatal(err)
	}
	return b
}

// metadata returns a signed blob that knows one model.
func (m *maker) metadata(model uuid.UUID, status string) []byte {
	m.t.Helper()
	token := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
		"no": 1, "nextUpdate": "2030-01-01", "legalHeader": "test",
		"entries": []any{map[string]any{
			"aaguid": model.String(), "timeOfLastStatusChange": "2026-01-01", "statusReports": []any{map[string]any{"status": status, "effectiveDate": "2026-01-01"}},
			"metadataStatement": map[string]any{
				"aaguid": model.String(), "description": "a key", "attestationTypes": []string{"basic_full"}, "attestationRootCertificates": []string{base64.StdEncoding.EncodeToString(m.root)},
			},
		}},
	})
	signed, err := token.SignedString(m.key)
	if err != nil {
		m.t.Fatal(err)
	}
	return []byte(signed)
}

// packed is the attestation of an authenticator by this maker.
func (m *maker) packed(data, clientHash []byte) (string, map[string]any) {
	sum := sha256.Sum256(append(append([]byte(nil), data...), clientHash...))
	sig, err := m.sign.Sign(rand.Reader, sum[:], nil)
	if err != nil {
		m.t.Fatal(err)
	}
	return "packed", map[string]any{"alg": -7, "sig": sig, "x5c": [][]byte{m.leaf}}
}

// A list of models takes only those, with an attestation that the metadata vouches for.
func TestAllowedModels(t *testing.T) {
	good, other := newMaker(t), newMaker(t)
	model, another := uuid.New(), uuid.New()
	try := func(status string, edit func(a *authenticator.Authenticator)) error {
		t.Helper()
		p := New(Options{Authenticators: []string{model.String()}, Metadata: good.metadata(model, status)})
		p.metadataRoot = base64.StdEncoding.EncodeToString(good.root)
		if err := p.Bind(func() *url.URL { return &url.URL{Scheme: "https", Host: "auth.test"} }, func() string { return "Notes" }); err != nil {
			t.Fatal(err)
		}
		creation := p.Creation(host.PasskeyCreation{Challenge: someChallenge, Handle: []byte("handle"), Name: "ada@example.com"})
		if b, err := json.Marshal(creation); err != nil || !jsonHas(b, "attestation", "direct") {
			t.Errorf("%s, %v", b, err)
		}
		key := authenticator.New("https://auth.test")
		key.AAGUID, key.Attest = model, good.packed
		edit(key)
		created, err := key.Create(creation)
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Register(created, func(string) (bool, bool) { return true, false })
		return err
	}
	if err := try("FIDO_CERTIFIED", func(*authenticator.Authenticator) {}); err != nil {
		t.Errorf("a listed model: %v", err)
	}
	for name, edit := range map[string]func(a *authenticator.Authenticator){
		"no attestation":   func(a *authenticator.Authenticator) { a.Attest = nil },
		"another maker":    func(a *authenticator.Authenticator) { a.Attest = other.packed },
		"another model":    func(a *authenticator.Authenticator) { a.AAGUID = another },
		"self attestation": func(a *authenticator.Authenticator) { a.Attest = selfAttested },
		"a wrong signature": func(a *authenticator.Authenticator) {
			a.Attest = func(data, hash []byte) (string, map[string]any) {
				return good.packed(data, append([]byte{1}, hash[1:]...))
			}
		},
	} {
		if err := try("FIDO_CERTIFIED", edit); err == nil {
			t.Errorf("%s was registered", name)
		}
	}
	for id, want := range map[uuid.UUID]bool{model: true, another: false, uuid.Nil: false} {
		p := New(Options{Authenticators: []string{model.String()}, Metadata: good.metadata(model, "FIDO_CERTIFIED")})
		p.metadataRoot = base64.StdEncoding.EncodeToString(good.root)
		if err := p.Bind(func() *url.URL { return &url.URL{Scheme: "https", Host: "auth.test"} }, func() string { return "Notes" }); err != nil {
			t.Fatal(err)
		}
		if _, err := p.importedModel(id.String()); (err == nil) != want {
			t.Errorf("import of a passkey of %s: %v", id, err)
		}
	}
	if err := try("REVOKED", func(*authenticator.Authenticator) {}); err == nil {
		t.Error("a revoked model was registered")
	}
	forged := New(Options{Authenticators: []string{model.String()}, Metadata: other.metadata(model, "FIDO_CERTIFIED")})
	forged.metadataRoot = base64.StdEncoding.EncodeToString(good.root)
	if err := forged.Bind(func() *url.URL { return &url.URL{Scheme: "https", Host: "auth.test"} }, func() string { return "" }); err == nil {
		t.Error("metadata of somebody else was taken")
	}
}

// selfAttested is a statement without a certificate, which proves no model.
func selfAttested(_, _ []byte) (string, map[string]any) {
	return "packed", map[string]any{"alg": -7, "sig": []byte("no signature")}
}

func jsonHas(b []byte, key, value string) bool {
	var m map[string]any
	return json.Unmarshal(b, &m) == nil && m[key] == value
}
