package takeover_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/store"
)

// importedSecret is the TOTP secret of imported users.
const importedSecret = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"

// migrated is an imported user with every method, who never signed in here.
type migrated struct {
	auth.User
	person   authtest.Person
	password string
}

// continues checks that a sign-in goes on to the second factor.
func continues(a *harness.Answer) string {
	a.T.Helper()
	return harness.DecodeAs[struct {
		MFAToken string `json:"mfa_token"`
	}](a.Want(403, auth.CodeMFARequired)).MFAToken
}

// Users come from another system with a password, a phone number, an identity and a second
// factor. All of it stays at the first reset, mailed link and sign-in at the provider, and
// when they get an ordinary role; and nobody gets mail that was not asked for.
func TestImportedUsersKeepTheirMethods(t *testing.T) {
	const number = 200
	w, idp := harness.NewProviderWorld(t, auth.WithRateLimits(auth.RateLimits{Off: true}))
	var users []*migrated
	var rows []auth.ImportUserParams
	for i := range number {
		m := &migrated{password: harness.GoodPassword}
		m.person = authtest.Person{Subject: fmt.Sprint("s", i), Email: fmt.Sprintf("u%d@example.com", i), EmailVerified: true}
		users = append(users, m)
		rows = append(rows, auth.ImportUserParams{
			Email: m.person.Email, EmailVerified: true, Phone: fmt.Sprintf("+49301%05d", 10000+i), PhoneVerified: true, PasswordHash: harness.BcryptHash,
			TOTPSecret: importedSecret, Identities: []auth.Identity{{Provider: "oidc", Subject: m.person.Subject}},
		})
	}
	_, err := w.ImportUsers(t.Context(), slices.Values(rows), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range users {
		if m.User, err = w.Store.User(t.Context(), store.ByEmail(m.person.Email)); err != nil {
			t.Fatal(err)
		}
	}
	if sent := w.Inbox.Messages(); len(sent) > 0 {
		t.Fatalf("%d messages were sent, such as %+v", len(sent), sent[0])
	}
	first := []func(m *migrated){
		func(m *migrated) {
			w.Do("POST", "/forgot-password", map[string]any{"email": m.person.Email}).Want(200)
			m.password = "another long password"
			w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken(m.person.Email, auth.KindResetPassword), "new_password": m.password}).Want(200)
		},
		func(m *migrated) {
			continues(w.Do("POST", "/magic-link/verify", map[string]any{"token": w.MagicLink(m.person.Email, nil)}))
		},
		func(m *migrated) { continues(w.NewVisitor(idp).SignIn("oidc", m.person, "")) },
		func(m *migrated) { w.Patch(m.ID, store.UserPatch{Roles: &[]string{"pro"}}) },
	}
	for i, m := range users[:80] {
		first[i%len(first)](m)
		u, err := w.Store.User(t.Context(), store.ByID(m.ID))
		if err != nil || !u.MFAEnabled || u.Phone != m.Phone || !u.PhoneVerified() || !u.EmailVerified() || len(u.Identities) != 1 {
			t.Fatalf("after %d: %+v, %v", i%len(first), u, err)
		}
		token := continues(w.PostLogin(m.person.Email, m.password))
		w.PostVerifyMFA(token, w.Code(importedSecret, 0)).Want(200)
		if i >= 4*len(first) {
			continue
		}
		continues(w.PostOTP(m.Phone, w.PhoneCode(m.Phone)))
		continues(w.NewVisitor(idp).SignIn("oidc", m.person, ""))
		continues(w.Do("POST", "/login", map[string]any{"phone": m.Phone, "password": m.password}))
	}
}

// Who forgets the password keeps the second factor and its recovery codes.
func TestResetKeepsTheSecondFactor(t *testing.T) {
	w := harness.NewWorld(t)
	e := w.Enrol(w.Member("ada@example.com").AccessToken)
	w.Do("POST", "/forgot-password", map[string]any{"email": "ada@example.com"}).Want(200)
	w.Do("POST", "/reset-password", map[string]any{"token": w.LinkToken("ada@example.com", auth.KindResetPassword), "new_password": "another long password"}).Want(200)
	w.PostVerifyMFA(continues(w.PostLogin("ada@example.com", "another long password")), w.Later(e.Secret)).Want(200)
	body := map[string]any{"mfa_token": continues(w.PostLogin("ada@example.com", "another long password")), "recovery_code": e.Recovery[0]}
	w.Do("POST", "/2fa/verify", body).Want(200)
}
