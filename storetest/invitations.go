package storetest

import (
	"time"

	"github.com/authmount/auth/store"
)

// invitations checks AdminStore.
func invitations() checks {
	const purpose = store.PurposeInvitation
	put := func(b *bench, secret, subject string, at time.Time) {
		b.Helper()
		t := newToken(secret, subject)
		t.Purpose, t.CreatedAt, t.ExpiresAt = purpose, at, now.Add(time.Hour)
		b.ok(b.put(t))
	}
	subjects := func(b *bench, q store.InvitationQuery) []string {
		b.Helper()
		list, err := b.admin.ListInvitations(b.ctx(), q)
		b.ok(err)
		names := []string{}
		for _, t := range list {
			names = append(names, t.Subject)
		}
		return names
	}
	return checks{
		"live tokens of a purpose are listed, newest first, by page": func(b *bench) {
			want := []string{}
			for i, subject := range []string{"a", "c", "b", "E", "d"} {
				put(b, subject, subject, now.Add(time.Duration(i/3)*minute))
			}
			put(b, "none", "", now)
			other := newToken("other", "other")
			b.ok(b.put(other))
			over := newToken("over", "over")
			over.Purpose, over.ExpiresAt = purpose, now
			b.ok(b.put(over))
			all := []string{"d", "E", "c", "b", "a"}
			equal(b, "subjects", subjects(b, store.InvitationQuery{Now: now, Limit: 10}), all)
			q := store.InvitationQuery{Now: now, Limit: 2}
			for range 4 {
				page, err := b.admin.ListInvitations(b.ctx(), q)
				b.ok(err)
				for _, t := range page {
					want = append(want, t.Subject)
				}
				if len(page) < q.Limit {
					break
				}
				last := page[len(page)-1].Cursor()
				q.After = &last
			}
			equal(b, "subjects, page by page", want, all)
			equal(b, "subjects at the end", subjects(b, store.InvitationQuery{Now: now.Add(time.Hour), Limit: 10}), []string{})
		},
		"the token about a subject is found whole, superseded and used ones are not": func(b *bench) {
			put(b, "old", "a", now)
			put(b, "used", "b", now)
			t := newToken("new", "a")
			t.Purpose, t.CreatedAt, t.ExpiresAt, t.Data = purpose, now.Add(us), now.Add(minute), []byte("data")
			b.ok(b.put(t))
			list, err := b.admin.ListInvitations(b.ctx(), store.InvitationQuery{Subject: "a", Now: now, Limit: 10})
			b.ok(err)
			equal(b, "tokens", list, []store.Token{t})
			_, _, err = b.RedeemToken(b.ctx(), store.Redemption{Change: by(now), Purpose: purpose, Hash: hashOf("used")})
			b.ok(err)
			equal(b, "subjects", subjects(b, store.InvitationQuery{Now: now, Limit: 10}), []string{"a"})
			equal(b, "subjects", subjects(b, store.InvitationQuery{Subject: "b", Now: now, Limit: 10}), []string{})
			_, err = b.admin.ListInvitations(cancelled(), store.InvitationQuery{Now: now, Limit: 10})
			b.gone(err)
		},
	}
}
