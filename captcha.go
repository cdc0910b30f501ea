package auth

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"time"

	"github.com/authmount/auth/store"
)

// Verifier checks captchas. Packages turnstile and hcaptcha have one each.
type Verifier interface {
	// Verify checks the token that the captcha's widget gave the client at ip, which
	// may be zero. It returns ErrCaptcha, wrapped or not, for an invalid token, and
	// another error if it could not check the token. It must be safe for concurrent use
	// and respect ctx.
	Verify(ctx context.Context, token string, ip netip.Addr) error
}

// ErrCaptcha means that a captcha was not solved, or that its token was used before.
var ErrCaptcha = errors.New("auth: the captcha was not solved")

// CaptchaOptions configure captchas.
type CaptchaOptions struct {
	Verifier Verifier // required

	// AfterFailures is the number of recent wrong passwords after which a login needs
	// a captcha: this many for one name, or three times as many from one IP address.
	// Unknown accounts count the same. Default 3; negative: never.
	AfterFailures int
	// FailOpen lets requests pass, with a warning in the log, while the Verifier
	// fails. By default they are refused with CodeUnavailable.
	FailOpen bool
	// Timeout bounds a verification. Default 5 s.
	Timeout time.Duration
}

// WithCaptcha requires a captcha for sign-ups, for requests that send a message to
// anybody's address, and for logins after wrong passwords. The token is in the header
// X-Captcha-Token; in forms it is in the field captcha_token or the widget's own field.
// Without a valid token the error is CodeValidationFailed with the field "captcha". Go
// methods require no captcha, because their caller is responsible. pages.New refuses
// the option, because its pages call those methods. The default is no captcha. A
// second call replaces the first.
func WithCaptcha(o CaptchaOptions) Option {
	return func(c *config) {
		if o.Verifier == nil {
			c.fail("WithCaptcha", errors.New("a Verifier is needed: turnstile.New, hcaptcha.New, or another one"))
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
	captchaHeader  = "X-Captcha-Token"
	fieldCaptcha   = "captcha_token"
	maxCaptcha     = 8 << 10 // bytes of a token
	captchasPerIP  = 60      // verifications in captchaPeriod
	captchaPeriod  = 5 * time.Minute
	perAddressMore = 3 // factor of AfterFailures for one IP address
)

// captchaFields returns the form fields of captcha tokens: ours and the widgets' own.
func captchaFields() []string {
	return []string{fieldCaptcha, "cf-turnstile-response", "h-captcha-response", "g-recaptcha-response"}
}

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

// errCaptchaAsked marks an attempt that was not checked because it needs a captcha.
var errCaptchaAsked = errors.New("a captcha is asked for")

// solved checks the captcha of a request. It first counts against the client's IP
// address, so that nobody can flood the Verifier. It comes before every other limit,
// so that a request without a captcha cannot use up a limit that others share.
func (a *Auth) solved(ctx context.Context) error {
	token, asked := ctx.Value(captchaKey{}).(string)
	switch {
	case !asked:
		return nil
	case token == "":
		return invalid("captcha", "is required")
	case len(token) > maxCaptcha:
		return invalid("captcha", "was not accepted")
	}
	if err := a.take(ctx, a.perIP(ctx, a.always(Rate{Burst: captchasPerIP, Per: captchaPeriod}), "captcha-ip")); err != nil {
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
		a.cfg.log.WarnContext(ctx, "auth: captcha not verified, let pass", "error", err)
		return nil
	}
	return retryAfter(CodeUnavailable, time.Second, err)
}

// captchaDue returns an error if a password attempt needs a captcha, because of
// recent failures in its draws, and the request has none that was checked.
func (a *Auth) captchaDue(ctx context.Context, draws []guessDraw, d store.Decision) error {
	if _, asked := ctx.Value(captchaKey{}).(string); !asked {
		return nil
	}
	left := d.Remaining
	for _, s := range draws {
		if s.Rate.Burst <= 0 || len(left) == 0 {
			continue
		}
		if s.captchaAfter > 0 && s.Rate.Burst-left[0] > s.captchaAfter {
			e := invalid("captcha", "is required")
			e.cause = errCaptchaAsked
			return e
		}
		left = left[1:]
	}
	return nil
}

// askingAfter returns d as a draw that requires a captcha after failures. times
// multiplies AfterFailures.
func (a *Auth) askingAfter(d guessDraw, times int) guessDraw {
	if a.cfg.captcha != nil {
		d.captchaAfter = max(0, a.cfg.captcha.AfterFailures*times)
	}
	return d
}
