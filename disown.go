package auth

import (
	"context"
	"errors"
	"time"

	"github.com/authmount/auth/store"
)

// disownAccount is "This wasn't me" on the page: the address's owner takes over the
// account that another person created with the address, and gets a link to choose a
// password. If the address is not yet the account's, the link and its code become invalid,
// and the account may be refused further changes for a while (see refusedChanges). done
// names the page that follows.
func (a *Auth) disownAccount(ctx context.Context, token string) (done string, reset bool, err error) {
	refused, err := a.refuseChange(ctx, token)
	if err != nil {
		return "", false, err
	}
	takenOver, freed := false, false
	_, u, err := a.redeem(ctx, store.PurposeVerifyEmail, token, func(t store.Token, d linkData) (store.Redemption, error) {
		u, err := a.store.User(ctx, store.ByID(t.UserID))
		if err != nil {
			return store.Redemption{}, linkFailed(err)
		}
		if takenOver = isFirstVerification(u, d); !takenOver {
			c := a.newChange(ctx, byAuthentication())
			c.IfUsers = []UserAt{ifCredentialsUnchanged(u)}
			return store.Redemption{Change: c, Effect: store.Effect{UserID: u.ID}}, nil
		}
		if freed = hasHolder(u); freed {
			return store.Redemption{}, a.detach(ctx, u, rootEmail)
		}
		r, _ := a.verificationRedemption(ctx, u, rootEmail, Caller{})
		return r, nil
	})
	switch {
	case freed && errors.Is(err, CodeInvalidToken): // the account lost the address, and the link with it
		return "disowned", false, nil
	case refused && errors.Is(err, CodeInvalidToken): // used or replaced
		return "refused", false, nil
	case err != nil || !takenOver:
		return "left_alone", false, err
	}
	reset, err = a.sendFollowUp(ctx, u.Email)
	return "disowned", reset, err
}

// A link to a new address has a second token, its refusal, which lets the address's owner
// refuse the change once. It survives the link and all other tokens of the account.
// Otherwise a thief would replace each request before its recipient refuses it.

func (a *Auth) newRefusal(link store.Token, address string) store.Token {
	_, t := a.newLink(store.PurposeVerifyEmail, verifyLife, linkData{Refuses: link.UserID, Refused: address})
	t.Hash = refusalHash(link.Hash)
	return t
}

func refusalHash(link []byte) []byte { return recordHash("refusal", string(link)) }

// refusable reports whether a link has an unused refusal. A completed change cannot be
// refused any more.
func (a *Auth) refusable(ctx context.Context, secret string) (bool, error) {
	_, d, err := a.peekHash(ctx, store.PurposeVerifyEmail, refusalHash(hashLinkToken(secret)))
	if errors.Is(err, CodeInvalidToken) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	u, err := a.store.User(ctx, store.ByID(d.Refuses))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil && store.EmailKey(u.Email) != store.EmailKey(d.Refused), storeFailed(err)
}

// refuseChange uses up the refusal of a link, if it has one, and counts it.
func (a *Auth) refuseChange(ctx context.Context, secret string) (refused bool, err error) {
	if may, err := a.refusable(ctx, secret); !may || err != nil {
		return false, err
	}
	t, _, err := a.store.RedeemToken(ctx, store.Redemption{
		Change: a.newChange(ctx, byAuthentication()), Purpose: store.PurposeVerifyEmail, Hash: refusalHash(hashLinkToken(secret)),
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil:
		return false, storeFailed(err)
	}
	d, err := readLink(t.Data)
	if err != nil {
		return false, err
	}
	if err := a.take(ctx, a.refusedChanges(d.Refuses, 1)); err != nil && !errors.Is(err, CodeRateLimited) {
		return false, err
	}
	return true, nil
}

// refusedChanges counts refused changes of an account's address. Three block further ones
// for a day.
func (a *Auth) refusedChanges(userID string, cost int) store.Draw {
	return a.draw(a.always(Rate{Burst: 3, Per: 3 * 24 * time.Hour}), "address-refused", userID, cost)
}

// mayChangeAddress checks that the account's address may be changed: fewer than three
// changes were refused lately. Errors: CodeRateLimited.
func (a *Auth) mayChangeAddress(ctx context.Context, userID string) error {
	return a.take(ctx, a.refusedChanges(userID, 0)) // checks without drawing
}
