package dashboard

import (
	"cmp"
	"slices"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/redirect"
	"github.com/authmount/auth/store"
)

// acting is an impersonation that the visitor's session started.
type acting struct {
	Label, ID string // of the user, and of the impersonation
}

// actPage returns the application's page where this browser can go on as another user. It
// is "" without package pages, and if a page of the application opened the form. The Host
// header does not decide, because a proxy may replace it.
func (v *visit) actPage() string {
	if v.r.URL.Query().Has("code_challenge") {
		return ""
	}
	return v.d.kit.ActPage()
}

// actFields asks where the application continues: at a path, if its own page exchanges the
// code. Otherwise the application's page opens this form with its own address and code
// challenge.
func actFields(v *visit) ([]field, error) {
	fields := []field{reasonField(v, true)}
	if v.actPage() != "" {
		return append(fields, field{Name: "return_to", Label: v.t("Where in the application"), Hint: v.t("A path as in the address bar, such as /orders. Empty: the first page.")}), nil
	}
	fields = append(fields,
		field{Name: "redirect_to", Label: v.t("Where in the application"), Type: "url", Required: true, List: v.redirects(), Hint: v.t("An address from the list of allowed redirects, which exchanges the code for a session")},
		field{Name: "code_challenge", Label: v.t("Code challenge"), Required: true, Hint: v.t("From the page that exchanges the code. It can open this form with both fields in the address.")})
	for i := range fields[1:] {
		fields[1+i].entered(v.r.URL.Query())
	}
	return fields, nil
}

func postAct(v *visit) (any, error) {
	p := admin.ImpersonateParams{UserID: v.id(), Reason: v.formValue("reason"), RedirectTo: v.formValue("redirect_to"), CodeChallenge: v.formValue("code_challenge")}
	if page := v.actPage(); page != "" {
		// The browser would not send the cookie with the verifier to another origin.
		if own, from := v.d.kit.Site().Origin, v.r.Header.Get("Origin"); from != "" && from != "null" && from != own {
			return nil, auth.Reject(auth.CodeImpersonationForbidden, v.t("Open the dashboard at {url} to go on in the application.", "url", own))
		}
		to := v.formValue("return_to")
		if to != "" && !redirect.IsLocal(to) {
			return nil, v.d.kit.Invalid("return_to", "is not a path of the application")
		}
		p.RedirectTo, p.CodeChallenge = page, v.d.kit.StartActing(v.w, to)
	}
	return v.d.adm.Impersonate(v.ctx, v.actor, p)
}

// ownSession returns the id of the visitor's session, or "" if the application has its
// own admin login.
func (v *visit) ownSession() string {
	if c := auth.ClaimsFrom(v.ctx); c != nil {
		return c.SessionID
	}
	return ""
}

// actingAs returns the live impersonations that the visitor's session started, oldest
// first. It returns none if the store cannot tell.
func (v *visit) actingAs() []acting {
	own := v.ownSession()
	if own == "" || v.me.May("GET /impersonations") != nil {
		return nil
	}
	list, err := v.d.adm.Impersonations(v.ctx, v.actor)
	if err != nil {
		v.d.kit.Log().WarnContext(v.ctx, "dashboard: no notice of the visitor's impersonations", "error", err)
		return nil
	}
	var users []string
	list = slices.DeleteFunc(list, func(i store.Impersonation) bool { return i.ActorSessionID != own })
	slices.Reverse(list)
	for _, i := range list {
		users = append(users, i.UserID)
	}
	names := v.names(users...)
	var out []acting
	for _, i := range list {
		out = append(out, acting{Label: cmp.Or(names[i.UserID], i.UserID), ID: i.ID})
	}
	return out
}
