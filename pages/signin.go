package pages

import (
	"net/url"
	"strings"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

func showSignIn(v *visit) error {
	switch reason := auth.Code(v.r.URL.Query().Get("reason")); {
	case v.claims == nil && (reason == auth.CodeSessionEnded || reason == auth.CodeBadToken || reason == auth.CodeRefreshTokenReused || reason == auth.CodeInvalidRefreshToken):
		if v.Problem == "" && v.r.Method != "POST" {
			v.Notice = v.texts.Of("error." + string(reason))
		}
	case v.claims == nil && (reason == auth.CodeMFARequired || reason == auth.CodeMFAEnrollmentRequired):
		if err := v.p.kit.FactorDue(v.ctx); err != nil {
			v.flow.ReturnTo, v.continues = v.returnTo(), true
			return err
		}
	case v.claims == nil:
	case v.isActing() && (reason == auth.CodeInsufficientAAL || reason == auth.CodeReauthNeeded): // of a requirement of the application: nobody can meet it as another user
		return auth.Reject(auth.CodeImpersonationForbidden, "")
	case reason == auth.CodeInsufficientAAL:
		return v.toSecondFactor()
	case reason == auth.CodeReauthNeeded:
		v.Again = true
		if v.values["login"] == "" {
			v.values["login"] = v.claims.Email
		}
	case v.r.Method != "POST" && v.flow.Error == "":
		return goTo(v.returnTo())
	}
	if v.r.Method != "POST" {
		v.Remember = v.kept()
	}
	return nil
}

// kept reports whether the browser should stay signed in after a sign-in by link.
func (v *visit) kept() bool { return v.r.URL.Query().Get("remember") != "false" }

// toSecondFactor redirects a signed-in user to the page that verifies or sets up a second
// factor.
func (v *visit) toSecondFactor() error {
	_, u, err := v.p.a.Current(v.ctx, v.claims)
	if err != nil {
		return err
	}
	list, err := v.factors(u.ID)
	if err != nil {
		return err
	}
	// A passkey can raise the session's level, too. If it has done so, and the page still asks,
	// the account has to have a second factor.
	raises := v.Settings.Methods.Passkey && hasFactor(list, store.FactorPasskey) && v.claims.AAL != store.LevelAAL2
	enabled := u.MFAEnabled || raises
	if !enabled && auth.FreshAuth(v.p.kit.RecentPeriod()).Check(v.p.a, v.r, v.claims) != nil {
		return v.signIn(auth.CodeReauthNeeded, v.returnTo()) // the setup would ask for it, and forget where to return
	}
	v.flow.ReturnTo, v.flow.MFAToken = v.returnTo(), ""
	if !enabled {
		return goTo(v.p.path("/second-factor"))
	}
	return goTo(v.p.path("/sign-in/second"))
}

func postSignIn(v *visit) (string, error) {
	v.flow.ReturnTo, v.flow.Remember = v.returnTo(), v.Remember
	if v.byPasskey() {
		return v.signInByPasskey()
	}
	if v.flow.Offer = ""; v.form.Get("passkeys") != "" {
		v.flow.Offer = offerUpgrade
	}
	p := auth.LoginParams{Password: v.form.Get("password"), ConfirmationCode: v.form.Get("code")}
	login := strings.TrimSpace(v.form.Get("login"))
	if _, err := auth.NormalizePhone(login); err == nil || strings.HasPrefix(login, "+") {
		p.Phone = login
	} else {
		p.Email = login
	}
	tokens, err := v.p.a.Login(v.ctx, p)
	if err != nil {
		return "", err
	}
	return v.signedIn(tokens)
}

// signedIn signs the browser in, in place of an earlier user, and returns the next path.
func (v *visit) signedIn(t *auth.Tokens) (string, error) {
	to := v.returnTo()
	same := v.continues || v.claims != nil && v.claims.SessionID == t.SessionID
	var settings []auth.CookieSetting // none for an existing session: its cookies keep their life
	if !same {
		settings = append(settings, auth.Remember(v.flow.Remember))
	}
	if err := v.p.a.SetCookies(v.w, v.r, t, settings...); err != nil {
		return "", err
	}
	if v.claims != nil && !same {
		if err := v.p.a.Logout(v.ctx, auth.LogoutParams{Caller: v.claims.Caller(), Scope: auth.LogoutLocal}); err != nil {
			return "", err
		}
	}
	offer := v.flow.Offer
	v.flow = flow{}
	if left := t.RecoveryCodesLeft; left != nil {
		v.flow.Notice, v.flow.Count = "codes_left", *left
	}
	return v.offerPasskey(offer, t.User, to)
}

func showSignUp(v *visit) error {
	switch {
	case v.claims != nil && v.r.Method != "POST":
		return goTo(v.returnTo())
	case !v.Settings.SignupEnabled:
		return auth.Reject(auth.CodeSignupDisabled, "")
	case !v.Settings.Methods.Password:
		return goTo(v.p.path("/sign-in") + v.Query)
	}
	return nil
}

func postSignUp(v *visit) (string, error) {
	v.flow.ReturnTo, v.flow.Remember = v.returnTo(), true
	res, err := v.p.a.SignUp(v.ctx, auth.SignUpParams{
		Email: strings.TrimSpace(v.form.Get("email")), Password: v.form.Get("password"), FullName: strings.TrimSpace(v.form.Get("full_name")),
	})
	if err != nil {
		return "", err
	}
	if res.ConfirmationRequired {
		v.flow.Address = strings.TrimSpace(v.form.Get("email"))
		v.p.kit.SetSignUp(v.w, v.r, res.RequestID)
		return v.p.path("/sign-up/code"), nil
	}
	to, err := v.signedIn(res.Tokens)
	v.flow.Address = res.User.Email
	return v.p.path("/email/code") + "?" + url.Values{"return_to": {to}}.Encode(), err
}

func showSent(text string) func(*visit) error {
	return func(v *visit) error {
		v.Message = text
		return nil
	}
}

func showForgot(v *visit) error {
	if !v.Settings.Methods.Password {
		return auth.Reject(auth.CodeMethodDisabled, "")
	}
	return nil
}

func postForgot(v *visit) (string, error) {
	err := v.p.a.SendPasswordReset(v.ctx, auth.SendPasswordResetParams{Email: strings.TrimSpace(v.form.Get("email"))})
	return v.p.path("/forgot-password/sent"), err
}

func postSignOut(v *visit) (string, error) {
	if v.claims != nil {
		if err := v.p.a.Logout(v.ctx, auth.LogoutParams{Caller: v.claims.Caller(), Scope: auth.LogoutLocal}); err != nil {
			return "", err
		}
	}
	v.p.kit.ClearCookies(v.w, v.r)
	v.flow = flow{}
	if home := v.p.kit.SeparateHome(); v.isActing() && home != "" { // the operator goes back to the dashboard
		return home, nil
	}
	return v.p.path("/signed-out"), nil
}
