package authclient

import (
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Each option is refused by the constructors that do not support it, with its name, and
// every option has a row.
func TestOptionsSayWhomTheyAreFor(t *testing.T) {
	t.Parallel()
	all := []string{forVerifier, forClient, forAdmin}
	rows := map[string]struct {
		Option
		kinds []string
	}{
		"WithHTTPClient":     {WithHTTPClient(http.DefaultClient), all},
		"WithLogger":         {WithLogger(slog.Default()), all},
		"WithPlainHTTP":      {WithPlainHTTP(), all},
		"WithRetries":        {WithRetries(1), []string{forClient, forAdmin}},
		"WithAPIKey":         {WithAPIKey("pk_test"), []string{forClient, forVerifier}},
		"WithTokenStore":     {WithTokenStore(&MemoryStore{}), []string{forClient}},
		"WithTokenOrigins":   {WithTokenOrigins("https://api.example.com"), []string{forClient}},
		"WithDeviceID":       {WithDeviceID(strings.Repeat("d", 32)), []string{forClient}},
		"WithIssuer":         {WithIssuer("https://app.example.com/auth/v1"), []string{forVerifier}},
		"WithAudience":       {WithAudience("api"), []string{forVerifier}},
		"WithPlainTokenType": {WithPlainTokenType(), []string{forVerifier}},
		"WithRemember":       {WithRemember(10), []string{forVerifier}},
		"WithLateStart":      {WithLateStart(), []string{forVerifier}},
		"WithRevocations":    {WithRevocations(RevocationOptions{}), []string{forVerifier}},
		"WithSecretKey":      {WithSecretKey("sk_test_x"), []string{forVerifier}},
	}
	source, err := os.ReadFile("option.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^func (With\w+)\(`).FindAllStringSubmatch(string(source), -1) {
		if _, there := rows[m[1]]; !there {
			t.Errorf("whom is %s for?", m[1])
		}
	}
	for name, row := range rows {
		for _, kind := range all {
			_, err := newConfig(kind, "https://app.example.com", []Option{row.Option})
			takes := false
			for _, k := range row.kinds {
				takes = takes || k == kind
			}
			if refused := err != nil && strings.Contains(err.Error(), name+" is for "); refused == takes {
				t.Errorf("%s and %s: %v", kind, name, err)
			}
		}
	}
}
