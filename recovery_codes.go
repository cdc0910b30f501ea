package auth

import (
	"context"
	"errors"

	"github.com/authmount/auth/store"
)

// An account whose recovery codes an account recovery link dropped gets new ones at its
// next sign-in with the authenticator app. A stored record says that the codes were
// dropped, because an account without codes may have used them up.

// droppedCodesHash is the key of an account's record. No secret hashes to it.
func droppedCodesHash(userID string) []byte {
	return recordHash("dropped recovery codes", userID)
}

// recordDroppedCodes stores the record. sequence is that of the dropped codes; newer codes
// make the record void.
func (a *Auth) recordDroppedCodes(ctx context.Context, u User, sequence int64) error {
	_, t := a.newLink(store.PurposeStop, store.DeviceLife, linkData{Sequence: sequence})
	t.Hash, t.UserID, t.Subject = droppedCodesHash(u.ID), u.ID, "dropped codes "+u.ID
	return a.putToken(ctx, byFlow("account secured"), t, ifCredentialsUnchanged(u))
}

// addNewCodes adds the recovery codes to the tokens of a session that a second factor, just
// used, makes necessary. waiting is the token of a sign-in that waited for the factor.
func (a *Auth) addNewCodes(ctx context.Context, t *Tokens, used usedFactor, by Caller, waiting *store.TokenRef) {
	if waiting == nil || used.id == "" || used.User.MFAEnabled || !a.mfaRequired(ctx, used.User) {
		t.RecoveryCodes = a.replaceDroppedCodes(ctx, used, by)
		return
	}
	t.RecoveryCodes = a.requirePasskeyUsed(ctx, used, by)
	t.User.MFAEnabled = t.RecoveryCodes != nil
}

// replaceDroppedCodes gives the user of a session that has just used a second factor new
// recovery codes, if account recovery dropped the former ones. It uses the record up
// first, so that one of several parallel sign-ins returns codes. The sign-in succeeds in
// any case: without the codes the user can request new ones.
func (a *Auth) replaceDroppedCodes(ctx context.Context, used usedFactor, by Caller) []string {
	if used.codesGone == 0 {
		return nil
	}
	hash := droppedCodesHash(by.UserID)
	_, d, err := a.peekHash(ctx, store.PurposeStop, hash)
	if errors.Is(err, CodeInvalidToken) || err == nil && d.Sequence != used.codesGone {
		return nil // no codes were dropped, or newer ones since
	}
	if err == nil {
		_, _, err = a.store.RedeemToken(ctx, store.Redemption{Change: a.newChange(ctx, by.authority()), Purpose: store.PurposeStop, Hash: hash})
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil // a parallel sign-in returns the codes
	}
	var codes []string
	if err == nil {
		codes, err = a.putRecoveryCodes(ctx, by.authority(), used.User)
	}
	if err != nil {
		a.cfg.log.WarnContext(ctx, "auth: no recovery codes in place of the dropped ones", "user", by.UserID, "error", err)
	}
	return codes
}

// putRecoveryCodes replaces a user's recovery codes.
func (a *Auth) putRecoveryCodes(ctx context.Context, by Authority, u User) ([]string, error) {
	codes, hashes := a.newRecoveryCodes(u.ID)
	c := a.newChangeOf(ctx, by, account{User: u}, done(Event{Type: EventRecoveryCodesReplaced, UserID: u.ID}))
	if err := a.factors.PutRecoveryCodes(ctx, store.PutRecoveryCodes{Change: c, UserID: u.ID, Hashes: hashes}); err != nil {
		return nil, err
	}
	a.committed(ctx, c, store.OutcomeDone, nil)
	return codes, nil
}
