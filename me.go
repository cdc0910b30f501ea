package auth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"

	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/internal/wire"
	"github.com/authmount/auth/store"
)

func (a *Auth) handleMe(w http.ResponseWriter, r *http.Request) error {
	u, err := a.asActor(r.Context(), currentFrom(r.Context()).user)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, ViewOf(u))
}

// UpdateMeParams are the parameters of UpdateMe. A nil field does not change.
type UpdateMeParams struct {
	Caller
	FullName     *string        // "" removes it
	UserMetadata map[string]any // merged into the present metadata; null removes a member (RFC 7396)
	Email        *string        // takes effect when the link sent to it is used within a session of the account
	Phone        *string        // takes effect when the code sent to it is confirmed
}

// UpdateMe changes a user's own profile. A new email address gets a link or, if it has
// an account of its own, a message about that; the response is the same. An unverified
// account may correct its email address or phone number, but not add the other:
// CodeEmailNotVerified. A change of the email address or phone number needs a sign-in or
// another authentication within the last 15 minutes. Errors: CodeReauthNeeded,
// CodeValidationFailed, CodeRateLimited (also by ProfileChangesPerUser),
// CodeMethodDisabled, CodeSessionEnded, CodeUserBanned, CodeTargetStronger (the account
// waits for the acceptance of its permissions), CodeInsufficientAAL (the account needs a
// second factor, and the session has to show its passkey first).
func (a *Auth) UpdateMe(ctx context.Context, p UpdateMeParams) (User, error) {
	var me current
	if err := p.notActing(); err != nil {
		return User{}, err
	}
	if p.Email != nil || p.Phone != nil {
		var err error
		if me, err = a.actingLately(ctx, p.Caller); err != nil {
			return User{}, err
		}
	}
	address, phone, err := a.checkNewIdentifiers(ctx, p, me.user)
	if err != nil {
		return User{}, err
	}
	var allowed sendPermit
	if address != "" {
		if isNewAddress(me.user, linkData{Email: address}) {
			if err := a.mayChangeAddress(ctx, p.UserID); err != nil {
				return User{}, err
			}
		}
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

// checkNewIdentifiers checks the new email address and phone number, before anything is
// changed or sent.
func (a *Auth) checkNewIdentifiers(ctx context.Context, p UpdateMeParams, u User) (address, phone string, err error) {
	if p.Phone != nil {
		if !a.phoneOn(ctx) {
			return "", "", fail(CodeMethodDisabled, nil)
		}
		if phone, err = a.addedPhone(*p.Phone, u.Phone); err != nil {
			return "", "", invalid("phone", err.Error())
		}
	}
	if p.Email != nil {
		if address, err = requiredEmail(*p.Email); err != nil {
			return "", "", invalid("email", err.Error())
		}
	}
	if phone != "" && phone != u.Phone || address != "" && isNewAddress(u, linkData{Email: address}) {
		if err := a.requireMove(ctx, u, p.Caller, true); err != nil {
			return "", "", err
		}
	}
	if (phone != "" && u.Email != "") || (address != "" && u.Email == "") {
		err = requireVerified(u)
	}
	return address, phone, err
}

// updateProfile applies the changes that take effect at once. It merges the metadata as
// read, and stores the result only if the account has not changed since. Equal values change
// nothing, because otherwise a user could fill the audit log with them.
func (a *Auth) updateProfile(ctx context.Context, p UpdateMeParams) (User, error) {
	counted := p.application // the application is responsible
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
			if name != u.FullName {
				patch.FullName = &name
			}
		}
		if p.UserMetadata != nil {
			patch.UserMetadata = mergePatch(u.UserMetadata, p.UserMetadata)
			if err := checkMetadata(patch.UserMetadata); err != nil {
				return u, invalid("user_metadata", err.Error())
			}
			if wire.SameJSON(patch.UserMetadata, u.UserMetadata) {
				patch.UserMetadata = nil
			}
		}
		if patch.Empty() {
			return u, nil
		}
		if !counted { // once, however often the change is attempted
			if err := a.take(ctx, a.draw(a.cfg.limits.ProfileChangesPerUser, "profile-change", p.UserID, 1)); err != nil {
				return u, err
			}
			counted = true
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

// startEmailChange mails the link that changes the account's email address. If the present
// address is verified, its owner is notified and can stop the change. If the new
// address is taken, its owner gets a message instead, and the link is stored but not
// sent: an earlier link is revoked either way, and the store does the same work.
func (a *Auth) startEmailChange(ctx context.Context, allowed sendPermit, by Caller, u User, address string) error {
	_, err := a.store.User(ctx, store.ByEmail(address))
	free := errors.Is(err, store.ErrNotFound)
	if err != nil && !free {
		return storeFailed(err)
	}
	link, message := a.verification(ctx, KindChangeEmail, by, u, address)
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
	if err := a.putToken(ctx, c.By, a.newRefusal(link, address)); err != nil {
		return err
	}
	if err := a.putChange(ctx, c, link, nil); err != nil {
		return err
	}
	a.committed(ctx, c, store.OutcomeDone, nil)
	if !free {
		a.sendAccountExists(ctx, User{Email: address}, "")
	}
	return nil
}

// updateMeFields are the fields of PATCH /me. The tag "change" names the endpoint that
// changes a field instead. An application may send the whole object of GET /me back, so
// only another value of such a field is refused.
type updateMeFields struct {
	FullName     json.RawMessage `json:"full_name"`
	UserMetadata json.RawMessage `json:"user_metadata"`
	Email        *string         `json:"email"`
	Phone        *string         `json:"phone"`

	Password      json.RawMessage `json:"password" change:"POST /me/password"`
	NewPassword   json.RawMessage `json:"new_password" change:"POST /me/password"`
	EmailVerified json.RawMessage `json:"email_verified" change:"POST /verify-email"`
	PhoneVerified json.RawMessage `json:"phone_verified" change:"POST /otp/verify"`
	MFAEnabled    json.RawMessage `json:"mfa_enabled" change:"POST /2fa/setup-totp and POST /2fa/disable"`
	Identities    json.RawMessage `json:"identities" change:"POST and DELETE /me/identities/{provider}"`
	Roles         json.RawMessage `json:"roles" change:"PUT /admin/users/{id}/roles, by an operator"`
	AppMetadata   json.RawMessage `json:"app_metadata" change:"PATCH /admin/users/{id}, by an operator"`
	BannedUntil   json.RawMessage `json:"banned_until" change:"POST /admin/users/{id}/ban, by an operator"`
}

// checkOthers refuses a field that another endpoint changes, unless it has the present
// value. Null counts as absent.
func (f *updateMeFields) checkOthers(u UserView) error {
	var present map[string]any
	text, err := json.Marshal(u)
	if err != nil || json.Unmarshal(text, &present) != nil {
		return fail(CodeInternal, err)
	}
	given, problems := reflect.ValueOf(f).Elem(), map[string]string{}
	for i := range given.NumField() {
		var value any
		name, endpoint := given.Type().Field(i).Tag.Get("json"), given.Type().Field(i).Tag.Get("change")
		if endpoint == "" || json.Unmarshal(given.Field(i).Bytes(), &value) != nil || value == nil {
			continue
		}
		if !reflect.DeepEqual(value, present[name]) {
			problems[name] = "is changed by " + endpoint
		}
	}
	if len(problems) == 0 {
		return nil
	}
	e := fail(CodeValidationFailed, nil)
	e.Fields = problems
	return e
}

func (a *Auth) handleUpdateMe(w http.ResponseWriter, r *http.Request) error {
	var p updateMeFields
	if err := decode(r, &p); err != nil {
		return err
	}
	me := currentFrom(r.Context())
	shown, err := a.asActor(r.Context(), me.user)
	if err == nil {
		err = p.checkOthers(ViewOf(shown))
	}
	if err != nil {
		return err
	}
	patch := UpdateMeParams{Caller: me.caller(), Email: p.Email, Phone: p.Phone}
	if p.Email != nil && *p.Email != "" && *p.Email == me.user.Email {
		patch.Email = nil // sent back as GET /me returned it
	}
	if p.Phone != nil && *p.Phone == me.user.Phone && me.user.PhoneVerified() {
		patch.Phone = nil
	}
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
	if err == nil {
		u, err = a.asActor(r.Context(), u)
	}
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
		c.IfUsers, c.KeepOwner = []UserAt{ifCredentialsUnchanged(u)}, isOwner(u) && u.Accepted(c.Now)
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
