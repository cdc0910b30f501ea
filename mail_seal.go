package auth

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/authmount/auth/store"
)

// noticeLife is for how long a message without a token is worth sending.
const noticeLife = 3 * 24 * time.Hour

// sealedSize is what the body of a message is filled up to, or to a multiple of
// it, so that its length does not tell a decoy.
const sealedSize = 1024

// enclose puts a message to a user, or a decoy, into the change that it tells of:
// it is recorded with the effect or not at all, and on its way as soon as
// committed is called, or, if that never happens, once its lease is over. t is
// the token that it carries, without which it is not sent; nil if none.
func (a *Auth) enclose(ctx context.Context, c *store.Change, o outgoing, u User, t *store.Token) {
	o.Proved = u.EmailVerified() && store.EmailKey(u.Email) == store.EmailKey(o.To)
	if !a.maySend(ctx, o, u) {
		return
	}
	o.Name = nameFor(u, o.To)
	o.Locale = shortLocale(preferredLocale(ctx, u))
	client := clientFrom(ctx)
	o.IP, o.Device, o.At = ipString(client.IP), deviceLabel(client.UserAgent), c.Now
	m := store.SealedMessage{
		ID: a.newID(), CreatedAt: c.Now, NextAt: c.Now.Add(a.outbox.lease()), ExpiresAt: c.Now.Add(noticeLife),
		Attempts: 1, // as if claimed, by this process
	}
	if m.Recipient = a.recipient(o.To); o.To == "" {
		m.Recipient = a.recipient(m.ID) // a decoy tells nothing by it
	}
	if a.outbox.joins(ctx) { // others decide whether and when it is recorded
		m.NextAt, m.Attempts = c.Now, 0
	}
	if o.To != "" { // operators are told of no decoy: nothing goes out
		m.Log = store.MessageLog{Kind: o.Kind, Channel: o.channel(), To: maskAddress(o.To), UserID: u.ID}
	}
	if o.Kind == KindAccountDeleted {
		m.Log.UserID = "" // nobody has the id any more
	}
	if t != nil {
		m.Token, m.ExpiresAt = store.TokenRef{Purpose: t.Purpose, Hash: t.Hash}, t.ExpiresAt
	}
	body, err := json.Marshal(o)
	if err != nil {
		panic(err) // strings and numbers only
	}
	size := (len(body) + sealedSize - 1) / sealedSize * sealedSize
	body = append(body, bytes.Repeat([]byte(" "), size-len(body))...)
	m.Body = a.keys.SealMessage(body, boundTo(m))
	c.Messages = append(c.Messages, m)
}

// recipient is by what messages to an address or number are found, without telling it.
func (a *Auth) recipient(to string) string { return a.keys.RateLimit("message-to", store.EmailKey(to)) }

// openMessage reads what enclose sealed, also under a former secret.
func (a *Auth) openMessage(m store.SealedMessage) (outgoing, error) {
	var o outgoing
	body, err := a.keys.OpenMessage(m.Body, boundTo(m))
	if err == nil {
		err = json.Unmarshal(body, &o)
	}
	return o, err
}

// boundTo is what a sealed message belongs to: put into another row, it does not
// open. To whom it goes is in what is sealed.
func boundTo(m store.SealedMessage) []byte {
	return fmt.Appendf(nil, "%s %s %s %x", m.ID, m.UserID, m.Token.Purpose, m.Token.Hash)
}

// nameFor is how a message addresses its reader: by their name only where they
// have proved the address. Anywhere else it is the free text of whoever gave the
// address, to a stranger.
func nameFor(u User, to string) string {
	if to == "" || !u.EmailVerified() || store.EmailKey(to) != store.EmailKey(u.Email) {
		return ""
	}
	return safeName(u.FullName)
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
func (a *Auth) mailToken(ctx context.Context, by Authority, t store.Token, o outgoing, u User) error {
	c := a.newChange(ctx, by)
	a.enclose(ctx, &c, o, u, &t)
	nobodys := t.UserID == "" && o.To == "" // a stranger's question is to put no end to what was sent before
	err := a.keepToken(ctx, store.PutToken{Change: c, Token: t, Yields: nobodys})
	if err == nil {
		a.committed(ctx, c, store.OutcomeDone, nil)
	}
	return err
}
