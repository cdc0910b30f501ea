package auth

import (
	"context"
	"errors"
	"strings"
	"time"

	"golang.org/x/text/language"

	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// Messages leave by enclose alone, and it takes only what has drawn its limits:
// what somebody asked for carries a sendPermit, which the draws of this file give, and
// is refused before anything has happened; notices tell of something that has, are
// left out where there is no room for them, and draw when it has come about.

// sendPermit is the leave to send one message of a kind to an address or number.
type sendPermit struct {
	kind Kind
	to   string // as EmailKey
}

func permitFor(k Kind, to string) sendPermit { return sendPermit{countedAs(k), store.EmailKey(to)} }

// countedAs is the kind by which a message draws. Whether somebody gets a welcome
// or a reset shows only once the account was looked up, after the draw.
func countedAs(k Kind) Kind {
	switch k {
	case KindWelcome:
		return KindResetPassword
	case KindTestSMS:
		return KindPhoneCode // of which it uses one up
	}
	return k
}

// solicited tells the messages that somebody asks for from notices, which are all
// others.
func solicited(k Kind) bool {
	switch k {
	case KindVerifyEmail, KindChangeEmail, KindMagicLink, KindResetPassword, KindWelcome, KindAccountExists, KindInvitation, KindPhoneCode, KindTestMail, KindTestSMS:
		return true
	}
	return false
}

// maySend is the last word on a message: nothing is sent that did not draw. A
// decoy goes nowhere, and may.
func (a *Auth) maySend(ctx context.Context, o outbox.Outgoing, u User) bool {
	switch {
	case o.To == "", o.Permit == permitFor(o.Kind, o.To):
		return true
	case !solicited(o.Kind):
		return a.roomFor(ctx, o, u)
	}
	a.notSent(ctx, o, u, errors.New("auth: a message that drew no limits"))
	return false
}

// roomFor asks for a notice's limit. Whoever has proved the address has to be told:
// the limit is generous, by kind, so that a flood of one kind hides no other, and
// a store that cannot be asked keeps nothing from them. To an address that nobody
// has proved go few: they are drawn here and never given back, so that changes that
// happen at once find no more room than one after the other.
func (a *Auth) roomFor(ctx context.Context, o outbox.Outgoing, u User) bool {
	cost := 1
	if o.Proved {
		cost = 0
	}
	err := a.take(ctx, a.noticeDraw(o, cost))
	switch {
	case err == nil:
		return true
	case o.Proved && !errors.Is(err, CodeRateLimited):
		a.cfg.log.WarnContext(ctx, "auth: limit of notices not known", "kind", string(o.Kind), "error", err)
		return true
	}
	a.notSent(ctx, o, u, err)
	return false
}

// drawNotices draws for the notices of a change that has come about, and for none
// of a guess that was wrong: guessing must not use them up. Those to addresses that
// nobody has proved have drawn by then.
func (a *Auth) drawNotices(ctx context.Context, c store.Change) {
	for _, m := range c.Messages {
		o, err := a.openMessage(m)
		if err == nil && o.To != "" && o.Proved && !solicited(o.Kind) {
			err = a.take(context.WithoutCancel(ctx), a.noticeDraw(o, 1))
		}
		if err != nil && !errors.Is(err, CodeRateLimited) {
			a.cfg.log.WarnContext(ctx, "auth: limit of notices not drawn", "message_id", m.ID, "error", err)
		}
	}
}

func (a *Auth) noticeDraw(o outbox.Outgoing, cost int) store.Draw {
	if o.Proved {
		return a.draw(a.cfg.limits.NoticesPerAddress, "notice-proved", kindTo(o.Kind, o.To), cost)
	}
	return a.draw(a.cfg.limits.NoticesUnproved, "notice", store.EmailKey(o.To), cost)
}

// notSent tells the application of a message that limits held back.
func (a *Auth) notSent(ctx context.Context, o outbox.Outgoing, u User, err error) {
	a.cfg.log.WarnContext(ctx, "auth: message not sent", "kind", string(o.Kind), "to", maskAddress(o.To), "user_id", u.ID, "error", err)
	a.emit(ctx, Event{Type: EventMessageFailed, UserID: u.ID, Message: o.Kind, Err: err})
}

// sendDoor is where a message is asked for. Each has limits by address or number of
// its own: what strangers ask for at one, such as sign-ups with a name that is
// taken, uses up nothing of the owner's at another.
type sendDoor string

const (
	atOwners sendDoor = ""        // sign-in, reset and whatever else the owner asks for
	atSignUp sendDoor = "-signup" // an account that is to be made
	atChange sendDoor = "-change" // a number that somebody wants to have
	atLogin  sendDoor = "-login"  // a confirmation once more; no answer shows what is left

	atWelcome sendDoor = "-welcome" // what the application sends of itself
	atOffice  sendDoor = "-office"  // what an operator sends
)

// sendDraws are the limits on messages of a kind to an address.
func (a *Auth) sendDraws(door sendDoor, k Kind, address string) []store.Draw {
	return []store.Draw{
		a.draw(a.cfg.limits.SendGap, "send-gap"+string(door), kindTo(k, address), 1),
		a.sendDraw(door, k, address),
	}
}

func (a *Auth) sendDraw(door sendDoor, k Kind, address string) store.Draw {
	return a.draw(a.cfg.limits.SendPerAddress, "send"+string(door), kindTo(k, address), 1)
}

// kindTo is what limits on messages of a kind to an address count by.
func kindTo(k Kind, address string) string {
	return string(countedAs(k)) + " " + store.EmailKey(address)
}

// firstSendDraw is that of the message that a sign-up sends, by whom it goes to:
// like for any other, but for the gap, since nothing was sent before.
func (a *Auth) firstSendDraw(k Kind, address string) store.Draw {
	return a.sendDraw(atSignUp, k, address)
}

// takeSend draws for a message that somebody asked for. It comes before any
// look-up, so that unknown addresses count the same.
func (a *Auth) takeSend(ctx context.Context, door sendDoor, k Kind, address string, more ...store.Draw) (sendPermit, error) {
	draws := append(a.sendDraws(door, k, address), a.perIP(ctx, a.cfg.limits.SendPerIP, "send-ip"))
	err := a.take(ctx, append(draws, more...)...)
	return permitFor(k, address), err
}

// takeUnasked draws for a message about somebody's request that goes to somebody
// else: no limit of the client's address, since it is worked out behind its back.
func (a *Auth) takeUnasked(ctx context.Context, door sendDoor, k Kind, address string) (sendPermit, error) {
	err := a.take(ctx, a.sendDraws(door, k, address)...)
	return permitFor(k, address), err
}

// takeAnswer gives leave for a message that the holder of a mailed link asked for
// by using it up: nobody else could, so that the limits of strangers' requests,
// which a thief may have used up, do not hold it back.
func (a *Auth) takeAnswer(ctx context.Context, k Kind, address string) (sendPermit, error) {
	err := a.take(ctx, a.noticeDraw(outbox.Outgoing{Kind: k, To: address, Proved: true}, 1))
	return permitFor(k, address), err
}

// takeSMS draws for a text message like for any other, and asks whether the
// budget that bounds what fraud can cost has room for it. It comes before any
// look-up; spendSMS comes after it.
func (a *Auth) takeSMS(ctx context.Context, door sendDoor, phone string) error {
	_, err := a.takeSend(ctx, door, KindPhoneCode, phone, a.smsBudget(0))
	return a.tellBudget(ctx, err)
}

// spendSMS draws a text message from the budget. One that goes nowhere (to is
// empty) spends nothing, and is refused when there is nothing left all the same:
// the answer tells nobody whether a text went out.
func (a *Auth) spendSMS(ctx context.Context, to string) (sendPermit, error) {
	cost := 1
	if to == "" {
		cost = 0
	}
	err := a.take(ctx, a.smsBudget(cost))
	return permitFor(KindPhoneCode, to), a.tellBudget(ctx, err)
}

// refundSMS gives back what was spent on a text that does not go out after all.
// It draws in either case, so that both take as long.
func (a *Auth) refundSMS(ctx context.Context, sent bool) {
	cost := -1
	if sent {
		cost = 0
	}
	if err := a.take(ctx, a.smsBudget(cost)); err != nil && !errors.Is(err, CodeRateLimited) {
		a.cfg.log.WarnContext(ctx, "auth: budget of texts not given back", "error", err)
	}
}

func (a *Auth) smsBudget(cost int) store.Draw {
	return a.draw(a.cfg.limits.SMSBudget, "sms-budget", "", cost)
}

// tellBudget tells the application when the budget refuses, and not one of the
// other limits.
func (a *Auth) tellBudget(ctx context.Context, err error) error {
	if errors.Is(err, CodeRateLimited) {
		if spent := a.take(ctx, a.smsBudget(0)); errors.Is(spent, CodeRateLimited) {
			a.emit(ctx, Event{Type: EventSMSBudgetExceeded})
		}
	}
	return err
}

// phoneMessage is a code on its way to a number; to none, it is a decoy.
func (a *Auth) phoneMessage(p sendPermit, to, code string) outbox.Outgoing {
	return outbox.Outgoing{Kind: KindPhoneCode, Channel: ChannelSMS, To: to, Code: code, ExpiresIn: a.cfg.phone.Life, Permit: p}
}

// noticeLife is for how long a message without a token is worth sending.
const noticeLife = 3 * 24 * time.Hour

// enclose puts a message to a user, or a decoy, into the change that it tells of:
// it is recorded with the effect or not at all, and on its way as soon as
// committed is called, or, if that never happens, once its lease is over. t is
// the token that it carries, without which it is not sent; nil if none.
func (a *Auth) enclose(ctx context.Context, c *store.Change, o outbox.Outgoing, u User, t *store.Token) {
	o.Proved = u.EmailVerified() && store.EmailKey(u.Email) == store.EmailKey(o.To)
	if !a.maySend(ctx, o, u) {
		return
	}
	o.Name = nameFor(u, o.To)
	o.Locale = shortLocale(preferredLocale(ctx, u))
	client := clientFrom(ctx)
	o.IP, o.Device, o.At = ipString(client.IP), deviceLabel(client.UserAgent), c.Now
	m := store.SealedMessage{
		ID: a.newID(), CreatedAt: c.Now, NextAt: c.Now.Add(a.outbox.Lease()), ExpiresAt: c.Now.Add(noticeLife),
		Attempts: 1, // as if claimed, by this process
	}
	if m.Recipient = a.recipient(o.To); o.To == "" {
		m.Recipient = a.recipient(m.ID) // a decoy tells nothing by it
	}
	if a.outbox.JoinsTransaction(ctx) { // others decide whether and when it is recorded
		m.NextAt, m.Attempts = c.Now, 0
	}
	if o.To != "" { // operators are told of no decoy: nothing goes out
		m.Log = store.MessageLog{Kind: o.Kind, Channel: o.Via(), To: maskAddress(o.To), UserID: u.ID}
	}
	if o.Kind == KindAccountDeleted {
		m.Log.UserID = "" // nobody has the id any more
	}
	if t != nil {
		m.Token, m.ExpiresAt = store.TokenRef{Purpose: t.Purpose, Hash: t.Hash}, t.ExpiresAt
	}
	outbox.Seal(&m, o, a.keys.SealMessage)
	c.Messages = append(c.Messages, m)
}

// recipient is by what messages to an address or number are found, without telling it.
func (a *Auth) recipient(to string) string { return a.keys.RateLimit("message-to", store.EmailKey(to)) }

// openMessage reads what enclose sealed, also under a former secret.
func (a *Auth) openMessage(m store.SealedMessage) (outbox.Outgoing, error) {
	return outbox.Open(m, a.keys.OpenMessage)
}

// nameFor is how a message addresses its reader: by their name only where they
// have proved the address. Anywhere else it is the free text of whoever gave the
// address, to a stranger.
func nameFor(u User, to string) string {
	if to == "" || !u.EmailVerified() || store.EmailKey(to) != store.EmailKey(u.Email) {
		return ""
	}
	return outbox.SafeName(u.FullName)
}

// preferredLocale is what the user chose (user_metadata.locale), else what the
// browser asks for.
func preferredLocale(ctx context.Context, u User) string {
	if own, ok := u.UserMetadata["locale"].(string); ok && len(own) < 64 {
		if _, err := language.Parse(own); err == nil {
			return own
		}
	}
	accept, _ := ctx.Value(languageKey{}).(string)
	return accept
}

// shortLocale bounds what a browser may say of its languages.
func shortLocale(accept string) string {
	const most = 128
	if len(accept) <= most {
		return accept
	}
	list := accept[:most]
	if i := strings.LastIndexByte(list, ','); i >= 0 {
		return list[:i]
	}
	return ""
}

// mailToken stores a token in somebody's name, together with the message that
// carries it. Errors: CodeInvalidToken if its user is gone, and those of
// storeFailed.
func (a *Auth) mailToken(ctx context.Context, by Authority, t store.Token, o outbox.Outgoing, u User) error {
	c := a.newChange(ctx, by)
	a.enclose(ctx, &c, o, u, &t)
	nobodys := t.UserID == "" && o.To == "" // a stranger's question is to put no end to what was sent before
	err := a.keepToken(ctx, store.PutToken{Change: c, Token: t, Yields: nobodys})
	if err == nil {
		a.committed(ctx, c, store.OutcomeDone, nil)
	}
	return err
}
