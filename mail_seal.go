package auth

import (
	"context"
	"strings"
	"time"

	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/store"
	"golang.org/x/text/language"
)

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
	if a.outbox.Joins(ctx) { // others decide whether and when it is recorded
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
