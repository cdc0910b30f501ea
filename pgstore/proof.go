package pgstore

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/authmount/auth/store"
)

const readProved = `select ` + sessionColumns + `, ` + userFacts + `, ` + claimsColumn + ` from auth.sessions s join auth.users u on u.id = s.user_id where s.id = $1::uuid`

// AddAuthentication adds a recent authentication to a session.
func (s *Store) AddAuthentication(ctx context.Context, c store.AddAuthentication) (store.Session, store.User, error) {
	var sess store.Session
	var u store.User
	err := s.change(ctx, &c.Change, target{sessions: []string{c.SessionID}}, func(ctx context.Context, tx pgx.Tx, h *held) (*result, error) {
		found, of, err := h.liveSession(c.SessionID, c.Now)
		if err != nil {
			return nil, err
		}
		before, err := found.session()
		if err != nil {
			return nil, err
		}
		b := &pgx.Batch{}
		b.Queue(s.sql(raiseTo), before.ID, before.AAL, text(withMethod(before.AMR, c.Proof)))
		s.queueSession(b, before.ID, &sess, &u)
		return &result{about: of.id}, send(ctx, tx, b)
	})
	if err != nil {
		return store.Session{}, store.User{}, err
	}
	return sess, u, nil
}

// queueSession reads a session and its user, with the application's claims.
func (s *Store) queueSession(b *pgx.Batch, id string, sess *store.Session, u *store.User) {
	b.Queue(s.sql(readProved), id).QueryRow(func(row pgx.Row) error {
		var r sessionUser
		err := row.Scan(r.sess.andUser(&r.user, &r.user.claims)...)
		if err == nil {
			*sess, *u, err = r.both()
		}
		return err
	})
}

// withMethod adds an entry to a list of methods. It replaces an entry of the same
// method.
func withMethod(list []store.AMR, m store.AMR) []store.AMR {
	return append(slices.DeleteFunc(slices.Clone(list), func(other store.AMR) bool { return other.Method == m.Method }), m)
}
