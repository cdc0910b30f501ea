package mail_test

import (
	"bytes"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/browsertest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/memstore"
)

// ownTexts are files of MailOptions.Templates.
func ownTexts(files map[string]string) auth.Option {
	own := fstest.MapFS{}
	for name, text := range files {
		own[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return auth.WithMail(auth.MailOptions{AppName: "Notes", Templates: own})
}

func accepts(language string) harness.Header {
	return harness.Header{Name: "Accept-Language", Value: language}
}

// A mail, in all its parts, and the page of its link are in the reader's language. A
// language without texts gets the next preferred one, or the default one.
func TestMessagesInTheReadersLanguage(t *testing.T) {
	for name, c := range map[string]struct {
		accept, lang, subject, text, note, page, sent string

		opts []auth.Option
	}{
		"French":              {accept: "fr-CA, en;q=0.5", lang: "fr", subject: "Votre lien de connexion à auth.test", text: "Bonjour,\n\nVoici votre lien", note: "toute personne qui l’ouvre", page: "Retournez là où vous avez commencé", sent: "est votre code pour auth.test"},
		"Spanish":             {accept: "es-MX", lang: "es", subject: "Tu enlace para iniciar sesión en auth.test", text: "Hola:\n\nEste es tu enlace", note: "quien lo abra", page: "Vuelve a donde empezaste", sent: "es tu código para auth.test"},
		"German":              {accept: "de", lang: "de", subject: "Dein Anmeldelink für auth.test", text: "Hallo,\n\nhier ist dein Link", note: "Wer ihn öffnet", page: "Zurück dorthin, wo du begonnen hast", sent: "ist dein Code für auth.test"},
		"Italian":             {accept: "it-IT,it", lang: "en", subject: "Your sign-in link for auth.test", text: "Hello,\n\nHere is your link", note: "anyone who opens it", page: "Go back to where you started", sent: "is your code for auth.test"},
		"Italian, then Swiss": {accept: "it, fr-CH;q=0.8, en;q=0.1", lang: "fr", subject: "Votre lien de connexion à auth.test", text: "Bonjour,", note: "toute personne", page: "Retournez là où vous avez commencé", sent: "est votre code"},
		"Italian, and German is the default": {
			accept: "it", lang: "de", subject: "Dein Anmeldelink für Notes", text: "Hallo,", note: "Wer ihn öffnet", page: "Zurück dorthin, wo du begonnen hast", sent: "ist dein Code für Notes",
			opts: []auth.Option{auth.WithMail(auth.MailOptions{AppName: "Notes", Locale: "de"})},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := harness.NewWorld(t, c.opts...)
			w.Do("POST", "/magic-link/send", map[string]any{"email": "ada@example.com"}, accepts(c.accept)).Want(200)
			m := w.Mail(t, "ada@example.com", auth.KindMagicLink)
			if m.Locale != c.lang || m.Subject != c.subject || !strings.HasPrefix(m.Text, c.text) || !strings.Contains(m.Text, c.note) {
				t.Errorf("%q: %q\n%s", m.Locale, m.Subject, m.Text)
			}
			if !strings.Contains(m.HTML, `<html lang="`+c.lang+`" dir="ltr">`) || !strings.Contains(m.HTML, c.note) || !strings.Contains(m.HTML, ">"+c.subject+"</h1>") {
				t.Errorf("%s", m.HTML)
			}
			for _, hole := range []string{"{app}", "{to}", "{n}", "{ip}", "{button}"} {
				if strings.Contains(m.Subject+m.Text+m.HTML, hole) {
					t.Errorf("%s is left", hole)
				}
			}
			page := w.Do("GET", strings.TrimPrefix(m.Link, "https://auth.test/auth/v1"), nil, harness.Browser, accepts(c.accept)).Want(200)
			if page.Header.Get("Content-Language") != c.lang || !strings.Contains(string(page.Body), `<html lang="`+c.lang+`" dir="ltr">`) || !strings.Contains(string(page.Body), `<h1 id="title">`+c.page) {
				t.Errorf("the page of the link: %s", page.Body[bytes.Index(page.Body, []byte("<main")):])
			}
			w.Do("POST", "/otp/send", map[string]any{"phone": "+491701234567"}, accepts(c.accept)).Want(200)
			if sms := w.Mail(t, "+491701234567", auth.KindPhoneCode); sms.Locale != c.lang || !strings.Contains(sms.Text, c.sent) || !strings.HasSuffix(sms.Text, "\n\n@auth.test #"+sms.Code) {
				t.Errorf("%q: %s", sms.Locale, sms.Text)
			}
		})
	}
}

// The user's own language precedes the browser's.
func TestMessagesInTheUsersLanguage(t *testing.T) {
	w := harness.NewWorld(t)
	w.Do("POST", "/signup", map[string]any{"email": "ada@example.com", "password": harness.GoodPassword, "user_metadata": map[string]any{"locale": "fr"}}, accepts("de")).Want(200)
	if m := w.Mail(t, "ada@example.com", auth.KindVerifyEmail); m.Locale != "fr" || m.Subject != "Confirmez votre adresse e-mail" {
		t.Errorf("%q in %q", m.Subject, m.Locale)
	}
}

// Errors on the pages of links are in the reader's language, too.
func TestProblemsInTheReadersLanguage(t *testing.T) {
	w := harness.NewWorld(t)
	for lang, want := range map[string]string{"en": "This link is no longer valid. Ask for a new one.", "fr": "Ce lien n’est plus valable. Demandez-en un nouveau.", "de": "Dieser Link gilt nicht mehr. Fordere einen neuen an."} {
		a := w.Do("GET", "/magic-link/verify?token=nonsense", nil, harness.Browser, accepts(lang)).Want(400)
		if !strings.Contains(string(a.Body), want) {
			t.Errorf("%s: %s", lang, a.Body)
		}
	}
}

// A right-to-left language sets the direction of mails and pages.
func TestRightToLeft(t *testing.T) {
	w := harness.NewWorld(t, auth.WithMail(auth.MailOptions{AppName: "Notes", Templates: browsertest.RightToLeft(t)}))
	w.Do("POST", "/magic-link/send", map[string]any{"email": "ada@example.com"}, accepts("ar-EG")).Want(200)
	m := w.Mail(t, "ada@example.com", auth.KindMagicLink)
	if m.Locale != "ar" || !strings.Contains(m.HTML, `<html lang="ar" dir="rtl">`) || !strings.Contains(m.HTML, `class="ground" dir="rtl"`) {
		t.Errorf("%s", m.HTML)
	}
	page := w.Do("GET", strings.TrimPrefix(m.Link, "https://auth.test/auth/v1"), nil, harness.Browser, accepts("ar")).Want(200)
	if !strings.Contains(string(page.Body), `<html lang="ar" dir="rtl">`) {
		t.Errorf("%s", page.Body)
	}
}

// New names every mistake in the application's texts: the file, the text, the placeholder.
func TestMistakesInOwnTexts(t *testing.T) {
	for name, c := range map[string]struct {
		files  map[string]string
		locale string
		want   []string
	}{
		"unknown files":           {files: map[string]string{"languages/fr/mail.json": "{}", "mail/magic_link.fr.txt": "x"}, want: []string{`"languages/fr/mail.json" that is not read`, `"mail/magic_link.fr.txt" that is not read`}},
		"a file without a folder": {files: map[string]string{"fr.json": "{}"}, want: []string{`"fr.json" that is not read`}},
		"unknown texts": {
			files: map[string]string{"languages/it/mails.json": `{"magic_link.sbject": "x"}`, "languages/it/pages.json": `{"sign_in.titel": "x"}`, "languages/it/dashboard.json": `{"Usres": "x"}`},
			want:  []string{`languages/it/mails.json: there is no text "magic_link.sbject"`, `languages/it/pages.json: there is no text "sign_in.titel"`, `languages/it/dashboard.json: there is no text "Usres"`},
		},
		"misspelt placeholders": {
			files: map[string]string{"languages/en/mails.json": `{"magic_link.subject": "{ap}"}`, "languages/fr/pages.json": `{"sign_in.heading": "{brnad}"}`, "languages/de/dashboard.json": `{"{n} users": "{m} Konten"}`},
			want:  []string{`languages/en/mails.json: {ap} is not replaced in the text "magic_link.subject", only ["{app}"]`, `languages/fr/pages.json: {brnad} is not replaced in the text "sign_in.heading", only ["{brand}"]`, `languages/de/dashboard.json: {m} is not replaced in the text "{n} users", only ["{n}"]`},
		},
		"no object":                     {files: map[string]string{"languages/it/mails.json": `[]`}, want: []string{"languages/it/mails.json"}},
		"no language":                   {files: map[string]string{"languages/not_a_language!/mails.json": `{}`}, want: []string{"languages/not_a_language!"}},
		"a default language without it": {locale: "it", files: map[string]string{"languages/it/pages.json": `{}`}, want: []string{"languages/it/mails.json is missing", "languages/it/pages.json is the default language, but has no texts for: account.back, "}},
	} {
		own := fstest.MapFS{}
		for name, text := range c.files {
			own[name] = &fstest.MapFile{Data: []byte(text)}
		}
		_, err := auth.New(t.Context(), memstore.New(), auth.WithDevMode(), auth.WithMail(auth.MailOptions{Templates: own, Locale: c.locale}))
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
	}
}

// The log has the number of texts that a language of the application lacks, and names a
// few; built-in languages and complete ones lack none.
func TestMissingTextsAreLogged(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"none of its own":               {nil, nil},
		"changes of built-in languages": {map[string]string{"languages/fr/mails.json": `{"mail.hello": "Salut,"}`, "languages/de/pages.json": `{"sign_in.title": "Los"}`}, nil},
		"pages only":                    {map[string]string{"languages/it/pages.json": `{"sign_in.heading": "Accedi a {brand}"}`}, []string{"file=languages/it/mails.json", "file=languages/it/pages.json", "missing=", "account.back", "instead_in=en"}},
		"some mails":                    {map[string]string{"languages/it/mails.json": `{"magic_link.subject": "Il tuo link"}`}, []string{"file=languages/it/pages.json", "file=languages/it/mails.json", "account_created.intro"}},
	} {
		var log bytes.Buffer
		a, err := auth.New(t.Context(), memstore.New(), auth.WithDevMode(), auth.WithLogger(slog.New(slog.NewTextHandler(&log, nil))), ownTexts(c.files))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = a.Close(t.Context()) })
		for _, want := range c.want {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s: the log lacks %q: %s", name, want, log.String())
			}
		}
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, "texts are missing") && len(line) > 400 {
				t.Errorf("%s: a line of %d bytes: %s", name, len(line), line)
			}
		}
		if c.want == nil && strings.Contains(log.String(), "languages/") || strings.Contains(log.String(), " sign_in.heading") {
			t.Errorf("%s: %s", name, log.String())
		}
	}
}

// A language with some messages only has these as a whole, and others in the default
// language as a whole.
func TestMessagesThatALanguageLacks(t *testing.T) {
	texts := map[string]string{"magic_link.subject": "Il tuo link per {app}", "magic_link.intro": "Ecco il link per {to}.", "magic_link.button": "Accedi", "magic_link.code": "Oppure:", "magic_link.note": "Ignora."}
	for _, key := range []string{"hello", "copy", "code"} {
		texts["mail."+key] = "IT"
	}
	for key, text := range map[string]string{"hello_name": "Ciao {name}", "action": "{button}:", "valid_minutes": "{n}", "valid_hours": "{n}", "valid_days": "{n}", "code_valid": "{n}", "time": "{time}", "device": "{device}", "ip": "{ip}", "requested_from": "{ip}"} {
		texts["mail."+key] = text
	}
	var b strings.Builder
	for i, key := range slices.Sorted(maps.Keys(texts)) {
		b.WriteString(map[bool]string{true: "{", false: ","}[i == 0] + `"` + key + `":"` + texts[key] + `"`)
	}
	w := harness.NewWorld(t, ownTexts(map[string]string{"languages/it/mails.json": b.String() + "}"}))
	w.Do("POST", "/magic-link/send", map[string]any{"email": "ada@example.com"}, accepts("it")).Want(200)
	if m := w.Mail(t, "ada@example.com", auth.KindMagicLink); m.Locale != "it" || m.Subject != "Il tuo link per Notes" || !strings.Contains(m.HTML, `lang="it"`) {
		t.Errorf("%q: %q", m.Locale, m.Subject)
	}
	w.Do("POST", "/signup", map[string]any{"email": "eva@example.com", "password": harness.GoodPassword}, accepts("it")).Want(200)
	if m := w.Mail(t, "eva@example.com", auth.KindVerifyEmail); m.Locale != "en" || m.Subject != "Confirm your email address" || strings.Contains(m.Text, "IT") {
		t.Errorf("%q: %q\n%s", m.Locale, m.Subject, m.Text)
	}
}
