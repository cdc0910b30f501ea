package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/authmount/auth/internal/host"
	"github.com/authmount/auth/internal/outbox"
	"github.com/authmount/auth/internal/visible"
)

// Default wraps an option whose settings operators may change while the service runs. The
// values of the option are then initial values. Outside of Default the same option locks
// them.
//
//	auth.Default(auth.WithSettings(auth.Settings{SignUp: auth.Off})),
//	auth.Default(auth.WithRedirectURLs("https://app.example.com/*")), // operators can add others
//
// It takes WithSettings, WithPasswords (MinLength and Breach), WithSessions (IdleTimeout
// and Lifetime, which operators can only shorten), WithMail (AppName), WithRedirectURLs
// and WithCORS (operators can add to their lists). Settings that no option sets can be
// changed too, except these two lists. See docs/settings.md.
func Default(o Option) Option {
	return func(c *config) {
		outer := c.wrapped
		c.wrapped, c.settable = true, false
		if o != nil {
			o(c)
		}
		if c.wrapped = outer; !c.settable {
			c.fail("Default", errors.New("takes only "+strings.Join(settingOptions(), ", ")+": other options have no settings that can be changed"))
		}
	}
}

// settingOptions are the names of the options that Default takes.
func settingOptions() (names []string) {
	for _, d := range declaredSettings {
		if !slices.Contains(names, d.setBy()) {
			names = append(names, d.setBy())
		}
	}
	return names
}

// recordOption records that an option sets settings, and reports whether it is within
// Default.
func (c *config) recordOption(option string) (open bool) {
	if c.open == nil {
		c.open = map[string]bool{}
	}
	c.settable = true
	c.open[option] = c.wrapped
	return c.wrapped
}

// recordAdditiveOption is recordOption for an option whose calls add up.
func (c *config) recordAdditiveOption(option string) {
	was := c.open[option]
	c.open[option] = c.recordOption(option) || was
}

// setBy is the name of the option that sets d.
func (d *setting) setBy() string {
	if d.option == "" {
		return "WithSettings"
	}
	return d.option
}

// kind is the type of d's values.
func (d *setting) kind() host.SettingKind {
	switch d.at(&Settings{}).(type) {
	case *Switch:
		return host.SettingSwitch
	case *int:
		return host.SettingNumber
	case *time.Duration:
		return host.SettingSeconds
	case *[]string:
		return host.SettingList
	case *string:
		return host.SettingText
	}
	return host.SettingTexts // map[string]string
}

// describe is the description of d with its unit and minimum.
func (d *setting) describe() string {
	switch d.kind() {
	case host.SettingSeconds:
		return fmt.Sprintf("%s In seconds, at least %d.", d.description, d.min)
	case host.SettingNumber:
		return fmt.Sprintf("%s At least %d.", d.description, d.min)
	}
	return d.description
}

func (d *setting) unset(s *Settings) bool { return reflect.ValueOf(d.at(s)).Elem().IsZero() }

func (d *setting) copy(to, from *Settings) {
	switch p := d.at(to).(type) {
	case *[]string:
		*p = slices.Clone(*d.at(from).(*[]string))
	case *map[string]string:
		*p = maps.Clone(*d.at(from).(*map[string]string))
	default:
		reflect.ValueOf(p).Elem().Set(reflect.ValueOf(d.at(from)).Elem())
	}
}

// value is the value of d as the wire and the store have it.
func (d *setting) value(s *Settings) any {
	switch p := d.at(s).(type) {
	case *Switch:
		return p.On()
	case *time.Duration:
		return int64(*p / time.Second)
	case *[]string:
		return append([]string{}, *p...)
	case *map[string]string:
		if *p == nil {
			return map[string]string{}
		}
		return maps.Clone(*p)
	default:
		return reflect.ValueOf(p).Elem().Interface()
	}
}

// read is the reverse of value.
func (d *setting) read(to *Settings, raw json.RawMessage) error {
	parse := func(v any, what string) error {
		if err := json.Unmarshal(raw, v); err != nil || string(raw) == "null" {
			return errors.New("has to be " + what)
		}
		return nil
	}
	switch p := d.at(to).(type) {
	case *Switch:
		var on bool
		err := parse(&on, "true or false")
		if *p = Off; on {
			*p = On
		}
		return err
	case *int:
		return parse(p, "a number")
	case *time.Duration:
		var seconds uint32 // more would not fit a Duration
		err := parse(&seconds, "a number of seconds")
		*p = time.Duration(seconds) * time.Second
		return err
	case *[]string:
		var list []string
		err := parse(&list, "a list of texts")
		*p = append([]string{}, list...)
		return err
	case *string:
		return parse(p, "a text")
	case *map[string]string:
		*p = map[string]string{}
		return parse(p, "an object of texts")
	}
	return fmt.Errorf("auth: the type of the setting %s is unknown", d.name)
}

// maxListSetting is the maximum of entries of a list.
const maxListSetting = 50

// maxEntries is the maximum of entries of d, or 0.
func (d *setting) maxEntries() int {
	switch d.kind() {
	case host.SettingList:
		return maxListSetting
	case host.SettingTexts:
		return outbox.MaxTexts
	}
	return 0
}

// check checks a value, given the settings without stored values.
func (d *setting) check(c *config, base, s *Settings) error {
	switch p := d.at(s).(type) {
	case *Switch:
		if *p > Off {
			return fmt.Errorf("%s is neither On nor Off", d.name)
		}
	case *int:
		return d.within(c, base, int64(*p), "")
	case *time.Duration:
		return d.within(c, base, int64(*p/time.Second), " seconds")
	case *[]string:
		if len(*p) > maxListSetting {
			return fmt.Errorf("has more than %d entries", maxListSetting)
		}
		for _, entry := range *p {
			if err := d.valid(entry); err != nil {
				return err
			}
		}
	case *string:
		return d.valid(*p)
	case *map[string]string:
		return outbox.CheckTexts(*p)
	}
	return nil
}

func (d *setting) within(c *config, base *Settings, n int64, unit string) error {
	if n < d.min {
		return fmt.Errorf("has to be at least %d%s", d.min, unit)
	}
	if d.max != nil {
		if most := d.max(c, base); n > most {
			return fmt.Errorf("has to be at most %d%s", most, unit)
		}
	}
	return nil
}

func checkRoleName(role string) error {
	if role == "" || len(role) > 64 || visible.Line(role) != role {
		return fmt.Errorf("%.64q is not a role's name", role)
	}
	return nil
}

func checkSenderName(name string) error {
	if name == "" || outbox.SafeName(name) != name {
		return errors.New("has to be a name of up to 60 letters, digits and spaces, and not an address")
	}
	return nil
}

// checkStoredOrigin is checkOrigin with the stricter rules for operators: they cannot
// allow every origin, and http only on loopback hosts.
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

// The sources of a setting's value.
const (
	fromOption  = "option"
	fromStore   = "store"
	fromDefault = "default"
)

// optionSettings are the settings of the options.
type optionSettings struct {
	locked, open Settings // outside of Default and within it
	base         Settings // every field: locked, open or default
}

// newOptionSettings collects the settings of all options, and clears them there, because
// flows have to read [Auth.Settings].
func (c *config) newOptionSettings() optionSettings {
	o := optionSettings{locked: c.settings, open: c.openSettings}
	for _, d := range declaredSettings {
		if d.take == nil {
			continue
		}
		if c.open[d.option] {
			d.take(c, &o.open)
		} else {
			d.take(c, &o.locked)
		}
	}
	o.base = defaultSettings(c)
	for _, d := range declaredSettings {
		for _, layer := range []*Settings{&o.open, &o.locked} {
			if d.unset(layer) {
				continue
			}
			if d.option == "" { // other options check their own values
				if err := d.check(c, &o.base, layer); err != nil {
					c.fail(d.setBy(), err)
				}
			}
			d.copy(&o.base, layer)
		}
	}
	return o
}

// defaultSettings are the settings without options and stored values.
func defaultSettings(c *config) (s Settings) {
	for _, d := range declaredSettings {
		if d.def != nil {
			reflect.ValueOf(d.at(&s)).Elem().Set(reflect.ValueOf(d.def(c)))
		}
	}
	return s
}

// lockedBy is the reason why a setting cannot be stored, or "".
func (o *optionSettings) lockedBy(c *config, d *setting) string {
	if d.closed != nil {
		if reason := d.closed(c); reason != "" {
			return reason
		}
	}
	if !d.unset(&o.locked) {
		return "is set by the application, with " + d.setBy()
	}
	return ""
}

// document is the stored form of the settings: values as on the wire, by name. It may
// have names of a newer version.
type document map[string]json.RawMessage

func parseDocument(b []byte) (document, error) {
	d := document{}
	if len(b) == 0 {
		return d, nil
	}
	if err := json.Unmarshal(b, &d); err != nil {
		return nil, fmt.Errorf("auth: the settings in the store: %w", err)
	}
	return d, nil
}

// settle merges the options and a stored document. It is the only function that does.
// Stored values that are locked or invalid are ignored; faults has the reasons, by name.
func (o *optionSettings) settle(c *config, stored document) (s Settings, faults map[string]string) {
	s, faults = o.base, map[string]string{}
	known := map[string]bool{}
	for i := range declaredSettings {
		d := &declaredSettings[i]
		known[d.name] = true
		if raw, ok := stored[d.name]; ok {
			if err := o.merge(c, d, &s, raw); err != nil {
				faults[d.name] = err.Error()
			}
		}
	}
	for name := range stored {
		if !known[name] {
			faults[name] = "is no setting"
		}
	}
	return s, faults
}

// merge puts the stored value of one setting into s, if it is open and valid.
func (o *optionSettings) merge(c *config, d *setting, s *Settings, raw json.RawMessage) error {
	if reason := o.lockedBy(c, d); reason != "" {
		return errors.New(reason)
	}
	var v Settings
	if err := d.read(&v, raw); err != nil {
		return err
	}
	if err := d.check(c, &o.base, &v); err != nil {
		return err
	}
	d.copy(s, &v)
	return nil
}

const noFactorKind = "a second factor is required while every kind of it (totp_enabled, passkey_enabled) is off: a user without one could never sign in"

// hasFactorKind reports whether a second factor of some kind can be set up.
func (s *Settings) hasFactorKind(c *config) bool {
	return s.TOTP.On() || c.passkeys != nil && s.Passkey.On()
}

// lacksFactorKind reports whether a second factor is required and nobody can set one up.
func (s *Settings) lacksFactorKind(c *config) bool {
	return !s.hasFactorKind(c) && (s.MFARequired.On() || len(s.MFARequiredFor) > 0 || c.mfa.RequiredFor != nil)
}

// source is the source of a setting's value, given a stored document and its faults.
func (o *optionSettings) source(d *setting, stored document, faults map[string]string) string {
	_, ok := stored[d.name]
	switch {
	case ok && faults[d.name] == "":
		return fromStore
	case !d.unset(&o.locked) || !d.unset(&o.open):
		return fromOption
	}
	return fromDefault
}

// edit applies changes to a stored document: values by name; null removes the stored
// value. Faults of values that the changes do not name are no obstacle. Errors:
// CodeValidationFailed, which names every fault.
func (o *optionSettings) edit(c *config, stored, changes document) (document, error) {
	next := maps.Clone(stored)
	faults := map[string]string{}
	for name, raw := range changes {
		if next[name] = raw; string(raw) == "null" {
			delete(next, name)
		}
		if !slices.ContainsFunc(declaredSettings, func(d setting) bool { return d.name == name }) {
			faults[name] = "is no setting"
		}
	}
	after, all := o.settle(c, next)
	if before, _ := o.settle(c, stored); !before.lacksFactorKind(c) && after.lacksFactorKind(c) {
		for _, name := range []string{"passkey_enabled", "totp_enabled", "mfa_required", "mfa_required_for"} {
			all[name] = noFactorKind
		}
	}
	for name, fault := range all {
		if _, changed := changes[name]; changed {
			faults[name] = fault
		}
	}
	if len(faults) > 0 {
		e := fail(CodeValidationFailed, nil)
		e.Fields = faults
		return nil, e
	}
	return next, nil
}
