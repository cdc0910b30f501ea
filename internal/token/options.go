package token

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/store"
)

// Limits of access tokens.
const (
	MaxLife   = 24 * time.Hour
	MaxLength = 16 << 10 // longest token that is verified

	leeway      = 30 * time.Second
	defaultLife = 15 * time.Minute

	defaultAudience = "authenticated"
	postgresRole    = "authenticated"

	// DefaultRemember is the default number of verified tokens in the cache.
	DefaultRemember = 10_000
)

// The "typ" of access tokens.
const (
	typeAccess = "at+jwt" // RFC 9068: no other kind of JWT has this type
	typePlain  = "JWT"    // the type of any JWT
)

// Options has the fields of auth.TokenOptions.
type Options struct {
	Issuer     string
	Audience   string
	Life       time.Duration
	Algorithm  string
	Remember   int
	TokenType  string
	AMRStrings bool
}

// Check returns the options' problems, joined.
func (o Options) Check() error {
	var errs []error
	if o.Life < 0 || o.Life > MaxLife {
		errs = append(errs, errors.New("the life of an access token must be at most 24 hours"))
	}
	if t := o.TokenType; t != "" && t != typeAccess && t != typePlain {
		errs = append(errs, fmt.Errorf("TokenType %q is neither %q nor %q", t, typeAccess, typePlain))
	}
	return errors.Join(errs...)
}

// Lifetime is the time from a token's issue to its expiry.
func (o Options) Lifetime() time.Duration { return cmp.Or(o.Life, defaultLife) }

func (o Options) audience() string { return cmp.Or(o.Audience, defaultAudience) }

// accepts reports whether typ is a valid "typ" of an access token: the configured one, or
// the stricter default, which older tokens have if the option was changed.
func (o Options) accepts(typ string) bool {
	typ = strings.TrimPrefix(strings.ToLower(typ), "application/")
	return typ == typeAccess || (o.TokenType == typePlain && typ == strings.ToLower(typePlain))
}

// typ returns the "typ" of new tokens.
func (o Options) typ() string { return cmp.Or(o.TokenType, typeAccess) }

// The methods in a session's AMR that have registered names (RFC 8176).
const (
	MethodPassword  = "password"
	MethodPhoneCode = "otp"
	MethodTOTP      = "totp"
	MethodRecovery  = "recovery_code"
)

// amrClaim returns a token's "amr" and "auth_time". auth_time is nil if amr contains the
// times.
func (o Options) amrClaim(s store.Session) (amr any, at *int64) {
	if !o.AMRStrings {
		return nonNil(s.AMR), nil
	}
	values := []string{}
	for _, m := range s.AMR {
		if v := registeredName(m.Method); !slices.Contains(values, v) {
			values = append(values, v)
		}
		if at == nil || m.Timestamp > *at {
			at = &m.Timestamp
		}
	}
	if s.AAL == store.LevelAAL2 {
		values = append(values, "mfa")
	}
	return values, at
}

// registeredName returns the registered name of a method (RFC 8176), or the method itself.
func registeredName(method string) string {
	switch method {
	case MethodPassword:
		return "pwd"
	case MethodPhoneCode:
		return "sms"
	case MethodTOTP, MethodRecovery:
		return "otp"
	}
	return method
}

// amrOf parses both forms of the claim. Strings have no times of their own, so every
// method gets authTime, the time of the newest one.
func amrOf(claim any, authTime float64) []store.AMR {
	var out []store.AMR
	list, _ := claim.([]any)
	for _, v := range list {
		switch v := v.(type) {
		case string:
			out = append(out, store.AMR{Method: v, Timestamp: int64(authTime)})
		case map[string]any:
			method, _ := v["method"].(string)
			at, _ := v["timestamp"].(float64)
			out = append(out, store.AMR{Method: method, Timestamp: int64(at)})
		default:
			out = append(out, store.AMR{})
		}
	}
	return out
}
