package auth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// A notice to a verified email address about something that a session did carries an
// account recovery link. The link revokes the session and undoes its changes.

// recoveryLinkLife is the lifetime of account recovery links.
const recoveryLinkLife = 7 * 24 * time.Hour

// recoveryLink stores an account recovery link and returns its secret, for a notice to
// u's email address about something that a session did. It returns "" if the address
// is not verified. It stores the link under the authority and conditions of the
// change. The link supersedes no earlier one, so that further requests cannot
// invalidate that one.
func (a *Auth) recoveryLink(ctx context.Context, by Authority, u User, sessionID string, still ...UserAt) (string, error) {
	var s Session
	if sessionID != "" && u.EmailVerified() {
		var err error
		if s, _, err = a.store.Session(ctx, sessionID, a.now()); err != nil {
			return "", goneOr(CodeSessionEnded, err)
		}
	}
	secret, t := a.newRecoveryLink(u, s, 0)
	if secret == "" {
		return "", nil
	}
	if err := a.putToken(ctx, by, t, still...); err != nil {
		return "", err
	}
	return secret, nil
}

// newRecoveryLink returns the link of recoveryLink about a session (the zero Session:
// the application made the change), for the caller to store. The secret is "" if the
// address is not verified. If the same change creates the session, the link takes the
// session's sequence as its own. joined is credentialRef.Joined.
func (a *Auth) newRecoveryLink(u User, s Session, joined int64) (secret string, t store.Token) {
	if u.Email == "" || !u.EmailVerified() {
		return "", store.Token{}
	}
	secret, t = a.newLink(store.PurposeStop, recoveryLinkLife, linkData{Email: u.Email, SessionID: s.ID, VerifiedAt: u.EmailVerifiedAt, VerifiedSequence: u.EmailVerifiedSequence, Sequence: s.Sequence, Joined: joined, AMR: s.AMR})
	t.UserID = u.ID
	return secret, t
}

// notice returns a notice to u's email address with an account recovery link. Beyond
// the limit on notices it returns a decoy, and stores no link, because nobody would
// receive it.
func (a *Auth) notice(ctx context.Context, by Authority, k Kind, u User, sessionID, newAddress string, still ...UserAt) (outbox.Outgoing, error) {
	o := outbox.Outgoing{Kind: k, To: u.Email, NewAddress: newAddress, ExpiresIn: recoveryLinkLife, Proved: u.EmailVerified()}
	if !o.Proved {
		return o, nil // there is no link, and the notice counts against the limit when it is enclosed
	}
	if u.Email == "" || !a.takeNotice(ctx, o, u) {
		return outbox.Outgoing{Kind: k}, nil
	}
	secret, err := a.recoveryLink(ctx, by, u, sessionID, still...)
	if err == nil && secret != "" {
		o.Link = a.linkURL(k, secret)
	}
	return o, err
}

// SecureAccountParams are the parameters of SecureAccount.
type SecureAccountParams struct {
	Token string
}

// SecureAccount revokes the session that a notice reported, with the token of the
// notice's account recovery link. In addition it
//
//   - revokes all sessions created after that one,
//   - drops every sign-in and every change of an email address or phone number that
//     waits for confirmation,
//   - removes the phone number and identities that the account got after the session
//     began, and an identity that joined it in that sign-in,
//   - removes the second factors and passkeys that were added after the session began,
//   - forgets the devices,
//   - removes the recovery codes that were created after the session began; the next sign-in
//     with the authenticator app returns new ones (Tokens.RecoveryCodes),
//   - revokes the API keys whose current text one of those sessions created, and the
//     invitations and links for others that one of them made,
//   - removes the password if one of those sessions was signed in with it, or if it was
//     set after the session began, unless the account keeps another email address,
//   - sends a link to choose a new password to the address of the notice. It sends none
//     while passwords are off, to an account that keeps another email address, or
//     beyond the limit on such messages.
//
// If the account has moved to an email address that was verified later, it moves
// back, and all its sessions are revoked. Another account that has the old address
// without having verified it loses it. If links to two former addresses compete, the
// address that was verified first wins, so that an attacker cannot use a notice to
// their own address. An account that waits for the acceptance of permissions of an operator
// keeps its address. Errors: CodeInvalidToken, CodeUserAlreadyExists (the address was
// taken at the same moment), CodeTargetStronger (the account waits).
func (a *Auth) SecureAccount(ctx context.Context, p SecureAccountParams) error {
	_, err := a.secureAccount(ctx, p.Token)
	return err
}

// securedAccount is the result of an account recovery link.
type securedAccount struct {
	resetSent    bool // a link to choose a password was sent
	codesDropped bool // the account gets new recovery codes
}

func (a *Auth) secureAccount(ctx context.Context, token string) (out securedAccount, err error) {
	var from, to int64 // the sessions of the record (recordReported); 0: none is needed
	raced := false     // the account changed during the previous attempt
	d, u, err := a.redeem(ctx, store.PurposeStop, token, func(t store.Token, d linkData) (store.Redemption, error) {
		d.Sequence = cmp.Or(d.Sequence, t.Sequence)
		u, moves, holder, err := a.recoveringUser(ctx, t, d)
		switch {
		case err != nil:
			return store.Redemption{}, err
		case moves && holder.ID != "":
			raced = false
			return store.Redemption{}, a.detach(ctx, holder, rootEmail)
		}
		patch := store.UserPatch{DropTokens: append(purposesOfPassword(), store.PurposeVerifyEmail), DropDevices: true}
		if d.SessionID != "" { // none: the application made the change
			patch.RevokeKeys = d.Sequence
			patch.Revoke = &store.SessionFilter{FromSequence: d.Sequence} // includes sessions on devices known by then, which no notice reported
			if moves || store.EmailKey(u.Email) == store.EmailKey(d.Email) {
				if err := a.dropPassword(ctx, u, d, &patch); err != nil {
					return store.Redemption{}, err
				}
			}
		}
		dropped, kept, err := a.dropNewFactors(ctx, u, d, &patch)
		switch {
		case err != nil:
			return store.Redemption{}, err
		case raced:
			raced = false
			return store.Redemption{}, a.endReported(ctx, t, u, patch, dropped)
		}
		raced = true
		var events []store.OutcomeEvent
		events, out.codesDropped, err = a.removeNewCredentials(ctx, u, d, &patch, kept)
		if err != nil {
			raced = !errors.Is(err, errStepDone)
			return store.Redemption{}, err
		}
		events = append(append(events, dropped...), done(Event{Type: EventAccountSecured, UserID: u.ID}))
		if moves {
			if err := a.recordRecovery(ctx, u, d); err != nil {
				return store.Redemption{}, err
			}
			patch.Email, patch.EmailVerifiedAt = &d.Email, &d.VerifiedAt
			patch.Revoke, patch.DropTokens = &store.SessionFilter{}, purposesOfEmail()
			events = append(events, done(Event{Type: EventEmailChanged, UserID: u.ID}))
		}
		if d.SessionID != "" && u.AcceptedSequence > 0 { // others made nothing for others
			from, to = d.Sequence, u.Sequence
			if err := a.recordReported(ctx, u, from, to); err != nil {
				return store.Redemption{}, err
			}
		}
		c := a.newChangeOf(ctx, byAuthentication(), account{User: u, to: d.Email}, events...)
		c.IfUsers = []UserAt{ifCredentialsUnchanged(u)}
		return store.Redemption{Change: c, Effect: store.Effect{UserID: u.ID, Patch: &patch}}, nil
	})
	if err != nil {
		return securedAccount{}, err
	}
	a.fillBuckets(ctx, u, refundsOf([]attemptLimit{a.additions(u)}, true)) // a thief may have emptied it
	if to > 0 && u.Sequence > to {
		a.extendReported(context.WithoutCancel(ctx), u, from)
	}
	if store.EmailKey(u.Email) == store.EmailKey(d.Email) && a.Settings(ctx).Password.On() {
		out.resetSent, err = a.sendFollowUp(ctx, u.Email)
	}
	return out, err
}

// dropPassword removes the password if the session used it, or a live session
// created since does. An attacker who knows it would be back at once, or as soon as
// passwords are on again. It also removes a password set after the session began,
// because the session could have set it. A reset goes to the account's address.
func (a *Auth) dropPassword(ctx context.Context, u User, d linkData, p *store.UserPatch) error {
	drops := u.PasswordSequence >= d.Sequence || slices.ContainsFunc(d.AMR, isPassword)
	if !drops {
		list, err := a.store.Sessions(ctx, u.ID, a.now())
		if err != nil {
			return storeFailed(err)
		}
		drops = slices.ContainsFunc(list, func(s Session) bool { return s.Sequence >= d.Sequence && slices.ContainsFunc(s.AMR, isPassword) })
	}
	if drops {
		p.PasswordHash = new(string)
	}
	return nil
}

func isPassword(m AMR) bool { return m.Method == methodPassword }

// sendFollowUp sends the link to choose a password after a mailed link was used, even
// if the browser does not wait for it. It reports whether it sent one. The mailed link
// works only once and is used up, so a limit that cannot be read does not hold the
// message back.
func (a *Auth) sendFollowUp(ctx context.Context, address string) (sent bool, err error) {
	ctx = context.WithoutCancel(ctx)
	allowed, err := a.takeFollowUp(ctx, KindResetPassword, address)
	if errors.Is(err, CodeRateLimited) {
		return false, nil // an earlier message has the link
	}
	if err != nil {
		a.cfg.log.WarnContext(ctx, "auth: notice not counted against its limit", "kind", string(KindResetPassword), "error", err)
	}
	c, err := a.store.Credentials(ctx, store.ByEmail(address))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, storeFailed(err)
	}
	err = a.sendAllowedLink(ctx, allowed, c, store.EmailKey(address), KindResetPassword, store.PurposeReset, resetLife, address, linkData{}, false)
	return err == nil, err
}

// recoveringUser returns the user of a recovery link. moves reports whether the link's
// address becomes the account's again: the account has another one that was verified
// later, and no other account has verified this one. holder is an account that has
// the address unverified, if there is one. It returns CodeInvalidToken if the link is
// outranked, and CodeTargetStronger if the link would move an account that waits for an
// acceptance, unless another recovery made it wait.
func (a *Auth) recoveringUser(ctx context.Context, t store.Token, d linkData) (u User, moves bool, holder User, err error) {
	if u, err = a.store.User(ctx, store.ByID(t.UserID)); err != nil {
		return u, false, holder, linkFailed(err)
	}
	marks, err := a.recoveryMarks(ctx, u.ID)
	switch {
	case err != nil:
		return u, false, holder, err
	case slices.ContainsFunc(marks, func(m recoveryMark) bool { return m.outranks(t.Sequence, d.VerifiedSequence) }):
		return u, false, holder, fail(CodeInvalidToken, errors.New("the account was recovered through an earlier address"))
	case store.EmailKey(u.Email) == store.EmailKey(d.Email) || u.EmailVerifiedSequence < d.VerifiedSequence:
		return u, false, holder, nil
	}
	if !slices.ContainsFunc(marks, func(m recoveryMark) bool { return m.Address == store.EmailKey(u.Email) }) { // an attacker's recovery must not keep this one out
		if err := a.requireNoWait(ctx, u); err != nil { // the link to accept was sent to the present address
			return u, false, holder, err
		}
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

// errStepDone is the ErrStale of a recovery that has taken one step and decides anew.
var errStepDone = fmt.Errorf("account recovery: a step is done: %w", store.ErrStale)

// endReported ends the reported sessions and removes what they can come back with, for a
// recovery whose account changed meanwhile: a thief who keeps changing it must not hold the
// recovery up. It depends on the link and the address alone. The recovery that follows, or
// the next use of the link, does the rest. It returns errStepDone.
func (a *Auth) endReported(ctx context.Context, link store.Token, u User, p store.UserPatch, events []store.OutcomeEvent) error {
	c := a.newChangeOf(ctx, Authority{Token: &store.TokenRef{Purpose: link.Purpose, Hash: link.Hash}}, account{User: u}, events...)
	c.IfUsers = []UserAt{{ID: u.ID, Email: &u.Email}}
	_, err := a.store.UpdateUser(ctx, store.UpdateUser{Change: c, UserID: u.ID, Patch: p})
	switch {
	case errors.Is(err, store.ErrBanned): // nobody signs in meanwhile
	case errors.Is(err, store.ErrStale):
		return err
	case err != nil:
		return linkFailed(err)
	default:
		a.committed(ctx, c, store.OutcomeDone, nil)
	}
	return errStepDone
}

// dropNewFactors adds to a recovery patch the removal of the factors that the account got
// after the session began, in the same change as the end of the sessions, which could add
// others. It returns the events, and the factors that stay.
func (a *Auth) dropNewFactors(ctx context.Context, u User, d linkData, p *store.UserPatch) (events []store.OutcomeEvent, kept store.Factors, err error) {
	if d.SessionID == "" || a.factors == nil { // an account may have passkeys of another instance, which has them on
		return nil, kept, nil
	}
	if kept, err = a.factors.Factors(ctx, u.ID); err != nil {
		return nil, kept, storeFailed(err)
	}
	var newer []Factor
	kept.List = slices.DeleteFunc(kept.List, func(f Factor) bool {
		if isNew := f.Enabled && f.Sequence >= d.Sequence; isNew {
			newer = append(newer, f)
			return true
		}
		return !f.Enabled
	})
	left, had := otherRequired(kept.List, ""), false
	for _, f := range newer {
		if err := a.recordRemoved(ctx, f); err != nil {
			return nil, kept, err
		}
		if had = had || f.Required; left || f.Kind == store.FactorPasskey {
			events = append(events, removedEvents(u, "", f, false)...)
		}
	}
	if had && !left {
		events = append(events, done(Event{Type: EventMFADisabled, UserID: u.ID}))
	}
	if len(newer) > 0 {
		p.DropFactors = true
		for _, f := range kept.List {
			p.KeepFactors = append(p.KeepFactors, f.ID)
		}
	}
	return events, kept, nil
}

// removeNewCredentials adds to a recovery patch the removal of the phone number that the
// account got after the session began, and returns the events. One patch removes only one
// identity, and none removes the recovery codes alone: these are changes of their own, after
// which removeNewCredentials returns errStepDone. codes reports whether the account lost its
// recovery codes, but not its factor. kept are the factors that stay.
func (a *Auth) removeNewCredentials(ctx context.Context, u User, d linkData, p *store.UserPatch, kept store.Factors) (events []store.OutcomeEvent, codes bool, err error) {
	if d.SessionID == "" {
		return nil, false, nil
	}
	if i := slices.IndexFunc(u.Identities, func(i Identity) bool {
		return i.Sequence >= d.Sequence || d.Joined != 0 && i.Sequence == d.Joined
	}); i >= 0 {
		gone := u.Identities[i]
		c := a.newChangeOf(ctx, byFlow("account secured"), account{User: u}, done(Event{Type: EventIdentityUnlinked, UserID: u.ID, Provider: gone.Provider}))
		c.IfUsers = []UserAt{ifCredentialsUnchanged(u)}
		key, step := store.ByIdentity(gone.Provider, gone.Subject), *p
		step.Unlink, step.DropFactors, step.KeepFactors = &key, false, nil
		if _, err := a.update(ctx, c, u.ID, step); err != nil {
			return nil, false, err
		}
		return nil, false, errStepDone
	}
	if max(u.PhoneSequence, u.PhoneVerifiedSequence) >= d.Sequence {
		p.Phone, p.PhoneVerifiedAt = new(string), new(time.Time)
		events = append(events, done(Event{Type: EventUserUpdated, UserID: u.ID}))
	}
	if !otherRequired(kept.List, "") || kept.Recovery.Sequence < d.Sequence {
		return events, false, nil
	}
	if kept.RecoveryLeft == 0 {
		return events, true, a.recordDroppedCodes(ctx, u, kept.Recovery.Sequence)
	}
	c := a.newChangeOf(ctx, byFlow("account secured"), account{User: u}, done(Event{Type: EventRecoveryCodesReplaced, UserID: u.ID}))
	c.IfUsers = []UserAt{ifCredentialsUnchanged(u)}
	if err := a.factors.PutRecoveryCodes(ctx, store.PutRecoveryCodes{Change: c, UserID: u.ID}); err != nil {
		return nil, false, err
	}
	a.committed(ctx, c, store.OutcomeDone, nil)
	return nil, false, errStepDone
}

// recoveryMark records that an address, verified at VerifiedSequence, recovered the
// account. It voids the links that were sent until then to addresses verified later,
// because an attacker may own those. They stay void even if the account moves to a
// newer address. Links to addresses verified earlier still work, because the recovery
// itself may have been an attacker's.
type recoveryMark struct {
	At               time.Time `json:"at"`       // for the end of its life
	Sequence         int64     `json:"sequence"` // the account's, at that time
	VerifiedSequence int64     `json:"verified_sequence"`
	Address          string    `json:"address"` // that it restored, by EmailKey
}

func (m recoveryMark) outranks(sent, verified int64) bool {
	return sent <= m.Sequence && verified > m.VerifiedSequence
}

// marksHash is the key of an account's marks. No secret hashes to it.
func marksHash(userID string) []byte {
	return recordHash("stop marks", userID)
}

// recoveryMarks returns the marks of an account that may still matter.
func (a *Auth) recoveryMarks(ctx context.Context, userID string) (marks []recoveryMark, err error) {
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

// recordRecovery records that a link is about to recover its account. If the recovery
// then fails, the record voids only links that this one outranks anyway. It returns
// ErrStale if the account has changed.
func (a *Auth) recordRecovery(ctx context.Context, u User, d linkData) error {
	marks, err := a.recoveryMarks(ctx, u.ID)
	if err != nil {
		return err
	}
	now := a.now()
	marks = slices.DeleteFunc(marks, func(m recoveryMark) bool {
		return !now.Before(m.At.Add(recoveryLinkLife)) || m.VerifiedSequence >= d.VerifiedSequence
	})
	_, t := a.newLink(store.PurposeStop, recoveryLinkLife, linkData{Marks: append(marks, recoveryMark{now, u.Sequence, d.VerifiedSequence, store.EmailKey(d.Email)})})
	t.Hash, t.UserID, t.Subject = marksHash(u.ID), u.ID, "marks "+u.ID
	return a.putToken(ctx, byFlow("account taken back"), t, ifCredentialsUnchanged(u))
}

// handleSecurePage is GET /secure-account. It never uses the link up.
func (a *Auth) handleSecurePage(w http.ResponseWriter, r *http.Request) error {
	if !fromProgram(r) {
		return a.showSecurePage(w, r, r.URL.Query().Get("token"))
	}
	t, d, err := a.peekMailed(r.Context(), store.PurposeStop, r.URL.Query().Get("token"))
	if err == nil {
		_, _, _, err = a.recoveringUser(r.Context(), t, d)
	}
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

// showSecurePage shows the confirmation page.
func (a *Auth) showSecurePage(w http.ResponseWriter, r *http.Request, secret string) error {
	t, d, err := a.peekMailed(r.Context(), store.PurposeStop, secret)
	if err != nil {
		return a.showProblemOn(w, r, err, page{OfLink: true, NoOther: true})
	}
	_, moves, _, err := a.recoveringUser(r.Context(), t, d)
	if err != nil {
		return a.showProblemOn(w, r, err, page{OfLink: true, NoOther: true})
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

// handleSecurePost handles the form of the confirmation page.
func (a *Auth) handleSecurePost(w http.ResponseWriter, r *http.Request) error {
	form, err := a.readForm(r)
	if err != nil {
		return a.showProblemOn(w, r, err, page{OfLink: true, NoOther: true})
	}
	done, err := a.secureAccount(r.Context(), form.Get("token"))
	if err != nil {
		return a.showProblemOn(w, r, err, page{OfLink: true, NoOther: true})
	}
	return a.showDone(w, r, page{Done: "secured", ResetSent: done.resetSent, CodesDropped: done.codesDropped}, "")
}
