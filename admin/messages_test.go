package admin_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

// postOffice is a mailer that puts messages into an inbox, except those that it is
// configured to refuse.
type postOffice struct {
	mu      sync.Mutex
	inbox   *auth.Inbox
	refuses map[string]func(auth.Message) error // by email address or phone number
}

func (p *postOffice) open(inbox *auth.Inbox) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.inbox, p.refuses = inbox, map[string]func(auth.Message) error{}
}

// refuse has messages to a recipient refused by why, or accepted again if why is nil.
func (p *postOffice) refuse(to string, why func(auth.Message) error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuses[to] = why
}

func (p *postOffice) Send(ctx context.Context, m auth.Message) error {
	p.mu.Lock()
	inbox, why := p.inbox, p.refuses[m.To]
	p.mu.Unlock()
	if why != nil {
		return why(m)
	}
	return inbox.Send(ctx, m)
}

// talkative is a server that refuses for good, and quotes the whole message.
func talkative(m auth.Message) error {
	return auth.Permanent(fmt.Errorf("550 no such user %s: %s %s %s", m.To, m.Link, m.Code, m.Text))
}

// settled waits until this process has no pending message.
func (o *office) settled() {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), 30*time.Second)
	defer cancel()
	host.Of(o).WaitForMessages(ctx)
}

// messages returns the messages of a query, as the application's code.
func (o *office) messages(p admin.MessagesParams) []store.MessageRecord {
	o.t.Helper()
	page, err := o.adm.Messages(o.t.Context(), admin.System("test").Accepting(), p)
	if err != nil {
		o.t.Fatal(err)
	}
	return page.Messages
}

// becomes waits until the only message of a query is in a state.
func (o *office) becomes(p admin.MessagesParams, state store.MessageState) store.MessageRecord {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), 30*time.Second)
	defer cancel()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		o.settled()
		list := o.messages(p)
		if len(list) == 1 && list[0].State == state {
			return list[0]
		}
		select {
		case <-ctx.Done():
			o.t.Fatalf("%+v, want one that is %s", list, state)
		case <-look.C:
		}
	}
}

// failedMessage returns the id of a magic link that failed, at least once.
func (o *office) failedMessage(u auth.User) string {
	o.t.Helper()
	links := admin.MessagesParams{UserID: u.ID, Kind: auth.KindMagicLink}
	if list := o.messages(links); len(list) > 0 {
		return list[0].ID
	}
	o.post.refuse(u.Email, talkative)
	if _, err := o.SendMagicLink(o.t.Context(), auth.SendMagicLinkParams{Email: u.Email}); err != nil {
		o.t.Fatal(err)
	}
	r := o.becomes(links, store.MessageFailed)
	o.post.refuse(u.Email, nil)
	return r.ID
}

// Sent, failed and waiting messages are listed without their content. A failed message
// arrives by a retry, under the same id.
func TestMessages(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		clerk := o.operator("clerk@example.com", admin.PermMessagesRead, admin.PermMessagesSend)
		ada := o.LoginAs(t, "ada.lovelace@example.com")
		magic := func(email string) {
			t.Helper()
			if _, err := o.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: email}); err != nil {
				t.Fatal(err)
			}
		}
		var secrets []string
		o.post.refuse("ada.lovelace@example.com", func(m auth.Message) error {
			secrets = append(secrets, m.To, m.Link, m.Code, tokenIn(t, m.Link))
			return talkative(m)
		})
		magic("ada.lovelace@example.com")
		failed := o.becomes(admin.MessagesParams{UserID: ada.User.ID, Kind: auth.KindMagicLink}, store.MessageFailed)
		magic("stranger@example.org")
		o.Clock.Advance(time.Second)
		if _, err := o.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: "nobody@example.net", NoCreate: true}); err != nil {
			t.Fatal(err) // an unknown account, to which nothing is sent
		}
		o.settled()

		all := o.do(clerk, "GET /messages?kind=magic_link", "").want(200)
		for _, s := range append(secrets, "stranger@example.org", "nobody", "example.net", "ada.lovelace", "Sign in", "link to") {
			if strings.Contains(all.text, s) {
				t.Errorf("%q is in %s", s, all.text)
			}
		}
		if list := all.body["messages"].([]any); len(list) != 2 {
			t.Fatalf("%d messages, want the one that failed and the stranger's: %s", len(list), all.text)
		}
		a := o.do(clerk, "GET /messages?state=failed&kind=magic_link&user="+ada.User.ID, "").want(200)
		m := a.body["messages"].([]any)[0].(map[string]any)
		if m["id"] != failed.ID || m["to"] != "a•••e@e•••e.com" || m["channel"] != "mail" || m["attempts"] != 1.0 || m["user_id"] != ada.User.ID || !strings.Contains(fmt.Sprint(m["error"]), "550") {
			t.Errorf("%v", m)
		}

		o.post.refuse("ada.lovelace@example.com", nil)
		if a := o.do(clerk, "POST /messages/"+failed.ID+"/retry", "").want(202); a.body["message_id"] != failed.ID {
			t.Errorf("%v", a.body)
		}
		sent := o.becomes(admin.MessagesParams{UserID: ada.User.ID, Kind: auth.KindMagicLink}, store.MessageSent)
		got := o.Mail(t, "ada.lovelace@example.com", auth.KindMagicLink)
		if got.ID != failed.ID || sent.ID != failed.ID || sent.Error != "" || got.Link != secrets[1] {
			t.Errorf("%+v of %+v", sent, got)
		}
		if _, err := o.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Token: tokenIn(t, got.Link)}); err != nil {
			t.Error(err)
		}
		trail, err := o.adm.AuditLog(t.Context(), admin.System("test").Accepting(), admin.AuditLogParams{EventFilter: admin.EventFilter{Action: string(auth.EventMessageFailed)}})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range trail.Events {
			if strings.Contains(e.Reason, secrets[2]) || strings.Contains(e.Reason, secrets[3]) {
				t.Errorf("the audit log says %q", e.Reason)
			}
		}
		if e := o.audit()[0]; e.Type != auth.EventMessageAsked || e.UserID != ada.User.ID || e.Message != auth.KindMagicLink || e.Record.Changes["message_id"].After != failed.ID {
			t.Errorf("recorded %+v", e)
		}
	})
}

func tokenIn(t *testing.T, link string) string {
	t.Helper()
	_, token, ok := strings.Cut(link, "token=")
	if !ok {
		t.Errorf("link %q", link)
	}
	return token
}

// Only failed messages are sent again, while their tokens are valid, and within limits.
func TestRetryRefuses(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		clerk := o.operator("clerk@example.com", admin.PermMessagesSend)
		retry := func(id string) *answer { return o.do(clerk, "POST /messages/"+id+"/retry", "") }
		person := func(name string) auth.User { return o.LoginAs(t, name+"@example.com").User }

		retry(uuid.NewString()).want(404, auth.CodeNotFound)
		retry("nonsense").want(404, auth.CodeNotFound)

		sent := o.failedMessage(person("sent"))
		retry(sent).want(202)
		o.becomes(admin.MessagesParams{State: store.MessageSent, Kind: auth.KindMagicLink}, store.MessageSent)
		retry(sent).want(422, auth.CodeValidationFailed)

		again := person("again")
		id := o.failedMessage(again)
		o.post.refuse(again.Email, talkative)
		retry(id).want(202)
		o.becomes(admin.MessagesParams{UserID: again.ID, Kind: auth.KindMagicLink}, store.MessageFailed)
		retry(id).want(429, auth.CodeRateLimited)

		used := person("used")
		id = o.failedMessage(used)
		o.Clock.Advance(time.Minute)
		if _, err := o.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: used.Email}); err != nil {
			t.Fatal(err) // instead of the one that failed
		}
		retry(id).want(422, auth.CodeValidationFailed)

		late := o.failedMessage(person("late"))
		o.Clock.Advance(time.Hour)
		clerk = o.renewed(clerk)
		retry(late).want(422, auth.CodeValidationFailed)

		gone := person("gone")
		id = o.failedMessage(gone)
		if err := o.adm.DeleteUser(t.Context(), admin.System("test").Accepting(), admin.DeleteUserParams{UserID: gone.ID, Reason: "x"}); err != nil {
			t.Fatal(err)
		}
		retry(id).want(404, auth.CodeNotFound)

		hidden := person("hidden")
		id = o.failedMessage(hidden)
		if _, err := o.adm.AnonymizeUser(t.Context(), admin.System("test").Accepting(), admin.AnonymizeUserParams{UserID: hidden.ID, Reason: "x"}); err != nil {
			t.Fatal(err)
		}
		retry(id).want(404, auth.CodeNotFound)
		for _, r := range o.messages(admin.MessagesParams{Limit: 200}) {
			if r.UserID == gone.ID || r.UserID == hidden.ID {
				t.Errorf("left: %+v", r)
			}
		}
	})
}

// Of several concurrent retries of a message one succeeds, and it arrives once.
func TestRetriesAtOnce(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		ada := o.LoginAs(t, "ada@example.com").User
		id := o.failedMessage(ada)
		var all sync.WaitGroup
		var mu sync.Mutex
		done := 0
		for range 8 {
			all.Go(func() {
				err := o.adm.RetryMessage(t.Context(), admin.System("test").Accepting(), id)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					done++
				case !errors.Is(err, auth.CodeValidationFailed) && !errors.Is(err, auth.CodeRateLimited):
					t.Error(err)
				}
			})
		}
		all.Wait()
		o.becomes(admin.MessagesParams{UserID: ada.ID, Kind: auth.KindMagicLink}, store.MessageSent)
		arrived := 0
		for _, m := range o.Inbox.Messages() {
			if m.ID == id {
				arrived++
			}
		}
		if done != 1 || arrived != 1 {
			t.Errorf("%d retries were carried out, and %d messages arrived", done, arrived)
		}
	})
}

// A message that one instance gave up is listed and sent by another one.
func TestMessagesOfTwoInstances(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		secret := auth.WithSecret([]byte("two instances' secret of 32 byte"))
		one, two := newOffice(t, st, secret), newOffice(t, st, secret)
		ada := one.LoginAs(t, "ada@example.com").User
		id := one.failedMessage(ada)
		if list := two.messages(admin.MessagesParams{State: store.MessageFailed}); len(list) != 1 || list[0].ID != id {
			t.Fatalf("%+v", list)
		}
		if err := two.adm.RetryMessage(t.Context(), admin.System("test").Accepting(), id); err != nil {
			t.Fatal(err)
		}
		one.becomes(admin.MessagesParams{UserID: ada.ID, Kind: auth.KindMagicLink}, store.MessageSent)
		if n := len(one.Inbox.Messages()) + len(two.Inbox.Messages()); n != 1 {
			t.Errorf("%d arrived", n)
		}
	})
}

// Pages of messages join without a gap while more are sent; queries are read strictly.
func TestMessagePages(t *testing.T) {
	onStores(t, func(t *testing.T, store auth.Store) {
		o := newOffice(t, store)
		clerk := o.operator("clerk@example.com", admin.PermMessagesRead)
		send := func(n int) {
			t.Helper()
			if _, err := o.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: fmt.Sprintf("p%d@example.com", n)}); err != nil {
				t.Fatal(err)
			}
			o.Clock.Advance(time.Second)
		}
		const many = 5
		for n := range many {
			send(n)
		}
		seen, cursor := map[string]bool{}, ""
		for page := 0; ; page++ {
			a := o.do(clerk, "GET /messages?kind=magic_link&limit=2"+cursor, "").want(200)
			for _, m := range a.body["messages"].([]any) {
				seen[m.(map[string]any)["id"].(string)] = true
			}
			next, ok := a.body["next_cursor"]
			if !ok {
				t.Fatal("no next_cursor")
			}
			if next == nil {
				break
			}
			cursor = "&cursor=" + next.(string)
			send(many + page)
		}
		if len(seen) != many {
			t.Errorf("%d messages, want those %d that were there", len(seen), many)
		}
		ancient := base64.RawURLEncoding.EncodeToString([]byte(`{"time":"0000-01-01T00:00:00Z","id":"` + uuid.NewString() + `"}`))
		for _, query := range []string{"cursor=" + ancient, "state=lost", "kind=letter", "user=ada", "limit=0", "limit=x", "from=now", "cursor=x", "cursor=e30", "statee=sent", "state=sent&state=sent"} {
			o.do(clerk, "GET /messages?"+query, "").want(422, auth.CodeValidationFailed)
		}
		if a := o.do(clerk, "GET /messages?limit=100000", "").want(200); len(a.body["messages"].([]any)) < many {
			t.Errorf("%s", a.text)
		}
	})
}

// A retry requires that the actor may act on the message's recipient.
func TestRetryForTheStronger(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		o := newOffice(t, st)
		support := o.LoginAs(t, "support@example.com", authtest.Roles(admin.RoleSupport), authtest.AAL2())
		owner := o.LoginAs(t, "owner@example.com", authtest.Roles(auth.RoleOwner))
		id := o.failedMessage(owner.User)
		o.do(support, "POST /messages/"+id+"/retry", "").want(403, auth.CodeTargetStronger)
		o.do(support, "GET /messages", "").want(403, auth.CodeMissingPermission)
		o.do(support, "POST /messages/"+o.failedMessage(support.User)+"/retry", "").want(202)
		o.becomes(admin.MessagesParams{UserID: owner.User.ID, Kind: auth.KindMagicLink}, store.MessageFailed)
	})
}

// A text message is listed like a mail, and each retry of one counts against the limit of
// texts.
func TestTextsAreMessages(t *testing.T) {
	onStores(t, func(t *testing.T, st auth.Store) {
		const phone = "+4930123456"
		line := &postOffice{}
		o := newOffice(t, st, auth.WithSMSSender(line), auth.WithRateLimits(auth.RateLimits{SMSBudget: auth.Rate{Burst: 2, Per: 24 * time.Hour}}))
		line.open(o.Inbox)
		var code string
		line.refuse(phone, func(m auth.Message) error {
			code = m.Code
			return auth.Permanent(fmt.Errorf("30003: %s is unreachable: %s", m.To, m.Text))
		})
		clerk := o.operator("clerk@example.com", admin.PermMessagesRead, admin.PermMessagesSend)
		if _, err := o.SendPhoneCode(t.Context(), auth.SendPhoneCodeParams{Phone: phone}); err != nil {
			t.Fatal(err)
		}
		texts := admin.MessagesParams{Kind: auth.KindPhoneCode}
		failed := o.becomes(texts, store.MessageFailed)
		a := o.do(clerk, "GET /messages?kind=phone_code", "").want(200)
		if m := a.body["messages"].([]any)[0].(map[string]any); m["channel"] != "sms" || m["to"] != "•••56" || m["user_id"] != nil {
			t.Errorf("%v", m)
		}
		if code == "" || strings.Contains(a.text, code) || strings.Contains(a.text, phone[1:]) {
			t.Errorf("%q: %s", code, a.text)
		}
		for _, want := range []int{202, 429} {
			o.do(clerk, "POST /messages/"+failed.ID+"/retry", "").want(want)
			o.becomes(texts, store.MessageFailed)
			o.Clock.Advance(2 * time.Minute) // the gap between two messages
		}
		if e := o.audit()[0]; e.Record.Target != "•••56" || e.UserID != "" {
			t.Errorf("recorded %+v", e)
		}
	})
}
