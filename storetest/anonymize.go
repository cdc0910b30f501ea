package storetest

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// anonymizing checks AdminStore.
func anonymizing() checks {
	return checks{
		"whatever tells who somebody was goes, and the id stays": func(b *bench) {
			u := b.whole()
			s := b.session(u.ID)
			ended := b.session(u.ID)
			_, err := b.revoke(u.ID, store.SessionFilter{ID: ended.ID})
			b.ok(err)
			u, err = b.User(b.ctx(), store.ByID(u.ID))
			b.ok(err)
			about, mine, others := newToken("about", "subject"), newToken("mine", ""), newToken("others", "other")
			about.Purpose, mine.UserID = store.PurposeInvitation, u.ID
			for _, t := range []store.Token{about, mine, others} {
				b.ok(b.put(t))
			}
			left, err := b.admin.AnonymizeUser(b.ctx(), store.AnonymizeUser{Change: by(now), UserID: u.ID, Label: "label", Subjects: []string{"subject"}})
			b.ok(err)
			want := (&store.AnonymizeUser{}).Patch().Apply(store.Credentials{User: u, PasswordHash: "hash"}, now, 0)
			b.sameUser(left, want.User)
			b.stands(want)
			equal(b, "User.Anonymized", left.Anonymized(), true)
			for _, id := range []string{s.ID, ended.ID} {
				_, _, err := b.Session(b.ctx(), id, now)
				b.is(err, store.ErrNotFound)
			}
			for _, t := range []store.Token{about, mine} {
				_, err := b.PeekToken(b.ctx(), t.Purpose, t.Hash, now)
				b.is(err, store.ErrNotFound)
			}
			_, err = b.PeekToken(b.ctx(), others.Purpose, others.Hash, now)
			b.ok(err)
			_, err = b.User(b.ctx(), store.ByEmail(u.Email))
			b.is(err, store.ErrNotFound)
			_, err = b.admin.AnonymizeUser(b.ctx(), store.AnonymizeUser{Change: by(now), UserID: b.id()})
			b.is(err, store.ErrNotFound)
		},
		"no field keeps what a user entered": func(b *bench) {
			u, err := b.create(b.filled(&filler{}))
			b.ok(err)
			left, err := b.admin.AnonymizeUser(b.ctx(), store.AnonymizeUser{Change: by(now), UserID: u.ID, Label: "label"})
			b.ok(err)
			kept := append(owned(), "ID", "Handle", "CreatedAt", "UpdatedAt", "LastSignInAt", "BannedUntil")
			for v, i := reflect.ValueOf(left), 0; i < v.NumField(); i++ {
				name, f := v.Type().Field(i).Name, v.Field(i)
				if empty := f.IsZero() || (f.Kind() == reflect.Map || f.Kind() == reflect.Slice) && f.Len() == 0; !empty && !slices.Contains(kept, name) {
					b.wrong("User."+name, f.Interface(), "nothing")
				}
			}
		},
		"events tell of them no more": func(b *bench) {
			if b.journal == nil {
				return
			}
			u, eve := b.whole(), b.user("eve@example.com")
			record := func(userID string, e store.Event) {
				b.Helper()
				e.ID, e.Type, e.At, e.UserID = b.id(), store.EventUserUpdated, now, userID
				e.Client = store.Client{UserAgent: "engine"}
				t := store.PutToken{Change: by(now), Token: newToken(b.id(), "")} // about no user
				t.Events = []store.OutcomeEvent{{Event: e}}
				b.ok(b.PutToken(b.ctx(), t))
			}
			hers, eves := store.Actor{Kind: store.ActorUser, ID: u.ID}, store.Actor{Kind: store.ActorUser, ID: eve.ID}
			changes := map[string]store.FieldChange{"email": {Before: "ada@example.com"}, "roles": {After: []any{"r"}}}
			record(u.ID, store.Event{Actor: hers, Reason: "ada", Record: &store.Record{Actor: "ada@example.com", Target: "ada@example.com", Changes: changes}})
			record(u.ID, store.Event{Actor: eves, Record: &store.Record{Actor: "eve@example.com", Target: "ada@example.com", Changes: changes}})
			record(eve.ID, store.Event{Actor: hers, Record: &store.Record{Actor: "ada@example.com", Target: "eve@example.com"}})
			record("", store.Event{Actor: hers, Record: &store.Record{Actor: "ada@example.com", Target: "role"}})
			record("", store.Event{Actor: hers})
			record(eve.ID, store.Event{Actor: eves, Record: &store.Record{Actor: "eve@example.com", Target: "eve@example.com"}})
			record(u.ID, store.Event{})
			record("", store.Event{Actor: eves, Record: &store.Record{Target: "name"}})
			record("", store.Event{Actor: eves, Record: &store.Record{Target: "other"}})
			before, err := b.journal.Events(b.ctx(), store.EventQuery{})
			b.ok(err)
			c := store.AnonymizeUser{Change: by(now.Add(time.Second)), UserID: u.ID, Label: "label", Names: []string{"name"}}
			own := store.Event{ID: b.id(), Type: store.EventUserAnonymized, At: now.Add(time.Second), UserID: u.ID, Reason: "asked", Actor: eves}
			c.Events = []store.OutcomeEvent{{Event: own}}
			_, err = b.admin.AnonymizeUser(b.ctx(), c)
			b.ok(err)
			after, err := b.journal.Events(b.ctx(), store.EventQuery{})
			b.ok(err)
			want := []store.Event{own}
			for _, e := range before {
				if e.Record != nil && e.Record.Target == "name" {
					e.Record.Target = "label"
				} else if e.UserID == u.ID || e.Actor.ID == u.ID {
					e = c.Rewrite(e)
				}
				want = append(want, e)
			}
			equal(b, "events", after, want)
			for _, e := range after {
				if e.UserID != u.ID && e.Record != nil && e.Actor == hers {
					equal(b, "the operator and the client of an operation", []string{e.Record.Actor, e.Client.UserAgent}, []string{"ada@example.com", "engine"})
				}
				if e.UserID == u.ID && e.Record != nil {
					equal(b, "changes that are kept", e.Record.Changes, map[string]store.FieldChange{"roles": changes["roles"]})
				}
			}
		},
		"the ids of deleted users are known": func(b *bench) {
			u, other := b.user("ada@example.com"), b.user("bob@example.com")
			deleted := func(id string, want bool) {
				b.Helper()
				got, err := b.admin.UserDeleted(b.ctx(), id)
				b.ok(err)
				equal(b, "UserDeleted", got, want)
			}
			deleted(u.ID, false)
			refused := by(now)
			refused.IfUsers = []store.UserAt{{ID: b.id()}}
			b.is(b.DeleteUser(b.ctx(), store.DeleteUser{Change: refused, UserID: u.ID}), store.ErrStale)
			deleted(u.ID, false)
			_, err := b.admin.AnonymizeUser(b.ctx(), store.AnonymizeUser{Change: by(now), UserID: other.ID})
			b.ok(err)
			b.ok(b.DeleteUser(b.ctx(), store.DeleteUser{Change: by(now), UserID: u.ID}))
			deleted(u.ID, true)
			deleted(other.ID, false)
			deleted("no id", false)
			_, err = b.CreateUser(b.ctx(), store.CreateUser{Change: by(now), NewUser: store.NewUser{User: u}})
			b.ok(err)
			b.ok(b.DeleteUser(b.ctx(), store.DeleteUser{Change: by(now), UserID: u.ID}))
			deleted(u.ID, true)
		},
		"messages to them are not sent": func(b *bench) {
			if b.journal == nil {
				return
			}
			u := b.whole()
			mine, to, others := b.message(), b.message(), b.message()
			mine.UserID, to.Recipient, others.Recipient = u.ID, "her", "him"
			b.post(u.ID, mine, to, others)
			_, err := b.admin.AnonymizeUser(b.ctx(), store.AnonymizeUser{Change: by(now), UserID: u.ID, Recipients: []string{"her"}})
			b.ok(err)
			b.claims(now, others.ID)
		},
	}
}

func anonymizeUser(w *world) attempt {
	u, ids := w.settled()
	return attempt{user: u, about: u.ID, ends: ids, call: func(ctx context.Context, c store.Change) error {
		_, err := w.admin.AnonymizeUser(ctx, store.AnonymizeUser{Change: c, UserID: u.ID, Label: u.ID})
		return err
	}}
}
