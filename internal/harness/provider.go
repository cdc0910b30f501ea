package harness

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/host"
)

// OwnerOf returns the user id of a response's session, or "" if it has no active session.
func (w *World) OwnerOf(a *Answer) string {
	if a.Status != 200 {
		return ""
	}
	s := DecodeAs[Session](a)
	if s.AccessToken == "" || !w.Alive(s.AccessToken) {
		return ""
	}
	return s.User.ID
}

var EvilGit = authtest.Person{Subject: "667", Email: "evil@example.com", EmailVerified: true}

// NewProviderWorld is a service with every kind of provider, all served by one fake.
func NewProviderWorld(t *testing.T, opts ...auth.Option) (*World, *authtest.Provider) {
	t.Helper()
	idp := authtest.StartProvider(t)
	w := NewWorld(t, append([]auth.Option{auth.WithProvider(
		idp.OIDC("oidc"), idp.Google(), idp.Microsoft(), idp.Apple(), idp.GitHub(), idp.Facebook(), idp.Twitter(), idp.Discord(),
	)}, opts...)...)
	idp.Now = w.Clock.Now
	return w, idp
}

// Visitor is a browser's cookies.
type Visitor struct {
	*World
	idp     *authtest.Provider
	Cookies map[string]*http.Cookie
}

func (w *World) NewVisitor(idp *authtest.Provider) *Visitor {
	return &Visitor{World: w, idp: idp, Cookies: map[string]*http.Cookie{}}
}

func (v *Visitor) Do(method, path string, body any, headers ...Header) *Answer {
	v.T.Helper()
	var list []string
	for _, c := range v.Cookies {
		list = append(list, c.Name+"="+c.Value)
	}
	if len(list) > 0 {
		headers = append(headers, Header{"Cookie", strings.Join(list, "; ")})
	}
	a := v.World.Do(method, path, body, headers...)
	for _, c := range (&http.Response{Header: a.Header}).Cookies() {
		v.Cookies[c.Name] = c
	}
	return a
}

// Start starts a sign-in and returns the provider's URL. A redirect that will carry a code
// gets the challenge of Verifier.
func (v *Visitor) Start(provider, query string) string {
	v.T.Helper()
	return v.Do("GET", "/oauth/"+provider+"?"+v.withChallenge(query), nil).Want(302).Header.Get("Location")
}

func (w *World) withChallenge(query string) string {
	if strings.Contains(query, "redirect_to=") && !strings.Contains(query, "code_challenge=") && host.Of(w.Auth).Site().SignInURL == "" {
		query += "&code_challenge=" + ChallengeOf(Verifier)
	}
	return query
}

// Back returns from the provider with its parameters.
func (v *Visitor) Back(provider string, with url.Values) *Answer {
	v.T.Helper()
	if provider == "apple" {
		return v.Do("POST", "/oauth/apple/callback", with.Encode(), Form)
	}
	return v.Do("GET", "/oauth/"+provider+"/callback?"+with.Encode(), nil)
}

// SignIn performs a complete sign-in.
func (v *Visitor) SignIn(provider string, who authtest.Person, query string) *Answer {
	v.T.Helper()
	to := v.Start(provider, query)
	v.idp.SignsIn(who)
	return v.Back(provider, v.idp.Authorize(v.T, to))
}

func (a *Answer) Location() *url.URL {
	a.T.Helper()
	u, err := url.Parse(a.Want(303).Header.Get("Location"))
	if err != nil {
		a.T.Fatal(err)
	}
	return u
}

var Ada = authtest.Person{Subject: "1815", Email: "ada@example.com", EmailVerified: true, Name: "Ada Lovelace"}

const Verifier = "a-code-verifier-of-at-least-43-characters-01"

func ChallengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
