package pgstore_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// A message that is recorded in the application's own transaction is sent after the
// commit, and not after a rollback.
func TestMessagesFollowTheTransaction(t *testing.T) {
	s := openDatabase(t)
	env := authtest.NewOn(t, s)
	for email, end := range map[string]error{"undone@example.com": errRollback, "done@example.com": nil} {
		inTx(t, s, func(ctx context.Context, _ pgx.Tx) error {
			if _, err := env.SignUp(ctx, auth.SignUpParams{Email: email, Password: "correct horse battery"}); err != nil {
				t.Fatal(err)
			}
			return end
		})
	}
	if n := len(env.Inbox.Messages()); n != 0 {
		t.Errorf("%d messages from within the transactions", n)
	}
	m := env.Mail(t, "done@example.com", store.KindVerifyEmail) // the outbox's next read sends it
	closing, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := env.Close(closing); err != nil {
		t.Fatal(err)
	}
	if all := env.Inbox.Messages(); len(all) != 1 || m.Link == "" {
		t.Errorf("%d messages: %+v", len(all), all)
	}
	if n := count(t, s.Pool(), "select count(*) from auth.messages"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

// A send runs the same statements for known and unknown recipients.
func TestSendsAreTheSameStatements(t *testing.T) {
	c := &counter{}
	env := authtest.NewOn(t, openTraced(t, c))
	ctx := auth.ContextWithClient(t.Context(), store.Client{IP: netip.MustParseAddr("192.0.2.1")})
	env.LoginAs(t, "ada@example.com")
	for name, send := range map[string]func(known bool) error{
		"reset": func(known bool) error {
			return env.SendPasswordReset(ctx, auth.SendPasswordResetParams{Email: adaOrNobody(known)})
		},
		"magic link": func(known bool) error {
			_, err := env.SendMagicLink(ctx, auth.SendMagicLinkParams{Email: adaOrNobody(known), NoCreate: true})
			return err
		},
	} {
		var sent [2][]string
		for i, known := range []bool{true, false} {
			if err := send(known); err != nil { // prepares the statements
				t.Fatal(err)
			}
			env.Clock.Advance(2 * time.Minute)
			c.taken()
			if err := send(known); err != nil {
				t.Fatal(err)
			}
			sent[i], _ = c.taken()
		}
		if !slices.Equal(sent[0], sent[1]) || len(sent[0]) != 2 || !strings.Contains(sent[0][1], "auth.messages") {
			t.Errorf("%s:\n%s", name, strings.Join(append(sent[0], sent[1]...), "\n\n"))
		}
		env.Clock.Advance(2 * time.Minute)
	}
}

func adaOrNobody(known bool) string {
	if known {
		return "ada@example.com"
	}
	return "nobody@example.com"
}
