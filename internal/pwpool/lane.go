package pwpool

import (
	"math/rand/v2"
	"slices"
)

// lane is one part of the queue. The pool's lock guards it.
type lane struct {
	all           *network
	places, share int            // most waiting callers; most of one client, and for one account
	accounts      map[string]int // number of waiting callers by account

	// Rejections make a network lose ties, so that repeating a request at once gains
	// nothing. They are forgotten when nobody waits, or after as many turns as the lane has
	// places.
	rejecting []*network // networks with rejections
	turns     int        // since the rejections were forgotten
}

// rememberedPerPlace bounds the networks with rejections, because a flood has any number
// of networks.
const rememberedPerPlace = 8

// network holds the callers of one network. Only a client has callers of its own; all
// others have members.
type network struct {
	name    string
	parent  *network // nil for the lane's root
	members map[string]*network
	order   []*network // members with waiting callers; the one served least recently first
	callers []*waiter  // the first to arrive first

	waiting, running int // callers in the queue and past it, with those of the members
	rejected         int // the same
}

// waiter is a caller in the queue.
type waiter struct {
	from     *network // a client
	account  string
	admitted chan error // receives nil when the caller may run
}

func newLane(places int) *lane {
	return &lane{all: &network{}, places: places, share: max(1, places/4), accounts: map[string]int{}}
}

// network returns the last of the networks, which contain each other.
func (l *lane) network(names []string) *network {
	if len(names) == 0 {
		names = []string{""}
	}
	n := l.all
	for _, name := range names {
		m := n.members[name]
		if m == nil {
			m = &network{name: name, parent: n}
			if n.members == nil {
				n.members = map[string]*network{}
			}
			n.members[name] = m
		}
		n = m
	}
	return n
}

// dropIdle removes a network without callers and rejections, and then those around it.
func (n *network) dropIdle() {
	for ; n.parent != nil && n.waiting == 0 && n.running == 0 && n.rejected == 0 && len(n.members) == 0; n = n.parent {
		delete(n.parent.members, n.name)
	}
}

// run lets a caller run.
func (w *waiter) run() {
	for n := w.from; n != nil; n = n.parent {
		n.running++
	}
	w.admitted <- nil
}

// join adds a caller. If there are too many now, one of them is rejected.
func (l *lane) join(w *waiter) {
	l.add(w)
	switch {
	case w.from.name != "" && w.from.waiting > l.share:
		l.reject(w)
	case w.account != "" && l.accounts[w.account] > l.share:
		l.reject(l.all.loser(func(other *waiter) bool { return other.account == w.account }))
	case l.all.waiting > l.places:
		l.reject(l.all.loser(func(*waiter) bool { return true }))
	}
}

func (l *lane) add(w *waiter) {
	w.from.callers = append(w.from.callers, w)
	for n := w.from; n != nil; n = n.parent {
		if n.waiting++; n.waiting == 1 && n.parent != nil {
			n.parent.order = append(n.parent.order, n)
		}
	}
	if w.account != "" {
		l.accounts[w.account]++
	}
}

// remove removes a caller from the queue.
func (l *lane) remove(w *waiter) {
	at := slices.Index(w.from.callers, w)
	w.from.callers = slices.Delete(w.from.callers, at, at+1)
	for n := w.from; n != nil; n = n.parent {
		if n.waiting--; n.waiting == 0 && n.parent != nil {
			at := slices.Index(n.parent.order, n)
			n.parent.order = slices.Delete(n.parent.order, at, at+1)
		}
	}
	if w.account != "" {
		if l.accounts[w.account]--; l.accounts[w.account] == 0 {
			delete(l.accounts, w.account)
		}
	}
	w.from.dropIdle()
	if l.all.waiting == 0 {
		l.forget()
	}
}

// count returns the number of waiting callers that compete.
func (n *network) count(competes func(*waiter) bool) (count int) {
	for _, m := range n.order {
		count += m.count(competes)
	}
	for _, w := range n.callers {
		if competes(w) {
			count++
		}
	}
	return count
}

// loser returns the caller to reject out of those that compete. At least one has to.
func (n *network) loser(competes func(*waiter) bool) *waiter {
	if len(n.order) == 0 {
		last := len(n.callers) - 1
		for ; !competes(n.callers[last]); last-- {
		}
		return n.callers[last]
	}
	var chosen *network
	most, weight := 1, 0
	for _, m := range n.order {
		count := m.count(competes)
		if count < most {
			continue
		}
		if count > most {
			most, weight = count, 0
		}
		own := m.tieWeight()
		if weight += own; rand.IntN(weight) < own { //nolint:gosec // chance, not a secret
			chosen = m
		}
	}
	return chosen.loser(competes)
}

// tieWeight is in proportion to the chance of losing a tie. It grows faster than a flood
// can repeat its requests: with a lower power, a caller that waits would lose its place to
// steady repetition.
func (n *network) tieWeight() int {
	w := 1 + min(n.rejected, 1000)
	return w * w * w
}

// reject removes a caller, and counts that against its networks.
func (l *lane) reject(w *waiter) {
	l.countRejection(w.from)
	l.remove(w)
	w.admitted <- ErrOverloaded
}

// countRejection counts against the wider networks first, because there are fewer of
// them to remember.
func (l *lane) countRejection(n *network) {
	if n == l.all {
		return
	}
	l.countRejection(n.parent)
	if n.rejected == 0 {
		if len(l.rejecting) >= rememberedPerPlace*l.places {
			return
		}
		l.rejecting = append(l.rejecting, n)
	}
	n.rejected++
}

func (l *lane) forget() {
	for _, n := range l.rejecting {
		n.rejected = 0
		n.dropIdle()
	}
	l.rejecting, l.turns = nil, 0
}

func (l *lane) cancel(w *waiter) bool {
	if !slices.Contains(w.from.callers, w) {
		return false
	}
	l.remove(w)
	return true
}

// next lets the next caller run. It returns false if nobody waits.
func (l *lane) next() bool {
	if l.all.waiting == 0 {
		return false
	}
	n := l.all
	for len(n.order) > 0 {
		at := n.nextMember()
		m := n.order[at]
		n.order = append(slices.Delete(n.order, at, at+1), m)
		n = m
	}
	w := n.callers[0]
	w.run()
	l.remove(w)
	if l.turns++; l.turns >= l.places {
		l.forget()
	}
	return true
}

// nextMember returns the place in order of the member that is served next.
func (n *network) nextMember() (best int) {
	for i, m := range n.order {
		if m.running < n.order[best].running {
			best = i
		}
		if n.order[best].running == 0 {
			break
		}
	}
	return best
}
