package smtpmail_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"math/big"
	"mime"
	"mime/multipart"
	"net"
	"net/mail"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/authmount/auth"
	"github.com/authmount/auth/smtpmail"
)

// server is a real SMTP server on loopback.
type server struct {
	addr   string
	refuse *smtp.SMTPError // response to every recipient
	ascii  bool            // does not support SMTPUTF8
	drop   bool            // drops the connection at the first recipient

	mu   sync.Mutex
	got  []delivery
	seen string // user that authenticated
}

type delivery struct {
	from, to string
	data     []byte
	tls      bool
	helo     string
	utf8     bool
}

func (s *server) NewSession(c *smtp.Conn) (smtp.Session, error) {
	_, isTLS := c.TLSConnectionState()
	return &smtpSession{server: s, conn: c, delivery: delivery{tls: isTLS, helo: c.Hostname()}}, nil
}

type smtpSession struct {
	server *server
	conn   *smtp.Conn
	delivery
}

func (s *smtpSession) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *smtpSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != "ada" || password != "s3cret" {
			return errors.New("wrong credentials")
		}
		s.server.mu.Lock()
		defer s.server.mu.Unlock()
		s.server.seen = user
		return nil
	}), nil
}

func (s *smtpSession) Mail(from string, o *smtp.MailOptions) error {
	s.from, s.utf8 = from, o.UTF8
	return nil
}

func (s *smtpSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	if s.server.drop {
		_ = s.conn.Conn().Close()
	}
	if s.server.refuse != nil {
		return s.server.refuse
	}
	s.to = to
	return nil
}

func (s *smtpSession) Data(r io.Reader) error {
	var err error
	if s.data, err = io.ReadAll(r); err != nil {
		return err
	}
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.got = append(s.server.got, s.delivery)
	return nil
}

func (s *smtpSession) Reset()        {}
func (s *smtpSession) Logout() error { return nil }

// start runs a server, with TLS if config is set: from the first byte if implicit, else
// by STARTTLS.
func start(t *testing.T, s *server, config *tls.Config, implicit bool) {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = ln.Addr().String()
	srv := smtp.NewServer(s)
	srv.Domain, srv.AllowInsecureAuth, srv.TLSConfig = "localhost", config == nil, config
	srv.EnableSMTPUTF8 = !s.ascii
	if implicit {
		ln = tls.NewListener(ln, config)
	}
	go func() { _ = srv.Serve(ln) }()
	t.Cleanup(func() { _ = srv.Close() })
}

// certificate returns a server's and a client's TLS configuration.
func certificate(t *testing.T) (forServer, forClient *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12},
		&tls.Config{RootCAs: roots, ServerName: "127.0.0.1", MinVersion: tls.VersionTLS12}
}

var message = auth.Message{
	ID: "01a1fb4c-2b13-7a71-806e-d67843451400", Kind: auth.KindMagicLink, To: "ada@example.com", Subject: "Grüße von der Straße",
	Text: "Open https://auth.test/x?token=t\n", HTML: "<p>Open <a href=\"https://auth.test/x?token=t\">it</a></p>", Locale: "de",
	At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
}

func (s *server) delivered(t *testing.T) []delivery {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]delivery(nil), s.got...)
}

func TestSend(t *testing.T) {
	forServer, forClient := certificate(t)
	for name, c := range map[string]struct {
		scheme, user, query string
		tls, implicit       bool
	}{
		"plain on loopback":  {"smtp", "", "", false, false},
		"STARTTLS":           {"smtp", "", "&tls=required", true, false},
		"STARTTLS and login": {"smtp", "ada:s3cret@", "&tls=required&helo=app.example.com", true, false},
		"TLS and login":      {"smtps", "ada:s3cret@", "", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{}
			config := forServer
			if !c.tls {
				config = nil
			}
			start(t, s, config, c.implicit)
			m := smtpmail.New(c.scheme+"://"+c.user+s.addr+"?from="+url.QueryEscape("Ünlü App <no-reply@example.com>")+c.query, smtpmail.WithTLSConfig(forClient))
			if err := m.Validate(); err != nil {
				t.Fatal(err)
			}
			if err := m.Send(t.Context(), message); err != nil {
				t.Fatal(err)
			}
			got := s.delivered(t)
			if len(got) != 1 || got[0].from != "no-reply@example.com" || got[0].to != "ada@example.com" || got[0].tls != c.tls {
				t.Fatalf("delivered %+v", got)
			}
			if c.user != "" && s.seen != "ada" {
				t.Error("did not log in")
			}
			if (got[0].helo == "app.example.com") != strings.Contains(c.query, "helo=") {
				t.Errorf("it names itself %q", got[0].helo)
			}
			checkMessage(t, got[0].data)
		})
	}
}

// checkMessage reads a message as a mail program would.
func checkMessage(t *testing.T, data []byte) {
	t.Helper()
	m, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	if err != nil || subject != message.Subject {
		t.Errorf("subject %q, %v", subject, err)
	}
	from, err := m.Header.AddressList("From")
	if err != nil || from[0].Name != "Ünlü App" {
		t.Errorf("from %v, %v", from, err)
	}
	if at, err := m.Header.Date(); err != nil || !at.Equal(message.At) {
		t.Errorf("date %v, %v", at, err)
	}
	for name, want := range map[string]string{"Message-Id": "<" + message.ID + "@example.com>", "Auto-Submitted": "auto-generated", "Content-Language": "de"} {
		if got := m.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/alternative" {
		t.Fatalf("content type %q, %v", kind, err)
	}
	r := multipart.NewReader(m.Body, params["boundary"])
	for _, want := range []struct{ kind, text string }{{"text/plain", strings.TrimSpace(message.Text)}, {"text/html", message.HTML}} {
		part, err := r.NextPart()
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(part)
		if err != nil || !strings.HasPrefix(part.Header.Get("Content-Type"), want.kind) || strings.TrimSpace(string(body)) != want.text {
			t.Errorf("%s: %q, %v", part.Header.Get("Content-Type"), body, err)
		}
	}
}

// Permanent and temporary failures.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		refuse    smtp.SMTPError
		permanent bool
	}{
		"no such mailbox": {smtp.SMTPError{Code: 550, Message: "no such user"}, true},
		"not understood":  {smtp.SMTPError{Code: 500, Message: "syntax error"}, true},
		"greylisted":      {smtp.SMTPError{Code: 451, Message: "try again"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &server{refuse: &c.refuse}
			start(t, s, nil, false)
			err := smtpmail.New("smtp://"+s.addr+"?from=a@example.com").Send(t.Context(), message)
			if err == nil || auth.IsPermanent(err) != c.permanent {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A server's error quotes the email address; the returned error, which is logged, does
// not.
func TestErrorsHideTheAddress(t *testing.T) {
	for name, code := range map[string]int{"for good": 550, "for now": 451} {
		t.Run(name, func(t *testing.T) {
			s := &server{refuse: &smtp.SMTPError{Code: code, Message: "<Ada@Example.com>: user ada@example.com unknown (ADA@EXAMPLE.COM), forwarded to ada.l@inner.example.org"}}
			start(t, s, nil, false)
			err := smtpmail.New("smtp://"+s.addr+"?from=a@example.com").Send(t.Context(), message)
			if err == nil || auth.IsPermanent(err) != (code == 550) {
				t.Fatalf("error %v", err)
			}
			for e := err; e != nil; e = errors.Unwrap(e) {
				text := strings.ToLower(e.Error())
				if strings.Contains(text, "ada@example") || strings.Contains(text, "ada.l@inner") || !strings.Contains(text, "a•••a@e•••e.com") {
					t.Errorf("%v", e)
				}
			}
		})
	}
}

func TestRequiresTLS(t *testing.T) {
	s := &server{}
	start(t, s, nil, false)
	if err := smtpmail.New("smtp://"+s.addr+"?from=a@example.com&tls=required").Send(t.Context(), message); err == nil {
		t.Error("sent without TLS")
	}
	forServer, _ := certificate(t)
	s = &server{}
	start(t, s, forServer, false)
	if err := smtpmail.New("smtp://ada:s3cret@"+s.addr+"?from=a@example.com&tls=required").Send(t.Context(), message); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("a stranger's certificate: %v", err)
	}
	if len(s.delivered(t)) != 0 {
		t.Error("delivered all the same")
	}
}

func TestHangingServer(t *testing.T) {
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := smtpmail.New("smtp://"+ln.Addr().String()+"?from=a@example.com").Send(ctx, message); err == nil || auth.IsPermanent(err) || !strings.HasPrefix(err.Error(), "smtpmail: connect: ") {
		t.Errorf("error %v", err)
	}
	<-ctx.Done()
	if err := smtpmail.New("smtp://"+ln.Addr().String()+"?from=a@example.com").Send(ctx, message); !errors.Is(err, context.DeadlineExceeded) || auth.IsPermanent(err) {
		t.Errorf("out of time from the beginning: %v", err)
	}
}

// A broken connection is not a permanent failure.
func TestBrokenConnection(t *testing.T) {
	s := &server{drop: true}
	start(t, s, nil, false)
	if err := smtpmail.New("smtp://"+s.addr+"?from=a@example.com").Send(t.Context(), message); err == nil || auth.IsPermanent(err) {
		t.Errorf("error %v", err)
	}
}

func TestBadURLs(t *testing.T) {
	for _, raw := range []string{
		"", "smtp.example.com", "http://x?from=a@example.com", "smtp://?from=a@example.com", "smtp://host", "smtp://user:hunter2@host?from=x",
		"smtp://host?from=a@example.com&tls=maybe", "smtp://user:hunter2@host:port?from=a@example.com",
		"smtp://user:hunter2@host:0?from=a@example.com", "smtp://host:65536?from=a@example.com", "smtp://host:99999999999999999999?from=a@example.com",
	} {
		m := smtpmail.New(raw)
		if err := m.Validate(); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", raw, err)
		}
		if err := m.Send(t.Context(), message); err == nil || !auth.IsPermanent(err) {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

// Header injection: line breaks in a field start no header.
func TestNoHeaderInjection(t *testing.T) {
	s := &server{}
	start(t, s, nil, false)
	m := smtpmail.New("smtp://" + s.addr + "?from=a@example.com")
	evil := message
	evil.Subject, evil.Locale = "Hi\r\nBcc: evil@example.com\r\n\r\nbody", "de\r\nX-Evil: 1"
	if err := m.Send(t.Context(), evil); err == nil {
		for _, d := range s.delivered(t) {
			parsed, err := mail.ReadMessage(bytes.NewReader(d.data))
			if err != nil || parsed.Header.Get("Bcc") != "" || parsed.Header.Get("X-Evil") != "" {
				t.Errorf("%s", d.data)
			}
		}
	}
	for _, to := range []string{"a@example.com\r\nRCPT TO:<b@example.com>", "a@example.com>\r\nDATA", "a@example.com, b@example.com", ""} {
		evil = message
		evil.To = to
		if err := m.Send(t.Context(), evil); !auth.IsPermanent(err) {
			t.Errorf("to %q: %v", to, err)
		}
	}
	for _, d := range s.delivered(t) {
		if d.to != "ada@example.com" {
			t.Errorf("delivered to %q", d.to)
		}
	}
}
