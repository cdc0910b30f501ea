package auth

import (
	"slices"
	"time"

	"context"
	"encoding/base32"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

func (k kit) CheapPasswords() (cheap bool, err error) {
	p := k.a.passwords
	if !p.usual {
		return false, nil
	}
	p.o.Argon2id = Argon2idParams{Memory: 64, Time: 1, Threads: 1}
	return true, p.standIn()
}

func (k kit) BeginTOTP(ctx context.Context, by SessionRef) (secret string, err error) {
	_, raw, err := k.a.beginTOTP(ctx, SetupTOTPParams{Caller: Caller{UserID: by.UserID, SessionID: by.ID}})
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(raw), err
}

func (k kit) Hashes() uint64 { return k.a.passwords.works() }

func (k kit) Refund(ctx context.Context) error { return k.a.refunds.flush(ctx) }

func (k kit) HoldRefunds() { k.a.refunds.after = func(time.Duration, func()) {} }

func (k kit) Lease() time.Duration { return k.a.outbox.Lease() }

func (k kit) OpenMessage(m store.SealedMessage) (Kind, string, error) {
	o, err := k.a.openMessage(m)
	return o.Kind, o.To, err
}

func (k kit) NoticeOf(e EventType) (Kind, bool) { return noticeOf(e) }

func (k kit) WithBodyWait(d time.Duration) any { return Option(func(c *config) { c.bodyWait = d }) }

func (k kit) Statuses() map[string]int {
	m := map[string]int{}
	for c, row := range errorTable {
		m[string(c)] = row.Status
	}
	return m
}

func (k kit) RouteTable() []host.RouteInfo {
	var list []host.RouteInfo
	for _, r := range k.a.routes() {
		within := slices.Contains(r.errors, CodeMissingToken) && slices.Contains(r.errors, CodeSessionEnded)
		list = append(list, host.RouteInfo{
			Pattern: r.pattern, Limits: r.limits, Errors: host.Codes(r.errors...), Open: r.access == open,
			Session: r.access == signedIn || r.access == enrolling || within, Form: r.form != nil || r.done != "",
		})
	}
	return list
}
