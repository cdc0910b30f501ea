package provider_test

import (
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth/provider"
)

// The documented requirements of each service: with a missing scope there is no email
// address, with another issuer no sign-in.
func TestServiceRequirements(t *testing.T) {
	all := every(t)
	for name, want := range map[string]struct{ scopes, issuer, userInfo, denied string }{
		"google":    {"openid email profile", "https://accounts.google.com", "https://openidconnect.googleapis.com/v1/userinfo", ""},
		"microsoft": {"openid email profile", "https://login.microsoftonline.com/{tenant}/v2.0", "", ""},
		"apple":     {"name email", "https://appleid.apple.com", "", "user_cancelled_authorize"},
		"github":    {"read:user user:email", "https://github.com/login/oauth", "https://api.github.com/user", ""},
		"facebook":  {"email public_profile", "", "https://graph.facebook.com/v26.0/me", "user_denied"},
		"twitter":   {"users.read tweet.read users.email", "", "https://api.x.com/2/users/me", ""},
		"discord":   {"identify email", "", "https://discord.com/api/users/@me", ""},
		"linkedin":  {"openid email profile", "https://www.linkedin.com/oauth", "https://api.linkedin.com/v2/userinfo", "user_cancelled_login user_cancelled_authorize"},
		"line":      {"openid email profile", "https://access.line.me", "", ""},
		"gitlab":    {"openid email profile", "https://gitlab.com", "", ""},
		"slack":     {"openid email profile", "https://slack.com", "https://slack.com/api/openid.connect.userInfo", ""},
		"twitch":    {"openid user:read:email", "https://id.twitch.tv/oauth2", "https://id.twitch.tv/oauth2/userinfo", ""},
		"spotify":   {"user-read-email", "", "https://api.spotify.com/v1/me", ""},
		"notion":    {"", "", "https://api.notion.com/v1/users/me", ""},
		"kakao":     {"account_email profile_nickname", "", "https://kapi.kakao.com/v2/user/me", ""},
		"oidc":      {"openid email profile", "https://id.example.com", "", ""},
		"own":       {"", "", "", ""},
	} {
		p := all[name]
		if (p.NoNonce != (name == "linkedin")) || p.NoPKCE != slices.Contains([]string{"linkedin", "slack", "notion"}, name) || p.HS256 != (name == "line") || p.UserInfoJWT {
			t.Errorf("%s: no nonce %t, no PKCE %t, HS256 %t, userinfo as JWT %t", name, p.NoNonce, p.NoPKCE, p.HS256, p.UserInfoJWT)
		}
		if strings.Join(p.Scopes, " ") != want.scopes || p.Issuer != want.issuer || p.UserInfoURL != want.userInfo || strings.Join(p.DeniedBy, " ") != want.denied {
			t.Errorf("%s: %q %q %q %q", name, p.Scopes, p.Issuer, p.UserInfoURL, p.DeniedBy)
		}
		if p.FormPost != (name == "apple") || p.Discovery != (name == "oidc" || name == "gitlab") || (p.ClientSecret == "") != (name == "apple") {
			t.Errorf("%s: form_post %t, discovery %t, secret %q", name, p.FormPost, p.Discovery, p.ClientSecret)
		}
	}
	own := provider.OAuth2("own", provider.OAuth2Options{Scopes: []string{"me"}, BasicAuth: true})
	if !slices.Equal(own.Scopes, []string{"me"}) || !own.BasicAuth {
		t.Errorf("the options come to %q, basic authentication %t", own.Scopes, own.BasicAuth)
	}
}

// Parameters of the protocol cannot be set.
func TestReservedParameters(t *testing.T) {
	for _, name := range []string{"client_id", "redirect_uri", "response_type", "scope", "state", "nonce", "code_challenge", "code_challenge_method", "response_mode"} {
		p := provider.Google("id", "s", func(p *provider.Provider) { p.AuthParams = map[string]string{name: "mine"} })
		if err := p.Validate(); err == nil || err.Error() != fmt.Sprintf("AuthParams sets %q, which Authmount sets itself", name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := provider.Google("id", "s", func(p *provider.Provider) { p.AuthParams = map[string]string{"prompt": "login"} }).Validate(); err != nil {
		t.Error(err)
	}
}

// The other side of each rule of TestValidate.
func TestValidateOneProblem(t *testing.T) {
	key, _ := p8(t, elliptic.P256())
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(other)
	if err != nil {
		t.Fatal(err)
	}
	tenant := func(id string) provider.Provider {
		return provider.Microsoft("id", "s", func(p *provider.Provider) { p.Tenant = id })
	}
	const id = "72F988BF-86f1-41af-91ab-2d7cd011db47"
	for name, c := range map[string]struct {
		p    provider.Provider
		want string // "" for none
	}{
		"a public client":              {provider.OIDC("oidc", "https://op.example.com", "id", ""), ""},
		"endpoints without an issuer":  {provider.Google("id", "s", func(p *provider.Provider) { p.Issuer = "" }), "the issuer is missing"},
		"discovery without ID tokens":  {provider.Provider{Name: "own", ClientID: "id", Discovery: true, Profile: whoever}, "the issuer is missing"},
		"no token endpoint":            {provider.Google("id", "s", func(p *provider.Provider) { p.TokenURL = "" }), "AuthURL and TokenURL are missing"},
		"Apple's key without its id":   {provider.Apple("id", "team", "", key), "the team id or the key id is missing"},
		"Apple's key of another kind":  {provider.Apple("id", "team", "key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "the private key is not on the curve P-256"},
		"nothing of Apple's":           {provider.Apple("id", "", "", nil), "the private key is not PEM"},
		"one tenant":                   {tenant(id), ""},
		"personal accounts":            {tenant("consumers"), ""},
		"a tenant as others write it":  {tenant(strings.ReplaceAll(id, "-", "")), "the tenant is"},
		"a tenant of as many letters":  {tenant(strings.Repeat("x", len(id))), "the tenant is"},
		"a tenant in a form with more": {tenant("{" + id + "}"), "the tenant is"},
	} {
		err := c.p.Validate()
		if (err == nil) != (c.want == "") || (err != nil && (!strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n"))) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The user that each service describes.
func TestProfiles(t *testing.T) {
	ada := provider.Profile{Subject: "7", Email: "ada@example.com", EmailVerified: true, FullName: "Ada"}
	unverified, nameless, noAddress := ada, ada, provider.Profile{Subject: "7", FullName: "Ada"}
	unverified.EmailVerified = false
	nameless.FullName = "countess"
	all := every(t)
	for name, c := range map[string]struct {
		service string
		pages   map[string]string // by path and query
		want    provider.Profile
	}{
		"Discord":              {"discord", map[string]string{"/me": `{"id":"7","username":"countess","global_name":"Ada","email":"ada@example.com","verified":true}`}, ada},
		"Discord's user name":  {"discord", map[string]string{"/me": `{"id":"7","username":"countess","email":"ada@example.com","verified":true}`}, nameless},
		"Facebook, with proof": {"facebook", map[string]string{"/me?appsecret_proof=" + proof + "&fields=id%2Cname%2Cemail": `{"id":"7","name":"Ada","email":"ada@example.com"}`}, unverified},
		"X":                    {"twitter", map[string]string{"/me?user.fields=confirmed_email": `{"data":{"id":"7","name":"Ada","username":"countess","confirmed_email":"ada@example.com"}}`}, ada},
		"X without an address": {"twitter", map[string]string{"/me?user.fields=confirmed_email": `{"data":{"id":"7","name":"Ada"}}`}, noAddress},
		"X's user name":        {"twitter", map[string]string{"/me?user.fields=confirmed_email": `{"data":{"id":"7","username":"countess","confirmed_email":"ada@example.com"}}`}, nameless},
		"GitHub": {"github", map[string]string{
			"/me": `{"id":7,"login":"countess","name":"Ada"}`, "/me/emails": `[{"email":"x@example.com","verified":true},{"email":"ada@example.com","primary":true,"verified":true},{"email":"y@example.com"}]`,
		}, ada},
		"GitHub's login": {"github", map[string]string{
			"/me": `{"id":7,"login":"countess"}`, "/me/emails": `[{"email":"ada@example.com","primary":true,"verified":true}]`,
		}, nameless},
		"GitHub, not verified": {"github", map[string]string{
			"/me": `{"id":7,"name":"Ada"}`, "/me/emails": `[{"email":"ada@example.com","primary":true}]`,
		}, unverified},
		"GitHub, withheld":  {"github", map[string]string{"/me": `{"id":7,"name":"Ada"}`, "/me/emails": "403"}, noAddress},
		"GitHub, not there": {"github", map[string]string{"/me": `{"id":7,"name":"Ada"}`, "/me/emails": "404"}, noAddress},
	} {
		if got, err := profile(t, all[c.service], c.pages); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

// A service vouches for an address only if its documentation says how it verified it. Each
// row has the response in which the service says the best that it can, the same response
// without that, and the place in the documentation.
func TestVouching(t *testing.T) {
	const sub = `"sub":"7","email":"ada@example.com"`
	verified, unverified := "{"+sub+`,"email_verified":true}`, "{"+sub+`,"email_verified":false}`
	silent := "{" + sub + "}"
	slack := func(doc string) string { return strings.Replace(doc, "{", `{"https://slack.com/team_id":"T",`, 1) }
	all := every(t)
	all["gitlab, self-managed"] = provider.GitLab("id", "s", func(p *provider.Provider) { p.Issuer = "https://git.example.com" })
	rows := map[string]struct {
		best, other string // claims, or the body at UserInfoURL
		vouches     bool
		place       string
	}{
		"google":    {verified, unverified, true, "https://developers.google.com/identity/openid-connect/openid-connect, email_verified"},
		"microsoft": {strings.Replace(verified, "{", `{"xms_edov":true,`, 1), verified, true, "https://learn.microsoft.com/en-us/entra/identity-platform/migrate-off-email-claim-authorization, xms_edov"},
		"apple":     {verified, unverified, true, "https://developer.apple.com/documentation/signinwithapplejs/authorizationi/id_token, email_verified"},
		"oidc":      {verified, unverified, true, "OpenID Connect Core 1.0, section 5.1, email_verified"},
		"github":    {"", "", true, "https://docs.github.com/en/rest/users/emails, verified (TestProfiles)"},
		"facebook":  {`{"id":"7","email":"ada@example.com"}`, `{"id":"7"}`, false, "https://developers.facebook.com/docs/graph-api/reference/user, email: no word about verification"},
		"twitter":   {`{"data":{"id":"7","confirmed_email":"ada@example.com"}}`, `{"data":{"id":"7","email":"ada@example.com"}}`, true, "https://docs.x.com/x-api/users/get-my-user, confirmed_email"},
		"discord":   {`{"id":"7","email":"ada@example.com","verified":true}`, `{"id":"7","email":"ada@example.com"}`, true, "https://discord.com/developers/docs/resources/user, verified"},
		"own":       {"", "", false, "the application's own function"},

		"linkedin":             {verified, silent, true, "https://learn.microsoft.com/en-us/linkedin/consumer/integrations/self-serve/sign-in-with-linkedin-v2, email_verified: indicator that member's primary email has been verified"},
		"line":                 {verified, silent, false, "https://developers.line.biz/en/docs/line-login/verify-id-token/, payload, email: no word about verification"},
		"gitlab":               {verified, unverified, true, "https://docs.gitlab.com/integration/openid_connect_provider/, shared information, email_verified"},
		"gitlab, self-managed": {verified, unverified, false, "https://docs.gitlab.com/user/profile/account/create_accounts/: administrators create users with any address"},
		"slack":                {slack(verified), slack(silent), false, "https://slack.com/help/articles/225531168-Change-a-members-email-address: owners change the addresses of members"},
		"twitch":               {verified, unverified, true, "https://dev.twitch.tv/docs/authentication/getting-tokens-oidc/, requesting claims, email_verified"},
		"spotify":              {`{"id":"7","email":"ada@example.com","email_verified":true}`, `{"id":"7","email":"ada@example.com"}`, false, "https://developer.spotify.com/documentation/web-api/reference/get-current-users-profile, email: unverified"},
		"notion":               {`{"bot":{"owner":{"user":{"id":"7","person":{"email":"ada@example.com","email_verified":true}}}}}`, `{}`, false, "https://developers.notion.com/reference/user, person.email: no word about verification"},
		"kakao": {
			`{"id":7,"kakao_account":{"email":"ada@example.com","is_email_valid":true,"is_email_verified":true}}`,
			`{"id":7,"kakao_account":{"email":"ada@example.com","is_email_valid":false,"is_email_verified":true}}`, true,
			"https://developers.kakao.com/docs/latest/en/kakaologin/rest-api, kakao_account, is_email_valid and is_email_verified",
		},
	}
	for name, p := range all {
		row, ok := rows[name]
		if !ok || row.place == "" {
			t.Errorf("%s: no row says whether the service verifies addresses", name)
			continue
		}
		if row.best == "" {
			continue
		}
		read := func(doc string) provider.Profile {
			if !p.OpenID {
				who, err := profile(t, p, map[string]string{strings.TrimSuffix("/me?"+query[name], "?"): doc})
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				return who
			}
			var c provider.Claims
			if err := json.Unmarshal([]byte(doc), &c); err != nil {
				t.Fatal(err)
			}
			if p.ProfileOf == nil {
				return c.Profile()
			}
			who, err := p.ProfileOf(&p, c)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			return who
		}
		if who := read(row.best); who.EmailVerified != row.vouches || who.Email != "ada@example.com" {
			t.Errorf("%s: %+v", name, who)
		}
		if who := read(row.other); who.EmailVerified {
			t.Errorf("%s: vouches for %+v", name, who)
		}
	}
}

// query is the query of the requests at UserInfoURL.
var query = map[string]string{"twitter": "user.fields=confirmed_email", "facebook": "appsecret_proof=" + proof + "&fields=id%2Cname%2Cemail"}

// A Slack user's id is unique in their workspace only.
func TestSlackSubject(t *testing.T) {
	p := provider.Slack("id", "s")
	for _, c := range []provider.Claims{{"sub": "U"}, {"https://slack.com/team_id": "T"}} {
		if who, err := p.ProfileOf(&p, c); err == nil {
			t.Errorf("%v: %+v", c, who)
		}
	}
	a, _ := p.ProfileOf(&p, provider.Claims{"sub": "U", "https://slack.com/team_id": "T"})
	b, _ := p.ProfileOf(&p, provider.Claims{"sub": "U", "https://slack.com/team_id": "S"})
	if a.Subject != "T:U" || a.Subject == b.Subject {
		t.Errorf("%q and %q", a.Subject, b.Subject)
	}
}

// Notion's bot of a workspace is nobody.
func TestNotionWorkspace(t *testing.T) {
	who, err := profile(t, provider.Notion("id", "s"), map[string]string{"/me": `{"object":"user","id":"bot","bot":{"owner":{"type":"workspace","workspace":true}}}`})
	if err != nil || who.Subject != "" {
		t.Errorf("%+v, %v", who, err)
	}
}

// proof is HMAC-SHA256 of the access token by the client secret.
const proof = "c6a9d13ce09b1abfe6d15aa2861c9cce2fa18eb554583cfe79c5b82b1d4219b2"

// profile calls Profile against a server with these pages; a page may be a status.
func profile(t *testing.T, p provider.Provider, pages map[string]string) (provider.Profile, error) {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var status int
		body, ok := pages[r.URL.String()]
		if _, err := fmt.Sscanf(body, "%3d", &status); !ok || err == nil {
			w.WriteHeader(max(status, http.StatusBadRequest))
		}
		_, _ = w.Write([]byte(body))
	}))
	defer srv.Close()
	p.UserInfoURL = srv.URL + "/me"
	return p.Profile(t.Context(), provider.NewAPI(p, nil, "t0ken"))
}

// An outage is neither a user without an email address nor a missing user.
func TestProfileOutage(t *testing.T) {
	all := every(t)
	for _, name := range []string{"discord", "facebook", "twitter", "github", "spotify", "notion", "kakao"} {
		var status *provider.StatusError
		if _, err := profile(t, all[name], map[string]string{"/me": "503"}); !errors.As(err, &status) {
			t.Errorf("%s: %v", name, err)
		}
		p := all[name]
		p.UserInfoURL = "https://%zz"
		if got, err := p.Profile(t.Context(), provider.NewAPI(p, nil, "t0ken")); err == nil {
			t.Errorf("%s at no address: %+v", name, got)
		}
	}
	var status *provider.StatusError
	if got, err := profile(t, all["github"], map[string]string{"/me": `{"id":7}`, "/me/emails": "500"}); !errors.As(err, &status) || got != (provider.Profile{}) {
		t.Errorf("GitHub without its addresses: %+v, %v", got, err)
	}
	if got, err := profile(t, all["github"], map[string]string{"/me": "404", "/me/emails": `[]`}); err == nil {
		t.Errorf("GitHub without anybody: %+v", got)
	}
	if got, err := profile(t, all["github"], map[string]string{"/me": `{"id":7}`, "/me/emails": `{}`}); err == nil {
		t.Errorf("GitHub's addresses in another shape: %+v", got)
	}
}
