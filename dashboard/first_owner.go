package dashboard

import (
	"context"
	"net/http"
	"net/url"

	"github.com/authmount/auth"
)

// FirstOwnerLink returns the link of [admin.Admin.FirstOwnerLink] to a page of the
// dashboard. A user who opens it within 30 minutes, and signs in there with an account
// that has a verified email address, becomes the first owner. Show it to the operator
// alone, and never log it. Errors: auth.CodeRoleInUse if there has ever been an owner.
func (d *Dashboard) FirstOwnerLink(ctx context.Context) (string, error) {
	link, err := d.adm.FirstOwnerLink(ctx)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(link)
	if err != nil {
		return "", err
	}
	return d.kit.Site().Origin + d.path("/first-owner") + "?" + u.RawQuery, nil
}

// welcomeFirstOwner says to visitors without a session what the link of the first owner does,
// and leads back to it after the sign-in. It serves next to all others.
func (d *Dashboard) welcomeFirstOwner(next http.Handler) http.Handler {
	return d.adm.Auth().Optional(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if auth.ClaimsFrom(r.Context()) != nil || r.Method == http.MethodPost || d.kit.FactorDue(r.Context()) != nil {
			next.ServeHTTP(w, r)
			return
		}
		v := d.newVisit(route{}, w, r)
		signIn := link{Text: v.t("Sign in"), To: d.jar.SignInURL + "?" + url.Values{"return_to": {r.URL.RequestURI()}}.Encode()}
		v.render(http.StatusOK, &page{Title: v.t("Become the owner"), Blocks: []block{
			{Text: v.t("This link makes one account the owner, who may do everything here and can make other people owners.")},
			{Text: v.t("Sign in to the account that will be the owner; then you come back to this page. The account's address has to be confirmed."), Link: &signIn},
		}})
	}))
}

// firstOwnerRoute is the page of the link, open to everybody who is signed in.
func firstOwnerRoute() route {
	return route{at: "/first-owner", public: true, form: &action{
		title: "Become the owner", text: "This service has no owner yet. The owner may do everything here and can make other people owners.", submit: "Become the owner", done: "You are the owner.",
		back: func(v *visit) string { return v.path("/") },
		fields: func(v *visit) ([]field, error) {
			if auth.ClaimsFrom(v.ctx) != nil {
				if err := v.d.kit.CheckNoOwner(v.ctx); err != nil {
					return nil, err
				}
			}
			return []field{{Name: "token", Type: "hidden", Value: v.r.URL.Query().Get("token")}}, nil
		},
		do: func(v *visit) (any, error) {
			c := auth.ClaimsFrom(v.ctx)
			if c == nil {
				return nil, auth.Reject(auth.CodeMissingToken, "")
			}
			_, err := v.d.kit.BecomeFirstOwner(v.ctx, auth.SessionRef{ID: c.SessionID, UserID: c.UserID}, v.form.Get("token"))
			return nil, err
		},
	}}
}
