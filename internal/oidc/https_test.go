package oidc

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// An https issuer must not list http endpoints, not even on loopback: an attacker at the
// provider could send secrets to any local process.
func TestDiscoveryNeedsHTTPS(t *testing.T) {
	var change map[string]any
	srv := httptest.NewTLSServer(nil)
	t.Cleanup(srv.Close)
	srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		doc := good(srv.URL)
		maps.Copy(doc, change)
		_ = json.NewEncoder(w).Encode(doc)
	})
	for name, want := range map[string]string{
		"issuer": "", "authorization_endpoint": "authorization_endpoint is not https", "token_endpoint": "token_endpoint is not https",
		"userinfo_endpoint": "userinfo_endpoint is not https", "jwks_uri": "jwks_uri is not https",
	} {
		change = map[string]any{name: "http://127.0.0.1:8080/x"}
		if want == "" {
			change = nil
		}
		_, err := NewDiscovery(srv.Client(), srv.URL, newClock().now, time.Minute).Document(t.Context())
		if (err == nil) != (want == "") || (err != nil && err.Error() != "discovery: "+want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
