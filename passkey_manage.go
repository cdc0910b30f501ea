package auth

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// PasskeyView is a passkey as lists show it.
type PasskeyView struct {
	ID            string     `json:"id"`
	Name          string     `json:"name"`
	SecondFactor  bool       `json:"second_factor"` // a sign-in by another method asks for a second factor
	Synced        bool       `json:"synced"`        // the passkey may be on several devices
	Authenticator string     `json:"authenticator"` // the product, such as "iCloud Keychain"; "" if it is unknown
	AAGUID        string     `json:"aaguid"`        // of the product; for show only, nobody vouches for it
	Transports    []string   `json:"transports"`
	CredentialID  string     `json:"credential_id"` // base64url, for the Signal API
	CreatedAt     time.Time  `json:"created_at"`
	LastUsedAt    *time.Time `json:"last_used_at"`
}

func (a *Auth) viewPasskey(f Factor) PasskeyView {
	info := a.cfg.passkeys.Describe(storedPasskey(f))
	v := PasskeyView{
		ID: f.ID, Name: f.Label, SecondFactor: f.Required, Synced: info.Synced, Authenticator: info.Authenticator, AAGUID: info.AAGUID,
		Transports: nonNil(info.Transports), CredentialID: base64.RawURLEncoding.EncodeToString(f.Credential),
		CreatedAt: wireTime(f.CreatedAt),
	}
	if !f.LastUsedAt.IsZero() {
		at := wireTime(f.LastUsedAt)
		v.LastUsedAt = &at
	}
	return v
}

// PasskeyList is the passkeys of an account, with what the Signal API needs.
type PasskeyList struct {
	Passkeys   []PasskeyView `json:"passkeys"`
	RPID       string        `json:"rp_id"`
	UserHandle string        `json:"user_handle"` // base64url
}

// ListPasskeys returns a user's passkeys, the oldest first. Errors: CodeSessionEnded,
// CodeMethodDisabled (no passkeys are configured).
func (a *Auth) ListPasskeys(ctx context.Context, by Caller) (PasskeyList, error) {
	if a.cfg.passkeys == nil || a.factors == nil {
		return PasskeyList{}, fail(CodeMethodDisabled, nil)
	}
	me, err := a.acting(ctx, by)
	if err != nil {
		return PasskeyList{}, err
	}
	list, err := a.factors.Factors(ctx, by.UserID)
	if err != nil {
		return PasskeyList{}, storeFailed(err)
	}
	out := PasskeyList{Passkeys: []PasskeyView{}, UserHandle: me.user.Handle}
	out.RPID, _ = a.cfg.passkeys.RPID()
	for _, f := range passkeysOf(list.List) {
		out.Passkeys = append(out.Passkeys, a.viewPasskey(f))
	}
	return out, nil
}

// BeginPasskeyParams are the parameters of BeginPasskey, for a caller or with the token of
// CodeMFAEnrollmentRequired.
type BeginPasskeyParams struct {
	Caller
	MFAToken string

	// Conditional starts an upgrade that a browser makes by itself after a sign-in with a
	// password (conditional creation). Such a passkey is no second factor, and counts as one
	// factor until it was used together with another.
	Conditional bool
}

// BeginPasskey starts the registration of a passkey. The session needs a sign-in or another
// authentication within the last 15 minutes, with the second factor if the account has one,
// and the account a verified email address or phone number. Errors: CodeReauthNeeded,
// CodeInsufficientAAL, CodeEmailNotVerified, CodeTargetStronger (the account waits for an
// acceptance), CodeMethodDisabled, CodeSessionEnded, CodeBadToken, CodeUserBanned.
func (a *Auth) BeginPasskey(ctx context.Context, p BeginPasskeyParams) (*PasskeyRequest, error) {
	e, list, err := a.passkeyEnrollee(ctx, p.Caller, p.MFAToken)
	if err != nil {
		return nil, err
	}
	purpose := challengeCreate
	if p.Conditional && p.MFAToken == "" {
		purpose = challengeUpgrade
	}
	handle, err := base64.RawURLEncoding.DecodeString(e.user.Handle)
	if err != nil {
		return nil, fail(CodeInternal, err)
	}
	name := cmp.Or(e.user.Email, e.user.Phone)
	return passkeyRequest(a.cfg.passkeys.Creation(host.PasskeyCreation{
		Challenge: a.newChallenge(purpose, boundTo(p.Caller, e.token)), Handle: handle, Name: name, DisplayName: cmp.Or(e.user.FullName, name), Exclude: storedPasskeys(passkeysOf(list)),
	})), nil
}

// passkeyEnrollee returns the user who adds a passkey, with a user handle, and the user's
// factors.
func (a *Auth) passkeyEnrollee(ctx context.Context, by Caller, mfaToken string) (e enrollee, list []Factor, err error) {
	if err := a.requirePasskeys(ctx); err != nil {
		return e, nil, err
	}
	if by.SessionID == "" && mfaToken == "" { // not even the application adds a sign-in method without the holder
		return e, nil, invalid("session_id", "is required")
	}
	if e, err = a.enrollee(ctx, by, mfaToken); err == nil {
		err = requireVerified(e.user)
	}
	if err != nil {
		return e, nil, err
	}
	if e.user.Handle == "" { // imported into the store without one
		handle := newHandle()
		c := a.newChange(ctx, byFlow("user handle"))
		c.IfUsers = []UserAt{ifCredentialsUnchanged(e.user)}
		if e.user, err = a.update(ctx, c, e.user.ID, store.UserPatch{Handle: &handle}); err != nil {
			return e, nil, goneOr(CodeSessionEnded, err)
		}
	}
	factors, err := a.factors.Factors(ctx, e.user.ID)
	if err != nil {
		return e, nil, storeFailed(err)
	}
	if len(passkeysOf(factors.List)) >= maxPasskeys { // before a device creates one that would lead nowhere
		return e, nil, invalid("credential", "is one too many: remove another passkey first")
	}
	return e, factors.List, nil
}

// AddPasskeyParams are the parameters of AddPasskey.
type AddPasskeyParams struct {
	Caller
	MFAToken   string          // as in BeginPasskeyParams
	Credential json.RawMessage // a RegistrationResponseJSON (WebAuthn Level 3, section 5.1)
	Name       string          // the user's own name for it, up to 100 characters; by default the product's

	// SecondFactor makes sign-ins by other methods ask for a second factor: this passkey or
	// another one. It is implied by MFAToken, and while the account needs a second factor.
	SecondFactor bool
}

// AddedPasskey is the result of AddPasskey.
type AddedPasskey struct {
	Passkey       PasskeyView
	RecoveryCodes []string // with the first second factor; shown this once
	Tokens        *Tokens
}

// AddPasskey completes the registration of a passkey. As a second factor it raises the
// session to AAL2 and revokes the user's other sessions. Errors: those of BeginPasskey,
// CodeInvalidPasskey, CodePasskeyAlreadyExists, CodeRateLimited (by PasskeysPerUser),
// CodeValidationFailed.
func (a *Auth) AddPasskey(ctx context.Context, p AddPasskeyParams) (*AddedPasskey, error) {
	e, _, err := a.passkeyEnrollee(ctx, p.Caller, p.MFAToken)
	if err != nil {
		return nil, err
	}
	label, err := passkeyName(p.Name)
	if err != nil {
		return nil, err
	}
	upgrade, bound := false, boundTo(p.Caller, e.token)
	k, err := a.cfg.passkeys.Register(p.Credential, func(challenge string) (ok, conditional bool) {
		upgrade = e.token == nil && a.validChallenge(challengeUpgrade, bound, challenge)
		return upgrade || a.validChallenge(challengeCreate, bound, challenge), upgrade
	})
	switch {
	case err != nil:
		return nil, fail(CodeInvalidPasskey, err)
	case upgrade && p.SecondFactor:
		return nil, invalid("second_factor", "needs a passkey that the user created by hand")
	}
	if e.token == nil { // each leaves a record when it is removed; with a token only one can be added
		if err := a.take(ctx, a.additions(e.user).Draw); err != nil {
			return nil, err
		}
	}
	if err := a.recordRPID(ctx); err != nil {
		return nil, err
	}
	f := Factor{
		ID: a.newID(), UserID: e.user.ID, Kind: store.FactorPasskey, Several: true, Credential: k.ID, Secret: k.Record, State: k.State, CreatedAt: a.now(),
		Required: !upgrade && (p.SecondFactor || e.token != nil || a.mfaRequired(ctx, e.user)),
		Label:    cmp.Or(label, a.cfg.passkeys.Describe(k).Authenticator, deviceLabel(clientFrom(ctx).UserAgent), "Passkey"),
	}
	if e.creates {
		if err := a.beforeSignIn(ctx, SignInAttempt{User: e.user, Method: e.session.AMR[0].Method, Provider: e.by.Provider}); err != nil {
			return nil, err
		}
	}
	if err := a.putFactor(ctx, p.Caller, e, f); err != nil {
		return nil, passkeyTaken(err)
	}
	done, err := a.enableFactor(ctx, p.Caller, e, f, k.State, methodPasskey, a.passkeyAdded(e, f)...)
	if err != nil {
		return nil, passkeyTaken(err)
	}
	return &AddedPasskey{Passkey: a.viewPasskey(f), RecoveryCodes: done.RecoveryCodes, Tokens: done.Tokens}, nil
}

// additions is the limit of the passkeys that an account adds in a day.
func (a *Auth) additions(u User) attemptLimit {
	return a.attemptLimit(a.cfg.limits.PasskeysPerUser, "passkey", u.ID).refilled()
}

// passkeyAdded returns the events of a new passkey.
func (a *Auth) passkeyAdded(e enrollee, f Factor) []store.OutcomeEvent {
	list := []store.OutcomeEvent{done(Event{Type: EventPasskeyAdded, UserID: e.user.ID, SessionID: e.session.ID, Method: methodPasskey})}
	if f.Required && !e.user.MFAEnabled {
		list = append(list, done(Event{Type: EventMFAEnabled, UserID: e.user.ID, SessionID: e.session.ID}))
	}
	return list
}

func passkeyTaken(err error) error {
	if errors.Is(err, CodeMFAAlreadyEnabled) {
		return fail(CodePasskeyAlreadyExists, err)
	}
	return err
}

// passkeyName normalises and checks a user's name for a passkey.
func passkeyName(name string) (string, error) {
	name, err := cleanName(name)
	if err == nil && utf8.RuneCountInString(name) > maxPasskeyName {
		err = errors.New("is too long")
	}
	if err != nil {
		return "", invalid("name", err.Error())
	}
	return name, nil
}

// ChangePasskeyParams are the parameters of ChangePasskey. Nil fields do not change.
type ChangePasskeyParams struct {
	Caller
	ID           string
	Name         *string
	SecondFactor *bool
}

// ChangePasskey renames a passkey, or makes it a second factor or none. The rules are those
// of BeginPasskey; to make it a second factor, the session needs to be at AAL2 recently, for
// instance by Confirm with the passkey. Errors: those, CodePasskeyNotFound, CodeMFAEnforced (the account needs a
// second factor and this is the last one), CodeRateLimited (by ProfileChangesPerUser),
// CodeValidationFailed.
func (a *Auth) ChangePasskey(ctx context.Context, p ChangePasskeyParams) (*AddedPasskey, error) {
	me, f, list, err := a.ownPasskey(ctx, p.Caller, p.ID)
	if err != nil {
		return nil, err
	}
	c := a.newChangeOf(ctx, p.authority(), account{User: me.user})
	c.IfUsers = []UserAt{ifCredentialsUnchanged(me.user)}
	u := store.UpdateFactor{UserID: me.user.ID, FactorID: f.ID, KeepSession: me.session.ID}
	if p.Name != nil {
		label, err := passkeyName(*p.Name)
		if err == nil && label == "" {
			err = invalid("name", "is required")
		}
		if err != nil {
			return nil, err
		}
		u.Label = &label
	}
	var codes []string
	if p.SecondFactor != nil && *p.SecondFactor != f.Required {
		u.Required = p.SecondFactor
		if *p.SecondFactor { // the session goes on, and shows that the passkey works
			if err := a.requireRecentFactor(p.Caller, me.session); err != nil {
				return nil, err
			}
		}
		switch {
		case *p.SecondFactor && !me.user.MFAEnabled:
			codes, u.Recovery = a.newRecoveryCodes(me.user.ID)
			c = a.newChangeOf(ctx, p.authority(), account{User: me.user}, done(Event{Type: EventMFAEnabled, UserID: me.user.ID, SessionID: me.session.ID}))
		case !*p.SecondFactor && !otherRequired(list, f.ID):
			if !p.application && a.mfaRequired(ctx, me.user) {
				return nil, fail(CodeMFAEnforced, nil)
			}
			c = a.newChangeOf(ctx, p.authority(), account{User: me.user}, done(Event{Type: EventMFADisabled, UserID: me.user.ID, SessionID: me.session.ID}))
		}
		if !p.application { // otherwise a session could fill the audit log
			if err := a.take(ctx, a.draw(a.cfg.limits.ProfileChangesPerUser, "passkey-change", me.user.ID, 1)); err != nil {
				return nil, err
			}
		}
		c.IfUsers = []UserAt{ifCredentialsUnchanged(me.user)}
	}
	u.Change = c
	if f, err = a.factors.UpdateFactor(ctx, u); err != nil {
		return nil, passkeyGone(err)
	}
	a.committed(ctx, c, store.OutcomeDone, nil)
	return &AddedPasskey{Passkey: a.viewPasskey(f), RecoveryCodes: codes}, nil
}

// otherRequired reports whether another enabled factor is a second factor.
func otherRequired(list []Factor, id string) bool {
	return slices.ContainsFunc(list, func(f Factor) bool { return f.Enabled && f.Required && f.ID != id })
}

func passkeyGone(err error) error {
	if errors.Is(err, store.ErrStale) {
		return fail(CodePreconditionFailed, err)
	}
	return goneOr(CodePasskeyNotFound, err)
}

// ownPasskey returns a passkey of a caller with a recent authentication, and all the
// caller's factors.
func (a *Auth) ownPasskey(ctx context.Context, by Caller, id string) (me current, f Factor, list []Factor, err error) {
	if a.cfg.passkeys == nil || a.factors == nil {
		return me, f, nil, fail(CodeMethodDisabled, nil)
	}
	if me, err = a.actingLately(ctx, by); err == nil {
		err = a.requireOwnFactor(ctx, by, me)
	}
	if err == nil && !by.application {
		err = a.requireNoWait(ctx, me.user)
	}
	if err != nil {
		return me, f, nil, err
	}
	factors, err := a.factors.Factors(ctx, me.user.ID)
	if err != nil {
		return me, f, nil, storeFailed(err)
	}
	i := slices.IndexFunc(factors.List, func(f Factor) bool { return f.ID == id && f.Enabled && f.Kind == store.FactorPasskey })
	if i < 0 {
		return me, f, nil, fail(CodePasskeyNotFound, nil)
	}
	return me, factors.List[i], factors.List, nil
}

// RemovePasskeyParams are the parameters of RemovePasskey.
type RemovePasskeyParams struct {
	Caller
	ID string
}

// RemovePasskey removes a passkey. Sessions that were started with it stay live. Errors:
// CodePasskeyNotFound, CodeLastSignInMethod, CodeMFAEnforced, CodeReauthNeeded,
// CodeInsufficientAAL, CodeSessionEnded, CodeUserBanned, CodeMethodDisabled.
func (a *Auth) RemovePasskey(ctx context.Context, p RemovePasskeyParams) error {
	_, err := change(func() (struct{}, error) { return struct{}{}, a.removePasskey(ctx, p) })
	return err
}

func (a *Auth) removePasskey(ctx context.Context, p RemovePasskeyParams) error {
	me, f, list, err := a.ownPasskey(ctx, p.Caller, p.ID)
	if err != nil {
		return err
	}
	creds, err := a.store.Credentials(ctx, store.ByID(me.user.ID))
	if err != nil {
		return goneOr(CodeSessionEnded, err)
	}
	lastFactor := f.Required && !otherRequired(list, f.ID)
	switch {
	case p.application:
	case !a.canSignInBy(ctx, creds, "", len(passkeysOf(list))-1):
		return fail(CodeLastSignInMethod, nil)
	case lastFactor && a.mfaRequired(ctx, me.user):
		return fail(CodeMFAEnforced, nil)
	}
	if err := a.recordRemoved(ctx, f); err != nil {
		return err
	}
	c := a.newChangeOf(ctx, p.authority(), account{User: creds.User}, removedEvents(creds.User, me.session.ID, f, lastFactor)...)
	c.IfUsers = []UserAt{ifCredentialsUnchanged(me.user)} // as it was before list was read
	_, err = a.factors.RemoveFactor(ctx, store.RemoveFactor{Change: c, UserID: me.user.ID, FactorID: f.ID})
	switch {
	case errors.Is(err, store.ErrStale):
		return err
	case err != nil:
		return goneOr(CodePasskeyNotFound, err)
	}
	a.committed(ctx, c, store.OutcomeDone, nil)
	return nil
}

// removedEvents returns the events of a removed factor. last: no second factor is left.
func removedEvents(u User, sessionID string, f Factor, last bool) (list []store.OutcomeEvent) {
	switch {
	case f.Kind == store.FactorPasskey:
		list = append(list, done(Event{Type: EventPasskeyRemoved, UserID: u.ID, SessionID: sessionID, Method: methodPasskey}))
	case !last:
		list = append(list, done(Event{Type: EventTOTPRemoved, UserID: u.ID, SessionID: sessionID}))
	}
	if f.Required && last {
		list = append(list, done(Event{Type: EventMFADisabled, UserID: u.ID, SessionID: sessionID}))
	}
	return list
}

func (a *Auth) handlePasskeys(w http.ResponseWriter, r *http.Request) error {
	list, err := a.ListPasskeys(r.Context(), currentFrom(r.Context()).caller())
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, list)
}

func (a *Auth) handleBeginPasskey(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Conditional bool `json:"conditional"`
	}
	if err := decodeOptional(r, &p); err != nil {
		return err
	}
	me := currentFrom(r.Context())
	begun, err := a.BeginPasskey(r.Context(), BeginPasskeyParams{me.caller(), me.mfaToken, p.Conditional})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, begun)
}

func (a *Auth) handleAddPasskey(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Credential   json.RawMessage `json:"credential"`
		Name         string          `json:"name"`
		SecondFactor bool            `json:"second_factor"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	if !hasValue(p.Credential) {
		return invalid("credential", "is required")
	}
	me := currentFrom(r.Context())
	added, err := a.AddPasskey(r.Context(), AddPasskeyParams{me.caller(), me.mfaToken, p.Credential, p.Name, p.SecondFactor})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, addedPasskey{added, a.carried(w, r, added.Tokens)})
}

// addedPasskey is the Session object with the passkey and recovery codes.
type addedPasskey struct {
	added  *AddedPasskey
	tokens Tokens
}

func (p addedPasskey) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Passkey       PasskeyView `json:"passkey"`
		RecoveryCodes []string    `json:"recovery_codes"`
		SessionView
	}{p.added.Passkey, nonNil(p.added.RecoveryCodes), p.tokens.View()})
}

func (a *Auth) handleChangePasskey(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Name         *string `json:"name"`
		SecondFactor *bool   `json:"second_factor"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	changed, err := a.ChangePasskey(r.Context(), ChangePasskeyParams{currentFrom(r.Context()).caller(), r.PathValue("id"), p.Name, p.SecondFactor})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"passkey": changed.Passkey, "recovery_codes": nonNil(changed.RecoveryCodes)})
}

func (a *Auth) handleRemovePasskey(w http.ResponseWriter, r *http.Request) error {
	if err := a.RemovePasskey(r.Context(), RemovePasskeyParams{currentFrom(r.Context()).caller(), r.PathValue("id")}); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}
