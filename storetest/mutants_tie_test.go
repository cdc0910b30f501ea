package storetest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/store"
)

// tieMutants decide otherwise between equal rows, or give another reason for a refusal.
func tieMutants() map[string]mutant {
	return map[string]mutant{
		"lower ids are kept":             caught("ties/of equally active sessions those with higher ids are kept", func(b base) store.Store { return keepsLower{b} }),
		"equal records are in any order": caught("ties/records with equal times are in the order of their names", func(b base) store.Store { return foldsOrder{b} }),
		"ids are taken before bans":      caught("precedence/a session is refused for its first reason", func(b base) store.Store { return idFirst{b} }),
		"superseded tokens come first":   caught("precedence/a token is refused for its user before the token it supersedes", func(b base) store.Store { return supersededFirst{b} }),
		"taken hashes come first": caught("precedence/a key at another revision is stale before its hash is taken", func(b base) store.Store {
			return hashFirst{b, capability[store.ProjectStore](b)}
		}),
		"identities have any id":    caught("exact/the id of an identity is taken once", func(b base) store.Store { return anyIdentity{b} }),
		"a hash moves":              caught("exact/a hash belongs to one subject", func(b base) store.Store { return movesHash{b} }),
		"trust ends by the machine": caught("exact/credentials do not depend on the time of the machine", func(b base) store.Store { return byMachine{b} }),
	}
}

type keepsLower struct{ base }

func (s keepsLower) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	if c.KeepSessions > 0 {
		list, _ := s.Sessions(ctx, c.Session.UserID, c.Now)
		slices.SortFunc(list, func(a, b store.Session) int { return strings.Compare(a.ID, b.ID) })
		ended := []string{}
		for _, sess := range list[min(c.KeepSessions-1, len(list)):] {
			_, _ = s.RevokeSessions(ctx, store.RevokeSessions{Change: change(c.Now), UserID: sess.UserID, Filter: store.SessionFilter{ID: sess.ID}})
			ended = append(ended, sess.ID)
		}
		c.KeepSessions = 0
		c.Ended(ended)
	}
	return s.Store.CreateSession(ctx, c)
}

// foldsOrder orders names without regard to case.
type foldsOrder struct{ base }

func (s foldsOrder) UserRecords(ctx context.Context, userID string, now time.Time) (store.UserRecords, error) {
	h, err := s.Store.UserRecords(ctx, userID, now)
	slices.SortStableFunc(h.Devices, func(a, b store.DeviceRecord) int {
		return strings.Compare(strings.ToLower(a.Device), strings.ToLower(b.Device))
	})
	return h, err
}

type idFirst struct{ base }

func (s idFirst) CreateSession(ctx context.Context, c store.CreateSession) (store.User, error) {
	if _, _, err := s.Session(ctx, c.Session.ID, c.Now); err == nil {
		return store.User{}, &store.ConflictError{Field: "id"}
	}
	return s.Store.CreateSession(ctx, c)
}

type supersededFirst struct{ base }

func (s supersededFirst) PutToken(ctx context.Context, c store.PutToken) error {
	err := s.Store.PutToken(ctx, c)
	if errors.Is(err, store.ErrNotFound) && c.Supersedes != nil {
		return store.ErrStale
	}
	return err
}

type hashFirst struct {
	base
	store.ProjectStore
}

func (s hashFirst) PutKey(ctx context.Context, c store.PutKey) (store.APIKey, error) {
	list, _ := s.Keys(ctx, store.KeyQuery{Limit: 100})
	for _, k := range list {
		if k.ID != c.Key.ID && slices.Equal(k.Hash, c.Key.Hash) {
			return store.APIKey{}, &store.ConflictError{Field: "key"}
		}
	}
	return s.ProjectStore.PutKey(ctx, c)
}

// anyIdentity gives an identity another id if its own is taken.
type anyIdentity struct{ base }

func (s anyIdentity) UpdateUser(ctx context.Context, c store.UpdateUser) (store.User, error) {
	u, err := s.Store.UpdateUser(ctx, c)
	var taken *store.ConflictError
	if errors.As(err, &taken) && taken.Field == "id" {
		i := *c.Patch.Link
		i.ID = "01890000-0000-7000-8000-00000000abcd"
		c.Patch.Link = &i
		return s.Store.UpdateUser(ctx, c)
	}
	return u, err
}

// movesHash keeps a hash for the last subject.
type movesHash struct{ base }

func (s movesHash) PutToken(ctx context.Context, c store.PutToken) error {
	err := s.Store.PutToken(ctx, c)
	if errors.Is(err, store.ErrConflict) {
		use := store.Redemption{Change: store.Change{Now: c.Now, By: store.Authority{Proof: true}}, Purpose: c.Token.Purpose, Hash: c.Token.Hash}
		_, _, _ = s.RedeemToken(ctx, use)
		err = s.Store.PutToken(ctx, c)
	}
	return err
}

// byMachine compares the trust in devices with the time of the machine.
type byMachine struct{ base }

func (s byMachine) Credentials(ctx context.Context, key store.UserKey) (store.Credentials, error) {
	c, err := s.Store.Credentials(ctx, key)
	if c.TrustedUntil.Before(time.Now()) {
		c.TrustedUntil = time.Time{}
	}
	return c, err
}
