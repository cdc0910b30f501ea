package auth

import (
	"context"
	"encoding/base32"
	"fmt"

	"github.com/authmount/auth/store"
)

func (k kit) TOTPSecret(ctx context.Context, userID string) (string, error) {
	if k.a.factors == nil {
		return "", nil
	}
	all, err := k.a.factors.Factors(ctx, userID)
	if err != nil {
		return "", storeFailed(err)
	}
	for _, f := range all.List {
		if !f.Enabled || f.Kind != store.FactorTOTP {
			continue
		}
		secret, _, err := k.a.keys.Open(f.Secret, []byte(f.UserID))
		if err != nil {
			return "", fail(CodeInternal, fmt.Errorf("the second factor of user %s: %w", f.UserID, err))
		}
		return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(secret), nil
	}
	return "", nil
}
