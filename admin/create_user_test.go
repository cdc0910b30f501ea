package admin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/host"
)

// An account that an operator creates is announced to its address, unless another message
// is sent there; an import and code announce nothing.
func TestCreatedAccountIsAnnounced(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store, auth.WithSecretKeys(auth.SecretKey{Key: "sk_test_of_the_service_01", Scopes: []string{"*"}}))
		owner := o.operator("owner@example.com", "*")
		key := program(o.keyOf(owner.User, "*"))
		o.do(owner, "POST /users", `{"email":"new@example.com","full_name":"Nina"}`).want(201)
		o.do(owner, "POST /users", `{"email":"verified@example.com","email_verified":true,"full_name":"Vera"}`).want(201)
		o.do(key, "POST /users", `{"email":"key@example.com"}`).want(201)
		o.do(owner, "POST /users", `{"email":"invited@example.com","send":"invite"}`).want(201)
		o.do(owner, "POST /users", `{"email":"asked@example.com","send":"verify"}`).want(201)
		o.do(owner, "POST /users", `{"phone":"+4930123456","phone_verified":true}`).want(201)
		o.do(owner, "POST /users", `{"email":"new@example.com"}`).want(409, auth.CodeUserAlreadyExists)
		if _, err := o.adm.CreateUser(t.Context(), admin.System("setup"), admin.CreateUserParams{Email: "code@example.com"}); err != nil {
			t.Fatal(err)
		}
		for i := range 55 { // more than the budget of a key: the service's own code creates its users
			o.do(bearing("sk_test_of_the_service_01"), "POST /users", fmt.Sprintf(`{"email":"service%d@example.com"}`, i)).want(201)
		}
		o.imports(owner, "", `{"email":"imported@example.com"}`)
		ctx := t.Context()
		host.Of(o).WaitForMessages(ctx)
		var got []string
		for _, m := range o.Inbox.Messages() {
			if strings.HasPrefix(m.To, "owner@") {
				continue
			}
			got = append(got, string(m.Kind)+" "+m.To)
			if m.Kind == auth.KindAccountCreated && strings.Contains(m.Text, "Nina") || m.To == "verified@example.com" && !strings.Contains(m.Text, "Vera") {
				t.Errorf("a name belongs into messages to verified addresses only: %s", m.Text)
			}
		}
		slices.Sort(got)
		if want := []string{"account_created key@example.com", "account_created new@example.com", "account_created verified@example.com", "verify_email asked@example.com", "welcome invited@example.com"}; !slices.Equal(got, want) {
			t.Errorf("sent %v", got)
		}
	})
}

// The language that an operator chooses for an account is that of its messages.
func TestCreatedAccountHasALanguage(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.operator("owner@example.com", "*")
		made := o.do(owner, "POST /users", `{"email":"ada@example.com","locale":"de","user_metadata":{"plan":"pro"},"send":"invite"}`, "Accept-Language: fr").want(201)
		if m := made.body["user_metadata"].(map[string]any); m["locale"] != "de" || m["plan"] != "pro" {
			t.Errorf("stored %v", m)
		}
		if m := o.Mail(t, "ada@example.com", auth.KindWelcome); m.Locale != "de" {
			t.Errorf("sent in %s: %s", m.Locale, m.Subject)
		}
		o.do(owner, "POST /users", `{"email":"bob@example.com","locale":"x y"}`).want(422, auth.CodeValidationFailed)
		o.do(owner, "POST /users", `{"email":"bob@example.com","locale":"de","user_metadata":{"locale":"fr"}}`).want(422, auth.CodeValidationFailed)
	})
}

// The link of an account that an operator created does not ask its reader whether they
// created it, with and without an initial password. A later link that the person asked for
// does not speak of operators.
func TestVerificationOfCreatedAccountSaysWhoCreatedIt(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		owner := o.operator("owner@example.com", "*")
		for email, password := range map[string]string{"bare@example.com": "", "given@example.com": "a phrase of four words"} {
			o.do(owner, "POST /users", fmt.Sprintf(`{"email":%q,"password":%q,"send":"verify"}`, email, password)).want(201)
			b := o.browser()
			b.open(o.Mail(t, email, auth.KindVerifyEmail).Link)
			b.shows(200, "Is this account for you?")
			if strings.Contains(b.body, "Did you create") || strings.Contains(b.body, "this was me") {
				t.Errorf("%s: the page asks who created the account: %s", email, b.body)
			}
			if password == "" {
				b.press()
			} else {
				b.shows(200, "Password you were given")
				b.press("password", password)
			}
			b.shows(200, "")
			if u := o.byEmail(email); !u.EmailVerified() {
				t.Errorf("%s is not verified", email)
			}
		}
		if _, err := o.SignUp(t.Context(), auth.SignUpParams{Email: "self@example.com", Password: password}); err != nil {
			t.Fatal(err)
		}
		b := o.browser()
		b.open(o.Mail(t, "self@example.com", auth.KindVerifyEmail).Link)
		b.shows(200, "Did you create this account?")
	})
}
