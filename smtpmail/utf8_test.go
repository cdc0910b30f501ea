package smtpmail_test

import (
	"net/url"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/smtpmail"
)

// A non-ASCII local part is sent only to a server with SMTPUTF8 (RFC 6531), and other
// addresses are sent without it to every server.
func TestNonASCIIAddress(t *testing.T) {
	for _, c := range []struct {
		to              string
		ascii           bool
		delivered, utf8 bool
	}{
		{"jörg@example.com", true, false, false},
		{"jörg@example.com", false, true, true},
		{"ada@example.com", true, true, false},
		{"ada@example.com", false, true, false},
	} {
		s := &server{ascii: c.ascii}
		start(t, s, nil, false)
		m := smtpmail.New("smtp://" + s.addr + "?from=" + url.QueryEscape("no-reply@example.com"))
		msg := message
		msg.To = c.to
		err := m.Send(t.Context(), msg)
		got := s.delivered(t)
		if (err == nil) != c.delivered || len(got) > 0 != c.delivered || !c.delivered && !auth.IsPermanent(err) {
			t.Errorf("%s, ASCII only %v: %v, %d delivered", c.to, c.ascii, err, len(got))
		}
		if len(got) > 0 && (got[0].to != c.to || got[0].utf8 != c.utf8) {
			t.Errorf("%s, ASCII only %v: %+v", c.to, c.ascii, got[0])
		}
	}
}
