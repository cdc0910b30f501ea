package pages_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/pages"
)

// Fields have the attributes that password managers and browsers use.
func TestFieldsSayWhatTheyAreFor(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, "(field .") {
				continue
			}
			n++
			if !strings.Contains(line, `"autocomplete"`) {
				t.Errorf("%s has no autocomplete: %s", file, line)
			}
		}
	}
	if n < 10 {
		t.Errorf("%d fields", n)
	}
}

// The sign-in field asks for a phone number only if it is a sign-in method.
func TestSignInFieldNamesWhatIsOn(t *testing.T) {
	t.Parallel()
	for label, phones := range map[string]auth.Switch{"Email address": auth.Off, "Email address or phone number": auth.On} {
		b := newSite(t, pages.Options{}, auth.WithSettings(auth.Settings{Phone: phones})).browser(t)
		page := b.open("/account/sign-in")
		kind := "email"
		if phones.On() {
			kind = "text"
		}
		if got := attr(page.input("login"), "type"); got != kind || !strings.Contains(page.text(), label) {
			t.Errorf("%v: a field of type %q in %q", phones, got, page.text())
		}
	}
}
