package dashboard

import (
	"cmp"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/authmount/auth"
	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/internal/host"
)

// showSettings shows the settings, with the source of each value.
func showSettings(v *visit) (*page, error) {
	o, err := v.shown(v.d.adm.Settings(v.ctx, v.actor))
	if err != nil {
		return nil, err
	}
	p := &page{Title: v.t("Settings"), Under: v.t("Takes effect in every instance within a second."), Buttons: []link{
		v.to("Send me a test mail", "POST /settings/test-mail", "/settings/test-mail", false),
		v.to("Send me a test text message", "POST /settings/test-sms", "/settings/test-sms", false),
	}}
	for _, name := range v.d.adm.Auth().PublicSettings(v.ctx).Providers {
		p.Buttons = append(p.Buttons, v.to(v.t("Test {provider}", "provider", name), "POST /settings/test-provider/{name}", "/providers/"+url.PathEscape(name)+"/test", false))
	}
	if v.may("GET /diagnostics") {
		p.Buttons = append(p.Buttons, link{Text: v.t("Diagnostics"), To: v.path("/diagnostics")})
	}
	t := &table{Name: v.t("Settings"), Columns: v.columns("Setting", "Value", "From", "")}
	list := settingsOf(o.of("settings"))
	t.Rows = make([]row, 0, len(list))
	change := v.to("Change", "PATCH /settings", "/settings/", false)
	for _, s := range list {
		var value cell
		switch {
		case s.flag("value"):
			value.Tags = []tag{{v.t("On"), "good"}}
		case s.box:
			value.Tags = []tag{{v.t("Off"), ""}}
		default:
			value.Text = v.settingText(s.name, s.get("value"))
		}
		do := change
		switch {
		case s.flag("locked"):
			do = link{Text: v.t("Locked"), Reason: cmp.Or(s.str("locked_because"), v.t("Set by an option in the code."))}
		case do.To != "":
			do.To += url.PathEscape(s.name) + "/edit"
		}
		t.Rows = append(t.Rows, row{Cells: []cell{{Text: v.t(s.name), Tags: []tag{{Text: s.name}}}, value, {Text: v.t(s.str("source"))}, {Links: []link{do}}}})
	}
	p.Blocks = []block{{Table: t}}
	return p, nil
}

// setting is one of the settings.
type setting struct {
	name string
	*record
	box bool // on or off
}

// settingsOf returns all settings, the switches first, sorted by name.
func settingsOf(all object) []setting {
	var list []setting
	all.each(func(name string, s object) {
		list = append(list, setting{name, s, s.member("value").Kind() == reflect.Bool})
	})
	slices.SortFunc(list, func(a, b setting) int {
		switch {
		case a.box == b.box:
			return cmp.Compare(a.name, b.name)
		case a.box:
			return -1
		}
		return 1
	})
	return list
}

// inSeconds reports whether a setting is a number of seconds.
func inSeconds(name string) bool {
	return slices.ContainsFunc(host.DeclaredSettings(), func(d host.SettingDeclaration) bool {
		return d.Name == name && d.Kind == host.SettingSeconds
	})
}

// settingText returns a value as the page shows it.
func (v *visit) settingText(name string, value any) string {
	switch value := value.(type) {
	case float64:
		if inSeconds(name) {
			return v.span(int64(value))
		}
		return strconv.FormatFloat(value, 'f', -1, 64)
	case []any:
		var parts []string
		for _, p := range value {
			parts = append(parts, fmt.Sprint(p))
		}
		return cmp.Or(strings.Join(parts, ", "), "—")
	case map[string]any:
		if len(value) == 0 {
			return "—"
		}
		return pretty(value)
	case nil:
		return "—"
	}
	return cmp.Or(fmt.Sprint(value), "—")
}

// span returns a number of seconds in the largest unit without a remainder.
func (v *visit) span(seconds int64) string {
	switch {
	case seconds == 0:
		return v.t("None")
	case seconds%86400 == 0:
		return v.t("{n} days", "n", seconds/86400)
	case seconds%3600 == 0:
		return v.t("{n} hours", "n", seconds/3600)
	case seconds%60 == 0:
		return v.t("{n} minutes", "n", seconds/60)
	}
	return v.t("{n} seconds", "n", seconds)
}

func settingsActions() []action {
	back := func(v *visit) string { return v.path("/settings") }
	tested := func(v *visit, o object) (*page, error) {
		p := &page{Title: v.t("Test"), Tags: []tag{{v.t("It did not work"), "bad"}}, Blocks: []block{{Text: o.str("detail"), Link: &link{Text: v.t("To the settings"), To: back(v)}}}}
		switch {
		case o.flag("ok"):
			p.Tags = []tag{{v.t("It works"), "good"}}
		case o.flag("queued"):
			p.Tags = []tag{{v.t("Not known yet"), "warn"}}
		}
		return p, nil
	}
	return []action{
		{at: "/settings/{name}/edit", operation: "PATCH /settings", title: "Change a setting", submit: "Save", done: "Saved. It takes effect everywhere within a second.", back: back, fields: settingFields,
			do: func(v *visit) (any, error) {
				set, err := postedSetting(v)
				if err != nil {
					return nil, err
				}
				return v.d.adm.SetSettings(v.ctx, v.actor, admin.SetSettingsParams{Set: set, Revision: v.revision()})
			}},
		{at: "/settings/test-mail", operation: "POST /settings/test-mail", title: "Send me a test mail", submit: "Send", back: back, show: tested,
			do: func(v *visit) (any, error) { return v.d.adm.TryMail(v.ctx, v.actor) }},
		{at: "/settings/test-sms", operation: "POST /settings/test-sms", title: "Send me a test text message", submit: "Send", back: back, show: tested,
			do: func(v *visit) (any, error) { return v.d.adm.TrySMS(v.ctx, v.actor) }},
		{at: "/providers/{name}/test", operation: "POST /settings/test-provider/{name}", title: "Test the provider", submit: "Test", back: back, show: tested,
			do: func(v *visit) (any, error) { return v.d.adm.TryProvider(v.ctx, v.actor, v.r.PathValue("name")) }},
	}
}

// setting returns the form's setting.
func (v *visit) setting() (name string, s, all object, err error) {
	if all, err = v.shown(v.d.adm.Settings(v.ctx, v.actor)); err != nil {
		return "", nil, nil, err
	}
	name = v.r.PathValue("name")
	if s = all.of("settings").of(name); s == nil {
		return "", nil, nil, auth.Reject(auth.CodeNotFound, "")
	}
	return name, s, all, nil
}

// settingFields returns the field for a setting by its type: box, number, words or JSON.
func settingFields(v *visit) ([]field, error) {
	name, s, all, err := v.setting()
	if err != nil {
		return nil, err
	}
	f := field{Name: "value", Label: v.t(name), Type: "text", Value: v.settingText(name, s.get("value"))}
	switch value := s.get("value").(type) {
	case bool:
		f.Type, f.Checked = "check", value
	case float64:
		f.Type, f.Value = "number", strconv.FormatFloat(value, 'f', -1, 64)
		if inSeconds(name) {
			f.Hint = v.t("Seconds")
		}
	case []any:
		f.Type, f.Value, f.Hint = "lines", strings.Join(s.texts("value"), "\n"), v.t("Separated by spaces")
	case map[string]any:
		f.Type, f.Value, f.Hint = "textarea", pretty(value), "JSON"
	}
	fields := []field{f, {Name: "revision", Type: "hidden", Value: all.str("revision")}}
	if s.str("source") == "store" {
		fields = append(fields, field{Name: "unset", Label: v.t("Restore the default"), Type: "check"})
	}
	return fields, nil
}

// postedSetting returns the posted value.
func postedSetting(v *visit) (map[string]any, error) {
	name, s, _, err := v.setting()
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(v.form.Get("value"))
	if v.form.Get("unset") != "" {
		return map[string]any{name: nil}, nil
	}
	switch s.get("value").(type) {
	case bool:
		return map[string]any{name: text != ""}, nil
	case float64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, v.d.kit.Invalid("value", "has to be a number")
		}
		return map[string]any{name: n}, nil
	case []any:
		return map[string]any{name: append([]string{}, strings.Fields(strings.ReplaceAll(text, ",", " "))...)}, nil
	case map[string]any:
		o, err := readObject(text)
		if err != nil {
			return nil, v.d.kit.Invalid("value", "has to be a JSON object")
		}
		return map[string]any{name: o}, nil
	}
	return map[string]any{name: text}, nil
}
