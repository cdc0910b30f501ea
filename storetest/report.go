package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/authmount/auth/internal/difference"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// reporter is the part of testing.T that a check uses. It cannot fail the test. Only the
// assertions here do, so that every failure names the call, the result and the expected
// result.
type reporter interface {
	Helper()
	Context() context.Context
	Logf(format string, args ...any)
	Run(name string, f func(*testing.T)) bool
	Failed() bool
	FailNow()
}

// calls records the last call of the store and the last change.
type calls struct{ last, change atomic.Pointer[string] }

// watch records the calls of a store.
func watch(s store.Store) (store.Store, *calls) {
	c := &calls{}
	tap := storetap.New(s)
	tap.Reset(storetap.Hooks{
		Background: true,
		Before:     func(_ context.Context, method string, _ int) { c.last.Store(&method) },
		Edit:       func(method string, _ *store.Change) { c.change.Store(&method) },
	})
	return tap, c
}

// String names the last call, and also the last change if the call was none.
func (c *calls) String() string {
	last, change := c.last.Load(), c.change.Load()
	switch {
	case last == nil:
		return "before any call"
	case change == nil || *change == *last:
		return *last + "(…)"
	default:
		return *last + "(…) after " + *change + "(…)"
	}
}

// of returns the bench with the subject of the next assertion.
func (b *bench) of(format string, args ...any) *bench {
	about := *b
	about.about = b.about + fmt.Sprintf(format, args...) + ": "
	return &about
}

// report fails the test. Every failed check calls it.
func (b *bench) report(what string, lines []string) {
	b.Helper()
	head := fmt.Sprintf("%s: %s%s", b.calls, b.about, what)
	if len(lines) == 1 {
		b.test.Error(head + lines[0])
		return
	}
	b.test.Error(head + " differs:\n\t" + strings.Join(lines, "\n\t"))
}

// wrong fails the test, because got does not match the description.
func (b *bench) wrong(what string, got any, want string) {
	b.Helper()
	b.report(what, []string{" = " + difference.Show(got) + ", want " + want})
}

// equal checks that two values are deeply equal.
func equal[T any](b *bench, what string, got, want T) {
	b.Helper()
	if lines := difference.Of(got, want); len(lines) > 0 {
		b.report(what, lines)
	}
}

// need is equal, and stops the test on a difference.
func need[T any](b *bench, what string, got, want T) {
	b.Helper()
	if lines := difference.Of(got, want); len(lines) > 0 {
		b.report(what, lines)
		b.FailNow()
	}
}

// listed checks for the same elements in the same order. A store may return an empty list
// or nil.
func listed[T any](b *bench, what string, got, want []T) {
	b.Helper()
	equal(b, what, append([]T{}, got...), append([]T{}, want...))
}

// page checks a list that was read page by page, and stops the test on a difference,
// because other page sizes and orders would only repeat it.
func (b *bench) page(name string, query any, got, want []string) {
	b.Helper()
	need(b.of("%s, %s", name, difference.Show(query)), "the list", append([]string{}, got...), append([]string{}, want...))
}

// unchanged checks that two states of a world are the same.
func (b *bench) unchanged(why string, before, after []string) (same bool) {
	b.Helper()
	d := differences(before, after)
	if len(d) > 0 {
		b.report(why+", but it changed or recorded something: what was (-) and is (+)", append([]string{""}, d...))
	}
	return len(d) == 0
}

// oneWon checks that one call of a race succeeded, and all others failed with an error.
func (b *bench) oneWon(won int, lost map[error]int, loser error) {
	b.Helper()
	b.won(won, lost, 1, map[error]int{loser: parallel - 1})
}

// won checks how many calls of a race succeeded and failed.
func (b *bench) won(won int, lost map[error]int, wantWon int, wantLost map[error]int) {
	b.Helper()
	tally := func(won int, lost map[error]int) map[string]int {
		all := map[string]int{"won": won}
		for err, n := range lost {
			all[err.Error()] = n
		}
		return all
	}
	equal(b, "outcomes of calls at once", tally(won, lost), tally(wantWon, wantLost))
}

// ok expects no error, and otherwise stops the test.
func (b *bench) ok(err error) {
	b.Helper()
	b.is(err, nil)
}

// is expects an error, and otherwise stops the test.
func (b *bench) is(err, want error) {
	b.Helper()
	if !b.fails(err, want) {
		b.FailNow()
	}
}

// fails checks for an error, and reports whether it matched.
func (b *bench) fails(err, want error) bool {
	b.Helper()
	if errors.Is(err, want) {
		return true
	}
	b.wrong("error", err, difference.Show(want))
	return false
}

// refuses checks for any error.
func (b *bench) refuses(err error, what string) {
	b.Helper()
	if err == nil {
		b.wrong("error", err, "one: "+what)
	}
}

// gone checks for the error of a cancelled context.
func (b *bench) gone(err error) {
	b.Helper()
	b.is(err, context.Canceled)
}

// conflict checks for a *ConflictError of one field.
func (b *bench) conflict(err error, field string) {
	b.Helper()
	var c *store.ConflictError
	if !errors.As(err, &c) || c.Field != field || !errors.Is(err, store.ErrConflict) {
		b.wrong("error", err, "a conflict of "+field)
		b.FailNow()
	}
}

// rises checks that a number is above another one.
func (b *bench) rises(what string, from, to int64) {
	b.Helper()
	if to <= from {
		b.wrong(what, to, fmt.Sprintf("more than %d", from))
	}
}

// in returns the bench for another test.
func (b *bench) in(t *testing.T) *bench {
	inner := *b
	inner.reporter, inner.test = t, t
	return &inner
}
