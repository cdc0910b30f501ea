package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/authmount/auth/store"
)

// finishing is a store that records outcomes.
type finishing struct {
	store.Journal
	told []store.FinishMessage
	err  error
}

func (s *finishing) FinishMessage(ctx context.Context, f store.FinishMessage) error {
	if _, bounded := ctx.Deadline(); !bounded {
		return errors.New("it may hang for ever")
	}
	s.told = append(s.told, f)
	return s.err
}

// The complete outcome of an attempt: the effects on the mailer, the store, the application
// and a waiting caller, and whether this process retries.
func TestOutcomes(t *testing.T) {
	const day = 24 * time.Hour
	busy, gone := errors.New("busy"), Permanent(errors.New("no such mailbox ada@example.com, nor https://auth.test/x?token=hush"))
	hidden := "no such mailbox a•••a@e•••e.com, nor [redacted]"
	later := func(d time.Duration, n int, why string) store.FinishMessage {
		return store.FinishMessage{State: store.MessageQueued, RetryAt: time.Time{}.Add(d), Error: why, Attempts: n}
	}
	failed := func(n int, why string) store.FinishMessage {
		return store.FinishMessage{State: store.MessageFailed, Error: why, KeepUntil: time.Time{}.Add(day), Attempts: n}
	}
	type outcome struct {
		sent   int // number of calls of the mailer
		told   store.FinishMessage
		failed string // reported to the application
		log    string
		again  bool
		counts int
	}
	none := store.FinishMessage{ID: "none"}
	for name, c := range map[string]struct {
		memory  bool // without a store
		attempt int  // number of the previous attempt
		answer  error
		decoy   bool
		sealed  bool // encrypted with another secret
		expires time.Duration
		lease   time.Duration
		want    outcome
	}{
		"sent":                        {want: outcome{1, store.FinishMessage{State: store.MessageSent, Attempts: 1}, "", "message sent", false, 1}},
		"sent at last":                {attempt: 2, want: outcome{1, store.FinishMessage{State: store.MessageSent, Attempts: 3}, "", "message sent", false, 1}},
		"sent from memory":            {memory: true, want: outcome{1, none, "", "message sent", false, 1}},
		"not yet":                     {answer: busy, want: outcome{1, later(time.Minute, 1, "busy"), "", "message not sent, retrying", false, 0}},
		"not yet, again":              {attempt: 1, answer: busy, want: outcome{1, later(2*time.Minute, 2, "busy"), "", "message not sent, retrying", false, 0}},
		"not yet from memory":         {memory: true, answer: busy, want: outcome{1, none, "", "message not sent, retrying", true, 0}},
		"not any more":                {attempt: 2, answer: busy, want: outcome{1, failed(3, "busy"), "busy", "message failed", false, 0}},
		"not any more from memory":    {memory: true, attempt: 2, answer: busy, want: outcome{1, none, "busy", "message failed", false, 0}},
		"not before it expires":       {answer: busy, expires: time.Minute, want: outcome{1, failed(1, "busy"), "busy", "message failed", false, 0}},
		"just before it expires":      {answer: busy, expires: time.Minute + 1, want: outcome{1, later(time.Minute, 1, "busy"), "", "message not sent, retrying", false, 0}},
		"never":                       {answer: gone, want: outcome{1, failed(1, hidden), hidden, "message failed", false, 0}},
		"never from memory":           {memory: true, answer: gone, want: outcome{1, none, hidden, "message failed", false, 0}},
		"a decoy":                     {decoy: true, want: outcome{0, store.FinishMessage{Attempts: 1}, "", "", false, 0}},
		"a decoy in memory":           {decoy: true, memory: true, want: outcome{0, none, "", "", false, 0}},
		"expired":                     {expires: -1, want: outcome{0, store.FinishMessage{State: store.MessageDropped, Error: errExpired.Error(), Attempts: 1}, errExpired.Error(), "message failed", false, 0}},
		"expired in memory":           {memory: true, expires: -1, want: outcome{0, none, errExpired.Error(), "message failed", false, 0}},
		"a decoy that expired":        {decoy: true, expires: -1, want: outcome{0, store.FinishMessage{Attempts: 1}, "", "", false, 0}},
		"of another secret":           {sealed: true, want: outcome{0, later(time.Minute, 1, errNotOpened.Error()), "", "cannot open a message", false, 0}},
		"with little of its lease":    {lease: time.Second, want: outcome{0, none, "", "", false, 0}},
		"with enough of its lease":    {lease: time.Second + 1, want: outcome{1, store.FinishMessage{State: store.MessageSent, Attempts: 1}, "", "message sent", false, 1}},
		"in memory there is no lease": {memory: true, lease: -time.Hour, want: outcome{1, none, "", "message sent", false, 1}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			now := time.Now()
			mailer, st := &scripted{answers: []error{c.answer}}, &finishing{}
			b, _ := testOutbox(t, Options{Attempts: 3, Timeout: time.Second, Workers: 1}, mailer)
			defer func() { _ = b.Close(context.WithoutCancel(t.Context())) }()
			b.store, b.o.Log, b.Backoff = st, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})), func(n int) time.Duration { return time.Duration(n) * time.Minute }
			if c.memory {
				b.store = nil
			}
			out := magic
			out.Link = "https://auth.test/x?token=hush"
			if c.decoy {
				out.To = ""
			}
			b.o.Open = func(store.SealedMessage) (Outgoing, error) {
				if c.sealed {
					return Outgoing{}, errors.New("another secret")
				}
				return out, nil
			}
			var told []string
			counts := 0
			b.o.Failed = func(_ context.Context, m Message, err error) {
				if want := (Message{ID: "m", Kind: store.KindMagicLink, Channel: store.ChannelEmail, To: "ada@example.com"}); !reflect.DeepEqual(m, want) {
					t.Errorf("%s: told of %+v", name, m)
				}
				told = append(told, err.Error())
			}
			b.o.Sent = func(k store.Kind) {
				if counts++; k != store.KindMagicLink {
					t.Errorf("%s: %s is counted", name, k)
				}
			}
			first := make(chan error, 1)
			b.firstAttempts["m"] = first
			m := &store.SealedMessage{ID: "m", Attempts: c.attempt + 1, NextAt: now.Add(day), ExpiresAt: now.Add(day)}
			if c.expires != 0 {
				m.ExpiresAt = now.Add(c.expires)
			}
			if c.lease != 0 {
				m.NextAt = now.Add(c.lease)
			}
			q := b.queued(m)
			got := outcome{told: none, again: b.attempt(t.Context(), q), sent: len(mailer.sent), counts: counts, failed: strings.Join(told, " and ")}
			if len(st.told) > 0 {
				got.told = st.told[0]
			}
			want := c.want
			for _, f := range []*store.FinishMessage{&want.told} {
				if f.ID == "none" {
					continue
				}
				f.ID, f.At = "m", now
				for _, at := range []*time.Time{&f.RetryAt, &f.KeepUntil} {
					if !at.IsZero() {
						*at = now.Add(at.Sub(time.Time{}))
					}
				}
			}
			if got.log = want.log; len(st.told) > 1 || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: %+v\nwant %+v", name, got, want)
			}
			if want.log == "" && log.Len() > 0 || !strings.Contains(log.String(), want.log) || strings.Contains(log.String(), "ada@") || strings.Contains(log.String(), "hush") {
				t.Errorf("%s: the log says %q", name, log.String())
			}
			select {
			case err := <-first:
				if got.sent != 1 || fmt.Sprint(err) != fmt.Sprint(q.redact(c.answer)) || err != nil && strings.Contains(err.Error(), "ada@") {
					t.Errorf("%s: whoever waits is told %v", name, err)
				}
			default:
				if got.sent == 1 {
					t.Errorf("%s: whoever waits is told nothing", name)
				}
			}
			select {
			case <-b.wakeup:
				if c.lease != time.Second {
					t.Errorf("%s: looks for others at once", name)
				}
			default:
				if c.lease == time.Second {
					t.Errorf("%s: nobody looks for it", name)
				}
			}
			<-time.After(want.told.RetryAt.Sub(now)) // the bubble's clock
			synctest.Wait()
			select {
			case <-b.wakeup:
				if want.told.RetryAt.IsZero() {
					t.Errorf("%s: looked for once more", name)
				}
			default:
				if !want.told.RetryAt.IsZero() {
					t.Errorf("%s: nobody looks for it once more", name)
				}
			}
			if len(mailer.sent) == 1 {
				if m := mailer.sent[0]; m.ID != "m" || !m.At.Equal(now) || m.To != "ada@example.com" || m.Kind != store.KindMagicLink || m.Link != out.Link {
					t.Errorf("%s: sent %+v", name, m)
				}
			}
		})
	}
}
