package token

import (
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/store"
)

const (
	// A feed that is well catches up every second. Readers in other processes rely on a
	// message for six seconds from the time at which the feed caught up, so the rest is for
	// the way to them.
	feedSilent = 4 * time.Second

	// A transaction of an application may commit up to 15 minutes after the time of its
	// revocations. The rest is for clocks that differ.
	overlap = 20 * time.Minute
)

// Log keeps revocations in the order in which this process learned of them, for as long as
// they matter, for readers in other processes. It is safe for concurrent use. A nil Log
// keeps nothing.
type Log struct {
	life time.Duration // of access tokens
	id   string        // of this process's order

	mu      sync.Mutex
	list    []logged
	trimAt  int           // the length at which expired entries are dropped
	last    int64         // the number of the last revocation
	newest  time.Time     // the latest time of all revocations
	fed     time.Time     // when the feed last caught up
	changed chan struct{} // closed by the next revocation
}

type logged struct {
	store.Revocation
	number int64
	newest time.Time // the latest time until here
	until  time.Time
}

// Position is a place in the revocations: in the log that issued it by the number, in those
// of other processes with the same store by the time.
type Position struct {
	Log    string    `json:"l"`
	Number int64     `json:"n"` // of the last revocation before it
	At     time.Time `json:"t"` // the latest time of the revocations before it
}

// KeepLog makes the list keep a log. Call it before the first Add.
func (d *Revocations) KeepLog(o Options) *Log {
	d.log = &Log{life: o.Lifetime(), id: uuid.NewString(), changed: make(chan struct{})}
	return d.log
}

// Life returns the lifetime of access tokens.
func (l *Log) Life() time.Duration { return l.life }

// Age returns how long ago the feed last caught up, by the monotonic clock, and whether this
// process may tell others that it knows all revocations. Only Age decides that.
func (l *Log) Age() (age time.Duration, current bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	age = time.Since(l.fed)
	return age, !l.fed.IsZero() && age < feedSilent
}

func (l *Log) caughtUp() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fed = time.Now()
}

func (l *Log) add(r store.Revocation, until, now time.Time) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.list) >= l.trimAt {
		l.list = slices.DeleteFunc(l.list, func(e logged) bool { return !now.Before(e.until) })
		l.trimAt = 2*len(l.list) + 1000
	}
	l.last++
	if r.At.After(l.newest) {
		l.newest = r.At
	}
	l.list = append(l.list, logged{r, l.last, l.newest, until})
	close(l.changed)
	l.changed = make(chan struct{})
}

// After returns up to most revocations after a position, the position after them, and
// whether there are more. changed is closed by the next revocation. After a position of
// another log it returns some again. After an unknown position it returns all that can
// still matter.
func (l *Log) After(p Position, most int) (list []store.Revocation, next Position, more bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	matters := func(e logged) bool { return e.At.After(p.At.Add(-overlap)) }
	switch {
	case p.Log == l.id && p.Number >= 0 && p.Number <= l.last:
		matters = func(e logged) bool { return e.number > p.Number }
	case p.At.After(time.Now().Add(overlap)):
		p.At = time.Time{} // no position of a service whose clock is right
	}
	next = Position{l.id, l.last, l.newest}
	rest := l.list
	if i := slices.IndexFunc(rest, matters); i < 0 {
		rest = nil
	} else {
		rest = rest[i:]
	}
	if more = len(rest) > most; more {
		rest = rest[:most]
		end := rest[most-1]
		next = Position{l.id, end.number, end.newest}
	}
	for _, e := range rest {
		list = append(list, e.Revocation)
	}
	if next.At.Before(p.At) {
		next.At = p.At
	}
	return list, next, more, l.changed
}
