package outbox

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/authmount/auth/store"
)

func TestEveryMessageRenders(t *testing.T) {
	mails, err := templates()
	if err != nil {
		t.Fatal(err)
	}
	subjects := map[string]bool{}
	for _, k := range store.Kinds() {
		if k == store.KindPhoneCode || k == store.KindTestSMS {
			continue // SMS
		}
		for _, loc := range mails.langs.Names {
			m, err := mails.render(Outgoing{Kind: k, Locale: loc, To: "ada@example.com", Name: "Ada", Link: "https://auth.test/x?token=t&a=b", ExpiresIn: time.Hour, NewAddress: "new@example.com", IP: "192.0.2.1"}, testService("App"))
			if err != nil {
				t.Fatal(err)
			}
			// The requester of a change of address may be a stranger: the mail does not repeat the name that they chose.
			named := k != store.KindTakenOver && k != store.KindChangeEmail
			if m.Locale != loc || m.Subject == "" || strings.Contains(m.Text, "Ada") != named || !strings.Contains(m.HTML, `lang="`+loc+`"`) || strings.Contains(m.Text+m.HTML, "<no value>") {
				t.Errorf("%s.%s: %+v", k, loc, m)
			}
			if subjects[loc+m.Subject] {
				t.Errorf("%s.%s: subject %q twice", k, loc, m.Subject)
			}
			subjects[loc+m.Subject] = true
			notice := slices.Contains([]store.Kind{store.KindPasswordChanged, store.KindEmailChanged, store.KindMFAEnabled, store.KindMFADisabled, store.KindTakenOver, store.KindIdentityLinked, store.KindIdentityUnlinked, store.KindPhoneChanged, store.KindRecoveryCodeUsed, store.KindRecoveryCodesReplaced, store.KindManyFailedSignIns, store.KindAccountDeleted, store.KindImpersonated, store.KindAccountUnlocked, store.KindAccountCreated, store.KindTestMail}, k)
			if !notice && (!strings.Contains(m.Text, "https://auth.test/x?token=t&a=b") || !strings.Contains(m.HTML, `href="https://auth.test/x?token=t&amp;a=b"`)) {
				t.Errorf("%s.%s has no link", k, loc)
			}
		}
	}
}

// Injection: values from strangers create no header, markup or link.
func TestMessagesResistInjection(t *testing.T) {
	mails, err := templates()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"<script>alert(1)</script>", "Click https://evil.test/win", "evil.test/win", "Visit evil.com now", "www evil test", "Ada\r\nBcc: evil@example.com",
		"\u202egnp.exe", strings.Repeat("buy now ", 20), "Prize! Call +1 555", "a@evil.test", "&#60;b&#62;",
	} {
		m, err := mails.render(Outgoing{Kind: store.KindMagicLink, To: "ada@example.com", Name: name, Link: "https://auth.test/x", IP: "192.0.2.1"}, testService("App\r\nBcc: evil@example.com"))
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(m.Subject, "\r\n") || strings.Contains(m.HTML, "<script>") || strings.Contains(m.HTML, "<b>") ||
			strings.Contains(m.Text+m.HTML, "evil.test") || strings.Contains(m.Text+m.HTML, "evil.com") || strings.Contains(m.Text+m.HTML, "\u202e") {
			t.Errorf("%q: %q\n%s", name, m.Subject, m.Text)
		}
	}
	for _, name := range []string{"Ada Lovelace", "Anne-Marie O’Neill", "J. R. R. Tolkien", "李小龍", "Αλέξανδρος"} {
		if SafeName(name) != name {
			t.Errorf("%q became %q", name, SafeName(name))
		}
	}
}

func TestTemplateOverrides(t *testing.T) {
	own := fstest.MapFS{
		"languages/en/mails.json": {Data: []byte(`{"magic_link.subject": "Mine"}`)},
		"languages/it/mails.json": {Data: []byte(`{"mail.hello": "Ciao,", "mail.hello_name": "Ciao {name},", "magic_link.subject": "Il mio", "test_sms.intro": "Prova"}`)},
		"mail/magic_link.html":    {Data: []byte(`<html lang="{{.Locale}}" dir="{{.Dir}}">{{.Heading}}</html>`)},
		"mail/magic_link.txt":     {Data: []byte(`{{.Greeting}} {{.Link}}`)},
	}
	mails, err := parse("App", "en", own)
	if err != nil {
		t.Fatal(err)
	}
	for loc, want := range map[string]string{"en": "Mine", "fr-CA": "Votre lien de connexion à App", "de": "Dein Anmeldelink für App", "tlh": "Mine"} {
		m, err := mails.render(Outgoing{Kind: store.KindMagicLink, Locale: loc, To: "a@example.com", Link: "https://app.test/x"}, testService("App"))
		if err != nil || m.Subject != want || m.HTML != `<html lang="`+m.Locale+`" dir="ltr">`+want+`</html>` || !strings.HasSuffix(m.Text, ", https://app.test/x\n") {
			t.Errorf("%s: %+v, %v", loc, m, err)
		}
	}
	// A message that lacks a text falls back to the default language as a whole.
	for kind, want := range map[store.Kind]string{store.KindVerifyEmail: "en", store.KindMagicLink: "en", store.KindPhoneCode: "en", store.KindTestSMS: "it"} {
		o := Outgoing{Kind: kind, Locale: "it", To: "a@example.com"}
		if textOnly(kind) {
			o.Channel = store.ChannelSMS
		}
		if m, err := mails.render(o, testService("App")); err != nil || m.Locale != want || strings.Contains(m.Text+m.HTML, "Ciao") {
			t.Errorf("%s: %+v, %v", kind, m, err)
		}
	}
	for name, broken := range map[string]fstest.MapFS{
		"syntax":        {"mail/magic_link.txt": {Data: []byte(`{{.Link`)}},
		"no subject":    {"languages/en/mails.json": {Data: []byte(`{"magic_link.subject": ""}`)}},
		"unknown field": {"mail/magic_link.txt": {Data: []byte(`{{.Password}}`)}},
		"of all mails":  {"mail/layout.html": {Data: []byte(`{{.Password}}`)}},
		"of a text":     {"mail/sms.txt": {Data: []byte(`{{.Password}}`)}},
	} {
		if _, err := parse("App", "en", broken); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := parse("App", "xx", nil); err == nil {
		t.Error("a default language without templates was accepted")
	}
}

func FuzzSafeName(f *testing.F) {
	f.Add("Ada Lovelace")
	f.Add("evil.com\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		if n := SafeName(s); strings.ContainsAny(n, "\r\n<>/:@") {
			t.Errorf("%q became %q", s, n)
		}
	})
}
