package harness

import (
	"net/http"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

const Laptop, Mobile = "laptop-0123456789abcdef", "phone-0123456789abcdef"

func OnDevice(id string) Header { return Header{"X-Device-Id", id} }

func Credentials(email, password string) map[string]any {
	return map[string]any{"email": email, "password": password}
}

// SignInEndpoint prepares a sign-in to Ada's account. The result signs in from the client
// that the headers describe.
type SignInEndpoint func(w *World, idp *authtest.Provider, s Session) (open func(h ...Header) *Answer)

// MFATokenOf returns the token of a sign-in that needs a second factor.
func (w *World) MFATokenOf(code auth.Code) string {
	w.T.Helper()
	return DecodeAs[struct {
		MFAToken string `json:"mfa_token"`
	}](w.Do("POST", "/login", Credentials(AdaMail, GoodPassword), OnDevice(Laptop)).Want(403, code)).MFAToken
}

func SignInEndpoints() map[string]SignInEndpoint {
	posts := func(path string, body func(w *World, idp *authtest.Provider, s Session) map[string]any) SignInEndpoint {
		return func(w *World, idp *authtest.Provider, s Session) func(h ...Header) *Answer {
			b := body(w, idp, s)
			return func(h ...Header) *Answer { return w.Do("POST", path, b, h...) }
		}
	}
	comesBack := func(provider string) SignInEndpoint {
		return func(w *World, idp *authtest.Provider, s Session) func(h ...Header) *Answer {
			v := w.NewVisitor(idp)
			to := v.Start(provider, "")
			idp.SignsIn(Ada)
			with := idp.Authorize(w.T, to).Encode()
			return func(h ...Header) *Answer {
				if provider == "apple" {
					return v.Do("POST", "/oauth/apple/callback", with, append(h, Form)...)
				}
				return v.Do("GET", "/oauth/"+provider+"/callback?"+with, nil, h...)
			}
		}
	}
	return map[string]SignInEndpoint{
		"POST /signup":             nil, // creates the account's first session
		"POST /invitations/accept": nil, // creates a session or continues the present one
		"POST /login": posts("/login", func(*World, *authtest.Provider, Session) map[string]any {
			return Credentials(AdaMail, GoodPassword)
		}),
		"POST /exchange": posts("/exchange", func(w *World, _ *authtest.Provider, _ Session) map[string]any {
			token := w.MagicLink(AdaMail, map[string]any{"redirect_to": "https://app.test/in"})
			to := w.Do("POST", "/magic-link/verify", "token="+token, Form, Browser).Location()
			return map[string]any{"code": to.Query().Get("code")}
		}),
		"GET /oauth/{provider}/callback":  comesBack("google"),
		"POST /oauth/{provider}/callback": comesBack("apple"),
		"POST /oauth/{provider}/id-token": posts("/oauth/google/id-token", func(_ *World, idp *authtest.Provider, _ Session) map[string]any {
			return map[string]any{"id_token": idp.IDToken("google", Ada, "")}
		}),
		"GET /magic-link/verify": func(w *World, _ *authtest.Provider, _ Session) func(h ...Header) *Answer {
			token := w.MagicLink(AdaMail, nil)
			return func(h ...Header) *Answer {
				return w.Do("GET", "/magic-link/verify?token="+token, nil, append(h, Header{"Accept", "application/json"})...)
			}
		},
		"POST /magic-link/verify": posts("/magic-link/verify", func(w *World, _ *authtest.Provider, _ Session) map[string]any {
			return map[string]any{"token": w.MagicLink(AdaMail, nil)}
		}),
		"POST /otp/verify": posts("/otp/verify", func(w *World, _ *authtest.Provider, _ Session) map[string]any {
			return map[string]any{"phone": PhoneNumber, "otp": w.PhoneCode(PhoneNumber)}
		}),
		"POST /passkeys/sign-in/finish": passkeyEndpoint,
		"POST /me/passkeys":             enrolsByPasskey,
		"POST /2fa/verify": posts("/2fa/verify", func(w *World, _ *authtest.Provider, s Session) map[string]any {
			e := w.Enrol(s.AccessToken)
			return map[string]any{"mfa_token": w.MFATokenOf(auth.CodeMFARequired), "totp_code": w.Code(e.Secret, 0)}
		}),
		"POST /2fa/verify-and-enable": func(w *World, _ *authtest.Provider, s Session) func(h ...Header) *Answer {
			w.Patch(s.User.ID, store.UserPatch{AppMetadata: map[string]any{"mfa_required": true}})
			token := Bearer(w.MFATokenOf(auth.CodeMFAEnrollmentRequired))
			setup := DecodeAs[struct{ Secret string }](w.Do("POST", "/2fa/setup-totp", nil, token).Want(200))
			return func(h ...Header) *Answer {
				return w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": w.Code(setup.Secret, 0)}, append(h, token)...)
			}
		},
	}
}

// NewDeviceWorld has Ada, who signed up on her laptop, has a verified email address and
// phone number, and has accounts at providers.
func NewDeviceWorld(t *testing.T, opts ...auth.Option) (*World, *authtest.Provider, Session) {
	t.Helper()
	w, idp := NewProviderWorld(t, append(opts, auth.WithLinks(auth.LinkOptions{SignInByGET: true}))...)
	s := w.Do("POST", "/signup", map[string]any{"email": AdaMail, "password": GoodPassword, "full_name": "Ada"}, OnDevice(Laptop)).Session()
	w.Do("POST", "/verify-email", map[string]any{"token": w.LinkToken(AdaMail, auth.KindVerifyEmail)}, Bearer(s.AccessToken)).Want(200)
	phone, at := PhoneNumber, w.Clock.Now()
	w.Patch(s.User.ID, store.UserPatch{Phone: &phone, PhoneVerifiedAt: &at})
	for _, provider := range []string{"google", "apple"} {
		w.Patch(s.User.ID, store.UserPatch{Link: &auth.Identity{ID: NewID(w.Auth), Provider: provider, Subject: Ada.Subject, CreatedAt: at, LastSignInAt: at}})
	}
	return w, idp, s
}

const TrustFor = 30 * 24 * time.Hour

func TrustsDevices() auth.Option { return auth.WithMFA(auth.MFAOptions{TrustDevices: TrustFor}) }

// Trust signs Ada in on her laptop and trusts it.
func (w *World) Trust(e Enrolled, edit ...func(map[string]any)) Session {
	w.T.Helper()
	w.Clock.Advance(time.Minute)
	body := Credentials(AdaMail, GoodPassword)
	body["totp_code"], body["trust_device"] = w.Code(e.Secret, 0), true
	for _, f := range edit {
		f(body)
	}
	return w.Do("POST", "/login", body, OnDevice(Laptop)).Session()
}

// Passes reports whether Ada's password alone signs in on a device.
func (w *World) Passes(h ...Header) bool {
	w.T.Helper()
	a := w.Do("POST", "/login", Credentials(AdaMail, GoodPassword), h...)
	if a.Status != http.StatusOK {
		a.Want(403, auth.CodeMFARequired)
	}
	return a.Status == http.StatusOK
}
