package auth

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Default wraps an option whose values are to be where the service begins, and no
// more: those who may write settings can change them while it runs. What the same
// option says outside of it stays locked.
//
//	auth.Default(auth.WithSettings(auth.Settings{SignUp: auth.Off})),
//	auth.Default(auth.WithRedirectURLs("https://app.example.com/*")), // and others can be added
//
// It takes WithSettings, WithPasswords (MinLength and Breach), WithSessions
// (IdleTimeout and Lifetime, which can only be shortened), WithMail (AppName),
// WithRedirectURLs and WithCORS (to whose lists more can be added). What no option
// says can be changed, too, but for the lists. See docs/settings.md.
func Default(o Option) Option {
	return func(c *config) {
		outer := c.wrapped
		c.wrapped, c.settable = true, false
		if o != nil {
			o(c)
		}
		if c.wrapped = outer; !c.settable {
			c.fail("Default", errors.New("it takes WithSettings, WithPasswords, WithSessions, WithMail, WithRedirectURLs and WithCORS: nothing that another option says can be changed"))
		}
	}
}

// says notes that an option speaks of settings, and tells whether it does so within
// Default.
func (c *config) says(option string) (open bool) {
	if c.open == nil {
		c.open = map[string]bool{}
	}
	c.settable = true
	c.open[option] = c.wrapped
	return c.wrapped
}

// opens is says of an option whose calls add up.
func (c *config) opens(option string) {
	was := c.open[option]
	c.open[option] = c.says(option) || was
}

// Where a setting is from.
const (
	fromOption  = "option"
	fromStore   = "store"
	fromDefault = "default"
)

// optionSettings are what the options say of settings: locked, and where the store
// may say otherwise.
type optionSettings struct {
	locked, open Settings
	base         Settings // all of it, above the defaults
}

// newOptionSettings gathers what the options say, from wherever they put it, and
// takes it from there: Settings is where it is read.
func (c *config) newOptionSettings() optionSettings {
	o := optionSettings{locked: c.settings, open: c.openSettings}
	of := func(option string) *Settings {
		if c.open[option] {
			return &o.open
		}
		return &o.locked
	}
	p := of("WithPasswords")
	p.PasswordMinLength = c.passwords.MinLength
	if c.passwords.Breach != nil {
		p.BreachCheck = On
	}
	s := of("WithSessions")
	s.IdleTimeout, s.Lifetime = c.sessions.IdleTimeout, c.sessions.Lifetime
	of("WithMail").SenderName = c.mail.AppName
	c.sessions.IdleTimeout, c.sessions.Lifetime, c.mail.AppName = 0, 0, ""

	o.base = defaultSettings()
	if c.passwords.Breach == nil {
		o.base.BreachCheck = Off
	}
	if c.baseURL != nil {
		o.base.SenderName = c.baseURL.Hostname()
	}
	for _, f := range settingFields() {
		for _, layer := range []*Settings{&o.open, &o.locked} {
			if f.unset(layer) {
				continue
			}
			if f.check != nil && f.option == "WithSettings" { // the others judge their own
				if err := f.check(c, layer); err != nil {
					c.fail(f.option, err)
				}
			}
			f.copy(&o.base, layer)
		}
	}
	return o
}

// lockedBy tells why the store may not say anything of a field, or "".
func (o *optionSettings) lockedBy(c *config, f settingField) string {
	switch {
	case f.closed != nil && f.closed(c) != "":
		return f.closed(c)
	case !f.unset(&o.locked):
		return "is set by the application, with " + f.option
	}
	return ""
}

// document is what the store keeps: values as the wire has them, by name. It may hold
// names that a newer version wrote.
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

// settle is the one function in which options and store become settings. What the
// store says and may not, or what is wrong with it, does not count: faults tell why, by name.
func (o *optionSettings) settle(c *config, d document) (s Settings, faults map[string]string) {
	s, faults = o.base, map[string]string{}
	known := map[string]bool{}
	for _, f := range settingFields() {
		known[f.name] = true
		raw, said := d[f.name]
		if !said {
			continue
		}
		if err := o.take(c, f, &s, raw); err != nil {
			faults[f.name] = err.Error()
		}
	}
	for name := range d {
		if !known[name] {
			faults[name] = "is no setting"
		}
	}
	return s, faults
}

// take puts what the store says of a field in its place, if it may say so.
func (o *optionSettings) take(c *config, f settingField, s *Settings, raw json.RawMessage) error {
	if why := o.lockedBy(c, f); why != "" {
		return errors.New(why)
	}
	var v Settings
	err := f.read(&v, raw)
	if err == nil && f.check != nil {
		err = f.check(c, &v)
	}
	if err == nil && f.bound != nil {
		err = f.bound(c, &o.base, &v)
	}
	if err == nil {
		f.copy(s, &v)
	}
	return err
}

// source tells where a field is from, given what the store says and counts.
func (o *optionSettings) source(f settingField, d document, faults map[string]string) string {
	_, said := d[f.name]
	switch {
	case said && faults[f.name] == "":
		return fromStore
	case !f.unset(&o.locked) || !f.unset(&o.open):
		return fromOption
	}
	return fromDefault
}

// edit is a document with changes: values by name, and null for what the store is to
// say nothing of any more. Errors: CodeValidationFailed, which names every fault.
func (o *optionSettings) edit(c *config, d document, changes document) (document, error) {
	next := maps.Clone(d)
	for name, raw := range changes {
		if next[name] = raw; string(raw) == "null" {
			delete(next, name)
		}
	}
	_, faults := o.settle(c, next)
	for name := range faults { // of what was there before, nobody has to mend more than they touch
		if _, touched := changes[name]; !touched {
			delete(faults, name)
		}
	}
	known := settingFields()
	for name := range changes {
		if !slices.ContainsFunc(known, func(f settingField) bool { return f.name == name }) {
			faults[name] = "is no setting"
		}
	}
	if len(faults) > 0 {
		e := fail(CodeValidationFailed, nil)
		e.Fields = faults
		return nil, e
	}
	return next, nil
}

// defaultSettings are the settings of which nobody has said anything.
func defaultSettings() Settings {
	return Settings{
		Enabled: On, SignUp: On, RequireConfirmation: Off, Password: On, MagicLink: On, Phone: On, OAuth: On, TOTP: On,
		MFARequired: Off, AccountDeletion: Off, AutoLinking: On,
		PasswordMinLength: 8, BreachCheck: On, IdleTimeout: 30 * 24 * time.Hour,
	}
}
