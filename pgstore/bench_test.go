package pgstore_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/authmount/auth/pgstore"
	"github.com/authmount/auth/store"
)

// The database's part in a sign-in, a sign-up and a request, one call at a time and
// without HTTP. The median of the calls says more than their average where other things
// run, too.

// regulars are the users who sign in: many, so that none soon has many sessions.
const regulars = 200

func BenchmarkCreateSession(b *testing.B) {
	for name, device := range map[string]func(i int) string{
		"KnownDevice": func(int) string { return hashName("a device") },
		"NewDevice":   func(i int) string { return hashName(fmt.Sprint("device ", i)) },
		"NoDevice":    func(int) string { return "" },
	} {
		b.Run(name, func(b *testing.B) {
			s := open(b)
			users := make([]store.User, regulars)
			for i := range users {
				users[i] = benchUser(b, s, regular(i, hashName("a device")))
			}
			benchCalls(b, func(i int) {
				signInTo(b, s, users[i%regulars], device(i), 100)
			})
		})
	}
	// A user at the limit of sessions, so that each sign-in revokes one.
	b.Run("Full", func(b *testing.B) {
		s := open(b)
		users := make([]store.User, 5)
		for i := range users {
			users[i] = benchUser(b, s, regular(i, hashName("a device")))
			for range 100 {
				signInTo(b, s, users[i], hashName("a device"), 100)
			}
		}
		benchCalls(b, func(i int) { signInTo(b, s, users[i%len(users)], hashName("a device"), 100) })
	})
}

func BenchmarkCreateUser(b *testing.B) {
	s := open(b)
	benchCalls(b, func(i int) { benchUser(b, s, regular(i, hashName("a device"))) })
}

func BenchmarkSession(b *testing.B) {
	s := open(b)
	c := regular(0, hashName("a device"))
	benchUser(b, s, c)
	benchCalls(b, func(int) {
		if _, _, err := s.Session(b.Context(), c.Session.ID, c.Now); err != nil {
			b.Fatal(err)
		}
	})
}

// A refresh with its rate limit: alone, and many at once, which share statements.
func BenchmarkAdvanceSession(b *testing.B) {
	refresh := func(b *testing.B, s *pgstore.Store, c *store.CreateUser, counter uint32) {
		now := c.Now.Add(time.Duration(counter) * time.Second)
		change := byTest()
		change.Now = now
		_, _, err := s.AdvanceSession(b.Context(), store.Advance{
			Change: change, SessionID: c.Session.ID, Counter: counter, IdleUntil: now.Add(time.Hour),
			Draw: store.Draw{Key: c.Session.ID, Rate: store.Rate{Burst: 60, Per: time.Minute}, Cost: 1},
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.Run("One", func(b *testing.B) {
		s := open(b)
		c := regular(0, hashName("a device"))
		benchUser(b, s, c)
		n := uint32(0)
		benchCalls(b, func(int) { refresh(b, s, &c, n); n++ })
	})
	b.Run("Many", func(b *testing.B) {
		s := open(b)
		benchCrowd(b, func(who int) func() {
			c := regular(who, hashName("a device"))
			benchUser(b, s, c)
			n := uint32(0)
			return func() { refresh(b, s, &c, n); n++ }
		})
	})
}

// A draw of a rate limit: alone, and many at once, which share statements.
func BenchmarkTake(b *testing.B) {
	take := func(b *testing.B, s *pgstore.Store, key string, now time.Time) {
		if _, err := s.Take(b.Context(), []store.Draw{{Key: key, Rate: store.Rate{Burst: 60, Per: time.Minute}, Cost: 1}}, now); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("One", func(b *testing.B) {
		s, now := open(b), time.Now()
		benchCalls(b, func(int) { now = now.Add(time.Second); take(b, s, "key", now) })
	})
	b.Run("Many", func(b *testing.B) {
		s := open(b)
		benchCrowd(b, func(who int) func() {
			now := time.Now()
			return func() { now = now.Add(time.Second); take(b, s, fmt.Sprint(who), now) }
		})
	})
}

// benchCrowd measures calls by a hundred callers at once.
func benchCrowd(b *testing.B, caller func(who int) func()) {
	b.Helper()
	const crowd = 100
	calls := make([]func(), crowd)
	for who := range calls {
		calls[who] = caller(who)
		calls[who]()
	}
	b.ResetTimer()
	var wg sync.WaitGroup
	for who, call := range calls {
		wg.Go(func() {
			for i := who; i < b.N; i += crowd {
				call()
			}
		})
	}
	wg.Wait()
}

// benchCalls measures a call, and reports the median in addition to the average.
func benchCalls(b *testing.B, call func(i int)) {
	b.Helper()
	for i := range 20 { // statements are prepared, with generic plans
		call(-1 - i + 1<<30)
	}
	took := make([]time.Duration, b.N)
	b.ResetTimer()
	for i := range took {
		began := time.Now()
		call(i)
		took[i] = time.Since(began)
	}
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[b.N/2].Nanoseconds()), "median-ns")
}

// regular returns a user with a session on a device.
func regular(i int, device string) store.CreateUser {
	c := newUser(fmt.Sprintf("user%d@example.com", i))
	s := benchSession(c.User.ID, device)
	c.Session, c.PasswordHash = &s, "hash"
	c.Events = []store.OutcomeEvent{{Event: store.Event{ID: newID(), Type: store.EventSignedUp, At: c.Now}}}
	return c
}

func benchUser(b *testing.B, s *pgstore.Store, c store.CreateUser) store.User {
	b.Helper()
	u, err := s.CreateUser(b.Context(), c)
	if err != nil {
		b.Fatal(err)
	}
	return u
}

func signInTo(b *testing.B, s *pgstore.Store, u store.User, device string, keep int) {
	b.Helper()
	c := store.CreateSession{Change: with(byTest(), store.UserAt{ID: u.ID, CredentialRevision: &u.CredentialRevision}), NewSession: store.NewSession{Session: benchSession(u.ID, device)}}
	c.KeepSessions = keep
	c.Events = append(c.Events, store.OutcomeEvent{On: store.OutcomeSessionsEnded, Event: store.Event{ID: newID(), Type: store.EventSessionsEnded, At: c.Now}})
	if _, err := s.CreateSession(b.Context(), c); err != nil {
		b.Fatal(err)
	}
}

func benchSession(userID, device string) store.Session {
	s := newSession(userID)
	s.ID, s.AMR, s.IdleUntil = newID(), []store.AMR{{Method: "password", Timestamp: s.CreatedAt.Unix()}}, s.CreatedAt.Add(720*time.Hour)
	s.IP, s.UserAgent = "192.0.2.1", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	s.Device = device
	return s
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

func hashName(name string) string { return fmt.Sprintf("%x", hashOf(name)) }
