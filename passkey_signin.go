package auth

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// BeginPasskeySignIn starts a sign-in with a passkey. It names no account, so that the
// response tells nothing about one, and stores nothing. Errors: CodeMethodDisabled.
func (a *Auth) BeginPasskeySignIn(ctx context.Context) (*PasskeyRequest, error) {
	return a.beginPasskeySignIn(ctx, newHandle())
}

func (a *Auth) beginPasskeySignIn(ctx context.Context, binding string) (*PasskeyRequest, error) {
	if err := a.requirePasskeys(ctx); err != nil {
		return nil, err
	}
	r := passkeyRequest(a.cfg.passkeys.Request(a.newChallenge(challengeSignIn, binding), nil))
	r.RequestID = binding
	return r, nil
}

// FinishPasskeySignInParams are the parameters of FinishPasskeySignIn.
type FinishPasskeySignInParams struct {
	RequestID  string          // PasskeyRequest.RequestID
	Credential json.RawMessage // an AuthenticationResponseJSON (WebAuthn Level 3, section 5.1)
}

// LogValue keeps the assertion out of the log.
func (p FinishPasskeySignInParams) LogValue() slog.Value {
	return slog.GroupValue(slog.String("proof", redacted))
}

// FinishPasskeySignIn signs a user in with a passkey. The authenticator has verified the
// user, so the session is at AAL2, unless the passkey was created without that and has not
// been used together with another factor since: then it is one factor. Errors:
// CodeInvalidPasskey (unknown, of another request, expired, used, not verified: all the
// same), CodePasskeyRemoved, CodeRateLimited, CodeUserBanned, CodeMFARequired,
// CodeMFAEnrollmentRequired, CodeMethodDisabled.
func (a *Auth) FinishPasskeySignIn(ctx context.Context, p FinishPasskeySignInParams) (*Tokens, error) {
	asserted := assertedPasskey{response: p.Credential, purpose: challengeSignIn, bound: p.RequestID, any: true}
	var tokens *Tokens
	t := attempt{ // counted by the address only: a passkey cannot be guessed, and nobody shall lock its owner out
		method: methodPasskey, owner: knownOwner(User{}),
	}
	err := a.countAttempt(ctx, t, func(own context.Context, draw func() error) error {
		if err := draw(); err != nil {
			return err
		}
		var err error
		tokens, err = a.finishPasskeySignIn(own, asserted)
		return err
	})
	return tokens, err
}

func (a *Auth) finishPasskeySignIn(ctx context.Context, asserted assertedPasskey) (*Tokens, error) {
	read, err := a.readAssertion(ctx, asserted)
	if err != nil {
		return nil, err
	}
	if len(read.Handle()) == 0 {
		return nil, fail(CodeInvalidPasskey, errors.New("no user handle"))
	}
	c, err := a.store.Credentials(ctx, onThisDevice(ctx, store.ByHandle(base64.RawURLEncoding.EncodeToString(read.Handle()))))
	if errors.Is(err, store.ErrNotFound) {
		return nil, a.unknownPasskey(ctx, read.ID())
	}
	if err != nil {
		return nil, storeFailed(err)
	}
	k, err := a.provePasskey(ctx, c.User, asserted)
	if err != nil {
		return nil, err
	}
	if a.unconfirmed(ctx, c.User) {
		return nil, fail(CodeInvalidPasskey, errors.New("confirmation is required, and the account has verified no address"))
	}
	s := signIn{
		user: c.User, amr: a.newAMR(methodPasskey), by: credentialRef{Passkey: k.factor.ID}, gone: CodeInvalidPasskey, newDevice: onNewDevice(ctx, c),
	}
	if asserted.proven = &k; k.use.TwoFactors {
		s.code = factorCode{passkey: &asserted}
		return a.completeSignIn(ctx, s)
	}
	if c.User.Banned(a.now()) {
		return nil, fail(CodeUserBanned, nil)
	}
	use := a.newChangeOf(ctx, byAuthentication(), account{User: c.User}, copiedEvents(k, c.User)...)
	use.IfUsers = []UserAt{ifCredentialsUnchanged(c.User)}
	if _, err := a.consumePasskey(ctx, use, k, false, store.Completion{}); err != nil {
		return nil, passkeyFailed(factorFailed(err))
	}
	a.committed(ctx, use, store.OutcomeDone, nil)
	return a.completeSignIn(ctx, s)
}

// BeginPasskeyFactorParams are the parameters of BeginPasskeyFactor: the token of
// CodeMFARequired, or a caller.
type BeginPasskeyFactorParams struct {
	Caller
	MFAToken string

	InvitationToken string // or the token of an acceptance link, for AcceptInvitation
}

// BeginPasskeyFactor starts the use of a passkey as the second factor of a sign-in that
// waits for one (VerifyMFA), or for a caller's session (StepUp, Confirm). Only after the
// first factor it names the account's passkeys. Errors: CodeInvalidToken,
// CodeMFANotEnabled (there is no such passkey), CodeSessionEnded, CodeUserBanned,
// CodeMethodDisabled.
func (a *Auth) BeginPasskeyFactor(ctx context.Context, p BeginPasskeyFactorParams) (*PasskeyRequest, error) {
	if err := a.requirePasskeys(ctx); err != nil {
		return nil, err
	}
	purpose, userID, bound, not, any := challengeFactor, p.UserID, boundTo(p.Caller, nil), "", true
	if p.InvitationToken != "" {
		_, d, err := a.peek(ctx, store.PurposeInvitation, p.InvitationToken)
		if err != nil {
			return nil, err
		}
		if _, err = a.requireInviter(ctx, d); err != nil {
			return nil, err
		}
		u, err := a.invitedAccount(ctx, d)
		if err != nil {
			return nil, goneOr(CodeInvalidToken, err)
		}
		switch clean, err := a.startsClean(ctx, &cleanStart{invitation: d, user: u}); {
		case err != nil:
			return nil, err
		case !clean:
			return nil, fail(CodeMFANotEnabled, errors.New("the invitation asks for no second factor"))
		}
		purpose, userID, bound = challengeAccept, u.ID, acceptanceBound(p.InvitationToken)
	} else if p.MFAToken != "" {
		t, d, err := a.peek(ctx, store.PurposeMFA, p.MFAToken)
		if err != nil {
			return nil, err
		}
		userID, bound, not, any = t.UserID, boundTo(p.Caller, &store.TokenRef{Hash: t.Hash}), d.By.Passkey, false
	} else if _, _, err := a.liveSession(ctx, p.Caller, CodeSessionEnded); err != nil {
		return nil, err
	}
	list, err := a.factors.Factors(ctx, userID)
	if err != nil {
		return nil, storeFailed(err)
	}
	any = any || !otherRequired(list.List, "") // see passkeyDue
	allowed := slices.DeleteFunc(passkeysOf(list.List), func(f Factor) bool { return f.ID == not || !any && !f.Required })
	if len(allowed) == 0 {
		return nil, fail(CodeMFANotEnabled, nil)
	}
	return passkeyRequest(a.cfg.passkeys.Request(a.newChallenge(purpose, bound), storedPasskeys(allowed))), nil
}

// factorAssertion returns the code of a second factor by passkey; nil without a response.
func factorAssertion(response json.RawMessage, bound string) *assertedPasskey {
	if !hasValue(response) {
		return nil
	}
	return &assertedPasskey{response: response, purpose: challengeFactor, bound: bound}
}

// factorsFor returns the kinds of second factors that a sign-in may continue with.
func (a *Auth) factorsFor(ctx context.Context, u User, by credentialRef) ([]string, error) {
	kinds := slices.Clone(codeFactors)
	switch {
	case !a.passkeysOn(ctx):
		return kinds, nil
	case !u.MFAEnabled: // see passkeyDue
		return []string{methodPasskey}, nil
	}
	list, err := a.factors.Factors(ctx, u.ID)
	if err != nil {
		return nil, storeFailed(err)
	}
	if !slices.ContainsFunc(list.List, func(f Factor) bool { return f.Enabled && f.Kind == store.FactorTOTP }) {
		kinds = []string{methodRecovery}
	}
	if slices.ContainsFunc(passkeysOf(list.List), func(f Factor) bool { return f.Required && f.ID != by.Passkey }) {
		kinds = append([]string{methodPasskey}, kinds...)
	}
	return kinds, nil
}

// stillHas reports whether an account still has the credential of a sign-in.
func (a *Auth) stillHas(ctx context.Context, c store.Credentials, by credentialRef) (bool, error) {
	if by.Passkey == "" {
		return by.isCurrent(c), nil
	}
	list, err := a.factors.Factors(ctx, c.User.ID)
	if err != nil {
		return false, storeFailed(err)
	}
	return slices.ContainsFunc(passkeysOf(list.List), func(f Factor) bool { return f.ID == by.Passkey }), nil
}

// handleBeginPasskeySignIn is POST /passkeys/sign-in/begin. A browser's challenges are bound
// to a cookie, which several tabs share.
func (a *Auth) handleBeginPasskeySignIn(w http.ResponseWriter, r *http.Request) error {
	if err := decodeOptional(r, &struct{}{}); err != nil {
		return err
	}
	begin := func() (*PasskeyRequest, error) { return a.BeginPasskeySignIn(r.Context()) }
	if a.bindsByCookie(r) {
		begin = func() (*PasskeyRequest, error) { return a.beginPasskeyInBrowser(w, r) }
	}
	begun, err := begin()
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, begun)
}

func (a *Auth) beginPasskeyInBrowser(w http.ResponseWriter, r *http.Request) (*PasskeyRequest, error) {
	binding := cmp.Or(a.passkeyCookie(r), newHandle())
	begun, err := a.beginPasskeySignIn(r.Context(), binding)
	if err != nil {
		return nil, err
	}
	a.setCookie(w, a.cookieNamed(passkeyBinding), binding, int(time.Hour/time.Second))
	begun.RequestID = ""
	return begun, nil
}

// bindsByCookie reports whether a request's answer goes into cookies.
func (a *Auth) bindsByCookie(r *http.Request) bool {
	by := transportOf(r.Context())
	return by != nil && by.cookies
}

// passkeyCookie returns the browser's binding, or "".
func (a *Auth) passkeyCookie(r *http.Request) string {
	c := soleCookie(r, a.cookieNamed(passkeyBinding))
	if c == nil || len(c.Value) != len(newHandle()) {
		return ""
	}
	return c.Value
}

func (a *Auth) handleFinishPasskeySignIn(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		RequestID  string          `json:"request_id"`
		Credential json.RawMessage `json:"credential"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	switch {
	case p.RequestID != "":
	case a.bindsByCookie(r):
		p.RequestID = a.passkeyCookie(r)
	default:
		return invalid("request_id", "is required")
	}
	if !hasValue(p.Credential) {
		return invalid("credential", "is required")
	}
	tokens, err := a.FinishPasskeySignIn(r.Context(), FinishPasskeySignInParams{RequestID: p.RequestID, Credential: p.Credential})
	if err != nil {
		return err
	}
	return a.writeTokens(w, r, tokens)
}

func (a *Auth) handleBeginPasskeyFactor(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		MFAToken        string `json:"mfa_token"`
		InvitationToken string `json:"invitation_token"`
	}
	if err := decodeOptional(r, &p); err != nil {
		return err
	}
	by := BeginPasskeyFactorParams{MFAToken: p.MFAToken, InvitationToken: p.InvitationToken}
	if p.MFAToken == "" && p.InvitationToken == "" {
		me, err := a.live(r)
		if err != nil {
			return err
		}
		by.Caller = me.caller()
	}
	begun, err := a.BeginPasskeyFactor(r.Context(), by)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, begun)
}

// ownAssertion returns an assertion in a caller's session, where each passkey counts.
func ownAssertion(response json.RawMessage, by Caller) *assertedPasskey {
	p := factorAssertion(response, boundTo(by, nil))
	if p != nil {
		p.any = true
	}
	return p
}

func boolCount(list ...bool) (n int) {
	for _, b := range list {
		if b {
			n++
		}
	}
	return n
}

// confirmByPasskey records the use of a passkey that counts as one factor on the caller's
// session, whose level stays.
func (a *Auth) confirmByPasskey(ctx context.Context, by Caller, c store.Change, f *factorChange) (store.FactorResult, error) {
	if _, err := f.store(c, store.Completion{}); err != nil {
		return store.FactorResult{}, err
	}
	a.committed(ctx, c, store.OutcomeDone, f.edit)
	s, u, err := a.store.AddAuthentication(ctx, store.AddAuthentication{Change: a.newChange(ctx, c.By), SessionID: by.SessionID, Proof: f.amr})
	if err != nil {
		err = goneOr(CodeSessionEnded, err)
	}
	return store.FactorResult{User: u, Session: s}, err
}
