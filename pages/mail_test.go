package pages_test

import (
	"strings"
	"testing"

	"github.com/authmount/auth"
	"github.com/authmount/auth/internal/webpage"
	"github.com/authmount/auth/pages"
)

// Mails have the look of the pages in both themes, and the default look without pages.
func TestMailsLookLikePages(t *testing.T) {
	for name, c := range map[string]struct {
		o    pages.Options
		want []string
		not  string
	}{
		"none":    {pages.Options{}, []string{"background:#1f4fd8;color:#ffffff", "background: #8ab4ff !important; color: #0b1a33"}, "<img"},
		"colour":  {pages.Options{Accent: "#0a7d5a"}, []string{"background:#0a7d5a;color:#fff", "background: " + webpage.Look{Accent: "#0a7d5a"}.Palette().Dark}, "#1f4fd8"},
		"logo":    {pages.Options{Logo: "/logo.svg"}, []string{`<img src="https://app.test/logo.svg" alt=""`}, "none"},
		"https":   {pages.Options{Logo: "https://cdn.example/logo.png?v=1&w=2"}, []string{`<img src="https://cdn.example/logo.png?v=1&amp;w=2" alt=""`}, "none"},
		"as data": {pages.Options{Logo: "data:image/png;base64,AA=="}, nil, "<img"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, c.o, auth.WithBaseURL("https://app.test/auth/v1"))
			if err := s.SendPasswordReset(t.Context(), auth.SendPasswordResetParams{Email: s.LoginAs(t, "ada@example.com").User.Email}); err != nil {
				t.Fatal(err)
			}
			m := s.Mail(t, "ada@example.com", auth.KindResetPassword)
			for _, want := range c.want {
				if !strings.Contains(m.HTML, want) {
					t.Errorf("it has no %s:\n%s", want, m.HTML)
				}
			}
			if strings.Contains(m.HTML, c.not) && c.not != "none" {
				t.Errorf("it has %s", c.not)
			}
		})
	}
}
