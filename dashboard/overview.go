package dashboard

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/authmount/auth/admin"
	"github.com/authmount/auth/store"
)

// periods are the spans of the overview, by their names on the wire.
var periods = []struct{ name, text string }{{"24h", "24 hours"}, {"7d", "7 days"}, {"30d", "30 days"}, {"90d", "90 days"}}

// showOverview shows the figures that an auditor or owner sees first. Visitors who may
// not read figures see a text and the navigation.
func showOverview(v *visit) (*page, error) {
	p := &page{Title: v.t("Overview")}
	if !v.may("GET /overview") {
		p.Blocks = []block{{Text: v.t("Your roles do not include the figures. What you can do is in the menu.")}}
		return p, nil
	}
	period := cmp.Or(v.r.URL.Query().Get("period"), "24h")
	for _, s := range periods {
		p.Tabs = append(p.Tabs, link{Text: v.t(s.text), To: v.path("/") + "?period=" + s.name, Here: s.name == period})
	}
	o, err := v.shown(v.d.adm.Overview(v.ctx, v.actor, admin.OverviewParams{Period: period}))
	if err != nil {
		return nil, err
	}
	p.Blocks = append(p.Blocks, v.warnings(o)...)
	p.Blocks = append(p.Blocks, block{Figures: v.totals(o)}, block{Title: v.t("In the last {span}, compared with the period before", "span", v.spanName(period)), Figures: v.figures(o)})
	stats, err := v.shown(v.d.adm.Stats(v.ctx, v.actor, admin.StatsParams{Metrics: []store.Metric{store.MetricSignUps, store.MetricSignIns, store.MetricSignInFailures}, From: o.time("from"), To: o.time("to"), Interval: store.Interval(intervalOf(period))}))
	if err != nil {
		return nil, err
	}
	note := ""
	if intervalOf(period) == "day" {
		note = v.t("By day, in UTC. The first day is complete and therefore starts before the period above.")
	}
	for _, m := range []struct{ metric, text, kind string }{{"sign_ups", "Sign-ups", "good"}, {"sign_ins", "Sign-ins by method", ""}, {"sign_in_failures", "Failures by reason", "bad"}} {
		p.Blocks = append(p.Blocks, block{Title: v.t(m.text), Text: note, Chart: v.chart(m.text, m.kind, m.metric, stats)})
	}
	return p, nil
}

func (v *visit) spanName(period string) string {
	for _, s := range periods {
		if s.name == period {
			return v.t(s.text)
		}
	}
	return period
}

func intervalOf(period string) string {
	if period == "24h" {
		return "hour"
	}
	return "day"
}

// warnings returns the problems that need attention.
func (v *visit) warnings(o object) []block {
	var list []block
	for _, w := range o.list("warnings") {
		b := block{Warn: true, Text: v.t(w.str("code")) + " (" + thousands(w.num("count")) + ")"}
		switch w.str("code") {
		case "messages_failing":
			b.Link = &link{Text: v.t("To the messages"), To: v.path("/messages?state=failed")}
		case "accounts_waiting":
			b.Link = &link{Text: v.t("To the users"), To: v.path("/users?status=waiting")}
		case "keys_ageing":
			b.Link = &link{Text: v.t("To the keys"), To: v.path("/keys")}
		case "limits_hit":
			b.Link = &link{Text: v.t("To the failures"), To: v.path("/audit?outcome=failed")}
		case "tokens_reused":
			b.Link = &link{Text: v.t("To the audit log"), To: v.path("/audit?action=refresh_token.*")}
		case "clocks_differ":
			b.Text = strings.Join(v.clocks(w), " ")
			b.Link = &link{Text: v.t("To the diagnostics"), To: v.path("/diagnostics")}
		}
		list = append(list, b)
	}
	return list
}

// clocks describes the clocks that differ from the clock of the instance that answered.
func (v *visit) clocks(o object) (list []string) {
	for _, c := range o.list("clocks") {
		values := []any{"instance", cmp.Or(c.str("instance"), "?"), "here", iso(c.time("here")), "there", iso(c.time("there"))}
		if c.str("with") == "token" {
			list = append(list, v.t("Access tokens were refused because clocks differ. Clock of the instance {instance}: {here}. Clock of the token's issuer: {there}.", values...))
		} else {
			list = append(list, v.t("Clocks differ. Clock of the instance {instance}: {here}. The store's clock: {there}.", values...))
		}
	}
	return list
}

// totals returns the present totals.
func (v *visit) totals(o object) []figure {
	t := o.of("totals")
	var list []figure
	for _, f := range []struct{ name, text, to string }{{"users", "Users", "/users"}, {"with_factor", "With a second factor", "/users?mfa=true"}, {"banned", "Banned", "/users?status=banned"}} {
		n := t.of(f.name)
		value := thousands(n.num("count"))
		if !n.flag("exact") {
			value = "≈ " + value
		}
		list = append(list, figure{Label: v.t(f.text), Value: value, To: v.path(f.to)})
	}
	active := o.of("active_users")
	for _, f := range []struct{ name, text string }{{"day", "Active today"}, {"week", "Active this week"}, {"month", "Active this month"}} {
		list = append(list, figure{Label: v.t(f.text), Value: thousands(active.num(f.name))})
	}
	return list
}

// figures returns sums over the span, grouped by metric.
func (v *visit) figures(o object) []figure {
	type sum struct{ now, before int64 }
	sums := map[string]sum{}
	for _, f := range o.list("figures") {
		s := sums[f.str("metric")]
		sums[f.str("metric")] = sum{s.now + f.num("count"), s.before + f.num("before")}
	}
	from := url.QueryEscape(iso(o.time("from")))
	var list []figure
	for _, f := range []struct{ metric, text, to string }{
		{"sign_ups", "Sign-ups", "/audit?action=user.signed_up&from=" + from}, {"sign_ins", "Sign-ins", "/audit?action=user.signed_in&from=" + from},
		{"sign_in_failures", "Failures", "/audit?action=sign_in.failed&from=" + from}, {"factors", "Second factors", "/audit?action=mfa.*&from=" + from},
		{"messages_sent", "Messages sent", "/messages"}, {"messages_failed", "Messages failed", "/messages?state=failed"},
		{"limits_hit", "Limits hit", "/audit?outcome=failed&from=" + from}, {"operations_denied", "Operations denied", "/audit?outcome=denied&from=" + from},
	} {
		s := sums[f.metric]
		list = append(list, figure{Label: v.t(f.text), Value: thousands(s.now), Change: change(s.now, s.before), To: v.path(f.to)})
	}
	return list
}

// change returns the difference to the previous span.
func change(now, before int64) string {
	switch {
	case now == before:
		return "±0"
	case before == 0:
		return "+" + thousands(now)
	}
	return fmt.Sprintf("%+d %%", (now-before)*100/before)
}

// thousands formats a number with separators.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// compactText returns a value on one line.
func compactText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return pretty(v)
}

// series returns the points of a metric, one line a label.
func series(stats object, metric string) []line {
	var list []line
	for _, s := range stats.list("series") {
		if s.str("metric") != metric {
			continue
		}
		l := line{Name: cmp.Or(s.str("label"), metric), At: map[time.Time]int64{}}
		for _, p := range s.list("points") {
			l.At[p.time("at").UTC()] += p.num("count")
		}
		list = append(list, l)
	}
	return list
}
