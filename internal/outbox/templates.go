package outbox

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io/fs"
	"path"
	"strings"
	texttemplate "text/template"
	"time"

	"github.com/authmount/auth/internal/visible"
	"github.com/authmount/auth/internal/webpage"
	"github.com/authmount/auth/store"
)

// textOnly reports whether messages of a kind are SMS.
func textOnly(k store.Kind) bool { return k == store.KindPhoneCode || k == store.KindTestSMS }

// Templates are the parsed templates by kind and locale. They are immutable.
type Templates struct {
	langs *webpage.Languages
	text  map[string]*texttemplate.Template // "kind.locale"
	html  map[string]*htmltemplate.Template
}

// Service describes the service that sends messages.
type Service struct {
	App      func() string            // the application's name
	Host     string                   // host of the base URL
	Texts    func() map[string]string // Settings.Texts; nil: none
	Look     func() Look              // nil: default colours
	CodeLife time.Duration            // lifetime of a code next to a link
}

// ParseTemplates parses the templates in the folder mail of l and renders each with s, so
// that New reports a mistake in an override. A locale may lack a kind; the default locale
// must have all kinds.
func ParseTemplates(l webpage.Layers, locale string, s Service) (*Templates, error) {
	langs, err := webpage.FindLanguages(l, "mail", "layout", "html", locale)
	if err != nil {
		return nil, fmt.Errorf("WithMail: %w", err)
	}
	m := &Templates{langs: langs, text: map[string]*texttemplate.Template{}, html: map[string]*htmltemplate.Template{}}
	return m, m.parse(l, locale, s)
}

// parse parses the templates of every language.
func (m *Templates) parse(l webpage.Layers, locale string, s Service) error {
	for _, loc := range m.langs.Names {
		layout, err := l.Read("mail/layout." + loc + ".html")
		if err != nil {
			return err
		}
		for _, k := range store.Kinds() {
			name := string(k) + "." + loc
			text, err := l.Read("mail/" + name + ".txt")
			if errors.Is(err, fs.ErrNotExist) && loc != locale {
				continue
			}
			if err != nil {
				return fmt.Errorf("template: %w", err)
			}
			if m.text[name], err = texttemplate.New(name).Option("missingkey=error").Parse(string(text)); err != nil {
				return fmt.Errorf("template: %w", err)
			}
			if textOnly(k) {
				continue
			}
			html, err := l.Read("mail/" + name + ".html")
			if err != nil {
				return fmt.Errorf("template: %w", err)
			}
			if m.text[name].Lookup("subject") == nil {
				return fmt.Errorf(`template %s.txt defines no "subject"`, path.Join("mail", name))
			}
			if m.html[name], err = htmltemplate.New("layout").Option("missingkey=error").Parse(string(layout)); err == nil {
				_, err = m.html[name].Parse(string(html))
			}
			if err != nil {
				return fmt.Errorf("template %s.html: %w", name, err)
			}
			if _, err := m.render(Outgoing{Kind: k, Locale: loc, To: "a@example.com", Link: "https://example.com"}, s); err != nil {
				return fmt.Errorf("template %s: %w", name, err)
			}
		}
	}
	return nil
}

// mailData is the data of templates.
type mailData struct {
	App        string
	Name       string // of the recipient; empty if unknown or unsafe (SafeName)
	Link       string
	Code       string // in SMS, and next to links
	Host       string // host of the base URL, for WebOTP
	Minutes    int    // lifetime of the link
	Hours      int    // the same in hours, 0 if less than two
	Days       int    // the same in days, 0 if less than two
	To         string
	NewAddress string
	Provider   string // the name of a provider
	Roles      string // that the recipient is asked to accept; empty: none, or none with a safe name
	By         string // the email address of the operator who asks for it; may be empty
	IP         string
	Device     string // the browser and system of the request, in words; empty if unknown
	Time       string // of the request or event
	Subject    string
	Look       Look
	Lead       string // lines of the operators above the text; usually empty
	Footer     string // lines of the operators below the text

	CodeMinutes int // lifetime of a code next to a link
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

// render renders a message in the recipient's language.
func (m *Templates) render(o Outgoing, s Service) (Message, error) {
	loc := m.langs.Pick(o.Locale)
	if m.text[string(o.Kind)+"."+loc] == nil {
		loc = m.langs.Names[0]
	}
	name := string(o.Kind) + "." + loc
	text, html := m.text[name], m.html[name]
	if text == nil {
		return Message{}, fmt.Errorf("no template for %s", o.Kind)
	}
	minutes := int(o.ExpiresIn / time.Minute)
	d := mailData{
		App: s.App(), Name: SafeName(o.Name), Link: o.Link, Code: o.Code, Host: s.Host, Minutes: minutes, To: o.To,
		NewAddress: visible.Line(o.NewAddress), By: visible.Line(o.By), Provider: o.Provider, IP: o.IP, Device: o.Device, Time: o.At.UTC().Format("2006-01-02 15:04 UTC"), CodeMinutes: int(s.CodeLife / time.Minute),
	}
	var roles []string
	for _, r := range o.Roles { // an application may name them as it likes
		if r = SafeName(r); r != "" {
			roles = append(roles, r)
		}
	}
	d.Roles = strings.Join(roles, ", ")
	if minutes >= 120 {
		d.Hours = minutes / 60
		if d.Hours >= 48 {
			d.Days = d.Hours / 24
		}
	}
	d.Look = s.look()
	d.Lead, d.Footer = s.operatorText(string(o.Kind)+".intro", loc), s.operatorText("footer", loc)
	var subject, body, rich bytes.Buffer
	if o.Via() == store.ChannelSMS {
		if err := text.Execute(&body, d); err != nil {
			return Message{}, err
		}
		return Message{Kind: o.Kind, Channel: store.ChannelSMS, To: o.To, Text: strings.TrimSpace(body.String()), Code: o.Code, Locale: loc}, nil
	}
	if err := text.ExecuteTemplate(&subject, "subject", d); err != nil {
		return Message{}, err
	}
	d.Subject = visible.Line(cmp.Or(s.operatorText(string(o.Kind)+".subject", loc), subject.String()))
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
