package auth_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/authtest"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// received returns the kinds of the sent messages.
func received(p *harness.PostOffice) []auth.Kind {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	kinds := []auth.Kind{}
	for _, m := range p.Got {
		kinds = append(kinds, m.Kind)
	}
	return kinds
}

// wrote reports whether a message was sent to a recipient.
func wrote(p *harness.PostOffice, to string) bool {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	return slices.ContainsFunc(p.Got, func(m auth.Message) bool { return m.To == to })
}

var outboxSecret = []byte("an outbox's secret of 32 bytes..")

// instance is one process of a service on a store.
func instance(t *testing.T, store auth.Store, mailer auth.Mailer, opts ...auth.Option) *authtest.Env {
	t.Helper()
	base := []auth.Option{auth.WithSecret(outboxSecret), auth.WithMailer(mailer), auth.WithSMSSender(mailer)}
	return authtest.NewOn(t, store, append(base, opts...)...)
}

// shut closes an instance, which sends its queue first.
func shut(t *testing.T, e *authtest.Env) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := e.Close(ctx); err != nil {
		t.Error(err)
	}
}

// later makes an instance send what is overdue some time after the start, and closes it,
// so that all its work is done.
func later(t *testing.T, e *authtest.Env, d time.Duration) {
	t.Helper()
	e.Clock.Advance(d)
	auth.Poll(t.Context(), e.Auth)
	shut(t, e)
}

func magicLink(t *testing.T, e *authtest.Env, email string) {
	t.Helper()
	if _, err := e.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: email}); err != nil {
		t.Fatal(err)
	}
}

// waiting returns the number of messages in the store.
func waiting(t *testing.T, st auth.Store, at time.Time) int {
	t.Helper()
	s, ok := store.Capability[store.Journal](st)
	if !ok {
		t.Fatal("the store keeps no messages")
	}
	list, err := s.ClaimMessages(t.Context(), store.ClaimMessages{Now: at, Until: at, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// A committed message is sent even if its process crashes: by any instance after its
// lease, and not before.
func TestOutboxOutlivesACrash(t *testing.T) {
	store, first, second := harness.NewStore(t), &harness.PostOffice{}, &harness.PostOffice{}
	crashing := instance(t, store, first)
	shut(t, crashing) // from here on it commits and sends nothing
	magicLink(t, crashing, "ada@example.com")
	later(t, instance(t, store, second), harness.Lease(crashing.Auth)-time.Second)
	if got := received(second); len(got) != 0 {
		t.Fatalf("taken from a process that may be at it: %v", got)
	}
	e := instance(t, store, second)
	later(t, e, harness.Lease(e.Auth))
	if got := received(second); !slices.Equal(got, []auth.Kind{auth.KindMagicLink}) || second.Got[0].To != "ada@example.com" || second.Got[0].Link == "" {
		t.Errorf("sent %v", second.Got)
	}
	if len(received(first)) != 0 || waiting(t, store, e.Clock.Now().Add(time.Minute)) != 0 {
		t.Errorf("the first sent %v, and %d wait", received(first), waiting(t, store, e.Clock.Now().Add(time.Minute)))
	}
}

// lostAnswer is a store that commits and returns an error.
type lostAnswer struct{ auth.Store }

func (l lostAnswer) Unwrap() auth.Store { return l.Store }

func (l lostAnswer) PutToken(ctx context.Context, c store.PutToken) error {
	if err := l.Store.PutToken(ctx, c); err != nil {
		return err
	}
	return context.Canceled
}

// If the outcome of a change is unknown, its message is sent.
func TestOutboxWhenTheOutcomeIsUnknown(t *testing.T) {
	store, mail := harness.NewStore(t), &harness.PostOffice{}
	e := instance(t, lostAnswer{store}, mail)
	if _, err := e.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: "ada@example.com"}); err == nil {
		t.Fatal("no error")
	}
	later(t, e, harness.Lease(e.Auth))
	if got := received(mail); !slices.Equal(got, []auth.Kind{auth.KindMagicLink}) {
		t.Errorf("sent %v", got)
	}
}

// Without failures each message is sent once, however many instances poll.
func TestOutboxSendsOnce(t *testing.T) {
	store, mail := harness.NewStore(t), &harness.PostOffice{}
	one, two := instance(t, store, mail), instance(t, store, mail)
	const many = 20
	for i := range many {
		magicLink(t, one, string(rune('a'+i))+"@example.com")
		auth.Poll(t.Context(), two.Auth)
	}
	shut(t, one)
	later(t, two, harness.Lease(one.Auth))
	seen := map[string]int{}
	for _, m := range mail.Got {
		seen[m.To]++
	}
	if len(mail.Got) != many || len(seen) != many {
		t.Errorf("%d messages to %d addresses", len(mail.Got), len(seen))
	}
}

// A message is not sent after its token became invalid.
func TestOutboxDropsDeadTokens(t *testing.T) {
	store, mail := harness.NewStore(t), &harness.PostOffice{}
	e := instance(t, store, mail)
	shut(t, e)
	magicLink(t, e, "ada@example.com")
	e.Clock.Advance(2 * time.Minute)
	magicLink(t, e, "ada@example.com") // invalidates the first one
	next := instance(t, store, mail)
	later(t, next, 2*time.Minute+harness.Lease(e.Auth))
	if len(mail.Got) != 1 {
		t.Fatalf("sent %v", received(mail))
	}
	if _, err := next.VerifyMagicLink(t.Context(), auth.VerifyMagicLinkParams{Token: tokenOf(t, mail.Got[0].Link)}); err != nil {
		t.Error(err)
	}
}

func tokenOf(t *testing.T, link string) string {
	t.Helper()
	_, token, ok := strings.Cut(link, "token=")
	if !ok {
		t.Fatalf("link %q", link)
	}
	return token
}

// Decoys are recorded and deleted like messages, and no process sends them.
func TestOutboxDecoys(t *testing.T) {
	store, mail := harness.NewStore(t), &harness.PostOffice{}
	e := instance(t, store, mail)
	send := func() {
		t.Helper()
		_, err := e.SendPhoneCode(t.Context(), auth.SendPhoneCodeParams{Phone: "+4930123456", NoCreate: true})
		_, linkErr := e.SendMagicLink(t.Context(), auth.SendMagicLinkParams{Email: "nobody@example.com", NoCreate: true})
		err = errors.Join(err, linkErr, e.SendPasswordReset(t.Context(), auth.SendPasswordResetParams{Email: "nobody@example.com"}))
		if err != nil {
			t.Fatal(err)
		}
	}
	send()
	shut(t, e)
	e.Clock.Advance(2 * time.Hour) // the first ones have expired: they would not be replaced
	send()
	if n := waiting(t, store, e.Clock.Now().Add(harness.Lease(e.Auth))); n != 3 {
		t.Errorf("%d decoys are recorded and not erased, want the 3 of the process that cannot send", n)
	}
	next := instance(t, store, mail)
	later(t, next, 2*time.Hour+harness.Lease(e.Auth))
	if n := waiting(t, store, next.Clock.Now().Add(time.Minute)); n != 0 || len(mail.Got) != 0 {
		t.Errorf("%d wait, sent %v", n, received(mail))
	}
}

// After a temporary failure any instance may send again, under the same id.
func TestOutboxRetries(t *testing.T) {
	busy := func(int) error { return errors.New("busy") }
	store, first, second := harness.NewStore(t), &harness.PostOffice{Answer: busy}, &harness.PostOffice{}
	one := instance(t, store, first)
	auth.Retries(one.Auth, 4*time.Second)
	magicLink(t, one, "ada@example.com")
	shut(t, one) // its queue is attempted once and returned to the store
	later(t, instance(t, store, second), 3*time.Second)
	if len(first.Got) != 1 || len(second.Got) != 0 {
		t.Fatalf("%d and %d attempts", len(first.Got), len(second.Got))
	}
	later(t, instance(t, store, second), 4*time.Second)
	if len(second.Got) != 1 || second.Got[0].ID != first.Got[0].ID || second.Got[0].ID == "" || second.Got[0].Link != first.Got[0].Link {
		t.Errorf("%+v\nthen %+v", first.Got, second.Got)
	}
}

// A message that cannot be sent is reported and deleted: after a permanent failure, after
// the last attempt, and if there is no time for another one.
func TestOutboxGivesUp(t *testing.T) {
	for name, c := range map[string]struct {
		answer   error
		attempts int
		pause    time.Duration
	}{
		"refused for good":  {auth.Permanent(errors.New("no such user")), 9, time.Second},
		"last attempt":      {errors.New("busy"), 1, time.Second},
		"expires meanwhile": {errors.New("busy"), 9, 20 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			store := harness.NewStore(t)
			mail := &harness.PostOffice{Answer: func(int) error { return c.answer }}
			w := &harness.World{T: t}
			e := instance(t, store, mail, auth.WithMail(auth.MailOptions{Attempts: c.attempts}), auth.WithHooks(auth.Hooks{OnEvent: w.Record}))
			auth.Retries(e.Auth, c.pause)
			magicLink(t, e, "ada@example.com")
			shut(t, e)
			w.WantEvents(auth.EventMessageFailed)
			if n := waiting(t, store, e.Clock.Now().Add(time.Hour/5)); n != 0 || len(mail.Got) != 1 {
				t.Errorf("%d wait after %d attempts", n, len(mail.Got))
			}
		})
	}
}

// A command without background work sends nothing. An instance of the service sends its
// messages, with all that are overdue.
func TestWithoutBackground(t *testing.T) {
	store, busy, command, service := harness.NewStore(t), &harness.PostOffice{Answer: func(int) error { return errors.New("busy") }}, &harness.PostOffice{}, &harness.PostOffice{}
	one := instance(t, store, busy)
	auth.Retries(one.Auth, time.Second)
	magicLink(t, one, "ada@example.com")
	shut(t, one)
	e := instance(t, store, command, auth.WithoutBackground())
	magicLink(t, e, "eve@example.com")
	shut(t, e)
	if len(command.Got) != 0 {
		t.Errorf("the command sent %v", received(command))
	}
	later(t, instance(t, store, service), time.Minute)
	if !wrote(service, "ada@example.com") || !wrote(service, "eve@example.com") {
		t.Errorf("the service sent %v", received(service))
	}
}

// A message without a token is sent for up to three days.
func TestOutboxNoticesLast(t *testing.T) {
	for pause, kept := range map[time.Duration]int{71 * time.Hour: 1, 73 * time.Hour: 0} {
		store := harness.NewStore(t)
		e := instance(t, store, &harness.PostOffice{Answer: func(int) error { return errors.New("busy") }})
		s := e.LoginAs(t, "ada@example.com")
		auth.Retries(e.Auth, pause)
		by := auth.Caller{UserID: s.User.ID, SessionID: s.SessionID}
		if err := e.ChangePassword(t.Context(), auth.ChangePasswordParams{Caller: by, Current: authtest.Password, New: "another phrase of words"}); err != nil {
			t.Fatal(err)
		}
		shut(t, e)
		if n := waiting(t, store, e.Clock.Now().Add(pause)); n != kept {
			t.Errorf("%d wait for an attempt after %s, want %d", n, pause, kept)
		}
	}
}

// A process does not send a message after its lease has expired, because another may be
// sending it.
func TestOutboxLeaseRunsOut(t *testing.T) {
	store, mail := harness.NewStore(t), &harness.PostOffice{}
	hold, held := make(chan struct{}), make(chan struct{})
	mail.Answer = func(n int) error {
		if n == 1 {
			close(held)
			<-hold
		}
		return nil
	}
	e := instance(t, store, mail, auth.WithMail(auth.MailOptions{Workers: 1}))
	magicLink(t, e, "ada@example.com")
	<-held
	magicLink(t, e, "eve@example.com") // waits for the other one
	e.Clock.Advance(harness.Lease(e.Auth))
	other := &harness.PostOffice{}
	later(t, instance(t, store, other), harness.Lease(e.Auth))
	close(hold)
	shut(t, e)
	if len(mail.Got) != 1 || mail.Got[0].To != "ada@example.com" || !wrote(other, "eve@example.com") {
		t.Errorf("%+v and %+v", received(mail), received(other))
	}
}

// A full queue loses no stored message.
func TestOutboxQueueIsFull(t *testing.T) {
	store, mail := harness.NewStore(t), &harness.PostOffice{}
	hold, held := make(chan struct{}), make(chan struct{})
	mail.Answer = func(n int) error {
		if n == 1 {
			close(held)
			<-hold
		}
		return nil
	}
	w := &harness.World{T: t}
	e := instance(t, store, mail, auth.WithMail(auth.MailOptions{Queue: 1, Workers: 1}), auth.WithHooks(auth.Hooks{OnEvent: w.Record}))
	magicLink(t, e, "ada@example.com")
	<-held
	magicLink(t, e, "eve@example.com")
	close(hold)
	shut(t, e)
	w.WantEvents()
	later(t, instance(t, store, mail), harness.Lease(e.Auth))
	if len(mail.Got) != 2 || mail.Got[1].To != "eve@example.com" {
		t.Errorf("sent %+v", received(mail))
	}
}

// Close sends the process's queue, and leaves the rest to the store when time is up.
func TestOutboxClose(t *testing.T) {
	store, mail := harness.NewStore(t), &harness.PostOffice{}
	hold, held := make(chan struct{}), make(chan struct{})
	mail.Answer = func(n int) error {
		if n == 1 {
			close(held)
			<-hold
		}
		return nil
	}
	e := instance(t, store, mail, auth.WithMail(auth.MailOptions{Workers: 1}))
	magicLink(t, e, "ada@example.com")
	<-held
	magicLink(t, e, "eve@example.com")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := e.Close(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "2 messages") {
		t.Errorf("error %v", err)
	}
	close(hold)
	other := &harness.PostOffice{}
	later(t, instance(t, store, other), harness.Lease(e.Auth))
	if !wrote(mail, "eve@example.com") && !wrote(other, "eve@example.com") { // an idle worker may take it
		t.Error("left behind")
	}
}

// A message survives a rotation of the secret. A process that cannot decrypt it leaves it
// to the others.
func TestOutboxAfterARotation(t *testing.T) {
	store, mail := harness.NewStore(t), &harness.PostOffice{}
	e := instance(t, store, mail)
	shut(t, e)
	magicLink(t, e, "ada@example.com")
	newer := []byte("another secret, and a newer one..")
	stranger := instance(t, store, mail, auth.WithSecret([]byte("a secret of some other service...")))
	auth.Retries(stranger.Auth, time.Second)
	later(t, stranger, harness.Lease(e.Auth))
	if len(mail.Got) != 0 {
		t.Fatal("opened without the secret")
	}
	later(t, instance(t, store, mail, auth.WithSecret(newer, outboxSecret)), harness.Lease(e.Auth)+time.Second)
	if got := received(mail); !slices.Equal(got, []auth.Kind{auth.KindMagicLink}) {
		t.Errorf("sent %v", got)
	}
}

// A message can be decrypted only in its own row.
func TestOutboxMessagesAreBound(t *testing.T) {
	st, mail := harness.NewStore(t), &harness.PostOffice{}
	e := instance(t, st, mail)
	shut(t, e)
	magicLink(t, e, "ada@example.com")
	s, _ := store.Capability[store.Journal](st)
	list, err := s.ClaimMessages(t.Context(), store.ClaimMessages{Now: e.Clock.Now().Add(harness.Lease(e.Auth)), Until: e.Clock.Now().Add(time.Hour), Limit: 1})
	if err != nil || len(list) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	for _, secret := range []string{"ada@example.com", "token", "magic_link"} {
		if strings.Contains(string(list[0].Body), secret) {
			t.Errorf("%q shows", secret)
		}
	}
	forged := list[0]
	forged.ID, forged.NextAt = "01a1fb4c-2b13-7a71-806e-d67843451400", e.Clock.Now()
	u, err := e.ImportUser(t.Context(), auth.ImportUserParams{Email: "eve@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	name := "Eve"
	c := store.UpdateUser{Change: store.Change{Now: e.Clock.Now(), By: auth.Authority{System: "test"}, Messages: []store.SealedMessage{forged}}, UserID: u.ID, Patch: store.UserPatch{FullName: &name}}
	if _, err := st.UpdateUser(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	later(t, instance(t, st, mail), 0)
	if len(mail.Got) != 0 {
		t.Errorf("sent %v", received(mail))
	}
}

// If the store keeps no messages, they are sent from memory.
func TestWithoutAnOutbox(t *testing.T) {
	mail := &harness.PostOffice{}
	e := instance(t, struct{ auth.Store }{memstore.New()}, mail)
	magicLink(t, e, "ada@example.com")
	if _, err := e.SignUp(t.Context(), auth.SignUpParams{Email: "eve@example.com", Password: harness.GoodPassword}); err != nil {
		t.Fatal(err)
	}
	shut(t, e)
	got := received(mail)
	slices.Sort(got)
	if !slices.Equal(got, []auth.Kind{auth.KindMagicLink, auth.KindVerifyEmail}) {
		t.Errorf("sent %v", got)
	}
}

// With Sync the response waits for the first attempt. A failed attempt is repeated.
func TestOutboxSync(t *testing.T) {
	store := harness.NewStore(t)
	mail := &harness.PostOffice{Answer: func(n int) error {
		if n == 2 {
			return errors.New("busy")
		}
		return nil
	}}
	e := instance(t, store, mail, auth.WithMail(auth.MailOptions{Sync: true}))
	auth.Retries(e.Auth, time.Second)
	magicLink(t, e, "ada@example.com")
	if len(mail.Got) != 1 {
		t.Errorf("%d sent", len(mail.Got))
	}
	magicLink(t, e, "eve@example.com")
	later(t, e, time.Second)
	if len(mail.Got) != 3 || mail.Got[1].ID != mail.Got[2].ID {
		t.Errorf("sent %+v", mail.Got)
	}
}

// Endpoints that send make the same store calls with messages of the same size, whether or
// not the email address or phone number is known.
func TestSendsMakeTheSameCalls(t *testing.T) {
	const free, taken = "free@example.com", "taken@example.com"
	const freeNumber, takenNumber = "+4930111111", "+4930222222"
	ctx := context.WithValue(t.Context(), requestKey{}, true)
	for name, c := range map[string]struct {
		signedIn bool
		send     func(e *authtest.Env, by auth.Caller, known bool) error
	}{
		"reset": {false, func(e *authtest.Env, _ auth.Caller, known bool) error {
			return e.SendPasswordReset(ctx, auth.SendPasswordResetParams{Email: choose(known, taken, free)})
		}},
		"magic link": {false, func(e *authtest.Env, _ auth.Caller, known bool) error {
			_, err := e.SendMagicLink(ctx, auth.SendMagicLinkParams{Email: choose(known, taken, free)})
			return err
		}},
		"magic link without sign-up": {false, func(e *authtest.Env, _ auth.Caller, known bool) error {
			_, err := e.SendMagicLink(ctx, auth.SendMagicLinkParams{Email: choose(known, taken, free), NoCreate: true})
			return err
		}},
		"phone code": {false, func(e *authtest.Env, _ auth.Caller, known bool) error {
			_, err := e.SendPhoneCode(ctx, auth.SendPhoneCodeParams{Phone: choose(known, takenNumber, freeNumber)})
			return err
		}},
		"phone code without sign-up": {false, func(e *authtest.Env, _ auth.Caller, known bool) error {
			_, err := e.SendPhoneCode(ctx, auth.SendPhoneCodeParams{Phone: choose(known, takenNumber, freeNumber), NoCreate: true})
			return err
		}},
		"new address": {true, func(e *authtest.Env, by auth.Caller, known bool) error {
			address := choose(known, taken, free)
			_, err := e.UpdateMe(ctx, auth.UpdateMeParams{Caller: by, Email: &address})
			return err
		}},
		"new number": {true, func(e *authtest.Env, by auth.Caller, known bool) error {
			phone := choose(known, takenNumber, freeNumber)
			_, err := e.UpdateMe(ctx, auth.UpdateMeParams{Caller: by, Phone: &phone})
			return err
		}},
		"sign-up to confirm": {false, func(e *authtest.Env, _ auth.Caller, known bool) error {
			_, err := e.SignUp(ctx, auth.SignUpParams{Email: choose(known, taken, free), Password: harness.GoodPassword})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var runs [2][]string
			for i, known := range []bool{false, true} {
				tap := storetap.New(harness.NewStore(t))
				e := authtest.NewOn(t, tap, auth.WithSettings(auth.Settings{RequireConfirmation: auth.On}))
				e.LoginAs(t, taken)
				bob, phone, at := e.LoginAs(t, "bob@example.com"), takenNumber, e.Clock.Now()
				(&harness.World{Env: e, T: t}).Patch(bob.User.ID, store.UserPatch{Phone: &phone, PhoneVerifiedAt: &at})
				var by auth.Caller
				if c.signedIn {
					s := e.LoginAs(t, "eve@example.com")
					by = auth.Caller{UserID: s.User.ID, SessionID: s.SessionID}
				}
				var mu sync.Mutex
				asking := true
				note := func(s string) {
					mu.Lock()
					defer mu.Unlock()
					if asking {
						runs[i] = append(runs[i], s)
					}
				}
				tap.Reset(storetap.Hooks{
					Skip:   func(ctx context.Context, _ string) bool { return ctx.Value(requestKey{}) == nil }, // background work
					Before: func(_ context.Context, method string, _ int) { note(method) },
					Edit: func(_ string, ch *store.Change) {
						for _, m := range ch.Messages {
							note(fmt.Sprintf("message of %d bytes for %q with a token of %q", len(m.Body), m.UserID, m.Token.Purpose))
						}
					},
				})
				if err := c.send(e, by, known); err != nil {
					t.Fatal(err)
				}
				mu.Lock()
				asking = false
				mu.Unlock()
			}
			if !slices.Equal(runs[0], runs[1]) || len(runs[0]) < 2 || !harness.ContainsAny(strings.Join(runs[0], ";"), "message of") {
				t.Errorf("unknown: %q\nknown:   %q", runs[0], runs[1])
			}
		})
	}
}

func choose(known bool, yes, no string) string {
	if known {
		return yes
	}
	return no
}

type requestKey struct{}
