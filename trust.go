package auth

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// A device that its user trusts (MFAOptions.TrustDevices) stands in for the second
// factor at sign-ins, in the one place where that is asked for. The store keeps and
// judges trust, in the step that makes a session.

// reasonTrusted is Event.Reason of a sign-in without the second factor.
const reasonTrusted = "trusted_device"

// onTrustedDevice tells whether the device that asks is one that the user trusts.
func (a *Auth) onTrustedDevice(ctx context.Context, u User) (bool, error) {
	key := onThisDevice(ctx, store.ByID(u.ID))
	if a.cfg.mfa.TrustDevices == 0 || key.Device == "" {
		return false, nil
	}
	c, err := a.store.Credentials(ctx, key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return false, storeFailed(err)
	}
	return a.now().Before(c.TrustedUntil), nil
}

// trustUntil is until when the device of a session is trusted from its sign-in on;
// zero: that changes nothing. A recovery code has nobody's device trusted.
func (a *Auth) trustUntil(s signIn, sess Session) time.Time {
	byApp := slices.ContainsFunc(sess.AMR, func(m AMR) bool { return m.Method == methodTOTP })
	if a.cfg.mfa.TrustDevices == 0 || !s.trust || !byApp || sess.Device == "" {
		return time.Time{}
	}
	return sess.CreatedAt.Add(a.cfg.mfa.TrustDevices)
}

// reason is Event.Reason of the sign-in.
func (s *signIn) reason() string {
	if s.onTrusted {
		return reasonTrusted
	}
	return ""
}
