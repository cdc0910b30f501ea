package service_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/keys"
	"github.com/authmount/auth/internal/testsecret"
	"github.com/authmount/auth/store"
)

// A rotation, from the first day of the new secret to the day on which the old one may be
// removed. The diagnosis counts the data that depends on the old one, and the count falls
// with use.
func TestRotationTellsWhatDepends(t *testing.T) {
	one, two, three := testsecret.Of("1"), testsecret.Of("2"), testsecret.Of("3")
	store, ctx, began := harness.NewStore(t), t.Context(), time.Now().UTC().Truncate(time.Second)
	var passed atomic.Int64
	now := func() time.Time { return began.Add(time.Duration(passed.Load())) }
	start := func(current []byte, previous ...[]byte) *auth.Auth {
		return harness.NewPlainOn(t, store, auth.WithSecret(current, previous...), auth.WithClock(now))
	}
	wants := func(a *auth.Auth, lost auth.SecretUses, secrets ...auth.SecretUses) auth.Rotation {
		t.Helper()
		r, err := a.Rotation(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.Secrets {
			r.Secrets[i].Messages = 0 // they come and go
		}
		r.Lost.Messages = 0
		if r.Lost != lost || fmt.Sprint(r.Secrets) != fmt.Sprint(secrets) {
			t.Errorf("%+v, want %+v and lost %+v", r, secrets, lost)
		}
		return r
	}
	const secret = "JBSWY3DPEHPK3PXP"
	none := auth.SecretUses{}
	a := start(one)
	if r := wants(a, none, none); !r.OldestRefresh.IsZero() {
		t.Errorf("nobody is signed in: %v", r.OldestRefresh)
	}
	var people []auth.User
	for _, email := range []string{"ada@example.com", "grace@example.com"} {
		u, err := a.ImportUser(ctx, auth.ImportUserParams{Email: email, EmailVerified: true, PasswordHash: harness.BcryptHash, TOTPSecret: secret})
		if err != nil {
			t.Fatal(err)
		}
		people = append(people, u)
	}
	login := func(a *auth.Auth, u auth.User) *auth.Tokens {
		t.Helper()
		passed.Add(int64(time.Minute))
		code, err := totp.GenerateCode(secret, now())
		if err != nil {
			t.Fatal(err)
		}
		tokens, err := a.Login(ctx, auth.LoginParams{Email: u.Email, Password: harness.GoodPassword, TOTPCode: code})
		if err != nil {
			t.Fatal(err)
		}
		return tokens
	}
	tokens := login(a, people[0])
	signedIn := now()
	if _, err := a.NewRecoveryCodes(ctx, auth.NewRecoveryCodesParams{Caller: auth.ByApplication(people[0].ID)}); err != nil {
		t.Fatal(err)
	}
	wants(a, none, auth.SecretUses{TOTPSecrets: 2, RecoveryCodes: 10})

	a = start(two, one)
	r := wants(a, none, none, auth.SecretUses{TOTPSecrets: 2, RecoveryCodes: 10})
	if !r.OldestRefresh.Equal(signedIn) {
		t.Errorf("oldest refresh token %v, want %v", r.OldestRefresh, signedIn)
	}
	rotatedAt := now()
	login(a, people[0]) // seals anew
	wants(a, none, auth.SecretUses{TOTPSecrets: 1}, auth.SecretUses{TOTPSecrets: 1, RecoveryCodes: 10})
	wants(start(two), auth.SecretUses{TOTPSecrets: 1, RecoveryCodes: 10}, auth.SecretUses{TOTPSecrets: 1}) // too early
	if _, err := a.NewRecoveryCodes(ctx, auth.NewRecoveryCodesParams{Caller: auth.ByApplication(people[0].ID)}); err != nil {
		t.Fatal(err)
	}
	login(a, people[1])
	if _, err := a.Refresh(ctx, auth.RefreshParams{RefreshToken: tokens.RefreshToken}); err != nil {
		t.Fatal(err)
	}
	r = wants(a, none, auth.SecretUses{TOTPSecrets: 2, RecoveryCodes: 10}, none)
	if !r.OldestRefresh.After(rotatedAt) {
		t.Errorf("oldest refresh token %v, from before %v", r.OldestRefresh, rotatedAt)
	}
	wants(start(two), none, auth.SecretUses{TOTPSecrets: 2, RecoveryCodes: 10}) // the old one may go
	wants(start(three, two, two), none, none, auth.SecretUses{TOTPSecrets: 2, RecoveryCodes: 10}, none)
}

// Messages that wait count under the secret that they were sealed under.
func TestRotationCountsMessages(t *testing.T) {
	st, ctx := harness.NewStore(t), t.Context()
	older, newer := testsecret.Of("1"), testsecret.Of("2")
	ring, err := keys.New(keys.Params{Secrets: [][]byte{older}})
	if err != nil {
		t.Fatal(err)
	}
	soon := time.Now().Add(time.Hour)
	c := store.Change{Now: time.Now(), By: auth.Authority{System: "test"}, Messages: []store.SealedMessage{{
		ID: "8e1f0c9a-6b0d-4f6e-9c55-0b1d6c3a2f10", Body: ring.SealMessage([]byte("{}"), nil), CreatedAt: time.Now(), NextAt: soon, ExpiresAt: soon,
	}}}
	user := auth.User{ID: "8e1f0c9a-6b0d-4f6e-9c55-0b1d6c3a2f11", CreatedAt: time.Now(), UpdatedAt: time.Now()}
	if _, err := st.CreateUser(ctx, store.CreateUser{Change: c, NewUser: store.NewUser{User: user}}); err != nil {
		t.Fatal(err)
	}
	r, err := harness.NewPlainOn(t, st, auth.WithSecret(newer, older)).Rotation(ctx)
	if err != nil || r.Secrets[0].Messages != 0 || r.Secrets[1].Messages != 1 || r.Lost.Messages != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestRotationNeedsItsStore(t *testing.T) {
	a := harness.NewPlainOn(t, harness.PlainStore{Store: harness.NewStore(t)})
	if _, err := a.Rotation(t.Context()); !errors.Is(err, auth.CodeInternal) || !strings.Contains(err.Error(), "AdminStore") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := harness.NewPlainOn(t, harness.NewStore(t)).Rotation(ctx); !errors.Is(err, auth.CodeUnavailable) {
		t.Error(err)
	}
}
