package authclient

import (
	"context"
	"net/http"
	"time"
)

// SignUpParams are the parameters of SignUp: Email or Phone, and Password.
type SignUpParams struct {
	Email        string         `json:"email,omitempty"`
	Phone        string         `json:"phone,omitempty"` // E.164
	Password     string         `json:"password"`
	FullName     string         `json:"full_name,omitempty"`
	UserMetadata map[string]any `json:"user_metadata,omitempty"`
	RedirectTo   string         `json:"redirect_to,omitempty"` // the page that the confirmation link opens
	CaptchaToken string         `json:"-"`
}

// SignUpResult is a new account, and its session unless confirmation is required.
type SignUpResult struct {
	User      User
	Session   *Session // nil: confirmation is required
	RequestID string   // to send with the confirmation code
}

// SignUp creates an account and signs in, or sends a confirmation. If confirmation is
// required, the result does not reveal whether the email address is taken. Errors:
// auth.CodeUserAlreadyExists, CodeWeakPassword (Reasons), CodeValidationFailed
// (Fields), CodeSignupDisabled.
func (c *Client) SignUp(ctx context.Context, p SignUpParams) (*SignUpResult, error) {
	if err := c.load(ctx); err != nil {
		return nil, err
	}
	_, generation := c.current()
	asked := c.wire.now()
	var w struct {
		sessionWire

		ConfirmationRequired bool   `json:"confirmation_required"`
		RequestID            string `json:"request_id"`
	}
	if err := c.wire.do(ctx, call{method: http.MethodPost, path: "/signup", body: p, header: captcha(p.CaptchaToken)}, &w); err != nil {
		c.await(err, generation)
		return nil, err
	}
	if w.ConfirmationRequired {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.generation == generation && c.session == nil {
			u := cloneUser(w.User)
			c.waitFor(pending{})
			c.unconfirmed = &u
			c.changed()
		}
		return &SignUpResult{User: w.User, RequestID: w.RequestID}, nil
	}
	s, err := w.session(asked)
	if err == nil {
		err = c.signedIn(ctx, s, generation)
	}
	if err != nil {
		return nil, err
	}
	return &SignUpResult{User: s.User, Session: s}, nil
}

func captcha(token string) http.Header {
	if token == "" {
		return nil
	}
	return http.Header{"X-Captcha-Token": {token}}
}

// PasswordParams are the parameters of SignInWithPassword: Email or Phone, and
// Password.
type PasswordParams struct {
	Email        string `json:"email,omitempty"`
	Phone        string `json:"phone,omitempty"`
	Password     string `json:"password"`
	TOTPCode     string `json:"totp_code,omitempty"`    // both factors in one call
	TrustDevice  bool   `json:"trust_device,omitempty"` // trust this device from now on, if the server allows it
	CaptchaToken string `json:"-"`

	ConfirmationCode string `json:"confirmation_code,omitempty"` // confirms the account: the code on the page of the link in the mail
}

// SignInWithPassword signs in. Errors: auth.CodeInvalidCredentials; CodeMFARequired,
// after which call VerifyMFA; CodeMFAEnrollmentRequired, after which call EnrollTOTP
// and EnableTOTP; CodeUserBanned.
func (c *Client) SignInWithPassword(ctx context.Context, p PasswordParams) (*Session, error) {
	return c.signIn(ctx, call{path: "/login", body: p, header: captcha(p.CaptchaToken)})
}

// OTPParams are the parameters of SendOTP: Email or Phone.
type OTPParams struct {
	Email        string
	Phone        string // E.164
	RedirectTo   string // the page that the mailed link opens, with a code for Flow.Complete
	NoSignUp     bool   // send to existing accounts only; the answer is the same for others
	CaptchaToken string
}

// SendOTP sends a code to sign in: by text message to Phone, or with a link by mail to
// Email. It succeeds whether the account exists or not. The link only works with the
// returned flow (PKCE, RFC 7636); pass a typed code to Flow.Verify.
func (c *Client) SendOTP(ctx context.Context, p OTPParams) (*Flow, error) {
	if err := c.load(ctx); err != nil {
		return nil, err
	}
	f := newFlow(c)
	f.email, f.phone = p.Email, p.Phone
	body := map[string]any{}
	if p.NoSignUp {
		body["create_user"] = false
	}
	path := "/magic-link/send"
	if p.Phone != "" {
		path, body["phone"] = "/otp/send", p.Phone
	} else {
		body["email"] = p.Email
		f.challenge(body)
		if p.RedirectTo != "" {
			body["redirect_to"] = p.RedirectTo
		}
	}
	var w struct {
		RequestID string `json:"request_id"`
	}
	if err := c.wire.do(ctx, call{method: http.MethodPost, path: path, body: body, header: captcha(p.CaptchaToken)}, &w); err != nil {
		return nil, err
	}
	f.RequestID = w.RequestID
	return f, nil
}

// VerifyOTPParams are the parameters of VerifyOTP, for programs that do not keep the
// Flow.
type VerifyOTPParams struct {
	Email        string
	Phone        string
	Code         string
	RequestID    string // from SendOTP: wrong codes then count only against this request
	CodeVerifier string
	TOTPCode     string // with Phone
	TrustDevice  bool   // with Phone
}

// VerifyOTP signs in with a code. Errors: auth.CodeInvalidCode; those of a sign-in, see
// SignInWithPassword.
func (c *Client) VerifyOTP(ctx context.Context, p VerifyOTPParams) (*Session, error) {
	if p.Phone != "" {
		return c.signIn(ctx, call{path: "/otp/verify", body: filled{"phone": p.Phone, "otp": p.Code, "request_id": p.RequestID, "totp_code": p.TOTPCode, "trust_device": p.TrustDevice}.set()})
	}
	return c.signIn(ctx, call{path: "/magic-link/verify", body: filled{"email": p.Email, "code": p.Code, "request_id": p.RequestID, "code_verifier": p.CodeVerifier}.set()})
}

// VerifyMagicLink signs in with the token of a mailed link. Errors: auth.CodeInvalidToken.
func (c *Client) VerifyMagicLink(ctx context.Context, token string) (*Session, error) {
	return c.signIn(ctx, call{path: "/magic-link/verify", body: map[string]string{"token": token}})
}

// Exchange signs in with the code of a redirect and the verifier of its flow, as
// Flow.Complete does. The code is invalid afterwards. Errors: auth.CodeInvalidCode,
// CodeBadCodeVerifier.
func (c *Client) Exchange(ctx context.Context, code, verifier string) (*Session, error) {
	return c.signIn(ctx, call{path: "/exchange", body: filled{"code": code, "code_verifier": verifier}.set()})
}

// IDTokenParams are the parameters of SignInWithIDToken, for sign-ins with a provider's
// library on the device.
type IDTokenParams struct {
	Provider    string `json:"-"`
	IDToken     string `json:"id_token"`
	Nonce       string `json:"nonce,omitempty"`
	AccessToken string `json:"access_token,omitempty"`

	ConfirmationCode string `json:"confirmation_code,omitempty"` // as in PasswordParams
}

// SignInWithIDToken signs in with an ID token of a provider.
func (c *Client) SignInWithIDToken(ctx context.Context, p IDTokenParams) (*Session, error) {
	return c.signIn(ctx, call{path: "/oauth/" + segment(p.Provider) + "/id-token", body: p})
}

// InvitationView describes an invitation before it is accepted.
type InvitationView struct {
	Email         string    `json:"email"`
	AccountExists bool      `json:"account_exists"`
	ExpiresAt     time.Time `json:"expires_at"`
}

// AcceptInvitationParams are the parameters of AcceptInvitation. Password may be empty
// if the account has one.
type AcceptInvitationParams struct {
	Token    string `json:"token"`
	Password string `json:"password,omitempty"`
	FullName string `json:"full_name,omitempty"`
}

// Invitation reads the invitation of a token. Errors: auth.CodeInvalidToken.
func (c *Client) Invitation(ctx context.Context, token string) (*InvitationView, error) {
	v := &InvitationView{}
	err := c.wire.do(ctx, call{method: http.MethodGet, path: "/invitations/accept", query: map[string][]string{"token": {token}}, repeat: repeatAlways}, v)
	return orNil(v, err)
}

// AcceptInvitation accepts an invitation and signs in.
func (c *Client) AcceptInvitation(ctx context.Context, p AcceptInvitationParams) (*Session, error) {
	return c.signIn(ctx, call{path: "/invitations/accept", body: p})
}

// signIn sends a call that completes a sign-in. If a second factor is required, it
// stores the pending sign-in.
func (c *Client) signIn(ctx context.Context, k call) (*Session, error) {
	if err := c.load(ctx); err != nil {
		c.wire.log.WarnContext(ctx, "authclient: the stored session cannot be read", "error", err)
	}
	_, generation := c.current()
	asked := c.wire.now()
	k.method = http.MethodPost
	var w sessionWire
	if err := c.wire.do(ctx, k, &w); err != nil {
		c.await(err, generation)
		return nil, err
	}
	s, err := w.session(asked)
	if err != nil {
		return nil, err
	}
	return orNil(s, c.signedIn(ctx, s, generation))
}

// filled is a request body; set removes its empty members.
type filled map[string]any

func (f filled) set() map[string]any {
	for name, v := range f {
		if v == "" || v == false {
			delete(f, name)
		}
	}
	return f
}

func orNil[T any](v *T, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	return v, nil
}
