package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// A notice to an account's proved address about something that a session did
// carries a link by which its reader stops that session, and what it has begun.

// stopLife is for how long the reader of such a notice may act on it.
const stopLife = 7 * 24 * time.Hour

// stopLink makes the link for a notice to u's address about what a session did,
// to be put into the notice; none if nobody has proved the address. It is stored in
// the name and on the conditions of what the notice tells of. It supersedes no
// other one, so that further requests cannot take the first one's link away.
func (a *Auth) stopLink(ctx context.Context, by Authority, u User, sessionID string, still ...UserAt) (string, error) {
	var s Session
	if sessionID != "" && u.EmailVerified() {
		var err error
		if s, _, err = a.store.Session(ctx, sessionID, a.now()); err != nil {
			return "", goneOr(CodeSessionEnded, err)
		}
	}
	secret, t := a.newStopLink(u, s)
	if secret == "" {
		return "", nil
	}
	if err := a.putToken(ctx, by, t, still...); err != nil {
		return "", err
	}
	return secret, nil
}

// newStopLink is the link of stopLink, which is still to be stored, about a session
// (the zero one: the application asked); none if the address is not verified. The link
// for a session that the same change creates has the session's sequence as its own.
func (a *Auth) newStopLink(u User, s Session) (secret string, t store.Token) {
	if u.Email == "" || !u.EmailVerified() {
		return "", store.Token{}
	}
	secret, t = a.newLink(store.PurposeStop, stopLife, linkData{Email: u.Email, SessionID: s.ID, VerifiedAt: u.EmailVerifiedAt, VerifiedSequence: u.EmailVerifiedSequence, Sequence: s.Sequence, AMR: s.AMR})
	t.UserID = u.ID
	return secret, t
}

// notice is a notice to u's address with a link that stops a session, if there is
// room for it: a link that nobody is told need not be stored. Beyond the limit it
// is a decoy.
func (a *Auth) notice(ctx context.Context, by Authority, k Kind, u User, sessionID, newAddress string, still ...UserAt) (outbox.Outgoing, error) {
	o := outbox.Outgoing{Kind: k, To: u.Email, NewAddress: newAddress, ExpiresIn: stopLife, Proved: u.EmailVerified()}
	if !o.Proved {
		return o, nil // there is no such link, and the notice draws when it is enclosed
	}
	if u.Email == "" || !a.roomFor(ctx, o, u) {
		return outbox.Outgoing{Kind: k}, nil
	}
	secret, err := a.stopLink(ctx, by, u, sessionID, still...)
	if err == nil && secret != "" {
		o.Link = a.linkURL(k, secret)
	}
	return o, err
}

// SecureAccountParams stop a session with the token of a notice.
type SecureAccountParams struct {
	Token string
}

// SecureAccount stops the session that a notice told of, with the token of the
// link in it: the session ends with all that were made since, every change of
// address or number and every sign-in that is under way is dropped, so is what the
// account has got since that session began (a number, second factors, identities),
// and a link to choose a new password goes to the address that the notice went to.
// If one of those sessions rests on the password, or a way in has changed since or may
// have, nobody signs in with the password any more, whoever set it.
// No link is sent while passwords are off, to an account that keeps another address, and
// beyond the limit of such mails.
//
// If the account has moved to another address since, it moves back, and all
// sessions end; another account that has the address, but never proved it, loses
// it. Of two addresses that left the account the one that was proved first
// outranks: whoever took the account cannot use the notice to an address of their
// own, and no such notice works any more. Errors: CodeInvalidToken,
// CodeUserAlreadyExists if the address was taken at this very moment.
func (a *Auth) SecureAccount(ctx context.Context, p SecureAccountParams) error {
	_, err := a.secureAccount(ctx, p.Token)
	return err
}

// secureAccount is SecureAccount, and tells whether the reset was sent.
func (a *Auth) secureAccount(ctx context.Context, token string) (reset bool, err error) {
	d, u, err := a.redeem(ctx, store.PurposeStop, token, func(t store.Token, d linkData) (store.Redemption, error) {
		d.Sequence = cmp.Or(d.Sequence, t.Sequence)
		u, moves, holder, err := a.stopping(ctx, t, d)
		switch {
		case err != nil:
			return store.Redemption{}, err
		case moves && holder.ID != "":
			return store.Redemption{}, a.detachEmail(ctx, holder)
		}
		patch := store.UserPatch{DropTokens: append(dyingWithPassword(), store.PurposeVerifyEmail, store.PurposeEmailCode), DropDevices: true}
		if d.SessionID != "" { // none: the application asked
			patch.Revoke = &store.SessionFilter{FromSequence: d.Sequence} // a second one, on a device that was known by then, was told to nobody
			if moves || store.EmailKey(u.Email) == store.EmailKey(d.Email) {
				if err := a.dropPassword(ctx, u, d, &patch); err != nil {
					return store.Redemption{}, err
				}
			}
		}
		events, err := a.undo(ctx, u, d, &patch)
		if err != nil {
			return store.Redemption{}, err
		}
		events = append(events, done(Event{Type: EventAccountSecured, UserID: u.ID}))
		if moves {
			if err := a.outrank(ctx, u, d); err != nil {
				return store.Redemption{}, err
			}
			patch.Email, patch.EmailVerifiedAt = &d.Email, &d.VerifiedAt
			patch.Revoke, patch.DropTokens = &store.SessionFilter{}, dyingWithAddress()
			events = append(events, done(Event{Type: EventEmailChanged, UserID: u.ID}))
		}
		c := a.newChangeOf(ctx, byProof(), account{User: u, to: d.Email}, events...)
		c.IfUsers = []UserAt{credentialsStill(u)}
		return store.Redemption{Change: c, Effect: store.Effect{UserID: u.ID, Patch: &patch}}, nil
	})
	if err != nil {
		return false, err
	}
	if store.EmailKey(u.Email) != store.EmailKey(d.Email) || !a.Settings(ctx).Password.On() {
		return false, nil
	}
	return a.sendAnswer(ctx, u.Email)
}

// dropPassword adds to a patch that stops a session that the password goes, if the
// session rests on it, or a live one that was made since: whoever knows it would be
// back at once, or once passwords are on again. So does one that was set from the session
// on, by anyone: the session could have done it. A reset goes to the account's address.
func (a *Auth) dropPassword(ctx context.Context, u User, d linkData, p *store.UserPatch) error {
	rests := u.PasswordSequence >= d.Sequence || slices.ContainsFunc(d.AMR, isPassword)
	if !rests {
		list, err := a.store.Sessions(ctx, u.ID, a.now())
		if err != nil {
			return storeFailed(err)
		}
		rests = slices.ContainsFunc(list, func(s Session) bool { return s.Sequence >= d.Sequence && slices.ContainsFunc(s.AMR, isPassword) })
	}
	if rests {
		p.PasswordHash = new(string)
	}
	return nil
}

func isPassword(m AMR) bool { return m.Method == methodPassword }

// sendAnswer sends the link to choose a password that the use of a mailed link
// promises, whether or not the browser waits for it, and tells whether it did. The
// mailed link is used up by now and works once: a limit that cannot be drawn from
// holds nothing back.
func (a *Auth) sendAnswer(ctx context.Context, address string) (sent bool, err error) {
	ctx = context.WithoutCancel(ctx)
	allowed, err := a.takeAnswer(ctx, KindResetPassword, address)
	if errors.Is(err, CodeRateLimited) {
		return false, nil // they know the way
	}
	if err != nil {
		a.cfg.log.WarnContext(ctx, "auth: limit of notices not drawn", "kind", string(KindResetPassword), "error", err)
	}
	err = a.sendAllowedLink(ctx, allowed, KindResetPassword, store.PurposeReset, resetLife, address, linkData{}, false)
	return err == nil, err
}

// stopping is whom the link of a notice is about, and whether the address that it
// went to becomes the account's again: it has another one by now, which was proved
// later, and nobody else has proved this one to be theirs. holder is who has it
// without a proof, if anybody. CodeInvalidToken if the link is outranked.
func (a *Auth) stopping(ctx context.Context, t store.Token, d linkData) (u User, moves bool, holder User, err error) {
	if u, err = a.store.User(ctx, store.ByID(t.UserID)); err != nil {
		return u, false, holder, linkFailed(err)
	}
	marks, err := a.stopMarks(ctx, u.ID)
	switch {
	case err != nil:
		return u, false, holder, err
	case slices.ContainsFunc(marks, func(m stopMark) bool { return m.outranks(t.Sequence, d.VerifiedSequence) }):
		return u, false, holder, fail(CodeInvalidToken, errors.New("an earlier address took the account back"))
	case store.EmailKey(u.Email) == store.EmailKey(d.Email) || u.EmailVerifiedSequence < d.VerifiedSequence:
		return u, false, holder, nil
	}
	holder, err = a.store.User(ctx, store.ByEmail(d.Email))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return u, true, User{}, nil
	case err != nil:
		return u, false, holder, storeFailed(err)
	}
	return u, !holder.EmailVerified(), holder, nil
}

// detachEmail takes an address off an account that never proved it, for whoever
// has. Of an account that nobody has proved to be theirs nothing is left. It
// returns ErrStale, since nothing is decided yet.
func (a *Auth) detachEmail(ctx context.Context, u User) error {
	no, none := false, ""
	c := a.newChange(ctx, byStranger("address proved by another"), done(Event{Type: EventUserUpdated, UserID: u.ID}))
	still := UserAt{ID: u.ID, Email: &u.Email, EmailVerified: &no}
	patch := store.UserPatch{Email: &none, DropTokens: dyingWithAddress()}
	if u.Unproved() {
		still.PhoneVerified = &no
		takeOver(&patch)
	}
	c.IfUsers = []UserAt{still}
	if _, err := a.update(ctx, c, u.ID, patch); err != nil {
		return err
	}
	return store.ErrStale
}

// undo adds to a patch that stops a session what takes off the account what it has
// got since that session began, and returns the events. What it had before stays:
// a mailed link removes no second factor of its owner's. A patch removes one
// identity only: before the last of them it is made without the rest, and undo
// returns ErrStale.
func (a *Auth) undo(ctx context.Context, u User, d linkData, p *store.UserPatch) (events []store.OutcomeEvent, err error) {
	if d.SessionID == "" {
		return nil, nil
	}
	if i := slices.IndexFunc(u.Identities, func(i Identity) bool { return i.Sequence >= d.Sequence }); i >= 0 {
		gone := u.Identities[i]
		c := a.newChangeOf(ctx, byStranger("account secured"), account{User: u}, done(Event{Type: EventIdentityUnlinked, UserID: u.ID, Provider: gone.Provider}))
		c.IfUsers = []UserAt{credentialsStill(u)}
		key, step := store.ByIdentity(gone.Provider, gone.Subject), *p
		step.Unlink = &key
		if _, err := a.update(ctx, c, u.ID, step); err != nil {
			return nil, err
		}
		return nil, store.ErrStale
	}
	if max(u.PhoneSequence, u.PhoneVerifiedSequence) >= d.Sequence {
		p.Phone, p.PhoneVerifiedAt = new(string), new(time.Time)
		events = append(events, done(Event{Type: EventUserUpdated, UserID: u.ID}))
	}
	if !u.MFAEnabled || a.factors == nil {
		return events, nil
	}
	factors, err := a.factors.Factors(ctx, u.ID)
	if err != nil {
		return nil, storeFailed(err)
	}
	if slices.ContainsFunc(factors.List, func(f Factor) bool { return f.Enabled && f.Sequence >= d.Sequence }) {
		p.DropFactors = true
		events = append(events, done(Event{Type: EventMFADisabled, UserID: u.ID}))
	}
	return events, nil
}

// stopMark tells that at some instant an address that was proved at another one
// took the account back. Links sent until then to addresses that were proved later
// are whoever's it was taken from: they work no more, also once the account has
// gone on to an address that is newer than theirs. Links to earlier addresses stay,
// since the one that was used may be a thief's.
type stopMark struct {
	At               time.Time `json:"at"`       // for the end of its life
	Sequence         int64     `json:"sequence"` // the account's then
	VerifiedSequence int64     `json:"verified_sequence"`
}

func (m stopMark) outranks(sent, verified int64) bool {
	return sent <= m.Sequence && verified > m.VerifiedSequence
}

// marksHash is where an account's marks are kept: no link has a secret to it.
func marksHash(userID string) []byte {
	h := sha256.Sum256([]byte("stop marks\x00" + userID))
	return h[:]
}

// stopMarks are those of an account that may still matter.
func (a *Auth) stopMarks(ctx context.Context, userID string) (marks []stopMark, err error) {
	t, err := a.store.PeekToken(ctx, store.PurposeStop, marksHash(userID), a.now())
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, storeFailed(err)
	}
	var d linkData
	if err := json.Unmarshal(t.Data, &d); err != nil {
		return nil, fail(CodeInternal, err)
	}
	return d.Marks, nil
}

// outrank records that a link is about to take its account back. Should that not
// come about, the links that are void are those that could not have stood against
// it. ErrStale if the account has changed.
func (a *Auth) outrank(ctx context.Context, u User, d linkData) error {
	marks, err := a.stopMarks(ctx, u.ID)
	if err != nil {
		return err
	}
	now := a.now()
	marks = slices.DeleteFunc(marks, func(m stopMark) bool {
		return !now.Before(m.At.Add(stopLife)) || m.VerifiedSequence >= d.VerifiedSequence
	})
	_, t := a.newLink(store.PurposeStop, stopLife, linkData{Marks: append(marks, stopMark{now, u.Sequence, d.VerifiedSequence})})
	t.Hash, t.UserID, t.Subject = marksHash(u.ID), u.ID, "marks "+u.ID
	return a.putToken(ctx, byStranger("account taken back"), t, credentialsStill(u))
}

// handleSecurePage is GET /secure-account; opening it never uses the link up.
func (a *Auth) handleSecurePage(w http.ResponseWriter, r *http.Request) error {
	if !fromProgram(r) {
		return a.askToSecure(w, r, r.URL.Query().Get("token"))
	}
	t, d, err := a.peekMailed(r.Context(), store.PurposeStop, r.URL.Query().Get("token"))
	if err == nil {
		_, _, _, err = a.stopping(r.Context(), t, d)
	}
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

// askToSecure shows what the button will do.
func (a *Auth) askToSecure(w http.ResponseWriter, r *http.Request, secret string) error {
	t, d, err := a.peekMailed(r.Context(), store.PurposeStop, secret)
	if err != nil {
		return a.showProblem(w, r, err)
	}
	_, moves, _, err := a.stopping(r.Context(), t, d)
	if err != nil {
		return a.showProblem(w, r, err)
	}
	a.showPage(w, r, http.StatusOK, page{Name: "secure_account", Token: secret, Address: maskEmail(d.Email), MovesBack: moves}, "")
	return nil
}

// handleSecureAccount is POST /secure-account.
func (a *Auth) handleSecureAccount(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		Token string `json:"token"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	if p.Token == "" {
		return invalid("token", "is required")
	}
	if err := a.SecureAccount(r.Context(), SecureAccountParams(p)); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

// handleSecurePost is the page's button.
func (a *Auth) handleSecurePost(w http.ResponseWriter, r *http.Request) error {
	form, err := a.readForm(r)
	if err != nil {
		return a.showProblem(w, r, err)
	}
	reset, err := a.secureAccount(r.Context(), form.Get("token"))
	if err != nil {
		return a.showProblem(w, r, err)
	}
	return a.showDone(w, r, page{Done: "secured", ResetSent: reset}, "")
}
