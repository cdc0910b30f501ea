package dashboard_test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// The types in the module's comments are right, in strict mode.
func TestModuleTypes(t *testing.T) {
	t.Parallel()
	tsc := filepath.Join("..", "internal", "axetest", "node_modules", "typescript", "bin", "tsc")
	out, err := exec.CommandContext(t.Context(), "node", tsc, "--noEmit", "--allowJs", "--checkJs", "--strict", "--target", "es2023", "--module", "es2022", "--lib", "es2023,dom,dom.iterable", filepath.Join("assets", "dashboard.js")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v (scripts/ensure-axe.sh installs TypeScript)\n%s", err, out)
	}
}
