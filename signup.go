package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"

	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// SignUpParams are the particulars of a new account.
type SignUpParams struct {
	Email        string         `json:"email"` // or Phone
	Phone        string         `json:"phone"`
	Password     string         `json:"password"`
	FullName     string         `json:"full_name"`
	UserMetadata map[string]any `json:"user_metadata"`
	RedirectTo   string         `json:"redirect_to"` // where the confirmed link leads; on the allow-list
}

// SignUpResult is a new account: signed in, or waiting for its address to be
// confirmed.
type SignUpResult struct {
	Tokens               *Tokens // nil when confirmation is required
	User                 User
	ConfirmationRequired bool

	// With ConfirmationRequired: give it back with the code in the mail, see
	// VerifyEmailParams, or with the one in the text. One of a made-up user confirms
	// nobody's sign-up.
	RequestID string
}

// SignUp creates an account and sends the link that confirms its address.
//
// When confirmation is required, an address that has an account already gets the
// same answer with a made-up user, and a message that says so. Otherwise the
// error is CodeUserAlreadyExists. Other errors: CodeValidationFailed,
// CodeWeakPassword, CodeSignupDisabled, CodeMethodDisabled,
// CodeRedirectNotAllowed, CodeRateLimited, CodeOverloaded. With
// CodeMFAEnrollmentRequired the account is made, and its user has to set up a
// second factor with the Error's MFAToken before there is a session.
func (a *Auth) SignUp(ctx context.Context, p SignUpParams) (*SignUpResult, error) {
	if err := a.checkSignUp(ctx, &p); err != nil {
		return nil, err
	}
	kind, to := KindVerifyEmail, p.Email
	if p.Phone != "" {
		kind, to = KindPhoneCode, p.Phone
	}
	in, err := a.permitAccount(ctx, kind, to)
	if err != nil {
		return nil, err
	}
	hash, err := a.allowSignUp(ctx, &in, p)
	if err != nil {
		a.refused(in)
		return nil, err
	}
	return a.createAccount(ctx, in, p, hash)
}

// allowSignUp judges what needs more than a look at the particulars, and hashes the
// password.
func (a *Auth) allowSignUp(ctx context.Context, in *accountPermit, p SignUpParams) (hash string, err error) {
	if err := a.checkPassword(ctx, p.Password, p.Email, p.Phone, p.FullName); err != nil {
		return "", err
	}
	if err := a.allowAccount(ctx, in, SignUpAttempt{Email: p.Email, Phone: p.Phone, FullName: p.FullName, UserMetadata: p.UserMetadata, Method: "password"}); err != nil {
		return "", err
	}
	if hash, err = a.passwords.hash(ctx, cmp.Or(store.EmailKey(p.Email), p.Phone), p.Password); err != nil {
		return "", hashFailed(err)
	}
	return hash, nil
}

// checkSignUp validates and normalises without looking anything up.
func (a *Auth) checkSignUp(ctx context.Context, p *SignUpParams) error {
	settings := a.Settings(ctx)
	switch {
	case !settings.SignUp.On():
		return fail(CodeSignupDisabled, nil)
	case !settings.Password.On():
		return fail(CodeMethodDisabled, nil)
	}
	bad := map[string]string{}
	var err error
	if p.Phone != "" && p.Email == "" {
		if !a.phoneOn(ctx) {
			return fail(CodeMethodDisabled, nil)
		}
		if p.Phone, err = a.requiredPhone(p.Phone); err != nil {
			bad["phone"] = err.Error()
		}
	} else {
		if p.Email, err = requiredEmail(p.Email); err != nil {
			bad["email"] = err.Error()
		}
		p.Phone = "" // one at a time: the other is added to the account later
	}
	if p.Password == "" {
		bad["password"] = "is required"
	}
	if p.FullName, err = cleanName(p.FullName); err != nil {
		bad["full_name"] = err.Error()
	}
	if err := checkMetadata(p.UserMetadata); err != nil {
		bad["user_metadata"] = err.Error()
	}
	if len(bad) > 0 {
		e := fail(CodeValidationFailed, nil)
		e.Fields = bad
		return e
	}
	return a.allowRedirect(p.RedirectTo)
}

// createAccount stores the account, its first session and its link in one step.
func (a *Auth) createAccount(ctx context.Context, in accountPermit, p SignUpParams, hash string) (*SignUpResult, error) {
	now, settings := a.now(), a.Settings(ctx)
	u := User{
		ID: a.newID(), Email: p.Email, Phone: p.Phone, FullName: p.FullName, UserMetadata: orEmptyMap(p.UserMetadata),
		CreatedAt: now, UpdatedAt: now,
	}
	proof, message := a.firstProof(ctx, u, p.RedirectTo)
	message.Permit = in.permit
	nu := a.newUser(in, u)
	nu.PasswordHash, nu.Tokens = hash, []store.Token{proof}
	events := []store.OutcomeEvent{done(Event{Type: EventSignedUp, UserID: u.ID, Method: methodPassword})}
	var tokens *Tokens
	confirm := settings.RequireConfirmation.On()
	enrol := !confirm && a.mfaRequired(ctx, u)
	if !confirm && !enrol {
		s := a.newSession(ctx, u.ID, a.proof(methodPassword), now)
		u.LastSignInAt = now
		if err := a.beforeSignIn(ctx, SignInAttempt{User: u, Method: methodPassword}); err != nil {
			return nil, err
		}
		var err error
		if tokens, err = a.mint(ctx, u, s); err != nil {
			return nil, err
		}
		nu.Session = &s
		events = append(events, done(Event{Type: EventSignedIn, UserID: u.ID, SessionID: s.ID, Method: methodPassword}))
	}
	var err error
	if u.Phone != "" {
		if message.Permit, err = a.spendSMS(ctx, u.Phone); err != nil {
			return nil, err
		}
	}
	c := a.newChange(ctx, byProof(), events...)
	a.enclose(ctx, &c, message, u, &proof)
	created, err := a.store.CreateUser(ctx, store.CreateUser{Change: c, NewUser: nu})
	if u.Phone != "" {
		a.refundSMS(ctx, err == nil)
	}
	switch {
	case errors.Is(err, store.ErrConflict) && confirm:
		a.sendAccountExists(ctx, u, p.RedirectTo)
		return &SignUpResult{User: u, ConfirmationRequired: true, RequestID: a.signUpRequest(u)}, nil
	case errors.Is(err, store.ErrConflict):
		return nil, fail(CodeUserAlreadyExists, err)
	case err != nil:
		return nil, storeFailed(err)
	}
	a.committed(ctx, c, store.OutcomeDone, nil)
	if u.Phone != "" && !confirm { // else that would tell that the number was free: the next code has tries of its own
		a.refillCode(ctx, proof.Purpose, proof.Subject)
	}
	if enrol {
		_, err := a.completeSignIn(ctx, signIn{user: created, amr: a.proof(methodPassword), by: byPassword(hash), gone: CodeInvalidCredentials})
		return nil, err
	}
	if tokens != nil {
		if created.Claims != nil { // known only now
			if tokens, err = a.mint(ctx, created, *nu.Session); err != nil {
				return nil, err
			}
		}
		tokens.User = created
	}
	res := &SignUpResult{Tokens: tokens, User: created, ConfirmationRequired: confirm}
	if confirm {
		res.RequestID = a.signUpRequest(created)
	}
	return res, nil
}

// firstProof makes the link or code that proves a new account's address or
// number, and the message that carries it.
func (a *Auth) firstProof(ctx context.Context, u User, redirectTo string) (store.Token, outbox.Outgoing) {
	if u.Phone != "" {
		code, t := a.newPhoneCode(store.PurposePhoneCode, u.Phone)
		t.UserID = u.ID
		return t, a.phoneMessage(sendPermit{}, u.Phone, code)
	}
	t, message := a.newVerification(KindVerifyEmail, u, linkData{Email: u.Email, RedirectTo: redirectTo, Device: clientFrom(ctx).UserAgent})
	return t, message
}

// sendAccountExists tells an address's owner that somebody gave it for an account
// once more, with a link to choose a new password: whoever holds the mailbox
// owns the account, also when it was never confirmed. It is worked out behind
// the request's back, because taking longer would tell that the account exists;
// for the same reason too many such messages are left out silently.
//
// A number that is taken gets no message: texts cost money, and its owner signs
// in with a code as ever.
func (a *Auth) sendAccountExists(ctx context.Context, taken User, redirectTo string) {
	email := taken.Email
	if email == "" {
		return
	}
	asked := ctx           // for who asked and how, not for the store: the request is over by then
	var allowed sendPermit // drawn once: an attempt after one that failed would find nothing left
	a.outbox.Prepare(ctx, KindAccountExists, func(background context.Context) (*store.SealedMessage, error) {
		if allowed == (sendPermit{}) {
			drawn, err := a.takeUnasked(background, atOwners, KindAccountExists, email)
			if errors.Is(err, CodeRateLimited) {
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
			allowed = drawn
		}
		owner, err := a.store.User(background, store.ByEmail(email))
		if errors.Is(err, store.ErrNotFound) {
			return nil, nil // deleted a moment ago
		}
		if err != nil {
			return nil, err
		}
		secret, link := a.newLink(store.PurposeReset, resetLife, linkData{Email: owner.Email, RedirectTo: redirectTo})
		link.UserID, link.Subject = owner.ID, store.EmailKey(owner.Email)
		c := a.newChange(asked, byStranger("account exists"))
		a.enclose(asked, &c, outbox.Outgoing{Kind: KindAccountExists, To: owner.Email, Link: a.linkURL(KindResetPassword, secret), ExpiresIn: resetLife, Permit: allowed}, owner, &link)
		if err := a.putChange(background, c, link, nil); err != nil {
			return nil, err
		}
		return &c.Messages[0], nil
	})
}

func (a *Auth) handleSignUp(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Email        string         `json:"email"`
		Phone        string         `json:"phone"`
		Password     string         `json:"password"`
		FullName     string         `json:"full_name"`
		UserMetadata map[string]any `json:"user_metadata"`
		RedirectTo   string         `json:"redirect_to"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	res, err := a.SignUp(r.Context(), SignUpParams(p))
	if err != nil {
		return err
	}
	if res.ConfirmationRequired {
		return writeJSON(w, http.StatusOK, map[string]any{"user": ViewOf(res.User), "confirmation_required": true, "request_id": res.RequestID})
	}
	return a.writeTokens(w, r, res.Tokens)
}

// LogValue keeps the password out of the log.
func (p SignUpParams) LogValue() slog.Value {
	return slog.GroupValue(slog.String("email", maskEmail(p.Email)), slog.String("password", redacted))
}

// Whoever signs up with an address that somebody else has signed up with waits for a
// code, too, and the one that comes is of the other's account. The id that a sign-up
// returns tells them apart: it is about the account that the sign-up made.

// signUpRequest is the id that a sign-up returns, for its code to be given with: about the
// new account, or one that was made up. It is good for as long as the first
// link, since codes that are sent later prove the same sign-up.
func (a *Auth) signUpRequest(u User) string {
	if u.Phone != "" { // proving a number takes over in any case: for tries of their own
		return a.keys.RequestID(u.Phone, a.now().Add(a.cfg.phone.Life))
	}
	return a.keys.RequestID(ofSignUp(u), a.now().Add(verifyLife))
}

// signedUp tells whether an id was returned by the sign-up that made an account,
// with the address that it has.
func (a *Auth) signedUp(u User, request string) bool {
	return a.keys.ValidRequestID(ofSignUp(u), request, a.now())
}

func ofSignUp(u User) string { return "sign-up " + u.ID + " " + store.EmailKey(u.Email) }

// accountPermit is the leave to make one account. Every account that somebody
// makes for themselves comes about by one, whatever the door: newUser asks for it,
// and only permitAccount and allowAccount, which draw the limits, give it.
type accountPermit struct {
	drawn  bool
	permit sendPermit   // for the message that proves the account's address
	byName []store.Draw // what that message drew by whom it goes to
}

// permitAccount draws for an account, and for the message of kind k, if any, that
// goes out with it: by who asks, and by whom it goes to. It comes before any
// look-up, so that it tells nobody what is taken; for a text, spendSMS comes after
// it.
func (a *Auth) permitAccount(ctx context.Context, k Kind, to string) (accountPermit, error) {
	p := accountPermit{drawn: true}
	draws := []store.Draw{a.perIP(ctx, a.cfg.limits.SignupPerIP, "signup")}
	if k == "" {
		return p, a.take(ctx, draws...)
	}
	p.byName = []store.Draw{a.firstSendDraw(k, to)}
	draws = append(append(draws, p.byName...), a.perIP(ctx, a.cfg.limits.SendPerIP, "send-ip"))
	if k == KindPhoneCode { // whose permit spendSMS gives
		return p, a.tellBudget(ctx, a.takeAlong(ctx, append(draws, a.smsBudget(0))...))
	}
	p.permit = permitFor(k, to)
	return p, a.takeAlong(ctx, draws...)
}

// refused gives back what an account drew by its name that was refused for its own
// particulars: what comes to nothing must not use up what the name's owner has.
func (a *Auth) refused(p accountPermit) {
	for _, d := range p.byName {
		d.Cost = -d.Cost
		a.refunds.add(d)
	}
}

// allowAccount asks the application's hooks, and is permitAccount for doors where
// the address is proved by then: once, however often the account is tried to be made.
func (a *Auth) allowAccount(ctx context.Context, p *accountPermit, s SignUpAttempt) error {
	if !p.drawn {
		taken, err := a.permitAccount(ctx, "", "")
		if err != nil {
			return err
		}
		*p = taken
	}
	return a.beforeSignUp(ctx, s)
}

// newUser is the account of somebody who has drawn.
func (a *Auth) newUser(p accountPermit, u User) store.NewUser {
	if !p.drawn {
		panic("auth: an account that drew no limits")
	}
	u.Handle = newHandle()
	return store.NewUser{User: u, Creating: a.creating()}
}

// newHandle is User.Handle of a new account.
func newHandle() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return base64.RawURLEncoding.EncodeToString(b)
}
