package pgstore_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/authmount/auth/memstore"
	"github.com/authmount/auth/store"
)

// The database's arithmetic agrees with Rate.Apply for all draws: with repeated keys,
// rates that change, draws of nothing, and clocks that differ.
func TestTakeAgreesWithMemstore(t *testing.T) {
	s, m := open(t), memstore.New()
	rates := []store.Rate{{Burst: 5, Per: time.Minute}, {Burst: 1, Per: time.Minute}, {Burst: 7, Per: time.Second}, {Burst: 3, Per: time.Hour}, {}, {Burst: -1, Per: time.Hour}}
	costs := []int{0, 0, 1, 1, 1, 2, 5, 6, -1, -2, -7}
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // to be repeated, not to be secret
	at := now
	for i := range 1000 {
		var draws []store.Draw
		for range r.IntN(4) {
			draws = append(draws, store.Draw{Key: fmt.Sprint(r.IntN(4)), Rate: rates[r.IntN(len(rates))], Cost: costs[r.IntN(len(costs))]})
		}
		got, err := s.Take(t.Context(), draws, at)
		want, err2 := m.Take(t.Context(), draws, at)
		if err2 != nil {
			t.Fatal(err2)
		}
		if err != nil || got.Allowed != want.Allowed || got.RetryAfter != want.RetryAfter || len(got.Remaining) != len(want.Remaining) ||
			len(got.Remaining) > 0 && !reflect.DeepEqual(got.Remaining, want.Remaining) {
			t.Fatalf("seed %d, step %d: %+v: %+v, %v, want %+v", seed, i, draws, got, err, want)
		}
		at = at.Add(time.Duration(r.Int64N(int64(40*time.Second))) - 15*time.Second)
	}
}
