package authclient

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// Passkey is a passkey of the account.
type Passkey struct {
	ID            string     `json:"id"`
	Name          string     `json:"name"`
	SecondFactor  bool       `json:"second_factor"` // sign-ins by other methods ask for a second factor
	Synced        bool       `json:"synced"`        // it may be on several devices
	Authenticator string     `json:"authenticator"` // the product, for show only
	AAGUID        string     `json:"aaguid"`
	Transports    []string   `json:"transports"`
	CredentialID  string     `json:"credential_id"` // base64url
	CreatedAt     time.Time  `json:"created_at"`
	LastUsedAt    *time.Time `json:"last_used_at"`
}

// Passkeys lists the account's passkeys, the oldest first. To add one, or to sign in with
// one, takes a browser.
func (c *Client) Passkeys(ctx context.Context) ([]Passkey, error) {
	var w struct {
		Passkeys []Passkey `json:"passkeys"`
	}
	err := c.as(ctx, call{method: http.MethodGet, path: "/me/passkeys", repeat: repeatAlways}, &w)
	return w.Passkeys, err
}

// UpdatePasskeyParams are the changes of a passkey. Unset fields do not change.
type UpdatePasskeyParams struct {
	Name         string `json:"name,omitempty"`
	SecondFactor *bool  `json:"second_factor,omitempty"`
}

// UpdatePasskey renames a passkey, or makes it a second factor or none. It returns recovery
// codes with the account's first second factor. Errors: auth.CodePasskeyNotFound,
// CodeReauthNeeded, CodeInsufficientAAL, CodeMFAEnforced.
func (c *Client) UpdatePasskey(ctx context.Context, id string, p UpdatePasskeyParams) (k *Passkey, recoveryCodes []string, err error) {
	var w struct {
		Passkey       Passkey  `json:"passkey"`
		RecoveryCodes []string `json:"recovery_codes"`
	}
	if err := c.as(ctx, call{method: http.MethodPatch, path: "/me/passkeys/" + segment(id), body: p}, &w); err != nil {
		return nil, nil, err
	}
	return &w.Passkey, w.RecoveryCodes, nil
}

// RemovePasskey removes a passkey. Errors: auth.CodePasskeyNotFound,
// CodeLastSignInMethod, CodeReauthNeeded, CodeInsufficientAAL, CodeMFAEnforced.
func (c *Client) RemovePasskey(ctx context.Context, id string) error {
	return c.as(ctx, call{method: http.MethodDelete, path: "/me/passkeys/" + segment(id)}, nil)
}

// BeginPasskeyFactor starts the use of a passkey as the second factor: of the sign-in that waits
// for one (VerifyMFA), or of the session (VerifyMFA, Confirm). It returns a
// PublicKeyCredentialRequestOptionsJSON of WebAuthn Level 3, for the program's own
// authenticator or browser view. Errors: auth.CodeMFANotEnabled (there is no such passkey).
func (c *Client) BeginPasskeyFactor(ctx context.Context) (publicKey json.RawMessage, err error) {
	var w struct {
		PublicKey json.RawMessage `json:"public_key"`
	}
	k := call{method: http.MethodPost, path: "/2fa/passkey", repeat: repeatAlways}
	waits, ok := c.waiting()
	if !ok {
		err = c.as(ctx, k, &w)
		return w.PublicKey, err
	}
	k.body = map[string]string{"mfa_token": waits.token}
	err = c.wire.do(ctx, k, &w)
	c.givenUp(err, waits)
	return w.PublicKey, err
}
