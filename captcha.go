package auth

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/authmount/auth/store"
)

// Verifier verifies captchas. Packages turnstile and hcaptcha implement it.
type Verifier interface {
	// Verify checks the token that the captcha's widget gave to the client at ip, which
	// may be the zero Addr. ErrCaptcha, wrapped or not, means that the token is invalid;
	// any other error, that it could not be checked. Verify must be safe for concurrent
	// use and respect the context.
	Verify(ctx context.Context, token string, ip netip.Addr) error
}

// ErrCaptcha: a captcha was not solved, or its token was used before.
var ErrCaptcha = errors.New("auth: the captcha was not solved")

// CaptchaOptions set the verifier of captchas and when one is required.
type CaptchaOptions struct {
	Verifier Verifier // required

	// AfterFailures is the number of recent wrong passwords after which a login requires
	// a captcha: this many for one login name, or three times as many from one IP
	// address. Unknown login names count in the same way. Default 3; negative: never.
	AfterFailures int
	// FailOpen admits requests while the Verifier is unavailable, with a warning in the
	// log. By default they are rejected: CodeUnavailable. A malformed token is rejected in
	// any case, so a Verifier must return ErrCaptcha if the service cannot read the token.
	FailOpen bool
	// Timeout limits a verification. Default 5 s.
	Timeout time.Duration
}

// WithCaptcha requires a captcha at sign-up, at public endpoints that send messages, and
// at login after wrong passwords. Clients send its token in the header X-Captcha-Token,
// or in forms in the field captcha_token or the widget's own field. Without a valid token
// the response is CodeValidationFailed with the field "captcha". Go methods require none,
// because their caller is responsible; pages.New, whose pages call them, returns an
// error. The default is no captcha. A second call replaces the first.
func WithCaptcha(o CaptchaOptions) Option {
	return func(c *config) {
		if o.Verifier == nil {
			c.fail("WithCaptcha", errors.New("a Verifier is required: turnstile.New, hcaptcha.New or another one"))
			return
		}
		o.AfterFailures = cmp.Or(o.AfterFailures, 3)
		if o.Timeout <= 0 {
			o.Timeout = 5 * time.Second
		}
		c.captcha = &o
	}
}

const (
	captchaHeader   = "X-Captcha-Token"
	fieldCaptcha    = "captcha_token"
	maxCaptcha      = 8 << 10 // bytes of a token
	captchasPerIP   = 60      // verifications in captchaPeriod
	captchaPeriod   = 5 * time.Minute
	ipFailureFactor = 3 // factor of AfterFailures for one IP address
)

// captchaFields are the form fields of tokens: our own, and those that widgets add.
func captchaFields() []string {
	return []string{fieldCaptcha, "cf-turnstile-response", "h-captcha-response", "g-recaptcha-response"}
}

// notPrintable reports whether a captcha's token cannot contain r: widgets return printable
// ASCII, and a service may fail at anything else.
func notPrintable(r rune) bool { return r < ' ' || r > '~' }

type captchaKey struct{}

// withCaptcha stores a request's captcha token in its context.
func (a *Auth) withCaptcha(r *http.Request) *http.Request {
	if a.cfg.captcha == nil {
		return r
	}
	token := r.Header.Get(captchaHeader)
	if t := transportOf(r.Context()); token == "" && t != nil && t.form != nil {
		for _, name := range captchaFields() {
			token = cmp.Or(token, t.form.values.Get(name))
		}
	}
	return r.WithContext(context.WithValue(r.Context(), captchaKey{}, token))
}

// errCaptchaRequired is the cause of a login rejected because it needs a captcha.
var errCaptchaRequired = errors.New("a captcha is required")

// verifyCaptcha verifies the captcha of a request. It first counts against a limit of the
// client's IP address, to protect the Verifier from floods. It runs before any other
// limit, so that requests without a captcha cannot use up the limits of others.
func (a *Auth) verifyCaptcha(ctx context.Context) error {
	token, required := ctx.Value(captchaKey{}).(string)
	switch {
	case !required:
		return nil
	case token == "":
		return invalid("captcha", "is required")
	case len(token) > maxCaptcha || strings.ContainsFunc(token, notPrintable):
		return invalid("captcha", "was not accepted")
	}
	if err := a.take(ctx, a.perIP(ctx, a.always(Rate{Burst: captchasPerIP, Per: captchaPeriod}), "captcha-ip")...); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, a.cfg.captcha.Timeout)
	defer cancel()
	err := a.cfg.captcha.Verifier.Verify(bounded, token, clientFrom(ctx).IP)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrCaptcha):
		e := invalid("captcha", "was not accepted")
		e.cause = err
		return e
	case ctx.Err() == nil && a.cfg.captcha.FailOpen:
		a.cfg.log.WarnContext(ctx, "auth: captcha not verified, request admitted", "error", err)
		return nil
	}
	return retryAfter(CodeUnavailable, time.Second, err)
}

// captchaDue returns an error if the counts of a login show so many recent failures that
// it needs a captcha, and the request has none yet.
func (a *Auth) captchaDue(ctx context.Context, draws []attemptLimit, d store.Decision) error {
	if _, required := ctx.Value(captchaKey{}).(string); !required {
		return nil
	}
	remaining := d.Remaining
	for _, s := range draws {
		if s.Rate.Burst <= 0 || len(remaining) == 0 {
			continue
		}
		if s.captchaAfter > 0 && s.Rate.Burst-remaining[0] > s.captchaAfter {
			e := invalid("captcha", "is required")
			e.cause = errCaptchaRequired
			return e
		}
		remaining = remaining[1:]
	}
	return nil
}

// withCaptchaAfter sets the number of failures after which a captcha is required: times is the
// factor of AfterFailures.
func (a *Auth) withCaptchaAfter(d attemptLimit, times int) attemptLimit {
	if a.cfg.captcha != nil {
		d.captchaAfter = max(0, a.cfg.captcha.AfterFailures*times)
	}
	return d
}
