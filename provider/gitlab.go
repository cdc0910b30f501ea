package provider

const gitLabIssuer = "https://gitlab.com"

// GitLab signs in with accounts of gitlab.com. For a self-managed server set Issuer to its
// URL; the endpoints come from its discovery document. The application in GitLab needs the
// scopes openid, email and profile. Email addresses of a self-managed server always count
// as unverified, because its administrators create users with any address.
//
// https://docs.gitlab.com/integration/openid_connect_provider/ for the claim
// email_verified, https://docs.gitlab.com/user/profile/account/create_accounts/ for
// self-managed servers (November 2026).
func GitLab(clientID, clientSecret string, opts ...Option) Provider {
	return Provider{
		Name: "gitlab", ClientID: clientID, ClientSecret: clientSecret,
		Scopes: []string{"openid", "email", "profile"},
		Issuer: gitLabIssuer, OpenID: true, Discovery: true,
		ProfileOf: gitLabProfile,
	}.with(opts)
}

func gitLabProfile(p *Provider, c Claims) (Profile, error) {
	if p.Issuer != gitLabIssuer {
		return unverifiedProfile(p, c)
	}
	return c.Profile(), nil
}
