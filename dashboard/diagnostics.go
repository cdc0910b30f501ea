package dashboard

import (
	"cmp"
	"net/url"
	"strings"
	"time"
)

// showDiagnostics shows the health of the instance that answers.
func showDiagnostics(v *visit) (*page, error) {
	o, err := v.shown(v.d.adm.Diagnostics(v.ctx, v.actor))
	if err != nil {
		return nil, err
	}
	p := &page{Title: v.t("Diagnostics"), Under: v.t("As seen by the instance that answered.")}
	for _, text := range v.clocks(o) {
		p.Blocks = append(p.Blocks, block{Warn: true, Text: text})
	}
	store, client, mail, settings, feed := o.of("store"), o.of("client"), o.of("mail"), o.of("settings"), o.of("feed")
	p.Blocks = append(p.Blocks, []block{
		{Title: v.t("Store"), Facts: []fact{
			v.fact("Clock of this instance", cell{Time: o.time("now")}),
			v.fact("The store's clock is ahead by", cell{Text: seconds(store, "ahead_by")}),
			v.fact("Version of the schema", cell{Text: cmp.Or(store.str("schema_version"), "—")}),
			v.fact("Response time", cell{Text: seconds(store, "response_seconds")}),
		}},
		{Title: v.t("Your IP address, as seen here"), Facts: []fact{
			v.fact("Address", v.suspect(client.str("ip"), client.flag("unheeded"), "Headers of a proxy are ignored: name the proxy with WithTrustedProxies")),
			v.fact("Connected from", cell{Text: client.str("peer")}),
			v.fact("Forwarding headers received", cell{Text: cmp.Or(strings.Join(client.texts("forwarded"), ", "), "—")}),
			v.fact("Trusted proxies", cell{Text: thousands(client.num("trusted_proxies"))}),
		}},
		{Title: v.t("Messages"), Facts: []fact{
			v.fact("Waiting in this instance", cell{Text: thousands(mail.num("here"))}),
			v.fact("Waiting in the store", cell{Text: cmp.Or(mail.str("waiting"), "—"), To: v.path("/messages")}),
			v.fact("The oldest is from", v.when(mail, "oldest")),
		}},
		{Title: v.t("Settings"), Facts: []fact{
			v.fact("Revision", v.suspect(settings.str("revision"), settings.flag("failing"), "They cannot be read. The ones read last stay in effect")),
			v.fact("Read", v.when(settings, "read_at")),
		}},
		{Title: v.t("Sign-outs everywhere"), Facts: []fact{
			v.fact("Change feeds followed", cell{Text: thousands(feed.num("following"))}), v.fact("Last viewed", v.when(feed, "looked_at")),
		}},
	}...)
	keys := &table{Name: v.t("Signing keys"), Columns: v.columns("Id", "Algorithm", "Use"), Empty: v.t("None.")}
	for _, k := range o.list("keys") {
		use := v.t("Verifies")
		if k.flag("signs") {
			use = v.t("Signs and verifies")
		}
		keys.Rows = append(keys.Rows, row{Cells: []cell{{Text: k.str("kid"), Code: true}, {Text: k.str("alg")}, {Text: use}}})
	}
	ages := &table{Name: v.t("Ages of API keys"), Columns: v.columns("Key", "Of", "Last used", "Ends"), Empty: v.t("There is no secret key.")}
	for _, k := range o.list("api_keys") {
		name := cell{Text: k.str("name"), To: v.path("/keys/" + url.PathEscape(k.str("id")))}
		if k.flag("ageing") {
			name.Tags = []tag{{v.t("Old"), "warn"}}
		}
		ages.Rows = append(ages.Rows, row{Cells: []cell{name, {Time: k.time("since")}, v.when(k, "last_used_at"), v.when(k, "expires_at")}})
	}
	open := &table{Name: v.t("Role names that protect nobody"), Columns: v.columns("Role"), Empty: v.t("None.")}
	for _, r := range o.list("open_roles") {
		open.Rows = append(open.Rows, row{Cells: []cell{{Text: r.str("name"), Code: true}}})
	}
	p.Blocks = append(p.Blocks, block{Title: v.t("Role names that protect nobody"), Text: v.t("Your code asks for these roles by name. Every operator who assigns roles can give them, and weaker operators can act as their bearers, unless WithPrivilegedRoles or an owner marks the name."), Table: open})
	p.Blocks = append(p.Blocks, block{Title: v.t("Signing keys"), Table: keys}, block{Title: v.t("Ages of API keys"), Table: ages}, block{Title: "JSON", Code: pretty(o.whole())})
	return p, nil
}

func (v *visit) fact(name string, c cell) fact { return fact{Name: v.t(name), Cells: []cell{c}} }

// suspect returns a value, marked with a problem if it has one.
func (v *visit) suspect(text string, hasProblem bool, problem string) cell {
	c := cell{Text: text}
	if hasProblem {
		c.Tags = []tag{{v.t(problem), "warn"}}
	}
	return c
}

// seconds returns a duration that may be a fraction of a second.
func seconds(o object, name string) string {
	s, ok := o.get(name).(float64)
	if !ok {
		return "—"
	}
	return time.Duration(s * float64(time.Second)).Round(10 * time.Microsecond).String()
}
