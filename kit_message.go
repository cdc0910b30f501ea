package auth

import (
	"context"
	"errors"
	"fmt"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/store"
)

func (k kit) RetryMessage(ctx context.Context, c *store.Change, send *host.Send, id string) error {
	a := k.a
	s, ok := store.Capability[store.MessageLogStore](a.store)
	if !ok {
		return fail(CodeInternal, errors.New("the store is no store.MessageLogStore"))
	}
	m, err := s.FailedMessage(ctx, id, c.Now)
	if err != nil {
		return err
	}
	o, err := a.openMessage(m)
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrNotFound, err) // sealed with a secret that nobody has any more
	}
	if _, err := drawSend(ctx, a, send, o.Kind, o.To); err != nil {
		return err
	}
	return s.RetryMessage(ctx, store.RetryMessage{Change: *c, ID: id})
}

func (k kit) SendWaiting() { k.a.outbox.Wake() }
