package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/authmount/auth/store"
)

// AddProof adds a proof to a session.
func (s *Store) AddProof(ctx context.Context, c store.AddProof) (store.Session, store.User, error) {
	return s.addProof(ctx, c, "")
}

// addProof adds a proof to a session and, with a level, lifts it to that.
func (s *Store) addProof(ctx context.Context, c store.AddProof, aal string) (proved store.Session, owner store.User, err error) {
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		sess, u, err := s.get(c.SessionID, c.Now)
		if err != nil {
			return nil, err
		}
		return &effect{about: u.ID, apply: func() error {
			others := slices.DeleteFunc(slices.Clone(sess.AMR), func(a store.AMR) bool { return a.Method == c.Proof.Method })
			sess.AAL, sess.AMR = cmp.Or(aal, sess.AAL), append(others, c.Proof)
			proved, owner = copySession(sess.Session), copyUser(u.User)
			return nil
		}}, nil
	})
	return proved, owner, err
}
