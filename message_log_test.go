package auth_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// noted returns the messages in a store's log, newest first.
func noted(t *testing.T, st auth.Store) []store.MessageRecord {
	t.Helper()
	s, ok := store.Capability[store.Journal](st)
	if !ok {
		t.Fatal("the store does not tell what became of messages")
	}
	list, err := s.ListMessages(t.Context(), store.MessageQuery{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// onlyNoted returns the only message in a store's log.
func onlyNoted(t *testing.T, store auth.Store) store.MessageRecord {
	t.Helper()
	list := noted(t, store)
	if len(list) != 1 {
		t.Fatalf("%d messages: %+v", len(list), list)
	}
	return list[0]
}

// The log of a message remains correct if the process that sends it crashes.
func TestMessageLogOverACrash(t *testing.T) {
	st, mail := harness.NewStore(t), &harness.PostOffice{}
	crashing := instance(t, st, &harness.PostOffice{})
	shut(t, crashing)
	magicLink(t, crashing, "ada@example.com")
	was := onlyNoted(t, st)
	if was.State != store.MessageQueued || was.Attempts != 0 || was.Kind != auth.KindMagicLink || was.Channel != auth.ChannelEmail || was.To != "a•••a@e•••e.com" || was.UserID != "" {
		t.Errorf("recorded %+v", was)
	}
	later(t, instance(t, st, mail), harness.Lease(crashing.Auth))
	is := onlyNoted(t, st)
	if is.ID != was.ID || is.State != store.MessageSent || is.Attempts != 1 || len(mail.Got) != 1 || mail.Got[0].ID != is.ID {
		t.Errorf("recorded %+v, sent %+v", is, received(mail))
	}
}

// A claim that expired before its process made the attempt does not bring the last
// attempt closer: after an outage that fills the queues, a temporary failure is retried.
func TestExpiredClaimsAreNoAttempts(t *testing.T) {
	st := harness.NewStore(t)
	mail := &harness.PostOffice{Answer: func(int) error { return errors.New("busy") }}
	options := auth.WithMail(auth.MailOptions{Attempts: 3})
	e := instance(t, st, mail, options)
	shut(t, e)
	magicLink(t, e, "ada@example.com")
	journal, _ := store.Capability[store.Journal](st)
	lease := harness.Lease(e.Auth)
	for i := range 3 {
		at := e.Clock.Now().Add(time.Duration(i+1) * lease)
		list, err := journal.ClaimMessages(t.Context(), store.ClaimMessages{Now: at, Until: at.Add(lease), Limit: 1})
		if err != nil || len(list) != 1 {
			t.Fatalf("%v, %v", list, err)
		}
	}
	later(t, instance(t, st, mail, options), 4*lease)
	if is := onlyNoted(t, st); is.State != store.MessageQueued || is.Attempts != 1 || is.Error != "busy" || len(mail.Got) != 1 {
		t.Errorf("recorded %+v after %d attempts", is, len(mail.Got))
	}
}

// A message that is not sent any more is logged as dropped, not as sent.
func TestMessageLogOfWhatWasDropped(t *testing.T) {
	st, mail := harness.NewStore(t), &harness.PostOffice{}
	e := instance(t, st, mail)
	shut(t, e)
	magicLink(t, e, "ada@example.com")
	if _, err := st.Sweep(t.Context(), e.Clock.Now().Add(time.Hour), 100); err != nil {
		t.Fatal(err)
	}
	if is := onlyNoted(t, st); is.State != store.MessageDropped {
		t.Errorf("recorded %+v", is)
	}
}

// After a temporary failure a message waits; after a permanent one it has failed. The log
// has the reason.
func TestMessageLogOfFailures(t *testing.T) {
	st := harness.NewStore(t)
	mail := &harness.PostOffice{Answer: func(n int) error {
		if n == 1 {
			return errors.New("busy")
		}
		return auth.Permanent(errors.New("no such mailbox"))
	}}
	one := instance(t, st, mail)
	auth.Retries(one.Auth, 4*time.Second)
	ada := one.LoginAs(t, "ada@example.com").User
	magicLink(t, one, "ada@example.com")
	shut(t, one)
	if is := onlyNoted(t, st); is.State != store.MessageQueued || is.Attempts != 1 || is.Error != "busy" || is.UserID != ada.ID {
		t.Errorf("recorded %+v", is)
	}
	later(t, instance(t, st, mail), 4*time.Second)
	if is := onlyNoted(t, st); is.State != store.MessageFailed || is.Attempts != 2 || is.Error != "no such mailbox" {
		t.Errorf("recorded %+v", is)
	}
}

// Decoys are invisible to operators. Recording a decoy costs a change the same as a
// message, and the record is deleted when it expires.
func TestMessageLogHasNoDecoys(t *testing.T) {
	store := harness.NewStore(t)
	e := instance(t, store, &harness.PostOffice{})
	for i := range 2 { // from a process that sends, and from a stopped one
		if i == 1 {
			shut(t, e)
			e.Clock.Advance(2 * time.Minute)
		}
		if _, err := e.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: "nobody@example.com", NoCreate: true}); err != nil {
			t.Fatal(err)
		}
		if list := noted(t, store); len(list) != 0 {
			t.Errorf("told of %+v", list)
		}
	}
	later(t, instance(t, store, &harness.PostOffice{}), 2*time.Minute+harness.Lease(e.Auth))
	if list := noted(t, store); len(list) != 0 {
		t.Errorf("told of %+v", list)
	}
}

// If a mail server quotes a message in its error, neither the log nor hooks nor lists show
// links and codes.
func TestErrorsOfMailersHideLinksAndCodes(t *testing.T) {
	var log bytes.Buffer
	store, events := harness.NewStore(t), make(chan auth.Event, 10)
	var secrets []string
	mail := &harness.PostOffice{}
	mail.Answer = func(n int) error {
		m := mail.Got[n-1]
		_, token, _ := strings.Cut(m.Link, "token=")
		secrets = append(secrets, token, m.Code, m.To)
		return auth.Permanent(fmt.Errorf("554 refused: %s %s %s\n%s", m.To, m.Link, token, m.Text))
	}
	e := instance(t, store, mail, auth.WithLogger(slog.New(slog.NewTextHandler(&log, nil))), auth.WithHooks(auth.Hooks{OnEvent: func(_ context.Context, e auth.Event) { events <- e }}))
	magicLink(t, e, "ada@example.com")
	shut(t, e)
	is, failed := onlyNoted(t, store), <-events
	for name, text := range map[string]string{"log": log.String(), "event": failed.Reason + failed.Err.Error(), "list": is.Error} {
		if !strings.Contains(text, "554 refused") {
			t.Errorf("%s: %q", name, text)
		}
		for _, s := range secrets {
			if s == "" || strings.Contains(text, s) {
				t.Errorf("%s: %q shows %q", name, text, s)
			}
		}
	}
}

// The owner of a taken email address gets a valid link, even if store calls fail after the
// account was found.
func TestOwnerOfATakenAddressGetsAGoodLink(t *testing.T) {
	tap := storetap.New(harness.NewStore(t))
	w := &harness.World{T: t, Log: &harness.SyncBuffer{}, Env: authtest.NewOn(t, tap, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))}
	auth.Retries(w.Auth, time.Millisecond)
	body := map[string]any{"email": harness.AdaMail, "password": harness.GoodPassword}
	w.Do("POST", "/signup", body).Want(200)
	var mu sync.Mutex
	var failed []string // first failed method of each call after the account was found
	links := 0          // calls that store the link, and not the decoy for wrong codes
	tap.Reset(storetap.Hooks{Edit: func(method string, c *store.Change) {
		mu.Lock()
		defer mu.Unlock()
		if method == "PutToken" && c.By.System == "account exists" {
			links++
		}
	}, Fault: func(_ context.Context, method string, _ int) storetap.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case method == "CreateUser":
			failed = []string{}
		case method == "PutToken" && links == 0:
			return storetap.FailsBefore
		case failed != nil && !slices.Contains(failed, method):
			failed = append(failed, method)
			return storetap.FailsBefore
		}
		return storetap.NoFault
	}})
	w.Do("POST", "/signup", body).Want(200)
	token := w.LinkToken(harness.AdaMail, auth.KindAccountExists)
	tap.Reset(storetap.Hooks{})
	if mu.Lock(); !slices.Equal(failed, []string{"Take", "User", "PutToken"}) {
		t.Errorf("failed: %v", failed)
	}
	mu.Unlock()
	w.Do("POST", "/reset-password", map[string]any{"token": token, "new_password": "another horse battery"}).Want(200)
	w.PostLogin(harness.AdaMail, "another horse battery").Session()
}

// After a sign-in with the right password, an account with an unconfirmed email address is
// sent the link again, even if the store failed before.
func TestConfirmationIsSentAgainAfterAFault(t *testing.T) {
	tap := storetap.New(harness.NewStore(t))
	w := &harness.World{T: t, Log: &harness.SyncBuffer{}, Env: authtest.NewOn(t, tap, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))}
	auth.Retries(w.Auth, time.Millisecond)
	w.Do("POST", "/signup", map[string]any{"email": harness.AdaMail, "password": harness.GoodPassword}).Want(200)
	w.LinkToken(harness.AdaMail, auth.KindVerifyEmail)
	w.Clock.Advance(10 * time.Minute)
	w.Inbox.Clear()
	var failed atomic.Bool
	tap.Reset(storetap.Hooks{Fault: func(_ context.Context, method string, _ int) storetap.Fault {
		if method == "PutToken" && !failed.Swap(true) {
			return storetap.FailsBefore
		}
		return storetap.NoFault
	}})
	w.Do("POST", "/login", map[string]any{"email": harness.AdaMail, "password": harness.GoodPassword}).Want(401)
	w.PostConfirm(harness.AdaMail)
	if tap.Reset(storetap.Hooks{}); !failed.Load() {
		t.Error("nothing failed")
	}
}

// Only the latest test message is awaited.
func TestOneTestMessageIsAwaited(t *testing.T) {
	w := harness.NewWorld(t)
	kit, ctx := host.Of(w), t.Context()
	u, err := w.Store.User(ctx, store.ByID(w.Member("ada@example.com").User.ID))
	if err != nil {
		t.Fatal(err)
	}
	test, err := kit.PermitTest(ctx, u, auth.ChannelEmail)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the change of the first one fails
		c := kit.Change(ctx, auth.Authority{System: "test"})
		test.Add(ctx, &c)
		if n := auth.AwaitedMessages(w.Auth); n != 1 || len(c.Messages) != 1 {
			t.Errorf("%d awaited, %d enclosed", n, len(c.Messages))
		}
	}
	if test.Forget(); auth.AwaitedMessages(w.Auth) != 0 {
		t.Error("awaited still")
	}
}
