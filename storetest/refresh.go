package storetest

import (
	"errors"
	"time"

	"github.com/authmount/auth/store"
)

func refresh() checks {
	return checks{
		"refreshing moves the counter and the end": func(b *bench) {
			s := b.newSession(b.user("ada@example.com").ID)
			s.AAL, s.AMR, s.ExpiresAt = store.LevelAAL2, append(s.AMR, store.AMR{Method: "totp", Timestamp: 1}), now.Add(2*minute)
			_, err := b.signIn(s)
			b.ok(err)
			at := now.Add(minute)
			got, user, err := b.AdvanceSession(b.ctx(), store.Advance{Change: by(at), SessionID: s.ID, Counter: 0, IdleUntil: at.Add(time.Hour), IP: "192.0.2.2"})
			b.ok(err)
			want := s
			want.Counter, want.RotatedAt, want.LastActiveAt, want.IdleUntil, want.IP = 1, at, at, at.Add(time.Hour), "192.0.2.2"
			b.sameSession(got, want)
			equal(b, "User.ID", user.ID, s.UserID)
			read, _, err := b.Session(b.ctx(), s.ID, at)
			b.ok(err)
			b.sameSession(read, want)
			got, _, err = b.AdvanceSession(b.ctx(), store.Advance{Change: by(at), SessionID: s.ID, Counter: 1, IdleUntil: at.Add(time.Hour), UserAgent: "other"})
			b.ok(err)
			want.Counter, want.UserAgent = 2, "other"
			b.sameSession(got, want)
		},
		"the counter before returns the current session, within grace": func(b *bench) {
			s := b.session(b.user("ada@example.com").ID)
			moved, err := b.advance(s.ID, 0, now)
			b.ok(err)
			again, err := b.advance(s.ID, 0, now.Add(10*time.Second-us))
			b.ok(err)
			b.sameSession(again, moved)
			equal(b, "late just before the end of the grace", b.late(s.ID, now.Add(10*time.Second-us)), false)
			equal(b, "late at the end of the grace", b.late(s.ID, now.Add(10*time.Second)), true)
		},
		"grace begins when the counter moves": func(b *bench) {
			s := b.newSession(b.user("ada@example.com").ID)
			s.Counter, s.RotatedAt = 1, now.Add(-10*time.Second)
			_, err := b.signIn(s)
			b.ok(err)
			equal(b, "late just before the end", b.late(s.ID, now.Add(-us)), false)
			equal(b, "late at the end", b.late(s.ID, now), true)
		},
		"no grace means no repetition": func(b *bench) {
			s := b.session(b.user("ada@example.com").ID)
			a := store.Advance{Change: by(now), SessionID: s.ID, IdleUntil: now.Add(time.Hour)}
			_, _, err := b.AdvanceSession(b.ctx(), a)
			b.ok(err)
			_, _, err = b.AdvanceSession(b.ctx(), a)
			b.is(err, store.ErrReused)
		},
		"reuse ends the session for good": func(b *bench) {
			want := store.Credentials{User: b.whole(), PasswordHash: "hash"}
			other, s := b.session(want.User.ID), b.session(want.User.ID)
			want.User.LastSignInAt = s.CreatedAt
			for i := range uint32(3) {
				_, err := b.advance(s.ID, i, now)
				b.ok(err)
			}
			s.Counter = 3
			got, user, err := b.AdvanceSession(b.ctx(), store.Advance{Change: by(now), SessionID: s.ID, Counter: 1, Grace: minute, IdleUntil: now.Add(time.Hour)})
			b.is(err, store.ErrReused)
			b.sameSession(got, s)
			b.sameUser(user, want.User)
			b.stands(want)
			_, err = b.advance(s.ID, 3, now)
			b.is(err, store.ErrSessionEnded)
			_, _, err = b.Session(b.ctx(), s.ID, now)
			b.is(err, store.ErrSessionEnded)
			got, _, err = b.Session(b.ctx(), other.ID, now)
			b.ok(err)
			b.sameSession(got, other)
		},
		"reuse ends the session whatever the conditions": func(b *bench) {
			for name, edit := range map[string]func(*store.Change){
				"stale":    func(c *store.Change) { c.IfUsers = []store.UserAt{{ID: b.id()}} },
				"roles":    func(c *store.Change) { c.IfRoles = ptr(int64(99)) },
				"no owner": func(c *store.Change) { c.KeepOwner = true },
			} {
				s := b.session(b.user("").ID)
				for i := range uint32(2) {
					_, err := b.advance(s.ID, i, now)
					b.ok(err)
				}
				a := store.Advance{Change: by(now), SessionID: s.ID, IdleUntil: now.Add(time.Hour)}
				edit(&a.Change)
				_, _, err := b.AdvanceSession(b.ctx(), a)
				b.of("%s", name).fails(err, store.ErrReused)
				_, _, err = b.Session(b.ctx(), s.ID, now)
				b.is(err, store.ErrSessionEnded)
			}
		},
		"reuse is not told to who may not know": func(b *bench) {
			u := b.user("")
			s, ended := b.session(u.ID), b.session(u.ID)
			for i := range uint32(2) {
				_, err := b.advance(s.ID, i, now)
				b.ok(err)
			}
			_, err := b.revoke(u.ID, store.SessionFilter{ID: ended.ID})
			b.ok(err)
			a := store.Advance{Change: by(now), SessionID: s.ID, IdleUntil: now.Add(time.Hour)}
			a.By = store.Authority{Session: &store.SessionRef{ID: ended.ID, UserID: u.ID}}
			_, _, err = b.AdvanceSession(b.ctx(), a)
			b.is(err, store.ErrSessionEnded)
			_, _, err = b.Session(b.ctx(), s.ID, now)
			b.ok(err)
		},
		"a counter from the future changes nothing": func(b *bench) {
			s := b.session(b.user("ada@example.com").ID)
			_, err := b.advance(s.ID, 1, now)
			b.is(err, store.ErrSessionEnded)
			_, err = b.advance(s.ID, 0, now)
			b.ok(err)
		},
		"what a refresh draws is drawn once, whatever becomes of it": func(b *bench) {
			s := b.session(b.user("ada@example.com").ID)
			advance := func(id string, counter uint32, at time.Time, cost int) error {
				_, _, err := b.AdvanceSession(b.ctx(), store.Advance{
					Change: by(at), SessionID: id, Counter: counter, Grace: 10 * time.Second, IdleUntil: at.Add(time.Hour), Draw: store.Draw{Key: "k", Rate: five, Cost: cost},
				})
				return err
			}
			b.ok(advance(s.ID, 0, now, 1))
			b.left("k", now, 4)
			ended := store.Advance{Change: by(now), SessionID: s.ID, Counter: 1, IdleUntil: now.Add(time.Hour), Draw: store.Draw{Key: "other", Rate: five, Cost: 1}}
			ended.By = store.Authority{Session: &store.SessionRef{ID: b.id(), UserID: s.UserID}}
			_, _, err := b.AdvanceSession(b.ctx(), ended)
			b.of("an authority that has ended").is(err, store.ErrSessionEnded)
			b.left("other", now, 4)
			b.of("within grace").ok(advance(s.ID, 0, now, 1))
			b.left("k", now, 3)
			b.of("a session that is not there").is(advance(b.id(), 0, now, 1), store.ErrNotFound)
			b.left("k", now, 2)
			b.of("a counter from the future").is(advance(s.ID, 7, now, 1), store.ErrSessionEnded)
			b.left("k", now, 1)
			b.ok(advance(s.ID, 1, now, 1))
			b.left("k", now, 0)
			for range 2 {
				err := advance(s.ID, 2, now, 1)
				var limited *store.LimitedError
				b.is(err, store.ErrLimited)
				need(b, "error is a *LimitedError", errors.As(err, &limited), true)
				equal(b, "LimitedError.RetryAfter", limited.RetryAfter, 12*time.Second)
			}
			// The limit also refuses an outdated counter, and ends no session.
			b.of("outdated").is(advance(s.ID, 0, now.Add(11*time.Second), 1), store.ErrLimited)
			got, _, err := b.Session(b.ctx(), s.ID, now)
			b.ok(err)
			equal(b, "Session.Counter", got.Counter, 2)
			b.ok(advance(s.ID, 2, now.Add(12*time.Second), 1))
			b.left("k", now.Add(12*time.Second), 0)
			// Not even a full bucket has that many tokens.
			b.of("too much").is(advance(s.ID, 3, now.Add(time.Hour), 6), store.ErrLimited)
			b.left("k", now.Add(time.Hour), 5)
			b.of("no limit").ok(func() error { _, err := b.advance(s.ID, 3, now.Add(20*time.Second)); return err }())
		},
		"sessions that are refreshed at once draw for themselves": func(b *bench) {
			u := b.user("ada@example.com")
			var all [parallel]store.Session
			for i := range all {
				all[i] = b.session(u.ID)
			}
			for round := range uint32(6) {
				want := parallel
				if round == 5 { // the buckets are empty
					want = 0
				}
				won, _ := b.race(func(i int) error {
					_, _, err := b.AdvanceSession(b.ctx(), store.Advance{
						Change: by(now), SessionID: all[i].ID, Counter: round, IdleUntil: now.Add(time.Hour), Draw: store.Draw{Key: all[i].ID, Rate: five, Cost: 1},
					})
					return err
				}, store.ErrLimited)
				equal(b.of("round %d", round), "successful parallel calls", won, want)
			}
			for _, s := range all {
				b.left(s.ID, now, 0)
			}
		},
		"of refreshes of one session at once the limit lets pass as many as it has": func(b *bench) {
			s := b.session(b.user("ada@example.com").ID)
			won, _ := b.race(func(int) error {
				_, _, err := b.AdvanceSession(b.ctx(), store.Advance{
					Change: by(now), SessionID: s.ID, Grace: minute, IdleUntil: now.Add(time.Hour), Draw: store.Draw{Key: "k", Rate: five, Cost: 1},
				})
				return err
			}, store.ErrLimited)
			equal(b, "successful parallel calls", won, min(5, parallel))
			b.left("k", now, max(0, 5-parallel))
		},
		"a session that lacks a required second factor does not advance": func(b *bench) {
			due := func(roles []string, metadata map[string]any, aal string, f *store.FactorRule) bool {
				nu := b.newUser("")
				nu.User.Roles, nu.User.AppMetadata = roles, metadata
				u, err := b.create(nu)
				b.ok(err)
				s := b.newSession(u.ID)
				s.AAL = aal
				_, err = b.signIn(s)
				b.ok(err)
				advance := func(counter uint32) error {
					_, _, err := b.AdvanceSession(b.ctx(), store.Advance{
						Change: by(now), SessionID: s.ID, Counter: counter, Grace: minute, IdleUntil: now.Add(time.Hour),
						Draw: store.Draw{Key: u.ID, Rate: five, Cost: 1}, FactorFor: f,
					})
					return err
				}
				err = advance(0)
				b.left(u.ID, now, 4)
				want := uint32(1)
				if err != nil {
					b.is(err, store.ErrMFARequired)
					want = 0
				}
				got, _, readErr := b.Session(b.ctx(), s.ID, now)
				b.ok(readErr)
				equal(b, "Session.Counter", got.Counter, want)
				if err == nil { // an outdated counter is decided without the rule
					b.of("outdated").ok(advance(0))
				}
				return err != nil
			}
			marked := func(v any) map[string]any { return map[string]any{"mfa_required": v, "other": 1.5} }
			for name, c := range map[string]struct {
				roles    []string
				metadata map[string]any
				aal      string
				rule     *store.FactorRule
				want     bool
			}{
				"no rule":            {[]string{"a"}, marked(true), store.LevelAAL1, nil, false},
				"everybody":          {nil, nil, store.LevelAAL1, &store.FactorRule{Everybody: true}, true},
				"everybody, with it": {nil, nil, store.LevelAAL2, &store.FactorRule{Everybody: true}, false},
				"nobody":             {[]string{"a"}, nil, store.LevelAAL1, &store.FactorRule{}, false},
				"a role":             {[]string{"a", "b"}, nil, store.LevelAAL1, &store.FactorRule{Roles: []string{"c", "b"}}, true},
				"another role":       {[]string{"a"}, nil, store.LevelAAL1, &store.FactorRule{Roles: []string{"c", "b"}}, false},
				"a role, with it":    {[]string{"a"}, nil, store.LevelAAL2, &store.FactorRule{Roles: []string{"a"}}, false},
				"marked":             {nil, marked(true), store.LevelAAL1, &store.FactorRule{}, true},
				"marked, with it":    {nil, marked(true), store.LevelAAL2, &store.FactorRule{}, false},
				"marked with false":  {nil, marked(false), store.LevelAAL1, &store.FactorRule{}, false},
				"marked with text":   {nil, marked("true"), store.LevelAAL1, &store.FactorRule{}, false},
				"marked with a list": {nil, marked([]any{true}), store.LevelAAL1, &store.FactorRule{}, false},
			} {
				equal(b.of("%s", name), "refused", due(c.roles, c.metadata, c.aal, c.rule), c.want)
			}
		},
		"parallel refreshes advance once": func(b *bench) {
			s := b.session(b.user("ada@example.com").ID)
			won, _ := b.race(func(int) error {
				got, err := b.advance(s.ID, 0, now)
				if err == nil {
					equal(b, "Session.Counter", got.Counter, 1)
				}
				return err
			})
			equal(b, "successful parallel calls", won, parallel)
			got, _, err := b.Session(b.ctx(), s.ID, now)
			b.ok(err)
			equal(b, "Session.Counter", got.Counter, 1)
		},
		"a revoked session stays ended against parallel refreshes": func(b *bench) {
			s := b.session(b.user("ada@example.com").ID)
			b.race(func(i int) error {
				if i%2 == 0 {
					_, err := b.revoke(s.UserID, store.SessionFilter{})
					return err
				}
				_, err := b.advance(s.ID, 0, now)
				return err
			}, store.ErrSessionEnded)
			_, _, err := b.Session(b.ctx(), s.ID, now)
			b.is(err, store.ErrSessionEnded)
		},
	}
}
