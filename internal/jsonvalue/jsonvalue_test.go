package jsonvalue

import "testing"

func TestSame(t *testing.T) {
	none := make(chan int)
	for _, c := range []struct {
		a, b any
		want bool
	}{
		{1, 1.0, true}, {"1", 1, false}, {nil, nil, true}, {nil, false, false}, {map[string]any{"a": 1, "b": 2}, map[string]int{"b": 2, "a": 1}, true},
		{[]int{1, 2}, []int{2, 1}, false}, {none, none, false}, {none, 1, false}, {1, none, false}, {none, nil, false}, {nil, none, false},
	} {
		if got := Same(c.a, c.b); got != c.want {
			t.Errorf("%v and %v: %t", c.a, c.b, got)
		}
	}
}
