package pages

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// A passkey is used with the script of the service, which posts a form of the page twice: for
// the options of the ceremony (route.begin), and with the credential (route.post).

// passkeyPages are the pages that need the script.
var passkeyPages = []string{"sign_in", "sign_up", "second_factor", "enrol", "factor", "account", "passkey"}

// PasskeyForm is a form that uses or creates a passkey.
type PasskeyForm struct {
	Kind   string // "get", "create", or "upgrade": a browser may create it by itself
	Action string
	Label  string
	Fields map[string]string // hidden fields
}

// newPasskeyForm is the template function "passkey". pairs are hidden fields; "do" is
// "passkey" by default.
func newPasskeyForm(kind, action, label string, pairs ...string) (PasskeyForm, error) {
	f := PasskeyForm{Kind: kind, Action: action, Label: label, Fields: map[string]string{"do": "passkey", "credential": "", "failure": ""}}
	if len(pairs)%2 != 0 {
		return f, fmt.Errorf("passkey %q: a field without a value", label)
	}
	for i := 0; i < len(pairs); i += 2 {
		f.Fields[pairs[i]] = pairs[i+1]
	}
	return f, nil
}

// byPasskey reports whether the posted form has a passkey in place of a code or a password.
func (v *visit) byPasskey() bool { return v.form.Get("do") == "passkey" }

func (v *visit) credential() (json.RawMessage, error) {
	return v.p.kit.PostedCredential(v.form, func() error { _, err := v.rt.begin(v); return err })
}

func beginSignIn(v *visit) (any, error) { return v.p.kit.BeginPasskeySignIn(v.w, v.r) }

func (v *visit) signInByPasskey() (string, error) {
	credential, err := v.credential()
	if err != nil {
		return "", err
	}
	tokens, err := v.p.a.FinishPasskeySignIn(v.ctx, auth.FinishPasskeySignInParams{RequestID: v.p.kit.PasskeySignIn(v.r), Credential: credential})
	if err != nil {
		return "", err
	}
	return v.signedIn(tokens)
}

// signalRemoved has the browser forget a passkey that its account no longer has.
func (v *visit) signalRemoved() {
	var credential struct {
		ID string `json:"id"`
	}
	if json.Unmarshal([]byte(v.form.Get("credential")), &credential) == nil {
		v.signal(map[string]any{"signalUnknownCredential": map[string]string{"rpId": v.p.kit.PasskeyRPID(), "credentialId": credential.ID}})
	}
}

// signal sets the calls of the Signal API (WebAuthn Level 3, section 5.1.10).
func (v *visit) signal(calls map[string]any) {
	b, err := json.Marshal(calls)
	if err != nil {
		panic(err) // strings only
	}
	v.Signals = string(b)
}

// factors returns a user's factors.
func (v *visit) factors(userID string) (store.Factors, error) {
	s, ok := store.Capability[store.FactorStore](v.p.kit.Store())
	if !ok {
		return store.Factors{}, nil
	}
	f, err := s.Factors(v.ctx, userID)
	if err != nil {
		err = v.p.kit.StoreError(err)
	}
	return f, err
}

func hasFactor(f store.Factors, kind string) bool {
	return slices.ContainsFunc(f.List, func(f store.Factor) bool { return f.Enabled && f.Kind == kind })
}

// secondKinds sets the kinds of second factors that the page offers.
func (v *visit) secondKinds() error {
	if v.flow.MFAToken != "" {
		v.UsePasskey, v.NoApp = strings.Contains(v.flow.Factors, "passkey"), v.flow.Factors != "" && !strings.Contains(v.flow.Factors, "totp")
		v.NoCode = v.NoApp && !strings.Contains(v.flow.Factors, "recovery_code")
		v.PasskeyDue = v.NoCode
		return nil
	}
	list, err := v.factors(v.claims.UserID)
	v.UsePasskey = v.Settings.Methods.Passkey && hasFactor(list, store.FactorPasskey)
	v.NoApp = !hasFactor(list, store.FactorTOTP) && (v.UsePasskey || list.RecoveryLeft > 0)
	v.NoCode = v.NoApp && list.RecoveryLeft == 0
	return err
}

func beginSecond(v *visit) (any, error) {
	switch {
	case v.flow.MFAToken != "":
		return v.p.a.BeginPasskeyFactor(v.ctx, auth.BeginPasskeyFactorParams{MFAToken: v.flow.MFAToken})
	case v.claims != nil:
		return v.beginOwn()
	}
	return nil, auth.Reject(auth.CodeInvalidToken, "")
}

// verifyByPasskey completes the waiting sign-in.
func (v *visit) verifyByPasskey() (*auth.Tokens, error) {
	credential, err := v.credential()
	if err != nil {
		return nil, err
	}
	return v.p.a.VerifyMFA(v.ctx, auth.VerifyMFAParams{MFAToken: v.flow.MFAToken, Passkey: credential})
}

// stepUpByPasskey raises the level of the session.
func (v *visit) stepUpByPasskey() (*auth.Tokens, error) {
	credential, err := v.credential()
	if err != nil {
		return nil, err
	}
	return v.p.a.StepUp(v.ctx, auth.StepUpParams{Caller: v.claims.Caller(), Passkey: credential})
}

// beginOwn begins the use of one of the visitor's passkeys.
func (v *visit) beginOwn() (any, error) {
	return v.p.a.BeginPasskeyFactor(v.ctx, auth.BeginPasskeyFactorParams{Caller: v.claims.Caller()})
}

func beginForcedEnrol(v *visit) (any, error) {
	return v.p.a.BeginPasskey(v.ctx, auth.BeginPasskeyParams{MFAToken: v.flow.MFAToken})
}

func beginFactor(v *visit) (any, error) {
	if v.user.MFAEnabled {
		return v.beginOwn()
	}
	return v.p.a.BeginPasskey(v.ctx, auth.BeginPasskeyParams{Caller: v.claims.Caller()})
}

// setsUpApp reports whether an account whose second factor is a passkey sets up an
// authenticator app.
func (v *visit) setsUpApp() (bool, error) {
	if !v.user.MFAEnabled {
		return false, nil
	}
	list, err := v.factors(v.user.ID)
	v.NoApp = !hasFactor(list, store.FactorTOTP)
	v.UsePasskey = v.Settings.Methods.Passkey && hasFactor(list, store.FactorPasskey)
	do := v.form.Get("do")
	return v.NoApp && v.Settings.Methods.TOTP && (do == "begin" || do == "enable"), err
}

// addPasskey adds a passkey, continues with its tokens, and shows new recovery codes.
func (v *visit) addPasskey(p auth.AddPasskeyParams, to string) (string, error) {
	var err error
	if p.Credential, err = v.credential(); err != nil {
		return "", err
	}
	added, err := v.p.a.AddPasskey(v.ctx, p)
	if err != nil {
		return "", err
	}
	v.continues = v.flow.Continues || p.MFAToken == ""
	v.flow.Offer = ""
	if _, err := v.signedIn(added.Tokens); err != nil {
		return "", err
	}
	if len(added.RecoveryCodes) > 0 {
		v.showCodes(added.RecoveryCodes, to)
		return "", nil
	}
	return to, nil
}

// listPasskeys sets the account's passkeys, and reports them to the browser.
func (v *visit) listPasskeys() error {
	list, err := v.p.a.ListPasskeys(v.ctx, v.claims.Caller())
	if is(err, auth.CodeMethodDisabled) {
		return nil
	}
	if err != nil {
		return err
	}
	at := func(t time.Time) string { return t.UTC().Format(v.texts.Of("time.layout")) }
	ids := []string{}
	for _, k := range list.Passkeys {
		p := Passkey{ID: k.ID, Name: k.Name, Created: at(k.CreatedAt), Synced: k.Synced, SecondFactor: k.SecondFactor}
		if k.LastUsedAt != nil {
			p.LastUsed = at(*k.LastUsedAt)
		}
		v.Passkeys, ids = append(v.Passkeys, p), append(ids, k.CredentialID)
	}
	if v.isActing() || list.UserHandle == "" {
		return nil
	}
	login := who(v.user)
	name := v.user.FullName
	if name == "" {
		name = login
	}
	v.signal(map[string]any{
		"signalAllAcceptedCredentials": map[string]any{"rpId": list.RPID, "userId": list.UserHandle, "allAcceptedCredentialIds": ids},
		"signalCurrentUserDetails":     map[string]any{"rpId": list.RPID, "userId": list.UserHandle, "name": login, "displayName": name},
	})
	return nil
}

// beginPasskeys begins to create a passkey, or to use one that becomes a second factor.
func beginPasskeys(v *visit) (any, error) {
	if v.form.Get("do") == "second_on" {
		return v.beginOwn()
	}
	return v.p.a.BeginPasskey(v.ctx, auth.BeginPasskeyParams{Caller: v.claims.Caller(), Conditional: v.form.Get("options") == "conditional"})
}

// postPasskeys changes the account's passkeys.
func postPasskeys(v *visit) (string, error) {
	by, id, on := v.claims.Caller(), v.form.Get("id"), true
	change := auth.ChangePasskeyParams{Caller: by, ID: id}
	switch do := v.form.Get("do"); do {
	case "passkey":
		to, err := v.addPasskey(auth.AddPasskeyParams{Caller: by}, v.p.path("/"))
		if err == nil && to != "" {
			v.flow.Notice = "passkey_added"
		}
		return to, err
	case "remove":
		return v.done("passkey_removed"), v.p.a.RemovePasskey(v.ctx, auth.RemovePasskeyParams{Caller: by, ID: id})
	case "second_on": // the passkey shows that it works
		tokens, err := v.stepUpByPasskey()
		if err == nil {
			err = v.p.a.SetCookies(v.w, v.r, tokens)
		}
		if err != nil {
			return "", err
		}
		change.SecondFactor = &on
	case "second_off":
		on = false
		change.SecondFactor = &on
	default:
		name := v.form.Get("name")
		change.Name = &name
	}
	changed, err := v.p.a.ChangePasskey(v.ctx, change)
	if err != nil {
		return "", err
	}
	if len(changed.RecoveryCodes) > 0 {
		v.showCodes(changed.RecoveryCodes, v.p.path("/"))
		return "", nil
	}
	return v.done("saved"), nil
}

// The values of flow.Offer.
const (
	offerUpgrade = "upgrade" // after a password, once in a month for each browser
	offerNew     = "new"     // the sign-up was for a passkey
)

const (
	offeredCookie = "passkey-offered"
	offeredFor    = 30 * 24 * time.Hour
)

// offerPasskey returns the page that offers a passkey after a sign-in, or to.
func (v *visit) offerPasskey(offer string, u auth.User, to string) (string, error) {
	known := v.p.kit.Cookie(v.r, offeredCookie) != ""
	if offer == "" || v.p.jar != nil || !v.Settings.Methods.Passkey || u.Unverified() || known && offer == offerUpgrade {
		return to, nil
	}
	list, err := v.factors(u.ID)
	if err != nil || hasFactor(list, store.FactorPasskey) {
		return to, err
	}
	v.p.kit.SetCookie(v.w, offeredCookie, "1", int(offeredFor/time.Second))
	v.flow.ReturnTo, v.flow.Offer = to, offer
	return v.p.path("/passkeys/new"), nil
}

func showNewPasskey(v *visit) error {
	if !v.Settings.Methods.Passkey {
		return auth.Reject(auth.CodeMethodDisabled, "")
	}
	v.ContinueTo, v.FirstPasskey = v.continueTo(), v.flow.Offer == offerNew
	return nil
}

func postNewPasskey(v *visit) (string, error) {
	return v.addPasskey(auth.AddPasskeyParams{Caller: v.claims.Caller()}, v.continueTo())
}
