package hostile_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/harness"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// notices are the messages that a trial must send: for each change of a credential, the
// message of the event that reports it.
func notices(p *harness.Played) map[auth.Kind]string {
	m := map[auth.Kind]string{}
	for _, w := range changedWays(p) {
		for _, e := range w.events {
			happened := slices.ContainsFunc(p.Events, func(o auth.Event) bool { return o.Type == e && o.UserID == p.Id })
			if k, told := harness.NoticeOf(e); told && happened {
				m[k] = w.what
			}
		}
	}
	return m
}

// ownersAreTold: each change of a credential is reported to the account's previous email
// address. The message was sent, or is stored for sending. An unverified address gets none
// if the store fails to report whether the limit has room for it.
func ownersAreTold(p *harness.Played, _ *reference) (list []string) {
	to := p.Was.Credentials.User.Email
	unknown := p.Struck["NoticesUnverified"] && (p.Fault == storetap.FailsBefore || p.Fault == storetap.FailsAfter)
	if to == "" || (unknown && !p.Was.Credentials.User.EmailVerified()) {
		return nil
	}
	for k, what := range notices(p) {
		if k == auth.KindAccountDeleted && !p.Was.Credentials.User.EmailVerified() {
			continue // it is sent to verified addresses only
		}
		if !slices.Contains(p.Letter, harness.Letter{Kind: k, To: to}) {
			list = append(list, fmt.Sprintf("%s, and no %s to %s", what, k, to))
		}
	}
	return list
}

// A notice that a change does not carry is found.
func TestHostileStoreBitesNotices(t *testing.T) {
	if harness.OnAnotherStore() {
		return // about the test, not about the store
	}
	t.Parallel()
	silent := harness.Sabotage{Edit: func(_ string, c *store.Change) { c.Messages = nil }}
	var mu sync.Mutex
	made, found := map[auth.Kind]bool{}, map[auth.Kind]bool{}
	t.Run("mutants", func(t *testing.T) {
		for pattern, rows := range harness.HostileRows() {
			for _, r := range rows {
				t.Run(pattern+" "+r.Name+" by "+string(r.Kind), func(t *testing.T) {
					t.Parallel()
					w := harness.NewHostileWorld(t, r)
					p := w.Play(harness.Trial{Row: r})
					kinds := slices.Collect(maps.Keys(notices(p)))
					mu.Lock()
					for _, k := range kinds {
						made[k] = true
					}
					open := slices.ContainsFunc(kinds, func(k auth.Kind) bool { return !found[k] })
					mu.Unlock()
					if !open || p.Was.Credentials.User.Email == "" {
						return
					}
					for _, n := range p.Telling { // the caller does not learn that the change succeeded
						p := w.Play(harness.Trial{Row: r, Fault: storetap.FailsAfter, K: n, Spoil: silent})
						if len(ownersAreTold(p, nil)) == 0 {
							continue
						}
						mu.Lock()
						for k := range notices(p) {
							found[k] = true
						}
						mu.Unlock()
					}
				})
			}
		}
	})
	for _, k := range slices.Sorted(maps.Keys(made)) {
		if !found[k] {
			t.Errorf("a change without %s goes unnoticed", k)
		}
	}
}
