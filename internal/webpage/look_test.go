package webpage

import (
	"fmt"
	"net/url"
	"regexp"
	"testing"
)

// Text in and on any accent color is readable in light and in dark (WCAG 2.2, 1.4.3).
func TestAccentIsReadable(t *testing.T) {
	pairs := regexp.MustCompile(`--accent: (#[0-9a-f]{6}); --on-accent: (#[0-9a-f]{3,6})`)
	for n := 0; n < 1<<24; n += 65793/3 + 1 {
		accent := fmt.Sprintf("#%06x", n)
		found := pairs.FindAllStringSubmatch(Look{Accent: accent}.CSS(), -1)
		if len(found) != 2 {
			t.Fatalf("%s: %v", accent, found)
		}
		for i, grounds := range [][]string{{"#ffffff", "#f3f4f6"}, {"#1f2228", "#14161a"}} {
			c, err := parseColor(found[i][1])
			on, onErr := parseColor(found[i][2])
			if err != nil || onErr != nil {
				t.Fatal(err, onErr)
			}
			if got := contrast(c, on); got < 4.5 {
				t.Errorf("%s: %s on %s has a contrast of %.2f", accent, on, c, got)
			}
			for _, ground := range grounds {
				g, _ := parseColor(ground)
				if got := contrast(c, g); got < 4.5 {
					t.Errorf("%s: %s on %s has a contrast of %.2f", accent, c, ground, got)
				}
			}
		}
	}
	if got := (Look{Accent: "#1f4fd8"}).CSS(); !regexp.MustCompile(`--accent: #1f4fd8`).MatchString(got) {
		t.Errorf("a colour that can be read is changed: %s", got)
	}
	if (Look{}).CSS() != "" {
		t.Error("without a colour there is nothing to set")
	}
}

// Mails only show a logo with an https URL.
func TestMailLogo(t *testing.T) {
	for _, c := range []struct{ service, logo, want string }{
		{"https://app.test/auth/v1", "", ""}, {"https://app.test/auth/v1", "/logo.svg", "https://app.test/logo.svg"}, {"http://app.test/auth/v1", "/logo.svg", ""},
		{"http://app.test/auth/v1", "https://a.example/x.png", "https://a.example/x.png"}, {"https://app.test/auth/v1", "data:image/png;base64,AA==", ""},
		{"https://app.test/auth/v1", "//evil.example/x", ""}, {"https://app.test/auth/v1", "javascript:x", ""}, {"https://app.test/auth/v1", `/\\evil.example/x`, ""},
	} {
		u, err := url.Parse(c.service)
		if err != nil {
			t.Fatal(err)
		}
		if got := (Look{Logo: c.logo}).MailLogo(u); got != c.want {
			t.Errorf("%s at %s: %q, want %q", c.logo, c.service, got, c.want)
		}
	}
}

func TestLookCheck(t *testing.T) {
	for _, l := range []Look{{Logo: "javascript:x"}, {Logo: "//evil.example/x"}, {Logo: `/\evil.example/x`}, {Logo: "http://a.example/x"}, {Logo: "data:text/html,x"}, {Logo: "https://a.example;x/"}, {Accent: "#12"}, {Accent: "123456"}, {Accent: "#12345g"}} {
		if l.Check() == nil {
			t.Errorf("%+v passes", l)
		}
	}
	for _, l := range []Look{{}, {Logo: "/logo.svg"}, {Logo: "https://a.example/x.png"}, {Logo: "data:image/png;base64,AA=="}, {Accent: "#abc"}, {Accent: "#A1b2C3"}} {
		if err := l.Check(); err != nil {
			t.Errorf("%+v: %v", l, err)
		}
	}
}

// Three digits are short for six.
func TestShortColors(t *testing.T) {
	t.Parallel()
	for short, long := range map[string]string{"#1bf": "#11bbff", "#A0c": "#aa00cc"} {
		if c, err := parseColor(short); err != nil || c.String() != long {
			t.Errorf("%s is %v, %v; want %s", short, c, err, long)
		}
	}
}
