package sqlitestore_test

import (
	"os/exec"
	"testing"
)

// The tests of the module in testdata pass: this package beside the two usual drivers in one
// program, and on their handles. The module is no part of this one, so that importers never
// see those drivers. It needs cgo.
func TestOtherDrivers(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "test", "-C", "testdata/drivers", "-vet=off", "./...").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
