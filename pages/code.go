package pages

import (
	"cmp"
	"net/http"
	"strings"

	"golang.org/x/oauth2"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/address"
	"github.com/authmount/auth/store"
)

func showSend(channel string) func(*visit) error {
	return func(v *visit) error {
		v.Channel = channel
		v.NewPasskey = channel == "mail" && v.Settings.Methods.Passkey && (v.r.URL.Query().Get("passkey") != "" || v.form.Get("passkey") != "")
		if v.r.Method != "POST" {
			v.Remember = v.kept()
			if channel == "mail" && v.claims != nil && !v.isActing() { // signs in again
				v.values["email"] = v.claims.Email
			}
		}
		if on := v.Settings.Methods; (channel == "mail" && !on.MagicLink && !on.Passkey) || (channel == "phone" && !on.PhoneOTP) {
			return auth.Reject(auth.CodeMethodDisabled, "")
		}
		return nil
	}
}

// startBound stores the target of a sign-in that ends on another page, and returns the
// challenge that binds it to this browser (PKCE, RFC 7636).
func (v *visit) startBound(remember bool) (challenge string) {
	v.flow.Verifier, v.flow.ReturnTo, v.flow.Remember, v.flow.Linking = oauth2.GenerateVerifier(), v.returnTo(), remember, ""
	return oauth2.S256ChallengeFromVerifier(v.flow.Verifier)
}

func (p *Pages) backURL() string { return p.site.Origin + p.path(backPath) }

func postSendMail(v *visit) (string, error) {
	email := strings.TrimSpace(v.form.Get("email"))
	if v.flow.Offer = ""; v.form.Get("passkey") != "" {
		v.flow.Offer = offerNew
	}
	sent, err := v.p.a.SendMagicLink(v.ctx, auth.SendMagicLinkParams{Email: email, RedirectTo: v.p.backURL(), CodeChallenge: v.startBound(v.Remember)})
	v.flow.Channel, v.flow.Address, v.flow.RequestID = "mail", email, sent.RequestID
	return v.p.path("/sign-in/code"), err
}

func postSendPhone(v *visit) (string, error) {
	phone := strings.TrimSpace(v.form.Get("phone"))
	sent, err := v.p.a.SendPhoneCode(v.ctx, auth.SendPhoneCodeParams{Phone: phone})
	v.flow.Channel, v.flow.Address, v.flow.RequestID = "phone", phone, sent.RequestID
	v.flow.ReturnTo, v.flow.Remember = v.returnTo(), v.Remember
	return v.p.path("/sign-in/code"), err
}

func showCode(v *visit) error {
	if v.flow.Address == "" {
		return goTo(v.p.path("/sign-in"))
	}
	v.Channel, v.Address, v.SendAgain = v.flow.Channel, v.flow.Address, v.p.path("/sign-in/"+v.flow.Channel)
	return nil
}

func postCode(v *visit) (string, error) {
	if v.flow.Address == "" {
		return v.p.path("/sign-in"), nil
	}
	code, err := v.code()
	if err != nil {
		return "", err
	}
	var tokens *auth.Tokens
	if v.flow.Channel == "mail" {
		tokens, err = v.p.a.VerifyMagicLink(v.ctx, auth.VerifyMagicLinkParams{
			Email: v.flow.Address, Code: code, RequestID: v.flow.RequestID, CodeVerifier: v.flow.Verifier, Within: v.within(),
		})
	} else {
		tokens, err = v.p.a.VerifyPhoneCode(v.ctx, auth.VerifyPhoneCodeParams{Phone: v.flow.Address, Code: code, RequestID: v.flow.RequestID})
	}
	if err != nil {
		return "", err
	}
	return v.signedIn(tokens)
}

// within returns the caller of the current session, if there is one.
func (v *visit) within() auth.Caller {
	if v.claims == nil {
		return auth.Caller{}
	}
	return v.claims.Caller()
}

// showAddressCode shows the form for the code that verifies an email address. The code is
// in the mail or, for another address than the account's, on the page of the link; again is
// the page that sends another one.
func showAddressCode(again string) func(*visit) error {
	return func(v *visit) error {
		if err := v.findAddress(); err != nil {
			return err
		}
		if v.flow.Address == "" {
			return goTo(v.p.path(again))
		}
		v.Channel, v.Address, v.SendAgain = "confirm", v.flow.Address, v.p.path(again)
		switch {
		case v.user.ID != "" && v.user.Email == v.flow.Address:
			v.SendAgain, v.ContinueTo = v.p.path("/"), v.to
		case v.claims != nil:
			v.Channel = "change"
		}
		return nil
	}
}

// findAddress finds the address whose code is to be typed if the browser has forgotten it:
// the link, whose page shows the code, lives longer than the state of a visit.
func (v *visit) findAddress() error {
	if v.flow.Address != "" || v.user.ID == "" { // only pages of a signed-in user read the account
		return nil
	}
	account, err := v.p.kit.Account(v.ctx, store.ByID(v.user.ID))
	for _, pending := range account.Pending {
		if pending.Field == "email" {
			v.flow.Address = pending.Value
		}
	}
	return err
}

func postAddressCode(then string) func(*visit) (string, error) {
	return func(v *visit) (string, error) {
		code, err := v.code()
		if err == nil {
			err = v.findAddress()
		}
		if err != nil {
			return "", err
		}
		done, err := v.p.a.VerifyEmail(v.ctx, auth.VerifyEmailParams{Email: v.flow.Address, Code: code, RequestID: v.p.kit.SignUps(v.r), Within: v.within()})
		if err != nil {
			return "", err
		}
		v.flow = flow{Notice: "confirmed", ReturnTo: v.flow.ReturnTo}
		switch {
		case done.ResetSent:
			v.flow.Notice = "taken_over_reset"
		case done.TakenOver:
			v.flow.Notice = "taken_over"
		}
		return cmp.Or(v.to, v.p.path(then)), nil
	}
}

// code returns the code from the form. Errors: CodeValidationFailed for an empty field.
func (v *visit) code() (string, error) {
	code := address.Code(v.form.Get("code"))
	if code == "" {
		return "", v.p.kit.Invalid("code", "is required")
	}
	return code, nil
}

// holds reports whether a browser has the verifier of a code challenge.
func (p *Pages) holds(r *http.Request, challenge string) bool {
	f := p.flowOf(r)
	return f.Verifier != "" && oauth2.S256ChallengeFromVerifier(f.Verifier) == challenge
}
