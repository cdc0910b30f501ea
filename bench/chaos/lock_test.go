//go:build faults

package chaos

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// A row that another transaction has locked: the application's, a migration, an
// administrator.
func TestLockedRow(t *testing.T) {
	pg := postgres(t)
	serve(t, pg.URL) // creates the schema

	t.Run("statement timeout", func(t *testing.T) {
		execute(t, pg.URL, "alter database postgres set statement_timeout = '700ms'")
		locked(t, pg.URL, "57014", 700*time.Millisecond, 5*time.Second)
		execute(t, pg.URL, "alter database postgres reset statement_timeout")
	})
	t.Run("the store's own timeout", func(t *testing.T) {
		locked(t, pg.URL, "deadline exceeded", 9*time.Second, patience)
	})
}

// state is all data of an account.
func state(t *testing.T, url, id string) string {
	t.Helper()
	return ask[string](t, url, `select jsonb_build_array(
		(select jsonb_agg(to_jsonb(u)) from auth.users u where id = $1::uuid),
		(select jsonb_agg(to_jsonb(s) order by s.id) from auth.sessions s where user_id = $1::uuid),
		(select jsonb_agg(to_jsonb(t) order by t.purpose, t.hash) from auth.tokens t where user_id = $1::uuid))::text`, id)
}

// locked checks requests while an account's row is locked, and afterwards. cause is the
// expected log text, least and most are the expected durations.
func locked(t *testing.T, url, cause string, least, most time.Duration) {
	t.Helper()
	s := serve(t, url, "-no-rate-limit")
	other := serve(t, url, "-no-rate-limit")
	ada, ben := newPerson("ada-"+cause[:4]), newPerson("ben-"+cause[:4])
	in := s.must(t, 200, "POST", "/signup", ada.credentials(ada.password)).body
	other.must(t, 200, "POST", "/signup", ben.credentials(ben.password))
	s.must(t, 200, "POST", "/forgot-password", obj{"email": ada.email})
	reset := obj{"token": s.message(t, ada.email, "/reset-password").token(), "new_password": ada.next}
	s.must(t, 200, "POST", "/magic-link/send", obj{"email": ada.email})
	magic := obj{"token": s.message(t, ada.email, "/magic-link").token()}

	before := state(t, url, in.User.ID)
	release := held(t, url, "select from auth.users where id = $1::uuid for update", in.User.ID)
	requests := map[string]func() reply{
		"login":      func() reply { return s.call("POST", "/login", ada.credentials(ada.password)) },
		"reset":      func() reply { return other.call("POST", "/reset-password", reset) },
		"magic link": func() reply { return s.call("POST", "/magic-link/verify", magic) },
		"change": func() reply {
			return other.call("PATCH", "/me", obj{"full_name": "Ada"}, bearer(in.AccessToken)...)
		},
		"new password": func() reply {
			return s.call("POST", "/me/password", obj{"current_password": ada.password, "new_password": "leopards all over"}, bearer(in.AccessToken)...)
		},
	}
	var wg sync.WaitGroup
	for name, request := range requests {
		wg.Go(func() {
			r := request()
			if err := unavailable(r); err != nil || r.took < least || r.took > most {
				t.Errorf("%s answered after %v: %v", name, r.took, r)
			}
			t.Logf("%s: %d after %v", name, r.status, r.took.Round(time.Millisecond))
		})
	}
	// Meanwhile other accounts and operations without the lock continue.
	other.must(t, 200, "POST", "/login", ben.credentials(ben.password))
	other.must(t, 200, "GET", "/me", nil, bearer(in.AccessToken)...)
	wg.Wait()
	contains(t, cause, s, other)
	// No request may wait in the background and succeed after the lock is released
	// although it returned 503.
	eventually(t, 5*time.Second, "nobody waits for the lock", func() bool {
		return ask[int](t, url, "select count(*) from pg_locks where not granted") == 0
	})
	release()
	if after := state(t, url, in.User.ID); after != before {
		t.Errorf("answered with 503, and yet changed:\n%s\nwas\n%s", after, before)
	}

	s.must(t, 200, "PATCH", "/me", obj{"full_name": "Ada"}, bearer(in.AccessToken)...)
	s.must(t, 200, "POST", "/login", ada.credentials(ada.password))
	other.must(t, 200, "POST", "/reset-password", reset)
	s.must(t, 200, "POST", "/login", ada.credentials(ada.next))
	s.refused(t, 401, "invalid_credentials", "POST", "/login", ada.credentials(ada.password))
	s.refused(t, 400, "session_ended", "POST", "/refresh", obj{"refresh_token": in.RefreshToken})
	s.refused(t, 400, "invalid_token", "POST", "/magic-link/verify", magic) // a reset invalidates it
	whole(t, url)
}

// contains checks that both servers logged the cause.
func contains(t *testing.T, cause string, servers ...*server) {
	t.Helper()
	for _, s := range servers {
		found := false
		for _, line := range s.p.tail() {
			found = found || strings.Contains(line, cause)
		}
		if !found {
			t.Errorf("server %s says nothing of %q", s.addr, cause)
		}
	}
}
