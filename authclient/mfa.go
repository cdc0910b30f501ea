package authclient

import (
	"context"
	"encoding/json"
	"net/http"
)

// MFAParams are a second factor: TOTPCode, RecoveryCode or Passkey.
type MFAParams struct {
	TOTPCode     string          `json:"totp_code,omitempty"`
	RecoveryCode string          `json:"recovery_code,omitempty"`
	Passkey      json.RawMessage `json:"passkey,omitempty"`      // an AuthenticationResponseJSON of WebAuthn Level 3, see BeginPasskeyFactor
	TrustDevice  bool            `json:"trust_device,omitempty"` // trust this device from now on, if the server allows it
}

// VerifyMFA completes a sign-in that returned auth.CodeMFARequired, continues a session
// that waits for a second factor, or raises the current session's level. Errors:
// auth.CodeInvalidTOTPCode, CodeInvalidPasskey; CodeInvalidToken if the sign-in took too long and has to be
// started again.
func (c *Client) VerifyMFA(ctx context.Context, p MFAParams) (*Session, error) {
	body := filled{"totp_code": p.TOTPCode, "recovery_code": p.RecoveryCode, "trust_device": p.TrustDevice}
	if len(p.Passkey) > 0 {
		body["passkey"] = p.Passkey
	}
	k := call{path: "/2fa/verify"}
	waits, ok := c.waiting()
	if ok {
		body["mfa_token"] = waits.token
	} else {
		token, err := c.Token(ctx)
		if err != nil {
			return nil, err
		}
		k.bearer = token
	}
	k.body = body.set()
	s, err := c.signIn(ctx, k)
	c.givenUp(err, waits)
	return s, err
}

// TOTPSetup holds the data to set up an authenticator app. It is a secret.
type TOTPSetup struct {
	Secret string `json:"secret"`
	URI    string `json:"uri"`     // otpauth://
	QRCode string `json:"qr_code"` // the URI as a picture, a data URI
}

// EnrollTOTP starts to set up an authenticator app; EnableTOTP completes it. After a
// sign-in that returned auth.CodeMFAEnrollmentRequired it needs no session. Errors:
// auth.CodeMFAAlreadyEnabled.
func (c *Client) EnrollTOTP(ctx context.Context) (*TOTPSetup, error) {
	s := &TOTPSetup{}
	k := call{method: http.MethodPost, path: "/2fa/setup-totp"}
	if waits, ok := c.waiting(); ok && waits.enroll {
		k.bearer = waits.token
		err := c.wire.do(ctx, k, s)
		c.givenUp(err, waits)
		return orNil(s, err)
	}
	return orNil(s, c.as(ctx, k, s))
}

// EnableTOTP enables the second factor with a code of the new authenticator app. It
// returns recovery codes, each of which can be used once. It renews the session and
// ends the others. Errors: auth.CodeInvalidTOTPCode, CodeMFANotPending.
func (c *Client) EnableTOTP(ctx context.Context, code string) (recoveryCodes []string, err error) {
	k := call{method: http.MethodPost, path: "/2fa/verify-and-enable", body: map[string]string{"totp_code": code}}
	waits, ok := c.waiting()
	if ok && waits.enroll {
		k.bearer = waits.token
	} else if k.bearer, err = c.Token(ctx); err != nil {
		return nil, err
	}
	_, generation := c.current()
	asked := c.wire.now()
	var w sessionWire
	if err := c.wire.do(ctx, k, &w); err != nil {
		c.givenUp(err, waits)
		return nil, err
	}
	s, err := w.session(asked)
	if err == nil {
		err = c.signedIn(ctx, s, generation)
	}
	return w.RecoveryCodes, err // also with an error, because the server does not show them again
}

// DisableTOTP disables the second factor, with a code. p may be empty if the session used its second
// factor in the last 15 minutes. Errors: auth.CodeReauthNeeded, CodeMFAEnforced,
// CodeMFANotEnabled.
func (c *Client) DisableTOTP(ctx context.Context, p MFAParams) error {
	p.TrustDevice, p.Passkey = false, nil
	return c.as(ctx, call{method: http.MethodPost, path: "/2fa/disable", body: p}, nil)
}

// RecoveryCodes returns new recovery codes; the old ones become invalid. The session
// must have used its second factor recently. Errors: auth.CodeReauthNeeded.
func (c *Client) RecoveryCodes(ctx context.Context) ([]string, error) {
	var w struct {
		RecoveryCodes []string `json:"recovery_codes"`
	}
	err := c.as(ctx, call{method: http.MethodPost, path: "/2fa/recovery-codes"}, &w)
	return w.RecoveryCodes, err
}
