package storetest

import (
	"github.com/authmount/auth/store"
)

// sessionFilters checks the filters of RevokeSessions by IP address and time.
func sessionFilters() checks {
	return checks{
		"a user's sessions end by their address and age": func(b *bench) {
			u := b.user("ada@example.com")
			here, there, later := b.newSession(u.ID), b.newSession(u.ID), b.newSession(u.ID)
			here.IP, there.IP, later.IP = "192.0.2.1", "192.0.2.2", "192.0.2.1"
			later.CreatedAt = now.Add(us)
			for _, s := range []store.Session{here, there, later} {
				_, err := b.signIn(s)
				b.ok(err)
			}
			ended, err := b.revoke(u.ID, store.SessionFilter{IP: "192.0.2.1", Before: now.Add(us)})
			b.ok(err)
			listed(b, "ended", ended, []string{here.ID})
			ended, err = b.revoke(u.ID, store.SessionFilter{Before: now})
			b.ok(err)
			listed(b, "ended", ended, []string{})
			ended, err = b.revoke(u.ID, store.SessionFilter{IP: "192.0.2.1"})
			b.ok(err)
			listed(b, "ended", ended, []string{later.ID})
		},
	}
}
