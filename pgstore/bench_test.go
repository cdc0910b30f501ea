package pgstore_test

import (
	"fmt"
	"slices"
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
