package storetest_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/authmount/auth/store"
)

// acting is a store with faulty impersonations.
type acting struct {
	base
	store.AdminStore
	begin func(ctx context.Context, s acting, c store.BeginImpersonation) error
	read  func(ctx context.Context, s acting, id string, now time.Time) (store.Impersonation, store.User, error)
	end   func(ctx context.Context, s acting, c store.EndImpersonation) error
}

func (s acting) BeginImpersonation(ctx context.Context, c store.BeginImpersonation) error {
	if s.begin != nil {
		return s.begin(ctx, s, c)
	}
	return s.AdminStore.BeginImpersonation(ctx, c)
}

func (s acting) Impersonation(ctx context.Context, id string, now time.Time) (store.Impersonation, store.User, error) {
	if s.read != nil {
		return s.read(ctx, s, id, now)
	}
	return s.AdminStore.Impersonation(ctx, id, now)
}

func (s acting) EndImpersonation(ctx context.Context, c store.EndImpersonation) error {
	if s.end != nil {
		return s.end(ctx, s, c)
	}
	return s.AdminStore.EndImpersonation(ctx, c)
}

// goesOn takes every impersonation that it has started for a live one.
func goesOn(b base) store.Store {
	st, _ := store.Capability[store.AdminStore](b.Store)
	var mu sync.Mutex
	begun := map[string]store.Impersonation{}
	return acting{base: b, AdminStore: st,
		begin: func(ctx context.Context, s acting, c store.BeginImpersonation) error {
			err := s.AdminStore.BeginImpersonation(ctx, c)
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				begun[c.Impersonation.ID] = c.Impersonation
			}
			return err
		},
		read: func(ctx context.Context, s acting, id string, now time.Time) (store.Impersonation, store.User, error) {
			i, u, err := s.AdminStore.Impersonation(ctx, id, now)
			mu.Lock()
			defer mu.Unlock()
			if was, ok := begun[id]; ok && errors.Is(err, store.ErrSessionEnded) {
				u, err = s.User(ctx, store.ByID(was.UserID))
				return was, u, err
			}
			return i, u, err
		},
	}
}

func impersonationMutants() map[string]mutant {
	of := func(check string, edit func(a *acting)) mutant {
		return caught("impersonations/"+check, func(b base) store.Store {
			store, _ := store.Capability[store.AdminStore](b.Store)
			a := acting{base: b, AdminStore: store}
			edit(&a)
			return a
		})
	}
	all := map[string]mutant{
		"an impersonation signs the user in": of("nothing of the user's is touched", func(a *acting) {
			a.begin = func(ctx context.Context, s acting, c store.BeginImpersonation) error {
				i := c.Impersonation
				_, err := s.CreateSession(ctx, store.CreateSession{Change: store.Change{Now: c.Now, By: system}, NewSession: store.NewSession{Session: store.Session{
					ID: i.ID, UserID: i.UserID, AAL: store.LevelAAL1, CreatedAt: c.Now, LastActiveAt: c.Now, RotatedAt: c.Now, IdleUntil: i.ExpiresAt,
				}}})
				return errors.Join(err, s.AdminStore.BeginImpersonation(ctx, c))
			}
		}),
		"an impersonation begins by any session": of("none begins of nobody, of the banned, or by a session that is not live", func(a *acting) {
			a.begin = func(ctx context.Context, s acting, c store.BeginImpersonation) error {
				if err := s.AdminStore.BeginImpersonation(ctx, c); !errors.Is(err, store.ErrSessionEnded) {
					return err
				}
				return nil
			}
		}),
		"an impersonation is ended by word only": of("it is ended once", func(a *acting) {
			a.end = func(context.Context, acting, store.EndImpersonation) error { return nil }
		}),
	}
	for _, check := range []string{
		"it ends with the actor's session", "it ends with a ban of the actor", "it ends with a ban of the user", "it ends with a change of the actor's roles",
		"it ends with a change of the user's roles", "it ends with a change of any role", "ending a user's sessions ends it, if it matches",
		"of a sign-out of the actor and a beginning at once, none is left live",
	} {
		all["an impersonation goes on: "+check] = caught("impersonations/"+check, goesOn)
	}
	return all
}
