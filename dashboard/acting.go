package dashboard

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/redirect"
)

// actingCookie holds the impersonations that the visitor runs in the application. It is
// for display only and grants nothing.
const actingCookie = "admin-acting"

// mostActing limits the impersonations in the cookie; the newest are stored.
const mostActing = 4

// acting is an impersonation that the visitor runs.
type acting struct {
	Label string `json:"l"`
	ID    string `json:"i"` // impersonation id
	By    string `json:"b"` // the visitor's session; the impersonation ends with it
	Until int64  `json:"u"` // Unix seconds
}

// addActing adds an impersonation to the ones that every page shows until they end.
func (v *visit) addActing(label, id string) {
	as := acting{Label: label, ID: id, By: v.ownSession(), Until: v.d.kit.Now().Add(impersonationSeconds * time.Second).Unix()}
	v.storeActing(append(v.actingWithout(id), as))
}

// actingWithout returns the visitor's impersonations without the one with this id.
func (v *visit) actingWithout(id string) []acting {
	return slices.DeleteFunc(v.actingAs(), func(a acting) bool { return a.ID == id })
}

// storeActing sets the cookie with the visitor's impersonations.
func (v *visit) storeActing(list []acting) {
	list = list[max(0, len(list)-mostActing):]
	b, err := json.Marshal(list)
	if err != nil {
		return // strings and numbers only
	}
	seconds := impersonationSeconds
	if len(list) == 0 {
		seconds = -1
	}
	v.d.kit.SetCookie(v.w, actingCookie, base64.RawURLEncoding.EncodeToString(b), seconds)
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
		return append(fields, field{Name: "return_to", Label: v.t("Where in the application"), Hint: v.t("A path, such as /orders. Empty: the first page.")}), nil
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

// actingAs returns the visitor's current impersonations.
func (v *visit) actingAs() []acting {
	var list []acting
	b, err := base64.RawURLEncoding.DecodeString(v.d.kit.Cookie(v.r, actingCookie))
	if err != nil || json.Unmarshal(b, &list) != nil {
		return nil
	}
	now := v.d.kit.Now().Unix()
	return slices.DeleteFunc(list, func(a acting) bool { return uuid.Validate(a.ID) != nil || a.By != v.ownSession() || a.Until <= now })
}
