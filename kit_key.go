package auth

import "context"

// What the admin side builds on for API keys.

// KitOperating is KitSignedIn, or a secret key in place of both; see Kit.GivenKey.
const KitOperating = KitAccess(operating)

// KitElsewhere is a secret key, or a request of which the room finds out by itself
// whose it is: it has passed CheckOrigin, and nothing else.
const KitElsewhere = KitAccess(elsewhere)

func (rt route) takesSecretKeys() bool { return rt.access == operating || rt.access == elsewhere }

// GivenKey is the secret key of a request that was let through as KitOperating by one.
func (k Kit) GivenKey(ctx context.Context) (string, bool) {
	text, ok := ctx.Value(secretKeyKey{}).(string)
	return text, ok
}

// SecretKey is the key that a text is, as it is now; one of WithSecretKeys has no ID.
// Errors: CodeInvalidAPIKey, CodeRateLimited.
func (k Kit) SecretKey(ctx context.Context, text string) (APIKey, error) {
	return k.a.secretKey(ctx, text)
}

// SecretKeys are those of WithSecretKeys.
func (k Kit) SecretKeys() []APIKey { return k.a.cfg.secretKeys }

// ForgetKeys has the public keys read anew, after one was changed.
func (k Kit) ForgetKeys() { k.a.publicKeys.known.Store(nil) }
