// Package oidc is the client side of OpenID Connect: discovery, key sets and ID tokens.
// It decides whether a document or token is genuine, but not which user to sign in. Its
// errors quote nothing that a provider sent.
package oidc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/authmount/auth/internal/outbound"
)

const documentLife = time.Hour

// Document has the fields of a discovery document that a client needs (OpenID Connect
// Discovery 1.0, section 3).
type Document struct {
	AuthURL, TokenURL, UserInfoURL, JWKSURL string

	BasicAuth   bool     // the client authenticates in the header
	NamesIssuer bool     // every callback names the issuer (RFC 9207)
	Algorithms  []string // signature algorithms of ID tokens, never empty
}

// Discovery reads an issuer's document on first use, and again after an hour. It is safe
// for concurrent use.
type Discovery struct {
	client   *http.Client
	issuer   string
	now      func() time.Time
	document latest[Document]
}

// NewDiscovery returns the discovery of one issuer. timeout limits each fetch.
func NewDiscovery(client *http.Client, issuer string, now func() time.Time, timeout time.Duration) *Discovery {
	return &Discovery{client: client, issuer: issuer, now: now, document: latest[Document]{timeout: timeout}}
}

// Document returns the issuer's document. If it cannot be read again, the previous one is
// returned.
func (d *Discovery) Document(ctx context.Context) (Document, error) {
	doc, err := d.document.get(ctx, d.now(), documentLife, d.fetch)
	if err != nil {
		return Document{}, fmt.Errorf("discovery: %w", err)
	}
	return doc, nil
}

// fetch reads the document and checks that it is of the configured issuer.
func (d *Discovery) fetch(ctx context.Context) (Document, error) {
	var w struct {
		Issuer   string   `json:"issuer"`
		Auth     string   `json:"authorization_endpoint"`
		Token    string   `json:"token_endpoint"`
		UserInfo string   `json:"userinfo_endpoint"`
		JWKS     string   `json:"jwks_uri"`
		Methods  []string `json:"token_endpoint_auth_methods_supported"`
		Algs     []string `json:"id_token_signing_alg_values_supported"`
		Named    bool     `json:"authorization_response_iss_parameter_supported"`
	}
	err := outbound.GetJSON(ctx, d.client, strings.TrimSuffix(d.issuer, "/")+"/.well-known/openid-configuration", &w)
	switch {
	case err != nil:
		return Document{}, err
	case w.Issuer != d.issuer && strings.TrimSuffix(w.Issuer, "/") == strings.TrimSuffix(d.issuer, "/"):
		return Document{}, fmt.Errorf("the document's issuer and the configured one, %q, differ by a slash at the end", d.issuer)
	case w.Issuer != d.issuer:
		return Document{}, fmt.Errorf("the document's issuer is not the configured one, %q", d.issuer)
	}
	for name, s := range map[string]string{
		"authorization_endpoint": w.Auth, "token_endpoint": w.Token, "jwks_uri": w.JWKS, "userinfo_endpoint": w.UserInfo,
	} {
		if s == "" && name == "userinfo_endpoint" {
			continue
		}
		err := outbound.CheckURL(s)
		if err == nil && strings.HasPrefix(d.issuer, "https:") && !strings.HasPrefix(s, "https:") {
			err = errors.New("is not https") // http is only allowed if the issuer itself uses it
		}
		if err != nil {
			return Document{}, fmt.Errorf("%s %w", name, err)
		}
	}
	return Document{
		AuthURL: w.Auth, TokenURL: w.Token, UserInfoURL: w.UserInfo, JWKSURL: w.JWKS, NamesIssuer: w.Named,
		// Absent means client_secret_basic (Discovery, section 3).
		BasicAuth:  w.Methods == nil || slices.Contains(w.Methods, "client_secret_basic"),
		Algorithms: asymmetric(w.Algs),
	}, nil
}

// signatureAlgorithms are the accepted signature algorithms of ID tokens. They never include
// symmetric ones or "none", even if a provider lists those.
func signatureAlgorithms() []jose.SignatureAlgorithm {
	return []jose.SignatureAlgorithm{
		jose.RS256, jose.RS384, jose.RS512, jose.ES256, jose.ES384, jose.ES512, jose.PS256, jose.PS384, jose.PS512, jose.EdDSA,
	}
}

func asymmetric(named []string) []string {
	known := signatureAlgorithms()
	algs := slices.DeleteFunc(slices.Clone(named), func(alg string) bool {
		return !slices.Contains(known, jose.SignatureAlgorithm(alg))
	})
	if len(algs) == 0 {
		return []string{"RS256"} // every provider must support it
	}
	return algs
}
