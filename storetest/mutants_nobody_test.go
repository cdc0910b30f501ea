package storetest_test

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth"
)

// choosy is a store that fails for ids that are none.
type choosy struct{ base }

func (s choosy) Sessions(ctx context.Context, userID string, now time.Time) ([]auth.Session, error) {
	if _, err := uuid.Parse(userID); err != nil {
		return nil, errors.New("invalid input syntax for type uuid")
	}
	return s.Store.Sessions(ctx, userID, now)
}

// careless is a store for which an id that is none is as good as no id.
type careless struct{ base }

func (s careless) RevokeSessions(ctx context.Context, c auth.RevokeSessions) ([]string, error) {
	if _, err := uuid.Parse(c.Filter.ID); err != nil {
		c.Filter.ID = ""
	}
	return s.Store.RevokeSessions(ctx, c)
}

func nobodyMutants() map[string]mutant {
	return map[string]mutant{
		"ids that are none are an error":    caught("nobody/Sessions", func(b base) auth.Store { return choosy{b} }),
		"ids that are none pick everything": caught("nobody/ids in parameters", func(b base) auth.Store { return careless{b} }),
	}
}
