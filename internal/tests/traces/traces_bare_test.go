package traces_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// A store without optional interfaces lacks their functions, and a request for one of them says so.
func TestTracesOfABareStore(t *testing.T) {
	t.Parallel()
	w := &harness.ClassWorld{World: &harness.World{T: t, Log: &harness.SyncBuffer{}}, Tap: storetap.New(struct{ auth.Store }{memstore.New()})}
	w.Env = authtest.NewOn(t, w.Tap, auth.WithRateLimits(auth.RateLimits{Off: true}), auth.WithMail(auth.MailOptions{Sync: true}))
	s := w.NewScene(harness.Row{Kind: harness.OnStolen})
	tr := &tracing{words: &words{now: s.Clock.Now(), names: map[string]string{}}}
	kit, ctx := host.Of(s), t.Context()
	c := kit.Change(ctx, harness.ByOperator())
	u := user(s)
	for _, path := range []string{"GET /me", "GET /me/export", "GET /sessions", "GET /settings", "POST /2fa/setup-totp", "POST /2fa/verify-and-enable", "POST /2fa/disable", "POST /2fa/recovery-codes", "POST /me/confirm", "DELETE /sessions", "POST /logout"} {
		method, path, _ := strings.Cut(path, " ")
		tr.say("# %s %s", method, path)
		var body any
		if method == "POST" && path != "/logout" {
			body = map[string]any{"totp_code": "123456", "password": harness.OwnPassword}
		}
		if path == "/2fa/verify-and-enable" || path == "/me/confirm" || path == "/2fa/recovery-codes" {
			body = map[string]any{"totp_code": "123456"}
		}
		tr.answered(s.Evil.Send(method, path, body, s.Authorization()))
	}
	for _, ask := range []struct {
		name string
		do   func() (any, error)
	}{
		{"Account", func() (any, error) { return kit.Account(ctx, store.ByID(s.Id)) }},
		{"Anonymize", func() (any, error) { return kit.Anonymize(ctx, c, u, "nobody") }},
		{"Export", func() (any, error) { return kit.Export(ctx, s.Id) }},
		{"Factors", func() (any, error) { return kit.Factors() == nil, nil }},
		{"TOTPSecret", func() (any, error) { return kit.TOTPSecret(ctx, s.Id) }},
		{"Roles", func() (any, error) { return kit.Roles(ctx) }},
		{"Written", func() (any, error) { return nil, kit.Flush(ctx) }},
		{"EventsLost", func() (any, error) { return kit.EventsLost(), nil }},
		{"Unlock", func() (any, error) { fill, _, err := kit.Unlock(ctx, u); return len(fill), err }},
		{"PutFirstOwnerLink", func() (any, error) { return kit.PutFirstOwnerLink(ctx, c) }},
		{"Invitations", func() (any, error) { list, _, _, err := kit.Invitations(ctx, "", nil, 1); return list, err }},
		{"ImpersonationTokens", func() (any, error) { return kit.ImpersonationTokens(ctx, "x") }},
		{"RetryMessage", func() (any, error) { return nil, kit.RetryMessage(ctx, &c, &host.Send{}, "x") }},
		{"ImportAll", func() (any, error) { return kit.ImportAll(ctx, store.CreateUsers{Change: c}) }},
		{"SettingsRead", func() (any, error) { n, at := kit.SettingsState(); return []any{n, at}, nil }},
		{"ReadSettings", func() (any, error) { kit.ReloadSettings(ctx); return kit.Site().App, nil }},
		{"SecretKey", func() (any, error) { return kit.SecretKey(ctx, "sk_x") }},
		{"Diagnose", func() (any, error) { return kit.Diagnose(ctx) }},
		{"ImportUser", func() (any, error) {
			return s.ImportUser(ctx, auth.ImportUserParams{Email: s.EvilMail, TOTPSecret: "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"})
		}},
	} {
		tr.say("# %s", ask.name)
		v, err := ask.do()
		tr.answered(returned(t, v, err))
	}
	compareTrace(t, "bare store", tr.lines)
}

// A patch does not change the account that it is applied to, and the two share no memory: a
// change of one would change the other.
func TestPatchedUsersShareNothing(t *testing.T) {
	t.Parallel()
	now := time.Unix(1767323045, 0)
	whole := func() store.Credentials {
		return store.Credentials{User: auth.User{
			ID: "ada", Roles: []string{"a", "b"}, UserMetadata: map[string]any{"k": "v", "in": map[string]any{"k": "v"}}, AppMetadata: map[string]any{"k": "v", "in": map[string]any{"k": "v"}},
			Identities: []auth.Identity{{Provider: "google", Subject: "1", CreatedAt: now}, {Provider: "github", Subject: "2", CreatedAt: now.Add(1)}},
		}}
	}
	roles := []string{"c", "d"}
	key := store.ByIdentity("google", "1")
	for name, p := range map[string]store.UserPatch{
		"nothing": {}, "roles": {Roles: &roles}, "metadata": {UserMetadata: whole().User.UserMetadata, AppMetadata: whole().User.AppMetadata}, "unlink": {Unlink: &key}, "link": {Link: &auth.Identity{Provider: "google", Subject: "3", CreatedAt: now.Add(-1)}},
	} {
		c := whole()
		got := p.Apply(c, now, 0)
		if fmt.Sprint(c) != fmt.Sprint(whole()) {
			t.Errorf("%s: what it was applied to is %+v", name, c)
		}
		for _, u := range []*auth.User{&got.User} {
			u.Roles[0] = "x"
			for i := range u.Identities {
				u.Identities[i].Subject = "x"
			}
			for _, m := range []map[string]any{u.UserMetadata, u.AppMetadata} {
				m["k"], m["in"].(map[string]any)["k"] = "x", "x"
			}
		}
		if fmt.Sprint(c) != fmt.Sprint(whole()) || slices.Contains(roles, "x") || fmt.Sprint(p.UserMetadata) == fmt.Sprint(got.User.UserMetadata) || fmt.Sprint(p.AppMetadata) == fmt.Sprint(got.User.AppMetadata) {
			t.Errorf("%s: what was patched is still a part of what it came from", name)
		}
	}
}

// The owner of an account is notified once of twenty failures in a row.
func TestOwnersAreToldOfTwentyFailures(t *testing.T) {
	t.Parallel()
	w := harness.NewHostileWorldOn(t, memstore.New(), harness.Row{})
	s := w.NewScene(harness.Row{Kind: harness.OnStolen})
	w.Refund()
	for n := 1; n <= 22; n++ {
		s.Evil.Send("POST", "/login", map[string]any{"email": s.Email, "password": harness.EvilPassword}).Want(401)
		told := 0
		host.Of(s).WaitForMessages(t.Context())
		for _, m := range s.Inbox.Messages() {
			if m.Kind == auth.KindManyFailedSignIns && m.To == s.Email {
				told++
			}
		}
		if told != n/20 {
			t.Errorf("after %d failures they were told %d times", n, told)
		}
	}
}
