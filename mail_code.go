package auth

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/authmount/auth/store"
)

// A mail that carries a link carries a code, too, for whoever reads it on another
// device than the one that asks. Both are one token, so that using either uses up
// both.

const (
	mailCodeLife   = 10 * time.Minute // at most 10 (NIST SP 800-63B-4), however long the link lives
	mailCodeDigits = 1_000_000
)

// mailCode is the code beside a link. Whoever has the link can work it out, so that
// its page shows it, and nobody else, since the link is random.
func mailCode(secret string) string {
	sum := sha256.Sum256([]byte("authmount mail code\x00" + secret))
	return fmt.Sprintf("%06d", binary.BigEndian.Uint64(sum[:8])%mailCodeDigits)
}

// addCode makes a link's token a code's, too. Only a MAC is kept. It is bound to the
// address, and to what has to be shown besides: the code challenge of a sign-in, or
// the session that asked for a new address. Without an address it is a decoy's.
func (a *Auth) addCode(t *store.Token, secret, address, bound string) (code string) {
	code = mailCode(secret)
	t.CodeExpiresAt, t.MaxTries = t.CreatedAt.Add(mailCodeLife), codeBackstop
	if address == "" {
		_, t.Code = newLinkToken() // no guess is right
		return code
	}
	t.Code = a.keys.MailCode(string(t.Purpose), t.Subject, store.EmailKey(address), bound, code)[0]
	return code
}

// cleanCode is a code as people type it.
func cleanCode(s string) string { return strings.NewReplacer(" ", "", "-", "").Replace(s) }

// mailRequest is whom the id of a request for a sign-in by mail is about.
func mailRequest(address, challenge string) string { return store.EmailKey(address) + " " + challenge }

// A new address is nobody's yet, so that a code that was sent to it does not tell
// whose it is: another token does, of whoever asked for the address last. It
// proves nothing.

// tellWhoseCode records who is sent a code to a new address.
func (a *Auth) tellWhoseCode(ctx context.Context, by Caller, u User, address string) error {
	_, t := a.newLink(store.PurposeEmailCode, mailCodeLife, linkData{Email: address, SessionID: by.SessionID})
	t.Hash, t.UserID, t.Subject = whoseCodeHash(address), u.ID, store.EmailKey(address)
	return a.putToken(ctx, by.authority(), t)
}

func whoseCodeHash(address string) []byte {
	sum := sha256.Sum256([]byte("whose code\x00" + store.EmailKey(address)))
	return sum[:]
}

// verifyingGuess is a code that confirms an address: whose address it is to become,
// and what the link beside the code carries. Without a session, the code says
// whose it is only by the address: the account's that has it, or asked for it.
func (a *Auth) verifyingGuess(ctx context.Context, p VerifyEmailParams) (codeGuess, store.Token, linkData, error) {
	var t store.Token
	var d linkData
	email, err := requiredEmail(p.Email)
	if err != nil {
		return codeGuess{}, t, d, invalid("email", err.Error())
	}
	if p.Code == "" {
		return codeGuess{}, t, d, invalid("code", "is required")
	}
	key := store.ByEmail(email)
	if p.Within.SessionID != "" {
		key = store.ByID(p.Within.UserID)
	}
	u, err := a.store.User(ctx, key)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return codeGuess{}, t, d, storeFailed(err)
	}
	asked, whose, err := a.peekHash(ctx, store.PurposeEmailCode, whoseCodeHash(email)) // in any case, so that it takes as long
	if err != nil && !errors.Is(err, CodeInvalidToken) {
		return codeGuess{}, t, d, err
	}
	d.Email, t.UserID = email, u.ID
	switch {
	case store.EmailKey(u.Email) == store.EmailKey(email):
	case p.Within.SessionID != "":
		d.SessionID = p.Within.SessionID
	default:
		t.UserID, d.SessionID = asked.UserID, whose.SessionID // none: no guess is right
	}
	g := codeGuess{to: store.EmailKey(email), mailed: true, email: email, code: cleanCode(p.Code), userID: p.Within.UserID, sent: store.EmailKey(email), bound: d.SessionID}
	return g, t, d, nil
}
