package admin

import (
	"time"

	"github.com/authmount/auth/store"
)

var statsEndpoints = []endpoint{
	op(opStats, (*Admin).Stats),
	op(opOverview, (*Admin).Overview),
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

func (s Stats) reply(*Admin) reply {
	series := []seriesView{}
	for _, c := range s.Counts {
		if n := len(series); n == 0 || series[n-1].Metric != c.Metric || series[n-1].Label != c.Label {
			series = append(series, seriesView{Metric: c.Metric, Label: c.Label})
		}
		last := &series[len(series)-1]
		last.Points = append(last.Points, pointView{c.At, c.N})
	}
	return reply{body: struct {
		From     time.Time      `json:"from"`
		To       time.Time      `json:"to"`
		Interval store.Interval `json:"interval"`
		Series   []seriesView   `json:"series"`
	}{s.From, s.To, s.Interval, series}}
}

type totalView struct {
	N     int64 `json:"count"`
	Exact bool  `json:"exact"`
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
	Figures  []Figure         `json:"figures"`
	Warnings []Warning        `json:"warnings"`
}

func (o Overview) reply(*Admin) reply {
	out := overviewView{From: o.From, To: o.To, Active: o.Active, Figures: o.Figures, Warnings: o.Warnings}
	out.Totals.Users, out.Totals.WithFactor, out.Totals.Banned = totalView(o.Totals.Users), totalView(o.Totals.WithFactor), totalView(o.Totals.Banned)
	return reply{body: out}
}
