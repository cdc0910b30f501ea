package passkey_test

import (
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/authenticator"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/passkey"
)

// BenchmarkSignIn compares sign-ins side by side in one run: with a passkey, with a password,
// and with a password and a code. AUTH_TEST_STORE=postgres runs it on Postgres.
func BenchmarkSignIn(b *testing.B) {
	start := func(b *testing.B) (*authtest.Env, auth.Caller) {
		b.Helper()
		env := authtest.NewOn(b, harness.NewStore(b), auth.WithPasskeys(passkey.New(passkey.Options{})), auth.WithRateLimits(auth.RateLimits{Off: true}),
			auth.WithPasswords(auth.PasswordOptions{Argon2id: harness.UsualCost}))
		claims, err := env.Verify(env.LoginAs(b, "ada@example.com").AccessToken)
		if err != nil {
			b.Fatal(err)
		}
		return env, claims.Caller()
	}
	must := func(b *testing.B, err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	login := auth.LoginParams{Email: "ada@example.com", Password: authtest.Password}
	b.Run("passkey", func(b *testing.B) {
		env, by := start(b)
		key := authenticator.New(origin)
		begun, err := env.BeginPasskey(b.Context(), auth.BeginPasskeyParams{Caller: by})
		must(b, err)
		created, err := key.Create(begun.PublicKey)
		must(b, err)
		_, err = env.AddPasskey(b.Context(), auth.AddPasskeyParams{Caller: by, Credential: created})
		must(b, err)
		for b.Loop() {
			begun, err := env.BeginPasskeySignIn(b.Context())
			must(b, err)
			used, err := key.Get(begun.PublicKey) // the work of the client, too
			must(b, err)
			_, err = env.FinishPasskeySignIn(b.Context(), auth.FinishPasskeySignInParams{RequestID: begun.RequestID, Credential: used})
			must(b, err)
			env.Clock.Advance(time.Minute)
		}
	})
	b.Run("password", func(b *testing.B) {
		env, _ := start(b)
		for b.Loop() {
			_, err := env.Login(b.Context(), login)
			must(b, err)
			env.Clock.Advance(time.Minute)
		}
	})
	b.Run("password and code", func(b *testing.B) {
		env, by := start(b)
		setup, err := env.SetupTOTP(b.Context(), auth.SetupTOTPParams{Caller: by})
		must(b, err)
		code := func() string {
			c, err := totp.GenerateCode(setup.Secret, env.Clock.Now())
			must(b, err)
			return c
		}
		_, err = env.EnableTOTP(b.Context(), auth.EnableTOTPParams{Caller: by, TOTPCode: code()})
		must(b, err)
		for b.Loop() {
			env.Clock.Advance(time.Minute)
			p := login
			p.TOTPCode = code()
			_, err := env.Login(b.Context(), p)
			must(b, err)
		}
	})
}
