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
		for _, loc := range []string{"en", "de"} {
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
		"mail/magic_link.en.txt":  {Data: []byte(`{{define "subject"}}Mine{{end}}Go to {{.Link}}`)},
		"mail/magic_link.en.html": {Data: []byte(`{{define "heading"}}Mine{{end}}{{define "intro"}}{{end}}{{define "button"}}{{end}}{{define "note"}}{{end}}`)},
		"mail/layout.fr.html":     {Data: []byte(`<html lang="fr">{{template "heading" .}}</html>`)},
		"mail/magic_link.fr.txt":  {Data: []byte(`{{define "subject"}}Le mien{{end}}{{.Link}}`)},
		"mail/magic_link.fr.html": {Data: []byte(`{{define "heading"}}Le mien{{end}}`)},
	}
	mails, err := parse("App", "en", own)
	if err != nil {
		t.Fatal(err)
	}
	for loc, want := range map[string]string{"en": "Mine", "fr-CA": "Le mien", "de": "Dein Anmeldelink für App", "tlh": "Mine"} {
		if m, err := mails.render(Outgoing{Kind: store.KindMagicLink, Locale: loc, To: "a@example.com"}, testService("App")); err != nil || m.Subject != want {
			t.Errorf("%s: %q, %v", loc, m.Subject, err)
		}
	}
	// A language that lacks a message falls back to the default language.
	if m, err := mails.render(Outgoing{Kind: store.KindVerifyEmail, Locale: "fr", To: "a@example.com"}, testService("App")); err != nil || m.Locale != "en" {
		t.Errorf("%+v, %v", m, err)
	}
	for name, broken := range map[string]fstest.MapFS{
		"syntax":        {"mail/magic_link.en.txt": {Data: []byte(`{{define "subject"}}x{{end}}{{.Link`)}},
		"no subject":    {"mail/magic_link.en.txt": {Data: []byte(`x`)}},
		"unknown field": {"mail/magic_link.en.txt": {Data: []byte(`{{define "subject"}}x{{end}}{{.Password}}`)}},
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
