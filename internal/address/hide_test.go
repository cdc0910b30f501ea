package address_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/authmount/auth/internal/address"
)

// The error's meaning remains and its recipient is masked.
func TestHide(t *testing.T) {
	for name, c := range map[string]struct{ text, to, secret string }{
		"the address":        {"550 <ada@example.com> unknown", "ada@example.com", "ada@example.com"},
		"in another case":    {"550 ADA@Example.COM unknown", "ada@example.com", "ada@example"},
		"another address":    {"551 try eve.x@inner.example.org", "ada@example.com", "eve.x@"},
		"a number":           {"21211: +4930123456 is no number", "+4930123456", "30123456"},
		"a number in a path": {"GET /numbers/%2B4930123456?To=4930123456", "+4930123456", "30123456"},
	} {
		t.Run(name, func(t *testing.T) {
			err := address.Hide(fmt.Errorf("%s: %w", c.text, context.Canceled), c.to)
			if strings.Contains(strings.ToLower(err.Error()), c.secret) || !strings.Contains(err.Error(), "•••") {
				t.Errorf("%v", err)
			}
			if !errors.Is(err, context.Canceled) || errors.Unwrap(err) != nil {
				t.Errorf("%#v", err)
			}
			if again := address.Hide(err, c.to); again.Error() != err.Error() {
				t.Errorf("hidden twice: %v", again)
			}
		})
	}
	if address.Hide(nil, "ada@example.com") != nil {
		t.Error("an error out of nothing")
	}
	if got := address.HideIn("connection refused to 192.0.2.1:25", "ada@example.com"); got != "connection refused to 192.0.2.1:25" {
		t.Errorf("%q", got)
	}
}
