package pwpool

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
)

// ipv6 returns a caller at an IPv6 address.
func ipv6(prefix48, prefix56, prefix64 int) Caller {
	wide := fmt.Sprintf("%d", prefix48)
	middle := fmt.Sprintf("%s:%d", wide, prefix56)
	return Caller{Networks: []string{wide, middle, fmt.Sprintf("%s:%d", middle, prefix64)}}
}

func (c *crowd) refusedAt(who Caller) int { return c.refused[nameOf(who)] }

// A network that fills the queue through many narrower networks loses places to others at
// each level, and does not delay them.
func TestNetworksInNetworks(t *testing.T) {
	flood := func(i int) Caller { return ipv6(1, i/8, i) }
	for name, other := range map[string]Caller{
		"another network": by("192.0.2.1", ""), "another /48": ipv6(2, 0, 0), "another /56": ipv6(1, 99, 0),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCrowd(t, 1, 64)
				for i := range 200 {
					c.comes(t.Context(), flood(i))
				}
				if n := c.rejections(); n != 200-64-2 || c.p.everybody.all.waiting != 64 {
					t.Fatalf("%d refused, %d waiting", n, c.p.everybody.all.waiting)
				}
				c.comes(t.Context(), other)
				for i := range 200 {
					c.comes(t.Context(), flood(200+i)) // repeats do not displace the other one
				}
				turns := 2 + 1 // two are past the queue
				if name == "another /56" {
					turns = 60 // the 51 networks /56 take turns
				}
				c.finish(turns)
				if c.refusedAt(other) != 0 || !slices.Contains(c.turns, nameOf(other)) {
					t.Errorf("refused %d times, turns: %v", c.refusedAt(other), c.turns)
				}
				c.done()
			})
		})
	}
}

// A /64 with many callers does not crowd out another /64 of the same /56.
func TestClientsInNetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1, 8)
		for range 30 {
			c.comes(t.Context(), ipv6(1, 1, 1))
			c.comes(t.Context(), ipv6(1, 1, 2))
			c.comes(t.Context(), ipv6(1, 1, 3))
			c.comes(t.Context(), ipv6(1, 1, 4))
			c.comes(t.Context(), ipv6(1, 1, 5))
		}
		other := ipv6(1, 1, 9)
		c.comes(t.Context(), other)
		if c.refusedAt(other) != 0 {
			t.Error("the other one was refused")
		}
		c.done()
	})
}

// If all networks have the same number of waiting callers, each caller is as likely to
// lose its place as any other, also the new one.
func TestTiesAreRandom(t *testing.T) {
	const queue, rounds = 4, 400
	lost := map[string]int{}
	for range rounds {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, 1, queue)
			for i := range 2 + queue + 1 {
				c.comes(t.Context(), by(fmt.Sprint(i), "")) // two are past the queue
			}
			for name := range c.refused {
				lost[name]++
			}
			c.done()
		})
	}
	for i := range queue + 1 {
		name := fmt.Sprintf("%d/", 2+i)
		if n := lost[name]; n < rounds/(queue+1)/2 || n > rounds/(queue+1)*2 {
			t.Errorf("%s lost %d times of %d", name, n, rounds)
		}
	}
}

// Networks that repeat rejected requests at once lose ties, so they do not displace all
// callers that wait.
func TestRejectionsLoseTies(t *testing.T) {
	const queue, rounds = 4, 300
	kept := 0
	for range rounds {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, 1, queue)
			c.comes(t.Context(), by("a", ""))
			c.comes(t.Context(), by("b", "")) // these two are past the queue
			c.comes(t.Context(), by("home", ""))
			for i := range 400 {
				c.comes(t.Context(), by(fmt.Sprintf("flood %d", i%8), ""))
			}
			if c.refused["home/"] == 0 {
				kept++
			}
			c.done()
		})
	}
	if kept < rounds/10 {
		t.Errorf("only in %d rounds of %d the caller who waited kept its place", kept, rounds)
	}
}

// Rejections are forgotten after as many turns as the queue has places, also if there is
// always somebody who waits.
func TestRejectionsAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1, 4)
		for i := range 20 {
			c.comes(t.Context(), by(fmt.Sprint(i), ""))
		}
		if len(c.p.everybody.rejecting) == 0 {
			t.Fatal("nothing was rejected")
		}
		for i := range 4 {
			c.finish(1)
			c.comes(t.Context(), by(fmt.Sprint(20+i), ""))
		}
		if n := len(c.p.everybody.rejecting); n != 0 || c.p.everybody.all.waiting != 4 {
			t.Errorf("%d networks with rejections, %d waiting", n, c.p.everybody.all.waiting)
		}
		c.done()
	})
}

// Rejections count against the networks of the callers, not against the account: the
// owner of an account under attack is as likely to get a place as anybody else.
func TestRejectionsDoNotCountAgainstTheAccount(t *testing.T) {
	const rounds = 200
	admitted := 0
	for range rounds {
		synctest.Test(t, func(t *testing.T) {
			c := newCrowd(t, 1, 8)
			for i := range 40 {
				c.comes(t.Context(), by(fmt.Sprintf("flood %d", i%10), "victim"))
			}
			c.comes(t.Context(), by("home", "victim")) // the account has two places
			if c.refused["home/victim"] == 0 {
				admitted++
			}
			c.done()
		})
	}
	if admitted < rounds*2/3 {
		t.Errorf("the owner got a place in %d rounds of %d", admitted, rounds)
	}
}

// The networks with rejections are bounded.
func TestRememberedRejectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1, 2)
		for i := range 200 {
			c.comes(t.Context(), ipv6(i, i, i))
		}
		l := c.p.everybody
		if n := len(l.rejecting); n != 2*rememberedPerPlace || len(l.all.members) > n+2+2 {
			t.Errorf("%d remembered, %d networks", n, len(l.all.members))
		}
		c.done()
	})
}

// Callers on known devices have places of their own and alternate with all others. They
// take other places only if none of their own is free.
func TestKnownDevicesHaveAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t, 1, 8)
		for i := range 30 {
			c.comes(t.Context(), by(fmt.Sprint(i), ""))
		}
		known := func(i int) Caller {
			who := by(fmt.Sprintf("known %d", i), "")
			who.KnownDevice = true
			return who
		}
		for i := range 2 {
			c.comes(t.Context(), known(i))
		}
		for i := range 30 {
			c.comes(t.Context(), by(fmt.Sprint(30+i), ""))
		}
		c.finish(2 + 4)
		var turns []bool
		for _, turn := range c.turns[2:6] {
			turns = append(turns, turn == nameOf(known(0)) || turn == nameOf(known(1)))
		}
		if c.refusedAt(known(0)) != 0 || c.refusedAt(known(1)) != 0 || !slices.Equal(turns, []bool{true, false, true, false}) {
			t.Errorf("refused %v, turns %v", c.refused, c.turns)
		}
		c.finish(8 - 2) // nobody waits, one works
		for i := range 12 {
			c.comes(t.Context(), known(i))
		}
		if c.p.knownDevices.all.waiting != 2 || c.p.everybody.all.waiting != 8 {
			t.Errorf("%d and %d waiting", c.p.knownDevices.all.waiting, c.p.everybody.all.waiting)
		}
		c.done()
	})
}
