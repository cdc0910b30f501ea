package pages

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/authmount/auth"
)

// View is the data of all templates. Variables that a page does not use are zero.
// Templates also have functions:
//
//	{{t "sign_in.heading" "brand" .Brand}}
//	{{template "field" (field . "email" "label" (t "label.email") "type" "email" "autocomplete" "username" "required" "yes")}}
//
// t returns a text in the visitor's language, with values for its placeholders in braces.
// field returns a field of the page's form by its name, for the template "field" of
// parts.html, with the entered value and its error. passkey returns a form that uses
// ("get") or creates a passkey, for the template "passkey":
//
//	{{template "passkey" (passkey "get" .Action (t "passkey.use"))}}
type View struct {
	// Every page
	Page     string       // name of its template, without ".html"
	Locale   string       // the language: "en"
	Dir      string       // its direction: "ltr" or "rtl"
	Brand    string       // Options.Brand
	Logo     template.URL // Options.Logo
	Home     string       // Options.Home
	Prefix   string       // Options.Prefix
	CSS      template.CSS // the style sheet that the policy allows
	Action   string       // target of the page's form
	Query    string       // "?return_to=…" for links that keep the visitor's target, or ""
	Briefly  string       // Query with "remember=false", for links to sign-in methods if the browser should not stay signed in
	SignedIn bool         // whether to show "Sign out"
	Acting   string       // the user as whom an operator acts: "Sign out" stops it, and there are no other forms
	Wide     bool         // the account page
	Next     template.URL // leaving: the URL to which the browser is forwarded
	Settings auth.PublicSettings
	Script   string // the script for passkeys, which the policy allows; "" if the page has none
	Signals  string // for the script: what it reports to the browser about passkeys

	// Errors and notices
	Failed   bool     // the page shows an error
	Problem  string   // text of an error that belongs to no field
	Reasons  []string // details of the error
	Notice   string   // text about a completed action
	NewCodes string   // page to create recovery codes, if the notice is about those that are left

	// sign_in, sign_up, send_code
	LoginLabel string     // key of the label: label.email or label.email_or_phone
	LoginType  string     // "email" or "text"
	Remember   bool       // "Keep me signed in" is checked
	Again      bool       // the visitor has to sign in again
	Providers  []Provider // account: also linked ones that are no longer offered
	OtherWays  bool       // there are methods other than a password
	MinLength  int        // minimum length of passwords

	Message   string // check_mail: key of the text about the sent mail
	Channel   string // send_code, enter_code: "mail", "phone" or, for a new email address, "change"
	Address   string // enter_code: the recipient of the code
	SendAgain string // enter_code: the page that sends another one

	ActAs   string // act: the user as whom an operator is about to act
	ActCode string // act: the code for the form

	PasskeySignUp string   // sign_in, sign_up: the page that creates an account with a passkey, or ""
	NewPasskey    bool     // send_code: a passkey will be created after the sign-in
	UsePasskey    bool     // second_factor, factor: a passkey can be used
	NoApp         bool     // second_factor, factor: there is no authenticator app
	PasskeyDue    bool     // second_factor: only a passkey continues, and the account has no recovery codes
	NoCode        bool     // second_factor: there are no codes, only a passkey
	Recovery      bool     // second_factor: asks for a recovery code
	TrustDays     int      // second_factor: days for which the device can be trusted; 0: no checkbox
	Trust         bool     // second_factor: the checkbox is checked
	Forced        bool     // enrol: a second factor is required
	ForPage       bool     // enrol: the page that the visitor wants to open requires one
	Setup         *Setup   // enrol: the QR code; nil before the setup
	RecoveryCodes []string // recovery_codes
	ContinueTo    string   // recovery_codes, enter_code after a sign-up, passkey: the next page
	FirstPasskey  bool     // passkey: the account was just created to have one

	// account and the pages below
	User      User
	Username  string // password: for password managers
	Devices   []Device
	Passkeys  []Passkey
	Deletable bool
	Waits     bool   // permissions of an operator wait for the user to accept them
	Withheld  string // names of the user's roles that wait for the second factor, or ""
	CodesLeft string // account, factor: text about the recovery codes that are left, or ""
	FewCodes  bool   // account, factor: only few are left
	Provider  string // leaving: the provider's label

	values  map[string]string   // entered values by field
	errors  map[string]string   // errors by field
	reasons map[string][]string // details of errors by field
	focus   string              // the field with the focus
}

// User is the signed-in user.
type User struct {
	Email         string
	EmailVerified bool
	Phone         string
	FullName      string
	MFAEnabled    bool
}

// Provider is an identity provider.
type Provider struct {
	Name   string // in paths
	Label  string // shown to visitors
	Linked bool   // account: linked to this account
	Email  string // account: email address at the provider
}

// Setup is the data for an authenticator app.
type Setup struct {
	Secret string       // base32
	Spaced string       // the secret in groups, for typing
	QRCode template.URL // an image as data URI
}

// Device is a session.
type Device struct {
	ID         string
	Name       string // "Firefox on Linux", or that an operator acts as the user
	IP         string
	LastActive string // in the visitor's language
	Current    bool   // the device of this request
}

// Passkey is a passkey of the account.
type Passkey struct {
	ID           string
	Name         string
	Created      string // in the visitor's language
	LastUsed     string // likewise; "" if it was never used
	Synced       bool   // it may be on several devices
	SecondFactor bool   // it is a second factor
}

// Field is a field of a form.
type Field struct {
	Name, Label, Type, Value, Hint string
	Autocomplete, InputMode        string
	MinLength, MaxLength           int
	Required, Focus                bool
	Error                          string
	Reasons                        []string
	DescribedBy                    string // ids of its error and its hint
}

// newField is the template function "field".
func newField(v *View, name string, pairs ...any) (Field, error) {
	f := Field{Name: name, Type: "text", Value: v.values[name], Error: v.errors[name], Reasons: v.reasons[name], Focus: v.focus == name}
	if len(pairs)%2 != 0 {
		return f, fmt.Errorf("field %q: a property without a value", name)
	}
	var required string
	texts := map[any]*string{"label": &f.Label, "type": &f.Type, "autocomplete": &f.Autocomplete, "inputmode": &f.InputMode, "hint": &f.Hint, "required": &required}
	numbers := map[any]*int{"minlength": &f.MinLength, "maxlength": &f.MaxLength}
	for i := 0; i < len(pairs); i += 2 {
		switch text, number := texts[pairs[i]], numbers[pairs[i]]; {
		case text != nil:
			*text, _ = pairs[i+1].(string)
		case number != nil:
			*number, _ = pairs[i+1].(int)
		default:
			return f, fmt.Errorf("field %q: there is no property %v", name, pairs[i])
		}
	}
	f.Required = required != ""
	if f.Type == "password" {
		f.Value = ""
	}
	var ids []string
	if f.Error != "" {
		ids = append(ids, name+"-error")
	}
	if f.Hint != "" {
		ids = append(ids, name+"-hint")
	}
	f.DescribedBy = strings.Join(ids, " ")
	return f, nil
}

// usualName returns the usual label of a provider.
func usualName(provider string) string {
	switch provider {
	case "github":
		return "GitHub"
	case "gitlab":
		return "GitLab"
	case "linkedin":
		return "LinkedIn"
	case "line":
		return "LINE"
	case "twitter":
		return "X"
	case "":
		return ""
	}
	return strings.ToUpper(provider[:1]) + provider[1:]
}

func (p *Pages) label(provider string) string {
	return cmp.Or(p.labels[provider], usualName(provider))
}

// providers returns the identity providers, with the identities of an account.
func (p *Pages) providers(on []string, linked []auth.Identity) []Provider {
	var list []Provider
	for _, name := range on {
		list = append(list, Provider{Name: name, Label: p.label(name)})
	}
	for _, id := range linked {
		i := slices.IndexFunc(list, func(o Provider) bool { return o.Name == id.Provider })
		if i < 0 {
			i, list = len(list), append(list, Provider{Name: id.Provider, Label: p.label(id.Provider)})
		}
		list[i].Linked, list[i].Email = true, id.Email
	}
	return list
}

// sample has something of everything, to try templates with.
func sample() *View {
	const address = "ada@example.com"
	return &View{
		Action: "/", Query: "?return_to=%2F", Briefly: "?remember=false", SignedIn: true, Acting: address, Wide: true, Next: "/", Problem: "-", Reasons: []string{"-"}, Notice: "-", NewCodes: "/",
		Settings: auth.PublicSettings{Enabled: true, SignupEnabled: true, Methods: auth.EnabledMethods{Password: true, MagicLink: true, PhoneOTP: true, OAuth: true, TOTP: true, Passkey: true}}, Script: "/", Signals: "{}",
		LoginLabel: "label.email", LoginType: "email", Providers: []Provider{{Name: "google", Label: "Google", Linked: true, Email: address}}, OtherWays: true, Remember: true, Again: true,
		MinLength: 8, Message: "check_mail.forgot", Channel: "mail", Address: address, SendAgain: "/",
		PasskeySignUp: "/", NewPasskey: true, UsePasskey: true, NoApp: true, NoCode: true, PasskeyDue: true, FirstPasskey: true, Passkeys: []Passkey{{ID: "1", Name: "-", Created: "-", LastUsed: "-", Synced: true, SecondFactor: true}, {ID: "2", Name: "-", Created: "-"}},
		Recovery: true, TrustDays: 1, Trust: true, Forced: true, ForPage: true, Setup: &Setup{Secret: "A", Spaced: "A", QRCode: "data:,"},
		RecoveryCodes: []string{"a"}, ContinueTo: "/", User: User{Email: address, Phone: "+15550100", FullName: "Ada", MFAEnabled: true},
		Username: address, Devices: []Device{{ID: "1", Name: "-", Current: true}, {ID: "2", Name: "-", IP: "192.0.2.1"}}, Deletable: true, Waits: true, Withheld: "editor", CodesLeft: "-", FewCodes: true, Provider: "Google", ActAs: address, ActCode: "a",
		values: map[string]string{}, errors: map[string]string{"email": "-", "code": "-", "password": "-"}, reasons: map[string][]string{"password": {"-"}},
	}
}
