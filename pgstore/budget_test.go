package pgstore_test

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/store"
)

// givesBack is the entry of the statements that no request waits for: refunds of attempts
// with right passwords and codes, where no other attempt includes the refund.
const givesBack = "gives tries back"

// counter counts the statements that reach the driver.
type counter struct {
	mu   sync.Mutex
	list []string
}

func (c *counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	sql := d.SQL
	if ctx.Value(asked{}) == nil && laterOn(sql) {
		return ctx
	}
	if len(d.Args) == 5 && strings.Contains(sql, "auth.take(") {
		if costs, ok := d.Args[3].([]int32); ok && !slices.ContainsFunc(costs, func(cost int32) bool { return cost >= 0 }) {
			sql = givesBack
		}
	}
	c.list = append(c.list, sql)
	return ctx
}

func (c *counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// behindTheScenes reports whether a statement belongs to the outbox while no request waits
// for it, or to the reader of settings. TestSettingsCostNoStatement (package admin) checks
// that no request runs that reader.
func behindTheScenes(sql string) bool {
	return strings.Contains(sql, "from auth.settings") || strings.HasPrefix(sql, "with finished as") || strings.Contains(sql, "update auth.messages m set attempts")
}

// asked marks the context of a test's own calls.
type asked struct{}

// laterOn reports whether a process sends a statement in the background, a second or more
// after the request.
func laterOn(sql string) bool {
	return strings.HasPrefix(sql, "select auth.note_events(") || strings.Contains(sql, "auth.counts") || strings.Contains(sql, "auth.active")
}

// taken returns the statements of requests since the last call, and separately the number
// of the limiter's statements.
func (c *counter) taken() (statements []string, limiter int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, sql := range c.list {
		if sql == givesBack || behindTheScenes(sql) {
			continue
		}
		if strings.Contains(sql, "auth.take(") || strings.Contains(sql, "auth.limits") && !strings.Contains(sql, "auth.sessions") { // a refresh includes its draw
			limiter++
		} else {
			statements = append(statements, sql)
		}
	}
	c.list = nil
	return statements, limiter
}

// The cost of a sign-in is its round trips: each flow has a budget of statements, in
// steady state.
func TestStatementBudget(t *testing.T) {
	c := &counter{}
	st := openTraced(t, c)
	env := authtest.NewOn(t, st)
	ctx := context.WithValue(t.Context(), asked{}, true)
	ada := env.LoginAs(t, "ada@example.com")
	env.LoginAs(t, "ben@example.com") // has a known device from now on
	const phone = "+4930123456"
	code := func() string {
		env.Clock.Advance(2 * time.Minute)
		env.Inbox.Clear()
		if _, err := env.SendPhoneCode(ctx, auth.SendPhoneCodeParams{Phone: phone}); err != nil {
			t.Fatal(err)
		}
		return env.Mail(t, phone, store.KindPhoneCode).Code
	}
	if _, err := env.VerifyPhoneCode(ctx, auth.VerifyPhoneCodeParams{Phone: phone, Code: code()}); err != nil {
		t.Fatal(err) // the account exists from now on
	}
	ready := code()
	// The client's IP address is known in every flow, as in HTTP handlers.
	ctx = auth.ContextWithClient(ctx, store.Client{IP: netip.MustParseAddr("192.0.2.1")})
	for name, flow := range map[string]struct {
		statements, limiter int
		run                 func() error
	}{
		"login": {2, 1, func() error {
			_, err := env.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
			return err
		}},
		"a second login, which gives back what the first drew": {2, 1, func() error {
			_, err := env.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: authtest.Password})
			return err
		}},
		// The notice reads its limit, and draws from it once it is sent.
		"login on a new device": {2, 3, func() error {
			client := store.Client{IP: netip.MustParseAddr("192.0.2.1"), Device: "new"}
			_, err := env.Login(auth.ContextWithClient(ctx, client), auth.LoginParams{Email: "ben@example.com", Password: authtest.Password})
			return err
		}},
		"a wrong password": {1, 1, func() error {
			_, err := env.Login(ctx, auth.LoginParams{Email: "ada@example.com", Password: "wrong horse battery"})
			if errors.Is(err, auth.CodeInvalidCredentials) {
				err = nil
			}
			return err
		}},
		"refresh": {2, 0, func() error {
			_, err := env.Refresh(ctx, auth.RefreshParams{RefreshToken: ada.RefreshToken})
			return err
		}},
		"me": {1, 0, func() error { return me(ctx, env, ada) }},
		"sign-up": {1, 1, func() error {
			_, err := env.SignUp(ctx, auth.SignUpParams{Email: "new@example.com", Password: "correct horse battery"})
			return err
		}},
		"verify a code": {2, 1, func() error {
			_, err := env.VerifyPhoneCode(ctx, auth.VerifyPhoneCodeParams{Phone: phone, Code: ready})
			return err
		}},
	} {
		c.taken()
		if err := flow.run(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if statements, limiter := c.taken(); len(statements) > flow.statements || limiter > flow.limiter {
			t.Errorf("%s: %d statements and %d of the limiter, want %d and %d:\n%s", name, len(statements), limiter, flow.statements, flow.limiter, strings.Join(slices.Compact(statements), "\n"))
		}
	}
}

func me(ctx context.Context, env *authtest.Env, s *authtest.SignedIn) error {
	claims, err := env.Verify(s.AccessToken)
	if err == nil {
		_, _, err = env.Current(ctx, claims)
	}
	return err
}
