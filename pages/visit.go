package pages

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/redirect"
	"github.com/authmount/auth/internal/webpage"
)

// visit is one request of a page.
type visit struct {
	p      *Pages
	rt     route
	w      http.ResponseWriter
	r      *http.Request
	ctx    context.Context
	form   url.Values   // the posted form
	claims *auth.Claims // nil without a session
	user   auth.User    // set on pages of the account, as is session
	texts  webpage.Texts
	to     string // the path in return_to, or ""
	flow   flow
	before flow // the flow that the browser sent

	session   auth.Session
	continues bool // the browser's session waits for the second factor, not a sign-in

	View
}

// flow is the browser's state between pages, in a cookie that scripts cannot read. None
// of it is ever in a URL.
type flow struct {
	MFAToken  string    `json:"m,omitempty"` // token of a sign-in that waits for a second factor
	Enrol     bool      `json:"e,omitempty"` // the second factor has to be set up first
	Continues bool      `json:"s,omitempty"` // see visit.continues
	Verifier  string    `json:"v,omitempty"` // PKCE verifier of a sign-in by provider or link
	ReturnTo  string    `json:"r,omitempty"`
	Remember  bool      `json:"k,omitempty"`
	Channel   string    `json:"c,omitempty"` // channel of the sent code
	Address   string    `json:"a,omitempty"`
	RequestID string    `json:"i,omitempty"`
	Linking   string    `json:"l,omitempty"` // provider to link
	Provider  string    `json:"p,omitempty"` // provider of the last sign-in
	Notice    string    `json:"n,omitempty"` // key of a text to show once
	Factors   string    `json:"y,omitempty"` // with passkeys on: the kinds of second factors that the sign-in may continue with
	Offer     string    `json:"o,omitempty"` // offerUpgrade or offerNew: a passkey after the sign-in
	Count     int       `json:"x,omitempty"` // value of {n} in that text
	Error     auth.Code `json:"f,omitempty"` // error of the previous page
}

const (
	flowLife  = 20 * time.Minute
	maxReturn = 1024 // length of a return path in bytes: browsers drop cookies above 4,096
)

// flowCookie returns the name of the cookie with the flow.
func (p *Pages) flowCookie() string {
	if p.jar != nil {
		return p.jar.Name + "-pages"
	}
	return "pages"
}

// returnable reports whether a page may redirect to a path and store it.
func returnable(to string) bool { return len(to) <= maxReturn && redirect.IsLocal(to) }

// goTo is an error that redirects to a path instead of showing the page.
type goTo string

func (goTo) Error() string { return "elsewhere" }

// begin reads a request.
func (p *Pages) begin(rt route, w http.ResponseWriter, r *http.Request) (*visit, error) {
	v := &visit{p: p, rt: rt, w: w, r: r, ctx: r.Context(), claims: auth.ClaimsFrom(r.Context())}
	v.flow = p.flowOf(r)
	v.before = v.flow
	v.View = p.newView(r, rt.page)
	v.texts, v.ctx = p.langs.Texts(v.Locale), p.kit.WithPageLocale(v.ctx, v.Locale)
	to := r.URL.Query().Get("return_to")
	if to != "" {
		if !redirect.IsLocal(to) {
			return nil, p.kit.Error(string(auth.CodeRedirectNotAllowed), errors.New("return_to"))
		}
		if returnable(to) { // a longer one is ignored
			v.to, v.Query = to, "?"+url.Values{"return_to": {to}}.Encode()
			v.Briefly = v.Query + "&remember=false"
		}
	}
	if on := v.Settings; v.Script != "" && on.SignupEnabled { // the mails for it are sent even if magic links are off
		q := url.Values{"passkey": {"1"}}
		if v.to != "" {
			q.Set("return_to", v.to)
		}
		v.PasskeySignUp = p.path("/sign-in/mail") + "?" + q.Encode()
	}
	v.Action, v.focus, v.SignedIn = r.URL.Path+v.Query, rt.focus(), rt.access != public && p.jar == nil
	if r.Method != http.MethodPost {
		return v, nil
	}
	var err error
	if v.form, err = p.kit.ReadForm(r); err != nil {
		return nil, err
	}
	for name := range v.form {
		if !strings.Contains(name, "password") && name != "code" && name != "credential" { // no secrets and no codes
			v.values[name] = v.form.Get(name)
		}
	}
	v.Remember = v.form.Get("remember") != ""
	return v, nil
}

// flowOf reads the flow from its cookie. An invalid cookie is an empty flow.
func (p *Pages) flowOf(r *http.Request) flow {
	var f flow
	b, err := base64.RawURLEncoding.DecodeString(p.kit.Cookie(r, p.flowCookie()))
	if err != nil || json.Unmarshal(b, &f) != nil {
		return flow{}
	}
	return f
}

// newView returns the view of a page without a user.
func (p *Pages) newView(r *http.Request, page string) View {
	s := p.a.PublicSettings(r.Context())
	v := View{
		Page: page, Briefly: "?remember=false", Locale: p.langs.Pick(p.kit.PreferredLocale(r.Context(), auth.User{})), Settings: s, MinLength: s.Password.MinLength,
		Providers: p.providers(s.Providers, nil), LoginLabel: "label.email", LoginType: "email",
		values: map[string]string{}, errors: map[string]string{}, reasons: map[string][]string{},
	}
	if p.jar != nil {
		v.Settings.SignupEnabled = false
	}
	if s.Methods.Passkey && slices.Contains(passkeyPages, page) {
		v.Script = p.site.Script
	}
	v.OtherWays = len(v.Providers) > 0 || s.Methods.MagicLink || s.Methods.PhoneOTP
	if s.Methods.PhoneOTP {
		v.LoginLabel, v.LoginType = "label.email_or_phone", "text"
	}
	return v
}

// keep stores the flow in its cookie.
func (v *visit) keep() {
	switch v.flow {
	case v.before:
	case flow{}:
		v.p.kit.SetCookie(v.w, v.p.flowCookie(), "", -1)
	default:
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false) // escaping takes six bytes for each "&"
		if err := e.Encode(v.flow); err != nil {
			panic(err) // strings only
		}
		v.p.kit.SetCookie(v.w, v.p.flowCookie(), base64.RawURLEncoding.EncodeToString(b.Bytes()), int(flowLife/time.Second))
	}
}

// redirect redirects the browser with status 303.
func (v *visit) redirect(to string) {
	v.keep()
	h := v.w.Header()
	h.Set("Location", to)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	v.w.WriteHeader(http.StatusSeeOther)
}

// render sends the page.
func (v *visit) render(status int) error {
	if v.r.Method != http.MethodHead {
		if v.flow.Notice != "" {
			v.Notice = v.texts.Of("notice."+v.flow.Notice, "n", v.flow.Count, "all", allCodes)
			if v.flow.Notice == "codes_left" {
				v.NewCodes = v.p.path("/second-factor")
			}
		}
		if v.flow.Error != "" && v.Problem == "" {
			v.Problem = v.texts.Or("error."+string(v.flow.Error), "error.internal")
		}
		v.flow.Notice, v.flow.Count, v.flow.Error = "", 0, ""
	}
	v.keep()
	return v.p.show(v.w, v.r, status, &v.View)
}

// returnTo returns the visitor's target.
func (v *visit) returnTo() string {
	switch {
	case v.to != "":
		return v.to
	case returnable(v.flow.ReturnTo):
		return v.flow.ReturnTo
	}
	return v.p.home
}

// signIn returns the sign-in page with a reason and a page to return to.
func (v *visit) signIn(reason auth.Code, back string) goTo {
	q := url.Values{"reason": {string(reason)}}
	if back != "" {
		q.Set("return_to", back)
	}
	return goTo(v.p.path("/sign-in") + "?" + q.Encode())
}

// here returns the page to return to: this page, or the account for pages that only
// accept posts.
func (v *visit) here() string {
	if v.rt.noGet {
		return v.p.path("/")
	}
	return v.r.URL.Path
}

// elsewhere returns the page to which an error redirects, if it does.
func (v *visit) elsewhere(err error) (to goTo, ok bool) {
	var e *auth.Error
	switch {
	case errors.As(err, &to):
		return to, true
	case !errors.As(err, &e):
		return "", false
	case e.Code == auth.CodeMFARequired && e.MFAToken != "":
		v.flow.MFAToken, v.flow.Enrol, v.flow.Continues = e.MFAToken, false, v.continues
		if v.flow.Factors = ""; v.Settings.Methods.Passkey {
			v.flow.Factors = strings.Join(e.Factors, " ")
		}
		return goTo(v.p.path("/sign-in/second")), true
	case e.Code == auth.CodeMFAEnrollmentRequired && e.MFAToken != "":
		v.flow.MFAToken, v.flow.Enrol, v.flow.Continues = e.MFAToken, true, v.continues
		return goTo(v.p.path("/sign-in/enrol")), true
	case e.Code == auth.CodeInsufficientAAL && (v.rt.begin != nil || v.rt.access == fresh):
		v.flow.MFAToken, v.flow.ReturnTo = "", v.here()
		return goTo(v.p.path("/sign-in/second")), true
	case e.Code == auth.CodeReauthNeeded, v.rt.access != public && (e.Code == auth.CodeSessionEnded || e.Code == auth.CodeBadToken):
		return v.signIn(e.Code, v.here()), true
	}
	return "", false
}

// fail shows an error, at its field if it has one.
func (v *visit) fail(e *auth.Error) {
	text := v.texts.Or("error."+string(e.Code), "error.internal", "wait", v.texts.Wait(e.RetryAfter))
	if e.Code == auth.CodeInvalidCredentials && v.Settings.EmailConfirmationRequired {
		text = v.texts.Of("error.invalid_credentials_unconfirmed")
	}
	if e.Code == auth.CodeValidationFailed {
		for name := range e.Fields {
			if field := v.fieldFor(name); field != "" {
				v.errors[field] = v.texts.Or("invalid."+field, "invalid.other")
			} else {
				text = v.texts.Or("invalid."+name, "error."+string(e.Code))
			}
		}
		if len(v.errors) == 0 {
			v.Problem = text
		}
	} else if field := v.fieldFor(string(e.Code)); field != "" {
		v.errors[field] = text
		if field == "current_password" {
			v.errors[field] = v.texts.Of("invalid.current_password")
		}
		for _, why := range e.Reasons {
			v.reasons[field] = append(v.reasons[field], v.texts.Of("weak."+why, "n", v.MinLength))
		}
	} else {
		v.Problem = text
	}
	if e.Code == auth.CodePasskeyRemoved {
		v.signalRemoved()
	}
	v.focus = ""
	for _, field := range v.rt.fields {
		if v.errors[field] != "" {
			v.focus = field
			break
		}
	}
}

// fieldFor returns this page's field for a code or a field of the wire, or "".
func (v *visit) fieldFor(what string) string {
	for _, field := range about(what) {
		if slices.Contains(v.rt.fields, field) {
			return field
		}
	}
	return ""
}

// about lists the fields that a code or a field of the wire may belong to, the most
// likely first.
func about(what string) []string {
	switch what {
	case string(auth.CodeInvalidCredentials):
		return []string{"current_password", "password"}
	case string(auth.CodeWeakPassword), string(auth.CodeSamePassword), "new_password":
		return []string{"password"}
	case string(auth.CodeInvalidCode), string(auth.CodeInvalidTOTPCode), "otp", "totp_code", "recovery_code":
		return []string{"code"}
	case string(auth.CodeUserAlreadyExists):
		return []string{"email"}
	case "email", "phone":
		return []string{what, "login"}
	}
	return []string{what}
}
