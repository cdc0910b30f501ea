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

// reporter is what a check does with its test. It cannot fail it: that is for
// the assertions here, so that every failure names the call, what came and what
// was wanted.
type reporter interface {
	Helper()
	Context() context.Context
	Logf(format string, args ...any)
	Run(name string, f func(*testing.T)) bool
	Failed() bool
	FailNow()
}

// calls are what was last asked of the store.
type calls struct{ last, change atomic.Pointer[string] }

// watch remembers the calls to a store.
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

// String names the last call, and the last change if the call was none.
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

// of is the bench with a word about what the next assertion is about.
func (b *bench) of(format string, args ...any) *bench {
	about := *b
	about.about = b.about + fmt.Sprintf(format, args...) + ": "
	return &about
}

// report fails the test. Every failure of a check comes through here.
func (b *bench) report(what string, lines []string) {
	b.Helper()
	head := fmt.Sprintf("%s: %s%s", b.calls, b.about, what)
	if len(lines) == 1 {
		b.test.Error(head + lines[0])
		return
	}
	b.test.Error(head + " differs:\n\t" + strings.Join(lines, "\n\t"))
}

// wrong fails the test: what came is not what the words describe.
func (b *bench) wrong(what string, got any, want string) {
	b.Helper()
	b.report(what, []string{" = " + difference.Show(got) + ", want " + want})
}

// equal wants a value to be deeply equal to another one.
func equal[T any](b *bench, what string, got, want T) {
	b.Helper()
	if lines := difference.Of(got, want); len(lines) > 0 {
		b.report(what, lines)
	}
}

// need is equal, and nothing that follows makes sense otherwise.
func need[T any](b *bench, what string, got, want T) {
	b.Helper()
	if lines := difference.Of(got, want); len(lines) > 0 {
		b.report(what, lines)
		b.FailNow()
	}
}

// listed wants the same elements in the same order; a store may spell an empty
// list either way.
func listed[T any](b *bench, what string, got, want []T) {
	b.Helper()
	equal(b, what, append([]T{}, got...), append([]T{}, want...))
}

// unchanged wants two states of a world to be the same.
func (b *bench) unchanged(why string, before, after []string) (same bool) {
	b.Helper()
	d := differences(before, after)
	if len(d) > 0 {
		b.report(why+", but it changed or recorded something: what was (-) and is (+)", append([]string{""}, d...))
	}
	return len(d) == 0
}

// oneWon wants one of those who raced to have won, and all others to have lost
// with an error.
func (b *bench) oneWon(won int, lost map[error]int, loser error) {
	b.Helper()
	b.won(won, lost, 1, map[error]int{loser: parallel - 1})
}

// won wants so many of those who raced to have won, and so many to have lost.
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

// ok wants no error; nothing that follows makes sense with one.
func (b *bench) ok(err error) {
	b.Helper()
	b.is(err, nil)
}

// is wants an error; nothing that follows makes sense without it.
func (b *bench) is(err, want error) {
	b.Helper()
	if !b.fails(err, want) {
		b.FailNow()
	}
}

// fails wants an error, and reports whether it came.
func (b *bench) fails(err, want error) bool {
	b.Helper()
	if errors.Is(err, want) {
		return true
	}
	b.wrong("error", err, difference.Show(want))
	return false
}

// refuses wants an error, whichever.
func (b *bench) refuses(err error, what string) {
	b.Helper()
	if err == nil {
		b.wrong("error", err, "one: "+what)
	}
}

// gone wants the error of a cancelled context.
func (b *bench) gone(err error) {
	b.Helper()
	b.is(err, context.Canceled)
}

// conflict wants an error about one unique value.
func (b *bench) conflict(err error, field string) {
	b.Helper()
	var c *store.ConflictError
	if !errors.As(err, &c) || c.Field != field || !errors.Is(err, store.ErrConflict) {
		b.wrong("error", err, "a conflict of "+field)
		b.FailNow()
	}
}

// rises wants a number to be above another one.
func (b *bench) rises(what string, from, to int64) {
	b.Helper()
	if to <= from {
		b.wrong(what, to, fmt.Sprintf("more than %d", from))
	}
}

// in is the bench within another test.
func (b *bench) in(t *testing.T) *bench {
	inner := *b
	inner.reporter, inner.test = t, t
	return &inner
}
