package storetest

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/store"
)

// happenings adds events that differ in every field that lists filter by. Some have the
// same time.
func (b *bench) happenings() (list []store.Event, people []string) {
	b.Helper()
	people = []string{b.id(), b.id(), b.id()}
	types := []store.EventType{store.EventUserBanned, store.EventSignedIn, store.EventSignInFailed, store.EventRoleChanged, store.EventMessageFailed, "user_like.no_other"}
	for i := range 36 {
		e := b.event(now.Add(time.Duration(i/2) * minute))
		e.Type = types[i%len(types)]
		if i%4 != 3 {
			e.UserID = people[i%len(people)]
		}
		switch i % 5 {
		case 0:
			e.Actor = store.Actor{Kind: store.ActorUser, ID: e.UserID}
		case 1, 2:
			e.Actor = store.Actor{Kind: store.ActorUser, ID: people[(i+1)%len(people)]}
		case 3:
			e.Actor = store.Actor{Kind: store.ActorSystem, ID: "billing"}
		}
		if i%2 == 0 {
			e.Client.IP = netip.MustParseAddr([]string{"192.0.2.1", "2001:db8::1"}[i/2%2])
		}
		if i%3 == 1 {
			e.Record = &store.Record{Actor: "root", Target: []string{"editor", people[0]}[i/3%2], RequestID: fmt.Sprint("r", i%4), Denied: i%2 == 0}
		}
		list = append(list, e)
	}
	return list, people
}

// wanted reports whether a query picks an event.
func wanted(e store.Event, q store.EventQuery) bool {
	var r store.Record
	if e.Record != nil {
		r = *e.Record
	}
	outcome := store.EventDone
	switch {
	case r.Denied:
		outcome = store.EventDenied
	case e.Type == store.EventSignInFailed || e.Type == store.EventMessageFailed:
		outcome = store.EventFailed
	}
	about := q.Target == "" || q.Target == "editor" && r.Target == "editor" || q.Target != "editor" && strings.EqualFold(e.UserID, q.Target)
	same := func(want, got string) bool { return want == "" || strings.EqualFold(want, got) }
	rest := []bool{
		same(q.ID, e.ID), same(q.UserID, e.UserID), same(q.ActorID, e.Actor.ID), same(q.RequestID, r.RequestID), about,
		same(q.Involving, e.UserID) || same(q.Involving, e.Actor.ID),
		q.Type == "" || string(e.Type) == q.Type || strings.HasSuffix(q.Type, "*") && strings.HasPrefix(string(e.Type), strings.TrimSuffix(q.Type, "*")),
		len(q.Types) == 0 || slices.Contains(q.Types, e.Type),
		!q.IP.IsValid() || q.IP == e.Client.IP,
		q.Outcome == "" || q.Outcome == outcome,
		q.From.IsZero() || !e.At.Before(q.From),
		q.To.IsZero() || e.At.Before(q.To),
	}
	return !slices.Contains(rest, false)
}

// eventQueries returns each filter of the audit log alone, and combinations.
func eventQueries(all []store.Event, people []string) map[string]store.EventQuery {
	ip := netip.MustParseAddr("2001:db8::1")
	return map[string]store.EventQuery{
		"one":                         {ID: all[7].ID},
		"about somebody":              {UserID: people[0]},
		"about somebody in capitals":  {UserID: strings.ToUpper(people[0])},
		"about or by somebody":        {Involving: people[1]},
		"by somebody":                 {ActorID: people[1]},
		"by code":                     {ActorID: "billing"},
		"by nobody":                   {ActorID: "bill"},
		"of a target":                 {Target: people[0]},
		"of a target that is named":   {Target: "editor"},
		"of a type":                   {Type: string(store.EventSignedIn)},
		"of types":                    {Type: "user.*"},
		"of types that there are not": {Type: "nothing.*"},
		"of two types":                {Types: []store.EventType{store.EventUserBanned, store.EventSignInFailed}},
		"of two types, about":         {UserID: people[0], Types: []store.EventType{store.EventUserBanned, store.EventSignedIn}, Outcome: store.EventDone},
		"from an address":             {IP: ip},
		"of a request":                {RequestID: "r1"},
		"done":                        {Outcome: store.EventDone},
		"denied":                      {Outcome: store.EventDenied},
		"failed":                      {Outcome: store.EventFailed},
		"within":                      {From: now.Add(3 * minute), To: now.Add(9 * minute)},
		"of types, done, within":      {Type: "user.*", Outcome: store.EventDone, From: now.Add(2 * minute), To: now.Add(15 * minute)},
		"of types, by somebody":       {Type: "user.*", ActorID: people[2]},
		"of a type, about or by":      {Type: string(store.EventUserBanned), Involving: people[0]},
		"by one about another":        {ActorID: people[1], Involving: people[0]},
		"by one about oneself":        {ActorID: people[0], Involving: people[0]},
		"by one, of a target":         {ActorID: people[1], Target: people[0], IP: ip},
		"denied, from an address":     {Outcome: store.EventDenied, IP: netip.MustParseAddr("192.0.2.1")},
		"failed, about or by":         {Outcome: store.EventFailed, Involving: people[2]},
	}
}

// eventLists checks Events, AddEvents and SweepEvents.
func eventLists() checks {
	return checks{
		"lists of events hold what a query picks, in its order, page by page": func(b *bench) {
			all, people := b.happenings()
			b.ok(b.journal.AddEvents(b.ctx(), all))
			slices.SortFunc(all, func(x, y store.Event) int {
				if c := y.At.Compare(x.At); c != 0 {
					return c
				}
				return strings.Compare(y.ID, x.ID)
			})
			queries := eventQueries(all, people)
			for _, name := range slices.Sorted(maps.Keys(queries)) {
				q := queries[name]
				need(b.of("%s", name), "what is wrong with the query", q.Check(), nil)
				want := []string{}
				for _, e := range all {
					if wanted(e, q) {
						want = append(want, e.ID)
					}
				}
				for _, q.Limit = range []int{1, 4, 100} {
					b.eventPages(name, q, want)
				}
			}
		},
		"events that came without a change are kept once": func(b *bench) {
			all, _ := b.happenings()
			b.ok(b.journal.AddEvents(b.ctx(), all[:2]))
			spoilt := all[0]
			spoilt.Reason = "spoilt"
			b.ok(b.journal.AddEvents(b.ctx(), []store.Event{spoilt, all[2]}))
			b.ok(b.journal.AddEvents(b.ctx(), nil))
			got, err := b.journal.Events(b.ctx(), store.EventQuery{})
			b.ok(err)
			need(b, "number of events", len(got), 3)
			for _, e := range got {
				equal(b, "Event.Reason", e.Reason, "")
			}
		},
		"whatever strangers send can be recorded": func(b *bench) {
			e := b.event(now)
			e.Reason, e.Client.UserAgent = "a\x00b", "c\xff\x00d"
			e.Record = &store.Record{Target: "e\x00f", Changes: map[string]store.FieldChange{"g": {Before: "h\x00i", After: `\u0000`}}}
			b.ok(b.journal.AddEvents(b.ctx(), []store.Event{e}))
			b.lists(store.EventQuery{}, e.ID)
		},
		"an operation's event names the sessions that it ended": func(b *bench) {
			w := newWorld(b)
			u, ends := w.settled()
			e := b.event(now)
			e.Type, e.Record = store.EventSessionsEnded, &store.Record{Actor: "root"}
			for _, want := range [][]string{ends, nil} {
				e.ID = b.id()
				c := store.RevokeSessions{Change: by(now), UserID: u.ID}
				c.Events = []store.OutcomeEvent{{Event: e}}
				_, err := b.RevokeSessions(b.ctx(), c)
				b.ok(err)
				got, err := b.journal.Events(b.ctx(), store.EventQuery{ID: e.ID})
				b.ok(err)
				need(b, "number of events", len(got), 1)
				listed(b, "Event.SessionIDs", got[0].SessionIDs, want)
			}
		},
		"a sweep of events takes those before an instant, up to a limit": func(b *bench) {
			all, _ := b.happenings()
			b.ok(b.journal.AddEvents(b.ctx(), all))
			total := 0
			for range len(all) {
				n, err := b.journal.SweepEvents(b.ctx(), now.Add(9*minute), now, 5)
				b.ok(err)
				if n > 5 {
					b.wrong("number of events swept", n, "at most 5")
				}
				if total += n; n == 0 {
					break
				}
			}
			equal(b, "number of events swept", total, 18)
			left, err := b.journal.Events(b.ctx(), store.EventQuery{Limit: 100})
			b.ok(err)
			need(b, "number of events left", len(left), 18)
			equal(b, "the oldest", left[17].At, now.Add(9*minute))
		},
	}
}

// eventPages reads a list page by page and compares it with want.
func (b *bench) eventPages(name string, q store.EventQuery, want []string) {
	b.Helper()
	got := []string{}
	for range len(want) + 2 {
		list, err := b.journal.Events(b.ctx(), q)
		b.ok(err)
		if len(list) > q.Limit {
			b.of("%s", name).wrong("the number of a page", len(list), fmt.Sprintf("at most %d", q.Limit))
			return
		}
		for _, e := range list {
			got = append(got, e.ID)
		}
		if len(list) < q.Limit {
			break
		}
		q.Before = &list[len(list)-1]
	}
	q.Before = nil
	b.page(name, q, got, want)
}
