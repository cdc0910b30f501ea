package auth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

func (a *Auth) handleMe(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, http.StatusOK, ViewOf(currentFrom(r.Context()).user))
}

// UpdateMeParams are the parameters of UpdateMe. A nil field does not change.
type UpdateMeParams struct {
	Caller
	FullName     *string        // "" removes it
	UserMetadata map[string]any // merged into the present metadata; null removes a member (RFC 7396)
	Email        *string        // takes effect when the link sent to it is used
	Phone        *string        // takes effect when the code sent to it is confirmed
}

// UpdateMe changes a user's own profile. A new email address gets a link or, if it has
// an account of its own, a message about that; the response is the same. An unverified
// account may correct its email address or phone number, but not add the other:
// CodeEmailNotVerified. For either, the session needs a sign-in or another
// authentication within the last 15 minutes. Errors: CodeReauthNeeded,
// CodeValidationFailed, CodeRateLimited, CodeMethodDisabled, CodeSessionEnded,
// CodeUserBanned.
func (a *Auth) UpdateMe(ctx context.Context, p UpdateMeParams) (User, error) {
	var me current
	if p.Email != nil || p.Phone != nil {
		var err error
		if me, err = a.actingLately(ctx, p.Caller); err != nil {
			return User{}, err
		}
	}
	address, phone, err := a.checkNewRoots(ctx, p, me.user)
	if err != nil {
		return User{}, err
	}
	var allowed sendPermit
	if address != "" {
		if allowed, err = a.takeSend(ctx, atOwners, KindChangeEmail, address); err != nil {
			return User{}, err
		}
	}
	if phone != "" {
		if err := a.takeSMS(ctx, atChange, phone); err != nil {
			return User{}, err
		}
	}
	u, err := a.updateProfile(ctx, p)
	if err != nil {
		return u, err
	}
	if phone != "" && (phone != u.Phone || !u.PhoneVerified()) {
		if err := a.startPhoneChange(ctx, p.Caller, u, phone); err != nil {
			return u, err
		}
	}
	if address != "" && store.EmailKey(address) != store.EmailKey(u.Email) {
		return u, a.startEmailChange(ctx, allowed, p.Caller, u, address)
	}
	return u, nil
}

// checkNewRoots checks the new email address and phone number, before anything is
// changed or sent.
func (a *Auth) checkNewRoots(ctx context.Context, p UpdateMeParams, u User) (address, phone string, err error) {
	if p.Phone != nil {
		if !a.phoneOn(ctx) {
			return "", "", fail(CodeMethodDisabled, nil)
		}
		if phone, err = a.requiredPhone(*p.Phone); err != nil {
			return "", "", invalid("phone", err.Error())
		}
	}
	if p.Email != nil {
		if address, err = requiredEmail(*p.Email); err != nil {
			return "", "", invalid("email", err.Error())
		}
	}
	if (phone != "" && u.Email != "") || (address != "" && u.Email == "") {
		err = requireVerified(u)
	}
	return address, phone, err
}

// updateProfile applies the changes that take effect at once. It merges the metadata as
// read, and stores the result only if they have not changed since.
func (a *Auth) updateProfile(ctx context.Context, p UpdateMeParams) (User, error) {
	return change(func() (User, error) {
		u, err := a.store.User(ctx, store.ByID(p.UserID))
		if err != nil {
			return u, goneOr(CodeSessionEnded, err)
		}
		var patch store.UserPatch
		if p.FullName != nil {
			name, err := cleanName(*p.FullName)
			if err != nil {
				return u, invalid("full_name", err.Error())
			}
			patch.FullName = &name
		}
		if p.UserMetadata != nil {
			patch.UserMetadata = mergePatch(u.UserMetadata, p.UserMetadata)
			if err := checkMetadata(patch.UserMetadata); err != nil {
				return u, invalid("user_metadata", err.Error())
			}
		}
		if patch.Empty() {
			return u, nil
		}
		c := a.newChange(ctx, p.authority(), done(Event{Type: EventUserUpdated, UserID: p.UserID}))
		c.IfUsers = []UserAt{{ID: u.ID, Revision: &u.Revision}}
		return a.update(ctx, c, p.UserID, patch)
	})
}

// mergePatch applies a JSON merge patch (RFC 7396) without changing target.
func mergePatch(target, patch map[string]any) map[string]any {
	out := make(map[string]any, len(target)+len(patch))
	for k, v := range target {
		out[k] = v
	}
	for k, v := range patch {
		member, isObject := v.(map[string]any)
		switch {
		case v == nil:
			delete(out, k)
		case isObject:
			old, _ := out[k].(map[string]any)
			out[k] = mergePatch(old, member)
		default:
			out[k] = v
		}
	}
	return out
}

// startEmailChange mails the link that changes the account's email address. It notifies
// the owner of the present address, if verified, who can stop the change. If the new
// address is taken, its owner gets a message instead, and the link is stored but not
// sent: an earlier link is revoked either way, and the store does the same work.
func (a *Auth) startEmailChange(ctx context.Context, allowed sendPermit, by Caller, u User, address string) error {
	_, err := a.store.User(ctx, store.ByEmail(address))
	free := errors.Is(err, store.ErrNotFound)
	if err != nil && !free {
		return storeFailed(err)
	}
	link, message := a.verification(ctx, KindChangeEmail, by, u, address)
	if err := a.recordCodeAccount(ctx, by, u, address); err != nil {
		return err
	}
	c := a.newChange(ctx, by.authority())
	if free {
		message.Permit = allowed
	} else {
		message = outbox.Outgoing{Kind: KindChangeEmail}
	}
	a.enclose(ctx, &c, message, u, &link)
	if u.EmailVerified() {
		notice, err := a.notice(ctx, c.By, KindEmailChangeRequested, u, by.SessionID, address)
		if err != nil {
			return err
		}
		a.enclose(ctx, &c, notice, u, nil)
	}
	if err := a.putChange(ctx, c, link, nil); err != nil {
		return err
	}
	a.committed(ctx, c, store.OutcomeDone, nil)
	a.refillCode(ctx, link.Purpose, ofUser(u.ID), store.EmailKey(address))
	if !free {
		a.sendAccountExists(ctx, User{Email: address}, "")
	}
	return nil
}

func (a *Auth) handleUpdateMe(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		FullName     json.RawMessage `json:"full_name"`
		UserMetadata json.RawMessage `json:"user_metadata"`
		Email        *string         `json:"email"`
		Phone        *string         `json:"phone"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	me := currentFrom(r.Context())
	patch := UpdateMeParams{Caller: me.caller(), Email: p.Email, Phone: p.Phone}
	if p.FullName != nil {
		patch.FullName = new(string) // null removes the name
		if err := json.Unmarshal(p.FullName, patch.FullName); err != nil {
			return fail(CodeBadJSON, errors.New("full_name: wrong type"))
		}
	}
	if p.UserMetadata != nil {
		if err := json.Unmarshal(p.UserMetadata, &patch.UserMetadata); err != nil {
			return fail(CodeBadJSON, errors.New("user_metadata: wrong type"))
		}
		if patch.UserMetadata == nil {
			return invalid("user_metadata", "is not an object")
		}
	}
	u, err := a.UpdateMe(r.Context(), patch)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, ViewOf(u))
}

// DeleteUserParams are the parameters of DeleteUser.
type DeleteUserParams struct {
	Caller
}

// DeleteUser deletes a user and all their data. The session needs a sign-in or another
// authentication within the last 15 minutes. Errors: CodeNotFound
// (Settings.AccountDeletion is off, or the application names an unknown user),
// CodeReauthNeeded, CodeLastOwner, CodeSessionEnded, CodeUserBanned, those of
// Hooks.BeforeDelete.
func (a *Auth) DeleteUser(ctx context.Context, p DeleteUserParams) error {
	if p.application {
		return a.deleteUser(ctx, p)
	}
	if !a.Settings(ctx).AccountDeletion.On() {
		return fail(CodeNotFound, nil)
	}
	if _, err := a.actingLately(ctx, p.Caller); err != nil {
		return err
	}
	if err := a.deleteUser(ctx, p); !errors.Is(err, CodeNotFound) {
		return err
	}
	return nil // meanwhile deleted by another request of the user
}

// endUser deletes an account as it was read, if the application agrees. No other
// function deletes accounts.
func (a *Auth) endUser(ctx context.Context, u User, c store.DeleteUser) error {
	if err := a.beforeDelete(ctx, u); err != nil {
		return err
	}
	return a.store.DeleteUser(ctx, c)
}

func (a *Auth) deleteUser(ctx context.Context, p DeleteUserParams) error {
	_, err := change(func() (struct{}, error) {
		u, err := a.store.User(ctx, store.ByID(p.UserID))
		if err != nil {
			return struct{}{}, goneOr(CodeNotFound, err)
		}
		c := a.newChangeOf(ctx, p.authority(), account{User: u}, done(Event{Type: EventUserDeleted, UserID: p.UserID}))
		c.IfUsers, c.KeepOwner = []UserAt{ifCredentialsUnchanged(u)}, isOwner(u)
		err = a.endUser(ctx, u, store.DeleteUser{Change: c, UserID: p.UserID})
		var refused *Error
		switch {
		case err == nil:
			a.committed(ctx, c, store.OutcomeDone, nil)
		case !errors.As(err, &refused) && !errors.Is(err, store.ErrStale): // keep a hook's refusal, even if it wraps an error of the store
			err = goneOr(CodeNotFound, err)
		}
		return struct{}{}, err
	})
	return err
}

func (a *Auth) handleDeleteMe(w http.ResponseWriter, r *http.Request) error {
	if err := a.DeleteUser(r.Context(), DeleteUserParams{currentFrom(r.Context()).caller()}); err != nil {
		return err
	}
	a.signOut(w, r)
	w.WriteHeader(http.StatusNoContent)
	return nil
}
