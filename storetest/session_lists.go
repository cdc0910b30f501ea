package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/store"
)

func endEverySession(w *world) attempt {
	u := w.person()
	own := "" // the authority's is the first session
	if len(w.sessions) > 0 {
		own = w.sessions[0]
	}
	w.device(u.ID)
	until, err := w.admin.SessionOrder(w.ctx())
	w.ok(err)
	return attempt{user: w.as(u.ID), call: func(ctx context.Context, c store.Change) error {
		_, err := w.admin.EndEverySession(ctx, store.EndEverySession{Change: c, Until: until, At: c.Now, Except: own, Limit: 1000})
		return err
	}}
}

// guests adds sessions of several users that differ in every field that lists filter by.
// Some are not live.
func (b *bench) guests() (live []store.Session) {
	b.Helper()
	users := []string{b.user("ada@example.com").ID, b.user("bob@example.com").ID, b.user("eve@example.com").ID}
	for i := range 18 {
		s := b.newSession(users[i%3])
		s.CreatedAt = now.Add(time.Duration(i/2) * time.Second)
		s.LastActiveAt, s.IdleUntil = s.CreatedAt, now.Add(time.Hour)
		s.IP, s.UserAgent = fmt.Sprintf("192.0.2.%d", i%2), []string{"Firefox/1 (Linux)", "curl/8", "100%_real"}[i%3]
		if i%4 == 0 {
			s.AAL = store.LevelAAL2
		}
		if i%6 == 5 {
			s.IdleUntil = now.Add(minute)
		}
		_, err := b.signIn(s)
		b.ok(err)
		switch {
		case i%6 == 5: // expired, a minute from now
		case i%9 == 4:
			_, err := b.revoke(s.UserID, store.SessionFilter{ID: s.ID})
			b.ok(err)
		default:
			live = append(live, s)
		}
	}
	slices.SortFunc(live, func(x, y store.Session) int {
		if c := y.CreatedAt.Compare(x.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(y.ID, x.ID)
	})
	return live
}

// sessionLists checks AdminStore.
func sessionLists() checks {
	at := now.Add(2 * minute)
	return checks{
		"lists hold the live sessions that a query picks, newest first, page by page": func(b *bench) {
			live := b.guests()
			for name, q := range map[string]store.SessionQuery{
				"all":                  {},
				"of one":               {UserID: live[0].UserID},
				"of nobody":            {UserID: b.id()},
				"at an address":        {IP: "192.0.2.1"},
				"at a part of one":     {IP: "192.0.2"},
				"with two factors":     {AAL: store.LevelAAL2},
				"with one":             {AAL: store.LevelAAL1},
				"by a client":          {Client: "FIREFOX", Since: now},
				"wildcards are none":   {Client: "%_r", Since: now},
				"since":                {Since: now.Add(3 * time.Second)},
				"before":               {Before: now.Add(3 * time.Second)},
				"all of it together":   {UserID: live[0].UserID, IP: live[0].IP, AAL: live[0].AAL, Since: now, Before: now.Add(time.Hour), Client: "e"},
				"between, at one, aal": {IP: "192.0.2.0", AAL: store.LevelAAL2, Since: now.Add(time.Second), Before: now.Add(7 * time.Second)},
			} {
				q.Now = at
				want := []string{}
				for _, s := range live {
					if (q.UserID == "" || q.UserID == s.UserID) && (q.IP == "" || q.IP == s.IP) && (q.AAL == "" || q.AAL == s.AAL) &&
						strings.Contains(strings.ToLower(s.UserAgent), strings.ToLower(q.Client)) && !s.CreatedAt.Before(q.Since) && (q.Before.IsZero() || s.CreatedAt.Before(q.Before)) {
						want = append(want, s.ID)
					}
				}
				for _, q.Limit = range []int{1, 4, 100} {
					q.After = nil
					got := []string{}
					for range len(want) + 2 {
						list, err := b.admin.ListSessions(b.ctx(), q)
						b.ok(err)
						for _, s := range list {
							got = append(got, s.ID)
						}
						if len(list) < q.Limit {
							break
						}
						last := list[len(list)-1]
						q.After = &store.SessionCursor{Time: last.CreatedAt, ID: last.ID}
					}
					q.After = nil
					b.page(name, q, got, want)
				}
			}
		},
		"a list holds whole sessions": func(b *bench) {
			s := b.session(b.user("ada@example.com").ID)
			list, err := b.admin.ListSessions(b.ctx(), store.SessionQuery{Limit: 10, Now: now})
			b.ok(err)
			need(b, "the number of sessions", len(list), 1)
			b.sameSession(list[0], s)
		},
		"everybody's sessions end, except the one named and those created later": func(b *bench) {
			live := b.guests()
			spared := live[len(live)-1].ID
			until, err := b.admin.SessionOrder(b.ctx())
			b.ok(err)
			later := b.newSession(live[0].UserID) // by a caller with a slow clock
			later.CreatedAt = now.Add(-minute)
			_, err = b.signIn(later)
			b.ok(err)
			want := []string{spared, later.ID}
			total := 0
			for {
				n, err := b.admin.EndEverySession(b.ctx(), store.EndEverySession{Change: by(at), Until: until, At: at, Except: spared, Limit: 2})
				b.ok(err)
				need(b, "the number that ended of at most 2", min(n, 2), n)
				if total += n; n < 2 {
					break
				}
			}
			equal(b, "the number that ended", total, len(live)-1)
			list, err := b.admin.ListSessions(b.ctx(), store.SessionQuery{Limit: 100, Now: at})
			b.ok(err)
			got := []string{}
			for _, s := range list {
				got = append(got, s.ID)
			}
			listed(b, "those left", got, want)
		},
		"everybody's impersonations end, too": func(b *bench) {
			if b.admin == nil {
				return
			}
			operator, i := b.stage()
			until, err := b.admin.SessionOrder(b.ctx())
			b.ok(err)
			_, err = b.admin.EndEverySession(b.ctx(), store.EndEverySession{Change: by(now), Until: until, At: now, Except: operator.ID, Limit: 100})
			b.ok(err)
			b.liveActing(i, now, false)
		},
	}
}
