package memstore

import (
	"context"
	"slices"

	"github.com/authmount/auth/store"
)

// AddAuthentication adds an authentication method to a session.
func (s *Store) AddAuthentication(ctx context.Context, c store.AddAuthentication) (proved store.Session, owner store.User, err error) {
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		sess, u, err := s.get(c.SessionID, c.Now)
		if err != nil {
			return nil, err
		}
		return &effect{about: u.ID, apply: func() error {
			sess.AMR = withMethod(sess.AMR, c.Proof)
			proved, owner = copySession(sess.Session), copyUser(u.User)
			return nil
		}}, nil
	})
	return proved, owner, err
}

// withMethod adds an entry to a list of methods and replaces one of the same method.
func withMethod(list []store.AMR, m store.AMR) []store.AMR {
	return append(slices.DeleteFunc(slices.Clone(list), func(other store.AMR) bool { return other.Method == m.Method }), m)
}
