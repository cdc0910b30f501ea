package authclient

import (
	"context"
	"net/http"
)

// MFAParams are a second factor: TOTPCode or RecoveryCode.
type MFAParams struct {
	TOTPCode     string `json:"totp_code,omitempty"`
	RecoveryCode string `json:"recovery_code,omitempty"`
	TrustDevice  bool   `json:"trust_device,omitempty"` // do not ask this device again, where the server allows it
}

// VerifyMFA completes the sign-in that answered auth.CodeMFARequired, or steps the
// session up that there is. Errors: auth.CodeInvalidTOTPCode; CodeInvalidToken, if the
// sign-in took too long: begin anew.
func (c *Client) VerifyMFA(ctx context.Context, p MFAParams) (*Session, error) {
	body := filled{"totp_code": p.TOTPCode, "recovery_code": p.RecoveryCode, "trust_device": p.TrustDevice}
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

// TOTPSetup is what an authenticator app is set up with. It is a secret.
type TOTPSetup struct {
	Secret string `json:"secret"`
	URI    string `json:"uri"`     // otpauth://
	QRCode string `json:"qr_code"` // the same as picture, a data URI
}

// EnrollTOTP begins to set up an authenticator app; EnableTOTP completes it. After a
// sign-in that answered auth.CodeMFAEnrollmentRequired it works without a session.
// Errors: auth.CodeMFAAlreadyEnabled.
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

// EnableTOTP switches the second factor on with a code of the app that was set up, and
// returns recovery codes to keep, each good once. The session is renewed; others end.
// Errors: auth.CodeInvalidTOTPCode, CodeMFANotPending.
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
	var w struct {
		sessionWire

		RecoveryCodes []string `json:"recovery_codes"`
	}
	if err := c.wire.do(ctx, k, &w); err != nil {
		c.givenUp(err, waits)
		return nil, err
	}
	s, err := w.session(asked)
	if err == nil {
		err = c.signedIn(ctx, s, generation)
	}
	return w.RecoveryCodes, err // which are not shown again
}

// DisableTOTP switches the second factor off; the zero MFAParams will do with a session
// that showed it in the last 15 minutes. Errors: auth.CodeReauthNeeded, CodeMFAEnforced,
// CodeMFANotEnabled.
func (c *Client) DisableTOTP(ctx context.Context, p MFAParams) error {
	p.TrustDevice = false
	return c.as(ctx, call{method: http.MethodPost, path: "/2fa/disable", body: p}, nil)
}

// RecoveryCodes makes new recovery codes; the old ones are void. The session has to have
// shown its second factor of late. Errors: auth.CodeReauthNeeded.
func (c *Client) RecoveryCodes(ctx context.Context) ([]string, error) {
	var w struct {
		RecoveryCodes []string `json:"recovery_codes"`
	}
	err := c.as(ctx, call{method: http.MethodPost, path: "/2fa/recovery-codes"}, &w)
	return w.RecoveryCodes, err
}
