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

// Verifier tells whether a person has solved a captcha. Packages turnstile and
// hcaptcha have one each.
type Verifier interface {
	// Verify judges the token that the captcha's widget gave to the client at ip,
	// which may be zero. ErrCaptcha, wrapped or not, means that it is not good;
	// any other error, that it could not be judged. It must be safe for concurrent
	// use and keep to the context.
	Verify(ctx context.Context, token string, ip netip.Addr) error
}

// ErrCaptcha: a captcha was not solved, or its token was used before.
var ErrCaptcha = errors.New("auth: the captcha was not solved")

// CaptchaOptions say who judges captchas, and when one is asked for.
type CaptchaOptions struct {
	Verifier Verifier // required

	// AfterFailures is after how many wrong passwords lately a login needs one: so
	// many under one name, or three times as many from one address. Names that
	// nobody has count alike. Default 3; negative: never.
	AfterFailures int
	// FailOpen lets requests pass while the Verifier cannot answer, with a warning
	// in the log. By default they are refused: CodeUnavailable.
	FailOpen bool
	// Timeout bounds a verification. Default 5 s.
	Timeout time.Duration
}

// WithCaptcha asks for a captcha at sign-ups, wherever anybody may have a message
// sent, and at logins after wrong passwords. Its token comes in the header
// X-Captcha-Token, in forms in the field captcha_token or the one that the widget
// adds. Without a good one the answer is CodeValidationFailed, with the field
// "captcha". Go methods ask for none: whoever calls them answers for it, and
// pages.New, whose pages call them, refuses. The default is no captcha. A second call replaces the first.
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
	perAddressMore = 3 // how many times as many failures from an address
)

// captchaFields are those of forms: ours, and those that widgets add by themselves.
func captchaFields() []string {
	return []string{fieldCaptcha, "cf-turnstile-response", "h-captcha-response", "g-recaptcha-response"}
}

type captchaKey struct{}

// withCaptcha keeps what a request brings of a captcha for those who ask for it.
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

// errCaptchaAsked tells a guess that was not judged for want of a captcha.
var errCaptchaAsked = errors.New("a captcha is asked for")

// solved judges the captcha of a request. It draws by the address of the client
// first, so that nobody has the Verifier flooded, and before anything else is
// drawn, so that nobody without a captcha uses up what others have.
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

// captchaDue tells whether the draws of a password that is about to be judged show
// so many failures lately that it needs a captcha, which the request has not shown
// yet.
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

// askingAfter makes a draw one after whose failures a captcha is asked for; times
// is how many times as many as under one name.
func (a *Auth) askingAfter(d guessDraw, times int) guessDraw {
	if a.cfg.captcha != nil {
		d.captchaAfter = max(0, a.cfg.captcha.AfterFailures*times)
	}
	return d
}
