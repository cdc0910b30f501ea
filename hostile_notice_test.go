package auth_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/storetap"
	"github.com/authmount/auth/store"
)

// letter is a message that was sent, or is kept to be sent.
type letter struct {
	kind auth.Kind
	to   string
}

// letters are those of a trial: first those that the store keeps for whoever
// claims them once their lease is over, then those that were sent.
func (p *played) letters() []letter {
	p.t.Helper()
	st, _ := store.Capability[store.OutboxStore](p.tap.Inner())
	later := p.Clock.Now().Add(auth.Lease(p.Auth) + time.Second)
	kept, err := st.ClaimMessages(p.t.Context(), store.ClaimMessages{Now: later, Until: later, Limit: 1000})
	if err != nil {
		p.t.Fatal(err)
	}
	var list []letter
	for _, m := range kept {
		k, to, err := auth.OpenMessage(p.Auth, m)
		if err != nil {
			p.t.Fatal(err)
		}
		list = append(list, letter{k, to})
	}
	for _, m := range p.Inbox.Messages() {
		list = append(list, letter{m.Kind, m.To})
	}
	return list
}

// notices are the messages that have to tell of a trial's changes: of each change
// of a way in, that of an event that tells of it.
func (p *played) notices() map[auth.Kind]string {
	m := map[auth.Kind]string{}
	for _, w := range p.changedWays() {
		for _, e := range w.events {
			happened := slices.ContainsFunc(p.events, func(o auth.Event) bool { return o.Type == e && o.UserID == p.id })
			if k, told := auth.NoticeOf(e); told && happened {
				m[k] = w.what
			}
		}
	}
	return m
}

// ownersAreTold: of every change of a way in, the address that the account had is
// told: the message was sent, or is kept and will be. An address that nobody has
// proved gets none if the store fails to tell whether the limit has room for it.
func ownersAreTold(p *played, _ *reference) (list []string) {
	to := p.was.Credentials.User.Email
	unknown := p.struck["NoticesUnproved"] && (p.fault == storetap.FailsBefore || p.fault == storetap.FailsAfter)
	if to == "" || (unknown && !p.was.Credentials.User.EmailVerified()) {
		return nil
	}
	for k, what := range p.notices() {
		if k == auth.KindAccountDeleted && !p.was.Credentials.User.EmailVerified() {
			continue // it goes to proved addresses only
		}
		if !slices.Contains(p.letter, letter{k, to}) {
			list = append(list, fmt.Sprintf("%s, and no %s to %s", what, k, to))
		}
	}
	return list
}

// A notice that a change does not carry is found.
func TestHostileStoreBitesNotices(t *testing.T) {
	if os.Getenv(onPostgres) != "" {
		return // about the test, not about the store
	}
	t.Parallel()
	silent := sabotage{edit: func(_ string, c *store.Change) { c.Messages = nil }}
	var mu sync.Mutex
	made, found := map[auth.Kind]bool{}, map[auth.Kind]bool{}
	t.Run("mutants", func(t *testing.T) {
		for pattern, rows := range hostileRows() {
			for _, r := range rows {
				t.Run(pattern+" "+r.name+" by "+string(r.kind), func(t *testing.T) {
					t.Parallel()
					w := newHostileWorld(t, r)
					p := w.play(trial{row: r})
					kinds := slices.Collect(maps.Keys(p.notices()))
					mu.Lock()
					for _, k := range kinds {
						made[k] = true
					}
					open := slices.ContainsFunc(kinds, func(k auth.Kind) bool { return !found[k] })
					mu.Unlock()
					if !open || p.was.Credentials.User.Email == "" {
						return
					}
					for _, n := range p.telling { // whoever made the change does not learn of it
						p := w.play(trial{row: r, fault: storetap.FailsAfter, k: n, spoil: silent})
						if len(ownersAreTold(p, nil)) == 0 {
							continue
						}
						mu.Lock()
						for k := range p.notices() {
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
