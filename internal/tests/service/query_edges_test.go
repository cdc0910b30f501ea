package service_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/store"
)

// Each condition on a query holds by itself, up to its very edge.
func TestQueriesAreCheckedToTheirEdges(t *testing.T) {
	t.Parallel()
	const id = "01a21251-97c7-7a5f-b538-a77c53d49233"
	at := time.Unix(1767323045, 0)
	long := func(n int) string { return strings.Repeat("a", n) }
	members := func(n int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m[fmt.Sprint("m", i)] = ""
		}
		return m
	}
	users := func(field string, edit func(q *store.UserQuery)) queryCase {
		q := store.UserQuery{Limit: 1}
		edit(&q)
		return queryCase{&q, field}
	}
	events := func(field string, edit func(q *store.EventQuery)) queryCase {
		q := store.EventQuery{Limit: 1}
		edit(&q)
		return queryCase{&q, field}
	}
	sessions := func(field string, edit func(q *store.SessionQuery)) queryCase {
		q := store.SessionQuery{Limit: 1}
		edit(&q)
		return queryCase{&q, field}
	}
	messages := func(field string, edit func(q *store.MessageQuery)) queryCase {
		q := store.MessageQuery{Limit: 1}
		edit(&q)
		return queryCase{&q, field}
	}
	for i, c := range []queryCase{
		users("", func(*store.UserQuery) {}),
		users("limit", func(q *store.UserQuery) { q.Limit = 0 }),
		users("", func(q *store.UserQuery) { q.Email = long(512) }), users("email", func(q *store.UserQuery) { q.Email = long(513) }), users("email", func(q *store.UserQuery) { q.Email = "\xff" }), users("email", func(q *store.UserQuery) { q.Email = "\x00" }),
		users("phone", func(q *store.UserQuery) { q.Phone = long(513) }),
		users("provider", func(q *store.UserQuery) { q.Provider = long(513) }),
		users("subject", func(q *store.UserQuery) { q.Provider, q.Subject = "google", long(513) }),
		users("provider", func(q *store.UserQuery) { q.Subject = "1" }), users("", func(q *store.UserQuery) { q.Provider, q.Subject = "google", "1" }), users("", func(q *store.UserQuery) { q.Provider = "google" }),
		users("q", func(q *store.UserQuery) { q.Prefix = long(513) }),
		users("", func(q *store.UserQuery) { q.Domain = long(512) }), users("domain", func(q *store.UserQuery) { q.Domain = long(513) }), users("domain", func(q *store.UserQuery) { q.Domain = "a@b" }),
		users("role", func(q *store.UserQuery) { q.Role = long(513) }),
		users("", func(q *store.UserQuery) { q.Metadata = members(10) }), users("metadata", func(q *store.UserQuery) { q.Metadata = members(11) }),
		users("metadata", func(q *store.UserQuery) { q.Metadata = map[string]string{"": "v"} }),
		users("", func(q *store.UserQuery) { q.Metadata = map[string]string{long(256): long(256)} }), users("metadata", func(q *store.UserQuery) { q.Metadata = map[string]string{long(256): long(257)} }),
		users("metadata", func(q *store.UserQuery) { q.Metadata = map[string]string{"\x00": "v"} }), users("metadata", func(q *store.UserQuery) { q.Metadata = map[string]string{"n": "\xff"} }),
		users("", func(q *store.UserQuery) { q.ID = strings.ToUpper(id) }), users("id", func(q *store.UserQuery) { q.ID = "1" }),
		users("", func(q *store.UserQuery) { q.IDs = slices.Repeat([]string{id}, 200) }), users("ids", func(q *store.UserQuery) { q.IDs = slices.Repeat([]string{id}, 201) }),
		users("ids", func(q *store.UserQuery) { q.IDs = []string{id, "1"} }), users("", func(q *store.UserQuery) { q.IDs = []string{strings.ToUpper(id)} }),
		users("", func(q *store.UserQuery) { q.Sort = store.SortCreated }), users("", func(q *store.UserQuery) { q.Sort = store.SortSignedIn }), users("", func(q *store.UserQuery) { q.Sort = store.SortEmail }), users("sort", func(q *store.UserQuery) { q.Sort = "name" }),
		users("", func(q *store.UserQuery) { q.After = &store.UserCursor{ID: id} }), users("cursor", func(q *store.UserQuery) { q.After = &store.UserCursor{} }),

		events("", func(*store.EventQuery) {}),
		events("", func(q *store.EventQuery) { q.ActorID, q.Target, q.RequestID = long(320), long(320), long(320) }),
		events("actor", func(q *store.EventQuery) { q.ActorID = long(321) }), events("target", func(q *store.EventQuery) { q.Target = long(321) }), events("request_id", func(q *store.EventQuery) { q.RequestID = long(321) }),
		events("", func(q *store.EventQuery) { q.ID, q.UserID, q.Involving = id, id, id }),
		events("id", func(q *store.EventQuery) { q.ID = "1" }), events("user", func(q *store.EventQuery) { q.UserID = "1" }), events("involving", func(q *store.EventQuery) { q.Involving = "1" }),
		events("", func(q *store.EventQuery) { q.Type = long(64) }), events("action", func(q *store.EventQuery) { q.Type = long(65) }), events("", func(q *store.EventQuery) { q.Type = "user.*" }), events("action", func(q *store.EventQuery) { q.Type = "*" }),
		events("", func(q *store.EventQuery) { q.Outcome = store.EventDone }), events("", func(q *store.EventQuery) { q.Outcome = store.EventDenied }), events("", func(q *store.EventQuery) { q.Outcome = store.EventFailed }), events("outcome", func(q *store.EventQuery) { q.Outcome = "other" }),
		events("", func(q *store.EventQuery) { q.Before = &auth.Event{At: at, ID: id} }), events("cursor", func(q *store.EventQuery) { q.Before = &auth.Event{ID: id} }), events("cursor", func(q *store.EventQuery) { q.Before = &auth.Event{At: at} }),

		sessions("", func(*store.SessionQuery) {}),
		sessions("limit", func(q *store.SessionQuery) { q.Limit = 0 }),
		sessions("", func(q *store.SessionQuery) { q.AAL = store.LevelAAL1 }), sessions("", func(q *store.SessionQuery) { q.AAL = store.LevelAAL2 }), sessions("aal", func(q *store.SessionQuery) { q.AAL = "aal3" }),
		sessions("", func(q *store.SessionQuery) { q.UserID = id }), sessions("user", func(q *store.SessionQuery) { q.UserID = "1" }),
		sessions("client", func(q *store.SessionQuery) { q.Client = "c" }), sessions("", func(q *store.SessionQuery) { q.Client, q.UserID = "c", id }), sessions("", func(q *store.SessionQuery) { q.Client, q.IP = "c", "192.0.2.1" }), sessions("", func(q *store.SessionQuery) { q.Client, q.Since = "c", at }),
		sessions("", func(q *store.SessionQuery) { q.Client, q.IP = long(256), long(64) }), sessions("client", func(q *store.SessionQuery) { q.Client, q.IP = long(257), "i" }), sessions("client", func(q *store.SessionQuery) { q.IP = long(65) }),
		sessions("client", func(q *store.SessionQuery) { q.Client, q.IP = "\x00", "i" }), sessions("client", func(q *store.SessionQuery) { q.IP = "\x00" }),
		sessions("", func(q *store.SessionQuery) { q.After = &store.SessionCursor{ID: id} }), sessions("cursor", func(q *store.SessionQuery) { q.After = &store.SessionCursor{} }),

		messages("", func(*store.MessageQuery) {}),
		messages("limit", func(q *store.MessageQuery) { q.Limit = 0 }),
		messages("", func(q *store.MessageQuery) { q.ID, q.UserID = id, id }), messages("id", func(q *store.MessageQuery) { q.ID = "1" }), messages("user", func(q *store.MessageQuery) { q.UserID = "1" }),
		messages("", func(q *store.MessageQuery) { q.State = store.MessageQueued }), messages("", func(q *store.MessageQuery) { q.State = store.MessageSent }), messages("", func(q *store.MessageQuery) { q.State = store.MessageFailed }), messages("", func(q *store.MessageQuery) { q.State = store.MessageDropped }),
		messages("state", func(q *store.MessageQuery) { q.State = "other" }), messages("", func(q *store.MessageQuery) { q.Kind = auth.KindMagicLink }), messages("kind", func(q *store.MessageQuery) { q.Kind = "other" }),
		messages("", func(q *store.MessageQuery) { q.After = &store.MessageCursor{Time: time.Unix(0, 0), ID: id} }), messages("cursor", func(q *store.MessageQuery) { q.After = &store.MessageCursor{Time: time.Unix(0, -1), ID: id} }), messages("cursor", func(q *store.MessageQuery) { q.After = &store.MessageCursor{Time: at} }),
	} {
		var e *store.InvalidError
		switch err := c.query.Check(); {
		case c.field == "" && err != nil:
			t.Errorf("case %d, %+v: %v", i, c.query, err)
		case c.field != "" && (!errors.As(err, &e) || e.Field != c.field || e.Problem == ""):
			t.Errorf("case %d, %+v: %v, and %s is wrong", i, c.query, err, c.field)
		}
	}
}

// A search finds a name by the start of each of its first 16 words, and an address by its
// domain.
func TestNamesAndDomains(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("a ", 20)
	for name, want := range map[string][]string{
		"": nil, "Ada": nil, "Ada Lovelace": {"lovelace"}, "Jean-Luc O'Neill": {"luc o'neill", "o'neill", "neill"}, " (Bo) 2nd_X": {"bo) 2nd_x", "2nd_x", "x"},
		"Jose\u0301 a\u0301": {"a\u0301"}, "ÜNAL  İz": {"iz"}, "李 小龙": {"小龙"}, "@x": {"x"}, "a\xff b": {"b"}, "--": nil,
	} {
		if got := store.NameWords(name); !slices.Equal(got, want) {
			t.Errorf("words of %q: %q, want %q", name, got, want)
		}
	}
	if got := store.NameWords(many + "end"); len(got) != 15 {
		t.Errorf("%d later words, want 15", len(got))
	}
	for prefix, want := range map[string]bool{"jean-l": true, "LUC": true, "luc O'": true, "neil": true, "o'n": true, "jean luc": false, "uc": false, "eill": false, "-luc": false, "luc o'neill x": false} {
		if got := store.NameMatches("Jean-Luc O'Neill", prefix); got != want {
			t.Errorf("%q: %t, want %t", prefix, got, want)
		}
	}
	for address, domain := range map[string]string{"Ada@Example.COM": "example.com", "ada@bücher.example": "XN--BCHER-KVA.example", "a@b@c": "C", "none": "none"} {
		if got, want := store.EmailDomain(address), store.DomainKey(domain); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
	if got, want := store.EmailDomain("ada@bücher.example"), store.DomainKey("Bücher.example"); got != want || got != "xn--bcher-kva.example" {
		t.Errorf("%q and %q", got, want)
	}
}

// queryCase is a query, with the field that is wrong, if one is.
type queryCase struct {
	query interface{ Check() error }
	field string
}
