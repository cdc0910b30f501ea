package admin_test

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// providerStaff returns an account that signs in through one provider only, has an authenticator
// app and waits for the acceptance of a role.
func (o *office) providerStaff(idp *authtest.Provider, name string) (s *authtest.SignedIn, p authtest.Person, secret, token string) {
	o.t.Helper()
	owner := o.operator(name+"-owner@example.com", "*")
	p = authtest.Person{Subject: name, Email: name + "@example.com", EmailVerified: true}
	s = o.SignInWith(o.t, idp, plantedIDP, p)
	secret, _ = o.enrolled(auth.Caller{UserID: s.User.ID, SessionID: s.SessionID})
	o.do(owner, "PUT /users/"+s.User.ID+"/roles", `{"roles":["support"],"address":"`+p.Email+`"}`).want(200)
	return s, p, secret, o.invitedToken(p.Email)
}

var providerLinks = regexp.MustCompile(`href="([^"]*/oauth/` + plantedIDP + `\?[^"]*)"`)

// Staff with one provider and a second factor accept on the page of the link: the provider,
// then the factor. Both stay.
func TestAcceptanceByProviderAndFactor(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		idp := authtest.StartProvider(t)
		o := newOffice(t, st, inCookies(auth.WithProvider(idp.OIDC(plantedIDP)), auth.WithMFA(auth.MFAOptions{TrustDevices: 24 * time.Hour}))...)
		s, ada, secret, token := o.providerStaff(idp, "ada")
		b := o.browser()
		atProvider := func() {
			b.open("https://auth.test/auth/v1/invitations/accept?token=" + token)
			link := providerLinks.FindStringSubmatch(b.body)
			if link == nil {
				t.Fatalf("no provider on the page: %s", b.body)
			}
			b.open(strings.ReplaceAll(link[1], "&amp;", "&"))
			idp.SignsIn(ada)
			b.open("https://auth.test/auth/v1/oauth/" + plantedIDP + "/callback?" + idp.Authorize(t, b.at).Encode())
			b.shows(200, `name="code"`)
		}
		atProvider()
		if !o.waits(s.User.ID) {
			t.Fatal("accepted without the second factor")
		}
		b.press("code", "000000")
		b.shows(422, `name="code"`)
		if !o.waits(s.User.ID) {
			t.Fatal("accepted with a wrong code")
		}
		b.press("code", o.appCode(secret), "trust_device", "on")
		b.shows(200, "recovery codes")
		if c := b.signedIn(); c.AAL != store.LevelAAL2 || !slices.Contains(c.Roles, "support") || c.UserID != s.User.ID {
			t.Errorf("signed in with %s, %v", c.AAL, c.Roles)
		}
		if u := o.read(s.User.ID); !u.MFAEnabled || len(u.Identities) != 1 || o.waits(u.ID) {
			t.Errorf("afterwards: %+v", u)
		}
		_, err := o.Refresh(t.Context(), auth.RefreshParams{RefreshToken: s.RefreshToken})
		wantCode(t, err, auth.CodeSessionEnded)
		b.open("https://auth.test/auth/v1/invitations/accept?token=" + token)
		b.shows(400, "")
	})
}

// The same by JSON: the second factor is asked for by the callback, or by the exchange of its
// code. A recovery code is none of the factors that stay, and a link that ended meanwhile
// accepts nothing.
func TestAcceptanceByProviderAndFactorInJSON(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		for name, to := range map[string]string{"ada": "", "ben": "https://app.test/in"} {
			idp := authtest.StartProvider(t)
			o := newOffice(t, st, auth.WithProvider(idp.OIDC(plantedIDP)), auth.WithRedirectURLs("https://app.test/*"))
			s, ada, secret, token := o.providerStaff(idp, name)
			post := func(path, body string) (v map[string]any) {
				r := httptest.NewRequestWithContext(t.Context(), "POST", "/auth/v1"+path, strings.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				o.Handler().ServeHTTP(w, r)
				o.must(json.Unmarshal(w.Body.Bytes(), &v))
				return v
			}
			b := o.browser()
			get := func(path, accept string) *httptest.ResponseRecorder {
				r := httptest.NewRequestWithContext(t.Context(), "GET", "/auth/v1"+path, nil)
				r.Header.Set("Accept", accept)
				return b.send(r)
			}
			asked := func() string {
				q := url.Values{"invitation": {token}}
				if to != "" {
					q.Set("redirect_to", to)
					q.Set("code_challenge", harness.ChallengeOf(harness.Verifier))
				}
				started := get("/oauth/"+plantedIDP+"?"+q.Encode(), "").Header().Get("Location")
				idp.SignsIn(ada)
				w := get("/oauth/"+plantedIDP+"/callback?"+idp.Authorize(t, started).Encode(), "application/json")
				v := map[string]any{}
				if to == "" {
					o.must(json.Unmarshal(w.Body.Bytes(), &v))
				} else {
					back, err := url.Parse(w.Header().Get("Location"))
					o.must(err)
					v = post("/exchange", `{"code":"`+back.Query().Get("code")+`","code_verifier":"`+harness.Verifier+`"}`)
				}
				if v["code"] != string(auth.CodeMFARequired) || !o.waits(s.User.ID) {
					t.Fatalf("%q: %v", to, v)
				}
				if f := v["factors"].([]any); len(f) != 1 || f[0] != "totp" {
					t.Errorf("%q: factors %v", to, f)
				}
				return v["mfa_token"].(string)
			}
			mfa := asked()
			if v := post("/2fa/verify", `{"mfa_token":"`+mfa+`","recovery_code":"aaaaa-aaaaa"}`); v["code"] != string(auth.CodeInvalidTOTPCode) {
				t.Errorf("%q, a recovery code: %v", to, v)
			}
			v := post("/2fa/verify", `{"mfa_token":"`+mfa+`","totp_code":"`+o.appCode(secret)+`"}`)
			if v["access_token"] == nil || len(v["recovery_codes"].([]any)) == 0 || o.waits(s.User.ID) {
				t.Fatalf("%q: %v", to, v)
			}
			if u := o.read(s.User.ID); !u.MFAEnabled || len(u.Identities) != 1 {
				t.Errorf("afterwards: %+v", u)
			}
			if v := post("/2fa/verify", `{"mfa_token":"`+mfa+`","totp_code":"`+o.appCode(secret)+`"}`); v["code"] != string(auth.CodeInvalidToken) {
				t.Errorf("%q, twice: %v", to, v)
			}
		}
	})
}

// What the acceptance depends on may end while the sign-in waits for the factor.
func TestAcceptanceByProviderThatEndsMeanwhile(t *testing.T) {
	for name, ends := range map[string]func(o *office, id string){
		"the address": func(o *office, id string) {
			moved := "moved@example.com"
			o.patch(id, store.UserPatch{Email: &moved})
		},
		"the identity": func(o *office, id string) {
			gone := store.ByIdentity(plantedIDP, "ada")
			o.patch(id, store.UserPatch{Unlink: &gone})
		},
		"the role": func(o *office, id string) {
			o.must(second(o.adm.SetRoles(o.t.Context(), admin.System("test"), admin.SetRolesParams{UserID: id})))
		},
		"the factor": func(o *office, id string) { o.patch(id, store.UserPatch{DropFactors: true}) },
	} {
		idp := authtest.StartProvider(t)
		o := newOffice(t, memstore.New(), auth.WithProvider(idp.OIDC(plantedIDP)))
		s, ada, secret, token := o.providerStaff(idp, "ada")
		to, err := o.StartOAuth(t.Context(), auth.StartOAuthParams{Provider: plantedIDP, Browser: "b", Invitation: token})
		o.must(err)
		idp.SignsIn(ada)
		back := idp.Authorize(t, to)
		_, err = o.FinishOAuth(t.Context(), auth.OAuthCallback{Provider: plantedIDP, State: back.Get("state"), Code: back.Get("code"), Issuer: back.Get("iss"), Browser: "b"})
		wantCode(t, err, auth.CodeMFARequired)
		var asked *auth.Error
		errors.As(err, &asked)
		ends(o, s.User.ID)
		_, err = o.VerifyMFA(t.Context(), auth.VerifyMFAParams{MFAToken: asked.MFAToken, TOTPCode: o.appCode(secret)})
		wantCode(t, err, auth.CodeInvalidToken)
		if u := o.read(s.User.ID); u.AcceptedSequence != 0 {
			t.Errorf("%s: accepted", name)
		}
	}
}

// The helpdesk created the account, with an unverified address, and its holder set up a second
// factor. It stays if the holder shows it, and the page says that it is removed otherwise. The
// holder of the mailbox accepts without the factor of a stranger.
func TestFactorAtUnverifiedAddressStaysIfShown(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		for name, shows := range map[string]bool{"ada": true, "ben": false} {
			o := newOffice(t, st)
			owner := o.operator(name+"-owner@example.com", "*")
			email := name + "@example.com"
			id := o.do(owner, "POST /users", `{"email":"`+email+`","password":"`+password+`"}`).want(201).body["id"].(string)
			s, err := o.Login(t.Context(), auth.LoginParams{Email: email, Password: password})
			o.must(err)
			secret, _ := o.enrolled(auth.Caller{UserID: id, SessionID: s.SessionID})
			o.do(owner, "PUT /users/"+id+"/roles", `{"roles":["support"],"address":"`+email+`"}`).want(200)
			token := o.invitedToken(email)
			if page := o.page("GET", "/invitations/accept?token="+token, ""); !strings.Contains(page, `name="totp_code"`) || !strings.Contains(page, "Without the code it is removed") {
				t.Fatalf("page: %s", page)
			}
			form := "token=" + token + "&password=another-Passphrase-8&totp_code="
			if shows {
				if page := o.page("POST", "/invitations/accept", form+"000000"); !o.waits(id) {
					t.Fatalf("accepted with a wrong code: %s", page)
				}
				form += o.appCode(secret)
			}
			page := o.page("POST", "/invitations/accept", form)
			if u := o.read(id); o.waits(id) || u.MFAEnabled != shows || !u.EmailVerified() {
				t.Errorf("%s: waits %v, factor %v: %s", name, o.waits(id), u.MFAEnabled, page)
			}
			if strings.Contains(page, "recovery codes") != shows || strings.Contains(page, "we removed everything") == shows {
				t.Errorf("%s: %s", name, page)
			}
		}
	})
}

// A trusted device does not replace the second factor of an acceptance.
func TestAcceptanceByProviderOnATrustedDevice(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		idp := authtest.StartProvider(t)
		o := newOffice(t, st, inCookies(auth.WithProvider(idp.OIDC(plantedIDP)), auth.WithMFA(auth.MFAOptions{TrustDevices: 24 * time.Hour}))...)
		s, ada, secret, token := o.providerStaff(idp, "ada")
		b := o.browser()
		atProvider := func(link string) {
			b.open(link)
			idp.SignsIn(ada)
			b.open("https://auth.test/auth/v1/oauth/" + plantedIDP + "/callback?" + idp.Authorize(t, b.at).Encode())
		}
		atProvider("https://auth.test/auth/v1/oauth/" + plantedIDP)
		b.shows(200, `name="trust_device"`)
		o.Clock.Advance(30 * time.Second)
		b.press("code", o.appCode(secret), "trust_device", "on")
		if atProvider("https://auth.test/auth/v1/oauth/" + plantedIDP); strings.Contains(b.body, `name="code"`) {
			t.Fatalf("the device is not trusted: %s", b.body)
		}
		b.open("https://auth.test/auth/v1/invitations/accept?token=" + token)
		link := providerLinks.FindStringSubmatch(b.body)
		if link == nil {
			t.Fatalf("no provider on the page: %s", b.body)
		}
		atProvider(strings.ReplaceAll(link[1], "&amp;", "&"))
		b.shows(200, `name="code"`)
		if !o.waits(s.User.ID) {
			t.Fatal("accepted without the second factor")
		}
		o.Clock.Advance(30 * time.Second)
		b.press("code", o.appCode(secret))
		if b.shows(200, "recovery codes"); o.waits(s.User.ID) {
			t.Error("not accepted")
		}
	})
}
