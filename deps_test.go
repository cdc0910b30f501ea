package auth_test

import (
	"cmp"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rootModules are the modules that importing the root package costs. Each new
// one needs a reason.
var rootModules = []string{
	"github.com/boombuler/barcode",  // by pquerna/otp
	"github.com/coreos/go-oidc/v3",  // verifies ID tokens
	"github.com/go-jose/go-jose/v4", // by go-oidc; reads and writes key sets
	"github.com/golang-jwt/jwt/v5",
	"github.com/google/uuid",
	"github.com/pquerna/otp",
	"github.com/rs/cors",
	"github.com/skip2/go-qrcode",
	"golang.org/x/crypto",
	"golang.org/x/net",
	"golang.org/x/oauth2",
	"golang.org/x/sys", // by x/crypto
	"golang.org/x/text",
}

// TestDependencies keeps the root package light: an importer pays only for what
// it uses, and imports point one way.
func TestDependencies(t *testing.T) {
	const self = "github.com/authmount/auth"
	modules := map[string]string{} // module to one of its packages
	for pkg, module := range dependencies(t, ".") {
		switch {
		case pkg == "net/smtp":
			t.Error("the root package imports net/smtp, which belongs to smtpmail")
		case module == self:
			if !slices.Contains([]string{self, self + "/provider", self + "/store"}, pkg) && !strings.HasPrefix(pkg, self+"/internal/") {
				t.Errorf("the root package imports %s; subpackages import the root, never the other way", pkg)
			}
		case module != "":
			modules[module] = cmp.Or(modules[module], pkg)
		}
	}
	for module, pkg := range modules {
		if !slices.Contains(rootModules, module) {
			t.Errorf("new: the root package drags in %s (for %s)", module, pkg)
		}
	}
	for _, module := range rootModules {
		if modules[module] == "" {
			t.Errorf("gone: the root package does not need %s any more; strike it off rootModules", module)
		}
	}
}

// TestStoresDoNotImportTheRoot: a store needs the contract, and nothing of the flows.
func TestStoresDoNotImportTheRoot(t *testing.T) {
	for _, dir := range []string{"./store", "./memstore", "./pgstore", "./storetest", "./examples/store"} {
		if _, imported := dependencies(t, dir)["github.com/authmount/auth"]; imported {
			t.Errorf("%s imports the root", dir)
		}
	}
}

// dependencies maps each package that a folder needs to its module, which
// is "" in the standard library. One platform is named, because what is needed
// differs between them.
func dependencies(t *testing.T, dir string) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{.ImportPath}} {{with .Module}}{{.Path}}{{end}}", dir)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := map[string]string{}
	for line := range strings.Lines(string(out)) {
		pkg, module, _ := strings.Cut(strings.TrimSpace(line), " ")
		deps[pkg] = module
	}
	if len(deps) < 50 {
		t.Fatalf("go list knows only %d packages", len(deps))
	}
	return deps
}
