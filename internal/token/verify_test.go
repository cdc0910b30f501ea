package token

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/authmount/auth/internal/apikey"
	"github.com/authmount/auth/internal/keys"
	"github.com/authmount/auth/store"
)

const testSecret = "a secret of the tests', 32 bytes"

// testRing returns signing keys for a test.
func testRing(t *testing.T, secret string) *keys.Ring {
	t.Helper()
	ring, err := keys.New(keys.Params{Secrets: [][]byte{[]byte(secret)}})
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// testSigner signs with keys of a secret.
func testSigner(t *testing.T, secret string, o Options) *Signer {
	t.Helper()
	s, err := NewSigner(testRing(t, secret), o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Algorithm confusion (RFC 8725, section 3.1): a key is only used with its algorithm,
// before any signature is checked.
func TestKeyIsPinnedToItsAlgorithm(t *testing.T) {
	ring := testRing(t, testSecret)
	v := NewVerifier(ring, Options{}, nil, nil, time.Now)
	header := map[string]any{"kid": ring.Signing().ID, "typ": typeAccess}
	for method, ok := range map[jwt.SigningMethod]bool{
		jwt.SigningMethodES256: true, jwt.SigningMethodHS256: false, jwt.SigningMethodRS256: false, jwt.SigningMethodEdDSA: false, jwt.SigningMethodNone: false,
	} {
		if _, err := v.verificationKey(&jwt.Token{Header: header, Method: method}); (err == nil) != ok {
			t.Errorf("%s: %v", method.Alg(), err)
		}
	}
}

// A verifier with other keys keeps the revocations but not the cache of tokens, because
// their key may be gone.
func TestVerifierWithOtherKeys(t *testing.T) {
	now := time.Unix(1767323045, 0)
	o := Options{Issuer: "https://auth.test"}
	const one, two = testSecret, "another of the tests', 32 bytes."
	token := func(secret, session string) string {
		text, err := testSigner(t, secret, o).Sign(t.Context(), Grant{
			ID: "j", User: store.User{ID: "ada"}, Session: store.Session{ID: session, AAL: store.LevelAAL1}, Custom: map[string]any{"plan": "free"}, IssuedAt: now, ExpiresAt: now.Add(time.Minute),
		})
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	clock := func() time.Time { return now }
	revoked := NewRevocations(o, clock)
	with := func(secret string) *Verifier { return NewVerifier(testRing(t, secret), o, revoked, nil, clock) }
	v := with(one)
	good, ended := token(one, "s1"), token(one, "s2")
	want, err := v.Verify(good)
	if err != nil || want.UserID != "ada" || want.SessionID != "s1" || want.Custom["plan"] != "free" {
		t.Fatalf("%+v, %v", want, err)
	}
	if _, err := v.Verify(ended); err != nil {
		t.Fatal(err)
	}
	revoked.Add(store.Revocation{SessionID: "s2", At: now})
	for name, v := range map[string]*Verifier{"before": v, "with the same keys": with(one)} {
		if got, err := v.Verify(good); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if again, err := v.Verify(good); err != nil || again == nil {
			t.Errorf("%s, remembered: %+v, %v", name, again, err)
		}
		if _, err := v.Verify(ended); !errors.Is(err, ErrSessionEnded) {
			t.Errorf("%s, what has ended: %v", name, err)
		}
		if c, _, err := v.Check(ended); err != nil || c.SessionID != "s2" {
			t.Errorf("%s, what has ended, but for that: %+v, %v", name, c, err)
		}
		if _, err := v.Verify(token(two, "s1")); !errors.Is(err, ErrOtherKey) {
			t.Errorf("%s, by another key: %v", name, err)
		}
	}
	other := with(two)
	if _, err := other.Verify(good); !errors.Is(err, ErrOtherKey) {
		t.Errorf("a token whose key is gone: %v", err)
	}
	if _, err := other.Verify(token(two, "s2")); !errors.Is(err, ErrSessionEnded) {
		t.Errorf("what has ended, by the new key: %v", err)
	}
	if c, err := other.Verify(token(two, "s3")); err != nil || c.SessionID != "s3" {
		t.Errorf("by the new key: %+v, %v", c, err)
	}
	elsewhere := NewVerifier(testRing(t, two), Options{Issuer: "https://other.test"}, revoked, nil, clock)
	if _, err := elsewhere.Verify(good); !errors.Is(err, ErrInvalid) || errors.Is(err, ErrOtherKey) || !errors.Is(err, errUnknownKey) {
		t.Errorf("a token in another's name: %v", err)
	}
}

// Bearer finds a token in the Authorization header and ignores API keys.
func TestBearer(t *testing.T) {
	public, err := apikey.New(apikey.Parts{Public: true, Environment: "live", ID: uuid.NewString()})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.Text()
	for header, want := range map[string]struct {
		text  string
		given bool
		err   error
		cause string
	}{
		"":                      {"", false, ErrMissing, "no access token"},
		"Bearer " + random:      {random, true, nil, ""},
		"bearer  " + random:     {random, true, nil, ""},
		"Bearer":                {"", true, ErrInvalid, "empty bearer token"},
		"Bearer  ":              {"", true, ErrInvalid, "empty bearer token"},
		"Basic eDp5":            {"", false, ErrInvalid, "the Authorization header has no bearer token"},
		"Bearer " + public:      {"", false, ErrMissing, "no access token"},
		"Bearer pk_live_nobody": {"pk_live_nobody", true, nil, ""},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.Header.Set("Authorization", header)
		text, given, err := Bearer(r)
		if text != want.text || given != want.given || !errors.Is(err, want.err) || err != nil && err.Error() != want.cause {
			t.Errorf("%q: %q, %t, %v", header, text, given, err)
		}
	}
}

// The limits and the lengths of claims have their documented values.
func TestConstants(t *testing.T) {
	for what, c := range map[string]struct{ is, want time.Duration }{
		"clocks may differ":        {leeway, 30 * time.Second},
		"the longest access token": {MaxLife, 24 * time.Hour},
	} {
		if c.is != c.want {
			t.Errorf("%s: %s, not %s", what, c.is, c.want)
		}
	}
	for what, c := range map[string]struct{ is, want int }{
		"bytes of a header's token":               {MaxLength, 16 << 10},
		"bytes of an access token":                {maxTokenSize, 3000},
		"bytes of a large claim":                  {maxClaimSize, 1024},
		"bytes of an address, as JSON (RFC 5321)": {maxEmailSize, 256},
		"bytes of a number, as JSON (E.164)":      {maxPhoneSize, 18},
		"bytes of three proofs":                   {maxAMRSize, 150},
	} {
		if c.is != c.want {
			t.Errorf("%s: %d, not %d", what, c.is, c.want)
		}
	}
}

// A token that cannot be signed is an error.
func TestSignErrors(t *testing.T) {
	s := testSigner(t, testSecret, Options{})
	s.key.Key = "none"
	if text, err := s.Sign(t.Context(), Grant{User: store.User{ID: "ada"}}); err == nil || text != "" || !strings.HasPrefix(err.Error(), "sign access token: ") {
		t.Errorf("%q, %v", text, err)
	}
	s = testSigner(t, testSecret, Options{})
	if text, err := s.Sign(t.Context(), Grant{User: store.User{AppMetadata: map[string]any{"x": make(chan int)}}}); err == nil || text != "" || !strings.HasPrefix(err.Error(), "encode access token: ") {
		t.Errorf("%q, %v", text, err)
	}
}

// As few custom claims as possible are omitted: none if the rest just fits.
func TestFewestClaimsAreOmitted(t *testing.T) {
	s := testSigner(t, testSecret, Options{})
	most := 0
	for s.fits(most + 1) {
		most++
	}
	custom := map[string]json.RawMessage{"large": json.RawMessage(`"` + strings.Repeat("x", 500) + `"`), "mean": json.RawMessage(`"` + strings.Repeat("x", 100) + `"`), "small": json.RawMessage(`1`)}
	rest := claimSize("mean", custom["mean"]) + claimSize("small", custom["small"])
	for over, want := range map[int][]string{0: {"large"}, 1: {"large", "mean"}} {
		if got := s.omit(most-rest-namesSize([]string{"large"})+over, custom); !slices.Equal(got, want) {
			t.Errorf("%d too many: %v go, want %v", over, got, want)
		}
	}
}
