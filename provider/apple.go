package provider

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Apple signs in with Apple accounts. privateKey is the .p8 file (PEM) of keyID; the
// client secret is created from it for every request.
//
// https://developer.apple.com/documentation/signinwithapplerestapi and
// https://developer.apple.com/documentation/signinwithapplejs/authorizationi/id_token
// (November 2026). The callback is a form post by Apple's page. The name is in the post,
// unsigned, at the first sign-in only. email_verified is a string or a boolean; the email
// address may be a relay address of Apple. ID tokens name one of two issuers, with the
// same keys and the same subjects (supabase/auth #2051).
func Apple(clientID, teamID, keyID string, privateKey []byte, opts ...Option) Provider {
	key, err := parseAppleKey(privateKey)
	if err == nil && (teamID == "" || keyID == "") {
		err = errors.New("the team id or the key id is missing")
	}
	return Provider{
		Name: "apple", ClientID: clientID,
		Scopes:   []string{"name", "email"},
		Issuer:   appleIssuers[0],
		AuthURL:  "https://appleid.apple.com/auth/authorize",
		TokenURL: "https://appleid.apple.com/auth/token",
		JWKSURL:  "https://appleid.apple.com/auth/keys",
		OpenID:   true, implied: true, FormPost: true, err: err,
		DeniedBy: []string{"user_cancelled_authorize"},
		IssuerOf: appleIssuer,
		NameOf:   appleName,
		Secret: func(p *Provider, now time.Time) (string, error) {
			t := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
				"iss": teamID, "sub": p.ClientID, "aud": "https://appleid.apple.com", "iat": now.Unix(), "exp": now.Add(appleSecretLife).Unix(),
			})
			t.Header["kid"] = keyID
			return t.SignedString(key)
		},
	}.with(opts)
}

// appleIssuers are the issuers of Apple's ID tokens.
var appleIssuers = []string{"https://appleid.apple.com", "https://account.apple.com"}

// appleIssuer accepts both issuers, unless Issuer was set to another server.
func appleIssuer(p *Provider, c Claims) string {
	if named := c.Text("iss"); slices.Contains(appleIssuers, named) && slices.Contains(appleIssuers, p.Issuer) {
		return named
	}
	return p.Issuer
}

// appleSecretLife is short because every request gets a new secret.
const appleSecretLife = 5 * time.Minute

func parseAppleKey(p8 []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(p8)
	if block == nil {
		return nil, errors.New("the private key is not PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("the private key is not PKCS #8")
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve.Params().BitSize != 256 {
		return nil, errors.New("the private key is not on the curve P-256")
	}
	return key, nil
}

// appleName returns the name from the callback's parameter "user".
func appleName(user string) string {
	var u struct {
		Name struct {
			First string `json:"firstName"`
			Last  string `json:"lastName"`
		} `json:"name"`
	}
	if json.Unmarshal([]byte(user), &u) != nil {
		return ""
	}
	return strings.TrimSpace(u.Name.First + " " + u.Name.Last)
}
