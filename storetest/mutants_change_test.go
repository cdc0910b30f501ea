package storetest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// methods are the methods that take a Change.
func methods() []string {
	var names []string
	for _, face := range []reflect.Type{
		reflect.TypeFor[store.Store](), reflect.TypeFor[store.FactorStore](), reflect.TypeFor[store.ProjectStore](),
	} {
		for i := range face.NumMethod() {
			m := face.Method(i)
			if m.Type.NumIn() == 2 && m.Type.In(1).Kind() == reflect.Struct {
				if _, ok := m.Type.In(1).FieldByName("Change"); ok {
					names = append(names, m.Name)
				}
			}
		}
	}
	return names
}

// everywhere is a check at every method that takes a Change, except some.
func everywhere(group, name string, but ...string) []string {
	var caught []string
	for _, m := range methods() {
		if !slices.Contains(but, m) {
			caught = append(caught, group+"/"+m+name)
		}
	}
	return caught
}

// edits is a store that alters the conditions of each change.
func edits(edit func(s store.Store, c *store.Change)) func(store.Store) store.Store {
	return func(s store.Store) store.Store {
		tap := storetap.New(s)
		tap.Reset(storetap.Hooks{Edit: func(_ string, c *store.Change) { edit(s, c) }})
		return tap
	}
}

var system = store.Authority{System: "mutant"}

// Each of changeMutants forgets one condition, at every method.
func changeMutants() map[string]mutant {
	condition := func(edit func(s store.Store, c *store.Change), name string, but ...string) mutant {
		return mutant{edits(edit), everywhere("conditions", "/"+name, but...)}
	}
	all := map[string]mutant{
		"no time is needed": condition(func(_ store.Store, c *store.Change) {
			if c.Now.IsZero() {
				c.Now = time.Date(2026, 1, 2, 3, 4, 5, 678901000, time.UTC)
			}
		}, "no time"),
		"no authority is needed": condition(func(_ store.Store, c *store.Change) {
			if reflect.ValueOf(c.By).IsZero() {
				c.By = system
			}
		}, "no authority"),
		"two authorities will do": condition(func(_ store.Store, c *store.Change) {
			if c.By.System != "" {
				c.By = system
			}
		}, "a system and a proof"),
		"sessions are not asked": condition(func(_ store.Store, c *store.Change) {
			if c.By.Session != nil {
				c.By = system
			}
		}, "a session that was revoked"),
		"anybody's session will do": condition(func(s store.Store, c *store.Change) {
			if c.By.Session == nil {
				return
			}
			if sess, _, err := s.Session(context.Background(), c.By.Session.ID, c.Now); err == nil {
				c.By.Session = &store.SessionRef{ID: sess.ID, UserID: sess.UserID}
			}
		}, "a session of somebody else"),
		"sessions go on a moment too long": condition(func(_ store.Store, c *store.Change) {
			if c.By.Session != nil {
				c.Now = c.Now.Add(-time.Microsecond)
			}
		}, "a session left alone too long"),
		"banned users act on": condition(func(s store.Store, c *store.Change) {
			if c.By.Session == nil {
				return
			}
			if _, _, err := s.Session(context.Background(), c.By.Session.ID, c.Now); errors.Is(err, store.ErrBanned) {
				c.By = system
			}
		}, "a session of a banned user"),
		"tokens are not asked": condition(func(_ store.Store, c *store.Change) {
			if c.By.Token != nil {
				c.By = system
			}
		}, "a token that was used"),
		"banned users' tokens are good": condition(func(s store.Store, c *store.Change) {
			if c.By.Token == nil {
				return
			}
			if _, err := s.PeekToken(context.Background(), c.By.Token.Purpose, c.By.Token.Hash, c.Now); err == nil {
				c.By = system
			}
		}, "a token of a banned user"),
		"keys are not asked": condition(func(_ store.Store, c *store.Change) {
			if c.By.Key != nil && c.By.System == "" {
				c.By = system
			}
		}, "a key that was revoked"),
		"keys may have changed": condition(func(s store.Store, c *store.Change) {
			if keys, ok := store.Capability[store.ProjectStore](s); ok && c.By.Key != nil {
				if k, err := keys.Key(context.Background(), c.By.Key.ID); err == nil {
					c.By.Key = &store.KeyRef{ID: k.ID, Revision: k.Revision}
				}
			}
		}, "a key that changed meanwhile"),
		"users are not asked": condition(func(_ store.Store, c *store.Change) { c.IfUsers = nil }, "a user who never was"),
		"only the first user is asked": condition(func(_ store.Store, c *store.Change) {
			c.IfUsers = c.IfUsers[:min(1, len(c.IfUsers))]
		}, "the second user is another"),
		"users who are gone are not asked": condition(func(s store.Store, c *store.Change) {
			c.IfUsers = slices.DeleteFunc(slices.Clone(c.IfUsers), func(at store.UserAt) bool {
				_, err := s.User(context.Background(), store.ByID(at.ID))
				return err != nil
			})
		}, "a user who is gone"),
		"a token's own user is not asked": condition(func(_ store.Store, c *store.Change) {
			c.IfUsers = slices.DeleteFunc(slices.Clone(c.IfUsers), func(at store.UserAt) bool { return at.ID == "" })
		}, "user at another Revision, of the token", everywhereBut("RedeemToken", "RedeemCode", "EnableFactor")...),
		"a user whom no token names is not asked": condition(func(_ store.Store, c *store.Change) {
			c.IfUsers = slices.DeleteFunc(slices.Clone(c.IfUsers), func(at store.UserAt) bool { return at.ID == "" })
		}, "a user whom no token names", "RedeemToken", "RedeemCode", "EnableFactor"),
		"roles are not asked":         condition(func(_ store.Store, c *store.Change) { c.IfRoles = nil }, "other roles"),
		"a key of terms is not asked": condition(func(_ store.Store, c *store.Change) { c.IfKey = nil }, "with a key that was revoked"),
		"the last owner may go":       condition(func(_ store.Store, c *store.Change) { c.KeepOwner = false }, "no owner is left"),
		"cancellation is ignored":     {func(s store.Store) store.Store { return deaf{base{s}} }, []string{"conditions/UpdateUser/a caller who has gone"}},
		"conditions before the target": {
			func(s store.Store) store.Store { return staleFirst{base{s}} }, []string{"conditions/they are judged in the order of the contract", "refresh/reuse ends the session whatever the conditions"},
		},
		"idempotency is ignored":    {edits(func(_ store.Store, c *store.Change) { c.Idempotency = nil }), everywhere("idempotency", "")},
		"refused changes count":     {refusedCounts, everywhere("idempotency", "")},
		"events are lost":           {edits(func(_ store.Store, c *store.Change) { c.Events = nil }), everywhere("permissions", "/session")},
		"messages are lost":         {edits(func(_ store.Store, c *store.Change) { c.Messages = nil }), everywhere("permissions", "/session")},
		"every outcome is recorded": {edits(everyOutcome), everywhere("permissions", "/session")},
		"refusals are recorded": {
			refusalsRecorded, append(everywhere("conditions", "/other roles"), "events/a change that its target refuses records nothing"),
		},
		"sessions are asked, then the change is made": {
			edits(askThenChange), append(everywhere("races", ""), "races/no change lands after its session was revoked", "races/no change lands after its user was banned"),
		},
		"users are asked, then the change is made": {edits(askThenChange), []string{"races/no change lands after the user it rests on has changed"}},
		"roles are asked, then the change is made": {edits(askThenChange), []string{"roles/no change lands after the roles it rests on have changed"}},
		"keys are asked, then the change is made":  {edits(askThenChange), []string{"keys/no change lands after its key was revoked"}},
		"whether there was an owner is not asked": {edits(func(_ store.Store, c *store.Change) { c.FirstOwner = false }), []string{
			"first owner/there is one, ever", "first owner/an owner who was made counts", "first owner/an owner who was given the role counts, a banned one too",
			"first owner/a change that makes none is judged, too", "first owner/of several at once one is first", "first owner/who is made owner meanwhile is first",
		}},
		"only owners of now count": {func(s store.Store) store.Store { return forgetsOwners{base{s}} }, []string{
			"first owner/there is one, ever", "first owner/an owner who was made counts", "first owner/an owner who was given the role counts, a banned one too",
		}},
		"owners are counted, then the last one goes": {func(s store.Store) store.Store { return &countsOwners{base: base{s}} }, []string{"owners/two owners who remove each other leave one"}},
	}
	for i := range reflect.TypeFor[store.UserAt]().NumField() {
		if name := reflect.TypeFor[store.UserAt]().Field(i).Name; name != "ID" {
			all["not asked: "+name] = condition(func(_ store.Store, c *store.Change) {
				c.IfUsers = slices.Clone(c.IfUsers)
				for j := range c.IfUsers {
					reflect.ValueOf(&c.IfUsers[j]).Elem().FieldByName(name).SetZero()
				}
			}, "user at another "+name)
		}
	}
	for name, edit := range map[string]func(*store.Idempotency){
		"actor": func(i *store.Idempotency) { i.Actor = "" }, "route": func(i *store.Idempotency) { i.Route = "" }, "key": func(i *store.Idempotency) { i.Key = "" },
		"request": func(i *store.Idempotency) { i.RequestHash = nil }, "result": func(i *store.Idempotency) { i.Result = nil },
		"end": func(i *store.Idempotency) { i.ExpiresAt = i.ExpiresAt.Add(time.Hour) },
	} {
		all["idempotency forgets the "+name] = mutant{edits(func(_ store.Store, c *store.Change) {
			if c.Idempotency != nil {
				i := *c.Idempotency
				edit(&i)
				c.Idempotency = &i
			}
		}), everywhere("idempotency", "")}
	}
	return all
}

// everywhereBut are the methods except those named.
func everywhereBut(only ...string) []string {
	return slices.DeleteFunc(methods(), func(m string) bool { return slices.Contains(only, m) })
}

func everyOutcome(_ store.Store, c *store.Change) {
	c.Events = slices.Clone(c.Events)
	for i := range c.Events {
		c.Events[i].On = store.OutcomeDone
	}
}

// askThenChange checks a change with a store's own reads, and drops the conditions that it
// has checked.
func askThenChange(s store.Store, c *store.Change) {
	ctx, ok := context.Background(), true
	if ref := c.By.Session; ref != nil {
		_, _, err := s.Session(ctx, ref.ID, c.Now)
		ok = ok && err == nil
	}
	if keys, has := store.Capability[store.ProjectStore](s); has && c.By.Key != nil {
		k, err := keys.Key(ctx, c.By.Key.ID)
		ok = ok && err == nil && k.Live(c.Now) && k.Revision == c.By.Key.Revision
	}
	if roles, has := store.Capability[store.ProjectStore](s); has && c.IfRoles != nil {
		t, err := roles.Roles(ctx)
		ok = ok && err == nil && t.Revision == *c.IfRoles
	}
	for _, at := range c.IfUsers {
		u, err := s.User(ctx, store.ByID(at.ID))
		ok = ok && err == nil && (at.CredentialRevision == nil || *at.CredentialRevision == u.CredentialRevision)
	}
	if ok {
		c.IfUsers, c.IfRoles = nil, nil
		if c.By.Session != nil || c.By.Key != nil {
			c.By = system
		}
	}
	pause()
}

// afterRefusal records the events of a refused change with a change of its own.
func afterRefusal(s store.Store, record func(refused store.Change, c *store.Change)) store.Store {
	var mu sync.Mutex
	var last store.Change
	tap := storetap.New(s)
	tap.Reset(storetap.Hooks{
		Edit: func(_ string, c *store.Change) {
			mu.Lock()
			defer mu.Unlock()
			last = *c
		},
		After: func(ctx context.Context, _ string, _ int, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err == nil || last.Now.IsZero() || errors.Is(err, store.ErrRepeated) {
				return
			}
			c := store.Change{Now: last.Now, By: system}
			record(last, &c)
			hash := make([]byte, 32)
			_, _ = rand.Read(hash)
			_ = s.PutToken(ctx, store.PutToken{Change: c, Token: store.Token{Purpose: store.PurposeMFA, Hash: hash, CreatedAt: c.Now, ExpiresAt: c.Now}})
		},
	})
	return tap
}

func refusalsRecorded(s store.Store) store.Store {
	return afterRefusal(s, func(refused store.Change, c *store.Change) { c.Events, c.Messages = refused.Events, refused.Messages })
}

func refusedCounts(s store.Store) store.Store {
	return afterRefusal(s, func(refused store.Change, c *store.Change) { c.Idempotency = refused.Idempotency })
}

// deaf ignores the cancellation of its context.
type deaf struct{ base }

func (s deaf) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	return s.Store.UpdateUser(context.WithoutCancel(ctx), c)
}

// staleFirst reads users before it reads the rows to change.
type staleFirst struct{ base }

func (s staleFirst) stale(ctx context.Context, c store.Change) bool {
	return slices.ContainsFunc(c.IfUsers, func(at store.UserAt) bool {
		u, err := s.User(ctx, store.ByID(at.ID))
		return err != nil || at.Revision != nil && *at.Revision != u.Revision
	})
}

func (s staleFirst) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	if c.Check() == nil && c.By.System != "" && c.Idempotency == nil && s.stale(ctx, c.Change) {
		return store.User{}, store.ErrStale
	}
	return s.Store.UpdateUser(ctx, c)
}

func (s staleFirst) AdvanceSession(ctx context.Context, c store.Advance) (store.Session, store.User, error) {
	if s.stale(ctx, c.Change) {
		return store.Session{}, store.User{}, store.ErrStale
	}
	return s.Store.AdvanceSession(ctx, c)
}

// countsOwners counts the owners in a separate step before it removes one.
type countsOwners struct {
	base
	mu  sync.Mutex
	all []string
}

func (s *countsOwners) CreateUser(ctx context.Context, c store.CreateUser) (store.User, error) {
	s.mu.Lock()
	s.all = append(s.all, c.User.ID)
	s.mu.Unlock()
	return s.Store.CreateUser(ctx, c)
}

func (s *countsOwners) another(ctx context.Context, id string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.all, func(other string) bool {
		u, err := s.User(ctx, store.ByID(other))
		return err == nil && other != id && slices.Contains(u.Roles, store.RoleOwner) && u.Accepted(now) && !u.Banned(now)
	})
}

func (s *countsOwners) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	if c.KeepOwner && s.another(ctx, c.UserID, c.Now) {
		c.KeepOwner = false
		pause()
	}
	return s.Store.UpdateUser(ctx, c)
}

func (s *countsOwners) DeleteUser(ctx context.Context, c store.DeleteUser) error {
	if c.KeepOwner && s.another(ctx, c.UserID, c.Now) {
		c.KeepOwner = false
		pause()
	}
	return s.Store.DeleteUser(ctx, c)
}
