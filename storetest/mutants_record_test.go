package storetest_test

import (
	"context"
	"slices"
	"time"

	"github.com/authmount/auth/store"
)

// recordMutants are stores with faulty events, outbox, roles or keys.
func recordMutants() map[string]mutant {
	return map[string]mutant{
		"pages overlap":            caught("events/events are listed, newest first, by page", eventful(func(q *store.EventQuery, _ []store.Event) { q.Before = nil })),
		"events are everybody's":   caught("events/events are listed, newest first, by page", eventful(func(q *store.EventQuery, _ []store.Event) { q.UserID = "" })),
		"events come oldest first": caught("events/events are listed, newest first, by page", eventful(func(_ *store.EventQuery, list []store.Event) { slices.Reverse(list) })),
		"a page is a hundred":      caught("events/fifty events are a page", eventful(func(q *store.EventQuery, _ []store.Event) { q.Limit = max(q.Limit, 100) })),
		"a filter is forgotten":    caught("events/lists of events hold what a query picks, in its order, page by page", eventful(func(q *store.EventQuery, _ []store.Event) { q.Outcome = "" })),
		"types are forgotten":      caught("events/lists of events hold what a query picks, in its order, page by page", eventful(func(q *store.EventQuery, _ []store.Event) { q.Types = nil })),
		"those involved are owners": caught("events/lists of events hold what a query picks, in its order, page by page", eventful(func(q *store.EventQuery, _ []store.Event) {
			if q.Involving != "" {
				q.UserID, q.Involving = q.Involving, ""
			}
		})),
		"added events are lost": caught("events/events that came without a change are kept once", func(b base) store.Store {
			return addsMutant{eventMutant{b, capability[store.Journal](b), func(*store.EventQuery, []store.Event) {}}, 0}
		}),
		"a sweep knows no limit": caught("events/a sweep of events takes those before an instant, up to a limit", func(b base) store.Store {
			return addsMutant{eventMutant{b, capability[store.Journal](b), func(*store.EventQuery, []store.Event) {}}, 1000}
		}),
		"everybody counts each time": caught("stats/an account is active once a day, week and month", func(b base) store.Store { return countsMutant{b, capability[store.ProjectStore](b)} }),
		"events forget the client": caught("events/an event comes back as it went in", eventful(func(_ *store.EventQuery, list []store.Event) {
			each(list, func(e *store.Event) { e.Client = store.Client{} })
		})),
		"events forget whose they are":     caught("permissions/UpdateUser/session", eventful(func(_ *store.EventQuery, list []store.Event) { each(list, func(e *store.Event) { e.UserID = "" }) })),
		"events forget what ended":         caught("permissions/RevokeSessions/session", eventful(func(_ *store.EventQuery, list []store.Event) { each(list, func(e *store.Event) { e.SessionIDs = nil }) })),
		"events forget how many are left":  caught("events/a recovery code's event tells how many are left", eventful(func(_ *store.EventQuery, list []store.Event) { each(list, func(e *store.Event) { e.Left = 0 }) })),
		"messages are claimed for good":    caught("outbox/a message is finished or tried again", func(b base) store.Store { return outboxMutant{b, capability[store.Journal](b), 24 * time.Hour, false} }),
		"messages are not claimed":         caught("outbox/of parallel claims one gets a message", func(b base) store.Store { return outboxMutant{b, capability[store.Journal](b), 0, false} }),
		"messages are never erased":        caught("outbox/a message is finished or tried again", func(b base) store.Store { return outboxMutant{b, capability[store.Journal](b), 0, true} }),
		"the table's revision is its size": caught("roles/roles are added, replaced and removed", func(b base) store.Store { return sizes{b, capability[store.ProjectStore](b)} }),
		"roles of users are removed":       caught("roles/a role that somebody has is not removed", func(b base) store.Store { return takesRoles{b, capability[store.ProjectStore](b)} }),
		"deleted roles lose the mark":      caught("roles/a name stays privileged", func(b base) store.Store { return forgetsNames{b, capability[store.ProjectStore](b)} }),
		"keys keep their revision":         caught("keys/a key is replaced at a new revision", func(b base) store.Store { return sameRevision{b, capability[store.ProjectStore](b)} }),
		"no session creates a text":        caught(textOfKey, func(b base) store.Store { return namesNobody{b, capability[store.ProjectStore](b)} }),
		"the last session has the text":    caught(textOfKey, func(b base) store.Store { return newTexts{b, capability[store.ProjectStore](b)} }),
		"keys of later sessions stay":      caught(keysFrom, patched(func(p *store.UserPatch) { p.RevokeKeys++ })),
		"keys of earlier sessions end":     caught(keysFrom, patched(func(p *store.UserPatch) { p.RevokeKeys = min(p.RevokeKeys, 1) })),
		"keys are replaced unseen":         caught("keys/a key is replaced only as it was seen", func(b base) store.Store { return unseeing{b, capability[store.ProjectStore](b)} }),
		"lists hold keys that are over":    caught("keys/keys are listed, newest first, by page", func(b base) store.Store { return overToo{b, capability[store.ProjectStore](b)} }),
		"keys are used at another time":    caught("keys/a key's use is noted once a minute", func(b base) store.Store { return noting{b, capability[store.ProjectStore](b)} }),
		"revoked keys are gone":            caught("keys/a key is replaced at a new revision", func(b base) store.Store { return onlyLive{b, capability[store.ProjectStore](b)} }),
	}
}

func capability[T any](b base) T {
	c, _ := store.Capability[T](b.Store)
	return c
}

// each edits every event of a list.
func each(list []store.Event, edit func(*store.Event)) {
	for i := range list {
		edit(&list[i])
	}
}

// eventMutant alters the query for events, or its result.
type eventMutant struct {
	base
	store.Journal
	edit func(q *store.EventQuery, list []store.Event)
}

func eventful(edit func(q *store.EventQuery, list []store.Event)) func(base) store.Store {
	return func(b base) store.Store { return eventMutant{b, capability[store.Journal](b), edit} }
}

func (s eventMutant) Events(ctx context.Context, q store.EventQuery) ([]store.Event, error) {
	s.edit(&q, nil)
	list, err := s.Journal.Events(ctx, q)
	s.edit(&q, list)
	return list, err
}

// addsMutant adds no events, or sweeps too many.
type addsMutant struct {
	eventMutant
	limit int
}

func (s addsMutant) AddEvents(ctx context.Context, list []store.Event) error {
	if s.limit == 0 {
		return nil
	}
	return s.Journal.AddEvents(ctx, list)
}

func (s addsMutant) SweepEvents(ctx context.Context, before, now time.Time, _ int) (int, error) {
	return s.Journal.SweepEvents(ctx, before, now, s.limit)
}

// countsMutant counts an active user each time.
type countsMutant struct {
	base
	store.ProjectStore
}

func (s countsMutant) AddCounts(ctx context.Context, c store.AddCounts) error {
	for _, a := range c.Active {
		for period, since := range store.Periods(a.At) {
			c.Counts = append(c.Counts, store.Count{Metric: store.MetricActiveUsers, Label: period, At: since, N: 1})
		}
	}
	c.Active = nil
	return s.ProjectStore.AddCounts(ctx, c)
}

// outboxMutant claims messages for another time, and finishes none.
type outboxMutant struct {
	base
	store.Journal
	claimed time.Duration
	deaf    bool
}

func (s outboxMutant) ClaimMessages(ctx context.Context, c store.ClaimMessages) ([]store.SealedMessage, error) {
	if !s.deaf {
		c.Until = c.Now.Add(s.claimed)
	}
	return s.Journal.ClaimMessages(ctx, c)
}

func (s outboxMutant) FinishMessage(ctx context.Context, f store.FinishMessage) error {
	if s.deaf || s.claimed > 0 {
		return nil
	}
	return s.Journal.FinishMessage(ctx, f)
}

// sizes takes the number of roles for their revision.
type sizes struct {
	base
	store.ProjectStore
}

func (s sizes) Roles(ctx context.Context) (store.RoleTable, error) {
	t, err := s.ProjectStore.Roles(ctx)
	t.Revision = int64(len(t.Roles))
	return t, err
}

// forgetsNames marks only roles that exist.
type forgetsNames struct {
	base
	store.ProjectStore
}

func (s forgetsNames) Roles(ctx context.Context) (store.RoleTable, error) {
	t, err := s.ProjectStore.Roles(ctx)
	return onlyPresent(t), err
}

func (s forgetsNames) DeleteRole(ctx context.Context, c store.DeleteRole) (store.RoleTable, error) {
	t, err := s.ProjectStore.DeleteRole(ctx, c)
	return onlyPresent(t), err
}

func onlyPresent(t store.RoleTable) store.RoleTable {
	t.Privileged = slices.DeleteFunc(t.Privileged, func(name string) bool {
		return !slices.ContainsFunc(t.Roles, func(r store.RolePermissions) bool { return r.Name == name })
	})
	return t
}

// takesRoles removes a role from its holders.
type takesRoles struct {
	base
	store.ProjectStore
}

func (s takesRoles) DeleteRole(ctx context.Context, c store.DeleteRole) (store.RoleTable, error) {
	t, err := s.ProjectStore.DeleteRole(ctx, c)
	if err != nil {
		return s.Roles(ctx)
	}
	return t, err
}

type sameRevision struct {
	base
	store.ProjectStore
}

func (s sameRevision) PutKey(ctx context.Context, c store.PutKey) (store.APIKey, error) {
	k, err := s.ProjectStore.PutKey(ctx, c)
	k.Revision = 0
	return k, err
}

// Checks of the text of keys.
const (
	textOfKey = "keys/a key names the session that created its text"
	keysFrom  = "keys/keys with a text of a session, or of a later one, are revoked"
)

// namesNobody forgets the session that creates a text.
type namesNobody struct {
	base
	store.ProjectStore
}

func (s namesNobody) PutKey(ctx context.Context, c store.PutKey) (store.APIKey, error) {
	c.By = system
	return s.ProjectStore.PutKey(ctx, c)
}

// newTexts takes every replacement of a key for a new text.
type newTexts struct {
	base
	store.ProjectStore
}

func (s newTexts) PutKey(ctx context.Context, c store.PutKey) (store.APIKey, error) {
	other := c
	other.Key.Hash = []byte("other " + c.Key.ID)
	if _, err := s.ProjectStore.PutKey(ctx, other); err != nil {
		return store.APIKey{}, err
	}
	return s.ProjectStore.PutKey(ctx, c)
}

type onlyLive struct {
	base
	store.ProjectStore
}

func (s onlyLive) Key(ctx context.Context, id string) (store.APIKey, error) {
	k, err := s.ProjectStore.Key(ctx, id)
	if err == nil && !k.RevokedAt.IsZero() {
		return store.APIKey{}, store.ErrNotFound
	}
	return k, err
}

// unseeing replaces keys at any revision.
type unseeing struct {
	base
	store.ProjectStore
}

func (s unseeing) PutKey(ctx context.Context, c store.PutKey) (store.APIKey, error) {
	c.IfRevision = nil
	return s.ProjectStore.PutKey(ctx, c)
}

// overToo lists expired keys among the live ones.
type overToo struct {
	base
	store.ProjectStore
}

func (s overToo) Keys(ctx context.Context, q store.KeyQuery) ([]store.APIKey, error) {
	q.LiveAt = time.Time{}
	return s.ProjectStore.Keys(ctx, q)
}

// noting records uses of keys at another time.
type noting struct {
	base
	store.ProjectStore
}

func (s noting) UseKey(ctx context.Context, id string, at time.Time) error {
	return s.ProjectStore.UseKey(ctx, id, at.Add(time.Hour))
}
