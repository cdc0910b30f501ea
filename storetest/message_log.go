package storetest

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/store"
)

// told describes a message with a log entry that is due now.
func (b *bench) told(kind store.Kind, userID string) store.SealedMessage {
	b.Helper()
	m := b.message()
	m.Log = store.MessageLog{Kind: kind, Channel: store.ChannelEmail, To: "a•••a@e•••e.com", UserID: userID}
	return m
}

// records returns the records of a query, newest first.
func (b *bench) records(q store.MessageQuery) []store.MessageRecord {
	b.Helper()
	if q.Limit == 0 {
		q.Limit = 1000
	}
	list, err := b.journal.ListMessages(b.ctx(), q)
	b.ok(err)
	return list
}

// noted checks the record of a message.
func (b *bench) noted(m store.SealedMessage, f store.FinishMessage) {
	b.Helper()
	want := store.MessageRecord{ID: m.ID, MessageLog: m.Log, State: f.State, Attempts: f.Attempts, CreatedAt: m.CreatedAt, UpdatedAt: f.At, Error: f.Error}
	need(b, "records", b.records(store.MessageQuery{ID: m.ID}), []store.MessageRecord{want})
}

func (b *bench) end(f store.FinishMessage) {
	b.Helper()
	b.ok(b.journal.FinishMessage(b.ctx(), f))
}

// fail adds a message and finishes it as failed, kept for half an hour.
func (b *bench) fail(m store.SealedMessage) store.FinishMessage {
	b.Helper()
	b.post(b.user("").ID, m)
	f := store.FinishMessage{ID: m.ID, State: store.MessageFailed, At: now.Add(us), Attempts: 3, Error: "refused", KeepUntil: now.Add(30 * minute)}
	b.end(f)
	return f
}

// useless checks that a message cannot be sent again.
func (b *bench) useless(id string, at time.Time) {
	b.Helper()
	_, err := b.journal.FailedMessage(b.ctx(), id, at)
	b.is(err, store.ErrNotFound)
	b.is(b.journal.RetryMessage(b.ctx(), store.RetryMessage{Change: by(at), ID: id}), store.ErrStale)
}

// messageLog checks Journal.
func messageLog() checks {
	const link, reset = store.KindMagicLink, store.KindResetPassword
	return merge(checks{
		"it is noted what became of a message": func(b *bench) {
			u := b.user("ada@example.com")
			m := b.told(link, u.ID)
			b.post(u.ID, m)
			b.noted(m, store.FinishMessage{State: store.MessageQueued, At: m.CreatedAt})
			b.claims(now, m.ID)
			f := store.FinishMessage{ID: m.ID, State: store.MessageQueued, RetryAt: now.Add(minute), At: now.Add(us), Attempts: 1, Error: "busy"}
			b.end(f)
			b.noted(m, f)
			b.claims(now.Add(minute), m.ID)
			f = store.FinishMessage{ID: m.ID, State: store.MessageSent, At: now.Add(2 * minute), Attempts: 2}
			b.end(f)
			b.noted(m, f)
			b.claims(now.Add(5 * minute))
			for _, f := range []store.FinishMessage{
				{State: store.MessageFailed, At: now.Add(us), Attempts: 7, Error: "refused"},
				{State: store.MessageDropped, At: now.Add(us)},
			} {
				m := b.told(link, "")
				b.post(u.ID, m)
				f.ID = m.ID
				b.end(f)
				b.noted(m, f)
				b.useless(m.ID, now)
				b.claims(now)
			}
		},
		"a claim without an outcome is no attempt": func(b *bench) {
			m := b.told(link, "")
			b.post(b.user("").ID, m)
			claim := func(at time.Time, attempts int) {
				b.Helper()
				list, err := b.journal.ClaimMessages(b.ctx(), store.ClaimMessages{Now: at, Until: at.Add(minute), Limit: 1})
				b.ok(err)
				var got []int
				for _, m := range list {
					got = append(got, m.Attempts)
				}
				equal(b, "attempts", got, []int{attempts})
			}
			claim(now, 1)
			claim(now.Add(minute), 1)
			b.end(store.FinishMessage{ID: m.ID, State: store.MessageQueued, RetryAt: now.Add(2 * minute), At: now.Add(minute), Attempts: 1, Error: "busy"})
			claim(now.Add(2*minute), 2)
			claim(now.Add(3*minute), 2)
			b.end(store.FinishMessage{ID: m.ID, State: store.MessageFailed, At: now.Add(3 * minute), Attempts: 2, KeepUntil: now.Add(30 * minute)})
			b.ok(b.journal.RetryMessage(b.ctx(), store.RetryMessage{Change: by(now.Add(4 * minute)), ID: m.ID}))
			claim(now.Add(4*minute), 1)
		},
		"of a message that was sent nothing else is noted": func(b *bench) {
			m := b.told(link, "")
			b.post(b.user("").ID, m)
			sent := store.FinishMessage{ID: m.ID, State: store.MessageSent, At: now, Attempts: 1}
			b.end(sent)
			for _, f := range []store.FinishMessage{{State: store.MessageFailed, KeepUntil: now.Add(minute)}, {State: store.MessageQueued, RetryAt: now}, {}} {
				f.ID, f.At = m.ID, now.Add(us)
				b.end(f)
				b.noted(m, sent)
			}
		},
		"decoys are in no list": func(b *bench) {
			u := b.user("ada@example.com")
			ended, waits, over := b.message(), b.message(), b.message()
			over.ExpiresAt = now
			b.post(u.ID, ended, waits, over)
			b.end(store.FinishMessage{ID: ended.ID})
			_, err := b.Sweep(b.ctx(), now, 100)
			b.ok(err)
			equal(b, "records", b.records(store.MessageQuery{}), []store.MessageRecord{})
			equal(b, "records", b.records(store.MessageQuery{ID: waits.ID}), []store.MessageRecord{})
			b.claims(now, waits.ID)
		},
		"a message that failed is kept, and sent again under its id": func(b *bench) {
			m := b.told(link, "")
			t := newToken("t", "subject")
			t.ExpiresAt = now.Add(time.Hour)
			b.token(t)
			m.Token = store.TokenRef{Purpose: t.Purpose, Hash: t.Hash}
			f := b.fail(m)
			b.noted(m, f)
			b.claims(now)
			b.claims(now.Add(30*minute - us))
			got, err := b.journal.FailedMessage(b.ctx(), m.ID, now)
			b.ok(err)
			want := m
			want.Log, want.NextAt, want.ExpiresAt = store.MessageLog{}, got.NextAt, f.KeepUntil
			need(b, "the message", got, want)
			at := now.Add(2 * us)
			b.ok(b.journal.RetryMessage(b.ctx(), store.RetryMessage{Change: by(at), ID: m.ID}))
			b.noted(m, store.FinishMessage{State: store.MessageQueued, At: at, Error: f.Error})
			b.useless(m.ID, at)
			list, err := b.journal.ClaimMessages(b.ctx(), store.ClaimMessages{Now: at, Until: at.Add(minute), Limit: 10})
			b.ok(err)
			need(b, "the number of messages claimed", len(list), 1)
			equal(b, "SealedMessage.Attempts", list[0].Attempts, 1)
			equal(b, "SealedMessage.Body", string(list[0].Body), "sealed")
			b.useless(b.id(), now)
			b.useless("nobody's", now)
		},
		"a message that failed is kept no longer than it is of use": func(b *bench) {
			long, short, used := b.told(link, ""), b.told(link, ""), b.told(link, "")
			short.ExpiresAt = now.Add(minute)
			b.token(newToken("t", "subject"))
			used.Token = store.TokenRef{Purpose: store.PurposeMagicLink, Hash: hashOf("t")}
			for _, m := range []store.SealedMessage{long, short, used} {
				b.fail(m)
			}
			for _, id := range []string{long.ID, short.ID, used.ID} {
				_, err := b.journal.FailedMessage(b.ctx(), id, now.Add(minute-us))
				b.ok(err)
			}
			b.ok(b.redeem("t"))
			b.useless(used.ID, now)
			b.useless(short.ID, now.Add(minute))
			b.useless(long.ID, now.Add(30*minute))
			_, err := b.Sweep(b.ctx(), now.Add(30*minute), 100)
			b.ok(err)
			b.useless(long.ID, now) // it was deleted
			equal(b, "messages that failed", len(b.records(store.MessageQuery{State: store.MessageFailed})), 3)
		},
		"of parallel retries one has a message sent again": func(b *bench) {
			m := b.told(link, "")
			b.fail(m)
			won, _ := b.race(func(int) error {
				return b.journal.RetryMessage(b.ctx(), store.RetryMessage{Change: by(now), ID: m.ID})
			}, store.ErrStale)
			equal(b, "retries that succeeded", won, 1)
			b.claims(now, m.ID)
		},
		"a sweep notes what it drops, and deletes what is old": func(b *bench) {
			old, recent, over, dead := b.told(link, ""), b.told(link, ""), b.told(link, ""), b.told(link, "")
			old.CreatedAt = now.Add(-store.MessageLogLife)
			recent.CreatedAt = old.CreatedAt.Add(us)
			over.ExpiresAt = now
			dead.Token = store.TokenRef{Purpose: store.PurposeMagicLink, Hash: hashOf("never")}
			b.post(b.user("").ID, old, recent, over, dead)
			for _, m := range []store.SealedMessage{old, recent} {
				b.end(store.FinishMessage{ID: m.ID, State: store.MessageSent, At: now})
			}
			n, err := b.Sweep(b.ctx(), now, 100)
			b.ok(err)
			equal(b, "deleted", n, 3)
			equal(b, "records of the old one", b.records(store.MessageQuery{ID: old.ID}), []store.MessageRecord{})
			b.noted(recent, store.FinishMessage{State: store.MessageSent, At: now})
			b.noted(over, store.FinishMessage{State: store.MessageDropped, At: now})
			b.noted(dead, store.FinishMessage{State: store.MessageDropped, At: now})
		},
		"a caller who has gone learns and changes nothing": func(b *bench) {
			m := b.told(link, "")
			f := b.fail(m)
			_, err := b.journal.ListMessages(cancelled(), store.MessageQuery{Limit: 1})
			b.gone(err)
			_, err = b.journal.FailedMessage(cancelled(), m.ID, now)
			b.gone(err)
			b.gone(b.journal.RetryMessage(cancelled(), store.RetryMessage{Change: by(now), ID: m.ID}))
			b.noted(m, f)
		},
	}, messageLists(link, reset), messagesOfUsers(link))
}

func messageLists(kinds ...store.Kind) checks {
	return checks{
		"lists hold the messages that a query picks, newest first, page by page": func(b *bench) {
			ada, eve := b.user("ada@example.com").ID, b.user("eve@example.com").ID
			states := []store.MessageState{store.MessageQueued, store.MessageSent, store.MessageFailed}
			var all []store.MessageRecord
			for i := range 18 {
				m := b.told(kinds[i%2], []string{ada, eve, ""}[i%3])
				m.CreatedAt = now.Add(time.Duration(i/4) * time.Second)
				b.post(ada, m, b.message())
				state := states[i/2%3]
				if state != store.MessageQueued {
					b.end(store.FinishMessage{ID: m.ID, State: state, At: now})
				}
				all = append(all, store.MessageRecord{ID: m.ID, MessageLog: m.Log, State: state, CreatedAt: m.CreatedAt})
			}
			slices.SortFunc(all, func(x, y store.MessageRecord) int {
				if c := y.CreatedAt.Compare(x.CreatedAt); c != 0 {
					return c
				}
				return strings.Compare(y.ID, x.ID)
			})
			for name, q := range map[string]store.MessageQuery{
				"all":       {},
				"one":       {ID: all[3].ID},
				"queued":    {State: store.MessageQueued},
				"failed":    {State: store.MessageFailed},
				"dropped":   {State: store.MessageDropped},
				"of a kind": {Kind: kinds[1]},
				"of one":    {UserID: eve},
				"of nobody": {UserID: b.id()},
				"from":      {From: now.Add(2 * time.Second)},
				"to":        {To: now.Add(2 * time.Second)},
				"together":  {State: store.MessageSent, Kind: kinds[0], UserID: ada, From: now, To: now.Add(time.Hour)},
			} {
				want := []string{}
				for _, r := range all {
					if (q.ID == "" || q.ID == r.ID) && (q.State == "" || q.State == r.State) && (q.Kind == "" || q.Kind == r.Kind) && (q.UserID == "" || q.UserID == r.UserID) &&
						!r.CreatedAt.Before(q.From) && (q.To.IsZero() || r.CreatedAt.Before(q.To)) {
						want = append(want, r.ID)
					}
				}
				for _, q.Limit = range []int{1, 4, 100} {
					q.After = nil
					got := []string{}
					for range len(want) + 2 {
						list := b.records(q)
						for _, r := range list {
							got = append(got, r.ID)
						}
						if len(list) < q.Limit {
							break
						}
						last := list[len(list)-1]
						q.After = &store.MessageCursor{Time: last.CreatedAt, ID: last.ID}
					}
					q.After = nil
					b.page(name, q, got, want)
				}
			}
		},
	}
}

func messagesOfUsers(kind store.Kind) checks {
	return checks{
		"what is noted of messages goes with their user": func(b *bench) {
			u, other := b.user("ada@example.com"), b.user("eve@example.com")
			sent, failed, others := b.told(kind, u.ID), b.told(kind, u.ID), b.told(kind, other.ID)
			b.post(other.ID, sent, others)
			b.end(store.FinishMessage{ID: sent.ID, State: store.MessageSent, At: now})
			b.fail(failed)
			b.ok(b.delete(u.ID))
			b.useless(failed.ID, now)
			equal(b, "records", len(b.records(store.MessageQuery{})), 1)
			b.noted(others, store.FinishMessage{State: store.MessageQueued, At: others.CreatedAt})
		},
		"what is noted of messages to the anonymised goes": func(b *bench) {
			if b.admin == nil {
				return
			}
			u, other := b.whole(), b.user("eve@example.com")
			mine, to, others, nobodys := b.told(kind, u.ID), b.told(kind, ""), b.told(kind, other.ID), b.told(kind, "")
			to.Recipient, others.Recipient = "her", "him"
			b.post(other.ID, mine, to, others, nobodys)
			for _, m := range []store.SealedMessage{mine, to, others, nobodys} {
				b.end(store.FinishMessage{ID: m.ID, State: store.MessageFailed, At: now, KeepUntil: now.Add(minute)})
			}
			_, err := b.admin.AnonymizeUser(b.ctx(), store.AnonymizeUser{Change: by(now), UserID: u.ID, Recipients: []string{"her", ""}})
			b.ok(err)
			for _, m := range []store.SealedMessage{mine, to} {
				b.useless(m.ID, now)
				equal(b, "records", b.records(store.MessageQuery{ID: m.ID}), []store.MessageRecord{})
			}
			for _, m := range []store.SealedMessage{others, nobodys} {
				b.noted(m, store.FinishMessage{State: store.MessageFailed, At: now})
				_, err := b.journal.FailedMessage(b.ctx(), m.ID, now)
				b.ok(err)
			}
		},
	}
}

func retryMessage(w *world) attempt {
	m := w.told(store.KindMagicLink, "")
	w.fail(m)
	return attempt{user: w.person(), call: func(ctx context.Context, c store.Change) error {
		return w.journal.RetryMessage(ctx, store.RetryMessage{Change: c, ID: m.ID})
	}}
}
