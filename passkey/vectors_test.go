package passkey_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth/passkey"
)

// vectors are test vectors of WebAuthn Level 3, section 16.
type vectors struct {
	Vectors []struct {
		Section           string
		CredentialID      string `json:"credential_id"`
		AttestationObject string `json:"attestation_object"`
		Registration      string `json:"registration_client_data"`
		AuthenticatorData string `json:"authenticator_data"`
		Assertion         string `json:"assertion_client_data"`
		Signature         string
	}
}

// response returns a credential as browsers write it, of fields in hexadecimal.
func response(t *testing.T, id string, fields map[string]string) []byte {
	t.Helper()
	encoded := func(s string) string {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(b)
	}
	for name, s := range fields {
		fields[name] = encoded(s)
	}
	b, err := json.Marshal(map[string]any{"id": encoded(id), "rawId": encoded(id), "type": "public-key", "clientExtensionResults": map[string]any{}, "response": fields})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// The vectors of the specification: ES256, EdDSA and RS256 are accepted, with any attestation.
// Other algorithms and frames of other origins are refused, and what the device did not verify
// the user for: such a registration is valid as conditional creation only.
func TestVectorsOfTheSpecification(t *testing.T) {
	const (
		noUser    = "User verification required"
		frame     = "cross origin flag is invalid"
		algorithm = "algorithm not supported"
	)
	type result struct{ registration, conditional, assertion string } // parts of errors; "": valid
	want := map[string]result{
		"none-es256":                    {noUser, "", noUser},
		"none-es256-long-credential-id": {noUser, "", ""},
		"none-es256-crossOrigin":        {frame, frame, ""},
		"none-es256-topOrigin":          {frame, frame, ""},
		"packed-self-es256":             {"", "", noUser},
		"packed-es256":                  {"", "", ""},
		"packed-es384":                  {noUser, algorithm, ""},
		"packed-es512":                  {algorithm, algorithm, ""},
		"packed-rs256":                  {"", "", noUser},
		"packed-eddsa":                  {noUser, "", noUser},
		"tpm-es256":                     {"", "", ""},
		"android-key-es256":             {"", "", noUser},
		"apple-es256":                   {noUser, "", noUser},
		"fido-u2f-es256":                {noUser, "", noUser},
	}
	b, err := os.ReadFile("testdata/webauthn-level3.json")
	if err != nil {
		t.Fatal(err)
	}
	var list vectors
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatal(err)
	}
	if len(list.Vectors) != len(want) {
		t.Fatalf("%d vectors", len(list.Vectors))
	}
	p := passkey.New(passkey.Options{})
	base := &url.URL{Scheme: "https", Host: "example.org"}
	if err := p.Bind(func() *url.URL { return base }, func() string { return "Test" }); err != nil {
		t.Fatal(err)
	}
	check := func(t *testing.T, step string, err error, want string) {
		t.Helper()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", step, err, want)
		}
	}
	for _, v := range list.Vectors {
		t.Run(v.Section, func(t *testing.T) {
			want := want[v.Section]
			registration := response(t, v.CredentialID, map[string]string{"attestationObject": v.AttestationObject, "clientDataJSON": v.Registration})
			_, err := p.Register(registration, func(string) (bool, bool) { return true, false })
			check(t, "registration", err, want.registration)
			k, err := p.Register(registration, func(string) (bool, bool) { return true, true })
			check(t, "conditional creation", err, want.conditional)
			if err != nil {
				return
			}
			sign := func(signature string) error {
				a, err := p.Assertion(response(t, v.CredentialID, map[string]string{"authenticatorData": v.AuthenticatorData, "clientDataJSON": v.Assertion, "signature": signature}))
				if err == nil {
					_, err = a.Verify(k, time.Unix(1767323045, 0))
				}
				return err
			}
			check(t, "assertion", sign(v.Signature), want.assertion)
			if wrong := v.Signature[:len(v.Signature)-2] + "00"; want.assertion == "" && wrong != v.Signature && sign(wrong) == nil {
				t.Error("another signature is valid")
			}
		})
	}
}
