package provider

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// Microsoft signs in with Microsoft accounts of companies and persons. Set Tenant to
// admit only one company. An email address counts as verified only with the optional
// claim xms_edov or from a personal account, because any tenant's administrator can enter
// any address (nOAuth). Add xms_edov and email to the ID token in the app registration.
//
// https://learn.microsoft.com/en-us/entra/identity-platform/id-token-claims-reference,
// …/optional-claims-reference, …/migrate-off-email-claim-authorization (November 2026).
// xms_edov has been seen as true, 1, "1" and "true".
func Microsoft(clientID, clientSecret string, opts ...Option) Provider {
	return Provider{
		Name: "microsoft", ClientID: clientID, ClientSecret: clientSecret,
		Scopes:   []string{"openid", "email", "profile"},
		Issuer:   "https://login.microsoftonline.com/{tenant}/v2.0",
		AuthURL:  "https://login.microsoftonline.com/{tenant}/oauth2/v2.0/authorize",
		TokenURL: "https://login.microsoftonline.com/{tenant}/oauth2/v2.0/token",
		JWKSURL:  "https://login.microsoftonline.com/{tenant}/discovery/v2.0/keys",
		Tenant:   "common", OpenID: true,
		IssuerOf: microsoftIssuer, ProfileOf: microsoftProfile, check: checkTenant,
	}.with(opts)
}

// personalTenant is the tenant of personal Microsoft accounts.
const personalTenant = "9188040d-6c67-4c5b-b112-36a304b66dad"

func checkTenant(p *Provider) error {
	words := []string{"common", "organizations", "consumers"}
	if !slices.Contains(words, p.Tenant) && !isTenantID(strings.ToLower(p.Tenant)) {
		return fmt.Errorf("the tenant is %q; it must be the tenant's id, or one of %q", p.Tenant, words)
	}
	return nil
}

func isTenantID(s string) bool {
	id, err := uuid.Parse(s)
	return err == nil && id.String() == s
}

// microsoftIssuer returns the issuer of the token's tenant.
func microsoftIssuer(p *Provider, c Claims) string {
	tid := strings.ToLower(c.Text("tid"))
	if !isTenantID(tid) {
		return ""
	}
	return strings.ReplaceAll(p.Issuer, tenantMark, tid)
}

// microsoftProfile rejects accounts of other tenants than the configured ones.
func microsoftProfile(p *Provider, c Claims) (Profile, error) {
	tid := strings.ToLower(c.Text("tid"))
	personal := tid == personalTenant
	switch p.Tenant {
	case "common":
	case "organizations":
		if personal {
			return Profile{}, errors.New("a personal account, but only accounts of organizations may sign in")
		}
	case "consumers":
		if !personal {
			return Profile{}, errors.New("an account of an organization, but only personal accounts may sign in")
		}
	default:
		if tid != strings.ToLower(p.Tenant) {
			return Profile{}, errors.New("an account of another tenant than the configured one")
		}
	}
	who := c.Profile()
	who.EmailVerified = personal || c.Flag("xms_edov")
	return who, nil
}
