package authtest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

var (
	firstKey = sync.OnceValue(newRSAKey)
	otherKey = sync.OnceValue(newRSAKey) // never published
	appleKey = sync.OnceValue(func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			panic(err) // crypto/rand never fails
		}
		return k
	})
)

func newRSAKey() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err) // crypto/rand never fails
	}
	return k
}

func (p *Provider) keys(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	key, kid := p.key.PublicKey, p.kid
	p.mu.Unlock()
	b64 := base64.RawURLEncoding.EncodeToString
	respond(w, http.StatusOK, map[string]any{"keys": []any{map[string]string{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": kid, "n": b64(key.N.Bytes()), "e": b64(big.NewInt(int64(key.E)).Bytes()),
	}}})
}

// hasIDTokens reports whether a style is an OpenID provider.
func hasIDTokens(style string) bool {
	return slices.Contains([]string{"oidc", "google", "microsoft", "apple"}, style)
}

// givesIDToken reports whether the response for a code has an ID token. Apple has no
// scope "openid".
func givesIDToken(style, scope string) bool {
	return style == "apple" || (hasIDTokens(style) && slices.Contains(strings.Fields(scope), "openid"))
}

// token is the token endpoint.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	style := r.PathValue("style")
	refuse := func(code string) {
		status := http.StatusBadRequest
		if style == "github" {
			status = http.StatusOK // as GitHub does
		}
		respond(w, status, map[string]string{"error": code})
	}
	if err := r.ParseForm(); err != nil || !p.knowsClient(style, r) {
		refuse("invalid_client")
		return
	}
	if p.has(EchoedSecret) {
		respond(w, http.StatusBadRequest, map[string]string{
			"error":             "invalid_client",
			"error_description": "the secret " + clientSecret + " in " + r.PostForm.Encode() + r.Header.Get("Authorization") + " is wrong",
		})
		return
	}
	p.mu.Lock()
	g, ok := p.grants[r.PostForm.Get("code")]
	delete(p.grants, r.PostForm.Get("code"))
	p.mu.Unlock()
	sum := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
	if !ok || g.code == "" || g.style != style || g.redirect != r.PostForm.Get("redirect_uri") || g.code != base64.RawURLEncoding.EncodeToString(sum[:]) {
		refuse("invalid_grant")
		return
	}
	access := newID20()
	body := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": 3600, "refresh_token": newID20()}
	if g.openID && !p.has(NoIDToken) {
		body["id_token"] = p.IDToken(style, g.person, g.nonce)
	}
	g.code = ""
	p.mu.Lock()
	p.grants[access] = g
	p.mu.Unlock()
	respond(w, http.StatusOK, body)
}

// knowsClient authenticates the client in the style's way. The discovery document names
// no method, so the secret must come by client_secret_basic; a client without a secret is
// public and uses PKCE only.
func (p *Provider) knowsClient(style string, r *http.Request) bool {
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	public := style == "oidc" && !basic && !r.PostForm.Has("client_secret")
	switch {
	case id != clientID || (basic != (style == "twitter" || style == "oidc") && !public):
		return false
	case public:
		return true
	case style != "apple":
		return secret == clientSecret
	}
	t, err := jwt.Parse(secret, func(t *jwt.Token) (any, error) {
		if t.Header["kid"] != appleKeyID {
			return nil, jwt.ErrTokenUnverifiable
		}
		return &appleKey().PublicKey, nil
	}, jwt.WithValidMethods([]string{"ES256"}), jwt.WithIssuer(appleTeam), jwt.WithSubject(clientID),
		jwt.WithAudience("https://appleid.apple.com"), jwt.WithExpirationRequired(), jwt.WithTimeFunc(p.Now))
	return err == nil && t.Valid
}

// IDToken returns an ID token as a native app gets it from the provider's library. style
// is "oidc", "google", "microsoft" or "apple"; it panics for other styles.
func (p *Provider) IDToken(style string, who Person, nonce string) string {
	if !hasIDTokens(style) {
		panic(fmt.Sprintf("authtest: IDToken: no ID tokens of style %q", style))
	}
	p.mu.Lock()
	key, kid, fault := p.key, p.kid, p.fault
	p.mu.Unlock()
	c := p.claims(style, who, nonce)
	switch fault {
	case WrongNonce:
		c["nonce"] = "another"
	case WrongIssuer:
		c["iss"] = "https://other.example.com"
	case WrongAudience:
		c["aud"] = "another-client"
	case Expired:
		c["exp"] = p.Now().Add(-time.Hour).Unix()
	}
	for name, v := range who.Claims {
		if v == nil {
			delete(c, name)
		} else {
			c[name] = v
		}
	}
	var method jwt.SigningMethod = jwt.SigningMethodRS256
	var signer any = key
	switch fault {
	case BadSignature:
		signer = otherKey()
	case UnknownKey:
		kid = "unknown"
	case AlgNone:
		method, signer = jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType
	case AlgHS256:
		method, signer = jwt.SigningMethodHS256, publicPEM(&key.PublicKey)
	}
	t := jwt.NewWithClaims(method, c)
	t.Header["kid"] = kid
	signed, err := t.SignedString(signer)
	if err != nil {
		panic(err) // the keys fit the methods
	}
	return signed
}

// claims returns the claims of a valid ID token.
func (p *Provider) claims(style string, who Person, nonce string) jwt.MapClaims {
	now := p.Now()
	c := jwt.MapClaims{
		"iss": p.Issuer, "sub": who.Subject, "aud": clientID, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"jti": rand.Text(), // makes every token unique, even if the clock stands still
	}
	set := func(name, v string) {
		if v != "" {
			c[name] = v
		}
	}
	set("nonce", nonce)
	switch style {
	case "google":
		set("email", who.Email)
		set("name", who.Name)
		c["email_verified"] = who.EmailVerified
	case "apple":
		set("email", who.Email)
		c["email_verified"] = strconv.FormatBool(who.EmailVerified) // a string, as Apple has it
	case "microsoft":
		set("email", who.Email)
		set("name", who.Name)
		c["tid"] = TenantID
		if tid, ok := who.Claims["tid"].(string); ok {
			c["tid"] = tid
		}
		c["iss"] = p.Issuer + "/" + c["tid"].(string) + "/v2.0"
		if who.EmailVerified {
			c["xms_edov"] = "1"
		}
	}
	return c // the claims of "oidc" come from the userinfo endpoint
}

func publicPEM(key *rsa.PublicKey) []byte {
	der, err := x509.MarshalPKIXPublicKey(crypto.PublicKey(key))
	if err != nil {
		panic(err) // this kind of key can be marshalled
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}
