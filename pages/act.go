package pages

import (
	"cmp"

	"github.com/authmount/auth"
)

// showAct names the user as whom an operator is about to act. The dashboard began this in
// the same browser, which has the verifier of the code in a cookie.
func showAct(v *visit) error {
	v.ActCode = cmp.Or(v.r.URL.Query().Get("code"), v.form.Get("code"))
	if verifier, _ := v.p.kit.Acting(v.r); verifier == "" {
		return auth.Reject(auth.CodeBadCodeVerifier, "")
	}
	u, err := v.p.kit.ActingAs(v.ctx, v.ActCode)
	if err != nil {
		return err
	}
	v.ActAs = who(u)
	return nil
}

// who names a user.
func who(u auth.User) string { return cmp.Or(u.Email, u.Phone, u.FullName, u.ID) }

// isActing reports whether the visitor is an operator who acts as the user.
func (v *visit) isActing() bool { return v.claims != nil && v.claims.Impersonator != nil }

// postAct starts to act as the user. The browser's own session in the application ends.
func postAct(v *visit) (string, error) {
	verifier, to := v.p.kit.Acting(v.r)
	if verifier == "" {
		return "", auth.Reject(auth.CodeBadCodeVerifier, "")
	}
	tokens, err := v.p.a.Exchange(v.ctx, auth.ExchangeParams{Code: v.form.Get("code"), CodeVerifier: verifier})
	if err != nil {
		return "", err
	}
	v.p.kit.StopActing(v.w)
	if v.flow.ReturnTo = ""; returnable(to) {
		v.flow.ReturnTo = to
	}
	return v.signedIn(tokens)
}
