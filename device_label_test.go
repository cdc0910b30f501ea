package auth_test

import (
	"testing"

	"github.com/authmount/auth"
)

// The list of sessions says what people call each device, in words of ours only:
// nothing of what a client says of itself is among them.
func TestSessionsNameTheirDevices(t *testing.T) {
	const firefox, chrome = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36"
	for agent, want := range map[string]string{
		firefox:                                "Firefox on Linux",
		chrome:                                 "Chrome on Android",
		firefox + " call +1 555 0100 for help": "Firefox on Linux",
		"call +1 555 0100 for help":            "",
		"":                                     "",
	} {
		w := newWorld(t)
		w.signUp("ada@example.com")
		s := w.do("POST", "/login", credentials("ada@example.com", goodPassword), header{"User-Agent", agent}).want(200).session()
		wire := decodeAs[struct {
			Sessions []struct {
				Device  *string
				Current bool
			}
		}](w.do("GET", "/sessions", nil, bearer(s.AccessToken)).want(200))
		list, err := w.Sessions(t.Context(), auth.SessionsParams{UserID: s.User.ID})
		if err != nil || len(list) != 2 || len(wire.Sessions) != 2 {
			t.Fatalf("%d and %d sessions, %v", len(wire.Sessions), len(list), err)
		}
		for i := range list {
			got := list[i].Device
			if sent := wire.Sessions[i].Device; (sent == nil) != (got == "") || sent != nil && *sent != got {
				t.Errorf("%q: another name on the wire than %q", agent, got)
			}
			if wire.Sessions[i].Current && got != want {
				t.Errorf("%q is called %q, want %q", agent, got, want)
			}
		}
	}
}
