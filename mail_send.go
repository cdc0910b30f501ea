package auth

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/language"

	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
)

// Only enclose sends messages, and only messages that counted against their limits. A
// requested message carries a sendPermit from one of the take functions of this file.
// If the limit is reached, the request is refused before anything has happened. A
// notice reports something that has happened: it counts against its limit after the
// change, and is omitted if the limit is reached.

// sendPermit is the permission to send one message of a kind to an email address or
// phone number.
type sendPermit struct {
	kind Kind
	to   string // as EmailKey
}

func permitFor(k Kind, to string) sendPermit { return sendPermit{countedAs(k), store.EmailKey(to)} }

// countedAs returns the kind that a message counts as. A reset and a welcome count
// alike, because only the account shows which of them is sent, and the limit is checked
// before the look-up.
func countedAs(k Kind) Kind {
	switch k {
	case KindWelcome:
		return KindResetPassword
	case KindTestSMS:
		return KindPhoneCode // it uses up a phone code
	}
	return k
}

// solicited reports whether messages of kind k are requested. All others are notices.
func solicited(k Kind) bool {
	switch k {
	case KindVerifyEmail, KindChangeEmail, KindMagicLink, KindResetPassword, KindWelcome, KindAccountExists, KindInvitation, KindPhoneCode, KindTestMail, KindTestSMS:
		return true
	}
	return false
}

// maySend is the last check of a message. It refuses a requested message without a
// permit. A decoy passes, because it is not sent to an address.
func (a *Auth) maySend(ctx context.Context, o outbox.Outgoing, u User) bool {
	switch {
	case o.To == "", o.Permit == permitFor(o.Kind, o.To):
		return true
	case !solicited(o.Kind):
		return a.takeNotice(ctx, o, u)
	}
	a.notSent(ctx, o, u, errors.New("auth: the message was not counted against a limit"))
	return false
}

// takeNotice checks the limit of a notice. The owner of a verified address must be
// notified: that limit is generous and applies to each kind, so that a flood of one
// kind suppresses no other, and a store error does not suppress the notice. An
// unverified address gets few notices. They are counted here and never refunded, so
// that concurrent changes get no more than consecutive ones.
func (a *Auth) takeNotice(ctx context.Context, o outbox.Outgoing, u User) bool {
	cost := 1
	if o.Proved {
		cost = 0
	}
	err := a.take(ctx, a.noticeDraw(o, cost))
	switch {
	case err == nil:
		return true
	case o.Proved && !errors.Is(err, CodeRateLimited):
		a.cfg.log.WarnContext(ctx, "auth: the limit of notices cannot be read", "kind", string(o.Kind), "error", err)
		return true
	}
	a.notSent(ctx, o, u, err)
	return false
}

// drawNotices counts the notices of a committed change to verified addresses. A wrong
// attempt counts none, because attempts must not use up the limit. Notices to
// unverified addresses were counted in takeNotice.
func (a *Auth) drawNotices(ctx context.Context, c store.Change) {
	for _, m := range c.Messages {
		o, err := a.openMessage(m)
		if err == nil && o.To != "" && o.Proved && !solicited(o.Kind) {
			err = a.take(context.WithoutCancel(ctx), a.noticeDraw(o, 1))
		}
		if err != nil && !errors.Is(err, CodeRateLimited) {
			a.cfg.log.WarnContext(ctx, "auth: notice not counted against its limit", "message_id", m.ID, "error", err)
		}
	}
}

func (a *Auth) noticeDraw(o outbox.Outgoing, cost int) store.Draw {
	if o.Proved {
		return a.draw(a.cfg.limits.NoticesPerAddress, "notice-proved", kindTo(o.Kind, o.To), cost)
	}
	return a.draw(a.cfg.limits.NoticesUnverified, "notice", store.EmailKey(mailbox(o.To)), cost)
}

// notSent reports a message that the limits held back to the application.
func (a *Auth) notSent(ctx context.Context, o outbox.Outgoing, u User, err error) {
	a.cfg.log.WarnContext(ctx, "auth: message not sent", "kind", string(o.Kind), "to", maskAddress(o.To), "user_id", u.ID, "error", err)
	a.emit(ctx, Event{Type: EventMessageFailed, UserID: u.ID, Message: o.Kind, Err: err})
}

// sendSource names the place of a request for a message. Each has its own limits by
// email address or phone number. Requests of strangers at one, such as sign-ups with a
// name that is taken, therefore do not use up the limits of the owner at another.
type sendSource string

const (
	atOwners      sendSource = ""        // requests of the owner, such as sign-in and reset
	atKnownDevice sendSource = "-known"  // the same, on known devices of the account that verified the recipient, together
	atSignUp      sendSource = "-signup" // sign-up
	atChange      sendSource = "-change" // a new phone number
	atLogin       sendSource = "-login"  // another verification message; no response shows this limit

	atWelcome  sendSource = "-welcome" // a message that the application sends on its own
	atOperator sendSource = "-office"  // a message that an operator sends
)

// sendDraws returns the limits on messages of a kind to an address.
func (a *Auth) sendDraws(source sendSource, k Kind, address string) []store.Draw {
	return []store.Draw{
		a.draw(a.cfg.limits.SendGap, "send-gap"+string(source), kindTo(k, address), 1),
		a.sendDraw(source, k, address),
	}
}

func (a *Auth) sendDraw(source sendSource, k Kind, address string) store.Draw {
	return a.draw(a.cfg.limits.SendPerAddress, "send"+string(source), kindTo(k, mailbox(address)), 1)
}

// mailbox returns an address without the text after a plus sign in the local part, for keys
// of limits only: all sub-addresses usually lead to one mailbox. SendGap keeps it, so that
// one person can use two of them at once.
func mailbox(address string) string {
	plus, at := strings.IndexByte(address, '+'), strings.LastIndexByte(address, '@')
	if plus < 1 || plus > at { // a phone number starts with a plus sign
		return address
	}
	return address[:plus] + address[at:]
}

// kindTo returns the key of the limits on messages of a kind to an address.
func kindTo(k Kind, address string) string {
	return string(countedAs(k)) + " " + store.EmailKey(address)
}

// firstSendDraw returns the limit on the message of a sign-up to an address. There is
// no SendGap, because no message was sent before.
func (a *Auth) firstSendDraw(k Kind, address string) store.Draw {
	return a.sendDraw(atSignUp, k, address)
}

// takeSend counts a requested message. Whether an account exists must not decide the source,
// except on a device that has signed in to it, so that unknown addresses count the same.
func (a *Auth) takeSend(ctx context.Context, source sendSource, k Kind, address string, more ...store.Draw) (sendPermit, error) {
	draws := slices.Concat(a.sendDraws(source, k, address), a.perIP(ctx, a.cfg.limits.SendPerIP, "send-ip"), more)
	err := a.take(ctx, draws...)
	return permitFor(k, address), err
}

// takeUnrequested counts a message that the client did not request for itself, or that
// is prepared in the background. No limit by the client's IP address applies.
func (a *Auth) takeUnrequested(ctx context.Context, source sendSource, k Kind, address string) (sendPermit, error) {
	err := a.take(ctx, a.sendDraws(source, k, address)...)
	return permitFor(k, address), err
}

// takeFollowUp permits a message that the owner of a mailbox requests by using a mailed
// link. Nobody else could request it. The limits of strangers' requests, which an
// attacker may have used up, therefore do not apply.
func (a *Auth) takeFollowUp(ctx context.Context, k Kind, address string) (sendPermit, error) {
	err := a.take(ctx, a.noticeDraw(outbox.Outgoing{Kind: k, To: address, Proved: true}, 1))
	return permitFor(k, address), err
}

// takeSMS counts a text message like any other message, and refuses it if SMSBudget,
// the limit on the cost of fraud, is used up. spendSMS runs after it.
func (a *Auth) takeSMS(ctx context.Context, source sendSource, phone string) error {
	_, err := a.takeSend(ctx, source, KindPhoneCode, phone, a.smsBudget(0))
	return a.reportBudget(ctx, err)
}

// spendSMS counts a text message against SMSBudget. A decoy (to is empty) costs
// nothing, but is refused as well if the budget is used up: the response does not show
// whether a text was sent.
//
// Strangers can spend the budget on numbers of their own, so a part of it is kept for
// numbers that an account has verified. When the other part is used up, the permit for an
// unverified number has no recipient and permits a decoy. All numbers cost the same calls.
func (a *Auth) spendSMS(ctx context.Context, to string, verified bool) (sendPermit, error) {
	cost := func(spends bool) int {
		if spends {
			return 1
		}
		return 0
	}
	switch err := a.take(ctx, a.openSMSBudget(cost(to != "" && !verified))); {
	case errors.Is(err, CodeRateLimited):
		a.emit(ctx, Event{Type: EventSMSBudgetExceeded})
		if !verified {
			to = ""
		}
	case err != nil:
		return sendPermit{}, err
	}
	err := a.take(ctx, a.smsBudget(cost(to != "")))
	return permitFor(KindPhoneCode, to), a.reportBudget(ctx, err)
}

// refundSMS refunds the cost of a permitted text to an unverified number that was not sent.
// It calls the store in either case, so that both take equally long.
func (a *Auth) refundSMS(ctx context.Context, p sendPermit, sent bool) {
	cost := -1
	if sent || p.to == "" {
		cost = 0
	}
	if err := a.take(ctx, a.smsBudget(cost), a.openSMSBudget(cost)); err != nil && !errors.Is(err, CodeRateLimited) {
		a.cfg.log.WarnContext(ctx, "auth: budget of text messages not refunded", "error", err)
	}
}

func (a *Auth) smsBudget(cost int) store.Draw {
	return a.draw(a.cfg.limits.SMSBudget, "sms-budget", "", cost)
}

// openSMSBudget returns a draw from the part of SMSBudget that all numbers may use.
func (a *Auth) openSMSBudget(cost int) store.Draw {
	r := a.cfg.limits.SMSBudget
	r.Burst -= r.Burst / 4
	return a.draw(r, "sms-budget-open", "", cost)
}

// reportBudget emits EventSMSBudgetExceeded if err comes from SMSBudget and not from
// another limit.
func (a *Auth) reportBudget(ctx context.Context, err error) error {
	if errors.Is(err, CodeRateLimited) {
		if spent := a.take(ctx, a.smsBudget(0)); errors.Is(spent, CodeRateLimited) {
			a.emit(ctx, Event{Type: EventSMSBudgetExceeded})
		}
	}
	return err
}

// phoneMessage returns the message with a phone code; a decoy if to is empty.
func (a *Auth) phoneMessage(p sendPermit, to, code string) outbox.Outgoing {
	return outbox.Outgoing{Kind: KindPhoneCode, Channel: ChannelSMS, To: to, Code: code, ExpiresIn: a.cfg.phone.Life, Permit: p}
}

// noticeLife limits how long a message without a token is retried.
const noticeLife = 3 * 24 * time.Hour

// enclose adds a message to a user, or a decoy, to the change that it reports. The
// message is recorded with the change or not at all. It is sent when committed is
// called or, if that never happens, when its lease expires. t is the token in the
// message, without which the message is not sent; nil if there is none.
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
		m.Recipient = a.recipient(m.ID) // does not identify a decoy
	}
	if a.outbox.JoinsTransaction(ctx) { // the application's transaction, or another process, decides whether and when it is sent
		m.NextAt, m.Attempts = c.Now, 0
	}
	if o.To != "" { // decoys are not in the message log, because they are not sent
		m.Log = store.MessageLog{Kind: o.Kind, Channel: o.Via(), To: maskAddress(o.To), UserID: u.ID}
	}
	if o.Kind == KindAccountDeleted {
		m.Log.UserID = "" // the id no longer exists
	}
	if t != nil {
		m.Token, m.ExpiresAt = store.TokenRef{Purpose: t.Purpose, Hash: t.Hash}, t.ExpiresAt
	}
	outbox.Seal(&m, o, a.keys.SealMessage)
	c.Messages = append(c.Messages, m)
}

// recipient returns the key that finds the messages to an email address or phone number
// without revealing it.
func (a *Auth) recipient(to string) string { return a.keys.RateLimit("message-to", store.EmailKey(to)) }

// openMessage decrypts a message of enclose, also under a previous secret.
func (a *Auth) openMessage(m store.SealedMessage) (outbox.Outgoing, error) {
	return outbox.Open(m, a.keys.OpenMessage)
}

// nameFor returns the name that a message addresses its reader by, if the address is
// the user's verified one. Otherwise it returns "", because the name could be a
// stranger's free text.
func nameFor(u User, to string) string {
	if to == "" || !u.EmailVerified() || store.EmailKey(to) != store.EmailKey(u.Email) {
		return ""
	}
	return outbox.SafeName(u.FullName)
}

// preferredLocale returns the user's choice (user_metadata.locale), or else the
// browser's Accept-Language.
func preferredLocale(ctx context.Context, u User) string {
	if own, ok := u.UserMetadata["locale"].(string); ok && len(own) < 64 {
		if _, err := language.Parse(own); err == nil {
			return own
		}
	}
	accept, _ := ctx.Value(languageKey{}).(string)
	return accept
}

type pageLocaleKey struct{}

// withPageLocale returns a context for a form of a page in a language of the service. It
// chooses nothing for a visitor who named no language.
func withPageLocale(ctx context.Context, locale string) context.Context {
	if ctx.Value(languageKey{}) == nil {
		return ctx
	}
	return context.WithValue(ctx, pageLocaleKey{}, locale)
}

// pageLocale returns the language of the page that was posted, or "".
func pageLocale(ctx context.Context) string {
	locale, _ := ctx.Value(pageLocaleKey{}).(string)
	return locale
}

// withLocale returns the user_metadata of a new account with its language, unless it has
// one or locale is empty.
func withLocale(metadata map[string]any, locale string) map[string]any {
	out := map[string]any{}
	maps.Copy(out, metadata)
	if _, has := out["locale"]; !has && locale != "" {
		out["locale"] = locale
	}
	return out
}

// checkLocale checks a language that an operator chose for an account; "" is none.
func checkLocale(locale string) error {
	if locale != "" && preferredLocale(context.Background(), User{UserMetadata: withLocale(nil, locale)}) == "" {
		return invalid("locale", "has to be a language tag such as de or pt-BR")
	}
	return nil
}

// shortLocale bounds the length of an Accept-Language header.
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

// mailToken stores a token together with the message that carries it. Errors:
// CodeInvalidToken if its user does not exist, and those of storeFailed.
func (a *Auth) mailToken(ctx context.Context, by Authority, t store.Token, o outbox.Outgoing, u User) error {
	c := a.newChange(ctx, by)
	a.enclose(ctx, &c, o, u, &t)
	unknownAccount := t.UserID == "" && o.To == "" // a request for an unknown account must not revoke earlier messages
	err := a.keepToken(ctx, store.PutToken{Change: c, Token: t, Yields: unknownAccount})
	if err == nil {
		a.committed(ctx, c, store.OutcomeDone, nil)
	}
	return err
}
