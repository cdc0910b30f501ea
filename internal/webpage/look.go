package webpage

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
)

// Look is the look of an application's pages. The zero value is the default look.
type Look struct {
	Brand   string // the application's name
	Logo    string // URL of the logo: a path of the same origin, https, or data:image/
	Accent  string // "#rrggbb"; default: blue
	Home    string // start page
	SignIn  string // sign-in page
	Account string // account page
	Factor  string // page of the second factor, which creates recovery codes
}

// Check returns an error for an invalid logo or colour.
func (l Look) Check() error {
	if l.Logo != "" {
		if _, err := l.images(); err != nil {
			return err
		}
	}
	if l.Accent != "" {
		if _, err := parseColor(l.Accent); err != nil {
			return err
		}
	}
	return nil
}

// images returns the policy's sources for images, including the logo.
func (l Look) images() (string, error) {
	u, err := url.Parse(l.Logo)
	switch {
	case err != nil:
	case l.Logo == "", strings.HasPrefix(l.Logo, "data:image/"):
		return "data:", nil
	case u.Host == "" && u.Scheme == "" && strings.HasPrefix(l.Logo, "/") && !strings.ContainsAny(l.Logo, "\\"):
		return "'self' data:", nil
	case u.Scheme == "https" && plainOrigin.MatchString("https://"+u.Host):
		return "https://" + u.Host + " data:", nil
	}
	return "", errors.New("the logo is neither a path of the same origin, nor an https URL, nor data:image/…")
}

// The backgrounds of the accent colour and the minimum contrast of text (WCAG 2.2, 1.4.3),
// with a small margin.
const (
	lightGround = "#f3f4f6"
	darkGround  = "#1f2228"
	darkInk     = "#14161a"
	contrastMin = 4.6
)

// CSS returns a style sheet that sets the accent colour, changed as little as needed to be
// readable on light and dark backgrounds.
func (l Look) CSS() string {
	c := l.Palette()
	if c == (Palette{}) {
		return ""
	}
	return fmt.Sprintf(":root { --accent: %s; --on-accent: %s }\n@media (prefers-color-scheme: dark) {\n  :root { --accent: %s; --on-accent: %s }\n}\n", c.Light, c.OnLight, c.Dark, c.OnDark)
}

// Palette is an accent colour for light and for dark backgrounds, each with the colour of
// text on it.
type Palette struct{ Light, OnLight, Dark, OnDark string }

// Palette returns the readable accent colours; the zero value without an accent.
func (l Look) Palette() Palette {
	c, err := parseColor(l.Accent)
	if err != nil {
		return Palette{}
	}
	return Palette{c.readableOn(lightGround, color{}).String(), "#fff", c.readableOn(darkGround, color{1, 1, 1}).String(), darkInk}
}

// MailLogo returns the absolute URL of the logo for mails. It returns "" if mail programs
// could not load it: they show no data URLs, and need https.
func (l Look) MailLogo(service *url.URL) string {
	at, err := url.Parse(l.Logo)
	if _, wrong := l.images(); err != nil || wrong != nil || l.Logo == "" || at.Scheme == "data" {
		return ""
	}
	if at = service.ResolveReference(at); at.Scheme != "https" {
		return ""
	}
	return at.String()
}

// color is red, green and blue, each from 0 to 1.
type color [3]float64

func parseColor(s string) (color, error) {
	hex, ok := strings.CutPrefix(s, "#")
	if len(hex) == 3 {
		hex = string([]byte{hex[0], hex[0], hex[1], hex[1], hex[2], hex[2]})
	}
	n, err := strconv.ParseUint(hex, 16, 32)
	if !ok || err != nil || len(hex) != 6 {
		return color{}, fmt.Errorf("the color %q is not of the form #rrggbb", s)
	}
	return color{float64(n>>16&255) / 255, float64(n>>8&255) / 255, float64(n&255) / 255}, nil
}

func (c color) String() string {
	return fmt.Sprintf("#%02x%02x%02x", int(math.Round(c[0]*255)), int(math.Round(c[1]*255)), int(math.Round(c[2]*255)))
}

// luminance returns the relative luminance (WCAG 2.2).
func (c color) luminance() float64 {
	part := func(v float64) float64 {
		if v <= 0.04045 {
			return v / 12.92
		}
		return math.Pow((v+0.055)/1.055, 2.4)
	}
	return 0.2126*part(c[0]) + 0.7152*part(c[1]) + 0.0722*part(c[2])
}

func contrast(a, b color) float64 {
	x, y := a.luminance(), b.luminance()
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// readableOn mixes the colour with another one until it is readable on a background.
func (c color) readableOn(ground string, with color) color {
	g, _ := parseColor(ground) // a constant
	const steps = 50
	for i := range steps {
		share := float64(i) / steps
		var mixed color
		for k := range c {
			mixed[k] = c[k]*(1-share) + with[k]*share
		}
		if contrast(mixed, g) >= contrastMin {
			return mixed
		}
	}
	return with
}

// Policy adds the logo's source to a page's policy.
func (l Look) Policy(policy string) (string, error) {
	images, err := l.images()
	return strings.Replace(policy, "img-src 'self' data:", "img-src 'self' "+strings.TrimPrefix(images, "'self' "), 1), err
}
