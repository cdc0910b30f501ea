package admin

import (
	"net/http"
	"strings"
	"time"

	"github.com/authmount/auth/store"
)

var statsEndpoints = []endpoint{
	{opStats, (*Admin).handleStats},
	{opOverview, (*Admin).handleOverview},
}

type seriesView struct {
	Metric store.Metric `json:"metric"`
	Label  string       `json:"label"`
	Points []pointView  `json:"points"`
}

type pointView struct {
	At    time.Time `json:"at"`
	Count int64     `json:"count"`
}

func (m *Admin) handleStats(who Actor, w http.ResponseWriter, r *http.Request) error {
	v := m.values(r)
	p := StatsParams{From: v.time("from"), To: v.time("to"), Interval: store.Interval(v.text("interval"))}
	if s := v.text("metrics"); s != "" {
		for name := range strings.SplitSeq(s, ",") {
			p.Metrics = append(p.Metrics, store.Metric(name))
		}
	}
	if err := v.done(); err != nil {
		return err
	}
	s, err := m.Stats(r.Context(), who, p)
	if err != nil {
		return err
	}
	series := []seriesView{}
	for _, c := range s.Counts {
		if n := len(series); n == 0 || series[n-1].Metric != c.Metric || series[n-1].Label != c.Label {
			series = append(series, seriesView{Metric: c.Metric, Label: c.Label})
		}
		last := &series[len(series)-1]
		last.Points = append(last.Points, pointView{c.At, c.N})
	}
	return m.kit.WriteJSON(w, http.StatusOK, struct {
		From     time.Time      `json:"from"`
		To       time.Time      `json:"to"`
		Interval store.Interval `json:"interval"`
		Series   []seriesView   `json:"series"`
	}{s.From, s.To, s.Interval, series})
}

type totalView struct {
	N     int64 `json:"count"`
	Exact bool  `json:"exact"`
}

type figureView struct {
	Metric store.Metric `json:"metric"`
	Label  string       `json:"label"`
	Count  int64        `json:"count"`
	Before int64        `json:"before"`
}

type warningView struct {
	Code  string `json:"code"`
	Count int64  `json:"count"`
}

type overviewView struct {
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	Totals struct {
		Users      totalView `json:"users"`
		WithFactor totalView `json:"with_factor"`
		Banned     totalView `json:"banned"`
	} `json:"totals"`
	Active   map[string]int64 `json:"active_users"`
	Figures  []figureView     `json:"figures"`
	Warnings []warningView    `json:"warnings"`
}

func (m *Admin) handleOverview(who Actor, w http.ResponseWriter, r *http.Request) error {
	v := m.values(r)
	var p OverviewParams
	if s := v.text("period"); s != "" {
		var ok bool
		if p.Period, ok = Periods()[s]; !ok {
			v.fault("period", "has to be 24h, 7d, 30d or 90d")
		}
	}
	if err := v.done(); err != nil {
		return err
	}
	o, err := m.Overview(r.Context(), who, p)
	if err != nil {
		return err
	}
	out := overviewView{From: o.From, To: o.To, Active: o.Active, Figures: []figureView{}, Warnings: []warningView{}}
	out.Totals.Users, out.Totals.WithFactor, out.Totals.Banned = totalView(o.Totals.Users), totalView(o.Totals.WithFactor), totalView(o.Totals.Banned)
	for _, f := range o.Figures {
		out.Figures = append(out.Figures, figureView(f))
	}
	for _, f := range o.Warnings {
		out.Warnings = append(out.Warnings, warningView(f))
	}
	return m.kit.WriteJSON(w, http.StatusOK, out)
}
