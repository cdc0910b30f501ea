package authclient

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/apikey"
	"github.com/authmount/auth/internal/token"
	"github.com/authmount/auth/internal/tokencache"
)

const (
	keyTime  = 10 * time.Second // how long an answer of the server about a secret key is used
	keysKept = 1000             // answers about valid keys, and as many about wrong ones
)

// keyCache caches answers of the server about secret keys, by the hashes of their texts.
// Wrong keys have a cache of their own, because anyone can invent some.
type keyCache struct {
	valid *tokencache.Cache[*apikey.Admitted]
	wrong *tokencache.Cache[bool] // whether it is bound to networks
}

func newKeyCache() keyCache {
	return keyCache{tokencache.New[*apikey.Admitted](keysKept), tokencache.New[bool](keysKept)}
}

// takesKeys reports whether a route takes secret keys.
func (v *Verifier) takesKeys(reqs []auth.Requirement) bool {
	if !apikey.Allowed(reqs) {
		return false
	}
	if v.wire.secretKey == "" {
		v.wire.log.Warn("authclient: auth.AllowKeys needs WithSecretKey: until then, secret keys are refused")
	}
	return v.wire.secretKey != ""
}

// admitKey checks the secret key of a request and the requirements, and returns the
// request as the application receives it.
func (v *Verifier) admitKey(r *http.Request, text string, reqs []auth.Requirement) (*http.Request, error) {
	if apikey.FromBrowser(r) {
		return nil, token.Root.SecretInBrowser()
	}
	k, err := v.key(r.Context(), text)
	if err != nil {
		return nil, err
	}
	r = r.WithContext(token.NewContext(apikey.NewContext(r.Context(), k), nil))
	return r, v.meets(r, &token.Claims{Permissions: k.Permissions}, reqs)
}

func invalidKey(bound bool) error {
	if bound {
		return auth.Reject(auth.CodeInvalidAPIKey, "This API key is bound to networks (cidrs), so it works only at the authentication server.")
	}
	return auth.Reject(auth.CodeInvalidAPIKey, "")
}

// aboutTheKey reports whether a status may be due to the text of a key, 413 for instance,
// which says nothing about other keys.
func aboutTheKey(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusRequestTimeout:
		return false // about the verifier's own key, or the server
	}
	return status >= 400 && status < 500
}

// key returns a valid secret key, as of at most keyTime ago. Errors: CodeInvalidAPIKey,
// CodeRateLimited, CodeUnavailable.
func (v *Verifier) key(ctx context.Context, text string) (*apikey.Admitted, error) {
	sum := sha256.Sum256([]byte(text))
	hash, now := string(sum[:]), v.wire.now() // just before the call: the answer is not older
	if k, ok := v.keyCache.valid.Get(hash, now); ok {
		return k, nil
	}
	if bound, ok := v.keyCache.wrong.Get(hash, now); ok {
		return nil, invalidKey(bound)
	}
	if !v.keyQuestions.may(now) {
		return nil, unavailable()
	}
	caller := ctx
	ctx, cancel := v.checking(ctx)
	defer cancel()
	var answer struct {
		Active      bool     `json:"active"`
		Bound       bool     `json:"bound_to_networks"`
		ID          string   `json:"id"`
		Name        string   `json:"name"`
		CreatedBy   string   `json:"created_by"`
		Permissions []string `json:"permissions"`
	}
	body := struct {
		Key string `json:"key"`
	}{text}
	err := v.wire.do(ctx, call{method: http.MethodPost, path: "/admin/keys/verify", bearer: v.wire.secretKey, body: body}, &answer)
	var e *Error
	limited := errors.As(err, &e) && e.Code == auth.CodeRateLimited // only after a wrong key
	v.keyQuestions.answered(err == nil || limited || e != nil && aboutTheKey(e.Status), caller.Err() != nil, v.wire.now())
	switch {
	case err == nil && answer.Active:
		k := &apikey.Admitted{ID: answer.ID, Name: answer.Name, CreatedBy: answer.CreatedBy, Permissions: answer.Permissions}
		v.keyCache.valid.Put(hash, k, now.Add(keyTime), now)
		return k, nil
	case err == nil:
		v.keyCache.wrong.Put(hash, answer.Bound, now.Add(keyTime), now)
		return nil, invalidKey(answer.Bound)
	case limited:
		refusal := auth.Reject(auth.CodeRateLimited, "")
		refusal.RetryAfter = e.RetryAfter
		return nil, refusal
	case caller.Err() == nil:
		v.keyQuestions.warn(v.wire.log, v.wire.now(), "authclient: the server cannot be asked about secret keys, so requests with one are answered with 503", err)
	}
	return nil, unavailable()
}
