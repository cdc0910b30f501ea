package auth

import (
	"context"
	"slices"
	"strings"

	"github.com/authmount/auth/store"
)

// What the admin side builds on for API keys.

func (rt route) takesSecretKeys() bool { return rt.access == operating || rt.access == elsewhere }

func (k kit) GivenKey(ctx context.Context) (string, bool) {
	text, ok := ctx.Value(secretKeyKey{}).(string)
	return text, ok
}

func (k kit) SecretKey(ctx context.Context, text string) (store.APIKey, error) {
	return k.a.secretKey(ctx, text)
}

func (k kit) SecretKeys() []store.APIKey { return k.a.cfg.secretKeys }

// optionKeyName is what the name of a secret key of the options begins with.
const optionKeyName = "secret key "

func (k kit) SecretKeyNamed(name string) (key store.APIKey, named, there bool) {
	at := slices.IndexFunc(k.SecretKeys(), func(key store.APIKey) bool { return key.Name == name })
	if at < 0 {
		return store.APIKey{}, strings.HasPrefix(name, optionKeyName), false
	}
	return k.SecretKeys()[at], true, true
}

func (k kit) ForgetKeys() { k.a.publicKeys.forget() }
