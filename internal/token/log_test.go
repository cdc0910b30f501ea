package token_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/authmount/auth/internal/token"
	"github.com/authmount/auth/store"
)

// A position leads on in its own log exactly, and in another log misses nothing.
func TestLogPositions(t *testing.T) {
	logs := make([]*token.Log, 2)
	lists := make([]*token.Revocations, 2)
	o := token.Options{Life: time.Hour}
	for i := range logs {
		lists[i] = token.NewRevocations(o, time.Now)
		logs[i] = lists[i].KeepLog(o)
	}
	begin := time.Now().Add(-50 * time.Minute)
	add := func(i, n int) {
		lists[i].Add(store.Revocation{SessionID: fmt.Sprint("s", n), At: begin.Add(time.Duration(n) * time.Minute)})
	}
	ids := func(i int, p token.Position, most int) (list []string, next token.Position, more bool) {
		found, next, more, _ := logs[i].After(p, most)
		for _, r := range found {
			list = append(list, r.SessionID)
		}
		return list, next, more
	}
	for n := range 40 {
		add(0, n)
		if n != 35 { // it is committed late
			add(1, n)
		}
	}
	first, p, more := ids(0, token.Position{}, 30)
	rest, p, none := ids(0, p, 30)
	if len(first) != 30 || !more || len(rest) != 10 || none || rest[0] != "s30" {
		t.Fatal(first, more, rest, none)
	}
	if again, _, _ := ids(0, p, 30); again != nil {
		t.Error("repeated:", again)
	}
	there, q, _ := ids(1, p, 30)
	if len(there) == 0 || there[0] != "s20" || there[len(there)-1] != "s39" {
		t.Error("at the other log:", there)
	}
	add(1, 35)
	if late, _, _ := ids(1, q, 30); len(late) != 1 || late[0] != "s35" {
		t.Error("the late one:", late)
	}
	if all, _, _ := ids(1, token.Position{Log: "of another time", Number: 5, At: time.Now().Add(time.Hour)}, 100); len(all) != 40 {
		t.Errorf("after an impossible position: %d", len(all))
	}
}

// A process vouches for its log while its feed catches up, and for four seconds afterwards,
// by the monotonic clock.
func TestLogIsCurrentForSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		list := token.NewRevocations(token.Options{Life: time.Hour}, time.Now)
		log := list.KeepLog(token.Options{Life: time.Hour})
		if _, current := log.Age(); current {
			t.Error("current without a feed")
		}
		list.Add(store.Revocation{SessionID: "s", At: time.Now()})
		if _, current := log.Age(); current {
			t.Error("a revocation is no report that there are no others")
		}
		for range 3 {
			list.Add(store.Revocation{CaughtUp: true, At: time.Now().Add(-time.Hour)})
			<-time.After(4*time.Second - 1)
			if age, current := log.Age(); !current || age != 4*time.Second-1 {
				t.Error(age, current)
			}
		}
		<-time.After(1)
		if age, current := log.Age(); current {
			t.Error("current after", age)
		}
	})
}

// Memory is bounded. Dropped revocations make all tokens of their time stale.
func TestRevocationsLimit(t *testing.T) {
	now := time.Now()
	d := token.NewRevocations(token.Options{Life: time.Hour}, func() time.Time { return now })
	d.Limit(100)
	for n := range 1000 {
		d.Add(store.Revocation{SessionID: fmt.Sprint("s", n), At: now.Add(time.Duration(n-1000) * time.Second)})
	}
	stale := func(issued time.Time) bool {
		return d.Stale(&token.Claims{UserID: "u", SessionID: "s", IssuedAt: issued}, token.Revisions{})
	}
	if !stale(now.Add(-time.Hour)) || stale(now) {
		t.Errorf("stale: old %t, new %t", stale(now.Add(-time.Hour)), stale(now))
	}
	if n := d.Len(); n > 100 || n < 40 {
		t.Errorf("%d entries", n)
	}
}
