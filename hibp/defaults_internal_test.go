package hibp

import (
	"net/http"
	"testing"
	"time"
)

// The documented defaults and options.
func TestDefaults(t *testing.T) {
	c := New()
	if c.url != "https://api.pwnedpasswords.com" || c.timeout != 2*time.Second || c.minCount != 1 || c.client == nil || c.client == http.DefaultClient {
		t.Errorf("%+v", c)
	}
	own := &http.Client{}
	c = New(WithURL("https://hibp.test/"), WithTimeout(time.Minute), WithMinCount(7), WithHTTPClient(own))
	if c.url != "https://hibp.test" || c.timeout != time.Minute || c.minCount != 7 || c.client != own {
		t.Errorf("with options: %+v", c)
	}
}
