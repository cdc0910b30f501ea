package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// SignUpParams are the parameters of SignUp.
type SignUpParams struct {
	Email        string         `json:"email"` // or Phone
	Phone        string         `json:"phone"`
	Password     string         `json:"password"`
	FullName     string         `json:"full_name"`
	UserMetadata map[string]any `json:"user_metadata"`
	RedirectTo   string         `json:"redirect_to"` // where the confirmed link leads; on the allow-list
}

// SignUpResult is a new account, either signed in or waiting for the verification of
// its email address or phone number.
type SignUpResult struct {
	Tokens               *Tokens // nil when confirmation is required
	User                 User
	ConfirmationRequired bool

	// With ConfirmationRequired: pass it to VerifyEmail with the code in the mail, or
	// to VerifyPhoneCode with the code in the text. The id of a made-up user
	// confirms no sign-up.
	RequestID string
}

// SignUp creates an account and sends the link or code that verifies its email address
// or phone number.
//
// If verification is required, a taken email address or phone number gets the same
// response with a made-up user, and the owner of the email address gets a message.
// Otherwise the error is CodeUserAlreadyExists. Other errors: CodeValidationFailed,
// CodeWeakPassword, CodeSignupDisabled, CodeMethodDisabled, CodeRedirectNotAllowed,
// CodeRateLimited, CodeOverloaded. With CodeMFAEnrollmentRequired the account is
// created, and its user must set up a second factor with the Error's MFAToken before
// there is a session.
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
		a.refundPermit(in)
		return nil, err
	}
	return a.createAccount(ctx, in, p, hash)
}

// allowSignUp checks the password and the application's hooks, and returns the hash of
// the password.
func (a *Auth) allowSignUp(ctx context.Context, in *accountPermit, p SignUpParams) (hash string, err error) {
	if err := a.checkNewPassword(ctx, p.Password, p.Email, p.Phone, p.FullName); err != nil {
		return "", err
	}
	if err := a.allowAccount(ctx, in, SignUpAttempt{Email: p.Email, Phone: p.Phone, FullName: p.FullName, UserMetadata: p.UserMetadata, Method: "password"}); err != nil {
		return "", err
	}
	if hash, err = a.passwords.hash(ctx, hashOwner{account: cmp.Or(store.EmailKey(p.Email), p.Phone)}, p.Password); err != nil {
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
		if p.Phone, err = a.addedPhone(p.Phone, ""); err != nil {
			bad["phone"] = err.Error()
		}
	} else {
		if p.Email, err = requiredEmail(p.Email); err != nil {
			bad["email"] = err.Error()
		}
		p.Phone = "" // only one; the user can add the other later
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
	verification, message := a.firstVerification(ctx, u, p.RedirectTo)
	message.Permit = in.permit
	nu := a.newUser(ctx, in, u)
	u.UserMetadata = nu.User.UserMetadata
	nu.PasswordHash, nu.Tokens = hash, []store.Token{verification}
	events := []store.OutcomeEvent{done(Event{Type: EventSignedUp, UserID: u.ID, Method: methodPassword})}
	var tokens *Tokens
	confirm := settings.RequireConfirmation.On()
	enrol := !confirm && a.mfaRequired(ctx, u)
	if !confirm && !enrol {
		s := a.newSession(ctx, u.ID, a.newAMR(methodPassword), now)
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
	var text sendPermit
	if u.Phone != "" {
		var err error
		if text, err = a.spendSMS(ctx, u.Phone, false); err != nil {
			return nil, err
		}
		message.Permit, message.To = text, text.to
	}
	c := a.newChange(ctx, byAuthentication(), events...)
	a.enclose(ctx, &c, message, u, &verification)
	created, err := a.store.CreateUser(ctx, store.CreateUser{Change: c, NewUser: nu})
	if u.Phone != "" {
		a.refundSMS(ctx, text, err == nil)
	}
	switch {
	case errors.Is(err, store.ErrConflict) && confirm:
		a.sendAccountExists(ctx, u, p.RedirectTo)
		return &SignUpResult{User: u, ConfirmationRequired: true, RequestID: a.takenRequest(ctx, u)}, nil
	case errors.Is(err, store.ErrConflict):
		return nil, fail(CodeUserAlreadyExists, err)
	case err != nil:
		return nil, storeFailed(err)
	}
	a.committed(ctx, c, store.OutcomeDone, nil)
	if u.Phone != "" && !confirm { // with confirm, this would reveal that the number was free
		a.refillCode(ctx, verification.Purpose, verification.Subject)
	}
	if enrol {
		_, err := a.completeSignIn(ctx, signIn{user: created, amr: a.newAMR(methodPassword), by: byPassword(hash), gone: CodeInvalidCredentials})
		return nil, err
	}
	if tokens != nil {
		if created.Claims != nil { // known only after the insert
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

// firstVerification creates the link or code that verifies a new account's email
// address or phone number, and the message that carries it.
func (a *Auth) firstVerification(ctx context.Context, u User, redirectTo string) (store.Token, outbox.Outgoing) {
	if u.Phone != "" {
		code, t := a.newPhoneCode(store.PurposePhoneCode, u.Phone)
		t.UserID = u.ID
		return t, a.phoneMessage(sendPermit{}, u.Phone, code)
	}
	t, message := a.newVerification(KindVerifyEmail, u, linkData{Email: u.Email, RedirectTo: redirectTo, Device: clientFrom(ctx).UserAgent})
	return t, message
}

// sendAccountExists notifies the owner of an address that it was used for another
// sign-up. The message has a link to choose a new password: the owner of the mailbox
// owns the account, even an unverified one. It works in the background, because a
// longer response time would reveal that the account exists. For the same reason it
// omits messages above the limit silently.
//
// A taken phone number gets no message: texts cost money, and its owner can sign in
// with a code.
func (a *Auth) sendAccountExists(ctx context.Context, taken User, redirectTo string) {
	email := taken.Email
	if email == "" {
		return
	}
	request := ctx         // for the client and the authority, not for the store: the request has ended by then
	var allowed sendPermit // counted once: a retry would find nothing left
	a.outbox.Prepare(ctx, KindAccountExists, func(background context.Context) (*store.SealedMessage, error) {
		if allowed == (sendPermit{}) {
			permit, err := a.takeUnrequested(background, atOwners, KindAccountExists, email)
			if errors.Is(err, CodeRateLimited) {
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
			allowed = permit
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
		c := a.newChange(request, byFlow("account exists"))
		a.enclose(request, &c, outbox.Outgoing{Kind: KindAccountExists, To: owner.Email, Link: a.linkURL(KindResetPassword, secret), ExpiresIn: resetLife, Permit: allowed}, owner, &link)
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
		if t := transportOf(r.Context()); t != nil && t.cookies {
			a.setSignUp(w, r, res.RequestID)
		}
		return writeJSON(w, http.StatusOK, map[string]any{"user": ViewOf(res.User), "confirmation_required": true, "request_id": res.RequestID})
	}
	return a.writeTokens(w, r, res.Tokens)
}

// LogValue keeps the password out of the log.
func (p SignUpParams) LogValue() slog.Value {
	return slog.GroupValue(slog.String("email", maskEmail(p.Email)), slog.String("password", redacted))
}

// Two people may sign up with the same address. Both wait for a code, and the code in
// the mailbox is for the first account. The id in the response distinguishes them: it
// refers to the account of that sign-up.

// signUpRequest returns the id of a sign-up, to be sent with its code. It refers to the
// new account, or to a made-up one. It is valid for as long as the first link, because
// a later code completes the same sign-up.
func (a *Auth) signUpRequest(u User) string {
	if u.Phone != "" { // verifying a number always takes over; the id only separates attempts
		return a.keys.RequestID(u.Phone, a.now().Add(a.cfg.phone.Life))
	}
	return a.keys.RequestID(ofSignUp(u), a.now().Add(verifyLife))
}

// takenRequest is signUpRequest for a made-up user, whose address or phone number is taken.
// It stores a code that no attempt matches, in the background, so that an attempt with the id
// takes as long as at another sign-up.
func (a *Auth) takenRequest(ctx context.Context, u User) string {
	to, kind := store.EmailKey(u.Email), KindVerifyEmail
	var t store.Token
	if u.Phone != "" {
		to, kind = u.Phone, KindPhoneCode
		_, t = a.newPhoneCode(store.PurposePhoneCode, ofTaken(to))
		_, t.Hash = newLinkToken()
	} else {
		var secret string
		secret, t = a.newLink(store.PurposeVerifyEmail, verifyLife, linkData{})
		t.Subject = ofTaken(to)
		a.addCode(&t, secret, "", "")
	}
	a.outbox.Prepare(ctx, kind, func(background context.Context) (*store.SealedMessage, error) {
		return nil, a.putToken(background, byFlow("sign-up with a taken name"), t)
	})
	return a.keys.RequestID(ofTaken(to), t.ExpiresAt)
}

// Each sign-up of a browser has a cookie with its id, which lets the link in the mail
// complete by one press there. One cookie for all would lose the id of a form that is
// submitted twice: the second sign-up finds the address taken, and its id is made-up.
const (
	signUpCookie = "sign-up-" // and the start of the id
	maxSignUps   = 4          // in one browser
)

// setSignUp stores the id of a sign-up in the browser, if its sessions are in cookies.
func (a *Auth) setSignUp(w http.ResponseWriter, r *http.Request, id string) {
	stored := a.signUpCookies(r)
	for len(stored) >= maxSignUps { // browsers send the oldest first (RFC 6265, section 5.4)
		a.setCookie(w, stored[0].Name, "", -1)
		stored = stored[1:]
	}
	a.setCookie(w, a.cookieNamed(signUpCookie+id[:8]), id, int(verifyLife/time.Second))
}

func (a *Auth) signUpCookies(r *http.Request) []*http.Cookie {
	if a.cfg.cookies == nil {
		return nil
	}
	return slices.DeleteFunc(r.Cookies(), func(c *http.Cookie) bool { return !strings.HasPrefix(c.Name, a.cookieNamed(signUpCookie)) })
}

// signUpsOf returns a given id of a sign-up and those of the browser, as
// VerifyEmailParams.RequestID.
func (a *Auth) signUpsOf(r *http.Request, given string) string {
	ids := []string{given}
	for _, c := range a.signUpCookies(r) {
		ids = append(ids, c.Value)
	}
	return strings.Join(ids, ",")
}

// signedUp reports whether one of the ids comes from the sign-up that created an account
// with its present address.
func (a *Auth) signedUp(u User, ids string) bool {
	return slices.ContainsFunc(splitSignUps(ids), func(id string) bool {
		return a.keys.ValidRequestID(ofSignUp(u), id, a.now())
	})
}

// splitSignUps returns the ids in VerifyEmailParams.RequestID.
func splitSignUps(ids string) []string { return strings.SplitN(ids, ",", 2*maxSignUps) }

func ofSignUp(u User) string { return "sign-up " + u.ID + " " + store.EmailKey(u.Email) }

// accountPermit is the permission to create one account. Every account that a user
// creates needs one: newUser requires it, and only permitAccount and allowAccount,
// which count against the limits, return it.
type accountPermit struct {
	counted bool
	permit  sendPermit   // for the message that verifies the account's address
	byName  []store.Draw // the message's draws by recipient
}

// permitAccount counts an account, and its message of kind k, if any, by client and by
// recipient. It runs before any look-up, so that it does not reveal which addresses are
// taken. For a text, spendSMS runs after it.
func (a *Auth) permitAccount(ctx context.Context, k Kind, to string) (accountPermit, error) {
	p := accountPermit{counted: true}
	draws := a.perIP(ctx, a.cfg.limits.SignupPerIP, "signup")
	if k == "" {
		return p, a.take(ctx, draws...)
	}
	p.byName = []store.Draw{a.firstSendDraw(k, to)}
	draws = slices.Concat(draws, p.byName, a.perIP(ctx, a.cfg.limits.SendPerIP, "send-ip"))
	if k == KindPhoneCode { // spendSMS returns the permit
		return p, a.reportBudget(ctx, a.takeAfterRefunds(ctx, append(draws, a.smsBudget(0))...))
	}
	p.permit = permitFor(k, to)
	return p, a.takeAfterRefunds(ctx, draws...)
}

// refundPermit refunds the draws by recipient of an account that was not created. Such
// attempts must not use up the limits of the recipient.
func (a *Auth) refundPermit(p accountPermit) {
	for _, d := range p.byName {
		d.Cost = -d.Cost
		a.refunds.add(d)
	}
}

// allowAccount calls the application's hooks. If p is not set yet, as at endpoints
// where the address is verified already, it first counts the account, once for all
// retries.
func (a *Auth) allowAccount(ctx context.Context, p *accountPermit, s SignUpAttempt) error {
	if !p.counted {
		taken, err := a.permitAccount(ctx, "", "")
		if err != nil {
			return err
		}
		*p = taken
	}
	return a.beforeSignUp(ctx, s)
}

// newUser returns the account for a permit. An account that is created on a page keeps the
// page's language, unless the application chose one.
func (a *Auth) newUser(ctx context.Context, p accountPermit, u User) store.NewUser {
	if !p.counted {
		panic("auth: an account that drew no limits")
	}
	u.Handle, u.UserMetadata = newHandle(), withLocale(u.UserMetadata, pageLocale(ctx))
	return store.NewUser{User: u, Creating: a.creating()}
}

// newHandle returns User.Handle of a new account.
func newHandle() string {
	b := make([]byte, handleSize)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return base64.RawURLEncoding.EncodeToString(b)
}
