package auth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"
)

func (a *Auth) handleMe(w http.ResponseWriter, r *http.Request) error {
	return writeJSON(w, http.StatusOK, currentFrom(r.Context()).user)
}

// UpdateMeParams are the changes people may make to themselves. Nil stays.
type UpdateMeParams struct {
	FullName     *string        // "" removes it
	UserMetadata map[string]any // merged into what is there; null removes a member (RFC 7396)
	Email        *string        // takes effect when the link sent to it is used
	Phone        *string        // takes effect when the code sent to it is confirmed
}

// UpdateMe changes a user's own particulars. A new address gets a link, or, if
// it has an account of its own, a message that says so; the answer is the same.
// The caller has seen to it that the user signed in lately. Errors:
// CodeValidationFailed, CodeRateLimited.
func (a *Auth) UpdateMe(ctx context.Context, userID string, p UpdateMeParams) (User, error) {
	var address, phone string
	if p.Phone != nil {
		if a.phoneOff() {
			return User{}, fail(CodeMethodDisabled, nil)
		}
		var err error
		if phone, err = a.requiredPhone(*p.Phone); err != nil {
			return User{}, invalid("phone", err.Error())
		}
	}
	if p.Email != nil {
		var err error
		if address, err = requiredEmail(*p.Email); err != nil {
			return User{}, invalid("email", err.Error())
		}
		if err := a.takeSend(ctx, KindChangeEmail, address); err != nil {
			return User{}, err
		}
	}
	if phone != "" {
		if err := a.takeSMS(ctx, phone); err != nil {
			return User{}, err
		}
	}
	u, err := a.updateProfile(ctx, userID, p)
	if err != nil {
		return u, err
	}
	if phone != "" && (phone != u.Phone || !u.PhoneVerified) {
		if err := a.startPhoneChange(ctx, u, phone); err != nil {
			return u, err
		}
	}
	if address != "" && EmailKey(address) != EmailKey(u.Email) {
		return u, a.startEmailChange(ctx, u, address)
	}
	return u, nil
}

// updateProfile applies what takes effect at once. The merge is worked out from
// the metadata as read and applied only if nothing changed since.
func (a *Auth) updateProfile(ctx context.Context, userID string, p UpdateMeParams) (User, error) {
	for range attempts {
		u, err := a.store.User(ctx, ByID(userID))
		if errors.Is(err, ErrNotFound) {
			return u, fail(CodeSessionEnded, err)
		}
		if err != nil {
			return u, storeFailed(err)
		}
		if p.FullName == nil && p.UserMetadata == nil {
			return u, nil
		}
		patch := UserPatch{IfRevision: &u.Revision}
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
		u, err = a.store.UpdateUser(ctx, userID, patch, a.now())
		switch {
		case errors.Is(err, ErrStale):
			continue
		case errors.Is(err, ErrNotFound):
			return u, fail(CodeSessionEnded, err)
		case err != nil:
			return u, storeFailed(err)
		}
		a.emit(ctx, Event{Type: EventUserUpdated, UserID: userID})
		return u, nil
	}
	return User{}, retryAfter(CodeUnavailable, time.Second, ErrStale)
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

func (a *Auth) startEmailChange(ctx context.Context, u User, address string) error {
	_, err := a.store.User(ctx, ByEmail(address))
	switch {
	case errors.Is(err, ErrNotFound):
		return a.sendVerification(ctx, KindChangeEmail, u, address)
	case err != nil:
		return storeFailed(err)
	}
	a.sendAccountExists(ctx, User{Email: address}, "")
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
	me, patch := currentFrom(r.Context()), UpdateMeParams{Email: p.Email, Phone: p.Phone}
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
	if (p.Email != nil || p.Phone != nil) && !a.fresh(me.session) {
		return fail(CodeReauthNeeded, nil)
	}
	u, err := a.UpdateMe(r.Context(), me.user.ID, patch)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, u)
}

// ChangePasswordParams change a password from within a session.
type ChangePasswordParams struct {
	UserID    string
	SessionID string // stays; every other session ends
	Current   string // may be empty if the user has no password
	New       string
}

// ChangePassword sets a new password after the current one was proved. Errors:
// CodeInvalidCredentials (the current one is wrong; counts as a failed login),
// CodeWeakPassword, CodeSamePassword, CodeRateLimited, CodeValidationFailed.
func (a *Auth) ChangePassword(ctx context.Context, p ChangePasswordParams) error {
	if a.cfg.settings.PasswordDisabled {
		return fail(CodeMethodDisabled, nil)
	}
	if p.New == "" {
		return invalid("new_password", "is required")
	}
	c, err := a.store.Credentials(ctx, ByID(p.UserID))
	if errors.Is(err, ErrNotFound) {
		return fail(CodeSessionEnded, err)
	}
	if err != nil {
		return storeFailed(err)
	}
	if c.PasswordHash != "" {
		if p.Current == "" {
			return invalid("current_password", "is required")
		}
		if _, err := a.judgePassword(ctx, c.User.ID, c.PasswordHash, p.Current); err != nil {
			return err
		}
		if p.Current == p.New {
			return fail(CodeSamePassword, nil)
		}
	}
	if err := a.checkPassword(ctx, p.New, c.User.Email, c.User.FullName); err != nil {
		return err
	}
	hash, err := a.passwords.hash(ctx, p.New)
	if err != nil {
		return hashFailed(err)
	}
	u, err := a.store.UpdateUser(ctx, p.UserID, UserPatch{
		IfPasswordHash: &c.PasswordHash, PasswordHash: &hash,
		Revoke:     &SessionFilter{Except: p.SessionID},
		DropTokens: slices.Concat(pendingSignIns, pendingChanges),
	}, a.now())
	switch {
	case errors.Is(err, ErrStale), errors.Is(err, ErrNotFound):
		return fail(CodeInvalidCredentials, err) // changed meanwhile: the proof is out of date
	case err != nil:
		return storeFailed(err)
	}
	a.sendMail(ctx, outgoing{Kind: KindPasswordChanged, To: u.Email, Name: u.FullName}, u)
	a.emit(ctx, Event{Type: EventPasswordChanged, UserID: u.ID})
	return nil
}

func (a *Auth) handleChangePassword(w http.ResponseWriter, r *http.Request) error {
	var p struct {
		CurrentPassword string `json:"current_password"`
		NewPassword     string `json:"new_password"`
	}
	if err := decode(r, &p); err != nil {
		return err
	}
	me := currentFrom(r.Context())
	if p.CurrentPassword == "" && !a.fresh(me.session) {
		return fail(CodeReauthNeeded, nil)
	}
	err := a.ChangePassword(r.Context(), ChangePasswordParams{
		UserID: me.user.ID, SessionID: me.session.ID, Current: p.CurrentPassword, New: p.NewPassword,
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, struct{}{})
}

// DeleteUser removes a user with everything that belongs to them. Errors:
// CodeNotFound.
func (a *Auth) DeleteUser(ctx context.Context, userID string) error {
	err := a.store.DeleteUser(ctx, userID)
	if errors.Is(err, ErrNotFound) {
		return fail(CodeNotFound, err)
	}
	if err != nil {
		return storeFailed(err)
	}
	a.emit(ctx, Event{Type: EventUserDeleted, UserID: userID})
	return nil
}

func (a *Auth) handleDeleteMe(w http.ResponseWriter, r *http.Request) error {
	me := currentFrom(r.Context())
	switch {
	case !a.cfg.deletion:
		return fail(CodeNotFound, nil)
	case !a.fresh(me.session):
		return fail(CodeReauthNeeded, nil)
	}
	if err := a.DeleteUser(r.Context(), me.user.ID); err != nil && !errors.Is(err, CodeNotFound) {
		return err
	}
	a.clearCookies(w)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// isID tells whether s can be an id, before a store is asked.
func isID(s string) bool {
	id, err := uuid.Parse(s)
	return err == nil && id.String() == s
}
