package smtpmail

import (
	"strings"
	"testing"

	"github.com/wneessen/go-mail"
)

// By default no password is sent unencrypted, or to the port of another protocol.
func TestURLDefaults(t *testing.T) {
	for url, want := range map[string]struct {
		server string
		policy mail.TLSPolicy
	}{
		"smtp://smtp.example.com":                        {"smtp.example.com:587", mail.TLSMandatory},
		"smtp://smtp.example.com:25":                     {"smtp.example.com:25", mail.TLSMandatory},
		"smtp://smtp.example.com:1":                      {"smtp.example.com:1", mail.TLSMandatory},
		"smtp://smtp.example.com:65535?tls=none":         {"smtp.example.com:65535", mail.NoTLS},
		"smtp://smtp.example.com?tls=opportunistic":      {"smtp.example.com:587", mail.TLSOpportunistic},
		"smtp://192.0.2.1":                               {"192.0.2.1:587", mail.TLSMandatory},
		"smtp://localhost.example.com":                   {"localhost.example.com:587", mail.TLSMandatory},
		"smtp://localhost":                               {"localhost:587", mail.TLSOpportunistic},
		"smtp://127.0.0.1":                               {"127.0.0.1:587", mail.TLSOpportunistic},
		"smtp://localhost?tls=required":                  {"localhost:587", mail.TLSMandatory},
		"smtps://smtp.example.com":                       {"smtp.example.com:465", mail.TLSMandatory},
		"smtps://ada:s3cret@smtp.example.com:2465?helo=": {"smtp.example.com:2465", mail.TLSMandatory},
	} {
		m := &Mailer{}
		server, query, _ := strings.Cut(url, "?")
		if err := m.configure(server + "?from=a@example.com&" + query); err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		c, err := mail.NewClient(m.host, m.options...)
		if err != nil || c.ServerAddr() != want.server || c.TLSPolicy() != want.policy.String() {
			t.Errorf("%s: %s with %s, %v", url, c.ServerAddr(), c.TLSPolicy(), err)
		}
	}
}
