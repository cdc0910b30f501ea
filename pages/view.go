package pages

import (
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/authmount/auth"
)

// View is what templates see: every variable of every template. What a page has no
// use for is at zero. In templates there are two functions besides:
//
//	{{t "sign_in.heading" "brand" .Brand}}
//	{{template "field" (field . "email" "label" (t "label.email") "type" "email" "autocomplete" "username" "required" "yes")}}
//
// t is a text in the visitor's language, with values for what is in braces in it.
// field describes a field of the page's form, by its name, for the template
// "field" of parts.html: its value as it was entered, and what is wrong with it,
// come with it.
type View struct {
	// Every page
	Page     string       // name of its template, without ".html"
	Locale   string       // the language: "en"
	Brand    string       // Options.Brand
	Logo     template.URL // Options.Logo
	Home     string       // Options.Home
	Prefix   string       // Options.Prefix
	CSS      template.CSS // the one style sheet that the policy lets through
	Action   string       // where the form of the page posts to
	Query    string       // "?return_to=…" for links to pages that lead on to the same place, or ""
	Briefly  string       // Query and "remember=false", for links to ways to sign in that the browser is to forget
	SignedIn bool         // whether to show the way to sign out
	Wide     bool         // the account
	Next     template.URL // leaving: where the browser goes on to by itself
	Settings auth.PublicSettings

	// What went wrong, or well
	Failed  bool     // something went wrong
	Problem string   // what, if it is about no field
	Reasons []string // more of it
	Notice  string   // what has just been done

	// sign_in, sign_up, send_code
	LoginLabel string     // name of the label's text: label.email, or label.email_or_phone
	LoginType  string     // "email" or "text"
	Remember   bool       // the box "keep me signed in" is ticked
	Again      bool       // it is to show once more that it is the same person
	Providers  []Provider // account: also those that are linked and not on offer any more
	OtherWays  bool       // there is another way than a password
	MinLength  int        // of passwords

	Message   string // check_mail: name of the text that says what was sent
	Channel   string // send_code, enter_code: "mail" or "phone"
	Address   string // enter_code: where the code went
	SendAgain string // enter_code: the page to ask for another one

	Recovery      bool     // second_factor: a recovery code is asked for
	TrustDays     int      // second_factor: for how many days the device can be trusted; 0: there is no such box
	Trust         bool     // second_factor: the box is ticked
	Forced        bool     // enrol: there is no way around it
	Setup         *Setup   // enrol: what to scan; nil before it has begun
	RecoveryCodes []string // recovery_codes
	ContinueTo    string   // recovery_codes: where to go on

	// account and the pages below
	User      User
	Username  string // password: for password managers
	Devices   []Device
	Deletable bool
	Provider  string // leaving: what people call it

	values  map[string]string   // what was entered
	errors  map[string]string   // what is wrong with it, by field
	reasons map[string][]string // more of it
	focus   string              // the field to begin with
}

// User is who is signed in.
type User struct {
	Email         string
	EmailVerified bool
	Phone         string
	FullName      string
	MFAEnabled    bool
}

// Provider is a way to sign in elsewhere.
type Provider struct {
	Name   string // in addresses
	Label  string // for people
	Linked bool   // account: to this one
	Email  string // account: the address that it has there
}

// Setup is what an authenticator app has to be told.
type Setup struct {
	Secret string       // base32
	Spaced string       // the same in groups, to type
	QRCode template.URL // an image, as data URI
}

// Device is a session.
type Device struct {
	ID         string
	Name       string // "Firefox on Linux"
	IP         string
	LastActive string // in the visitor's language
	Current    bool   // the one that asks
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

// newField is the function "field" of templates.
func newField(v *View, name string, pairs ...any) (Field, error) {
	f := Field{Name: name, Type: "text", Value: v.values[name], Error: v.errors[name], Reasons: v.reasons[name], Focus: v.focus == name}
	if len(pairs)%2 != 0 {
		return f, fmt.Errorf("field %q: a property without value", name)
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

// usualNames are what people call the providers that are built in.
func usualName(provider string) string {
	switch provider {
	case "github":
		return "GitHub"
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

// providers are the ways to sign in elsewhere, with the identities that somebody
// has there.
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
		Action: "/", Query: "?return_to=%2F", Briefly: "?remember=false", SignedIn: true, Wide: true, Next: "/", Problem: "-", Reasons: []string{"-"}, Notice: "-",
		Settings:   auth.PublicSettings{Enabled: true, SignupEnabled: true, Methods: auth.EnabledMethods{Password: true, MagicLink: true, PhoneOTP: true, OAuth: true, TOTP: true}},
		LoginLabel: "label.email", LoginType: "email", Providers: []Provider{{Name: "google", Label: "Google", Linked: true, Email: address}}, OtherWays: true, Remember: true, Again: true,
		MinLength: 8, Message: "check_mail.forgot", Channel: "mail", Address: address, SendAgain: "/",
		Recovery: true, TrustDays: 1, Trust: true, Forced: true, Setup: &Setup{Secret: "A", Spaced: "A", QRCode: "data:,"},
		RecoveryCodes: []string{"a"}, ContinueTo: "/", User: User{Email: address, Phone: "+15550100", FullName: "Ada", MFAEnabled: true},
		Username: address, Devices: []Device{{ID: "1", Name: "-", Current: true}, {ID: "2", Name: "-", IP: "192.0.2.1"}}, Deletable: true, Provider: "Google",
		values: map[string]string{}, errors: map[string]string{"email": "-", "code": "-", "password": "-"}, reasons: map[string][]string{"password": {"-"}},
	}
}
