package auth

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/authmount/auth/store"
	"github.com/google/uuid"
)

// scripted is a mailer that answers as it is told, attempt by attempt.
type scripted struct {
	mu      sync.Mutex
	answers []error
	sent    []Message
	at      []time.Time
}

func (s *scripted) Send(_ context.Context, m Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent, s.at = append(s.sent, m), append(s.at, time.Now())
	if n := len(s.sent); n <= len(s.answers) {
		return s.answers[n-1]
	}
	return nil
}

// failures are what an outbox gave up on.
type failures struct {
	mu   sync.Mutex
	list []error
}

func (f *failures) errors() []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]error{}, f.list...)
}

func testOutbox(t *testing.T, o MailOptions, m Mailer) (*outbox, *failures) {
	t.Helper()
	failed := &failures{}
	o.AppName = "App"
	b, err := newOutbox(o, m, nil, slog.New(slog.DiscardHandler), time.Now, func(_ context.Context, _ Message, err error) {
		failed.mu.Lock()
		defer failed.mu.Unlock()
		failed.list = append(failed.list, err)
	})
	if err != nil {
		t.Fatal(err)
	}
	b.open = func(m store.SealedMessage) (o outgoing, err error) { return o, json.Unmarshal(m.Body, &o) }
	return b, failed
}

// post gives an outbox a message as a change would.
func post(t *testing.T, b *outbox, o outgoing) {
	t.Helper()
	body, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	now := b.now()
	b.post(t.Context(), []store.SealedMessage{{ID: uuid.NewString(), Body: body, CreatedAt: now, NextAt: now.Add(b.lease()), ExpiresAt: now.Add(noticeLife), Attempts: 1}})
}

var magic = outgoing{Kind: KindMagicLink, To: "ada@example.com", Link: "https://auth.test/x?token=t", ExpiresIn: 15 * time.Minute}

func TestQueueRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &scripted{answers: []error{errors.New("busy"), errors.New("busy"), nil}}
		b, failures := testOutbox(t, MailOptions{}, m)
		post(t, b, magic)
		if err := b.close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(m.sent) != 3 || len(failures.errors()) != 0 {
			t.Fatalf("%d attempts, failures %v", len(m.sent), failures.errors())
		}
		if m.sent[0].ID != m.sent[2].ID {
			t.Error("a retry is another message")
		}
		first, second := m.at[1].Sub(m.at[0]), m.at[2].Sub(m.at[1])
		if first < 500*time.Millisecond || first > 1500*time.Millisecond || second < 2*time.Second || second > 6*time.Second {
			t.Errorf("pauses %v, %v", first, second)
		}
	})
}

func TestQueueGivesUp(t *testing.T) {
	for name, c := range map[string]struct {
		answer   error
		attempts int
	}{
		"after its attempts": {errors.New("busy"), 5},
		"for good":           {Permanent(errors.New("no such user")), 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &scripted{answers: []error{c.answer, c.answer, c.answer, c.answer, c.answer, c.answer}}
				b, failures := testOutbox(t, MailOptions{}, m)
				post(t, b, magic)
				if err := b.close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if len(m.sent) != c.attempts || len(failures.errors()) != 1 || !errors.Is((failures.errors())[0], c.answer) {
					t.Errorf("%d attempts, failures %v", len(m.sent), failures.errors())
				}
			})
		})
	}
}

// A hanging mailer blocks no request, and other messages no longer than its
// timeout; a full queue is reported.
func TestQueueOutlivesHangingMailer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		b, failures := testOutbox(t, MailOptions{Queue: 3, Workers: 2, Attempts: 1, Timeout: time.Second}, hanging(release))
		start := time.Now()
		for range 5 {
			post(t, b, magic)
		}
		if time.Since(start) != 0 {
			t.Error("a request waited")
		}
		if len(failures.errors()) != 2 || !errors.Is((failures.errors())[0], errQueueFull) {
			t.Errorf("failures %v", failures.errors())
		}
		if err := b.close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(failures.errors()) != 5 || time.Since(start) > 2*time.Second {
			t.Errorf("%d failures after %v", len(failures.errors()), time.Since(start))
		}
		close(release)
	})
}

type hanging chan struct{}

func (h hanging) Send(context.Context, Message) error { <-h; return nil } // ignores its context

func TestQueueCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &scripted{answers: []error{errors.New("busy"), errors.New("busy"), errors.New("busy"), errors.New("busy")}}
		b, failures := testOutbox(t, MailOptions{}, m)
		post(t, b, magic)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		post(t, b, magic)
		if len(failures.errors()) != 1 || !errors.Is((failures.errors())[0], errQueueClosed) {
			t.Errorf("failures %v", failures.errors())
		}
		<-time.After(time.Hour) // of fake time: lets the pending retry come and go
	})
}

func TestSyncSend(t *testing.T) {
	m := &scripted{answers: []error{nil, errors.New("busy")}}
	b, failures := testOutbox(t, MailOptions{Sync: true}, m)
	post(t, b, magic)
	if len(m.sent) != 1 || len(failures.errors()) != 0 {
		t.Errorf("%d sent, %v", len(m.sent), failures.errors())
	}
	post(t, b, magic)
	if len(m.sent) != 2 || len(failures.errors()) != 1 {
		t.Errorf("%d sent, %v", len(m.sent), failures.errors())
	}
	if err := b.close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestDecoysGoNowhere(t *testing.T) {
	m := &scripted{}
	b, failures := testOutbox(t, MailOptions{}, m)
	post(t, b, outgoing{Kind: KindMagicLink})
	if err := b.close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(m.sent) != 0 || len(failures.errors()) != 0 {
		t.Errorf("%d sent, %v", len(m.sent), failures.errors())
	}
}

func TestEveryMessageRenders(t *testing.T) {
	mails, err := parseMails(MailOptions{AppName: "App", Locale: "en"})
	if err != nil {
		t.Fatal(err)
	}
	subjects := map[string]bool{}
	for _, k := range store.Kinds() {
		if k == KindPhoneCode || k == KindTestSMS {
			continue // texts
		}
		for _, loc := range []string{"en", "de"} {
			m, err := mails.render(outgoing{Kind: k, Locale: loc, To: "ada@example.com", Name: "Ada", Link: "https://auth.test/x?token=t&a=b", ExpiresIn: time.Hour, NewAddress: "new@example.com", IP: "192.0.2.1"})
			if err != nil {
				t.Fatal(err)
			}
			if m.Locale != loc || m.Subject == "" || (!strings.Contains(m.Text, "Ada") && k != KindTakenOver) || !strings.Contains(m.HTML, `lang="`+loc+`"`) || strings.Contains(m.Text+m.HTML, "<no value>") {
				t.Errorf("%s.%s: %+v", k, loc, m)
			}
			if subjects[loc+m.Subject] {
				t.Errorf("%s.%s: subject %q twice", k, loc, m.Subject)
			}
			subjects[loc+m.Subject] = true
			notice := slices.Contains([]Kind{KindPasswordChanged, KindEmailChanged, KindMFAEnabled, KindMFADisabled, KindTakenOver, KindIdentityLinked, KindIdentityUnlinked, KindPhoneChanged, KindRecoveryCodeUsed, KindRecoveryCodesReplaced, KindManyFailedSignIns, KindAccountDeleted, KindImpersonated, KindTestMail}, k)
			if !notice && (!strings.Contains(m.Text, "https://auth.test/x?token=t&a=b") || !strings.Contains(m.HTML, `href="https://auth.test/x?token=t&amp;a=b"`)) {
				t.Errorf("%s.%s has no link", k, loc)
			}
		}
	}
}

// Injection: what strangers choose becomes neither header, nor markup, nor link.
func TestMessagesResistInjection(t *testing.T) {
	mails, err := parseMails(MailOptions{AppName: "App\r\nBcc: evil@example.com", Locale: "en"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"<script>alert(1)</script>", "Click https://evil.test/win", "evil.test/win", "Visit evil.com now", "www evil test", "Ada\r\nBcc: evil@example.com",
		"\u202egnp.exe", strings.Repeat("buy now ", 20), "Prize! Call +1 555", "a@evil.test", "&#60;b&#62;",
	} {
		m, err := mails.render(outgoing{Kind: KindMagicLink, To: "ada@example.com", Name: name, Link: "https://auth.test/x", IP: "192.0.2.1"})
		if err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(m.Subject, "\r\n") || strings.Contains(m.HTML, "<script>") || strings.Contains(m.HTML, "<b>") ||
			strings.Contains(m.Text+m.HTML, "evil.test") || strings.Contains(m.Text+m.HTML, "evil.com") || strings.Contains(m.Text+m.HTML, "\u202e") {
			t.Errorf("%q: %q\n%s", name, m.Subject, m.Text)
		}
	}
	for _, name := range []string{"Ada Lovelace", "Anne-Marie O’Neill", "J. R. R. Tolkien", "李小龍", "Αλέξανδρος"} {
		if safeName(name) != name {
			t.Errorf("%q became %q", name, safeName(name))
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
	mails, err := parseMails(MailOptions{AppName: "App", Locale: "en", Templates: own})
	if err != nil {
		t.Fatal(err)
	}
	for loc, want := range map[string]string{"en": "Mine", "fr-CA": "Le mien", "de": "Dein Anmeldelink für App", "tlh": "Mine"} {
		if m, err := mails.render(outgoing{Kind: KindMagicLink, Locale: loc, To: "a@example.com"}); err != nil || m.Subject != want {
			t.Errorf("%s: %q, %v", loc, m.Subject, err)
		}
	}
	// A language that lacks a message falls back to the default.
	if m, err := mails.render(outgoing{Kind: KindVerifyEmail, Locale: "fr", To: "a@example.com"}); err != nil || m.Locale != "en" {
		t.Errorf("%+v, %v", m, err)
	}
	for name, broken := range map[string]fstest.MapFS{
		"syntax":        {"mail/magic_link.en.txt": {Data: []byte(`{{define "subject"}}x{{end}}{{.Link`)}},
		"no subject":    {"mail/magic_link.en.txt": {Data: []byte(`x`)}},
		"unknown field": {"mail/magic_link.en.txt": {Data: []byte(`{{define "subject"}}x{{end}}{{.Password}}`)}},
	} {
		if _, err := parseMails(MailOptions{AppName: "App", Locale: "en", Templates: broken}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := parseMails(MailOptions{AppName: "App", Locale: "xx"}); err == nil {
		t.Error("a default language without templates was accepted")
	}
}

func FuzzSafeName(f *testing.F) {
	f.Add("Ada Lovelace")
	f.Add("evil.com\r\n")
	f.Fuzz(func(t *testing.T, s string) {
		if n := safeName(s); strings.ContainsAny(n, "\r\n<>/:@") {
			t.Errorf("%q became %q", s, n)
		}
	})
}
