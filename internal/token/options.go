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
	MaxLength = 16 << 10 // of a token that is verified

	leeway      = 30 * time.Second
	defaultLife = 15 * time.Minute

	defaultAudience = "authenticated"
	postgresRole    = "authenticated"

	// DefaultRemember is the number of verified tokens that are kept.
	DefaultRemember = 10_000
)

// The "typ" of access tokens.
const (
	typeAccess = "at+jwt" // RFC 9068, so that no other JWT passes for one
	typePlain  = "JWT"    // of any JWT
)

// Options are auth.TokenOptions, field by field.
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
		errs = append(errs, errors.New("an access token lives at most 24 hours"))
	}
	if t := o.TokenType; t != "" && t != typeAccess && t != typePlain {
		errs = append(errs, fmt.Errorf("TokenType %q is neither %q nor %q", t, typeAccess, typePlain))
	}
	return errors.Join(errs...)
}

// Lifetime is the time from a token's issue to its expiry.
func (o Options) Lifetime() time.Duration { return cmp.Or(o.Life, defaultLife) }

func (o Options) audience() string { return cmp.Or(o.Audience, defaultAudience) }

// accepts tells whether a token's "typ" is one of ours: what new tokens get, or the
// stricter default, which tokens of before a change of it have.
func (o Options) accepts(typ string) bool {
	typ = strings.TrimPrefix(strings.ToLower(typ), "application/")
	return typ == typeAccess || (o.TokenType == typePlain && typ == strings.ToLower(typePlain))
}

// typ is the "typ" of new tokens.
func (o Options) typ() string { return cmp.Or(o.TokenType, typeAccess) }

// The methods of a session's AMR that have registered names.
const (
	MethodPassword  = "password"
	MethodPhoneCode = "otp"
	MethodTOTP      = "totp"
	MethodRecovery  = "recovery_code"
)

// amrClaim is the "amr" of a token, and its "auth_time", which is there if amr does
// not say when.
func (o Options) amrClaim(s store.Session) (amr any, at *int64) {
	if !o.AMRStrings {
		return orEmpty(s.AMR), nil
	}
	values := []string{}
	for _, m := range s.AMR {
		if v := amrValue(m.Method); !slices.Contains(values, v) {
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

// amrValue is a method by its registered name (RFC 8176), if it has one.
func amrValue(method string) string {
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

// amrOf reads both forms of the claim. Where it holds strings, every proof counts
// for as old as the newest one, which is all that is known.
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
