package auth

import (
	"bytes"
	"cmp"
	_ "embed"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/internal/address"
	"github.com/authmount/auth/internal/webpage"
	"github.com/authmount/auth/store"
)

// A link that signs a browser in by cookies may need a second factor. The sign-in then
// continues on one page for all links, which asks for the factor or sets it up. The page is
// the page of the magic link without a token.

// waitingSignIn is a sign-in, or a session, that waits for its second factor. It is in a
// cookie that scripts cannot read: no URL has its token, and the page can be reloaded.
type waitingSignIn struct {
	MFAToken  string `json:"m"`
	Enrols    bool   `json:"e,omitempty"` // the factor has to be set up first
	AppOnly   bool   `json:"a,omitempty"` // recovery codes are not taken
	Passkey   bool   `json:"p,omitempty"` // a passkey of the account can be the factor
	NoApp     bool   `json:"n,omitempty"` // an authenticator app cannot
	Remember  *bool  `json:"k,omitempty"`
	TakenOver bool   `json:"o,omitempty"` // see page
	To        string `json:"t,omitempty"` // where the browser goes afterwards; "": a page with the result

	accepts bool // an invitation, as the token says
}

func (a *Auth) factorCookie() string { return a.cookieNamed("factor") }

// showInterrupted is showProblem for a sign-in, of which s has the rest. If err asks for a
// second factor, the browser goes on to its page.
func (a *Auth) showInterrupted(w http.ResponseWriter, r *http.Request, err error, s waitingSignIn) error {
	if !a.awaitsFactor(w, err, s) {
		return a.showProblem(w, r, err)
	}
	return a.goToFactor(w)
}

// goToFactor redirects to the page for the second factor.
func (a *Auth) goToFactor(w http.ResponseWriter) error {
	return seeOther(w, a.publicURL().Path+linkPaths(KindMagicLink))
}

// awaitsFactor reports whether err asks for a second factor, and stores the sign-in in the
// browser then.
func (a *Auth) awaitsFactor(w http.ResponseWriter, err error, s waitingSignIn) bool {
	var e *Error
	if a.cfg.cookies == nil || !errors.As(err, &e) || e.MFAToken == "" {
		return false
	}
	s.MFAToken, s.Enrols = e.MFAToken, e.Code == CodeMFAEnrollmentRequired
	s.AppOnly = !s.Enrols && !slices.Contains(e.Factors, methodRecovery)
	s.Passkey, s.NoApp = slices.Contains(e.Factors, methodPasskey), !s.Enrols && !slices.Contains(e.Factors, methodTOTP)
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings only
	}
	a.setCookie(w, a.factorCookie(), base64.RawURLEncoding.EncodeToString(b), int(mfaLife/time.Second))
	return true
}

// linkItself returns the path of a link, to which the browser returns.
func (a *Auth) linkItself(path, secret string) string {
	return a.publicURL().Path + path + "?" + url.Values{"token": {secret}}.Encode()
}

// waitingSignIn reads the browser's sign-in that waits. Errors: CodeInvalidToken.
func (a *Auth) waitingSignIn(r *http.Request) (s waitingSignIn, err error) {
	c := soleCookie(r, a.factorCookie())
	if c == nil || a.cfg.cookies == nil {
		return s, fail(CodeInvalidToken, errors.New("no sign-in waits for a second factor"))
	}
	b, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err == nil {
		err = a.CheckReturn(s.To)
	}
	if err != nil {
		return s, fail(CodeInvalidToken, err)
	}
	purpose := store.PurposeMFA
	if s.Enrols {
		purpose = store.PurposeEnroll
	}
	_, d, err := a.peek(r.Context(), purpose, s.MFAToken)
	s.accepts = d.Accepts != nil
	return s, err
}

// showWaiting shows the page of the browser's sign-in that waits.
func (a *Auth) showWaiting(w http.ResponseWriter, r *http.Request) error {
	s, err := a.waitingSignIn(r)
	if err != nil {
		return a.showNotWaiting(w, r, err)
	}
	return a.showFactorPage(w, r, http.StatusOK, s, page{})
}

// showNotWaiting shows that err ended the sign-in, or that it is complete.
func (a *Auth) showNotWaiting(w http.ResponseWriter, r *http.Request, err error) error {
	if !errors.Is(err, CodeInvalidToken) {
		return a.showProblem(w, r, err)
	}
	if within, failed := a.within(r); failed == nil && within.SessionID != "" { // the page of a completed sign-in, reloaded
		if _, _, failed = a.liveSession(r.Context(), within, CodeSessionEnded); failed == nil {
			return a.showDone(w, r, page{Done: doneSignedIn}, "")
		}
	}
	return a.showProblem(w, r, err)
}

func (a *Auth) showFactorPage(w http.ResponseWriter, r *http.Request, status int, s waitingSignIn, pg page) error {
	pg.Name = "enrol"
	if s.Passkey || s.Enrols && a.passkeysOn(r.Context()) {
		pg.Script = a.pageScriptAt()
	}
	if !s.Enrols {
		pg.Name, pg.AppOnly, pg.NoApp, pg.PasskeyDue = "second_factor", s.AppOnly, s.NoApp, s.AppOnly && s.NoApp && !s.accepts
		if life := a.cfg.mfa.TrustDevices; life > 0 {
			pg.TrustDays = max(1, int(life/(24*time.Hour)))
		}
	}
	a.showPage(w, r, status, pg, s.To)
	return nil
}

// finishWaiting handles the page's form.
func (a *Auth) finishWaiting(w http.ResponseWriter, r *http.Request, form url.Values) error {
	s, err := a.waitingSignIn(r)
	if err != nil {
		return a.showNotWaiting(w, r, err)
	}
	if form.Has("options") {
		return a.beginWaiting(w, r, s)
	}
	byPasskey := form.Get("do") == methodPasskey
	if s.Enrols && !byPasskey && form.Get("do") != "enable" {
		setup, err := a.SetupTOTP(r.Context(), SetupTOTPParams{MFAToken: s.MFAToken})
		if err != nil {
			return a.showNotWaiting(w, r, waitingFailed(err))
		}
		return a.showFactorPage(w, r, http.StatusOK, s, page{Setup: shownSetup(setup)})
	}
	trust := form.Get("trust_device") != ""
	use := func() (*Tokens, []string, error) { return a.useWaiting(r, s, form.Get("code"), trust) }
	if byPasskey {
		use = func() (*Tokens, []string, error) { return a.useWaitingPasskey(r, s, form) }
	}
	tokens, codes, err := use()
	var e *Error
	switch {
	case errors.As(err, &e) && (slices.Contains([]Code{CodeInvalidTOTPCode, CodeInvalidPasskey, CodePasskeyRemoved, CodePasskeyAlreadyExists, CodeValidationFailed, CodeRateLimited}, e.Code)):
		e = a.logged(r, err)
		writeErrorHeaders(w, e)
		return a.showFactorPage(w, r, e.Status, s, page{Failure: e, Trust: trust, Setup: a.setupAgain(r, s, form.Get("secret"))})
	case err != nil:
		return a.showNotWaiting(w, r, waitingFailed(err))
	}
	a.setCookies(w, r, tokens, s.Remember)
	a.setCookie(w, a.factorCookie(), "", -1)
	if len(codes) > 0 {
		a.showPage(w, r, http.StatusOK, page{Name: "recovery_codes", SignedIn: true, RecoveryCodes: codes, Next: template.URL(s.To)}, "") //nolint:gosec // judged by CheckReturn
		return nil
	}
	pg := page{Done: doneSignedIn, TakenOver: s.TakenOver}
	if tokens.RecoveryCodesLeft == nil {
		return a.showDone(w, r, pg, s.To)
	}
	pg.UsedCode, pg.CodesLeft, pg.CodesOf, pg.NewCodes = true, *tokens.RecoveryCodesLeft, recoveryN, a.look().Factor
	pg.Next = template.URL(s.To) //nolint:gosec // judged by CheckReturn
	return a.showDone(w, r, pg, "")
}

// useWaiting completes a sign-in with the code of its second factor, and returns the new
// recovery codes, if there are any. trust is VerifyMFAParams.TrustDevice.
func (a *Auth) useWaiting(r *http.Request, s waitingSignIn, typed string, trust bool) (*Tokens, []string, error) {
	totp, recovery := address.FactorCode(typed)
	switch {
	case totp == "" && recovery == "":
		return nil, nil, invalid("code", "is required")
	case s.Enrols:
		done, err := a.EnableTOTP(r.Context(), EnableTOTPParams{MFAToken: s.MFAToken, TOTPCode: cmp.Or(totp, recovery)})
		if err != nil {
			return nil, nil, err
		}
		return done.Tokens, done.RecoveryCodes, nil
	}
	tokens, err := a.VerifyMFA(r.Context(), VerifyMFAParams{MFAToken: s.MFAToken, TOTPCode: totp, RecoveryCode: recovery, TrustDevice: trust})
	if err != nil {
		return nil, nil, err
	}
	return tokens, tokens.RecoveryCodes, nil
}

// beginWaiting answers the page's script with the options of a passkey.
func (a *Auth) beginWaiting(w http.ResponseWriter, r *http.Request, s waitingSignIn) error {
	begun, err := a.waitingOptions(r, s)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, begun)
}

func (a *Auth) waitingOptions(r *http.Request, s waitingSignIn) (*PasskeyRequest, error) {
	if s.Enrols {
		return a.BeginPasskey(r.Context(), BeginPasskeyParams{MFAToken: s.MFAToken})
	}
	return a.BeginPasskeyFactor(r.Context(), BeginPasskeyFactorParams{MFAToken: s.MFAToken})
}

// useWaitingPasskey is useWaiting with a passkey.
func (a *Auth) useWaitingPasskey(r *http.Request, s waitingSignIn, form url.Values) (*Tokens, []string, error) {
	credential, err := postedCredential(form, func() error { _, err := a.waitingOptions(r, s); return err })
	if err != nil {
		return nil, nil, err
	}
	if s.Enrols {
		added, err := a.AddPasskey(r.Context(), AddPasskeyParams{MFAToken: s.MFAToken, Credential: credential})
		if err != nil {
			return nil, nil, err
		}
		return added.Tokens, added.RecoveryCodes, nil
	}
	tokens, err := a.VerifyMFA(r.Context(), VerifyMFAParams{MFAToken: s.MFAToken, Passkey: credential})
	if err != nil {
		return nil, nil, err
	}
	return tokens, tokens.RecoveryCodes, nil
}

// waitingFailed returns CodeInvalidToken for an enrolment whose token is no longer valid,
// because the page's token is no bearer token.
func waitingFailed(err error) error {
	if errors.Is(err, CodeBadToken) {
		return fail(CodeInvalidToken, err)
	}
	return err
}

// factorSetup is a new factor as the page shows it.
type factorSetup struct {
	Secret, Spaced string
	QRCode         template.URL
}

func shownSetup(t *TOTPSetup) *factorSetup {
	var groups []string
	for rest := t.Secret; rest != ""; {
		n := min(4, len(rest))
		groups, rest = append(groups, rest[:n]), rest[n:]
	}
	return &factorSetup{Secret: t.Secret, Spaced: strings.Join(groups, " "), QRCode: template.URL(t.QRCode)} //nolint:gosec // a PNG of describeTOTP
}

// setupAgain shows the same secret after a wrong code: the form contains it, because the
// store has it encrypted.
func (a *Auth) setupAgain(r *http.Request, s waitingSignIn, secret string) *factorSetup {
	raw, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	if err != nil || len(raw) != totpSecret || !s.Enrols {
		return nil
	}
	e, err := a.waitingToEnrol(r.Context(), s.MFAToken)
	if err != nil {
		return nil
	}
	setup, err := a.describeTOTP(e.user, raw)
	if err != nil {
		return nil
	}
	return shownSetup(setup)
}

// The pages of this service use passkeys with one script. It posts the form of a page twice:
// with the field "options" for the options of the ceremony, and then with the credential.

//go:embed templates/page/passkey.js
var passkeyScript []byte

const pageScript = "/pages/passkey.js"

func (a *Auth) pageScriptAt() string { return a.publicURL().Path + pageScript }

func (a *Auth) handlePasskeyScript(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Set("Content-Type", "text/javascript; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("ETag", `"`+webpage.Hash(passkeyScript)+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(passkeyScript))
	return nil
}

// postedCredential returns the credential in a form of the script. Without one, the form has
// the name of the browser's error, or "refused": the script got no options, and begin, which
// is asked again, says why.
func postedCredential(form url.Values, begin func() error) (json.RawMessage, error) {
	switch {
	case form.Get("credential") != "":
		return json.RawMessage(form.Get("credential")), nil
	case form.Get("failure") == "refused":
		if err := begin(); err != nil {
			return nil, err
		}
	case form.Get("failure") == "InvalidStateError": // WebAuthn Level 3, section 5.1.3: the authenticator has one for the account
		return nil, fail(CodePasskeyAlreadyExists, nil)
	}
	return nil, fail(CodeInvalidPasskey, nil)
}
