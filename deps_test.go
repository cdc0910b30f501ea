package auth_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestDependencies keeps the root package light: an importer pays only for what
// it uses.
func TestDependencies(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if .Module}}{{.Module.Path}} {{end}}{{.ImportPath}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	allowed := []string{
		"github.com/authmount/auth", "github.com/golang-jwt/jwt/v5", "github.com/google/uuid", "github.com/rs/cors",
		"github.com/pquerna/otp", "github.com/boombuler/barcode", "github.com/skip2/go-qrcode",
		"golang.org/x/crypto", "golang.org/x/net", "golang.org/x/sys", "golang.org/x/text",
	}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		module, pkg, ok := strings.Cut(line, " ")
		if ok && !slices.Contains(allowed, module) {
			t.Errorf("the root package drags in %s (%s)", module, pkg)
		}
		if module == "net/smtp" || (strings.HasPrefix(pkg, "github.com/authmount/auth/") && !strings.Contains(pkg, "/internal/")) {
			t.Errorf("the root package imports %s", line)
		}
	}
}
