package signin_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
)

// Every endpoint takes a code as people type and copy it: in the digits of any script, with
// spaces, hyphens and invisible marks. The OpenAPI document names the fields.
func TestCodesAsTyped(t *testing.T) {
	scripts := map[string]string{"Arabic": "٠١٢٣٤٥٦٧٨٩", "Persian": "۰۱۲۳۴۵۶۷۸۹", "Devanagari": "०१२३४५६७८९", "full width": "０１２３４５６７８９", "ASCII": "0123456789"}
	for script, digits := range scripts {
		typed := func(code string) string {
			out := "\u200f "
			for i, r := range strings.ToUpper(code) {
				if i == 3 {
					out += "\u00a0-\u2013 "
				}
				if r >= '0' && r <= '9' {
					out += string([]rune(digits)[r-'0'])
				} else {
					out += string(r)
				}
			}
			return out + "\u202c"
		}
		// enrolled returns a world with an account that has a second factor.
		enrolled := func(t *testing.T) (*harness.World, harness.Enrolled) {
			w := harness.NewWorld(t)
			w.LoginAs(t, harness.AdaMail)
			s := w.PostLogin(harness.AdaMail, authtest.Password).Session()
			return w, w.Enrol(s.AccessToken)
		}
		rows := map[string]func(t *testing.T) *harness.Answer{
			"POST /otp/verify otp": func(t *testing.T) *harness.Answer {
				w := harness.NewWorld(t)
				code, request := w.AskCode(harness.PhoneNumber)
				return w.OTPOf(harness.PhoneNumber, typed(code), request)
			},
			"POST /otp/verify totp_code": func(t *testing.T) *harness.Answer {
				w := harness.NewWorld(t)
				code, request := w.AskCode(harness.PhoneNumber)
				e := w.Enrol(w.OTPOf(harness.PhoneNumber, code, request).Session().AccessToken)
				code, request = w.AskCode(harness.PhoneNumber)
				return w.Do("POST", "/otp/verify", map[string]any{"phone": harness.PhoneNumber, "otp": code, "request_id": request, "totp_code": typed(w.Code(e.Secret, 0))})
			},
			"POST /magic-link/verify code": func(t *testing.T) *harness.Answer {
				w := harness.NewWorld(t)
				m := w.AskByMail(harness.AdaMail, nil)
				return w.ByCode(harness.AdaMail, typed(m.Code), m.Request, nil)
			},
			"POST /verify-email code": func(t *testing.T) *harness.Answer {
				w := harness.NewWorld(t)
				s := w.PostSignUp(harness.AdaMail)
				m := w.NewMail(harness.AdaMail, auth.KindVerifyEmail, nil)
				return w.VerifyBy(harness.AdaMail, typed(m.Code), harness.Bearer(s.AccessToken))
			},
			"POST /2fa/verify totp_code": func(t *testing.T) *harness.Answer {
				w, e := enrolled(t)
				return w.PostVerifyMFA(w.MFAToken(), typed(w.Code(e.Secret, 0)))
			},
			"POST /2fa/verify recovery_code": func(t *testing.T) *harness.Answer {
				w, e := enrolled(t)
				return w.Do("POST", "/2fa/verify", map[string]any{"mfa_token": w.MFAToken(), "recovery_code": typed(e.Recovery[0])})
			},
			"POST /2fa/verify-and-enable totp_code": func(t *testing.T) *harness.Answer {
				w := harness.NewWorld(t)
				s := w.PostSignUp(harness.AdaMail)
				setup := harness.DecodeAs[struct{ Secret string }](w.Do("POST", "/2fa/setup-totp", nil, harness.Bearer(s.AccessToken)).Want(200))
				return w.Do("POST", "/2fa/verify-and-enable", map[string]any{"totp_code": typed(w.Code(setup.Secret, 0))}, harness.Bearer(s.AccessToken))
			},
			"POST /2fa/disable totp_code": func(t *testing.T) *harness.Answer {
				w, e := enrolled(t)
				return w.Do("POST", "/2fa/disable", map[string]any{"totp_code": typed(w.Code(e.Secret, 0))}, harness.Bearer(e.AccessToken))
			},
			"POST /2fa/disable recovery_code": func(t *testing.T) *harness.Answer {
				w, e := enrolled(t)
				return w.Do("POST", "/2fa/disable", map[string]any{"recovery_code": typed(e.Recovery[0])}, harness.Bearer(e.AccessToken))
			},
			"POST /login totp_code": func(t *testing.T) *harness.Answer {
				w, e := enrolled(t)
				return w.Do("POST", "/login", map[string]any{"email": harness.AdaMail, "password": authtest.Password, "totp_code": typed(w.Code(e.Secret, 0))})
			},
			"POST /login confirmation_code": func(t *testing.T) *harness.Answer {
				w := harness.NewWorld(t, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
				w.Do("POST", "/signup", harness.Credentials(harness.AdaMail, harness.GoodPassword)).Want(200)
				body := harness.Credentials(harness.AdaMail, harness.GoodPassword)
				body["confirmation_code"] = typed(w.Mail(t, harness.AdaMail, auth.KindVerifyEmail).Code)
				return w.Do("POST", "/login", body)
			},
			"POST /invitations/accept totp_code": func(t *testing.T) *harness.Answer {
				w, e := enrolled(t)
				token := w.Invited(harness.AdaMail, auth.RoleOwner)
				w.Clock.Advance(time.Minute)
				return w.Do("POST", "/invitations/accept", map[string]any{"token": token, "password": harness.GoodPassword, "totp_code": typed(w.Code(e.Secret, 0))}, harness.Bearer(e.AccessToken))
			},
			"POST /me/confirm totp_code": func(t *testing.T) *harness.Answer {
				w, e := enrolled(t)
				w.Clock.Advance(time.Minute)
				return w.Do("POST", "/me/confirm", map[string]any{"totp_code": typed(w.Code(e.Secret, 0))}, harness.Bearer(e.AccessToken))
			},
		}
		for name, row := range rows {
			t.Run(script+" "+name, func(t *testing.T) {
				if a := row(t); a.Status >= 300 {
					t.Errorf("%d %s", a.Status, a.Body)
				}
			})
		}
		for _, name := range codeFields(t) {
			if rows[name] == nil && !strings.HasSuffix(name, " show_code") { // a button
				t.Errorf("%s takes a code: it needs a row", name)
			}
		}
	}
}

// codeFields returns the endpoints and fields of the document that take a code which people
// type.
func codeFields(t *testing.T) (list []string) {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct {
					Schema struct{ Properties map[string]any }
				}
			}
		}
	}
	if err := json.Unmarshal(harness.Document(), &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			for _, content := range op.RequestBody.Content {
				for field := range content.Schema.Properties {
					name := strings.ToUpper(method) + " " + path
					opaque := path == "/exchange" || strings.HasPrefix(path, "/oauth/") // codes for programs
					if entry := name + " " + field; (field == "otp" || strings.HasSuffix(field, "code")) && !opaque && !slices.Contains(list, entry) {
						list = append(list, entry)
					}
				}
			}
		}
	}
	if len(list) < 9 {
		t.Errorf("only %q", list)
	}
	return list
}
