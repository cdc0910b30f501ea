package auth

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/internal/redirect"
	"github.com/authmount/auth/internal/visible"
)

// settingField is one field of Settings: what it is called in the store and on the
// wire, which option says it, and what may be said.
type settingField struct {
	name   string
	option string

	unset func(*Settings) bool
	copy  func(to, from *Settings)
	value func(*Settings) any // as the wire has it
	read  func(to *Settings, raw json.RawMessage) error

	check  func(c *config, s *Settings) error       // of options and store alike; nil: any value will do
	bound  func(c *config, base, s *Settings) error // besides, of the store: what it may say, given what there is without it
	closed func(c *config) string                   // why the store may say nothing, or ""
}

// settingFields is every field of Settings.
func settingFields() []settingField {
	return []settingField{
		switchField("enabled", func(s *Settings) *Switch { return &s.Enabled }),
		switchField("signup_enabled", func(s *Settings) *Switch { return &s.SignUp }),
		switchField("email_confirmation_required", func(s *Settings) *Switch { return &s.RequireConfirmation }),
		switchField("password_enabled", func(s *Settings) *Switch { return &s.Password }),
		switchField("magic_link_enabled", func(s *Settings) *Switch { return &s.MagicLink }),
		switchField("phone_enabled", func(s *Settings) *Switch { return &s.Phone }),
		switchField("oauth_enabled", func(s *Settings) *Switch { return &s.OAuth }),
		switchField("totp_enabled", func(s *Settings) *Switch { return &s.TOTP }),
		switchField("mfa_required", func(s *Settings) *Switch { return &s.MFARequired }).given(needsFactors),
		listField("mfa_required_for", func(s *Settings) *[]string { return &s.MFARequiredFor }, checkRoleName).given(needsFactors),
		switchField("account_deletion", func(s *Settings) *Switch { return &s.AccountDeletion }),
		switchField("auto_linking", func(s *Settings) *Switch { return &s.AutoLinking }),
		{
			name: "password_min_length", option: "WithPasswords",
			unset: func(s *Settings) bool { return s.PasswordMinLength == 0 },
			copy:  func(to, from *Settings) { to.PasswordMinLength = from.PasswordMinLength },
			value: func(s *Settings) any { return s.PasswordMinLength },
			read: func(to *Settings, raw json.RawMessage) error {
				return readSetting(raw, &to.PasswordMinLength, "a number")
			},
			check: func(c *config, s *Settings) error {
				return checkMinLength(s.PasswordMinLength, cmp.Or(c.passwords.MaxLength, 256))
			},
		},
		switchField("password_breach_check", func(s *Settings) *Switch { return &s.BreachCheck }).of("WithPasswords").given(func(c *config) string {
			return closedUnless(c.passwords.Breach != nil, "needs a checker: PasswordOptions.Breach")
		}),
		lifeField("session_idle_timeout", func(s *Settings) *time.Duration { return &s.IdleTimeout }),
		lifeField("session_lifetime", func(s *Settings) *time.Duration { return &s.Lifetime }),
		listField("redirect_urls", func(s *Settings) *[]string { return &s.RedirectURLs }, func(u string) error {
			_, err := redirect.ParsePattern(u)
			return err
		}).of("WithRedirectURLs").given(func(c *config) string {
			return closedUnless(c.open["WithRedirectURLs"], "can be added only where the option is open: auth.Default(auth.WithRedirectURLs(…))")
		}),
		listField("cors_origins", func(s *Settings) *[]string { return &s.CORSOrigins }, checkStoredOrigin).of("WithCORS").given(func(c *config) string {
			return closedUnless(c.open["WithCORS"], "can be added only where the option is open: auth.Default(auth.WithCORS(…))")
		}),
		{
			name: "sender_name", option: "WithMail",
			unset: func(s *Settings) bool { return s.SenderName == "" },
			copy:  func(to, from *Settings) { to.SenderName = from.SenderName },
			value: func(s *Settings) any { return s.SenderName },
			read:  func(to *Settings, raw json.RawMessage) error { return readSetting(raw, &to.SenderName, "a text") },
			bound: func(_ *config, _, s *Settings) error { return checkSenderName(s.SenderName) },
		},
		{
			name: "texts", option: "WithSettings",
			unset: func(s *Settings) bool { return s.Texts == nil },
			copy:  func(to, from *Settings) { to.Texts = maps.Clone(from.Texts) },
			value: func(s *Settings) any { return orEmptyTexts(s.Texts) },
			read: func(to *Settings, raw json.RawMessage) error {
				err := readSetting(raw, &to.Texts, "an object of texts")
				to.Texts = orEmptyTexts(to.Texts)
				return err
			},
			check: func(_ *config, s *Settings) error { return outbox.CheckTexts(s.Texts) },
		},
	}
}

func switchField(name string, at func(*Settings) *Switch) settingField {
	return settingField{
		name: name, option: "WithSettings",
		unset: func(s *Settings) bool { return *at(s) == 0 },
		copy:  func(to, from *Settings) { *at(to) = *at(from) },
		value: func(s *Settings) any { return at(s).On() },
		read: func(to *Settings, raw json.RawMessage) error {
			var on bool
			err := readSetting(raw, &on, "true or false")
			if *at(to) = Off; on {
				*at(to) = On
			}
			return err
		},
		check: func(_ *config, s *Settings) error {
			if *at(s) > Off {
				return fmt.Errorf("%s is neither On nor Off", name)
			}
			return nil
		},
	}
}

// leastLife is the shortest that the store may make sessions: with less, nobody would
// come to undo it.
const leastLife = 5 * time.Minute

// lifeField is a time that the store may only shorten. Zero is for ever.
func lifeField(name string, at func(*Settings) *time.Duration) settingField {
	return settingField{
		name: name, option: "WithSessions",
		unset: func(s *Settings) bool { return *at(s) == 0 },
		copy:  func(to, from *Settings) { *at(to) = *at(from) },
		value: func(s *Settings) any { return int64(*at(s) / time.Second) },
		read: func(to *Settings, raw json.RawMessage) error {
			var seconds uint32 // more would not fit a time
			err := readSetting(raw, &seconds, "a number of seconds")
			*at(to) = time.Duration(seconds) * time.Second
			return err
		},
		bound: func(_ *config, base, s *Settings) error {
			switch most := *at(base); {
			case *at(s) < leastLife:
				return fmt.Errorf("has to be at least %d seconds", leastLife/time.Second)
			case most > 0 && *at(s) > most:
				return fmt.Errorf("can only be shortened, below %d seconds", most/time.Second)
			}
			return nil
		},
	}
}

// maxSettingList is how many entries a list has at most.
const maxSettingList = 50

func listField(name string, at func(*Settings) *[]string, check func(string) error) settingField {
	return settingField{
		name: name, option: "WithSettings",
		unset: func(s *Settings) bool { return *at(s) == nil },
		copy:  func(to, from *Settings) { *at(to) = slices.Clone(*at(from)) },
		value: func(s *Settings) any { return append([]string{}, *at(s)...) },
		read: func(to *Settings, raw json.RawMessage) error {
			var list []string
			err := readSetting(raw, &list, "a list of texts")
			*at(to) = append([]string{}, list...)
			return err
		},
		check: func(_ *config, s *Settings) error {
			if len(*at(s)) > maxSettingList {
				return fmt.Errorf("has more than %d entries", maxSettingList)
			}
			for _, entry := range *at(s) {
				if err := check(entry); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func (f settingField) of(option string) settingField {
	f.option = option
	return f
}

func (f settingField) given(closed func(*config) string) settingField {
	f.closed = closed
	return f
}

func closedUnless(open bool, why string) string {
	if open {
		return ""
	}
	return why
}

func needsFactors(c *config) string {
	return closedUnless(c.keepsFactors, "needs a store that keeps second factors (FactorStore)")
}

func readSetting(raw json.RawMessage, to any, what string) error {
	if err := json.Unmarshal(raw, to); err != nil || string(raw) == "null" {
		return errors.New("has to be " + what)
	}
	return nil
}

func checkRoleName(role string) error {
	if role == "" || len(role) > 64 || visible.Line(role) != role {
		return fmt.Errorf("%.64q is no name of a role", role)
	}
	return nil
}

func checkSenderName(name string) error {
	if name == "" || outbox.SafeName(name) != name {
		return errors.New("has to be a name of up to 60 letters, digits and spaces, and no address")
	}
	return nil
}

// checkStoredOrigin is checkOrigin, and more: that any origin may call, only code can
// say, and http is for the developer's own machine.
func checkStoredOrigin(o string) error {
	if err := checkOrigin(o); err != nil {
		return err
	}
	scheme, _, _ := strings.Cut(o, "://")
	u, err := url.Parse(o)
	if err != nil || o == "*" || scheme != "https" && (scheme != "http" || !isLoopbackHost(u.Hostname())) {
		return fmt.Errorf("%.64q is not an https origin", o)
	}
	return http.NewCrossOriginProtection().AddTrustedOrigin(o)
}

func orEmptyTexts(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return maps.Clone(m)
}
