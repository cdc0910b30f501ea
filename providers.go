package auth

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Google signs in with Google accounts.
//
// Endpoints, issuer and claims: https://accounts.google.com/.well-known/openid-configuration
// and https://developers.google.com/identity/openid-connect/reference
// (November 2026). The callback may carry iss (RFC 9207).
func Google(clientID, clientSecret string) Provider {
	return Provider{
		Name: "google", ClientID: clientID, ClientSecret: clientSecret,
		Scopes:      []string{"openid", "email", "profile"},
		Issuer:      "https://accounts.google.com",
		AuthURL:     "https://accounts.google.com/o/oauth2/v2/auth",
		TokenURL:    "https://oauth2.googleapis.com/token",
		UserInfoURL: "https://openidconnect.googleapis.com/v1/userinfo",
		JWKSURL:     "https://www.googleapis.com/oauth2/v3/certs",
		openID:      true,
	}
}

// GitHub signs in with GitHub accounts. For GitHub Enterprise Server change
// AuthURL, TokenURL, UserInfoURL (…/api/v3/user) and Issuer.
//
// https://docs.github.com/en/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps,
// https://docs.github.com/en/rest/users/emails (November 2026). PKCE is S256
// only, since July 2025. Errors of the token endpoint come with status 200. The
// callback has carried iss on and off since April 2026.
func GitHub(clientID, clientSecret string) Provider {
	return Provider{
		Name: "github", ClientID: clientID, ClientSecret: clientSecret,
		Scopes:      []string{"read:user", "user:email"},
		Issuer:      "https://github.com/login/oauth",
		AuthURL:     "https://github.com/login/oauth/authorize",
		TokenURL:    "https://github.com/login/oauth/access_token",
		UserInfoURL: "https://api.github.com/user",
		fetch:       githubProfile,
	}
}

// githubProfile takes the primary address from the list of addresses: the one
// in the profile is what the person chose to show, proved or not.
func githubProfile(ctx context.Context, api *ProviderAPI) (Profile, error) {
	var u struct {
		ID    json.Number `json:"id"`
		Login string      `json:"login"`
		Name  string      `json:"name"`
	}
	if err := api.Get(ctx, api.provider.UserInfoURL, &u); err != nil {
		return Profile{}, err
	}
	var list []struct {
		Email    string `json:"email"`
		Primary  bool   `json:"primary"`
		Verified bool   `json:"verified"`
	}
	if err := api.Get(ctx, api.provider.UserInfoURL+"/emails", &list); err != nil && !refused(err) {
		return Profile{}, err // refused: the person did not grant user:email
	}
	p := Profile{Subject: u.ID.String(), FullName: cmp.Or(u.Name, u.Login)}
	for _, e := range list {
		if e.Primary {
			p.Email, p.EmailVerified = e.Email, e.Verified
		}
	}
	return p, nil
}

// Facebook signs in with Facebook accounts. Facebook does not say whether it
// proved an address, so that addresses from there are never believed.
//
// https://developers.facebook.com/documentation/facebook-login/guides/advanced/manual-flow,
// https://developers.facebook.com/docs/graph-api/changelog (v26.0, July 2026),
// https://developers.facebook.com/docs/graph-api/guides/secure-requests for
// appsecret_proof (November 2026).
func Facebook(clientID, clientSecret string) Provider {
	return Provider{
		Name: "facebook", ClientID: clientID, ClientSecret: clientSecret,
		Scopes:      []string{"email", "public_profile"},
		AuthURL:     "https://www.facebook.com/v26.0/dialog/oauth",
		TokenURL:    "https://graph.facebook.com/v26.0/oauth/access_token",
		UserInfoURL: "https://graph.facebook.com/v26.0/me",
		fetch:       facebookProfile,
	}
}

// facebookProfile proves with each call that the caller knows the app's secret,
// so that a token stolen from the app is of no use elsewhere.
func facebookProfile(ctx context.Context, api *ProviderAPI) (Profile, error) {
	mac := hmac.New(sha256.New, []byte(api.provider.ClientSecret))
	mac.Write([]byte(api.accessToken))
	var u struct {
		ID    string `json:"id"`
		Name  string `json:"name"`
		Email string `json:"email"`
	}
	err := api.Get(ctx, withQuery(api.provider.UserInfoURL, url.Values{
		"fields": {"id,name,email"}, "appsecret_proof": {hex.EncodeToString(mac.Sum(nil))},
	}), &u)
	return Profile{Subject: u.ID, Email: u.Email, FullName: u.Name}, err
}

// Twitter signs in with X accounts, under the name "twitter". The address needs "Request email from
// users" in the developer portal; without it accounts have none.
//
// https://docs.x.com/fundamentals/authentication/oauth-2-0/authorization-code,
// https://docs.x.com/x-api/users/get-my-user (November 2026): users/me needs
// tweet.read, too; confirmed_email is there only once it was confirmed. The
// field "verified" is the blue tick and says nothing about the address.
func Twitter(clientID, clientSecret string) Provider {
	return Provider{
		Name: "twitter", ClientID: clientID, ClientSecret: clientSecret,
		Scopes:      []string{"users.read", "tweet.read", "users.email"},
		AuthURL:     "https://x.com/i/oauth2/authorize",
		TokenURL:    "https://api.x.com/2/oauth2/token",
		UserInfoURL: "https://api.x.com/2/users/me",
		basic:       true,
		fetch:       twitterProfile,
	}
}

func twitterProfile(ctx context.Context, api *ProviderAPI) (Profile, error) {
	var u struct {
		Data struct {
			ID       string `json:"id"`
			Name     string `json:"name"`
			Username string `json:"username"`
			Email    string `json:"confirmed_email"`
		} `json:"data"`
	}
	err := api.Get(ctx, withQuery(api.provider.UserInfoURL, url.Values{"user.fields": {"confirmed_email"}}), &u)
	d := u.Data
	return Profile{Subject: d.ID, Email: d.Email, EmailVerified: d.Email != "", FullName: cmp.Or(d.Name, d.Username)}, err
}

// Discord signs in with Discord accounts.
//
// https://discord.com/developers/docs/topics/oauth2,
// https://discord.com/developers/docs/resources/user (November 2026). PKCE is
// accepted, S256 only.
func Discord(clientID, clientSecret string) Provider {
	return Provider{
		Name: "discord", ClientID: clientID, ClientSecret: clientSecret,
		Scopes:      []string{"identify", "email"},
		AuthURL:     "https://discord.com/oauth2/authorize",
		TokenURL:    "https://discord.com/api/oauth2/token",
		UserInfoURL: "https://discord.com/api/users/@me",
		fetch:       discordProfile,
	}
}

func discordProfile(ctx context.Context, api *ProviderAPI) (Profile, error) {
	var u struct {
		ID         string `json:"id"`
		Username   string `json:"username"`
		GlobalName string `json:"global_name"`
		Email      string `json:"email"`
		Verified   bool   `json:"verified"` // the address
	}
	err := api.Get(ctx, api.provider.UserInfoURL, &u)
	return Profile{Subject: u.ID, Email: u.Email, EmailVerified: u.Verified, FullName: cmp.Or(u.GlobalName, u.Username)}, err
}

// consumers is the tenant of personal Microsoft accounts.
const consumers = "9188040d-6c67-4c5b-b112-36a304b66dad"

// Microsoft signs in with Microsoft accounts, of companies and personal ones.
// Set Tenant to let in only one company. An address is believed only if it
// comes with the optional claim xms_edov, or from a personal account: any tenant's
// administrator can write any address (nOAuth). Add xms_edov and email to the
// ID token in the app registration.
//
// https://learn.microsoft.com/en-us/entra/identity-platform/id-token-claims-reference,
// …/optional-claims-reference, …/migrate-off-email-claim-authorization
// (November 2026). xms_edov has been seen as true, 1, "1" and "true".
func Microsoft(clientID, clientSecret string) Provider {
	return Provider{
		Name: "microsoft", ClientID: clientID, ClientSecret: clientSecret,
		Scopes:   []string{"openid", "email", "profile"},
		Issuer:   "https://login.microsoftonline.com/{tenant}/v2.0",
		AuthURL:  "https://login.microsoftonline.com/{tenant}/oauth2/v2.0/authorize",
		TokenURL: "https://login.microsoftonline.com/{tenant}/oauth2/v2.0/token",
		JWKSURL:  "https://login.microsoftonline.com/{tenant}/discovery/v2.0/keys",
		Tenant:   "common", openID: true, idOnly: true, judge: judgeMicrosoft,
	}
}

// judgeMicrosoft checks that the token's issuer is the token's tenant, and the
// tenant one that may sign in.
func judgeMicrosoft(p *Provider, c *idClaims) error {
	tid := strings.ToLower(c.TenantID)
	if !isID(tid) || c.Issuer != strings.ReplaceAll(p.Issuer, "{tenant}", tid) {
		return fmt.Errorf("issuer %q is not the one of tenant %q", c.Issuer, c.TenantID)
	}
	switch p.Tenant {
	case "common":
	case "organizations":
		if tid == consumers {
			return errors.New("a personal account, where only those of organizations may sign in")
		}
	case "consumers":
		if tid != consumers {
			return errors.New("an account of an organization, where only personal ones may sign in")
		}
	default:
		if tid != strings.ToLower(p.Tenant) {
			return fmt.Errorf("tenant %q is not the one configured", c.TenantID)
		}
	}
	c.EmailVerified = c.DomainOwnerVerified || flag(tid == consumers)
	return nil
}

// Apple signs in with Apple accounts. The private key is the .p8 file (PEM) that
// belongs to keyID; the client's secret is made from it for every request.
//
// https://developer.apple.com/documentation/signinwithapplerestapi and
// https://developer.apple.com/documentation/signinwithapplejs/authorizationi/id_token
// (November 2026). The callback is a form post of Apple's page; the name comes
// with it, unsigned, at the first sign-in only. email_verified is a string or a
// boolean; the address may be a relay of Apple's, which forwards.
func Apple(clientID, teamID, keyID string, privateKey []byte) Provider {
	p := Provider{
		Name: "apple", ClientID: clientID,
		Scopes:   []string{"name", "email"},
		Issuer:   "https://appleid.apple.com",
		AuthURL:  "https://appleid.apple.com/auth/authorize",
		TokenURL: "https://appleid.apple.com/auth/token",
		JWKSURL:  "https://appleid.apple.com/auth/keys",
		openID:   true, idOnly: true, formPost: true,
	}
	key, err := appleKey(privateKey)
	if err == nil && (teamID == "" || keyID == "") {
		err = errors.New("the team id or the key id is missing")
	}
	p.err = err
	p.secret = func(p *Provider, now time.Time) (string, error) {
		t := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{
			"iss": teamID, "sub": p.ClientID, "aud": "https://appleid.apple.com", "iat": now.Unix(), "exp": now.Add(appleSecretLife).Unix(),
		})
		t.Header["kid"] = keyID
		return t.SignedString(key)
	}
	return p
}

// appleSecretLife is short, because a new secret is made for every request.
const appleSecretLife = 5 * time.Minute

func appleKey(p8 []byte) (*ecdsa.PrivateKey, error) {
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
		return nil, errors.New("the private key is not of the curve P-256")
	}
	return key, nil
}

// appleName is the name in what Apple posts beside the code.
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
