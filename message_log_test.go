package auth_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// noted is what a store tells of messages, newest first.
func noted(t *testing.T, st auth.Store) []store.MessageRecord {
	t.Helper()
	s, ok := store.Capability[store.MessageLogStore](st)
	if !ok {
		t.Fatal("the store does not tell what became of messages")
	}
	list, err := s.ListMessages(t.Context(), store.MessageQuery{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// onlyNoted is the one message that a store tells of.
func onlyNoted(t *testing.T, store auth.Store) store.MessageRecord {
	t.Helper()
	list := noted(t, store)
	if len(list) != 1 {
		t.Fatalf("%d messages: %+v", len(list), list)
	}
	return list[0]
}

// What is told of a message stays true when the process dies that was to send it.
func TestMessageLogOverACrash(t *testing.T) {
	st, mail := newStore(t), &postOffice{}
	dying := instance(t, st, &postOffice{})
	shut(t, dying)
	magicLink(t, dying, "ada@example.com")
	was := onlyNoted(t, st)
	if was.State != store.MessageQueued || was.Attempts != 0 || was.Kind != auth.KindMagicLink || was.Channel != auth.ChannelEmail || was.To != "a•••a@e•••e.com" || was.UserID != "" {
		t.Errorf("recorded %+v", was)
	}
	later(t, instance(t, st, mail), auth.Lease(dying.Auth))
	is := onlyNoted(t, st)
	if is.ID != was.ID || is.State != store.MessageSent || is.Attempts != 2 || len(mail.got) != 1 || mail.got[0].ID != is.ID {
		t.Errorf("recorded %+v, sent %+v", is, mail.received())
	}
}

// A message that nobody sends any more was dropped, and not sent.
func TestMessageLogOfWhatWasDropped(t *testing.T) {
	st, mail := newStore(t), &postOffice{}
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

// What fails for now waits, what fails for good has failed, each with the reason.
func TestMessageLogOfFailures(t *testing.T) {
	st := newStore(t)
	mail := &postOffice{answer: func(n int) error {
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

// Decoys are nobody's message: operators see none, and what is recorded of one costs the
// change the same and goes when it is over.
func TestMessageLogHasNoDecoys(t *testing.T) {
	store := newStore(t)
	e := instance(t, store, &postOffice{})
	for i := range 2 { // from a process that sends, and from one that has stopped
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
	later(t, instance(t, store, &postOffice{}), 2*time.Minute+auth.Lease(e.Auth))
	if list := noted(t, store); len(list) != 0 {
		t.Errorf("told of %+v", list)
	}
}

// A server that repeats what it was given to send tells neither the log nor hooks nor
// lists what lets one in.
func TestErrorsOfMailersHideLinksAndCodes(t *testing.T) {
	var log bytes.Buffer
	store, told := newStore(t), make(chan auth.Event, 10)
	var secrets []string
	mail := &postOffice{}
	mail.answer = func(n int) error {
		m := mail.got[n-1]
		_, token, _ := strings.Cut(m.Link, "token=")
		secrets = append(secrets, token, m.Code, m.To)
		return auth.Permanent(fmt.Errorf("554 refused: %s %s %s\n%s", m.To, m.Link, token, m.Text))
	}
	e := instance(t, store, mail, auth.WithLogger(slog.New(slog.NewTextHandler(&log, nil))), auth.WithHooks(auth.Hooks{OnEvent: func(_ context.Context, e auth.Event) { told <- e }}))
	magicLink(t, e, "ada@example.com")
	shut(t, e)
	is, failed := onlyNoted(t, store), <-told
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
