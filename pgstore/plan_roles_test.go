package pgstore_test

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/authmount/auth/internal/pgtest"
)

// Reading the roles has a low estimated cost even if nobody has analysed the table or its
// revision, which are too small for autovacuum. A statement with the estimate of a full
// cross join is JIT-compiled first, which takes longer than all else.
func TestRolesAreReadWithoutCompiling(t *testing.T) {
	planner := &pgtest.Planner{}
	store := openTraced(t, planner)
	plans, err := planner.Explain(func() error { _, err := store.Roles(t.Context()); return err })
	if err != nil || len(plans) != 1 {
		t.Fatalf("%d statements, %v", len(plans), err)
	}
	var top, above string
	if err := store.Pool().QueryRow(t.Context(), "explain "+plans[0].SQL).Scan(&top); err != nil {
		t.Fatal(err)
	}
	if err := store.Pool().QueryRow(t.Context(), "select boot_val from pg_settings where name = 'jit_above_cost'").Scan(&above); err != nil {
		t.Fatal(err)
	}
	bound, err := strconv.ParseFloat(above, 64)
	if err != nil {
		t.Fatal(err)
	}
	cost := regexp.MustCompile(`\.\.([0-9.]+) `).FindStringSubmatch(top)
	if cost == nil {
		t.Fatal(top)
	}
	if total, err := strconv.ParseFloat(cost[1], 64); err != nil || total > bound/100 {
		t.Errorf("%s: %v, while %s has a statement compiled", top, err, above)
	}
}
