package memstore

import (
	"context"
	"slices"

	"github.com/authmount/auth/store"
)

// AnonymizeUser removes everything that identifies a user.
func (s *Store) AnonymizeUser(ctx context.Context, c store.AnonymizeUser) (left store.User, err error) {
	err = s.change(ctx, &c.Change, func() (*effect, error) {
		e, err := s.planUpdate(&c.Change, c.UserID, c.Patch(), nil, &left)
		if err != nil {
			return nil, err
		}
		patch := e.apply
		e.apply = func() error {
			if err := patch(); err != nil {
				return err
			}
			u := s.users[c.UserID]
			for id := range u.sessions {
				s.dropSession(id)
			}
			for id, t := range s.tokens {
				if t.Subject != "" && slices.Contains(c.Subjects, t.Subject) {
					s.dropToken(id)
				}
			}
			for id, m := range s.messages {
				if m.UserID == u.ID || m.Recipient != "" && slices.Contains(c.Recipients, m.Recipient) {
					delete(s.messages, id)
				}
			}
			s.dropLog(u.ID, c.Recipients...)
			for i, ev := range s.events {
				named := ev.UserID == "" && ev.Record != nil && slices.Contains(c.Names, ev.Record.Target)
				if named || ev.UserID == u.ID || ev.Actor.Kind == store.ActorUser && ev.Actor.ID == u.ID {
					s.events[i] = c.Rewrite(ev)
				}
			}
			return nil
		}
		return e, nil
	})
	return left, err
}
