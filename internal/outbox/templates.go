package outbox

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io/fs"
	"slices"
	"strings"
	texttemplate "text/template"
	"time"

	"github.com/authmount/auth/internal/visible"
	"github.com/authmount/auth/internal/webpage"
	"github.com/authmount/auth/store"
)

// textOnly reports whether messages of a kind are SMS.
func textOnly(k store.Kind) bool { return k == store.KindPhoneCode || k == store.KindTestSMS }

// Templates are the parsed templates, and the texts of messages. They are immutable.
type Templates struct {
	langs *webpage.Languages
	lacks map[string]bool // "kind.language": the message has no texts in the language
	text  map[store.Kind]*texttemplate.Template
	html  map[store.Kind]*htmltemplate.Template
}

// Service describes the service that sends messages.
type Service struct {
	App      func() string            // the application's name
	Host     string                   // host of the base URL
	Texts    func() map[string]string // Settings.Texts; nil: none
	Look     func() Look              // nil: default colours
	CodeLife time.Duration            // lifetime of a code next to a link
}

// ParseTemplates parses the templates in the folder mail of l: layout.txt and layout.html
// for mails, sms.txt for text messages, and the application's own for single kinds. It
// renders each kind with s, so that New reports a mistake.
func ParseTemplates(l webpage.Layers, langs *webpage.Languages, s Service) (*Templates, error) {
	m := &Templates{langs: langs, lacks: map[string]bool{}, text: map[store.Kind]*texttemplate.Template{}, html: map[store.Kind]*htmltemplate.Template{}}
	for _, gap := range langs.Gaps {
		for _, key := range gap.Keys {
			kind, _, _ := strings.Cut(key, ".")
			m.lacks[kind+"."+gap.Language] = true
		}
	}
	s.Look = func() Look { return Look{Palette: builtinColors, Logo: "https://example.com/logo.png"} }
	for _, k := range store.Kinds() {
		if err := m.parse(l, k); err != nil {
			return nil, fmt.Errorf("template of %s: %w", k, err)
		}
		for _, o := range []Outgoing{{}, sample} {
			if o.Kind, o.Channel, o.To = k, store.ChannelEmail, "a@example.com"; textOnly(k) {
				o.Channel = store.ChannelSMS
			}
			if _, err := m.render(o, s); err != nil {
				return nil, fmt.Errorf("template of %s: %w", k, err)
			}
		}
		for _, lang := range langs.Names {
			if !textOnly(k) && langs.Texts(lang)[string(k)+".subject"] == "" {
				return nil, fmt.Errorf("languages/%s/mails.json: %s.subject is empty", lang, k)
			}
		}
	}
	return m, nil
}

// sample has something of everything, to try templates with.
var sample = Outgoing{
	Name: "Ada", Link: "https://example.com", Code: "123456", IP: "192.0.2.1", Device: "Firefox on Linux",
	NewAddress: "b@example.com", Provider: "google", Roles: []string{"support"}, By: "c@example.com", ExpiresIn: time.Hour,
}

// parse parses the templates of a kind: its own, or else those of all kinds, once.
func (m *Templates) parse(l webpage.Layers, k store.Kind) error {
	read := func(name, ext string) (store.Kind, string, error) {
		b, err := l.Read("mail/" + string(k) + ext)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return k, string(b), err
		}
		b, err = l.Read("mail/" + name + ext)
		return store.Kind(name), string(b), err
	}
	name := "layout"
	if textOnly(k) {
		name = "sms"
	}
	of, text, err := read(name, ".txt")
	if m.text[k] = m.text[of]; err == nil && m.text[k] == nil {
		m.text[k], err = texttemplate.New(string(of) + ".txt").Parse(text)
		m.text[of] = m.text[k]
	}
	if err != nil || textOnly(k) {
		return err
	}
	of, html, err := read(name, ".html")
	if m.html[k] = m.html[of]; err == nil && m.html[k] == nil {
		m.html[k], err = htmltemplate.New(string(of) + ".html").Parse(html)
		m.html[of] = m.html[k]
	}
	return err
}

// mailData is the data of templates: the values of a message, and its texts in the
// recipient's language.
type mailData struct {
	Kind       store.Kind
	Locale     string
	Dir        string // "ltr" or "rtl"
	App        string
	Name       string // of the recipient; empty if unknown or unsafe (SafeName)
	Link       string
	Code       string // in SMS, and next to links
	Host       string // host of the base URL, for WebOTP
	To         string
	NewAddress string
	Provider   string // the name of a provider
	Roles      string // that the recipient is asked to accept; empty: none, or none with a safe name
	given      bool   // an invitation gives them
	By         string // the email address of the operator who asks for it; may be empty
	IP         string
	Device     string // the browser and system of the request, in words; empty if unknown
	Time       string // of the request or event
	Look       Look

	Subject   string
	Heading   string // the subject without the operators' change
	Greeting  string
	Intro     string
	Details   []string // lines below Intro; usually none
	Button    string   // the label of Link
	Action    string   // the line above Link in the text
	Valid     string   // how long Link is valid
	CopyLink  string   // the label of Link as text
	EnterCode string   // the text before Code
	CodeValid string   // how long Code is valid
	Note      []string // paragraphs
	From      string   // the address of the request; may be empty
	Lead      string   // lines of the operators above the text; usually empty
	Footer    string   // lines of the operators below the text
}

// Look is the look of mails. It follows the application's sign-in pages, if there are
// any.
type Look struct {
	webpage.Palette
	Logo string // an https URL; empty: none
}

// builtinColors are the default colours of mails.
var builtinColors = webpage.Palette{Light: "#1f4fd8", OnLight: "#ffffff", Dark: "#8ab4ff", OnDark: "#0b1a33"}

// look returns the colours and logo of messages.
func (s Service) look() Look {
	var l Look
	if s.Look != nil {
		l = s.Look()
	}
	if l.Palette == (webpage.Palette{}) {
		l.Palette = builtinColors
	}
	return l
}

// render renders a message in the recipient's language. A message without all its texts
// in that language is in the default language, because it has one language.
func (m *Templates) render(o Outgoing, s Service) (Message, error) {
	loc := m.langs.Pick(o.Locale)
	if m.lacks[string(o.Kind)+"."+loc] || m.lacks["mail."+loc] && !textOnly(o.Kind) {
		loc = m.langs.Names[0]
	}
	text, html := m.text[o.Kind], m.html[o.Kind]
	if text == nil || html == nil && o.Via() != store.ChannelSMS {
		return Message{}, fmt.Errorf("no template for %s", o.Kind)
	}
	d := s.data(o, m.langs.Texts(loc))
	d.Locale, d.Dir = loc, webpage.Direction(loc)
	var body, rich bytes.Buffer
	if o.Via() == store.ChannelSMS {
		if err := text.Execute(&body, d); err != nil {
			return Message{}, err
		}
		return Message{Kind: o.Kind, Channel: store.ChannelSMS, To: o.To, Text: strings.TrimSpace(body.String()), Code: o.Code, Locale: loc}, nil
	}
	d.Lead, d.Footer = s.operatorText(string(o.Kind)+".intro", loc), s.operatorText("footer", loc)
	d.Subject = visible.Line(cmp.Or(s.operatorText(string(o.Kind)+".subject", loc), d.Heading))
	if err := text.Execute(&body, d); err != nil {
		return Message{}, err
	}
	if err := html.Execute(&rich, d); err != nil {
		return Message{}, err
	}
	return Message{
		Kind: o.Kind, Channel: store.ChannelEmail, To: o.To, Subject: d.Subject,
		Text: strings.TrimSpace(d.Lead+"\n\n"+strings.TrimSpace(body.String())+"\n\n"+d.Footer) + "\n", HTML: rich.String(), Link: o.Link, Code: o.Code, Locale: loc,
	}, nil
}

// data returns the values and texts of a message.
func (s Service) data(o Outgoing, t webpage.Texts) mailData {
	d := mailData{
		Kind: o.Kind, App: s.App(), Name: SafeName(o.Name), Link: o.Link, Code: o.Code, Host: s.Host, To: o.To,
		NewAddress: visible.Line(o.NewAddress), By: visible.Line(o.By), Provider: o.Provider, IP: o.IP, Device: o.Device, Time: o.At.UTC().Format("2006-01-02 15:04 UTC"), Look: s.look(),
	}
	if o.Kind == store.KindTakenOver || o.Kind == store.KindChangeEmail {
		d.Name = "" // a stranger may have chosen it
	}
	d.Roles = SafeRoles(o.Roles)
	if len(o.Roles) == 0 && len(o.Given) > 0 {
		d.Roles, d.given = SafeRoles(o.Given), true
	}
	minutes := int(o.ExpiresIn / time.Minute)
	values := []any{"app", d.App, "to", d.To, "new", d.NewAddress, "provider", d.Provider, "roles", d.Roles, "by", d.By, "ip", d.IP, "code", d.Code, "minutes", minutes}
	part := func(name string) string {
		for _, v := range d.variants() {
			if key := string(o.Kind) + "." + name + v; t[key] != "" {
				return t.Of(key, values...)
			}
		}
		return ""
	}
	d.Greeting = t.Of("mail.hello")
	if d.Name != "" {
		d.Greeting = t.Of("mail.hello_name", "name", d.Name)
	}
	d.Heading, d.Intro, d.Button, d.Note = part("subject"), part("intro"), part("button"), strings.Split(part("note"), "\n")
	d.Action = t.Of("mail.action", "button", d.Button)
	if o.Factor {
		d.Details = append(d.Details, t.Of("invitation.factor"))
	}
	if o.Kind == store.KindNewDevice {
		d.Details = append(d.Details, t.Of("mail.time", "time", d.Time))
		if d.Device != "" {
			d.Details = append(d.Details, t.Of("mail.device", "device", d.Device))
		}
		if d.IP != "" {
			d.Details = append(d.Details, t.Of("mail.ip", "ip", d.IP))
		}
	}
	switch {
	case minutes >= 48*60:
		d.Valid = t.Of("mail.valid_days", "n", minutes/60/24)
	case minutes >= 120:
		d.Valid = t.Of("mail.valid_hours", "n", minutes/60)
	default:
		d.Valid = t.Of("mail.valid_minutes", "n", minutes)
	}
	d.CopyLink, d.EnterCode = t.Of("mail.copy"), cmp.Or(part("code"), t.Of("mail.code"))
	d.CodeValid = t.Of("mail.code_valid", "n", int(s.CodeLife/time.Minute))
	if d.IP != "" && slices.Contains(fromNetwork, o.Kind) {
		d.From = cmp.Or(part("from"), t.Of("mail.requested_from", "ip", d.IP))
	}
	return d
}

// fromNetwork are the mails to the person who requested something, which name the client
// address of the request. Others could show one person's address to another person.
var fromNetwork = []store.Kind{
	store.KindAccountExists, store.KindEmailChangeRequested, store.KindMagicLink, store.KindManyFailedSignIns,
	store.KindPasswordChanged, store.KindResetPassword, store.KindWelcome,
}

// variants returns the endings of the keys of a message's texts, the best first.
func (d *mailData) variants() []string {
	var list []string
	switch {
	case d.Kind == store.KindInvitation && d.Roles != "" && d.given:
		list = append(list, "_given")
	case d.Kind == store.KindInvitation && d.Roles != "":
		if d.By != "" {
			list = append(list, "_role_by")
		}
		list = append(list, "_role")
	case (d.Kind == store.KindEmailChanged || d.Kind == store.KindPhoneChanged) && d.NewAddress == "":
		list = append(list, "_removed")
	case d.Kind == store.KindEmailChanged && d.NewAddress != d.To:
		list = append(list, "_moved")
	}
	if d.Link == "" {
		list = append(list, "_no_link")
	}
	return append(list, "")
}

// operatorText returns the operators' text of a name in a language, or "".
func (s Service) operatorText(name, locale string) string {
	if s.Texts == nil {
		return ""
	}
	texts := s.Texts()
	if own, ok := texts[name+"."+locale]; ok {
		return own
	}
	return texts[name]
}
