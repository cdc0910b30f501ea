package sqlitestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/authmount/auth/store"
)

// query is a statement with the conditions of a list.
type query struct {
	sql  string
	args []any
}

// where adds a condition.
func (q *query) where(condition string, args ...any) { q.end(` and `+condition, args...) }

// end adds the rest of the statement.
func (q *query) end(text string, args ...any) {
	q.sql += text
	q.args = append(q.args, args...)
}

// named adds a condition on a text, which may be a UUID in any form.
func (q *query) named(column, want string) {
	if want != "" {
		q.where(column+` = ?`, oneForm(want))
	}
}

// same adds a condition on a text.
func (q *query) same(column, want string) {
	if want != "" {
		q.where(column+` = ?`, want)
	}
}

// within adds a condition on a time: from, inclusive, to, exclusive.
func (q *query) within(column string, from, to time.Time) {
	if !from.IsZero() {
		q.where(column+` >= ?`, upward(from))
	}
	if !to.IsZero() {
		q.where(column+` < ?`, upward(to))
	}
}

// last is a byte that no character has and that follows those of all, so that all texts with a
// prefix are before prefix + last.
const last = "\xff"

// jsonOf returns a list of texts as JSON.
func jsonOf[T ~string](list []T) string {
	raw, _ := json.Marshal(list) // texts are always JSON
	return string(raw)
}

// patience is the default of Store.patience.
const patience = 2 * time.Second

// listed reads a list. The error is store.ErrTooBroad if it takes too long.
func listed[T any](ctx context.Context, s *Store, q *query, read func(row) T) (all []T, err error) {
	err = s.patiently(ctx, func(t *tx) error {
		all = list(t, read, q.sql, q.args...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// patiently is snapshot with a time limit.
func (s *Store) patiently(ctx context.Context, f func(*tx) error) error {
	limited, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	err := s.snapshot(limited, f)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", store.ErrTooBroad, err)
	}
	return err
}
