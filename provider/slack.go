package provider

import "errors"

// Slack signs in with Slack accounts. One person has an account, and so an identity, in
// each workspace. Email addresses always count as unverified, because the owners of a
// workspace change the addresses of its members. Set AuthParams["team"] to lead users to
// one workspace; it does not keep out users of others.
//
// https://docs.slack.dev/authentication/sign-in-with-slack/ (November 2026),
// https://slack.com/help/articles/225531168-Change-a-members-email-address for the
// addresses, https://api.slack.com/types/user for user ids, which are unique in their
// workspace only. Sign in with Slack documents a nonce and no PKCE, see NoPKCE. Errors of
// the token endpoint have status 200.
func Slack(clientID, clientSecret string, opts ...Option) Provider {
	return Provider{
		Name: "slack", ClientID: clientID, ClientSecret: clientSecret,
		Scopes:      []string{"openid", "email", "profile"},
		Issuer:      "https://slack.com",
		AuthURL:     "https://slack.com/openid/connect/authorize",
		TokenURL:    "https://slack.com/api/openid.connect.token",
		UserInfoURL: "https://slack.com/api/openid.connect.userInfo",
		JWKSURL:     "https://slack.com/openid/connect/keys",
		OpenID:      true, NoPKCE: true,
		ProfileOf: slackProfile,
	}.with(opts)
}

func slackProfile(p *Provider, c Claims) (Profile, error) {
	who, err := unverifiedProfile(p, c)
	team := c.Text("https://slack.com/team_id")
	if team == "" || who.Subject == "" {
		return Profile{}, errors.New("the claims name no workspace or no user")
	}
	who.Subject = team + ":" + who.Subject
	return who, err
}
