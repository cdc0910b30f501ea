// smtp:// requires STARTTLS, except on loopback hosts. Query parameters: from (required),
// tls=required|opportunistic|none, helo.
package smtpmail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	netmail "net/mail"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/address"
)

// Mailer sends messages through one SMTP server, with a connection for each message. It
// is safe for concurrent use.
type Mailer struct {
	err     error // error of the URL
	host    string
	from    *netmail.Address
	options []mail.Option
}

// Option changes a Mailer.
type Option func(*Mailer)

// WithTLSConfig sets the TLS configuration, for servers with a certificate of a private
// authority. The default trusts the system's authorities and requires TLS 1.2.
func WithTLSConfig(c *tls.Config) Option {
	return func(m *Mailer) { m.options = append(m.options, mail.WithTLSConfig(c)) }
}

// New returns a Mailer for a URL. Validate, which auth.New calls, and every Send report
// an invalid URL.
func New(rawURL string, opts ...Option) *Mailer {
	m := &Mailer{}
	m.err = m.configure(rawURL)
	for _, o := range opts {
		o(m)
	}
	return m
}

// configure reads the URL. Its errors do not quote the URL, which may contain a password.
func (m *Mailer) configure(rawURL string) error {
	u, err := url.Parse(rawURL)
	if err != nil || (u.Scheme != "smtp" && u.Scheme != "smtps") || u.Hostname() == "" {
		return errors.New("smtpmail: the URL must be like smtp://user:password@host:587?from=no-reply@example.com")
	}
	q := u.Query()
	m.host = u.Hostname()
	if m.from, err = netmail.ParseAddress(q.Get("from")); err != nil {
		return errors.New("smtpmail: the URL needs a sender: ?from=no-reply@example.com")
	}
	m.options = append(m.options, mail.WithTLSConfig(&tls.Config{ServerName: m.host, MinVersion: tls.VersionTLS12}))
	port := 587
	if u.Scheme == "smtps" {
		port = 465
		m.options = append(m.options, mail.WithSSL())
	} else {
		policy, err := tlsPolicy(q.Get("tls"), m.host)
		if err != nil {
			return err
		}
		m.options = append(m.options, mail.WithTLSPolicy(policy))
	}
	if p := u.Port(); p != "" {
		if port, _ = strconv.Atoi(p); port < 1 || port > 65535 {
			return errors.New("smtpmail: the port must be from 1 to 65535")
		}
	}
	m.options = append(m.options, mail.WithPort(port))
	if helo := q.Get("helo"); helo != "" {
		m.options = append(m.options, mail.WithHELO(helo))
	}
	if password, ok := u.User.Password(); ok {
		m.options = append(m.options, mail.WithUsername(u.User.Username()), mail.WithPassword(password), mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover))
	}
	return nil
}

func tlsPolicy(name, host string) (mail.TLSPolicy, error) {
	switch name {
	case "required":
		return mail.TLSMandatory, nil
	case "opportunistic":
		return mail.TLSOpportunistic, nil
	case "none":
		return mail.NoTLS, nil
	case "":
		if ip, _ := netip.ParseAddr(host); host == "localhost" || ip.IsLoopback() { // the zero address is not loopback
			return mail.TLSOpportunistic, nil
		}
		return mail.TLSMandatory, nil
	}
	return mail.TLSMandatory, errors.New("smtpmail: tls must be required, opportunistic or none")
}

// Validate returns the error of the URL, if any.
func (m *Mailer) Validate() error { return m.err }

// Send sends a message. Its errors mask the email address. Permanent failures (5xx) and
// invalid messages are marked auth.Permanent, and so is a non-ASCII address if the server
// does not support SMTPUTF8; other errors may be retried. The context
// limits the whole exchange.
func (m *Mailer) Send(ctx context.Context, msg auth.Message) error {
	if m.err != nil {
		return auth.Permanent(m.err)
	}
	out, err := m.compose(msg)
	if err != nil {
		return auth.Permanent(fmt.Errorf("smtpmail: compose: %w", address.Hide(err, msg.To)))
	}
	timeout := 30 * time.Second
	if deadline, ok := ctx.Deadline(); ok {
		timeout = max(time.Until(deadline), time.Millisecond)
	}
	options := append(slices.Clip(m.options), mail.WithTimeout(timeout), mail.WithoutRset())
	international := !isASCII(m.from.Address + msg.To)
	if !international { // ask for SMTPUTF8 only where it is needed: the next server may lack it
		options = append(options, mail.WithoutSMTPUTF8())
	}
	client, err := mail.NewClient(m.host, options...)
	if err != nil {
		return auth.Permanent(fmt.Errorf("smtpmail: %w", err))
	}
	conn, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return fmt.Errorf("smtpmail: connect: %w", err)
	}
	defer func() { _ = client.CloseWithSMTPClient(conn) }() // an error of QUIT does not change the result
	if ok, _ := conn.Extension("SMTPUTF8"); international && !ok {
		return auth.Permanent(errNoUTF8)
	}
	return sendError(client.SendWithSMTPClient(conn, out), msg.To)
}

// errNoUTF8: an address with non-ASCII letters needs SMTPUTF8 (RFC 6531, section 3.2).
var errNoUTF8 = errors.New("smtpmail: the server does not support SMTPUTF8, which the address needs")

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}

// compose returns the message with both alternatives.
func (m *Mailer) compose(msg auth.Message) (*mail.Msg, error) {
	out := mail.NewMsg()
	out.FromMailAddress(m.from)
	if err := out.To(msg.To); err != nil {
		return nil, err
	}
	_, domain, _ := strings.Cut(m.from.Address, "@")
	out.Subject(msg.Subject)
	out.SetDateWithValue(msg.At)
	out.SetMessageIDWithValue(msg.ID + "@" + domain)     // the same in every retry, so that a second copy is recognised
	out.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no automatic replies
	if msg.Locale != "" {
		out.SetGenHeader("Content-Language", msg.Locale)
	}
	out.SetBodyString(mail.TypeTextPlain, msg.Text)
	if msg.HTML != "" {
		out.AddAlternativeString(mail.TypeTextHTML, msg.HTML)
	}
	return out, nil
}

// sendError marks permanent failures. Its errors mask the email address, which servers
// quote, because they are logged.
func sendError(err error, to string) error {
	if err == nil {
		return nil
	}
	var e *mail.SendError
	wrapped := fmt.Errorf("smtpmail: send: %w", address.Hide(err, to))
	if errors.As(err, &e) && e.ErrorCode() >= 500 {
		return auth.Permanent(wrapped)
	}
	return wrapped
}
