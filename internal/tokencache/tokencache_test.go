package tokencache

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

func start() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func TestTokensEnd(t *testing.T) {
	now := start()
	for name, c := range map[string]struct {
		size       int
		put, until time.Time
		get        time.Time
		want       bool
	}{
		"at once":         {10, now, now.Add(time.Minute), now, true},
		"just before":     {10, now, now.Add(time.Minute), now.Add(time.Minute - 1), true},
		"at the end":      {10, now, now.Add(time.Minute), now.Add(time.Minute), false},
		"over before":     {10, now, now, now.Add(-time.Second), false},
		"smallest cache":  {1, now, now.Add(time.Minute), now, true},
		"no cache":        {0, now, now.Add(time.Minute), now, false},
		"less than none":  {-1, now, now.Add(time.Minute), now, false},
		"the zero moment": {10, now, time.Time{}, now, false},
	} {
		cache := New[string](c.size)
		cache.Put("token", "value", c.until, c.put)
		got, ok := cache.Get("token", c.get)
		if ok != c.want || (got == "value") != c.want {
			t.Errorf("%s: %q, %v", name, got, ok)
		}
		if got, ok := cache.Get("toke", c.get); ok || got != "" {
			t.Errorf("%s: another token has %q", name, got)
		}
	}
}

// The cache never exceeds its size, contains the newest tokens, and keeps requested ones.
func TestBounded(t *testing.T) {
	now := start()
	until := now.Add(time.Minute)
	const size = 10
	c := New[int](size)
	c.Put("wanted", -1, until, now)
	for i := range 1000 {
		c.Put(fmt.Sprint(i), i, until, now)
		if got, ok := c.Get("wanted", now); !ok || got != -1 {
			t.Fatalf("after %d others it is gone", i+1)
		}
		if n := len(c.younger) + len(c.older); n > size {
			t.Fatalf("%d tokens", n)
		}
		for j := max(0, i-2); j <= i; j++ {
			if got, ok := c.Get(fmt.Sprint(j), now); !ok || got != j {
				t.Fatalf("after %d, number %d: %d, %v", i, j, got, ok)
			}
		}
	}
	if _, ok := c.Get("0", now); ok {
		t.Error("the oldest is still there")
	}
}

// A new value replaces the older one in either generation.
func TestReplaced(t *testing.T) {
	now := start()
	c := New[int](2) // one token per generation
	c.Put("a", 1, now.Add(time.Minute), now)
	c.Put("b", 2, now.Add(time.Minute), now) // a is in the older generation
	c.Put("a", 3, now.Add(time.Hour), now)
	if got, ok := c.Get("a", now.Add(2*time.Minute)); !ok || got != 3 {
		t.Errorf("%d, %v", got, ok)
	}
}

func TestParallel(t *testing.T) {
	now := start()
	c := New[int](16)
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range 500 {
				n := (i*7 + worker) % 40
				if got, ok := c.Get(fmt.Sprint(n), now); ok && got != n {
					t.Errorf("%d has %d", n, got)
				}
				c.Put(fmt.Sprint(n), n, now.Add(time.Minute), now)
			}
		})
	}
	wg.Wait()
}

// A hit allocates no memory.
func TestHitAllocatesNothing(t *testing.T) {
	now := start()
	c := New[*int](16)
	c.Put("token", new(int), now.Add(time.Minute), now)
	if n := testing.AllocsPerRun(100, func() { c.Get("token", now) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
