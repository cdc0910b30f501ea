package auth

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// Passkeys are factors of the kind store.FactorPasskey. Package passkey checks the
// ceremonies of WebAuthn; this file and the next two decide what they lead to.

const methodPasskey = "passkey"

const (
	challengeLife  = 5 * time.Minute
	removedLife    = 365 * 24 * time.Hour // a removed passkey is remembered for this long
	reasonSynced   = "synced"             // Event.Reason of a counter that did not grow
	passkeyBinding = "passkey"            // the cookie that binds a browser's challenges
	maxPasskeys    = 20                   // of an account
	maxPasskeyName = 100                  // characters
	rpIDSubject    = "passkeys: RP ID"
)

// Passkeys are the ceremonies of WebAuthn. Package passkey creates them.
type Passkeys = host.Passkeys

// WithPasskeys turns passkeys on:
//
//	auth.WithPasskeys(passkey.New(passkey.Options{}))
//
// The setting passkey_enabled can turn them off again. They need a store.FactorStore.
func WithPasskeys(p Passkeys) Option {
	return func(c *config) {
		if p == nil {
			c.fail("WithPasskeys", errors.New("passkey.New(passkey.Options{}) is needed"))
			return
		}
		c.passkeys = p
	}
}

// bindPasskeys gives the passkeys the service's URL. It refuses an RP ID that stored
// passkeys do not have.
func (a *Auth) bindPasskeys(ctx context.Context) error {
	p := a.cfg.passkeys
	if p == nil {
		return nil
	}
	if a.factors == nil {
		return fmt.Errorf("WithPasskeys: %w", lacks[store.FactorStore]())
	}
	if err := p.Bind(a.publicURL, a.appName); err != nil {
		return fmt.Errorf("WithPasskeys: %w", err)
	}
	_, stored, err := a.peekHash(ctx, store.PurposeStop, recordHash(rpIDSubject, ""))
	if errors.Is(err, CodeInvalidToken) {
		return nil // no passkey was ever added
	}
	if id, others := p.RPID(); err == nil && stored.RPID != id && !others {
		return fmt.Errorf("WithPasskeys: the stored passkeys belong to the RP ID %q and could not be used with %q any more: set Options.RPID, or allow it with Options.OtherRPID", stored.RPID, id)
	}
	return err
}

// recordRPID stores the RP ID of the first passkey.
func (a *Auth) recordRPID(ctx context.Context) error {
	hash := recordHash(rpIDSubject, "")
	id, _ := a.cfg.passkeys.RPID()
	if _, d, err := a.peekHash(ctx, store.PurposeStop, hash); err == nil && d.RPID == id || err != nil && !errors.Is(err, CodeInvalidToken) {
		return err
	}
	_, t := a.newLink(store.PurposeStop, 100*removedLife, linkData{RPID: id})
	t.Hash, t.Subject = hash, rpIDSubject
	return a.putToken(ctx, byFlow("first passkey"), t)
}

// passkeysOn reports whether passkeys can be used.
func (a *Auth) passkeysOn(ctx context.Context) bool {
	return a.cfg.passkeys != nil && a.factors != nil && a.Settings(ctx).Passkey.On()
}

func (a *Auth) requirePasskeys(ctx context.Context) error {
	if !a.passkeysOn(ctx) {
		return fail(CodeMethodDisabled, nil)
	}
	return nil
}

// Challenges carry their purpose, what they are bound to and their expiry under a MAC, so
// that a page view stores nothing. The passkey's state remembers the used ones.

// The purposes of challenges.
const (
	challengeSignIn  = "passkey sign-in"            // bound to the browser or the request id
	challengeFactor  = "passkey factor"             // bound to the session or the waiting sign-in
	challengeCreate  = "passkey creation"           // likewise
	challengeUpgrade = "passkey creation upgrade"   // without a gesture of the user: conditional creation
	challengeAccept  = "passkey acceptance of link" // bound to an acceptance link
)

func challengeAbout(purpose, bound string) string { return purpose + "\x00" + bound }

func (a *Auth) newChallenge(purpose, bound string) string {
	return a.keys.RequestID(challengeAbout(purpose, bound), a.now().Add(challengeLife))
}

func (a *Auth) validChallenge(purpose, bound, challenge string) bool {
	return a.keys.ValidRequestID(challengeAbout(purpose, bound), challenge, a.now())
}

// boundTo names what a caller's challenges are bound to: the waiting sign-in or the session.
func boundTo(by Caller, token *store.TokenRef) string {
	if token != nil {
		return "token " + base64.RawURLEncoding.EncodeToString(token.Hash)
	}
	return "session " + by.SessionID
}

// PasskeyRequest is the start of a ceremony, for the client.
type PasskeyRequest struct {
	// PublicKey is a PublicKeyCredentialCreationOptionsJSON or a
	// PublicKeyCredentialRequestOptionsJSON (WebAuthn Level 3, section 5.1).
	PublicKey any    `json:"public_key"`
	RequestID string `json:"request_id,omitempty"` // of a sign-in without cookies: FinishPasskeySignIn takes it back
	ExpiresIn int    `json:"expires_in"`           // in seconds
}

func passkeyRequest(publicKey any) *PasskeyRequest {
	return &PasskeyRequest{PublicKey: publicKey, ExpiresIn: int(challengeLife / time.Second)}
}

// assertedPasskey is an assertion by a client, and what it has to match.
type assertedPasskey struct {
	response json.RawMessage
	purpose  string
	bound    string
	not      string // the id of a factor that does not count, because it was used before
	any      bool   // a passkey that is no second factor counts, too; it always does while the account has none
	fresh    bool   // another factor came with it

	proven *provenPasskey // the result of the first check; nil: none yet
}

// provenPasskey is a passkey whose assertion was valid.
type provenPasskey struct {
	factor    Factor
	use       host.PasskeyUse
	codesGone int64 // see usedFactor
}

// readAssertion reads an assertion and checks its challenge. Errors: CodeInvalidPasskey.
func (a *Auth) readAssertion(ctx context.Context, p assertedPasskey) (host.Assertion, error) {
	if err := a.requirePasskeys(ctx); err != nil {
		return nil, err
	}
	read, err := a.cfg.passkeys.Assertion(p.response)
	if err != nil {
		return nil, fail(CodeInvalidPasskey, err)
	}
	if !a.validChallenge(p.purpose, p.bound, read.Challenge()) {
		return nil, fail(CodeInvalidPasskey, errors.New("the challenge has expired, or is another caller's"))
	}
	return read, nil
}

// provePasskey checks an assertion against the passkeys of a user. Errors:
// CodeInvalidPasskey, CodePasskeyRemoved.
func (a *Auth) provePasskey(ctx context.Context, u User, p assertedPasskey) (provenPasskey, error) {
	read, err := a.readAssertion(ctx, p)
	if err != nil {
		return provenPasskey{}, err
	}
	if handle := base64.RawURLEncoding.EncodeToString(read.Handle()); handle != "" && handle != u.Handle {
		return provenPasskey{}, fail(CodeInvalidPasskey, errors.New("another account's user handle"))
	}
	list, err := a.factors.Factors(ctx, u.ID)
	if err != nil {
		return provenPasskey{}, storeFailed(err)
	}
	i := slices.IndexFunc(list.List, func(f Factor) bool {
		return f.Enabled && f.Kind == store.FactorPasskey && slices.Equal(f.Credential, read.ID())
	})
	if i < 0 {
		return provenPasskey{}, a.unknownPasskey(ctx, read.ID())
	}
	f := list.List[i]
	if f.ID == p.not || !p.any && !f.Required && u.MFAEnabled {
		return provenPasskey{}, fail(CodeInvalidPasskey, errors.New("the passkey does not count as a second factor"))
	}
	use, err := read.Verify(storedPasskey(f), a.now())
	k := provenPasskey{factor: f, use: use}
	if err != nil {
		a.reportCopy(ctx, u, k)
		return provenPasskey{}, fail(CodeInvalidPasskey, err)
	}
	if f.Required && list.RecoveryLeft == 0 {
		k.codesGone = list.Recovery.Sequence
	}
	return k, nil
}

// unknownPasskey returns the error for a passkey that the caller's account does not have. It
// says so if the passkey was removed: the client then has its authenticator forget it. That is
// final, so it happens only if this service remembers the removal, and the removal succeeded.
func (a *Auth) unknownPasskey(ctx context.Context, id []byte) error {
	_, d, err := a.peekHash(ctx, store.PurposeStop, removedPasskeyHash(id))
	switch {
	case errors.Is(err, CodeInvalidToken):
		return fail(CodeInvalidPasskey, err)
	case err != nil:
		return err
	}
	list, err := a.factors.Factors(ctx, d.RemovedFrom)
	if err != nil {
		return storeFailed(err)
	}
	if slices.ContainsFunc(list.List, func(f Factor) bool { return slices.Equal(f.Credential, id) }) {
		return fail(CodeInvalidPasskey, errors.New("another account's passkey, whose removal failed"))
	}
	return fail(CodePasskeyRemoved, nil)
}

func removedPasskeyHash(id []byte) []byte { return recordHash("removed passkey", string(id)) }

// recordRemoved remembers a factor that is about to be removed, if it is a passkey. Without
// the record, which outlives the account, clients would keep offering it. If the removal then
// fails, unknownPasskey finds that the account still has it.
func (a *Auth) recordRemoved(ctx context.Context, f Factor) error {
	if f.Kind != store.FactorPasskey {
		return nil
	}
	_, t := a.newLink(store.PurposeStop, removedLife, linkData{RemovedFrom: f.UserID})
	t.Hash = removedPasskeyHash(f.Credential)
	t.Subject = "removed passkey " + base64.RawURLEncoding.EncodeToString(t.Hash) // a credential may come back
	return a.putToken(ctx, byFlow("passkey removed"), t)
}

func storedPasskey(f Factor) host.Passkey {
	return host.Passkey{ID: f.Credential, Record: f.Secret, State: f.State}
}

// passkeysOf returns the enabled passkeys among factors.
func passkeysOf(list []Factor) (all []Factor) {
	for _, f := range list {
		if f.Enabled && f.Kind == store.FactorPasskey {
			all = append(all, f)
		}
	}
	return all
}

func storedPasskeys(list []Factor) (out []host.Passkey) {
	for _, f := range list {
		out = append(out, storedPasskey(f))
	}
	return out
}

// usePasskey is useFactor for a passkey.
func (a *Auth) usePasskey(ctx context.Context, f factorUse) (usedFactor, error) {
	known := f.code.passkey.proven
	for range attempts {
		k, err := provenPasskey{}, error(nil)
		if known != nil {
			k, known = *known, nil
		} else if k, err = a.provePasskey(ctx, f.user, *f.code.passkey); err != nil {
			return usedFactor{}, err
		}
		f.alone = !k.use.TwoFactors && !f.code.passkey.fresh
		used, err := a.consumeFactor(ctx, f, methodPasskey, copiedEvents(k, f.user), func(c store.Change, done store.Completion) (store.FactorResult, error) {
			return a.consumePasskey(ctx, c, k, f.code.passkey.fresh, done)
		})
		if !errors.Is(err, store.ErrUsed) || errors.Is(err, CodeInvalidTOTPCode) {
			used.id, used.alone, used.codesGone = k.factor.ID, f.alone, k.codesGone
			return used, passkeyFailed(err)
		}
	}
	return usedFactor{}, retryAfter(CodeUnavailable, time.Second, store.ErrUsed)
}

// confirmPasskey is called after a sign-in that began with a passkey and used another
// factor. The sign-in succeeds in any case.
func (a *Auth) confirmPasskey(ctx context.Context, userID, id string) {
	list, err := a.factors.Factors(ctx, userID)
	i := slices.IndexFunc(list.List, func(f Factor) bool { return f.ID == id })
	if err != nil || i < 0 || a.cfg.passkeys == nil {
		return
	}
	f := list.List[i]
	if state := a.cfg.passkeys.Confirmed(f.State); state != nil {
		_, err = a.factors.UseFactor(ctx, store.UseFactor{Change: a.newChange(ctx, byAuthentication()), UserID: userID, FactorID: id, State: f.State, NewState: state})
	}
	if err != nil {
		a.cfg.log.WarnContext(ctx, "auth: a passkey that was used with another factor still counts as one", "user", userID, "error", err)
	}
}

// passkeyFailed returns the error of a passkey for that of a code.
func passkeyFailed(err error) error {
	if errors.Is(err, CodeInvalidTOTPCode) {
		return fail(CodeInvalidPasskey, err)
	}
	return err
}

// consumePasskey stores the use of a passkey, with another factor or without.
func (a *Auth) consumePasskey(ctx context.Context, c store.Change, k provenPasskey, fresh bool, done store.Completion) (store.FactorResult, error) {
	state := k.use.State
	if confirmed := a.cfg.passkeys.Confirmed(state); fresh && confirmed != nil {
		state = confirmed
	}
	return a.factors.UseFactor(ctx, store.UseFactor{
		Change: c, UserID: k.factor.UserID, FactorID: k.factor.ID, State: k.factor.State, NewState: state, Completion: done,
	})
}

// copiedEvents returns the event of a signature counter that did not grow. Its notice tells
// the owner of a passkey that is on one device only; synced ones have no use for counters.
func copiedEvents(k provenPasskey, u User) []store.OutcomeEvent {
	if !k.use.Copied {
		return nil
	}
	e := Event{Type: EventPasskeyCounterNotIncreased, UserID: u.ID, Method: methodPasskey}
	if k.use.Synced {
		e.Reason = reasonSynced
	}
	return []store.OutcomeEvent{done(e)}
}

// reportCopy records a refused passkey whose counter did not grow, once for each assertion.
// The copy may be the one that was let in before.
func (a *Auth) reportCopy(ctx context.Context, u User, k provenPasskey) {
	if !k.use.Copied {
		return
	}
	c := a.newChangeOf(ctx, byAuthentication(), account{User: u}, copiedEvents(k, u)...)
	c.IfUsers = []UserAt{ifCredentialsUnchanged(u)}
	if _, err := a.consumePasskey(ctx, c, k, false, store.Completion{}); err != nil {
		a.cfg.log.WarnContext(ctx, "auth: a passkey that may have been copied was refused, and its owner not told", "user", u.ID, "error", err)
		return
	}
	a.committed(ctx, c, store.OutcomeDone, nil)
}

// WellKnown serves the files below /.well-known/ that belong to passkeys and passwords:
// passkey-endpoints and change-password, which name the account page of package pages, and
// webauthn, the related origins. Mount it at the root of the RP ID's host:
//
//	mux.Handle("/.well-known/", a.WellKnown())
//
// Nothing may redirect these requests.
func (a *Auth) WellKnown() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/webauthn", func(w http.ResponseWriter, r *http.Request) {
		if a.cfg.passkeys == nil {
			http.NotFound(w, r)
			return
		}
		_ = writeJSON(w, http.StatusOK, map[string][]string{"origins": nonNil(a.cfg.passkeys.RelatedOrigins())})
	})
	mux.HandleFunc("GET /.well-known/passkey-endpoints", func(w http.ResponseWriter, r *http.Request) {
		page := a.accountPage()
		if page == "" || !a.passkeysOn(r.Context()) {
			http.NotFound(w, r)
			return
		}
		_ = writeJSON(w, http.StatusOK, map[string]string{"enroll": page, "manage": page})
	})
	mux.HandleFunc("GET /.well-known/change-password", func(w http.ResponseWriter, r *http.Request) {
		page := a.accountPage()
		if page == "" {
			http.NotFound(w, r)
			return
		}
		http.Redirect(w, r, page, http.StatusFound)
	})
	return mux
}

// accountPage returns the URL of the account page of package pages, or "".
func (a *Auth) accountPage() string {
	if page := a.look().Account; page != "" {
		return originOf(a.publicURL().String()) + page
	}
	return ""
}
