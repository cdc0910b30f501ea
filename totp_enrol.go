package auth

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/skip2/go-qrcode"

	"github.com/authmount/auth/store"
)

// TOTPSetup contains the new secret in the forms for an authenticator app.
type TOTPSetup struct {
	Secret string `json:"secret"`  // base32
	URI    string `json:"uri"`     // otpauth://
	QRCode string `json:"qr_code"` // PNG of the URI, as data URI

	png []byte
}

// enrollee is the user who enrols a second factor: one with a session, or one with a
// sign-in that returned CodeMFAEnrollmentRequired.
type enrollee struct {
	user    User
	session Session         // to raise, or to create
	creates bool            // the session does not exist yet
	token   *store.TokenRef // of the sign-in or refresh that waits for the enrolment
	by      credentialRef   // the credential of that sign-in

	remember *bool // signIn.remember of that sign-in
}

// enrollee returns the user who enrols: of a token or, without one, of the caller.
func (a *Auth) enrollee(ctx context.Context, by Caller, mfaToken string) (e enrollee, err error) {
	if mfaToken != "" {
		if e, err = a.waitingToEnrol(ctx, mfaToken); errors.Is(err, CodeInvalidToken) {
			err = fail(CodeBadToken, err) // consumed or revoked; it is used as a bearer token
		}
	} else {
		var me current
		if me, err = a.actingLately(ctx, by); err == nil {
			err = a.requireOwnFactor(ctx, by, me)
		}
		e = enrollee{user: me.user, session: me.session}
	}
	if err == nil && !by.application {
		err = a.requireNoWait(ctx, e.user)
	}
	return e, err
}

// waitingToEnrol reads the waiting sign-in of a token. Errors: CodeInvalidToken for any
// other token, CodeBadToken if the credential of the sign-in no longer exists, or if the
// account has got a second factor or a passkey since, which a new sign-in asks for;
// CodeUserBanned.
func (a *Auth) waitingToEnrol(ctx context.Context, mfaToken string) (enrollee, error) {
	t, d, err := a.peek(ctx, store.PurposeEnroll, mfaToken)
	if err != nil {
		return enrollee{}, err
	}
	e, err := a.enrolleeOf(ctx, t, d)
	if err != nil {
		return e, err
	}
	due := e.user.MFAEnabled
	if !due {
		due, err = a.passkeyDue(ctx, e.user, d.AMR, d.By)
	}
	if err == nil && due {
		err = fail(CodeBadToken, errors.New("the account has a second factor or a passkey by now"))
	}
	return e, err
}

// enrolleeOf returns the enrollee of a valid token.
func (a *Auth) enrolleeOf(ctx context.Context, t store.Token, d linkData) (enrollee, error) {
	token := &store.TokenRef{Purpose: store.PurposeEnroll, Hash: t.Hash}
	if d.SessionID != "" {
		s, u, err := a.liveSession(ctx, Caller{UserID: t.UserID, SessionID: d.SessionID}, CodeBadToken)
		return enrollee{user: u, session: s, token: token}, err
	}
	c, err := a.store.Credentials(ctx, store.ByID(t.UserID))
	if err != nil {
		return enrollee{}, goneOr(CodeBadToken, err)
	}
	has, err := a.stillHas(ctx, c, d.By)
	switch {
	case err != nil:
		return enrollee{}, err
	case !has:
		return enrollee{}, fail(CodeBadToken, errors.New("the credential of this sign-in was removed"))
	case c.User.Banned(a.now()):
		return enrollee{}, fail(CodeUserBanned, nil)
	}
	return enrollee{
		user: c.User, session: a.newSession(ctx, c.User.ID, d.AMR, a.now()), creates: true, token: token, by: d.By, remember: d.Remember,
	}, nil
}

// SetupTOTPParams are the parameters of SetupTOTP, for a caller or with the token of
// CodeMFAEnrollmentRequired.
type SetupTOTPParams struct {
	Caller
	MFAToken string
}

// SetupTOTP starts the enrolment of a second factor; repeating it replaces the pending
// secret. The session needs a sign-in or another authentication within the last 15
// minutes. Errors: CodeReauthNeeded, CodeMFAAlreadyEnabled, CodeMethodDisabled,
// CodeSessionEnded, CodeBadToken (MFAToken is no longer valid), CodeUserBanned,
// CodeTargetStronger (the account waits for an acceptance).
func (a *Auth) SetupTOTP(ctx context.Context, p SetupTOTPParams) (*TOTPSetup, error) {
	u, secret, err := a.beginTOTP(ctx, p)
	if err != nil {
		return nil, err
	}
	return a.describeTOTP(u, secret)
}

// requireNoTOTP returns CodeMFAAlreadyEnabled if the account has an authenticator app, also
// to a session without a recent authentication.
func (a *Auth) requireNoTOTP(ctx context.Context, e enrollee, err error) error {
	if !e.user.MFAEnabled || err != nil && !errors.Is(err, CodeReauthNeeded) && !errors.Is(err, CodeInsufficientAAL) {
		return err
	}
	apps, failed := a.totpFactors(ctx, e.user)
	switch {
	case failed != nil:
		return failed
	case len(apps) > 0:
		return fail(CodeMFAAlreadyEnabled, nil)
	}
	return err
}

// beginTOTP is SetupTOTP without the forms for an authenticator app.
func (a *Auth) beginTOTP(ctx context.Context, p SetupTOTPParams) (User, []byte, error) {
	if a.factors == nil {
		return User{}, nil, fail(CodeMethodDisabled, lacks[store.FactorStore]())
	}
	if !a.totpOn(ctx) {
		return User{}, nil, fail(CodeMethodDisabled, nil)
	}
	e, err := a.enrollee(ctx, p.Caller, p.MFAToken)
	if err = a.requireNoTOTP(ctx, e, err); err != nil {
		return User{}, nil, err
	}
	secret := make([]byte, totpSecret)
	_, _ = rand.Read(secret) // never fails (crypto/rand)
	f := Factor{ID: a.newID(), UserID: e.user.ID, Kind: store.FactorTOTP, Required: true, Secret: a.keys.Seal(secret, []byte(e.user.ID))}
	return e.user, secret, a.putFactor(ctx, p.Caller, e, f)
}

// putFactor stores a pending factor. Errors: CodeMFAAlreadyEnabled, CodeSessionEnded.
func (a *Auth) putFactor(ctx context.Context, by Caller, e enrollee, f Factor) error {
	authority := by.authority()
	if e.token != nil {
		authority = Authority{Token: e.token}
	}
	c := a.newChange(ctx, authority)
	c.IfUsers = []UserAt{ifCredentialsUnchanged(e.user)}
	f.CreatedAt = c.Now
	err := a.factors.PutFactor(ctx, store.PutFactor{Change: c, Factor: f})
	switch {
	case errors.Is(err, store.ErrConflict):
		return fail(CodeMFAAlreadyEnabled, err)
	case errors.Is(err, store.ErrStale):
		return fail(CodeSessionEnded, err) // the account's credentials have changed; the user has to sign in again
	case err != nil:
		return goneOr(CodeSessionEnded, err)
	}
	return nil
}

// describeTOTP returns a secret in the forms that authenticator apps read.
func (a *Auth) describeTOTP(u User, secret []byte) (*TOTPSetup, error) {
	s := &TOTPSetup{Secret: base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret)}
	account := u.Email
	if account == "" {
		account = u.Phone
	}
	app := strings.Join(strings.FieldsFunc(a.appName(), func(r rune) bool { return r == ':' || r == '：' || r == ' ' }), " ") // a colon ends the label's issuer
	if app == "" {
		app = a.cfg.baseURL.Hostname()
	}
	s.URI = "otpauth://totp/" + url.PathEscape(app+":"+account) + "?" + strings.ReplaceAll(url.Values{
		"secret": {s.Secret}, "issuer": {app}, "algorithm": {"SHA1"}, "digits": {"6"}, "period": {fmt.Sprint(totpPeriod)},
	}.Encode(), "+", "%20") // apps do not read a plus sign as a space
	var err error
	if s.png, err = qrcode.Encode(s.URI, qrcode.Medium, 256); err != nil {
		return nil, fail(CodeInternal, fmt.Errorf("QR code: %w", err))
	}
	s.QRCode = "data:image/png;base64," + base64.StdEncoding.EncodeToString(s.png)
	return s, nil
}

// EnableTOTPParams are the parameters of EnableTOTP, for a caller's session or with the
// token of CodeMFAEnrollmentRequired.
type EnableTOTPParams struct {
	Caller
	MFAToken string
	TOTPCode string
}

// EnabledTOTP is the result of EnableTOTP.
type EnabledTOTP struct {
	RecoveryCodes []string // shown this once
	Tokens        *Tokens  // nil if the application itself enabled it
}

// EnableTOTP completes the enrolment with a first code. The caller's session rises to
// AAL2; the enrolment token of a sign-in is consumed instead, and a new session created;
// that of a refresh is consumed and raises its session. Every other
// session of the user is revoked. The session needs a sign-in or another authentication
// within the last 15 minutes. Errors: CodeReauthNeeded, CodeInvalidTOTPCode,
// CodeMFANotPending, CodeMFAAlreadyEnabled, CodeRateLimited, CodeSessionEnded,
// CodeBadToken (MFAToken is no longer valid), CodeUserBanned, CodeMethodDisabled,
// CodeValidationFailed.
func (a *Auth) EnableTOTP(ctx context.Context, p EnableTOTPParams) (*EnabledTOTP, error) {
	if a.factors == nil {
		return nil, fail(CodeMethodDisabled, lacks[store.FactorStore]())
	}
	if !a.totpOn(ctx) {
		return nil, fail(CodeMethodDisabled, nil)
	}
	if p.SessionID == "" && p.MFAToken == "" {
		return nil, invalid("session_id", "is required")
	}
	e, err := a.enrollee(ctx, p.Caller, p.MFAToken)
	if err = a.requireNoTOTP(ctx, e, err); err != nil {
		return nil, err
	}
	f, err := a.pendingTOTP(ctx, e.user.ID)
	if err != nil {
		return nil, err
	}
	m, err := a.checkFirstCode(ctx, e, f, p.TOTPCode)
	if err != nil {
		return nil, err
	}
	if e.creates {
		if err := a.beforeSignIn(ctx, SignInAttempt{User: e.user, Method: e.session.AMR[0].Method, Provider: e.by.Provider}); err != nil {
			return nil, err
		}
	}
	return a.enableFactor(ctx, p.Caller, e, f, totpState(m.step), methodTOTP, done(Event{Type: EventMFAEnabled, UserID: e.user.ID, SessionID: e.session.ID}))
}

// pendingTOTP returns the factor that waits for its first code.
func (a *Auth) pendingTOTP(ctx context.Context, userID string) (Factor, error) {
	list, err := a.factors.Factors(ctx, userID)
	if err != nil {
		return Factor{}, storeFailed(err)
	}
	var pending *Factor
	for i, f := range list.List {
		switch {
		case f.Kind != store.FactorTOTP:
		case f.Enabled:
			return Factor{}, fail(CodeMFAAlreadyEnabled, nil)
		default:
			pending = &list.List[i]
		}
	}
	if pending == nil {
		return Factor{}, fail(CodeMFANotPending, nil)
	}
	return *pending, nil
}

// enableFactor enables a pending factor after its first use. A required one raises the
// enrollee's session, or creates it, and comes with recovery codes if it is the first.
func (a *Auth) enableFactor(ctx context.Context, by Caller, e enrollee, f Factor, state []byte, method string, events ...store.OutcomeEvent) (*EnabledTOTP, error) {
	authority, s := by.authority(), e.session
	if e.token != nil {
		authority = byAuthentication()
	}
	if e.creates {
		events = append(events, done(Event{Type: EventSignedIn, UserID: e.user.ID, SessionID: s.ID, Method: s.AMR[0].Method, Provider: e.by.Provider}))
	}
	c := a.newChangeOf(ctx, authority, account{User: e.user}, events...)
	c.IfUsers = []UserAt{ifCredentialsUnchanged(e.user)}
	var codes []string
	var hashes [][]byte
	if f.Required && !e.user.MFAEnabled {
		codes, hashes = a.newRecoveryCodes(e.user.ID)
	}
	amr := AMR{Method: method, Timestamp: c.Now.Unix()}
	r := store.FactorResult{Session: s}
	_, err := a.makeSession(ctx, c, e.user, s, e.by.Joined, false, nil, func(c store.Change, on store.NewDevice) (_ User, err error) {
		enable := store.EnableFactor{Change: c, UserID: e.user.ID, FactorID: f.ID, State: state, Recovery: hashes}
		enable.Redeem = e.token
		switch {
		case !f.Required: // it changes nothing about the session
		case !e.creates:
			enable.Raise = &store.RaisedLevel{SessionID: s.ID, Method: amr}
		default:
			s.AAL, s.AMR = store.LevelAAL2, withAMR(e.session.AMR, amr)
			enable.Create = &store.NewSession{Session: s, OnNewDevice: on}
		}
		r, err = a.factors.EnableFactor(ctx, enable)
		if !f.Required {
			r.Session = s
		}
		return r.User, err
	})
	switch {
	case errors.Is(err, store.ErrStale), errors.Is(err, store.ErrNotFound):
		return nil, fail(CodeMFANotPending, err)
	case errors.Is(err, store.ErrConflict):
		return nil, fail(CodeMFAAlreadyEnabled, err)
	case err != nil:
		return nil, storeFailed(err)
	}
	tokens, err := a.mint(ctx, r.User, r.Session)
	if err != nil {
		return nil, err
	}
	tokens.remember = e.remember
	return &EnabledTOTP{RecoveryCodes: codes, Tokens: tokens}, nil
}
