package storetest_test

import (
	"context"
	"math"
	"time"

	"github.com/authmount/auth/store"
)

// sessionListing is a store with faulty lists of sessions.
type sessionListing struct {
	base
	store.AdminStore
	list func(q *store.SessionQuery)
	end  func(c *store.EndEverySession)
}

func (s sessionListing) ListSessions(ctx context.Context, q store.SessionQuery) ([]store.Session, error) {
	if s.list != nil {
		s.list(&q)
	}
	return s.AdminStore.ListSessions(ctx, q)
}

func (s sessionListing) EndEverySession(ctx context.Context, c store.EndEverySession) (int, error) {
	if s.end != nil {
		s.end(&c)
	}
	return s.AdminStore.EndEverySession(ctx, c)
}

// anywhere revokes sessions of all addresses.
type anywhere struct{ base }

func (s anywhere) RevokeSessions(ctx context.Context, c store.RevokeSessions) ([]string, error) {
	c.Filter.IP = ""
	return s.Store.RevokeSessions(ctx, c)
}

func sessionListMutants() map[string]mutant {
	of := func(check string, list func(q *store.SessionQuery), end func(c *store.EndEverySession)) mutant {
		return caught("session lists/"+check, func(b base) store.Store {
			store, _ := store.Capability[store.AdminStore](b.Store)
			return sessionListing{b, store, list, end}
		})
	}
	const listed, ended = "lists hold the live sessions that a query picks, newest first, page by page", "everybody's sessions end, except the one named and those created later"
	return map[string]mutant{
		"a list of sessions forgets the address":   of(listed, func(q *store.SessionQuery) { q.IP = "" }, nil),
		"a list of sessions forgets the client":    of(listed, func(q *store.SessionQuery) { q.Client = "" }, nil),
		"a list of sessions forgets its end":       of(listed, func(q *store.SessionQuery) { q.Before = time.Time{} }, nil),
		"a list of sessions begins again":          of(listed, func(q *store.SessionQuery) { q.After = nil }, nil),
		"a list of sessions tells of what is over": of(listed, func(q *store.SessionQuery) { q.Now = q.Now.Add(-time.Hour) }, nil),
		"no session is kept":                       of(ended, nil, func(c *store.EndEverySession) { c.Except = "" }),
		"those created later end, too":             of(ended, nil, func(c *store.EndEverySession) { c.Until = math.MaxInt64 }),
		"sessions end at any address":              caught("sessions/a user's sessions end by their address and age", func(b base) store.Store { return anywhere{b} }),
	}
}
