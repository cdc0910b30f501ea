package auth

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"io/fs"
	"path"
	"strings"
	"sync"
	texttemplate "text/template"
	"time"
	"unicode"

	"golang.org/x/text/language"

	"github.com/authmount/auth/internal/visible"
	"github.com/authmount/auth/internal/webpage"
	"github.com/authmount/auth/store"
)

//go:embed templates
var builtin embed.FS

// layered looks a template up among the application's own, then the built-in.
func layered(own fs.FS) webpage.Layers {
	in, err := fs.Sub(builtin, "templates")
	if err != nil {
		panic(err) // a constant
	}
	return webpage.Layers{Own: own, Builtin: in}
}

// preferredLocale is what the user chose (user_metadata.locale), else what the
// browser asks for.
func preferredLocale(ctx context.Context, u User) string {
	if own, ok := u.UserMetadata["locale"].(string); ok && len(own) < 64 {
		if _, err := language.Parse(own); err == nil {
			return own
		}
	}
	accept, _ := ctx.Value(languageKey{}).(string)
	return accept
}

// textOnly tells whether messages of a kind go to telephones.
func textOnly(k Kind) bool { return k == KindPhoneCode || k == KindTestSMS }

// mailTemplates are the parsed templates by kind and locale.
type mailTemplates struct {
	app   func() string
	texts func() map[string]string // Settings.Texts; nil: none
	look  func() mailLook          // nil: that of no application
	host  string
	langs *webpage.Languages
	text  map[string]*texttemplate.Template // "kind.locale"
	html  map[string]*htmltemplate.Template
}

// parseMails parses everything at the start, so that a mistake in an override
// is found by New and not by a reader. A locale may lack a kind; the default
// must have all.
func parseMails(o MailOptions) (*mailTemplates, error) {
	l := layered(o.Templates)
	langs, err := webpage.FindLanguages(l, "mail", "layout", "html", o.Locale)
	if err != nil {
		return nil, fmt.Errorf("WithMail: %w", err)
	}
	m := &mailTemplates{app: func() string { return printable(o.AppName) }, host: o.host, langs: langs, text: map[string]*texttemplate.Template{}, html: map[string]*htmltemplate.Template{}}
	if o.Templates != nil || o.Locale != builtinLocale {
		return m, m.parse(l, o.Locale)
	}
	shared, err := builtinMails()
	if err == nil {
		m.text, m.html = shared.text, shared.html
	}
	return m, err
}

// builtinLocale is the default language of those who name none.
const builtinLocale = "en"

// builtinMails parses the built-in templates once for all, which takes a tenth of a
// second: templates are not changed once they are parsed.
var builtinMails = sync.OnceValues(func() (*mailTemplates, error) {
	l := layered(nil)
	langs, err := webpage.FindLanguages(l, "mail", "layout", "html", builtinLocale)
	if err != nil {
		return nil, err
	}
	m := &mailTemplates{app: func() string { return "" }, langs: langs, text: map[string]*texttemplate.Template{}, html: map[string]*htmltemplate.Template{}}
	return m, m.parse(l, builtinLocale)
})

// parse fills in the templates of every language.
func (m *mailTemplates) parse(l webpage.Layers, locale string) error {
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
			if _, err := m.render(outgoing{Kind: k, Locale: loc, To: "a@example.com", Link: "https://example.com"}); err != nil {
				return fmt.Errorf("template %s: %w", name, err)
			}
		}
	}
	return nil
}

// mailData is what templates see.
type mailData struct {
	App        string
	Name       string // of the reader; empty if unknown or unfit to print
	Link       string
	Code       string // text messages, and beside links
	Host       string // of the base URL, for WebOTP
	Minutes    int    // how long the link lives
	Hours      int    // the same, 0 if less than two
	Days       int    // the same, 0 if less than two
	To         string
	NewAddress string
	Provider   string // the name of an outside service
	IP         string
	Device     string // of whoever asked, as people call it; empty if unknown
	Time       string // when it was asked for or happened
	Subject    string
	Look       mailLook
	Lead       string // lines of the operators' own above the rest; mostly empty
	Footer     string // and below

	CodeMinutes int // how long a code beside a link lives
}

// mailLook is how mails look: as the sign-in pages of the application do, if it has them.
type mailLook struct {
	webpage.Palette
	Logo string // an https address; empty: none
}

// builtinColors are those of mails of no application's look.
var builtinColors = webpage.Palette{Light: "#1f4fd8", OnLight: "#ffffff", Dark: "#8ab4ff", OnDark: "#0b1a33"}

// mailLook is the look of the pages, as far as mails can have it.
func (a *Auth) mailLook() mailLook {
	look := a.look()
	return mailLook{look.Palette(), look.MailLogo(a.cfg.baseURL)}
}

// looks is how a message looks.
func (m *mailTemplates) looks() mailLook {
	var l mailLook
	if m.look != nil {
		l = m.look()
	}
	if l.Palette == (webpage.Palette{}) {
		l.Palette = builtinColors
	}
	return l
}

// render makes the message in the reader's language.
func (m *mailTemplates) render(o outgoing) (Message, error) {
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
		App: m.app(), Name: safeName(o.Name), Link: o.Link, Code: o.Code, Host: m.host, Minutes: minutes, To: o.To,
		NewAddress: printable(o.NewAddress), Provider: o.Provider, IP: o.IP, Device: o.Device, Time: o.At.UTC().Format("2006-01-02 15:04 UTC"), CodeMinutes: int(mailCodeLife / time.Minute),
	}
	if minutes >= 120 {
		d.Hours = minutes / 60
		if d.Hours >= 48 {
			d.Days = d.Hours / 24
		}
	}
	d.Look = m.looks()
	d.Lead, d.Footer = m.own(string(o.Kind)+".intro", loc), m.own("footer", loc)
	var subject, body, rich bytes.Buffer
	if o.channel() == ChannelSMS {
		if err := text.Execute(&body, d); err != nil {
			return Message{}, err
		}
		return Message{Kind: o.Kind, Channel: ChannelSMS, To: o.To, Text: strings.TrimSpace(body.String()), Code: o.Code, Locale: loc}, nil
	}
	if err := text.ExecuteTemplate(&subject, "subject", d); err != nil {
		return Message{}, err
	}
	d.Subject = printable(cmp.Or(m.own(string(o.Kind)+".subject", loc), subject.String()))
	if err := text.Execute(&body, d); err != nil {
		return Message{}, err
	}
	if err := html.Execute(&rich, d); err != nil {
		return Message{}, err
	}
	return Message{
		Kind: o.Kind, Channel: ChannelEmail, To: o.To, Subject: d.Subject,
		Text: strings.TrimSpace(d.Lead+"\n\n"+strings.TrimSpace(body.String())+"\n\n"+d.Footer) + "\n", HTML: rich.String(), Link: o.Link, Code: o.Code, Locale: loc,
	}, nil
}

// printable keeps one line of visible text: no line breaks that could start a
// header, no control or formatting characters that could disguise.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r):
			return ' '
		case !visible.Rune(r) || r == unicode.ReplacementChar:
			return -1
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// safeName leaves out a name that is no name: whoever signs up with a stranger's
// address chooses the name that the stranger reads, and must not be able to put
// a message or a link there.
func safeName(s string) string {
	s = printable(s)
	if len([]rune(s)) > 60 || strings.ContainsAny(s, "/\\@:<>[](){}%$=&#!?\"") || strings.Contains(strings.ToLower(s), "www") {
		return ""
	}
	dotted := plainDots(s)
	for i := 0; i+2 < len(dotted); i++ { // "evil.com": mail clients make links of it
		if dotted[i] == '.' && dotted[i+1] != ' ' && i > 0 && dotted[i-1] != ' ' {
			return ""
		}
	}
	return s
}
